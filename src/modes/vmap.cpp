#include "modes/vmap.h"

#include "autograd/dual.h"
#include "autograd/saved.h"
#include "dispatch/changed_args.h"
#include "modes/vmap_call.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

KeySet keys_of_args(const BatchCall& b, const Value* args) {
  KeySet keys = 0;
  for (int32_t i = 0; i < b.n_args(); i++)
    for_each_tensor(args[i], [&](const Tensor& t) { keys |= t.keys; });
  return keys;
}

// The innermost level of the arguments; NULL if none is batched.
const VmapLevel* innermost_level(const Call& c, const Value* args) {
  const Tensor* found = nullptr;
  for (int32_t i = 0; i < c.op->schema->n_args; i++)
    for_each_tensor(args[i], [&](const Tensor& t) {
      if (is_batched(t) && (!found || find_meta(t)->level > find_meta(*found)->level)) found = &t;
    });
  return found ? &level_of(*found) : nullptr;
}

// Whether the call would draw: a dropout of probability 0 does not.
bool draws(const BatchCall& b) {
  for (int32_t i = 0; i < b.n_args(); i++)
    if (strcmp(b.schema().args[i].name, "dropout_p") == 0 && b.args[i].f == 0) return false;
  return b.schema().random;
}

// An operator may write into samples, not into a tensor that all samples share.
void check_targets(const BatchCall& b) {
  for (int32_t i = 0; i < b.n_args(); i++) {
    if (!b.schema().args[i].mutates || b.args[i].kind != Value::kTensor) continue;
    if (!b.is_batched_here(b.args[i]))
      fail_arg(TT_INVALID_ARG, b.schema().args[i].name,
               "in vmap, {} would write the values of each sample into a tensor of shape {} that "
               "all samples share: use the form that returns its result",
               b.schema().call, b.args[i].tensor->sizes());
  }
}

[[noreturn]] TT_COLD void fail_draw(const OpSchema& schema) {
  fail(TT_INVALID_ARG,
       "{} draws random numbers in vmap: set randomness to the same or to different numbers for "
       "all samples",
       schema.call);
}

bool has_generator(const OpSchema& schema) {
  bool found = false;
  for (int32_t i = 0; i < schema.n_args; i++)
    found = found || schema.args[i].type == ArgType::kGenerator;
  return found;
}

// Draws for all samples at once, where the operator takes the shape of its numbers.
bool draw_for_all(const BatchCall& b) {
  SmallVec<Value, 8> values;
  Shape sizes;
  for (int32_t i = 0; i < b.n_args(); i++) {
    values.push_back(b.args[i]);
    if (b.args[i].kind == Value::kTensor) return false;
    if (b.schema().args[i].type != ArgType::kSize) continue;
    sizes = Shape({b.args[i].ints, b.args[i].n});
    sizes.insert(0, b.level.size);
    values.back() = to_value(Ints(sizes));
  }
  if (sizes.empty()) return false;
  call_and_wrap(b, values.data());
  return true;
}

// A call inside a vmap whose arguments are the same for all samples. Numbers that it draws may be
// different ones; it is then called for each sample.
void call_unbatched(Call c, const Value* args, TensorList& outs) {
  const OpSchema& schema = *c.op->schema;
  const VmapLevel* level = ctx().vmap;
  const bool may_draw = level && has_generator(schema) && schema.kind != OpKind::kComposite;
  const Call below = {c.keys & ~bit(kKeyVmap), c.op};
  if (!may_draw || level->randomness == kRandomSame) return c.op->call_boxed(below, args, outs);
  const BatchCall b{c, args, *level, outs};
  if (!draws(b)) return c.op->call_boxed(below, args, outs);
  if (level->randomness == kRandomError) fail_draw(schema);
  if (schema.n_outs == 0) check_targets(b);
  const MaskGuard masks(0);
  ctx().include &= ~bit(kKeyVmap);
  if (!draw_for_all(b)) call_for_each(b);
}

// A composite gets the batched tensors, which vmap serves in its parts. Autocast casts them before.
constexpr KeySet kCompositeKeys = kBackendKeys | bit(kKeyAutocast);

void vmap_slot(Call c, const Value* args, TensorList& outs) {
  const VmapLevel* const level = innermost_level(c, args);
  if (!level) return call_unbatched(c, args, outs);
  const BatchCall b{c, args, *level, outs};
  const OpSchema& schema = b.schema();
  const bool in_place = schema.n_outs == 0;  // or an _into variant
  if (in_place) check_targets(b);
  if (draws(b)) {
    // the parts of a composite that draw are refused, not one that draws nothing, as dropout in
    // evaluation mode
    const bool whole = schema.kind == OpKind::kComposite && !in_place;
    if (whole && b.level.randomness != kRandomDifferent)
      return c.op->call_boxed({c.keys & kCompositeKeys, c.op}, args, outs);
    if (b.level.randomness == kRandomError) fail_draw(schema);
    const MaskGuard masks(0);
    ctx().include &= ~bit(kKeyVmap);
    const BatchRule rule = find_batch_rule(schema.name);
    const bool different = b.level.randomness == kRandomDifferent;
    if (different && rule && rule(b)) return;
    return call_for_each(b);
  }
  if (schema.kind == OpKind::kElementwise) return call_aligned(b);
  const BatchRule rule = find_batch_rule(schema.name);
  if (rule && rule(b)) return;
  if (schema.kind == OpKind::kComposite && !in_place)
    return c.op->call_boxed({c.keys & kCompositeKeys, c.op}, args, outs);
  call_for_each(b);
}

}  // namespace

void call_operator(const BatchCall& b, const Value* args, TensorList& outs) {
  const Ctx& c = ctx();
  const OpInfo& op = *b.c.op;
  const KeySet keys = (keys_of_args(b, args) | c.include) & ~c.exclude & op.mask;
  op.call_boxed({keys, &op}, args, outs);
}

void wrap_results(const BatchCall& b, TensorList&& all) {
  b.outs.reserve(b.outs.size() + all.size());
  for (const TensorRef& t : all) b.outs.push_back(t ? new_batched(*t, b.level) : TensorRef());
}

void call_and_wrap(const BatchCall& b, const Value* args) {
  TensorList found;
  call_operator(b, args, found);
  wrap_results(b, std::move(found));
}

void call_for_each(const BatchCall& b) {
  SmallVec<TensorList, 3> parts;  // of each result
  if (!b.level.size)
    fail(TT_NOT_IMPLEMENTED, "{} has no rule for vmap over 0 samples", b.schema().call);
  Generator* generator = ctx().gen;
  for (int32_t i = 0; i < b.n_args(); i++)
    if (b.args[i].kind == Value::kGenerator) generator = b.args[i].generator;
  const bool same_numbers = b.schema().random && b.level.randomness == kRandomSame;
  const Rng before = same_numbers ? generator->state() : Rng();
  for (int64_t k = 0; k < b.level.size; k++) {
    if (same_numbers) generator->set(before);
    const ChangedArgs sample(b.schema(), b.args, [&](const Tensor& t) {
      const TensorRef all = batch_at(t, b.level);
      return all ? op::select(*all, 0, k) : TensorRef::share(&t);
    });
    TensorList found;
    call_operator(b, sample.data(), found);
    if (!k) parts.resize(found.size());
    if (found.size() != parts.size())
      fail(TT_NOT_IMPLEMENTED, "{} gives samples of a vmap different numbers of results",
           b.schema().call);
    for (int64_t i = 0; i < found.size(); i++) parts[i].push_back(std::move(found[i]));
  }
  TensorList all;
  for (const TensorList& p : parts)  // gradients that nobody wants are absent
    all.push_back(p[0] ? op::stack(Borrowed(p), 0) : TensorRef());
  wrap_results(b, std::move(all));
}

namespace {

// Facts of the tensors of an elementwise call.
struct Operands {
  int64_t ndim = 0;            // the largest number of dimensions of a sample
  Dtype dtype = Dtype::kNone;  // of those with dimensions
};

Operands operands_of(const BatchCall& b) {
  Operands o;
  for (int32_t i = 0; i < b.n_args(); i++)
    for_each_tensor(b.args[i], [&](const Tensor& t) {
      o.ndim = max<int64_t>(o.ndim, t.ndim);
      if (t.ndim) o.dtype = o.dtype == Dtype::kNone ? t.dtype : promote(o.dtype, t.dtype);
    });
  return o;
}

// All samples of t with dimensions of size 1 behind the first one, so that their others meet those
// of the other operands. A sample without dimensions is weak in promotion, the batch would not be.
TensorRef aligned(const Tensor& t, const TensorRef& all, const Operands& o) {
  TensorRef found = all;
  const bool weak = !t.ndim && o.dtype != Dtype::kNone && t.dtype != o.dtype;
  if (weak && category(t.dtype) <= category(o.dtype) && t.dtype != Dtype::kBool)
    found = op::to_dtype(*found, o.dtype);
  if (t.ndim == o.ndim) return found;
  Shape sizes(found->sizes().slice(0, 1));
  for (int64_t d = t.ndim; d < o.ndim; d++) sizes.push_back(1);
  sizes.append(t.sizes());
  return op::view(*found, sizes);
}

}  // namespace

void call_aligned(const BatchCall& b) {
  const Operands o = operands_of(b);
  const ChangedArgs whole(b.schema(), b.args, [&](const Tensor& t) {
    const TensorRef all = batch_at(t, b.level);
    return all ? aligned(t, all, o) : TensorRef::share(&t);
  });
  call_and_wrap(b, whole.data());
}

namespace {

struct RunningLevel : VmapLevel {
  RunningLevel(int64_t n, int32_t random) : VmapLevel{ctx().vmap, new_id(), n, random} {
    ctx().vmap = this;
  }
  ~RunningLevel() { ctx().vmap = outer; }
  RunningLevel(const RunningLevel&) = delete;
  static int64_t new_id() {
    static int64_t last = 0;
    return atomic_add_fetch(&last, 1, kRelaxed);
  }
};

int64_t dim_of(Ints dims, int64_t i) { return dims.n ? dims[i] : 0; }

int64_t batch_size(TensorSpan inputs, Ints dims) {
  int64_t size = -1;
  for (int64_t i = 0; i < inputs.n; i++) {
    if (dim_of(dims, i) == kNotBatched) continue;
    if (!inputs[i]->ndim)
      fail_arg(TT_SHAPE, "inputs", "inputs[{}] has no dimensions: it cannot hold samples", i);
    const int64_t n = inputs[i]->size(wrap_dim(dim_of(dims, i), inputs[i]->ndim, "in_dims"));
    if (size >= 0 && n != size)
      fail_arg(TT_SHAPE, "inputs", "inputs[{}] has {} samples, another one {}: must be equal", i, n,
               size);
    size = n;
  }
  if (size < 0) fail_arg(TT_INVALID_ARG, "in_dims", "no input has a dimension of samples");
  return size;
}

TensorRef with_dim_at(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return TensorRef::share(&t);
  return op::movedim(t, {&from, 1}, {&to, 1});
}

// Calls the function so that vmap_slot sees what it draws without a sample, too.
TensorList call_inside(const TensorFunction& f, TensorSpan given) {
  const MaskGuard masks(0);
  ctx().include |= bit(kKeyVmap);
  return f.call(f.self, given);
}

}  // namespace

TensorList vmap(const TensorFunction& f, TensorSpan inputs, const VmapOptions& o) {
  if (o.in_dims.n && o.in_dims.n != inputs.n)
    fail_arg(TT_INVALID_ARG, "in_dims", "in_dims has length {}: must be {}", o.in_dims.n, inputs.n);
  if (o.randomness < kRandomError || o.randomness > kRandomDifferent)
    fail_arg(TT_INVALID_ARG, "randomness", "randomness is {}: must be 0, 1 or 2", o.randomness);
  const int64_t size = batch_size(inputs, o.in_dims);
  use_mode(kKeyVmap, &vmap_slot);
  atomic_store(&find_gradients_of_parts, &gradients_of_parts, kRelaxed);
  const RunningLevel level(size, o.randomness);
  TensorList given;
  for (int64_t i = 0; i < inputs.n; i++) {
    const int64_t dim = dim_of(o.in_dims, i);
    if (dim == kNotBatched) {
      given.push_back(TensorRef::share(inputs[i]));
    } else {
      const int64_t wrapped = wrap_dim(dim, inputs[i]->ndim, "in_dims");
      given.push_back(new_batched(*with_dim_at(*inputs[i], wrapped, 0), level));
    }
  }
  const TensorList results = call_inside(f, Borrowed(given));
  if (o.out_dims.n && o.out_dims.n != results.size())
    fail_arg(TT_INVALID_ARG, "out_dims", "out_dims has length {}: the function has {} results",
             o.out_dims.n, results.size());
  TensorList outs;
  for (int64_t i = 0; i < results.size(); i++) {
    const TensorRef all = whole_batch(*results[i], level);
    outs.push_back(with_dim_at(*all, 0, wrap_dim(dim_of(o.out_dims, i), all->ndim, "out_dims")));
  }
  return outs;
}

}  // namespace TT_NS
