// softmax, log_softmax and their backwards, along any dimension of a contiguous array.
//   a, b, out: (outer, dim, inner). Forward: a is x; backward: a is the gradient, b is y
// A row is read once where it fits in registers or shared memory, else twice.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/softmax/online_sum.h"
#include "plan/softmax_plan.h"

namespace TT_NS {
namespace {

struct SoftmaxArguments {
  RowGeometry g;
  const char* a;
  const char* b;
  char* out;
};

// A nan is skipped by the largest element and counts in the sum.
template <class S, bool kLog> __global__ void __launch_bounds__(kRowThreads, kHeldBlocks<S>)
    softmax_held(const __grid_constant__ SoftmaxArguments a) {
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(T, shared, kRowShared);
  for_lines(a.g, [&](const Row& r) {
    const HeldRow<S, 1> row(r, {reinterpret_cast<const S*>(a.a) + r.at});
    T top = OnlineSum<S>::none();
    row.each([&](int, int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) top = larger(top, v[0][j]);
    });
    top = r.combined(top, shared, [](T u, T v) { return larger(u, v); });
    T power[kHeldPacks][kN];
    T part = 0;
    row.each([&](int u, int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) {
        power[u][j] = exp_of<S>(v[0][j] - top);
        part += power[u][j];
      }
    });
    const T sum = r.combined(part, shared, [](T u, T v) { return u + v; });
    const T last = kLog ? math::log(sum) : T(1) / sum;
    row.write(reinterpret_cast<S*>(a.out) + r.at,
              [&](int u, int64_t, const T(&v)[1][kN], T(&y)[kN]) {
#pragma unroll
                for (int j = 0; j < kN; j++)
                  y[j] = kLog ? v[0][j] - top - last : power[u][j] * last;
              });
  });
}
template <class S, bool kLog> __global__ void __launch_bounds__(kRowThreads)
    softmax_forward(const __grid_constant__ SoftmaxArguments a) {
  using T = Compute<S>;
  TT_SHARED(OnlineSum<S>, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  for_rows(a.g, [&](const Row& r) {
    const S* const x = reinterpret_cast<const S*>(a.a) + r.at;
    S* const out = reinterpret_cast<S*>(a.out) + r.at;
    S* const kept = r.kept<S>(kept_rows);
    OnlineSum<S> part = OnlineSum<S>::empty();
    read_row(r, Rows<S, 1>{{x}, a.g.inner, {kept}},
             [&]<int kN>(int64_t, const T(&v)[1][kN]) { part.add(v[0]); });
    const OnlineSum<S> all = online_total(r, part, shared);
    const T last = kLog ? math::log(all.sum) : T(1) / all.sum;
    const Rows<S, 1> again = {{kept ? kept : x}, kept ? 1 : a.g.inner, {nullptr}};
    write_row(r, again, out, a.g.inner, [&]<int kN>(int64_t, const T(&v)[1][kN], T(&y)[kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) {
        const T d = v[0][j] - all.top;
        y[j] = kLog ? d - last : exp_of<S>(d) * last;
      }
    });
  });
}

// softmax: dx = y (g - sum(g y)); log_softmax: dx = g - exp(y) sum(g).
template <class S, bool kLog> __global__ void __launch_bounds__(kRowThreads, kHeldBlocks<S>)
    softmax_backwards_held(const __grid_constant__ SoftmaxArguments a) {
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(T, shared, kRowShared);
  for_lines(a.g, [&](const Row& r) {
    const HeldRow<S, 2> row(
        r, {reinterpret_cast<const S*>(a.a) + r.at, reinterpret_cast<const S*>(a.b) + r.at});
    T part = 0;
    row.each([&](int, int64_t, const T(&v)[2][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += kLog ? v[0][j] : v[0][j] * v[1][j];
    });
    const T sum = r.combined(part, shared, [](T p, T q) { return p + q; });
    row.write(reinterpret_cast<S*>(a.out) + r.at,
              [&](int, int64_t, const T(&v)[2][kN], T(&dx)[kN]) {
#pragma unroll
                for (int j = 0; j < kN; j++)
                  dx[j] = kLog ? v[0][j] - exp_of<S>(v[1][j]) * sum : v[1][j] * (v[0][j] - sum);
              });
  });
}
template <class S, bool kLog> __global__ void __launch_bounds__(kRowThreads)
    softmax_backwards(const __grid_constant__ SoftmaxArguments a) {
  using T = Compute<S>;
  TT_SHARED(T, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  for_rows(a.g, [&](const Row& r) {
    const S* const g = reinterpret_cast<const S*>(a.a) + r.at;
    const S* const y = reinterpret_cast<const S*>(a.b) + r.at;
    S* const out = reinterpret_cast<S*>(a.out) + r.at;
    S* const kept = r.kept<S>(kept_rows);
    S* const kept_y = kept ? kept + a.g.kept / 2 / int(sizeof(S)) : nullptr;
    T part = 0;
    read_row(r, Rows<S, 2>{{g, y}, a.g.inner, {kept, kept_y}},
             [&]<int kN>(int64_t, const T(&v)[2][kN]) {
#pragma unroll
               for (int j = 0; j < kN; j++) part += kLog ? v[0][j] : v[0][j] * v[1][j];
             });
    const T sum = r.combined(part, shared, [](T p, T q) { return p + q; });
    const Rows<S, 2> again = {
        {kept ? kept : g, kept ? kept_y : y}, kept ? 1 : a.g.inner, {nullptr, nullptr}};
    write_row(r, again, out, a.g.inner, [&]<int kN>(int64_t, const T(&v)[2][kN], T(&dx)[kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++)
        dx[j] = kLog ? v[0][j] - exp_of<S>(v[1][j]) * sum : v[1][j] * (v[0][j] - sum);
    });
  });
}

// Threads that hold a row of a forward pass, where they can.
constexpr int64_t kHolders = 256;

template <bool kLog, bool kBackward> int32_t run_softmax(const void* plan, void* stream) {
  const SoftmaxPlan& p = *static_cast<const SoftmaxPlan*>(plan);
  if (p.outer * p.dim * p.inner == 0) return TT_OK;
  return with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    const bool aligned = is_aligned(p.a) && is_aligned(p.b) && is_aligned(p.out);
    RowLaunch l = row_launch(p.outer, p.dim, p.inner, sizeof(S), aligned, kBackward ? 2 : 1);
    const bool wide = !kBackward && l.g.held && int64_t(l.block.x) > kHolders;
    if (wide && p.dim * int64_t(sizeof(S)) <= kHolders * kHeldPacks * 16)
      l.block = dim3(unsigned(kHolders));
    const SoftmaxArguments a = {l.g, p.a, p.b, p.out};
    const auto held = kBackward ? softmax_backwards_held<S, kLog> : softmax_held<S, kLog>;
    const auto again = kBackward ? softmax_backwards<S, kLog> : softmax_forward<S, kLog>;
    const auto kernel = l.g.held ? held : again;
    return device::launch(kernel, l.grid, l.block, l.shared_bytes, stream, a);
  });
}

}  // namespace

namespace cuda {

int32_t softmax(const void* plan, void* stream, void*) {
  return run_softmax<false, false>(plan, stream);
}
int32_t log_softmax(const void* plan, void* stream, void*) {
  return run_softmax<true, false>(plan, stream);
}
int32_t softmax_backward(const void* plan, void* stream, void*) {
  return run_softmax<false, true>(plan, stream);
}
int32_t log_softmax_backward(const void* plan, void* stream, void*) {
  return run_softmax<true, true>(plan, stream);
}

}  // namespace cuda
}  // namespace TT_NS
