#include "kernels/cpu/matmul/epilogue.h"

#include "kernels/cpu/matmul/pack.h"

TT_ISA_BEGIN

TT_INLINE float widen(float x) { return x; }
TT_INLINE double widen(double x) { return x; }
TT_INLINE int32_t widen(int32_t x) { return x; }
TT_INLINE int64_t widen(int64_t x) { return x; }
template <class T> TT_INLINE T narrow(T x, T) { return x; }
// x * y + z, wrapping for integers.
template <class T> TT_INLINE T scale_add(T x, T y, T z) {
  if constexpr (sizeof(T) == 4 && T(0.5) == T(0)) return T(uint32_t(x) * uint32_t(y) + uint32_t(z));
  else if constexpr (T(0.5) == T(0)) return T(uint64_t(x) * uint64_t(y) + uint64_t(z));
  else return x * y + z;
}
// The same for vectors. T is explicit, since it cannot be deduced from Vec<T>.
template <class T> TT_INLINE Vec<T> times(Vec<T> x, Vec<T> y) {
  if constexpr (T(0.5) == T(0)) return fma(x, y, Vec<T>{});
  else return x * y;
}
template <class T> TT_INLINE Vec<T> plus(Vec<T> x, Vec<T> y) {
  if constexpr (T(0.5) == T(0)) return fma(x, splat(T(1)), y);
  else return x + y;
}

// matmul_finish() for the stored type S and the compute type T.
template <class S, class T> void finish(const MatmulPlan& p, char* c_base, const char* d_base,
                                        int64_t i0, int64_t j0, int rows, int cols, const T* sum,
                                        int64_t ld, bool first) {
  const T alpha = scalar_of<T>(p.alpha);
  const T beta = scalar_of<T>(p.beta);
  const bool with_d = first && p.d;
  for (int i = 0; i < rows; i++, sum += ld) {
    S* c = reinterpret_cast<S*>(c_base) + (i0 + i) * p.c_row + j0 * p.c_col;
    const S* d =
        with_d ? reinterpret_cast<const S*>(d_base) + (i0 + i) * p.d_row + j0 * p.d_col : nullptr;
    int j = 0;
    const bool runs = p.c_col == 1 && (!with_d || p.d_col <= 1);
    if constexpr (sizeof(S) == sizeof(T)) {
      constexpr int kL = kLanes<T>;
      for (; runs && j + kL <= cols; j += kL) {
        Vec<T> v = load(sum + j);
        if (p.scaled) v = times<T>(v, splat(alpha));
        if (with_d) v = fma(splat(beta), p.d_col ? load(d + j) : splat(d[0]), v);
        else if (!first) v = plus<T>(v, load(c + j));
        store(c + j, v);
      }
    } else if constexpr (kVectorConversions<S>) {  // c never holds partial sums: first is true
      constexpr int kL = kLanes<T>;
      for (; runs && j + kL <= cols; j += kL) {
        Vec<T> v = load(sum + j);
        if (p.scaled) v = v * splat(alpha);
        if (with_d) v = fma(splat(beta), p.d_col ? load_wide(d + j) : splat(widen(d[0])), v);
        store_narrow(c + j, v);
      }
    }
    for (; j < cols; j++) {
      T v = p.scaled ? scale_add(sum[j], alpha, T(0)) : sum[j];
      if (with_d) v = scale_add(beta, widen(d[j * p.d_col]), v);
      else if (!first) v = scale_add(T(1), widen(c[j * p.c_col]), v);
      c[j * p.c_col] = narrow(v, S{});
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

void matmul_finish(const MatmulPlan& p, char* c, const char* d, int64_t i0, int64_t j0, int rows,
                   int cols, const void* sum, int64_t ld, bool first) noexcept {
#define TT_CASE(dtype, has, S, T)                                                              \
  case dtype:                                                                                  \
    if (has) finish<S, T>(p, c, d, i0, j0, rows, cols, static_cast<const T*>(sum), ld, first); \
    return;
  switch (p.dtype) {
    TT_CASE(TT_F32, true, float, float)
    TT_CASE(TT_F64, is_built(TT_F64), double, double)
    TT_CASE(TT_I32, kIntegerProducts, int32_t, int32_t)
    TT_CASE(TT_I64, kIntegerProducts, int64_t, int64_t)
    TT_CASE(TT_F16, is_built(TT_F16), F16, float)
    TT_CASE(TT_BF16, is_built(TT_BF16), Bf16, float)
    default: return;
  }
#undef TT_CASE
}

TT_ENTRY_END
