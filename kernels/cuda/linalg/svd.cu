// svd by one-sided Jacobi, as on the CPU (kernels/cpu/linalg/svd.cpp), a block for each matrix. In
// each round of a sweep the warps rotate disjoint pairs of columns, as the pairs of a tournament.
//   w: (n, m), the columns of A; in the end those of U    v: (n, n), the columns of V    s: (n)
// A complex number is two doubles.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp.h"
#include "kernels/functors/math.h"
#include "plan/linalg_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMaxSweeps = 60;  // about ten are needed

// Dot products of columns p and q.
struct Dots {
  double pp, qq, re, im;  // |p|^2, |q|^2 and p^H q
};
__device__ __forceinline__ Dots operator+(const Dots& x, const Dots& y) {
  return {x.pp + y.pp, x.qq + y.qq, x.re + y.re, x.im + y.im};
}

template <bool kComplex> struct Jacobi {
  static constexpr int kParts = kComplex ? 2 : 1;
  double *w, *v, *s;
  int64_t m, n;
  int64_t length, width;  // of a column of w, kParts m, and of v, kParts n, in doubles
  double* shared;         // [kThreads]
  int* found;             // [1]
  int thread, lane, warp;

  // The terms of a lane.
  __device__ __forceinline__ Dots terms(const double* p, const double* q, int first,
                                        int step) const {
    Dots d = {0, 0, 0, 0};
    for (int64_t i = int64_t(first) * kParts; i < length; i += int64_t(step) * kParts) {
      const double x = p[i];
      const double y = q[i];
      d.pp += x * x;
      d.qq += y * y;
      d.re += x * y;
      if constexpr (kComplex) {
        const double xi = p[i + 1];
        const double yi = q[i + 1];
        d.pp += xi * xi;
        d.qq += yi * yi;
        d.re += xi * yi;
        d.im += x * yi - xi * y;
      }
    }
    return d;
  }
  __device__ __forceinline__ Dots warp_dots(const double* p, const double* q) const {
    Dots d =
        combine_warp(terms(p, q, lane, kWarp), [](const Dots& x, const Dots& y) { return x + y; });
    d.pp = __shfl_sync(kAllLanes, d.pp, 0);
    d.qq = __shfl_sync(kAllLanes, d.qq, 0);
    d.re = __shfl_sync(kAllLanes, d.re, 0);
    d.im = __shfl_sync(kAllLanes, d.im, 0);
    return d;
  }
  // The sum of a number of each thread, for all.
  __device__ __forceinline__ double block_sum(double x) const {
    __syncthreads();
    shared[thread] = x;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half) shared[thread] += shared[thread + half];
    }
    __syncthreads();
    const double sum = shared[0];
    __syncthreads();
    return sum;
  }
  __device__ __forceinline__ void multiply(double* p, int64_t count, double by) const {
    for (int64_t i = thread; i < count; i += kThreads) p[i] *= by;
  }
  __device__ __forceinline__ void fill(double* p, int64_t count, double x) const {
    for (int64_t i = thread; i < count; i += kThreads) p[i] = x;
  }

  // A power of two that scales the largest element to about 1; 0 if all are 0, nan if one is not
  // finite.
  __device__ __forceinline__ double scale() const {
    double top = 0, odd = 0;
    for (int64_t i = thread; i < n * length; i += kThreads) {
      const double a = math::fabs(w[i]);
      if (a > top) top = a;
      odd += a - a;
    }
    odd = block_sum(odd);
    shared[thread] = top;
    __syncthreads();
    for (int t = 0; t < kThreads; t++)
      if (shared[t] > top) top = shared[t];
    __syncthreads();
    if (odd != 0 || top == 0) return odd;
    const uint64_t exponent = bits_as<uint64_t>(top) >> 52;
    return bits_as<double>((exponent > 2045 ? 1 : 2046 - exponent) << 52);
  }

  // Columns p and q of count doubles: q *= turn, then p' = c p - s q, q' = s p + c q.
  __device__ __forceinline__ void rotate(double* p, double* q, int64_t count, double re, double im,
                                         double c, double sine) const {
    for (int64_t i = int64_t(lane) * kParts; i < count; i += kWarp * kParts) {
      double y[2] = {q[i], kComplex ? q[i + kParts - 1] : 0};
      if constexpr (kComplex) {
        const double a = y[0];
        y[0] = a * re - y[1] * im;
        y[1] = a * im + y[1] * re;
      }
#pragma unroll
      for (int k = 0; k < kParts; k++) {
        const double x = p[i + k];
        p[i + k] = c * x - sine * y[k];
        q[i + k] = sine * x + c * y[k];
      }
    }
  }
  // Rotates columns i and k, by a warp, until they are orthogonal. Returns false if they already
  // are.
  __device__ __forceinline__ bool orthogonal_pair(int64_t i, int64_t k, double close) const {
    double* p = w + i * length;
    double* q = w + k * length;
    Dots d = warp_dots(p, q);
    const double size = kComplex ? math::sqrt(d.re * d.re + d.im * d.im) : math::fabs(d.re);
    if (!(size > close * math::sqrt(d.pp) * math::sqrt(d.qq))) return false;
    const double re = kComplex ? d.re / size : 1;
    const double im = kComplex ? -d.im / size : 0;
    if (kComplex) d.re = size;
    const double z = (d.qq - d.pp) / (2 * d.re);
    const double t = (z < 0 ? -1 : 1) / (math::fabs(z) + math::sqrt(1 + z * z));
    const double c = 1 / math::sqrt(1 + t * t);
    rotate(p, q, length, re, im, c, c * t);
    rotate(v + i * width, v + k * width, width, re, im, c, c * t);
    return true;
  }
  // All pairs once: round r of a tournament of `players`, an even number, pairs the last one with
  // r, and r + j with r - j.
  __device__ __forceinline__ bool sweep(double close) const {
    const int64_t players = n + n % 2;
    bool more = false;
    for (int64_t r = 0; r + 1 < players; r++) {
      for (int64_t j = warp; j < players / 2; j += kWarps) {
        const int64_t a = j == 0 ? players - 1 : (r + j) % (players - 1);
        const int64_t b = j == 0 ? r : (r - j + players - 1) % (players - 1);
        const int64_t low = a < b ? a : b;
        const int64_t high = a < b ? b : a;
        if (high < n && orthogonal_pair(low, high, close)) more = true;
      }
      __syncthreads();
    }
    return __syncthreads_or(more);
  }

  __device__ __forceinline__ void swap_columns(double* p, double* q, int64_t count) const {
    for (int64_t i = thread; i < count; i += kThreads) {
      const double x = p[i];
      p[i] = q[i];
      q[i] = x;
    }
  }
  __device__ __forceinline__ void sort() const {
    for (int64_t i = 0; i < n; i++) {
      if (thread == 0) {
        int64_t best = i;
        for (int64_t k = i + 1; k < n; k++) best = s[k] > s[best] ? k : best;
        const double t = s[i];
        s[i] = s[best];
        s[best] = t;
        found[0] = int(best);
      }
      __syncthreads();
      const int64_t best = found[0];
      if (best != i) {
        swap_columns(w + i * length, w + best * length, length);
        swap_columns(v + i * width, v + best * width, width);
      }
      __syncthreads();
    }
  }

  // Makes the first large element of each column of V a positive number, as the CPU does.
  __device__ __forceinline__ void fix_phases() const {
    for (int64_t k = warp; k < n; k += kWarps) {
      double* const y = v + k * width;
      const auto square = [&](int64_t i) {
        return y[i] * y[i] + (kComplex ? y[i + kParts - 1] * y[i + kParts - 1] : 0);
      };
      double top = 0;
      for (int64_t i = 0; i < width; i += kParts)
        if (square(i) > top) top = square(i);
      int64_t at = 0;
      while (at + kParts < width && square(at) <= kSvdLargeSquare * top) at += kParts;
      const double size = math::sqrt(square(at));
      const double re = y[at] / size;
      const double im = kComplex ? -y[at + kParts - 1] / size : 0;
      __syncwarp();
      turn(w + k * length, length, re, im);
      turn(y, width, re, im);
      __syncwarp();
      if (kComplex && lane == 0) y[at + kParts - 1] = 0;
    }
    __syncthreads();
  }
  // p *= re + i im, of real numbers re, which is 1 or -1.
  __device__ __forceinline__ void turn(double* p, int64_t count, double re, double im) const {
    for (int64_t i = int64_t(lane) * kParts; i < count; i += kWarp * kParts) {
      const double a = p[i];
      if constexpr (kComplex) {
        const double b = p[i + 1];
        p[i] = a * re - b * im;
        p[i + 1] = a * im + b * re;
      } else {
        p[i] = re < 0 ? -a : a;
      }
    }
  }

  // Sets column k of w to a unit vector orthogonal to the columns before it: an axis,
  // orthogonalised twice. At least one axis keeps a norm of sqrt(1 / m).
  __device__ __forceinline__ void complete(int64_t k) const {
    double* u = w + k * length;
    for (int64_t axis = 0; axis < m; axis++) {
      fill(u, length, 0);
      __syncthreads();
      if (thread == 0) u[axis * kParts] = 1;
      __syncthreads();
      for (int64_t twice = 0; twice < 2 * k; twice++) {
        const double* p = w + twice % k * length;
        const Dots d = terms(p, u, thread, kThreads);
        const double re = block_sum(d.re);
        const double im = block_sum(d.im);
        for (int64_t i = int64_t(thread) * kParts; i < length; i += kThreads * kParts) {
          u[i] -= p[i] * re;
          if constexpr (kComplex) {
            u[i] += p[i + 1] * im;
            u[i + 1] -= p[i + 1] * re + p[i] * im;
          }
        }
        __syncthreads();
      }
      const double size = block_sum(terms(u, u, thread, kThreads).pp);
      if (size * double(2 * m) < 1) continue;
      multiply(u, length, 1 / math::sqrt(size));
      return;
    }
  }

  __device__ __forceinline__ void run() const {
    const double by = scale();
    const double close = 0x1p-50 * math::sqrt(double(m));
    fill(v, n * width, 0);
    __syncthreads();
    for (int64_t i = thread; i < n; i += kThreads) v[i * width + i * kParts] = 1;
    __syncthreads();
    if (!(by >= 0)) {
      fill(w, n * length, by);
      fill(v, n * width, by);
      fill(s, n, by);
      return;
    }
    multiply(w, n * length, by);
    __syncthreads();
    for (int k = 0; k < kMaxSweeps; k++)
      if (!sweep(close)) break;
    for (int64_t i = warp; i < n; i += kWarps) {
      const double size = math::sqrt(warp_dots(w + i * length, w + i * length).pp);
      if (lane == 0) s[i] = size;
    }
    __syncthreads();
    sort();
    fix_phases();
    for (int64_t i = 0; i < n; i++) {
      const double size = s[i];
      __syncthreads();
      const bool zero = !(size > 0x1p-500);
      if (zero) complete(i);
      else multiply(w + i * length, length, 1 / size);
      if (thread == 0) s[i] = by > 0 && !zero ? size / by : 0;
      __syncthreads();
    }
  }
};

template <bool kComplex> __global__ void __launch_bounds__(kThreads)
    decompose(const __grid_constant__ SvdPlan p) {
  TT_SHARED(double, shared, kThreads);
  TT_SHARED(int, found, 1);
  constexpr int64_t kParts = kComplex ? 2 : 1;
  const int64_t i = blockIdx.x;
  const int64_t length = kParts * p.m;
  const int64_t width = kParts * p.n;
  const int thread = int(threadIdx.x);
  Jacobi<kComplex>{p.w + i * p.n * length,
                   p.v + i * p.n * width,
                   p.s + i * p.n,
                   p.m,
                   p.n,
                   length,
                   width,
                   shared,
                   found,
                   thread,
                   thread % kWarp,
                   thread / kWarp}
      .run();
}

}  // namespace

namespace cuda {

int32_t svd(const void* plan, void* stream, void*) {
  const SvdPlan& p = *static_cast<const SvdPlan*>(plan);
  const int64_t batch = p.run.units[0];
  if (batch == 0 || p.n == 0) return TT_OK;
  auto kernel = p.complex ? decompose<true> : decompose<false>;
  return device::launch(kernel, unsigned(batch), kThreads, 0, stream, p);
}

}  // namespace cuda
}  // namespace TT_NS
