#include "autograd/dual.h"

#include "autograd/node.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

constinit CallWithTangents call_with_tangents = nullptr;
constinit GradientsOfParts find_gradients_of_parts = nullptr;

namespace {

// What a dual tensor is made of, in the place of its metadata that holds objects of other modules.
struct Dual : PackedTensor {
  TensorRef primal, tangent;
  ForwardLevelRef level;
  bool shared;  // the tangent's memory is not its own
};

void destroy_dual(PackedTensor* p) noexcept {
  auto* d = static_cast<Dual*>(p);
  d->~Dual();
  mem_free(d, sizeof *d);
}

Dual& dual_of(const Tensor& t) { return *static_cast<Dual*>(find_meta(t)->packed); }

void make_dual(Tensor& t, TensorRef primal, TensorRef tangent, bool shared, ForwardLevel& level) {
  AutogradMeta& m = autograd_meta(t);
  auto* d = new (mem_alloc(sizeof(Dual))) Dual{{destroy_dual},
                                               std::move(primal),
                                               std::move(tangent),
                                               ForwardLevelRef::share(&level),
                                               shared};
  PackedTensor* const former = m.packed;
  m.packed = d;
  t.keys |= bit(kKeyForward);
  if (former) former->destroy_fn(former);
}

// Returns the tensor of which t is a view.
const Tensor* base_of(const Tensor& t) {
  const Tensor* base = t.base;
  return base && base->storage == t.storage && base->dtype == t.dtype ? base : nullptr;
}

// The elements of a view t in another tensor that corresponds to its base.
TensorRef part_of(const Tensor& whole, const Tensor& t, const Tensor& base) {
  const int64_t offset = t.offset() - base.offset() + whole.offset();
  return op::as_strided(whole, t.sizes(), t.strides(), offset);
}

// Returns an alias of t with its history; t itself if that is a leaf.
TensorRef with_history(const Tensor& t) {
  Edge e = gradient_edge(t);
  if (e && e.is_leaf()) {
    release_edge(e);
    return TensorRef::share(&t);
  }
  TensorRef alias = new_alias(t);
  if (!e) return alias;
  alias->grad_fn = e.node();
  alias->output_nr = e.nr;
  alias->keys |= bit(kKeyAutograd);
  return alias;
}

}  // namespace

TensorRef new_dual(const Tensor& primal, TensorRef tangent, bool shared, ForwardLevel& level) {
  TensorRef t = new_alias(primal);
  make_dual(*t, TensorRef::share(&primal), std::move(tangent), shared, level);
  return t;
}

ForwardLevel* forward_level_of(const Tensor& t) {
  if (!is_dual(t)) return nullptr;
  ForwardLevel* const level = dual_of(t).level.get();
  return level->ended ? nullptr : level;
}

ForwardLevel* innermost_level(TensorSpan tensors) {
  ForwardLevel* found = nullptr;
  for (const Tensor* t : tensors) {
    ForwardLevel* own = t ? forward_level_of(*t) : nullptr;
    if (own && (!found || own->id > found->id)) found = own;
  }
  return found;
}

TensorRef primal_of(const Tensor& t, const ForwardLevel* level) {
  TensorRef found = TensorRef::share(&t);
  while (is_dual(*found)) {
    const ForwardLevel* own = forward_level_of(*found);
    if (own && own != level) break;
    found = TensorRef(dual_of(*found).primal);
  }
  return found;
}

TensorRef tangent_of(const Tensor& t, const ForwardLevel& level) {
  return is_dual(t) && dual_of(t).level.get() == &level ? dual_of(t).tangent : TensorRef();
}

Tensor& innermost_part(const Tensor& of) {
  const Tensor* t = &of;
  while (has_parts(*t)) t = is_dual(*t) ? dual_of(*t).primal.get() : find_meta(*t)->batch.get();
  return const_cast<Tensor&>(*t);
}

TensorRef own_primal(const Tensor& t) {
  if (shares_elements(t)) return op::clone(t);
  return is_dual(t) || requires_grad(t) ? TensorRef::share(&t) : new_alias(t);
}

Tensor& own_tangent(const Tensor& t) {
  Dual& d = dual_of(t);
  if (d.shared || !same_geometry(*d.tangent, *d.primal)) {
    d.tangent = op::restride(*d.tangent, d.primal->strides());
    d.shared = false;
  }
  return *d.tangent;
}

void become_dual(const Tensor& t, ForwardLevel& level) {
  if (forward_level_of(t) == &level) return;
  TensorRef primal, tangent;
  const Tensor* const base = base_of(t);
  if (base) become_dual(*base, level);
  if (base && forward_level_of(*base) == &level) {
    primal = part_of(*dual_of(*base).primal, t, *base);
    tangent = part_of(own_tangent(*base), t, *base);
  } else if (is_dual(t)) {
    primal = new_dual(*dual_of(t).primal, dual_of(t).tangent, true, *dual_of(t).level);
  } else {
    primal = with_history(t);
    if (primal.get() == &t) return;
  }
  if (!tangent) tangent = op::restride(*op::zeros_like(*primal), primal->strides());
  make_dual(const_cast<Tensor&>(t), std::move(primal), std::move(tangent), false, level);
}

bool adopt_tangent(const Tensor& t) {
  if (is_dual(t)) return true;
  const Tensor* const base = base_of(t);
  ForwardLevel* const level =
      base && is_differentiable(t.dtype) ? forward_level_of(*base) : nullptr;
  if (!level) return false;
  become_dual(t, *level);
  return true;
}

TensorRef without_history(const Tensor& t) {
  ForwardLevel* const level = forward_level_of(t);
  if (!level) return op::detach(*primal_of(t, nullptr));
  const Dual& d = dual_of(t);
  return new_dual(*without_history(*d.primal), without_history(*d.tangent), true, *level);
}

bool is_recorded(const Tensor& t) {
  if (!forward_level_of(t)) return requires_grad(*primal_of(t, nullptr));
  const Dual& d = dual_of(t);
  return is_recorded(*d.primal) || is_recorded(*d.tangent);
}

}  // namespace TT_NS
