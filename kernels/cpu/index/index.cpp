// index_get: b = a[index]. index_put: a[index] = b. index_accumulate: a[index] += b. index_combine:
// a[index] = their product, maximum or minimum.
//
// A nest of dimensions with strides in a, b and index; the index i at a position moves the element
// of a by i * a_step bytes. Dimension 0 is the loop (Move::each, Move::run), the others are counted
// (run_nest). Writes are divided among threads by ranges of i (p.range), so that no two threads
// write the same element and sums have one order; each unit then reads all indices and keeps its
// own (Range::find).
#include "kernels/cpu/index/index.h"

#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/positions.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/index_plan.h"

TT_ISA_BEGIN

constexpr int64_t kIndexBlock = 256;

struct Bits128 {
  uint64_t lo, hi;
};

// Another thread may write the indices meanwhile: each is read once, then checked and used.
template <class I> TT_INLINE int64_t read_index(const I* at) { return atomic_load(at, kRelaxed); }

// Converts an index i to a byte offset: i * step, i < 0 counting from the end. An index that
// another thread changed to one out of range counts as 0. size 0: the indices are byte offsets,
// which no one else writes. stride: of a along dimension 0.
struct Place {
  int64_t size, step, stride;
  int32_t* outside;
  TT_INLINE void note() const {
    if (outside) atomic_store(outside, 1, kRelaxed);
  }
  TT_INLINE bool inside(int64_t i) const { return uint64_t(i) <= uint64_t(size) - 1; }
  TT_INLINE int64_t of(int64_t i) const {
    int64_t v = i + (i >> 63 & size);
    if (TT_UNLIKELY(!inside(v))) {
      v = 0;
      TT_SCALAR_LOOP;  // a branch
    }
    return v * step;
  }
};

// Calls f(pointer in a, pointer in b) for n elements. The first loop serves until the first index
// that is not in [0, size), and computes less.
template <class F> TT_INLINE void for_places(char* a, char* b, const int64_t* index, Place place,
                                             int64_t sb, int64_t n, const F& f) {
  const int64_t* const end = index + n;
  for (; index != end; index++, a += place.stride, b += sb) {
    const int64_t i = read_index(index);
    if (TT_UNLIKELY(!place.inside(i))) break;
    f(a + i * place.step, b);
    TT_SCALAR_LOOP;
  }
  if (TT_UNLIKELY(index != end)) place.note();
  for (; index != end; index++, a += place.stride, b += sb) {
    f(a + place.of(read_index(index)), b);
    TT_SCALAR_LOOP;
  }
}

// Calls f(element of a, element of b) for as many of n elements of dense vectors as come before an
// index that is not in [0, size), four at a time. Returns their number.
template <class E, class F>
TT_INLINE int64_t for_dense(E* a, E* b, const int64_t* index, Place place, int64_t n, const F& f) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    int64_t i[4];
    bool inside = true;
    TT_UNROLL
    for (int j = 0; j < 4; j++) {
      i[j] = read_index(index + k + j);
      inside &= place.inside(i[j]);
    }
    if (TT_UNLIKELY(!inside)) break;
    TT_UNROLL
    for (int j = 0; j < 4; j++) {
      f(a + i[j], b + k + j);
      TT_SCALAR_LOOP;
    }
  }
  return k;
}

// A move between a and b.
//   each: n elements, a + k * place.stride + offset of index[k] and b + k * sb
//   run:  n elements of one index, strides sa and sb in bytes
//   some: the elements k = at[0], at[1], … of each, place.stride being 0; writes only
struct Move {
  void (*each)(char* a, char* b, const int64_t* index, Place place, int64_t sb, int64_t n) noexcept;
  void (*run)(char* a, int64_t sa, char* b, int64_t sb, int64_t n) noexcept;
  void (*some)(char* a, char* b, const int64_t* index, Place place, int64_t sb, int64_t n,
               const int32_t* at) noexcept;
};

template <class E> struct Get {
  static void each(char* a, char* b, const int64_t* index, Place place, int64_t sb,
                   int64_t n) noexcept {
    for_places(a, b, index, place, sb, n, [](char* x, char* y) TT_INLINE_BODY {
      *reinterpret_cast<E*>(y) = *reinterpret_cast<const E*>(x);
    });
  }
  static void run(char* a, int64_t sa, char* b, int64_t sb, int64_t n) noexcept {
    if (sa == int64_t(sizeof(E)) && sb == sa) {
      memcpy(b, a, size_t(n) * sizeof(E));
      return;
    }
    for (int64_t k = 0; k < n; k++) {
      *reinterpret_cast<E*>(b + k * sb) = *reinterpret_cast<const E*>(a + k * sa);
      TT_SCALAR_LOOP;
    }
  }
};

template <class E> struct Put {
  static void each(char* a, char* b, const int64_t* index, Place place, int64_t sb,
                   int64_t n) noexcept {
    for_places(a, b, index, place, sb, n, [](char* x, char* y) TT_INLINE_BODY {
      *reinterpret_cast<E*>(x) = *reinterpret_cast<const E*>(y);
    });
  }
  static void run(char* a, int64_t sa, char* b, int64_t sb, int64_t n) noexcept {
    Get<E>::run(b, sb, a, sa, n);
  }
  static void some(char* a, char* b, const int64_t* index, Place place, int64_t sb, int64_t n,
                   const int32_t* at) noexcept {
    for (int64_t k = 0; k < n; k++) {
      *reinterpret_cast<E*>(a + place.of(read_index(index + at[k]))) =
          *reinterpret_cast<const E*>(b + at[k] * sb);
      TT_SCALAR_LOOP;
    }
  }
};

struct Sum {
  TT_INLINE static void to(Bool* a, Bool b) { a->bits = uint8_t(a->bits | b.bits); }
  TT_INLINE static void to(uint8_t* a, uint8_t b) { *a = uint8_t(*a + b); }
  TT_INLINE static void to(uint16_t* a, uint16_t b) { *a = uint16_t(*a + b); }
  TT_INLINE static void to(uint32_t* a, uint32_t b) { *a += b; }
  TT_INLINE static void to(uint64_t* a, uint64_t b) { *a += b; }
  TT_INLINE static void to(float* a, float b) { *a += b; }
  TT_INLINE static void to(double* a, double b) { *a += b; }
  TT_INLINE static void to(F16* a, F16 b) { *a = narrow_f16(widen(*a) + widen(b)); }
  TT_INLINE static void to(BF16* a, BF16 b) { *a = narrow_bf16(widen(*a) + widen(b)); }
  template <class R> TT_INLINE static void to(Complex<R>* a, Complex<R> b) {
    a->re += b.re;
    a->im += b.im;
  }
};

struct Product {
  TT_INLINE static void to(Bool* a, Bool b) { a->bits = uint8_t(a->bits & b.bits); }
  TT_INLINE static void to(F16* a, F16 b) { *a = narrow_f16(widen(*a) * widen(b)); }
  TT_INLINE static void to(BF16* a, BF16 b) { *a = narrow_bf16(widen(*a) * widen(b)); }
  template <class R> TT_INLINE static void to(Complex<R>* a, Complex<R> b) {
    const Complex<R> x = *a;
    a->re = x.re * b.re - x.im * b.im;
    a->im = x.re * b.im + x.im * b.re;
  }
  TT_INLINE static void to(uint16_t* a, uint16_t b) { *a = uint16_t(uint32_t(*a) * b); }
  template <class T> TT_INLINE static void to(T* a, T b) { *a = T(*a * b); }
};

TT_INLINE float wide_of(F16 x) { return widen(x); }
TT_INLINE float wide_of(BF16 x) { return widen(x); }
[[maybe_unused]] TT_INLINE uint8_t wide_of(Bool x) { return x.bits; }  // in the baseline
template <class T> TT_INLINE T wide_of(T x) { return x; }

// The largest, or the smallest; nan stays.
template <bool kMax> struct Extreme {
  template <class T> TT_INLINE static void to(T* a, T b) {
    const auto x = wide_of(*a);
    const auto y = wide_of(b);
    const bool stays = kMax ? y <= x : y >= x;  // false if one is nan: a single comparison
    if (TT_UNLIKELY(!stays) && x == x) *a = b;
  }
};

// Whether elements that are dense are worth a loop of their own, which takes memory, too.
template <class E> constexpr bool kDenseLoop = false;
template <> constexpr bool kDenseLoop<float> = true;

// Whether rows of these elements are worth vectors, which take memory in every program.
template <class E> constexpr bool kVectorRows = false;
template <> constexpr bool kVectorRows<float> = true;
template <> constexpr bool kVectorRows<double> = true;
template <> constexpr bool kVectorRows<F16> = true;
template <> constexpr bool kVectorRows<BF16> = true;
template <> constexpr bool kVectorRows<uint32_t> = true;
template <> constexpr bool kVectorRows<uint64_t> = true;

template <class E, class Op> struct Combine {
  static void each(char* a, char* b, const int64_t* index, Place place, int64_t sb,
                   int64_t n) noexcept {
    constexpr int64_t kSize = sizeof(E);
    if (kDenseLoop<E> && place.step == kSize && place.stride == 0 && sb == kSize) {
      const int64_t done = for_dense(reinterpret_cast<E*>(a), reinterpret_cast<E*>(b), index, place,
                                     n, [](E* x, E* y) TT_INLINE_BODY { Op::to(x, *y); });
      b += done * kSize;
      index += done;
      n -= done;
    }
    for_places(a, b, index, place, sb, n, [](char* x, char* y) TT_INLINE_BODY {
      Op::to(reinterpret_cast<E*>(x), *reinterpret_cast<const E*>(y));
    });
  }
  static void run(char* a, int64_t sa, char* b, int64_t sb, int64_t n) noexcept {
    if (kVectorRows<E> && sa == int64_t(sizeof(E)) && sb == sa) {
      E* TT_RESTRICT x = reinterpret_cast<E*>(a);
      const E* TT_RESTRICT y = reinterpret_cast<const E*>(b);
      for (int64_t k = 0; k < n; k++) Op::to(x + k, y[k]);
      return;
    }
    for (int64_t k = 0; k < n; k++) {
      Op::to(reinterpret_cast<E*>(a + k * sa), *reinterpret_cast<const E*>(b + k * sb));
      TT_SCALAR_LOOP;
    }
  }
  static void some(char* a, char* b, const int64_t* index, Place place, int64_t sb, int64_t n,
                   const int32_t* at) noexcept {
    for (int64_t k = 0; k < n; k++) {
      Op::to(reinterpret_cast<E*>(a + place.of(read_index(index + at[k]))),
             *reinterpret_cast<const E*>(b + at[k] * sb));
      TT_SCALAR_LOOP;
    }
  }
};
template <class E> using Accumulate = Combine<E, Sum>;

// The range of i that a unit writes: [low, low + n); i < 0 counts as i + size.
struct Range {
  int64_t low, n, size;
  TT_INLINE bool holds(int64_t i) const {
    return uint64_t(i + (i < 0 ? size : 0)) - uint64_t(low) < uint64_t(n);
  }
  // Sets at[] to the k < count <= kIndexBlock whose index is in range, in order, and returns their
  // number. at has room for 3 more.
  TT_INLINE int64_t find(const int64_t* index, int64_t count, int32_t* at) const {
    int64_t found = 0, k = 0;
    if constexpr (kFindsPositions)
      for (; k + 4 <= count; k += 4) {
        const uint32_t held = held_of_four(index + k, low, n, size);
        store_positions(at + found, held, int32_t(k));
        found += count_ones(held);
      }
    for (; k < count; k++) {
      at[found] = int32_t(k);
      found += holds(read_index(index + k));
    }
    return found;
  }
};

// Writes the elements of dimension 0 whose index is in range.
TT_INLINE void put_run(const Move& move, const IndexPlan& p, const Range& range, char* a, char* b,
                       const char* index) {
  const Place place{p.index_size, p.a_step, p.a_stride[0], nullptr};
  const int64_t si = p.index_stride[0];
  const int64_t sb = p.b_stride[0];
  alignas(64) int64_t converted[kIndexBlock];
  int32_t at[kIndexBlock + 4];
  for (int64_t k = 0; k < p.size[0]; k += kIndexBlock) {
    const int64_t n = min(p.size[0] - k, kIndexBlock);
    const int64_t* block = reinterpret_cast<const int64_t*>(index + k * si);
    if (si != 8 || p.index_dtype != TT_I64) {
      load_i64(converted, index + k * si, si, n, p.index_dtype);
      block = converted;
    }
    move.some(a, b + k * sb, block, place, sb, range.find(block, n, at), at);
  }
}

// Runs units [begin, end): pieces of dimension p.split, or, if p.range is not 0, ranges of i.
TT_NOINLINE int32_t run_nest(const Move& move, const IndexPlan& p, int64_t begin, int64_t end) {
  const Range range{begin * p.range, (end - begin) * p.range, p.index_size};  // if p.range is not 0
  const int64_t from = p.range ? 0 : begin * p.piece;
  const int64_t all = p.size[p.split];
  const int64_t extent = p.range || end * p.piece > all ? all - from : (end - begin) * p.piece;
  if (extent <= 0) return TT_OK;
  int64_t size[kMaxPlanDims], at[kMaxPlanDims], rows = 1;
  for (int32_t d = 0; d < p.ndim; d++) {
    size[d] = d == p.split ? extent : p.size[d];
    at[d] = 0;
    if (d) rows *= size[d];
  }
  char* a = p.a + from * p.a_stride[p.split];
  char* b = p.b + from * p.b_stride[p.split];
  const char* index = p.index + from * p.index_stride[p.split];
  const Place place{p.index_size, p.a_step, p.a_stride[0], p.outside};
  const int64_t si = p.index_stride[0];
  const int64_t sb = p.b_stride[0];
  for (int64_t r = 0; r < rows; r++) {
    if (si == 0) {
      const int64_t i = p.index_dtype == TT_I64
                            ? read_index(reinterpret_cast<const int64_t*>(index))
                            : read_index(reinterpret_cast<const int32_t*>(index));
      if (!place.inside(i)) place.note();
      if (!p.range || range.holds(i)) move.run(a + place.of(i), p.a_stride[0], b, sb, size[0]);
    } else if (p.range) {
      put_run(move, p, range, a, b, index);
    } else if (si == 8 && p.index_dtype == TT_I64) {
      move.each(a, b, reinterpret_cast<const int64_t*>(index), place, sb, size[0]);
    } else {
      alignas(64) int64_t converted[kIndexBlock];
      for (int64_t k = 0; k < size[0]; k += kIndexBlock) {
        const int64_t n = min(size[0] - k, kIndexBlock);
        load_i64(converted, index + k * si, si, n, p.index_dtype);
        move.each(a + k * p.a_stride[0], b + k * sb, converted, place, sb, n);
      }
    }
    for (int32_t d = 1; d < p.ndim; d++) {
      a += p.a_stride[d];
      b += p.b_stride[d];
      index += p.index_stride[d];
      if (++at[d] < size[d]) break;
      a -= size[d] * p.a_stride[d];
      b -= size[d] * p.b_stride[d];
      index -= size[d] * p.index_stride[d];
      at[d] = 0;
    }
  }
  return TT_OK;
}

template <class M> constexpr auto some_of() -> decltype(Move::some) {
  if constexpr (requires { M::some; }) return M::some;
  else return nullptr;
}
template <class M> constexpr Move kMove = {M::each, M::run, some_of<M>()};

template <template <class> class M> inline const Move& move_of(int32_t dtype) {
  switch (kItemSize[dtype]) {
    case 1: return kMove<M<uint8_t>>;
    case 2: return kMove<M<uint16_t>>;
    case 4: return kMove<M<uint32_t>>;
    case 8: return kMove<M<uint64_t>>;
    default: return kMove<M<Bits128>>;
  }
}

// T, or in a build without the dtype a type that is there.
template <int32_t kDtype, class T> struct BuiltOf { using type = T; };
template <int32_t kDtype, class T>
requires(!is_built(kDtype)) struct BuiltOf<kDtype, T> {
  using type = float;
};
template <int32_t kDtype, class T> using Built = typename BuiltOf<kDtype, T>::type;

inline const Move& accumulation_of(int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return kMove<Accumulate<Bool>>;
    case TT_U8:
    case TT_I8: return kMove<Accumulate<uint8_t>>;
    case TT_U16:
    case TT_I16: return kMove<Accumulate<uint16_t>>;
    case TT_U32:
    case TT_I32: return kMove<Accumulate<uint32_t>>;
    case TT_U64:
    case TT_I64: return kMove<Accumulate<uint64_t>>;
    case TT_F16: return kMove<Accumulate<Built<TT_F16, F16>>>;
    case TT_BF16: return kMove<Accumulate<Built<TT_BF16, BF16>>>;
    case TT_F64: return kMove<Accumulate<Built<TT_F64, double>>>;
    case TT_C64: return kMove<Accumulate<Built<TT_C64, C64>>>;
    case TT_C128: return kMove<Accumulate<Built<TT_C128, C128>>>;
    default: return kMove<Accumulate<float>>;
  }
}

// E in the baseline, whose kernel combines integers for all instruction sets: one element at a time
// takes the same instructions.
template <class E> struct BaselineType { using type = float; };
template <class E>
requires(TT_VEC_BYTES <= 16) struct BaselineType<E> {
  using type = E;
};
template <class E> using Baseline = typename BaselineType<E>::type;

template <class Op> inline const Move& combination_of(int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return kMove<Combine<Baseline<Bool>, Op>>;
    case TT_U8: return kMove<Combine<Baseline<uint8_t>, Op>>;
    case TT_I8: return kMove<Combine<Baseline<int8_t>, Op>>;
    case TT_I16: return kMove<Combine<Baseline<int16_t>, Op>>;
    case TT_I32: return kMove<Combine<Baseline<int32_t>, Op>>;
    case TT_I64: return kMove<Combine<Baseline<int64_t>, Op>>;
    case TT_F16: return kMove<Combine<Built<TT_F16, F16>, Op>>;
    case TT_BF16: return kMove<Combine<Built<TT_BF16, BF16>, Op>>;
    case TT_F64: return kMove<Combine<Built<TT_F64, double>, Op>>;
    default: return kMove<Combine<float, Op>>;
  }
}
// Integers wrap: the sign does not matter.
inline const Move& product_of(int32_t dtype) {
  switch (dtype) {
    case TT_U8:
    case TT_I8: return kMove<Combine<Baseline<uint8_t>, Product>>;
    case TT_I16: return kMove<Combine<Baseline<uint16_t>, Product>>;
    case TT_I32: return kMove<Combine<Baseline<uint32_t>, Product>>;
    case TT_I64: return kMove<Combine<Baseline<uint64_t>, Product>>;
    case TT_C64: return kMove<Combine<Built<TT_C64, C64>, Product>>;
    case TT_C128: return kMove<Combine<Built<TT_C128, C128>, Product>>;
    case TT_BOOL: return kMove<Combine<Baseline<Bool>, Product>>;
    case TT_F16: return kMove<Combine<Built<TT_F16, F16>, Product>>;
    case TT_BF16: return kMove<Combine<Built<TT_BF16, BF16>, Product>>;
    case TT_F64: return kMove<Combine<Built<TT_F64, double>, Product>>;
    default: return kMove<Combine<float, Product>>;
  }
}
inline const Move& combination_of(int32_t combine, int32_t dtype) {
  if (combine == kCombineProduct) return product_of(dtype);
  return combine == kCombineMax ? combination_of<Extreme<true>>(dtype)
                                : combination_of<Extreme<false>>(dtype);
}

[[maybe_unused]] inline bool is_floating(int32_t dtype) {
  return dtype >= TT_F16 && dtype <= TT_C128;
}

TT_ISA_END

#if TT_VEC_BYTES > 16
namespace TT_NS::baseline {
int32_t index_combine(const void* plan, int64_t begin, int64_t end) noexcept;
}
#endif

TT_ENTRY_BEGIN

TT_KERNEL(index_get)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  return run_nest(move_of<Get>(p.dtype), p, begin, end);
}

TT_KERNEL(index_put)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  return run_nest(move_of<Put>(p.dtype), p, begin, end);
}

TT_KERNEL(index_accumulate)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  return run_nest(accumulation_of(p.dtype), p, begin, end);
}

TT_KERNEL(index_combine)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
#if TT_VEC_BYTES > 16
  if (!is_floating(p.dtype)) return baseline::index_combine(plan, begin, end);
#endif
  return run_nest(combination_of(p.combine, p.dtype), p, begin, end);
}

TT_ENTRY_END
