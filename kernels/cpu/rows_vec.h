// Blocks of rows: loads and stores with conversion, exp and sums, for float (f16 bf16 f32) and double.
#pragma once

#include "cpu/math.h"
#include "cpu/reduce_extreme.h"
#include "cpu/reduce_load.h"

TT_ISA_BEGIN

constexpr int64_t kRowBlock = 1024;  // elements that are converted or computed at a time

#if defined(__AVX512F__)
TT_INLINE F32v exp_of(F32v x, F32v shift) { return F32v(math::exp(__m512(x - shift))); }

// y[i] = exp(x[i] - shift), whose sum is added to the lanes; n <= kRowBlock. Out of line, so that the constants stay in
// registers.
TT_NOINLINE inline void exp_block(float* y, const float* x, float shift, int64_t n, Lanes<float>* sum) {
  const F32v s = splat(shift);
  Lanes<float> low;
  low.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const F32v e = exp_of(load(x + i + k * 16), s);
      store(y + i + k * 16, e);
      low.v[k] += e;
    }
  }
  for (int k = 0; i < n; i += 16, k++) {
    const __mmask16 rest = n - i >= 16 ? __mmask16(-1) : __mmask16((1u << (n - i)) - 1);
    const F32v e = exp_of(F32v(_mm512_maskz_loadu_ps(rest, x + i)), s);
    _mm512_mask_storeu_ps(y + i, rest, __m512(e));
    low.v[k] += F32v(_mm512_maskz_mov_ps(rest, __m512(e)));
  }
  sum->add(low);
}
#else
TT_NOINLINE inline void exp_block(float* y, const float* x, float shift, int64_t n, Lanes<float>* sum) {
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift);
  add_run(sum, y, n);
}
#endif
inline void exp_block(double* y, const double* x, double shift, int64_t n, Lanes<double>* sum) {
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift);
  add_run(sum, y, n);
}

// Adds a[i] * b[i] to the lanes, as add_run does the values; n <= kRowBlock.
template <class T>
TT_NOINLINE inline void add_products(Lanes<T>* acc, const T* a, const T* b, int64_t n) {
  constexpr int L = kLanes<T>;
  Lanes<T> low;
  low.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
#pragma GCC unroll 32
    for (int k = 0; k < low.kN; k++) low.v[k] = vfma(load(a + i + k * L), load(b + i + k * L), low.v[k]);
  }
  if (i < n) {
    alignas(64) T tail[kBlockLanes] = {};
    for (int64_t k = 0; k < n - i; k++) {
      tail[k] = a[i + k] * b[i + k];
      TT_SCALAR_LOOP;
    }
    low.add(tail);
  }
  acc->add(low);
}

// Largest of x and start, NaNs passed over.
TT_INLINE float max_of(const float* x, int64_t n, float start) { return extreme<true, false>(x, n, start); }
inline double max_of(const double* x, int64_t n, double start) {
  double lane[8];
  for (int l = 0; l < 8; l++) lane[l] = start;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  for (int l = 0; i < n; i++, l++) lane[l] = x[i] > lane[l] ? x[i] : lane[l];
  for (int l = 1; l < 8; l++) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
  return lane[0];
}

// A row of n elements read block by block; native ones in place.
template <class T>
struct RowIn {
  const char* p;
  int32_t dtype;

  TT_INLINE bool direct() const { return sizeof(T) == 8 || dtype == TT_F32; }
  // Elements [i, i + n), n <= kRowBlock unless direct.
  TT_INLINE const T* get(int64_t i, int64_t n, T* buffer) const {
    if (direct()) return reinterpret_cast<const T*>(p) + i;
    load_run(buffer, p + i * 2, 2, n, dtype);
    return buffer;
  }
};
TT_INLINE void store_run(char* p, const float* x, int64_t n, int32_t dtype) {
  store_f32(p, kItemSize[dtype], x, n, dtype);
}
TT_INLINE void store_run(char* p, const double* x, int64_t n, int32_t) { __builtin_memcpy(p, x, size_t(n) * 8); }

template <class T>
struct RowOut {
  char* p;
  int32_t dtype;

  TT_INLINE bool direct() const { return sizeof(T) == 8 || dtype == TT_F32; }
  // Where to compute elements [i, …) and, after that, put(): nothing more to do if direct.
  TT_INLINE T* at(int64_t i, T* buffer) const { return direct() ? reinterpret_cast<T*>(p) + i : buffer; }
  TT_INLINE void put(int64_t i, int64_t n, const T* buffer) const {
    if (!direct()) store_run(p + i * 2, buffer, n, dtype);
  }
};

template <class F>
TT_INLINE void for_blocks(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; i += kRowBlock) f(i, n - i < kRowBlock ? n - i : kRowBlock);
}

// One value of a dtype that computes in T.
template <class T>
TT_INLINE T load_one(const char* p, int32_t dtype) {
  T v;
  load_run(&v, p, kItemSize[dtype], 1, dtype);
  return v;
}

// Sum over lanes, kept from block to block.
template <class T>
TT_INLINE T total(const Lanes<T>& lanes) {
  T r;
  lanes.fold(&r, 1);
  return r;
}

TT_ISA_END
