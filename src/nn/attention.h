// MultiheadAttention with all options of its forward.
#pragma once

#include "nn/module.h"

namespace TT_NS {

struct AttentionCall {
  const Tensor *query, *key, *value;
  // Masks are bool (true: ignored) or floating (added).
  const Tensor* key_padding_mask = nullptr;  // (N, S) or (S)
  const Tensor* attn_mask = nullptr;         // (L, S) or (N * heads, L, S)
  bool need_weights = true;
  bool average_weights = true;
  bool is_causal = false;
};
// Xavier's bound of uniform weights (Glorot and Bengio 2010).
double xavier_bound(int64_t fan_in, int64_t fan_out);
// Whether m is a MultiheadAttention, not a module of the application that has its name.
bool is_attention(const Module& m);
// m must be a MultiheadAttention. second: the attention weights, empty unless needed.
TensorPair attend(Module& m, const AttentionCall& call);

}  // namespace TT_NS
