#include "autograd/batch.h"

#include "core/ctx.h"
#include "ops/gen/ops.h"

namespace TT_NS {

TensorRef new_batched(const Tensor& all, const VmapLevel& level) {
  if (!all.ndim || all.size(0) != level.size)
    fail(TT_NOT_IMPLEMENTED, "vmap of {} samples: {} does not begin with the samples", level.size,
         all.sizes());
  TensorRef sample =
      new_alias(all, all.sizes().slice(1, all.ndim), all.strides().slice(1, all.ndim));
  AutogradMeta& meta = autograd_meta(*sample);
  meta.batch = TensorRef::share(&all);
  meta.level = level.id;
  sample->keys |= bit(kKeyVmap);
  return sample;
}

const VmapLevel& level_of(const Tensor& t) {
  const int64_t id = find_meta(t)->level;
  for (const VmapLevel* l = ctx().vmap; l; l = l->outer)
    if (l->id == id) return *l;
  fail(TT_INVALID_ARG,
       "a tensor of shape {} is one sample inside a vmap that has ended: return it from the "
       "function instead",
       t.sizes());
}

TensorRef batch_at(const Tensor& t, const VmapLevel& level) {
  if (!is_batched(t) || find_meta(t)->level != level.id) return {};
  return find_meta(t)->batch;
}

TensorRef whole_batch(const Tensor& t, const VmapLevel& level) {
  if (TensorRef found = batch_at(t, level)) return found;
  Shape sizes(t.sizes());
  sizes.insert(0, level.size);
  return op::expand(t, sizes);
}

// The innermost level is removed first, and becomes the first dimension of what the next one holds.
TensorRef without_levels(const Tensor& t) {
  TensorRef found = TensorRef::share(&t);
  if (is_batched(t)) level_of(t);
  for (const VmapLevel* l = ctx().vmap; l; l = l->outer) found = whole_batch(*found, *l);
  return found;
}

TensorRef with_levels(TensorRef t) {
  SmallVec<const VmapLevel*, 4> levels;
  for (const VmapLevel* l = ctx().vmap; l; l = l->outer) levels.push_back(l);
  for (int64_t i = levels.size(); i-- > 0;) t = new_batched(*t, *levels[i]);
  return t;
}

}  // namespace TT_NS
