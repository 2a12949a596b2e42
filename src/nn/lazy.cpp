#include "nn/lazy.h"

#include "autograd/node.h"
#include "core/ctx.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

enum Slots { kWeight, kBias, kMean, kVar, kBatches };

bool is_unsized(const Tensor& t) {
  for (int64_t size : t.sizes())
    if (size) return false;
  return t.ndim > 0;
}

// The tensor that says where the parameters are to be; NULL: there are none.
const Tensor* unsized_of(const Module& m) {
  for (const Module::Slot& s : m.slots)
    if (s.tensor && is_unsized(*s.tensor)) return s.tensor.get();
  return nullptr;
}

}  // namespace

void make_lazy(Module& m, const LazyLayer& lazy, Place place, bool has_weight, bool has_bias,
               int64_t buffers) {
  int64_t zeros[kMaxDims] = {};
  const Ints weight(zeros, lazy.weight_ndim);
  const Ints vector(zeros, 1);
  if (has_weight) m.slots[kWeight].tensor = parameter(place, weight, 0, "weight");
  if (has_bias) m.slots[kBias].tensor = parameter(place, vector, 0, "bias");
  for (int64_t i = 0; i < buffers; i++)
    m.slots[kMean + i].tensor = op::zeros(vector, place.dtype, place.device);
  if (buffers) m.slots[kBatches].tensor = op::zeros({}, Dtype::kI64, place.device);
  args_of<int64_t>(m) = 0;  // as it is printed
  m.lazy = &lazy;
}

SizedLayer::SizedLayer(Module& m, int64_t size) : lazy(ModuleRef::share(&m)) {
  check_not_frozen(m);
  if (ctx().graph)
    fail_arg(TT_INVALID_ARG, "m",
             "Lazy{} has no parameters before its first call or a state is loaded, which is not "
             "recorded: do it once before",
             m.type->name);
  const MaskGuard plain(kModeKeys | bit(kKeyAutograd));
  made = m.lazy->construct(m, size, unsized_of(m));
  for (int64_t i = 0; i < made->slots.size(); i++) {
    const Tensor* t = m.slots[i].tensor.get();
    if (!t || t->ndim == 0) continue;
    if (!is_unsized(*t) || !made->slots[i].tensor)
      fail_arg(TT_INVALID_ARG, "m",
               "Lazy{} has a {} of its own before its first call: set it later", m.type->name,
               m.slots[i].name.c_str());
    prepare_replace(*t);
  }
}

void SizedLayer::commit() noexcept {
  for (int64_t i = 0; i < made->slots.size(); i++) {
    Tensor* t = lazy->slots[i].tensor.get();
    if (t && t->ndim) replace_data(*t, *made->slots[i].tensor);
  }
  args_of<int64_t>(*lazy) = args_of<int64_t>(*made);
  lazy->lazy = nullptr;
}

void materialize(Module& m, TensorSpan in) {
  const LazyLayer& lazy = *m.lazy;
  const Tensor& input = *in[0];
  if (input.ndim < lazy.min_ndim || input.ndim > lazy.max_ndim)
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} to {} dimensions", input.sizes(),
             int64_t(lazy.min_ndim), int64_t(lazy.max_ndim));
  SizedLayer(m, input.size(lazy.dim)).commit();
}

const SizedLayer* LazyLoads::find(const Module& m) const {
  for (const SizedLayer& s : layers_)
    if (s.lazy.get() == &m) return &s;
  return nullptr;
}

LazyLoads::LazyLoads(Module& root, StateDict& own, const StateDict& from) {
  for (ModuleWalk w(root); w.next();) {
    Module& m = *w.module;
    if (!m.lazy) continue;
    auto position = [&](const StateDict& dict, int64_t slot) {
      Text name(w.prefix);
      return dict.find(name.add(m.slots[slot].name.c_str()).c_str());
    };
    const SizedLayer* sized = find(m);
    const bool is_norm = m.lazy->weight_ndim == 1;
    for (const int64_t slot : {kWeight, kMean}) {
      if (sized || (slot == kMean && !is_norm) || !m.slots[slot].tensor) continue;
      const int64_t k = position(from, slot);
      if (k < 0) continue;
      const Tensor& t = *from.entries[k].tensor;
      if (is_unsized(t) || t.ndim != m.lazy->weight_ndim) continue;
      layers_.push_back(SizedLayer(m, m.lazy->size_in(m, t)));
      sized = &layers_.back();
    }
    if (!sized) continue;
    for (int64_t i = 0; i < sized->made->slots.size(); i++) {
      const int64_t k = sized->made->slots[i].tensor ? position(own, i) : -1;
      if (k >= 0 && is_unsized(*own.entries[k].tensor))
        own.entries[k].tensor = sized->made->slots[i].tensor;
    }
  }
}

}  // namespace TT_NS
