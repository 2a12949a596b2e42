// Shifts of 8- and 16-bit integers, as narrow.cpp has other operators: in another file, so that
// programs without them hold none.
#include "kernels/cpu/elementwise/narrow.h"

TT_ISA_BEGIN

// Integers of twice the size, two to a lane: the first of each pair and the second one.
template <class T> struct WiderOf;
template <> struct WiderOf<int8_t> { using type = int16_t; };
template <> struct WiderOf<int16_t> { using type = int32_t; };

// Whether lanes of this size can be shifted by different numbers.
template <class T> constexpr bool kShiftsLanes = sizeof(T) == 4 ||
                                                 (sizeof(T) == 2 && TT_VEC_BYTES != 32);

// A shift by less than 0, or by the width or more, gives 0 (left) or the sign (right). Unsigned
// numbers are those of wider lanes that are not negative.
template <class T>
TT_INLINE Vec<T> shifted(Vec<T> a, Vec<T> b, bool left, bool is_unsigned = false) {
  using Words = Vec<Unsigned<T>>;
  if constexpr (kShiftsLanes<T>) {
    constexpr T kMaxShift = T(8 * sizeof(T) - 1);
    const auto is_over = Words(b) > Unsigned<T>(kMaxShift);  // or negative
    const Vec<T> by = chosen(Vec<T>(is_over), splat(kMaxShift), b);
    if (!left) return a >> by;
    return chosen(Vec<T>(is_over), Vec<T>{}, Vec<T>(Words(a) << Words(by)));
  } else {
    using W = typename WiderOf<T>::type;
    using Wide = Vec<Unsigned<W>>;
    constexpr int kBits = 8 * sizeof(T);
    const auto first = [=](Vec<T> x) TT_INLINE_BODY {
      const Wide high = Wide(x) << kBits;
      return is_unsigned ? Vec<W>(high >> kBits) : Vec<W>(high) >> kBits;
    };
    const auto second = [=](Vec<T> x) TT_INLINE_BODY {
      return is_unsigned ? Vec<W>(Wide(x) >> kBits) : Vec<W>(x) >> kBits;
    };
    const Vec<W> even = shifted<W>(first(a), first(b), left);
    const Vec<W> odd = shifted<W>(second(a), second(b), left);
    const Unsigned<W> mask = Unsigned<W>((1u << kBits) - 1);
    return Vec<T>((Wide(even) & mask) | Wide(odd) << kBits);
  }
}

// n: a multiple of the lanes.
template <class T> TT_INLINE void shift_integers(bool left, bool is_unsigned, char* out,
                                                 const char* a, const char* b, int64_t n) {
  auto* o = reinterpret_cast<T*>(out);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  for (int64_t i = 0; i < n; i += kLanes<T>)
    store(o + i, shifted<T>(load(x + i), load(y + i), left, is_unsigned));
}
TT_NOINLINE void run_whole_shift(int32_t dtype, bool left, char* out, const char* a, const char* b,
                                 int64_t n) {
  if (dtype == TT_I16) return shift_integers<int16_t>(left, false, out, a, b, n);
  if (dtype == TT_I8) return shift_integers<int8_t>(left, false, out, a, b, n);
  shift_integers<int8_t>(left, true, out, a, b, n);
}

// The dtypes that the loop reads and writes, as for run_elementwise; 0 if there is no loop.
uint32_t shift_dtypes(const ElementPlan& plan) {
  const int32_t dtype = plan.dtype[0];
  if (dtype != TT_U8 && dtype != TT_I8 && dtype != TT_I16) return 0;
  if (plan.compute != (dtype == TT_U8 ? TT_U8 : TT_I32)) return 0;
  if (plan.dtype[1] != dtype || plan.dtype[2] != dtype) return 0;
  return uint32_t(dtype) * 0x010101u;
}

TT_ISA_END

TT_ENTRY_BEGIN

void run_narrow_shift_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                            const char* b, int64_t n) noexcept {
  const bool left = op == NarrowOp::kLeftShift;
  const int32_t dtype = plan.dtype[0];
  const int64_t item = kItemSize[dtype];
  // The last elements are padded to a vector.
  const int64_t step = TT_VEC_BYTES / item;
  const int64_t rest = n % step;
  const int64_t whole = n - rest;
  if (whole) run_whole_shift(dtype, left, out, a, b, whole);
  if (!rest) return;
  alignas(64) char padded[2][TT_VEC_BYTES];
  convert_block(padded[0], dtype, a + whole * item, dtype, rest);
  convert_block(padded[1], dtype, b + whole * item, dtype, rest);
  run_whole_shift(dtype, left, padded[0], padded[0], padded[1], step);
  convert_block(out + whole * item, dtype, padded[0], dtype, rest);
}

int32_t run_narrow_shift(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                         uint32_t native, NarrowOp, Block narrow) noexcept {
  const uint32_t dtypes = shift_dtypes(plan);
  if (dtypes) return run_indirect(plan, begin, end, narrow, dtypes);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ENTRY_END
