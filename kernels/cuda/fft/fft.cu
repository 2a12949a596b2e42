// fft: discrete Fourier transforms along one dimension, by Stockham passes through memory; a
// thread computes one small transform of a pass. Lengths with a prime factor above kMaxFftRadix are
// convolutions of a smooth length (Bluestein, IEEE Trans. AU-18 (1970) 451).
//
//   in      [outer][n][inner]
//     | load: each transform is `length` neighbours; × chirp
//   x, y    [transforms][length] complex numbers, in turns
//     | passes; with a chirp × its spectrum, then passes with the other sign
//   out     [outer][n][inner]: × scale, × chirp
//
// Real and Hermitian transforms are those of complex numbers.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/fft/cufft.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/math.h"
#include "plan/fft_build.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

struct FftArguments {
  int32_t kind;
  bool inverse, chirp;
  int64_t transforms, inner, n, inputs, outputs;
  int64_t length;  // of the passes
  double scale;
  const char* in;
  char* out;
  char* roots;     // [length]: exp(-2 pi i j / length)
  char* chirps;    // [n]: exp(∓ pi i j² / n)
  char* spectrum;  // [length]: of the conjugate chirp
};

// exp(-2 pi i numerator / n), from the quarter of a turn that is nearest: exact at quarters.
template <class T> __device__ __forceinline__ Complex<T> root_of(int64_t numerator, int64_t n) {
  const int64_t quarter = quotient(8 * numerator + n, 2 * n);           // 4 numerator / n, rounded
  const double rest = double(4 * numerator - quarter * n) / double(n);  // in quarters
  double sine, cosine;
  math::sin_cos(rest * 1.5707963267948966, &sine, &cosine);
  const bool odd = quarter & 1;
  const double c = odd ? -sine : cosine;
  const double s = odd ? cosine : sine;
  const bool turned = quarter & 2;
  return {T(turned ? -c : c), T(turned ? s : -s)};
}
template <class T> TT_FN Complex<T> conjugate(Complex<T> x) { return {x.re, -x.im}; }
template <class T> TT_FN Complex<T> conjugate_if(bool yes, Complex<T> x) {
  return yes ? conjugate(x) : x;
}

template <class T> __global__ void __launch_bounds__(kThreads)
    fft_tables_of(const __grid_constant__ FftArguments p) {
  using C = Complex<T>;
  for (int64_t i = first_item(); i < p.length; i += item_step()) {
    reinterpret_cast<C*>(p.roots)[i] = root_of<T>(i, p.length);
    if (!p.chirp) continue;
    // j² modulo 2 n, by halves that do not overflow.
    const int64_t j = i < p.n ? i : p.length - i;
    C value = {0, 0};
    if (j < p.n) {
      const uint64_t two_n = uint64_t(2 * p.n);
      value =
          conjugate_if(p.inverse, root_of<T>(int64_t(uint64_t(j) * uint64_t(j) % two_n), 2 * p.n));
    }
    if (i < p.n) reinterpret_cast<C*>(p.chirps)[i] = value;
    reinterpret_cast<C*>(p.spectrum)[i] = conjugate(value);
  }
}

template <class T> __global__ void __launch_bounds__(kThreads)
    fft_load(const __grid_constant__ FftArguments p, Complex<T>* x) {
  using C = Complex<T>;
  for (int64_t i = first_item(); i < p.transforms * p.length; i += item_step()) {
    const int64_t t = quotient(i, p.length);
    const int64_t j = i - t * p.length;
    C value = {0, 0};
    if (j < p.n) {
      const int64_t outer = quotient(t, p.inner);
      const bool mirrored = p.kind == kFftHermitian && j >= p.inputs;
      const int64_t from = mirrored ? p.n - j : j;
      const int64_t at = (outer * p.inputs + from) * p.inner + t - outer * p.inner;
      if (p.kind == kFftReal) value.re = reinterpret_cast<const T*>(p.in)[at];
      else value = conjugate_if(mirrored, reinterpret_cast<const C*>(p.in)[at]);
      if (p.chirp) value = value * reinterpret_cast<const C*>(p.chirps)[j];
    }
    x[i] = value;
  }
}

template <class T> __global__ void __launch_bounds__(kThreads)
    fft_store(const __grid_constant__ FftArguments p, const Complex<T>* x) {
  using C = Complex<T>;
  const T scale = T(p.chirp ? p.scale / double(p.length) : p.scale);
  for (int64_t i = first_item(); i < p.transforms * p.outputs; i += item_step()) {
    const int64_t rest = quotient(i, p.inner);
    const int64_t outer = quotient(rest, p.outputs);
    const int64_t j = rest - outer * p.outputs;
    const int64_t t = outer * p.inner + i - rest * p.inner;
    C value = x[t * p.length + j];
    if (p.chirp) value = value * reinterpret_cast<const C*>(p.chirps)[j];
    value = value * scale;
    if (p.kind == kFftHermitian) reinterpret_cast<T*>(p.out)[i] = value.re;
    else reinterpret_cast<C*>(p.out)[i] = value;
  }
}

template <class T> __global__ void __launch_bounds__(kThreads)
    fft_multiply(Complex<T>* x, const Complex<T>* spectrum, int64_t transforms, int64_t length) {
  for (int64_t i = first_item(); i < transforms * length; i += item_step())
    x[i] = x[i] * spectrum[i - quotient(i, length) * length];
}

struct FftPass {
  int64_t transforms, length;
  int64_t n, stride;  // sub-transforms of length n, whose elements are `stride` apart
  int32_t radix;
  bool inverse;
};

// y(q, radix i + k) = w_n^(i k) * sum over j of x(q, i + j n / radix) w_radix^(j k)
template <class T, int kRadix> __global__ void __launch_bounds__(kThreads)
    fft_pass(const __grid_constant__ FftPass p, const Complex<T>* x, Complex<T>* y,
             const Complex<T>* roots) {
  using C = Complex<T>;
  const int radix = kRadix ? kRadix : p.radix;
  const int64_t each = quotient(p.length, radix);
  const int64_t m = quotient(p.n, radix);
  for (int64_t t = first_item(); t < p.transforms * each; t += item_step()) {
    const int64_t transform = quotient(t, each);
    const int64_t rest = t - transform * each;
    const int64_t i = quotient(rest, p.stride);
    const int64_t q = rest - i * p.stride;
    const C* from = x + transform * p.length + q + p.stride * i;
    C* to = y + transform * p.length + q + p.stride * radix * i;
    C a[kRadix ? kRadix : 1];
    if constexpr (kRadix > 0) {
#pragma unroll
      for (int j = 0; j < kRadix; j++) a[j] = from[p.stride * m * j];
    }
#pragma unroll
    for (int k = 0; k < radix; k++) {
      C sum = {0, 0};
#pragma unroll
      for (int j = 0; j < radix; j++) {
        const C v = kRadix ? a[kRadix ? j : 0] : from[p.stride * m * j];
        const C w = conjugate_if(p.inverse, roots[(j * k % radix) * each]);
        sum = sum + v * w;
      }
      const int64_t turn = i * k * p.stride;  // < length
      to[p.stride * k] = sum * conjugate_if(p.inverse, roots[turn]);
    }
  }
}

template <class T> auto pass_of(int radix) {
  switch (radix) {
    case 2: return fft_pass<T, 2>;
    case 3: return fft_pass<T, 3>;
    case 4: return fft_pass<T, 4>;
    case 5: return fft_pass<T, 5>;
    case 8: return fft_pass<T, 8>;
    default: return fft_pass<T, 0>;
  }
}

// ---- on the host ----

// The passes that compute a plan's transforms, and whether they are those of a chirp.
struct FftWay {
  FftPasses passes;
  bool chirp;
};
FftWay way_of(const FftPlan& p) {
  FftWay w;
  w.chirp = build_fft_passes(&w.passes, p.n) != 1;
  if (w.chirp) build_fft_passes(&w.passes, fft_smooth_length(2 * p.n - 1));
  return w;
}

// Runs passes from *x to *y and back; the result is in *x.
template <class T> int32_t run_passes(const FftPasses& passes, int64_t transforms, bool inverse,
                                      Complex<T>** x, Complex<T>** y, const Complex<T>* roots,
                                      void* stream) {
  FftPass p = {transforms, passes.n, passes.n, 1, 0, inverse};
  for (int32_t i = 0; i < passes.n_passes; i++) {
    p.radix = passes.radix[i];
    const unsigned grid = grid_of(transforms * (p.length / p.radix), kThreads);
    if (const int32_t status =
            device::launch(pass_of<T>(p.radix), grid, kThreads, 0, stream, p, *x, *y, roots))
      return status;
    p.n /= p.radix;
    p.stride *= p.radix;
    Complex<T>* const result = *y;
    *y = *x;
    *x = result;
  }
  return TT_OK;
}

template <class T> int32_t launch_fft(const FftPlan& p, void* stream, void* workspace) {
  using C = Complex<T>;
  const FftWay way = way_of(p);
  FftArguments a;
  a.kind = p.kind;
  a.inverse = p.inverse;
  a.chirp = way.chirp;
  a.transforms = p.outer * p.inner;
  a.inner = p.inner;
  a.n = p.n;
  a.inputs = fft_inputs(p);
  a.outputs = fft_outputs(p);
  a.length = way.passes.n;
  a.scale = p.scale;
  a.in = p.in;
  a.out = p.out;
  C* x = static_cast<C*>(workspace);
  C* y = x + a.transforms * a.length;
  C* const roots = y + a.transforms * a.length;
  C* const chirps = roots + a.length;
  C* spectrum = chirps + (way.chirp ? p.n : 0);
  C* other = spectrum + (way.chirp ? a.length : 0);
  a.roots = reinterpret_cast<char*>(roots);
  a.chirps = reinterpret_cast<char*>(chirps);
  a.spectrum = reinterpret_cast<char*>(spectrum);
  const int64_t numbers = a.transforms * a.length;
  int32_t status =
      device::launch(fft_tables_of<T>, grid_of(a.length, kThreads), kThreads, 0, stream, a);
  if (status == TT_OK && way.chirp)
    status = run_passes(way.passes, 1, false, &spectrum, &other, roots, stream);
  if (status == TT_OK)
    status = device::launch(fft_load<T>, grid_of(numbers, kThreads), kThreads, 0, stream, a, x);
  const bool inverse = !way.chirp && p.inverse;
  if (status == TT_OK)
    status = run_passes(way.passes, a.transforms, inverse, &x, &y, roots, stream);
  if (status == TT_OK && way.chirp) {
    status = device::launch(fft_multiply<T>, grid_of(numbers, kThreads), kThreads, 0, stream, x,
                            spectrum, a.transforms, a.length);
    if (status == TT_OK) status = run_passes(way.passes, a.transforms, true, &x, &y, roots, stream);
  }
  if (status != TT_OK) return status;
  const unsigned grid = grid_of(a.transforms * a.outputs, kThreads);
  return device::launch(fft_store<T>, grid, kThreads, 0, stream, a, x);
}

const FftPlan& fft_plan(const void* plan) { return *static_cast<const FftPlan*>(plan); }

}  // namespace

namespace cuda {

int32_t fft(const void* plan, void* stream, void* workspace) {
  const FftPlan& p = fft_plan(plan);
  if (p.outer * p.inner * p.n == 0) return TT_OK;
  if (cufft::serves(p)) return cufft::run(p, stream, workspace);
  if (p.dtype == TT_F64) return launch_fft<double>(p, stream, workspace);
  return launch_fft<float>(p, stream, workspace);
}
size_t fft_workspace(const void* plan) {
  const FftPlan& p = fft_plan(plan);
  if (p.outer * p.inner * p.n == 0) return 0;
  if (cufft::serves(p)) return cufft::workspace_bytes(p);
  const FftWay way = way_of(p);
  const int64_t length = way.passes.n;
  const int64_t numbers = (2 * p.outer * p.inner + 1) * length + (way.chirp ? p.n + 2 * length : 0);
  return size_t(numbers * 2 * kItemSize[p.dtype]);
}

}  // namespace cuda
}  // namespace TT_NS
