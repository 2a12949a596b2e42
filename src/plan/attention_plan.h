// AttentionPlan: softmax(q k^T scale + mask) v by blocks, after Dao et al., "FlashAttention"
// (NeurIPS 2022) and "FlashAttention-2" (ICLR 2024): the queries × keys matrix is never stored.
// POD, also for device code.
#pragma once

#include "plan/cuda_math.h"
#include "plan/stages.h"

namespace TT_NS {

// Block sizes. They are fixed, so that results do not depend on the number of threads.
constexpr int64_t kAttentionQueries = 64;
constexpr int64_t kAttentionKeys = 128;
constexpr int64_t kAttentionSlots = 32;  // tasks, each with its own scratch memory
// With tiles, the queries and keys that are packed at a time: whole blocks of those above.
constexpr int64_t kAttentionTileQueries = 256;
constexpr int64_t kAttentionTileKeys = 512;

// Strides in bytes. The elements of a row of q, k, v, out and grad are contiguous.
struct AttentionRows {
  char* p;
  int64_t batch, head, row;
};

// The kernels compute in C: f32 for f16, bf16 and f32, f64 for f64.
// Forward: units [batch][head][block of queries]. Backward: one stage of units [batch][key head],
// or two: [batch][head] [block of queries] for dq, then [batch][key head][block of keys] for dk and
// dv; both give the same bits.
struct AttentionPlan {
  Stages run;
  int32_t dtype;       // of q, k, v, out and grad: f16 bf16 f32 f64
  int32_t mask_dtype;  // bool (true: attends) or a floating one (added); 0: no mask
  // Query head h reads key head h / (heads / key_heads).
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  double scale;
  bool tiles;     // (CPU) bf16 is multiplied by tiles of AMX: units are of kAttentionTile… rows
  bool causal;    // query i attends to keys 0 … i
  uint16_t math;  // bits of CudaMath
  AttentionRows q, k, v, out, grad;
  const char* mask;
  int64_t mask_batch, mask_head, mask_query, mask_key;
  char* lse;  // [batch][head][query] in C: log of the sum of exp, -inf if all keys are masked
  // Dropout decides by word `key` of the padded row of words (batch, head, query),
  // attention_row_words(keys) words each.
  bool drop;
  int32_t threshold;  // kept iff the word's upper 24 bits are below it
  double keep_scale;
  uint64_t seed, offset;
  // Backward, contiguous: [batch][heads][queries][width] and so on; on the CPU in C, on devices and
  // with tiles in dtype.
  char *dq, *dk, *dv;
  char* delta;  // [batch][head][query]: sum of grad * out
  char* workspace;
  int64_t slot_bytes;  // of one task's part of the workspace
};

TT_INLINE constexpr int64_t attention_query_blocks(const AttentionPlan& p) {
  return ceil_div(p.queries, p.tiles ? kAttentionTileQueries : kAttentionQueries);
}
TT_INLINE constexpr int64_t attention_key_blocks(const AttentionPlan& p) {
  return ceil_div(p.keys, p.tiles ? kAttentionTileKeys : kAttentionKeys);
}
TT_INLINE constexpr int64_t attention_row_words(int64_t keys) { return round_up(keys, 64); }
// Rows of a block of queries, padded to whole vectors of every instruction set.
TT_INLINE constexpr int64_t attention_lanes(int64_t queries) { return round_up(queries, 16); }

}  // namespace TT_NS
