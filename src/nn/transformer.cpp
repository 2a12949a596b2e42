// Layers of transformers, composed of attention, linear layers, normalisations and dropout.
#include "nn/attention.h"
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

// The children, in PyTorch's order.
enum EncoderChildren {
  kSelfAttn,
  kLinear1,
  kDropout,
  kLinear2,
  kNorm1,
  kNorm2,
  kDropout1,
  kDropout2
};
enum DecoderChildren {
  kDecoderSelfAttn,
  kMultiheadAttn,
  kDecoderLinear1,
  kDecoderDropout,
  kDecoderLinear2,
  kDecoderNorm1,
  kDecoderNorm2,
  kDecoderNorm3,
  kDecoderDropout1,
  kDecoderDropout2,
  kDecoderDropout3
};

// The options that encoder layers, decoder layers and transformers have in common.
using LayerOptions = TransformerEncoderLayerArgs;
template <class To, class From> To options_of(const From& a) {
  return {a.d_model,        a.nhead,       a.dim_feedforward, a.dropout, a.activation,
          a.layer_norm_eps, a.batch_first, a.norm_first,      a.bias,    a.device,
          a.dtype};
}

enum StackChildren { kLayers };
enum TransformerChildren { kEncoder, kDecoder };

void add_attention(Module& m, const char* name, const LayerOptions& a) {
  set_child(m, name,
            *construct(MultiheadAttentionArgs{a.d_model,
                                              a.nhead,
                                              a.dropout,
                                              a.bias,
                                              false,
                                              false,
                                              {},
                                              {},
                                              a.batch_first,
                                              a.device,
                                              a.dtype}));
}
void add_linear(Module& m, const char* name, int64_t in, int64_t out, const LayerOptions& a) {
  set_child(m, name, *construct(LinearArgs{in, out, a.bias, a.device, a.dtype}));
}
ModuleRef new_norm(const LayerOptions& a) {
  return construct(
      LayerNormArgs{Shape{a.d_model}, a.layer_norm_eps, true, a.bias, a.device, a.dtype});
}
void add_norm(Module& m, const char* name, const LayerOptions& a) {
  set_child(m, name, *new_norm(a));
}
void add_dropout(Module& m, const char* name, const LayerOptions& a) {
  set_child(m, name, *construct(DropoutArgs{a.dropout, false}));
}
void add_feedforward(Module& m, const LayerOptions& a) {
  add_linear(m, "linear1", a.d_model, a.dim_feedforward, a);
  add_dropout(m, "dropout", a);
  add_linear(m, "linear2", a.dim_feedforward, a.d_model, a);
}

// Errors name the layer's own arguments, not those of its children.
void check_args(const LayerOptions& a) {
  const Place place(a.dtype, a.device);
  check_positive(a.d_model, "d_model");
  check_positive(a.nhead, "nhead");
  if (a.d_model % a.nhead)
    fail_arg(TT_INVALID_ARG, "d_model", "d_model is {}: must be a multiple of nhead {}", a.d_model,
             a.nhead);
  int64_t rows;  // of the weight that projects queries, keys and values
  if (mul_overflow(a.d_model, 3, &rows))
    fail_arg(TT_INVALID_ARG, "d_model", "d_model is {}: 3 * d_model overflows", a.d_model);
  const int64_t projection[2] = {rows, a.d_model};
  checked_numel(projection, place.dtype, "d_model");
  check_size(a.dim_feedforward, "dim_feedforward");
  const int64_t widening[2] = {a.dim_feedforward, a.d_model};
  checked_numel(widening, place.dtype, "dim_feedforward");
  if (!(a.dropout >= 0 && a.dropout <= 1))
    fail_arg(TT_INVALID_ARG, "dropout", "dropout is {}: must be in [0, 1]", a.dropout);
}
void check_input(const LayerOptions& a, const Tensor& x, const char* arg) {
  if (x.ndim != 2 && x.ndim != 3)
    fail_arg(TT_SHAPE, arg, "{} is {}: must have 2 or 3 dimensions", arg, x.sizes());
  if (!is_differentiable(x.dtype))
    fail_arg(TT_DTYPE, arg, "{} is {}: must be floating", arg, fmt(x.dtype));
  if (x.size(-1) != a.d_model)
    fail_arg(TT_SHAPE, arg, "{} is {}: its last size must be d_model {}", arg, x.sizes(),
             a.d_model);
}
// Sizes of the batch and of the sequence of an input.
struct Sequence {
  int64_t n, length;
};
Sequence sequence_of(const LayerOptions& a, const Tensor& x) {
  if (x.ndim == 2) return {1, x.size(0)};
  return a.batch_first ? Sequence{x.size(0), x.size(1)} : Sequence{x.size(1), x.size(0)};
}
void check_same_batch(const LayerOptions& a, TensorSpan in, const char* first, const char* second) {
  if (in[0]->ndim != in[1]->ndim || sequence_of(a, *in[0]).n != sequence_of(a, *in[1]).n)
    fail_arg(TT_SHAPE, second, "{} is {}, {} is {}: must have the same batch", second,
             in[1]->sizes(), first, in[0]->sizes());
}
void check_mask_dtype(const Tensor& mask, const char* arg) {
  if (mask.dtype != Dtype::kBool && !is_float(mask.dtype))
    fail_arg(TT_DTYPE, arg, "{} is {}: must be bool or floating", arg, fmt(mask.dtype));
}
void check_mask(const LayerOptions& a, const Tensor* mask, const char* arg, const Sequence& target,
                const Sequence& source) {
  if (!mask) return;
  check_mask_dtype(*mask, arg);
  const int64_t plain[2] = {target.length, source.length};
  const int64_t own[3] = {target.n * a.nhead, target.length, source.length};
  if (!same(mask->sizes(), mask->ndim == 3 ? Ints(own) : Ints(plain)))
    fail_arg(TT_SHAPE, arg, "{} is {}: must be {} or {}", arg, mask->sizes(), Ints(plain),
             Ints(own));
}
void check_padding(const Tensor* mask, const char* arg, const Sequence& source) {
  if (!mask) return;
  check_mask_dtype(*mask, arg);
  const int64_t want[2] = {source.n, source.length};
  if (mask->ndim == 0 || mask->numel != want[0] * want[1] || mask->size(-1) != want[1])
    fail_arg(TT_SHAPE, arg, "{} is {}: must be {}", arg, mask->sizes(), Ints(want));
}

// Attention without weights, unless the child was replaced or its hooks want all results.
TensorRef attention(const Module& m, int64_t i, const Tensor& query, const Tensor& memory,
                    const Tensor* mask, const Tensor* padding) {
  const ModuleRef child = m.children[i].module;
  if (is_attention(*child) && child->hooks.empty()) {
    const ModuleKeepAlive kept(*child);
    AttentionCall call = {&query, &memory, &memory, padding, mask};
    call.need_weights = false;
    return attend(*child, call).first;
  }
  const Tensor* const in[5] = {&query, &memory, &memory, padding, mask};
  return first_of(forward(*child, {in, 5}), *child);
}
// A child "activation" takes the place of the function that is an argument.
TensorRef activated(Module& m, bool gelu, const Tensor& x) {
  if (const ModuleRef own = ModuleRef::share(find_module(m, "activation"))) {
    const Tensor* in = &x;
    return first_of(forward(*own, {&in, 1}), *own);
  }
  return gelu ? op::gelu(x) : op::relu(x);
}
TensorRef feedforward(Module& m, int64_t linear1, bool gelu, const Tensor& x) {
  TensorRef h = call_child(m, linear1, x);
  h = activated(m, gelu, *h);
  h = call_child(m, linear1 + 1, *h);
  return call_child(m, linear1 + 2, *h);
}

// One of the blocks of a layer, added to its input: x + dropout(block(norm(x))) with norm_first,
// else norm(x + dropout(block(x))).
template <class Block> TensorRef residual(const Module& m, const Tensor& x, bool norm_first,
                                          int64_t norm, int64_t dropout, const Block& block) {
  TensorRef h = norm_first ? call_child(m, norm, x) : TensorRef::share(&x);
  h = block(*h);
  h = call_child(m, dropout, *h);
  h = op::add(x, *h);
  return norm_first ? std::move(h) : call_child(m, norm, *h);
}

void check_count(int64_t n, const char* arg) {
  if (n < 0) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must not be negative", arg, n);
}
// Adds the children of a stack: "layers", a list of n copies of a layer, and "norm" if it is given.
void build_stack(Module& m, Module& layer, int64_t n, Module* norm) {
  check_count(n, "num_layers");
  const ModuleRef layers = construct(ModuleListArgs{});
  layers->children.reserve(n);
  for (int64_t i = 0; i < n; i++) {
    Text name;
    name.add(i);
    append_child(*layers, name, *deep_copy(layer));
  }
  set_child(m, "layers", *layers);
  if (norm) set_child(m, "norm", *norm);
}
// Passes in[0] through the layers of a stack, which get all other inputs, too, then through "norm".
TensorList run_stack(Module& m, TensorSpan in) {
  SmallVec<const Tensor*, 6> inputs;
  for (int64_t i = 0; i < in.n; i++) inputs.push_back(in[i]);
  const ModuleRef layers = m.children[kLayers].module;
  TensorRef x = TensorRef::share(in[0]);
  for (int64_t i = 0; i < layers->children.size(); i++) {
    const ModuleRef layer = layers->children[i].module;
    inputs[0] = x.get();
    x = first_of(forward(*layer, {inputs.begin(), inputs.size()}), *layer);
  }
  const ModuleRef norm = ModuleRef::share(find_module(m, "norm"));
  if (!norm) return one(std::move(x));
  inputs[0] = x.get();
  return one(first_of(forward(*norm, {inputs.begin(), 1}), *norm));
}

}  // namespace

void build(Module& m, const TransformerEncoderLayerArgs& a) {
  check_args(a);
  add_attention(m, "self_attn", a);
  add_feedforward(m, a);
  add_norm(m, "norm1", a);
  add_norm(m, "norm2", a);
  add_dropout(m, "dropout1", a);
  add_dropout(m, "dropout2", a);
}

TensorList forward_of(Module& m, const TransformerEncoderLayerArgs& a, TensorSpan in) {
  check_input(a, *in[0], "src");
  const Sequence src = sequence_of(a, *in[0]);
  check_mask(a, in_opt(in, 1), "src_mask", src, src);
  check_padding(in_opt(in, 2), "src_key_padding_mask", src);
  TensorRef x = residual(m, *in[0], a.norm_first, kNorm1, kDropout1, [&](const Tensor& h) {
    return attention(m, kSelfAttn, h, h, in_opt(in, 1), in_opt(in, 2));
  });
  return one(residual(m, *x, a.norm_first, kNorm2, kDropout2, [&](const Tensor& h) {
    return feedforward(m, kLinear1, a.activation != 0, h);
  }));
}

void build(Module& m, const TransformerDecoderLayerArgs& args) {
  const LayerOptions a = options_of<LayerOptions>(args);
  check_args(a);
  add_attention(m, "self_attn", a);
  add_attention(m, "multihead_attn", a);
  add_feedforward(m, a);
  for (const char* name : {"norm1", "norm2", "norm3"}) add_norm(m, name, a);
  for (const char* name : {"dropout1", "dropout2", "dropout3"}) add_dropout(m, name, a);
}

TensorList forward_of(Module& m, const TransformerDecoderLayerArgs& args, TensorSpan in) {
  const LayerOptions a = options_of<LayerOptions>(args);
  check_input(a, *in[0], "tgt");
  check_input(a, *in[1], "memory");
  const Sequence tgt = sequence_of(a, *in[0]);
  const Sequence memory = sequence_of(a, *in[1]);
  check_same_batch(a, in, "tgt", "memory");
  check_mask(a, in_opt(in, 2), "tgt_mask", tgt, tgt);
  check_mask(a, in_opt(in, 3), "memory_mask", tgt, memory);
  check_padding(in_opt(in, 4), "tgt_key_padding_mask", tgt);
  check_padding(in_opt(in, 5), "memory_key_padding_mask", memory);
  TensorRef x =
      residual(m, *in[0], a.norm_first, kDecoderNorm1, kDecoderDropout1, [&](const Tensor& h) {
        return attention(m, kDecoderSelfAttn, h, h, in_opt(in, 2), in_opt(in, 4));
      });
  x = residual(m, *x, a.norm_first, kDecoderNorm2, kDecoderDropout2, [&](const Tensor& h) {
    return attention(m, kMultiheadAttn, h, *in[1], in_opt(in, 3), in_opt(in, 5));
  });
  return one(residual(m, *x, a.norm_first, kDecoderNorm3, kDecoderDropout3, [&](const Tensor& h) {
    return feedforward(m, kDecoderLinear1, a.activation != 0, h);
  }));
}

void build(Module& m, const TransformerEncoderArgs& a) {
  build_stack(m, *a.encoder_layer, a.num_layers, a.norm);
}
TensorList forward_of(Module& m, const TransformerEncoderArgs&, TensorSpan in) {
  return run_stack(m, in);
}

void build(Module& m, const TransformerDecoderArgs& a) {
  build_stack(m, *a.decoder_layer, a.num_layers, a.norm);
}
TensorList forward_of(Module& m, const TransformerDecoderArgs&, TensorSpan in) {
  return run_stack(m, in);
}

void build(Module& m, const TransformerArgs& a) {
  const LayerOptions o = options_of<LayerOptions>(a);
  check_args(o);
  check_count(a.num_encoder_layers, "num_encoder_layers");
  check_count(a.num_decoder_layers, "num_decoder_layers");
  const ModuleRef encoder_layer = construct(o);
  const ModuleRef encoder_norm = new_norm(o);
  set_child(m, "encoder",
            *construct(TransformerEncoderArgs{encoder_layer.get(), a.num_encoder_layers,
                                              encoder_norm.get()}));
  const ModuleRef decoder_layer = construct(options_of<TransformerDecoderLayerArgs>(o));
  const ModuleRef decoder_norm = new_norm(o);
  set_child(m, "decoder",
            *construct(TransformerDecoderArgs{decoder_layer.get(), a.num_decoder_layers,
                                              decoder_norm.get()}));
  const MaskGuard no_grad(bit(kKeyAutograd));
  for (const TensorRef& p : parameters_of(m)) {
    if (p->ndim < 2) continue;
    const double bound = xavier_bound(p->size(1), p->size(0));
    op::uniform_(*p, -bound, bound);
  }
}

TensorList forward_of(Module& m, const TransformerArgs& args, TensorSpan in) {
  const LayerOptions a = options_of<LayerOptions>(args);
  check_input(a, *in[0], "src");
  check_input(a, *in[1], "tgt");
  check_same_batch(a, in, "src", "tgt");
  const ModuleRef encoder = m.children[kEncoder].module;
  const ModuleRef decoder = m.children[kDecoder].module;
  const Tensor* const source[3] = {in[0], in_opt(in, 2), in_opt(in, 5)};
  const TensorRef memory = first_of(forward(*encoder, {source, 3}), *encoder);
  const Tensor* const target[6] = {in[1],         memory.get(),  in_opt(in, 3),
                                   in_opt(in, 4), in_opt(in, 6), in_opt(in, 7)};
  return one(first_of(forward(*decoder, {target, 6}), *decoder));
}

}  // namespace TT_NS
