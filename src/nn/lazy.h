// Lazy layers: the first input, or a loaded state, decides a size, the layer's first argument.
// Until then, parameters and buffers have the size 0 in each dimension.
#pragma once

#include "nn/layer.h"

namespace TT_NS {

constexpr int64_t kLazySize = -2147483647;  // TT_NN_LAZY

// A class of layers that may be lazy.
struct LazyLayer {
  int8_t weight_ndim, min_ndim, max_ndim;  // the last two: of the input
  int8_t dim;                              // of the input: the one that has the size
  // Returns the same layer with this size, and with parameters of like's dtype and device.
  ModuleRef (*construct)(const Module& m, int64_t size, const Tensor* like);
  // Returns the size that goes with a weight, or a running mean, of the right number of dimensions.
  int64_t (*size_in)(const Module& m, const Tensor& t);
};

template <class A, int64_t A::*kSize>
TT_COLD ModuleRef construct_sized(const Module& m, int64_t size, const Tensor* like) {
  A a = args_of<A>(m);
  a.*kSize = size;
  if (like) a.dtype = like->dtype;
  if (like) a.device = like->device;
  return construct(a);
}

// Makes the slots of a layer that waits for its size; `buffers` of them are running statistics.
void make_lazy(Module& m, const LazyLayer& lazy, Place place, bool has_weight, bool has_bias,
               int64_t buffers = 0);

// A lazy layer whose size is known. commit gives `lazy` the size and the data of `made`; the
// tensors of `lazy`, which optimizers may know, remain the same objects.
struct SizedLayer {
  ModuleRef lazy, made;
  SizedLayer(Module& m, int64_t size);
  void commit() noexcept;
};

// Gives a lazy layer the size that the input has.
void materialize(Module& m, TensorSpan in);

// The lazy layers below a module to which a state gives a size.
class LazyLoads {
 public:
  // Replaces the tensors of these layers in `own`, the state of root, by those after commit().
  LazyLoads(Module& root, StateDict& own, const StateDict& from);
  void commit() noexcept {
    for (SizedLayer& s : layers_) s.commit();
  }

 private:
  const SizedLayer* find(const Module& m) const;
  SmallVec<SizedLayer, 2> layers_;
};

}  // namespace TT_NS
