// cross_entropy, nll_loss and their backwards, with class indices as targets.
//   x, dx: (outer, classes, inner); target, loss, row_weight, lse: (outer, inner), a row each
//   weight: (classes) or NULL
#include "kernels/cuda/rows.h"
#include "kernels/cuda/softmax/online_sum.h"
#include "kernels/cuda/strided.h"
#include "plan/loss_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kManyRows = 2048;  // as many blocks fill a device

// What a kernel knows of row r of a ClassLossPlan.
template <class T> struct LossRow {
  const ClassLossPlan& p;
  int64_t r;

  // -1 if it is ignored.
  __device__ __forceinline__ int64_t target() const {
    const int64_t t =
        load_element<int64_t>(p.target + r * item_size(p.target_dtype), p.target_dtype);
    return t == p.ignore_index ? -1 : t;
  }
  __device__ __forceinline__ T number(const char* from, int64_t i, int32_t dtype) const {
    return load_element<T>(from + i * item_size(dtype), dtype);
  }
  // The loss: weight * (high - x[target]); the row's elements begin at x[first].
  __device__ __forceinline__ void put(int64_t first, T high) const {
    const int64_t t = target();
    T w = 0, loss = 0;
    if (uint64_t(t) < uint64_t(p.classes)) {
      w = p.weight ? number(p.weight, t, p.weight_dtype) : T(1);
      loss = (high - number(p.x, first + t * p.inner, p.dtype)) * w;
    }
    const int64_t at = r * item_size(p.loss_dtype);
    if (p.loss) store_element(p.loss + at, p.loss_dtype, loss);
    if (p.row_weight) store_element(p.row_weight + at, p.loss_dtype, w);
  }
  __device__ __forceinline__ T scale() const {
    const T s = number(p.scale, r * p.scale_stride, p.loss_dtype);
    return p.row_weight ? s * number(p.row_weight, r, p.loss_dtype) : s;
  }
};

struct LossArguments {
  RowGeometry g;
  ClassLossPlan p;
};

// With the bounds nvcc spends registers on four loads at once; without them it loads one by one.
template <class S> __global__ void __launch_bounds__(kRowThreads, kHeldBlocks<S>)
    entropies(const __grid_constant__ LossArguments a) {
  using T = Compute<S>;
  TT_SHARED(OnlineSum<S>, shared, kRowShared);
  for_rows(a.g, [&](const Row& r) {
    const S* const x = reinterpret_cast<const S*>(a.p.x) + r.at;
    OnlineSum<S> part = OnlineSum<S>::empty();
    read_row(r, Rows<S, 1>{{x}, a.g.inner, {nullptr}},
             [&]<int kN>(int64_t, const T(&v)[1][kN]) { part.add(v[0]); });
    const OnlineSum<S> all = online_total(r, part, shared);
    if (!r.leads()) return;
    const T lse = all.top + math::log(all.sum);
    if (a.p.lse) reinterpret_cast<T*>(a.p.lse)[r.index] = lse;
    LossRow<T>{a.p, r.index}.put(r.at, lse);
  });
}

template <class S> __global__ void __launch_bounds__(kRowThreads)
    entropy_gradients(const __grid_constant__ LossArguments a) {
  using T = Compute<S>;
  for_rows(a.g, [&](const Row& r) {
    if (!r.inside) return;
    const LossRow<T> row = {a.p, r.index};
    const S* const x = reinterpret_cast<const S*>(a.p.x) + r.at;
    S* const dx = reinterpret_cast<S*>(a.p.dx) + r.at;
    const int64_t t = row.target();
    const T lse = reinterpret_cast<const T*>(a.p.lse)[r.index];
    const T scale = row.scale();
    write_row(r, Rows<S, 1>{{x}, a.g.inner, {nullptr}}, dx, a.g.inner,
              [&]<int kN>(int64_t i, const T(&v)[1][kN], T(&d)[kN]) {
                const int here = uint64_t(t - i) < uint64_t(kN) ? int(t - i) : -1;
#pragma unroll
                for (int j = 0; j < kN; j++) {
                  const T probability = exp_of<S>(v[0][j] - lse);
                  d[j] = t < 0 ? T(0) : (probability - T(j == here)) * scale;
                }
              });
  });
}

template <class T> __global__ void __launch_bounds__(kThreads)
    nll_losses(const __grid_constant__ ClassLossPlan p) {
  const int64_t r = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= p.outer * p.inner) return;
  LossRow<T>{p, r}.put(r / p.inner * p.classes * p.inner + r % p.inner, T(0));
}

template <class T> __global__ void __launch_bounds__(kThreads)
    nll_gradients(const __grid_constant__ ClassLossPlan p) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.outer * p.classes * p.inner) return;
  const int64_t o = i / (p.classes * p.inner);
  const LossRow<T> row = {p, o * p.inner + i % p.inner};
  const bool is_target = i / p.inner % p.classes == row.target();
  store_element(p.dx + i * item_size(p.dtype), p.dtype, is_target ? -row.scale() : T(0));
}

const ClassLossPlan& plan_of(const void* plan) { return *static_cast<const ClassLossPlan*>(plan); }

template <bool kBackward> int32_t run_cross_entropy(const ClassLossPlan& p, void* stream) {
  if (p.outer * p.inner == 0 || (kBackward && p.classes == 0)) return TT_OK;
  return with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    const bool aligned = is_aligned(p.x) && is_aligned(p.dx);
    RowLaunch l = row_launch(p.outer, p.classes, p.inner, sizeof(S), aligned, 0);
    // Partials take long to combine: of more blocks, some read meanwhile.
    const bool wide = !kBackward && !l.g.columns && p.outer >= kManyRows;
    if (wide && l.block.x > kThreads) l.block.x = kThreads;
    const auto kernel = kBackward ? entropy_gradients<S> : entropies<S>;
    return device::launch(kernel, l.grid, l.block, 0, stream, LossArguments{l.g, p});
  });
}

template <class Kernel>
int32_t run_nll(Kernel one, Kernel two, const ClassLossPlan& p, int64_t n, void* stream) {
  if (n == 0) return TT_OK;
  return device::launch(p.dtype == TT_F64 ? two : one, blocks_for(n, kThreads, 1), kThreads, 0,
                        stream, p);
}

}  // namespace

namespace cuda {

int32_t cross_entropy(const void* plan, void* stream, void*) {
  return run_cross_entropy<false>(plan_of(plan), stream);
}
int32_t cross_entropy_backward(const void* plan, void* stream, void*) {
  return run_cross_entropy<true>(plan_of(plan), stream);
}
int32_t nll_loss(const void* plan, void* stream, void*) {
  const ClassLossPlan& p = plan_of(plan);
  return run_nll(nll_losses<float>, nll_losses<double>, p, p.outer * p.inner, stream);
}
int32_t nll_loss_backward(const void* plan, void* stream, void*) {
  const ClassLossPlan& p = plan_of(plan);
  return run_nll(nll_gradients<float>, nll_gradients<double>, p, p.outer * p.classes * p.inner,
                 stream);
}

}  // namespace cuda
}  // namespace TT_NS
