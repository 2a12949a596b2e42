// Complex numbers of the kernels: a POD pair and its field operations. Transcendentals:
// functors/math.h. Included by functors/functor.h only.
#pragma once

TT_FUNCTORS_BEGIN

template <class R> struct Complex {
  using Real = R;
  R re, im;
};
using c64 = Complex<float>;
using c128 = Complex<double>;

template <class T> constexpr bool kIsComplex = false;
template <> constexpr bool kIsComplex<c64> = true;
template <> constexpr bool kIsComplex<c128> = true;

template <class T> struct RealOf { using type = T; };
template <class R> struct RealOf<Complex<R>> { using type = R; };
template <class T> using Real = typename RealOf<T>::type;

template <class R> TT_FN Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> TT_FN Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> TT_FN Complex<R> operator-(Complex<R> a) { return {-a.re, -a.im}; }
// -x, by flipping the sign bit. gcc 12 fuses a vectorised pair of a - b * c and a + b * c into one
// fmaddsub even where contraction is off, but not a pair of sums.
TT_FN float flipped(float x) { return bit_cast<float>(bit_cast<uint32_t>(x) ^ 0x80000000u); }
TT_FN double flipped(double x) { return bit_cast<double>(bit_cast<uint64_t>(x) ^ (1ull << 63)); }
// The textbook product, as PyTorch's vector kernels compute it: no recovery of infinities (C99
// Annex G.5.1).
template <class R> TT_FN Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re + flipped(a.im) * b.im, a.re * b.im + a.im * b.re};
}
template <class R> TT_FN Complex<R> operator*(Complex<R> a, R b) { return {a.re * b, a.im * b}; }
template <class R> TT_FN bool operator==(Complex<R> a, Complex<R> b) {
  return a.re == b.re && a.im == b.im;
}
template <class R> TT_FN bool operator!=(Complex<R> a, Complex<R> b) {
  return a.re != b.re || a.im != b.im;
}

// Smith's division (CACM 5 (1962) 435), free of spurious overflow: both operands are divided by the
// larger part of b.
template <class R> TT_FN Complex<R> operator/(Complex<R> a, Complex<R> b) {
  const R ar = b.re < 0 ? -b.re : b.re;
  const R ai = b.im < 0 ? -b.im : b.im;
  const bool real_larger = ar >= ai;
  const R big = real_larger ? b.re : b.im;
  const R small = real_larger ? b.im : b.re;
  const R x = real_larger ? a.re : a.im;
  const R y = real_larger ? a.im : a.re;
  // 0/0: the quotient below is then a/0 in both parts.
  const R ratio = big == 0 ? small : small / big;
  const R scale = R(1) / (big + small * ratio);
  const R im = (y - x * ratio) * scale;
  return {(x + y * ratio) * scale, real_larger ? im : -im};
}

TT_FUNCTORS_END
