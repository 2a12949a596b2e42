// Vectors of any number of lanes: gcc's and clang's vector extension, which no other file names, or
// a class of the same arithmetic.
//   Vector<T, n>             n lanes of T
//   shuffled<i, j, …>(a, b)  lanes of a and b, one after the other
//   converted<V>(v)          every lane of v as the element of V
//   exchanged_parts(v)       lanes 2 i and 2 i + 1 exchanged
#pragma once

#include "kernels/cpu/simd/intrinsics.h"
#include "kernels/cpu/simd/isa.h"

TT_ISA_BEGIN

#if TT_VECTOR_EXTENSION

template <class T, int n> struct VectorOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};
template <class T, int n> using Vector = typename VectorOf<T, n>::type;

template <class T> T lane_of(const T&);
template <class V> using Lane = decltype(lane_of(V{}[0]));
template <int... lanes, class V>
TT_INLINE Vector<Lane<V>, int(sizeof...(lanes))> shuffled(V a, V b) {
  return __builtin_shufflevector(a, b, lanes...);
}
template <class To, class From> TT_INLINE To converted(From v) {
  return __builtin_convertvector(v, To);
}
// Lanes of a where those of mask are set, of b elsewhere; one of two numbers by a bool, too.
template <class M, class V> TT_INLINE V chosen(M mask, V a, V b) { return mask ? a : b; }

#else

template <class T, int n> struct Vector;
template <class V> constexpr bool kIsVector = false;
template <class T, int n> constexpr bool kIsVector<Vector<T, n> > = true;
// The lanes of a comparison: all bits of a true one are set.
template <int bytes> struct MaskLane;
template <> struct MaskLane<1> { using Type = int8_t; };
template <> struct MaskLane<2> { using Type = int16_t; };
template <> struct MaskLane<4> { using Type = int32_t; };
template <> struct MaskLane<8> { using Type = int64_t; };

template <class T, int n> struct Vector {
  using Mask = Vector<typename MaskLane<sizeof(T)>::Type, n>;
  T lane[n];

  Vector() = default;
  template <class... Lanes>
  requires(sizeof...(Lanes) == n && n > 1) TT_INLINE constexpr Vector(Lanes... of)
      : lane{T(of)...} {}
  // The bytes of another vector, or of the intrinsics' types.
  template <class V>
  requires(sizeof(V) == sizeof(T) * n && !kIsSame<V, Vector>) TT_INLINE explicit(kIsVector<V>)
      Vector(const V& v) {
    memcpy(lane, &v, sizeof lane);
  }
  template <class V>
  requires(sizeof(V) == sizeof(T) * n && !kIsVector<V>) TT_INLINE operator V() const {
    V v;
    memcpy(&v, lane, sizeof v);
    return v;
  }
  TT_INLINE T& operator[](int64_t i) { return lane[i]; }
  TT_INLINE T operator[](int64_t i) const { return lane[i]; }
  template <class F> static TT_INLINE Vector each(const F& f) {
    Vector r;
    for (int i = 0; i < n; i++) r.lane[i] = T(f(i));
    return r;
  }
  static TT_INLINE Vector all(T x) {
    return each([&](int) { return x; });
  }
  TT_INLINE Vector operator-() const {
    return each([&](int i) { return -lane[i]; });
  }
  TT_INLINE Vector operator~() const {
    return each([&](int i) { return ~lane[i]; });
  }

#define TT_VECTOR_OPERATOR(op)                                                      \
  friend TT_INLINE Vector operator op(const Vector& a, const Vector& b) {           \
    return each([&](int i) { return a.lane[i] op b.lane[i]; });                     \
  }                                                                                 \
  friend TT_INLINE Vector operator op(const Vector& a, T b) { return a op all(b); } \
  friend TT_INLINE Vector operator op(T a, const Vector& b) { return all(a) op b; } \
  TT_INLINE Vector& operator op##=(const Vector& b) { return *this = *this op b; }  \
  TT_INLINE Vector& operator op##=(T b) { return *this = *this op all(b); }
  TT_VECTOR_OPERATOR(+)
  TT_VECTOR_OPERATOR(-)
  TT_VECTOR_OPERATOR(*)
  TT_VECTOR_OPERATOR(/)
  TT_VECTOR_OPERATOR(&)
  TT_VECTOR_OPERATOR(|)
  TT_VECTOR_OPERATOR(^)
  TT_VECTOR_OPERATOR(<<)
  TT_VECTOR_OPERATOR(>>)
#undef TT_VECTOR_OPERATOR
#define TT_VECTOR_COMPARISON(op)                                            \
  friend TT_INLINE Mask operator op(const Vector& a, const Vector& b) {     \
    return Mask::each([&](int i) { return -int(a.lane[i] op b.lane[i]); }); \
  }                                                                         \
  friend TT_INLINE Mask operator op(const Vector& a, T b) { return a op all(b); }
  TT_VECTOR_COMPARISON(==)
  TT_VECTOR_COMPARISON(!=)
  TT_VECTOR_COMPARISON(<)
  TT_VECTOR_COMPARISON(<=)
  TT_VECTOR_COMPARISON(>)
  TT_VECTOR_COMPARISON(>=)
#undef TT_VECTOR_COMPARISON
};

template <int... lanes, class T, int n>
TT_INLINE Vector<T, sizeof...(lanes)> shuffled(const Vector<T, n>& a, const Vector<T, n>& b) {
  return {(lanes < n ? a.lane[lanes % n] : b.lane[lanes % n])...};
}
template <class To, class T, int n> TT_INLINE To converted(const Vector<T, n>& v) {
  return To::each([&](int i) { return v.lane[i]; });
}
template <class M, class T, int n> TT_INLINE Vector<T, n> chosen(const Vector<M, n>& mask,
                                                                 const Vector<T, n>& a,
                                                                 const Vector<T, n>& b) {
  return Vector<T, n>::each([&](int i) { return mask.lane[i] ? a.lane[i] : b.lane[i]; });
}
template <class T> TT_INLINE T chosen(bool mask, T a, T b) { return mask ? a : b; }

#endif

// Lanes 2 i and 2 i + 1 exchanged: the parts of complex numbers, as pairs.
template <class V> TT_INLINE V exchanged_parts(V v) {
  constexpr int n = int(sizeof(V) / sizeof(v[0]));
  if constexpr (n == 2) return shuffled<1, 0>(v, v);
  else if constexpr (n == 4) return shuffled<1, 0, 3, 2>(v, v);
  else if constexpr (n == 8) return shuffled<1, 0, 3, 2, 5, 4, 7, 6>(v, v);
  else return shuffled<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(v, v);
}

TT_ISA_END
