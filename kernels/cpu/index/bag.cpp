// bag_reduce: sums, means or maxima of rows of a table.
//   table: (rows, width); index, factor: (n); start: (bags + 1); out: (bags, width)
//
// The columns of a bag are taken in blocks: their results stay in registers or in the L1 cache
// while its rows are read. Sums of floats have a loop of their own. Rows are at scattered places:
// those of later indices are prefetched.
#include "kernels/cpu/index/index.h"
#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/index_plan.h"

TT_ISA_BEGIN

constexpr int64_t kBagBlock = 64;
constexpr int64_t kBagAhead = 16;  // indices

// Another thread may write the indices meanwhile.
struct IndexReader {
  const char* index;
  bool wide;  // int64, else int32
  int64_t rows;
  TT_INLINE int64_t row(int64_t i) const {
    const int64_t row = wide ? atomic_load(reinterpret_cast<const int64_t*>(index) + i, kRelaxed)
                             : atomic_load(reinterpret_cast<const int32_t*>(index) + i, kRelaxed);
    return uint64_t(row) < uint64_t(rows) ? row : 0;
  }
};

template <class T> struct BagRows {
  const BagPlan& p;

  TT_INLINE int64_t row_of(int64_t i) const {
    return IndexReader{p.index, p.index_dtype == TT_I64, p.rows}.row(i);
  }
  // n columns of a row, from the one at byte `at`; 16-bit numbers are converted into room.
  TT_INLINE const T* columns(int64_t row, int64_t at, int64_t n, float* room) const {
    const char* x = p.table + row * p.row_stride + at;
    if (kItemSize[p.dtype] != 2) return reinterpret_cast<const T*>(x);
    load_f32(room, x, 2, n, p.dtype);
    return reinterpret_cast<const T*>(room);
  }
  TT_INLINE T factor(int64_t i) const {
    if (!p.factor) return T(1);
    if (kItemSize[p.dtype] != 2) return reinterpret_cast<const T*>(p.factor)[i];
    float f;
    load_f32(&f, p.factor + i * 2, 2, 1, p.dtype);
    return T(f);
  }
  TT_INLINE void fetch(int64_t i, int64_t end, int64_t at, int64_t bytes) const {
    if (i + kBagAhead >= end) return;
    const char* x = p.table + row_of(i + kBagAhead) * p.row_stride + at;
    for (int64_t b = 0; b < bytes; b += 64) TT_PREFETCH(x + b);
    TT_PREFETCH(x + bytes - 1);
  }
  // What sums are divided by.
  TT_INLINE T divisor(int64_t taken) const {
    return p.reduce == kBagMean && taken > 1 ? T(taken) : T(1);
  }

  // Sums kVectors vectors of columns of the rows [begin, end), or the first columns of one vector.
  // The plan is copied: the compiler would read it again for each row.
  template <int kVectors, bool kWhole = true>
  TT_INLINE void sum_vectors(T* sum, int64_t begin, int64_t end, int64_t at,
                             Part<T> part = Part<T>(kLanes<T>)) const {
    const char* const table = p.table + at;
    const int64_t stride = p.row_stride;
    const int64_t skipped = p.skipped;
    const T* const factors = reinterpret_cast<const T*>(p.factor);
    const IndexReader index = {p.index, p.index_dtype == TT_I64, p.rows};
    const int64_t last_fetched = p.n - kBagAhead;
    Vec<T> s[kVectors] = {};
    int64_t taken = end - begin;
    for (int64_t i = begin; i < end; i++) {
      if (i < last_fetched) {
        const char* next = table + index.row(i + kBagAhead) * stride;
        TT_UNROLL
        for (int v = 0; v < kVectors; v += 64 / TT_VEC_BYTES) TT_PREFETCH(next + v * TT_VEC_BYTES);
        TT_PREFETCH(next + kVectors * TT_VEC_BYTES - 1);
      }
      const int64_t row = index.row(i);
      if (row == skipped) {
        taken--;
        continue;
      }
      const T* x = reinterpret_cast<const T*>(table + row * stride);
      const Vec<T> f = splat(factors ? factors[i] : T(1));
      TT_UNROLL
      for (int v = 0; v < kVectors; v++)
        s[v] = fma(kWhole ? load(x + v * kLanes<T>) : load(x, part), f, s[v]);
    }
    const T count = divisor(taken);
    if (count != 1) {
      TT_UNROLL
      for (int v = 0; v < kVectors; v++) s[v] = s[v] / splat(count);
    }
    if (!kWhole) return store(sum, s[0], part);
    TT_UNROLL
    for (int v = 0; v < kVectors; v++) store(sum + v * kLanes<T>, s[v]);
  }
  TT_INLINE void sum_columns(T* out, int64_t begin, int64_t end) const {
    int64_t c = 0;
    for (; c + 4 * kLanes<T> <= p.width; c += 4 * kLanes<T>)
      sum_vectors<4>(out + c, begin, end, c * int64_t(sizeof(T)));
    for (; c + kLanes<T> <= p.width; c += kLanes<T>)
      sum_vectors<1>(out + c, begin, end, c * int64_t(sizeof(T)));
    if (c < p.width)
      sum_vectors<1, false>(out + c, begin, end, c * int64_t(sizeof(T)), Part<T>(int(p.width - c)));
  }

  // Reduces n columns of the rows [begin, end); kFull: n is kBagBlock.
  template <bool kFull> TT_INLINE void reduce(T* TT_RESTRICT sum, int64_t begin, int64_t end,
                                              int64_t at, int64_t columns_left) const {
    const int64_t n = kFull ? kBagBlock : columns_left;
    alignas(64) float room[kBagBlock];
    alignas(64) T s[kBagBlock] = {};
    int64_t taken = 0;
    for (int64_t i = begin; i < end; i++) {
      fetch(i, p.n, at, n * kItemSize[p.dtype]);
      const int64_t row = row_of(i);
      if (row == p.skipped) continue;
      const T* x = columns(row, at, n, room);
      taken++;
      if (p.reduce != kBagMax) {
        const T f = factor(i);
        for (int64_t k = 0; k < n; k++) s[k] += x[k] * f;
      } else if (taken == 1) {
        for (int64_t k = 0; k < n; k++) s[k] = x[k];
      } else {
        for (int64_t k = 0; k < n; k++) s[k] = !(x[k] <= s[k]) && s[k] == s[k] ? x[k] : s[k];
      }
    }
    const T count = divisor(taken);
    for (int64_t k = 0; k < n; k++) sum[k] = s[k] / count;
  }

  TT_NOINLINE void bag(int64_t b) const {
    const int64_t last = p.start ? clamp<int64_t>(p.start[b + 1], 0, p.n) : (b + 1) * p.per_bag;
    const int64_t first = p.start ? clamp<int64_t>(p.start[b], 0, last) : b * p.per_bag;
    const int64_t item = kItemSize[p.dtype];
    alignas(64) T sum[kBagBlock];
    T* const row = reinterpret_cast<T*>(p.out) + b * p.width;
    if constexpr (sizeof(T) == 4)
      if (p.reduce != kBagMax && item == 4) return sum_columns(row, first, last);
    for (int64_t c = 0; c < p.width; c += kBagBlock) {
      const int64_t n = min(p.width - c, kBagBlock);
      if (n == kBagBlock) reduce<true>(sum, first, last, c * item, n);
      else reduce<false>(sum, first, last, c * item, n);
      char* out = p.out + (b * p.width + c) * item;
      if constexpr (sizeof(T) == 4) store_f32(out, item, sum, n, p.dtype);
      else memcpy(out, sum, size_t(n * item));
    }
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(bag_reduce)(const void* plan, int64_t begin, int64_t end) noexcept {
  const BagPlan& p = *static_cast<const BagPlan*>(plan);
  if (p.dtype == TT_F64) {
    for (int64_t b = begin; b < end; b++) BagRows<double>{p}.bag(b);
  } else {
    for (int64_t b = begin; b < end; b++) BagRows<float>{p}.bag(b);
  }
  return TT_OK;
}

TT_ENTRY_END
