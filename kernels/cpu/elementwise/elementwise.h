// The elementwise engine: a functor becomes one loop per compute type (Block), over contiguous
// arrays of this type. A dense plan runs it directly; otherwise run_elementwise calls it block by
// block.
//
// A file <family>.cpp of this folder includes this header, the functors, and the generated list
// kernels/functors/gen/<family>.inc, each line of which defines one kernel (TT_ELEMENTWISE below).
// Constants of a file are linked together: <family>_long.cpp has the functors of many.
#pragma once

#include "kernels/cpu/elementwise/halves.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/functors/copy.h"
#include "kernels/functors/functor.h"

TT_ENTRY_BEGIN

// Computes n contiguous elements of native dtype; unused inputs are ignored. out may be an input;
// arrays do not overlap otherwise.
using Block = void (*)(const ElementPlan& plan, char* out, const char* a, const char* b,
                       const char* c, int64_t n);

// Computes rows of n contiguous elements each, with one element of an input for each row of the
// other input. From row to row are stride[0] bytes of out, stride[1] of rows, stride[2] of ones.
using RowsByOne = void (*)(const ElementPlan& plan, char* out, const char* rows, const char* ones,
                           const int64_t stride[3], int64_t n, int64_t n_rows);

// native: the dtypes that block reads and writes, 8 bits per operand, operand 0 lowest.
int32_t run_elementwise(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                        uint32_t native) noexcept;
// The same where operands are known not to be dense arrays of the type alone.
int32_t run_indirect(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                     uint32_t native) noexcept;
// Runs a block of doubles whatever the dtypes of the operands.
int32_t run_in_double(const ElementPlan& plan, int64_t begin, int64_t end, Block block) noexcept;
// Runs the first loop if input 2 has one element for each row of input 1 and of the output, the
// second one, unless it is NULL, if input 1 has one for each row of input 2. Returns whether one
// of them ran.
bool run_by_one(const ElementPlan& plan, int64_t begin, int64_t end, RowsByOne second_is_one,
                RowsByOne first_is_one, uint32_t native) noexcept;
// The copy kernel: any dtype to any dtype.
int32_t run_copy(const ElementPlan& plan, int64_t begin, int64_t end) noexcept;
// run_elementwise, or the block of 8- or 16-bit numbers if the operands are such and it has op.
int32_t run_narrow(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                   uint32_t native, NarrowOp op, Block narrow) noexcept;
void run_narrow_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a, const char* b,
                      int64_t n) noexcept;
// The same for functions of one number (narrow_functions.cpp).
int32_t run_narrow_function(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                            uint32_t native, NarrowOp op, Block narrow) noexcept;
void run_narrow_function_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                               int64_t n) noexcept;
// The same for functions of three numbers (narrow_three.cpp).
int32_t run_narrow_three(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                         uint32_t native, NarrowOp op, Block narrow) noexcept;
void run_narrow_three_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                            const char* b, const char* c, int64_t n) noexcept;
// The same for shifts (narrow_shifts.cpp).
int32_t run_narrow_shift(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                         uint32_t native, NarrowOp op, Block narrow) noexcept;
void run_narrow_shift_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                            const char* b, int64_t n) noexcept;
// Maps one function over n doubles, for functors with a kVector.
void map_function(VectorId id, char* out, const char* in, int64_t n) noexcept;
// The same of two arguments, for functors with a kPairVector. one_b: b is one double for all.
void map_pairs(PairVectorId id, char* out, const char* a, const char* b, bool one_b,
               int64_t n) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

template <class... Ts> struct Set {};
struct SetAll {};
using Set_float = Set<float, double, c64, c128>;
using Set_real_float = Set<float, double>;
using Set_arith = Set<float, double, int32_t, int64_t, c64, c128>;
using Set_real = Set<float, double, int32_t, int64_t>;
using Set_bitwise = Set<int64_t, int32_t, uint8_t, bool>;
using Set_logical = Set<bool>;
using Set_all = SetAll;
enum OutKind { kOut_same, kOut_bool };

// Bool is stored as a byte; nonzero is true.
template <class T> struct StoredOf { using type = T; };
template <> struct StoredOf<bool> { using type = uint8_t; };
template <class T, OutKind> struct OutOf { using type = typename StoredOf<T>::type; };
template <class T> struct OutOf<T, kOut_bool> { using type = uint8_t; };

template <class F> constexpr uint32_t bool_inputs() {
  if constexpr (requires { F::kBoolIn; }) return F::kBoolIn;
  else return 0;
}

// The first n elements of a vector: pad copies them to a whole one, whose others are 0.
template <class T> TT_INLINE const char* pad(T* whole, const char* in, int64_t n) {
  store(whole, load(reinterpret_cast<const T*>(in), Part<T>(int(n))));
  return reinterpret_cast<const char*>(whole);
}
template <class T> TT_INLINE void unpad(char* out, const T* whole, int64_t n) {
  store(reinterpret_cast<T*>(out), load(whole), Part<T>(int(n)));
}

// Not for the least x86 processors, for the sake of size.
constexpr bool kNarrowLoops = !TT_MINIMAL && (TT_VEC_BYTES > 16 || !TT_SSE2);

// run_elementwise, of narrow operands by their own loop.
template <class F> void narrow_block(const ElementPlan& plan, char* out, const char* a,
                                     const char* b, const char* c, int64_t n) {
  if constexpr (has_three_inputs(F::kNarrow))
    run_narrow_three_block(plan, F::kNarrow, out, a, b, c, n);
  else if constexpr (is_narrow_shift(F::kNarrow))
    run_narrow_shift_block(plan, F::kNarrow, out, a, b, n);
  else if constexpr (is_narrow_function(F::kNarrow))
    run_narrow_function_block(plan, F::kNarrow, out, a, n);
  else run_narrow_block(plan, F::kNarrow, out, a, b, n);
}
template <class F> constexpr auto run_narrow_of() {
  if constexpr (has_three_inputs(F::kNarrow)) return run_narrow_three;
  else if constexpr (is_narrow_shift(F::kNarrow)) return run_narrow_shift;
  else return is_narrow_function(F::kNarrow) ? run_narrow_function : run_narrow;
}
template <class F> TT_INLINE int32_t run_general(const ElementPlan& plan, int64_t begin,
                                                 int64_t end, Block block, uint32_t native) {
  if constexpr (kNarrowLoops && requires { F::kNarrow; })
    return run_narrow_of<F>()(plan, begin, end, block, native, F::kNarrow, narrow_block<F>);
  else return run_elementwise(plan, begin, end, block, native);
}

// The one value of a test of integers.
template <bool kValue> struct Constant {
  template <class T> static TT_FN T op(const Param<T>&) { return T(kValue); }
};

template <class F, class T, int kArity, OutKind kOut, bool kMoves> struct Loop {
  template <int i> static constexpr bool is_bool = (bool_inputs<F>() >> i & 1) || kIsSame<T, bool>;
  using Out = typename OutOf<T, kOut>::type;
  static constexpr int64_t kOutSize = sizeof(Out);
  template <int i> static constexpr int64_t kInSize = is_bool<i> ? 1 : sizeof(T);

  // The scalars of the call. Functors of the set `all` (kMoves) know T by its size only: theirs are
  // encoded as the plan's dtype.
  static TT_INLINE Param<T> param(const ElementPlan& plan) {
    if constexpr (kMoves) {
      Param<T> p = {};
      for (int i = 0; i < 2; i++) {
        p.has[i] = plan.param[i].kind != 0;
        if (p.has[i]) encode_scalar(&p.v[i], plan.compute, plan.param[i]);
      }
      return p;
    } else {
      return load_param<T>(plan.param);
    }
  }

  template <int i> static TT_INLINE auto load(const char* p, int64_t k) {
    if constexpr (is_bool<i>) return reinterpret_cast<const uint8_t*>(p)[k] != 0;
    else return reinterpret_cast<const T*>(p)[k];
  }

  // Long bodies are compiled once, as a loop over whole vectors; the rest of an array is padded to
  // one, so that no value depends on its position.
  template <class G>
  static constexpr bool kWhole = TT_VEC_BYTES > 16 &&
                                 ((kIsSame<T, float> && requires { G::kLong; }) ||
                                  (kIsSame<T, double> && requires { G::kLongInDouble; }));

  template <class G> static TT_INLINE void loop(const Param<T>& p, char* out, const char* a,
                                                const char* b, const char* c, int64_t n) {
    auto* o = reinterpret_cast<Out*>(out);
    if constexpr (kWhole<G>)
      if (n <= 0 || n % kLanes<T>) TT_UNREACHABLE();
    TT_VECTORIZE for (int64_t i = 0; i < n; i++) {
      if constexpr (sizeof(T) == 16 && (kMoves || kOut == kOut_bool)) TT_SCALAR_LOOP;
      if constexpr (kArity == 0) o[i] = G::template op<T>(p);
      else if constexpr (kArity == 1) o[i] = G::op(load<1>(a, i), p);
      else if constexpr (kArity == 2) o[i] = G::op(load<1>(a, i), load<2>(b, i), p);
      else o[i] = G::op(load<1>(a, i), load<2>(b, i), load<3>(c, i), p);
    }
  }

#if TT_VECTOR_MATH
  // n: a multiple of math::kLanes.
  static TT_INLINE void lanes_loop(char* out, const char* a, const char* b, int64_t n) {
    auto* o = reinterpret_cast<float*>(out);
    const auto* s = reinterpret_cast<const float*>(a);
    const auto* t = reinterpret_cast<const float*>(b);
    for (int64_t i = 0; i < n; i += math::kLanes) {
      if constexpr (kArity == 2)
        math::store_lanes(o + i, F::lanes(math::load_lanes(s + i), math::load_lanes(t + i)));
      else math::store_lanes(o + i, F::lanes(math::load_lanes(s + i)));
    }
  }
  static constexpr bool kHasOneLanes = requires { F::lanes(math::F32v{}); };
  static constexpr bool kHasTwoLanes = requires { F::lanes(math::F32v{}, math::F32v{}); };
  static constexpr bool kHasLanes = kIsSame<T, float> && (kHasOneLanes || kHasTwoLanes);

  // n: a multiple of the halves of a vector.
  static TT_INLINE void halves_loop(bool is_bf16, char* out, const char* a, const char* b,
                                    int64_t n) {
    using V = Vec<float>;
    for (int64_t i = 0; i < 2 * n; i += TT_VEC_BYTES) {
      const Floats x = load_halves(is_bf16, a + i);
      Floats result;
      if constexpr (kArity == 2) {
        const Floats y = load_halves(is_bf16, b + i);
        result = {V(F::lanes(math::F32v(x.low), math::F32v(y.low))),
                  V(F::lanes(math::F32v(x.high), math::F32v(y.high)))};
      } else {
        result = {V(F::lanes(math::F32v(x.low))), V(F::lanes(math::F32v(x.high)))};
      }
      store_halves(is_bf16, out + i, result);
    }
  }
  // A Block of halves, as floats that are rounded once.
  template <bool kIsBf16> static TT_NOINLINE void halves_block(const ElementPlan&, char* out,
                                                               const char* a, const char* b,
                                                               const char*, int64_t n) {
    constexpr int64_t kStep = TT_VEC_BYTES / 2;
    alignas(64) char padded[3][TT_VEC_BYTES] = {};
    const int64_t rest = n % kStep;
    int64_t whole = n - rest;
    const size_t rest_bytes = size_t(rest) * 2;
    char* to = out;
    for (;;) {
      if (whole == 0) {
        if (rest == 0) return;
        memcpy(padded[1], a + (n - rest) * 2, rest_bytes);
        a = padded[1];
        if constexpr (kArity == 2) {
          memcpy(padded[2], b + (n - rest) * 2, rest_bytes);
          b = padded[2];
        }
        to = padded[0];
        whole = kStep;
      }
      halves_loop(kIsBf16, to, a, b, whole);
      if (to != out) break;
      whole = 0;
    }
    memcpy(out + (n - rest) * 2, padded[0], rest_bytes);
  }
  // Runs this loop if all operands are halves of one dtype.
  static TT_INLINE bool ran_as_halves(const ElementPlan& plan, int64_t begin, int64_t end) {
    if constexpr (kHasLanes) {
      const int32_t dtype = plan.dtype[0];
      if (plan.dense || (dtype != TT_F16 && dtype != TT_BF16)) return false;
      for (int k = 1; k <= kArity; k++)
        if (plan.dtype[k] != dtype) return false;
      const Block of_halves = dtype == TT_BF16 ? halves_block<true> : halves_block<false>;
      run_indirect(plan, begin, end, of_halves, uint32_t(dtype) * 0x01010101u);
      return true;
    } else {
      return false;
    }
  }
#else
  static TT_INLINE void lanes_loop(char*, const char*, const char*, int64_t) {}
  static TT_INLINE bool ran_as_halves(const ElementPlan&, int64_t, int64_t) { return false; }
  static constexpr bool kHasLanes = false;
#endif

  // Functors of vectors of doubles.
  template <class G> static constexpr bool kHasWide = kIsSame<T, double>&& requires {
    G::wide(Vec<double>{}, Param<double>{});
  };
  template <class G>
  static TT_INLINE void wide_loop(const Param<double>& p, char* out, const char* a, int64_t n) {
    auto* o = reinterpret_cast<double*>(out);
    const auto* s = reinterpret_cast<const double*>(a);
    for (int64_t i = 0; i < n; i += kLanes<double>)
      store(o + i, G::wide(TT_NS::TT_ISA::load(s + i), p));
  }

  static constexpr bool kHasVector = kIsSame<T, double> && requires { F::kVector; };

  template <class G> static TT_INLINE void whole_vectors(const Param<T>& p, char* out,
                                                         const char* a, const char* b,
                                                         const char* c, int64_t n) {
    constexpr int64_t kWidth = kLanes<T>;
    alignas(TT_VEC_BYTES) T padded[kMaxOperands][kWidth];
    const int64_t rest = n & (kWidth - 1);
    const int64_t end = (n - rest) * int64_t(sizeof(T));
    int64_t whole = n - rest;
    char* to = out;
    for (;;) {
      if (whole == 0) {
        if (rest == 0) return;
        if constexpr (kArity >= 1) a = pad(padded[1], a + end, rest);
        if constexpr (kArity >= 2) b = pad(padded[2], b + end, rest);
        if constexpr (kArity >= 3) c = pad(padded[3], c + end, rest);
        to = reinterpret_cast<char*>(padded[0]);
        whole = kWidth;
      }
      if constexpr (kHasWide<G>) wide_loop<G>(p, to, a, whole);
      else if constexpr (kHasLanes) lanes_loop(to, a, b, whole);
      else loop<G>(p, to, a, b, c, whole);
      if (to != out) return unpad(out + end, padded[0], rest);
      whole = 0;
    }
  }
  // A function of two doubles; where there is one operand, the second one is the call's scalar.
  template <class G> static constexpr bool kHasPairVector = kIsSame<T, double>&& requires {
    G::kPairVector;
  };
  template <class G> static TT_INLINE void run_loop(const Param<T>& p, char* out, const char* a,
                                                    const char* b, const char* c, int64_t n) {
    if constexpr (kHasPairVector<G>)
      map_pairs(G::kPairVector, out, a, kArity == 2 ? b : reinterpret_cast<const char*>(&p.v[0]),
                kArity == 1, n);
    else if constexpr (kWhole<G> || kHasWide<G>) whole_vectors<G>(p, out, a, b, c, n);
    else loop<G>(p, out, a, b, c, n);
  }

  // For functors with is_hard: a block with a hard element is computed by a scalar loop. An easy
  // element has the same value in both loops.
  static constexpr bool kHasHard = [] {
    if constexpr (kArity == 2) return requires {
        F::is_hard(T{}, T{});
      };
    else return requires {
        F::is_hard(T{});
      };
  }();
  static TT_INLINE bool is_hard(const char* a, const char* b, int64_t i) {
    if constexpr (kArity == 2) return F::is_hard(load<1>(a, i), load<2>(b, i));
    else return F::is_hard(load<1>(a, i));
  }
  static TT_INLINE T either(const Param<T>& p, const char* a, const char* b, int64_t i) {
    const T x = load<1>(a, i);
    const bool hard = is_hard(a, b, i);
    if constexpr (kArity == 2) {
      const T y = load<2>(b, i);
      return hard ? F::op_hard(x, y) : F::op(x, y, p);
    } else {
      return hard ? F::op_hard(x) : F::op(x, p);
    }
  }
  static TT_INLINE void checked_loop(const Param<T>& p, char* out, const char* a, const char* b,
                                     int64_t n) {
    constexpr int64_t kItem = sizeof(T);
    for (int64_t m; n > 0; n -= m, a += m * kItem, out += m * kItem) {
      m = min(n, kBlock);
      uint32_t hard = 0;
      TT_VECTORIZE for (int64_t i = 0; i < m; i++) hard |= uint32_t(is_hard(a, b, i));
      if (TT_LIKELY(!hard)) run_loop<F>(p, out, a, b, nullptr, m);
      else
        for (int64_t i = 0; i < m; i++) reinterpret_cast<T*>(out)[i] = either(p, a, b, i);
      if constexpr (kArity == 2) b += m * kItem;
    }
  }

  static TT_NOINLINE void block(const ElementPlan& plan, char* out, const char* a, const char* b,
                                const char* c, int64_t n) {
    if constexpr (kHasVector) return map_function(F::kVector, out, a, n);
    Param<T> p = param(plan);
    if constexpr (requires { F::prepare(p); }) F::prepare(p);
    if constexpr (kHasHard) checked_loop(p, out, a, b, n);
    else if constexpr (requires { F::pick(p, [](auto) {}); })
      F::pick(p, [&](auto g) TT_INLINE_BODY { run_loop<decltype(g)>(p, out, a, b, c, n); });
    else run_loop<F>(p, out, a, b, c, n);
  }

  // A RowsByOne. kFirst: of input 1, in place of input 2, there is one element for each row.
  template <bool kFirst> static TT_NOINLINE void rows_by_one(const ElementPlan& plan, char* out,
                                                             const char* rows, const char* ones,
                                                             const int64_t stride[3], int64_t n,
                                                             int64_t n_rows) {
    Param<T> p = param(plan);
    if constexpr (requires { F::prepare(p); }) F::prepare(p);
    for (int64_t r = 0; r < n_rows; r++) {
      auto* o = reinterpret_cast<Out*>(out);
      const T one = load<2>(ones, 0);
      TT_VECTORIZE for (int64_t i = 0; i < n; i++) {
        const T of_row = load<1>(rows, i);
        o[i] = kFirst ? F::op(one, of_row, p) : F::op(of_row, one, p);
      }
      out += stride[0];
      rows += stride[1];
      ones += stride[2];
    }
  }

  // run_by_one() of a functor that has such a loop.
  static TT_INLINE bool ran_by_one(const ElementPlan& plan, int64_t begin, int64_t end,
                                   int32_t dtype) {
    constexpr bool kFloats = kIsSame<T, float> || kIsSame<T, double>;
    if constexpr (kFloats && requires { F::kRowsByOne; }) {
      if (plan.dense) return false;
      RowsByOne first_is_one = nullptr;
      if constexpr (!requires { F::kCommutes; }) first_is_one = rows_by_one<true>;
      else if (!plan.param[0].kind) first_is_one = rows_by_one<false>;
      return run_by_one(plan, begin, end, rows_by_one<false>, first_is_one, native(dtype));
    } else {
      return false;
    }
  }

  static TT_INLINE constexpr uint32_t native(int32_t dtype) {
    uint32_t types = uint32_t(kOut == kOut_bool ? TT_BOOL : dtype);
    types |= uint32_t(is_bool<1> ? TT_BOOL : dtype) << 8;
    types |= uint32_t(is_bool<2> ? TT_BOOL : dtype) << 16;
    return types | uint32_t(is_bool<3> ? TT_BOOL : dtype) << 24;
  }

  // dtype: the compute dtype, a constant unless the functor moves values.
  static TT_INLINE int32_t run(const ElementPlan& plan, int64_t begin, int64_t end, int32_t dtype) {
    bool direct = plan.dense && plan.n <= kStreamCandidate / kOutSize;
    for (int i = 1; i <= kArity; i++) direct = direct && !plan.scalar_in[i];
    if (TT_UNLIKELY(!direct)) {
      if (ran_by_one(plan, begin, end, dtype)) return TT_OK;
      if (ran_as_halves(plan, begin, end)) return TT_OK;
      return run_general<F>(plan, begin, end, block, native(dtype));
    }
    const char* in[4] = {};
    if constexpr (kArity >= 1) in[1] = plan.ptr[1] + begin * kInSize<1>;
    if constexpr (kArity >= 2) in[2] = plan.ptr[2] + begin * kInSize<2>;
    if constexpr (kArity >= 3) in[3] = plan.ptr[3] + begin * kInSize<3>;
    block(plan, plan.ptr[0] + begin * kOutSize, in[1], in[2], in[3], end - begin);
    return TT_OK;
  }
};

// Logical operators: operands of any dtype are converted to bool. Bytes are truth values as they
// are.
template <class F, int kArity, OutKind kOut>
TT_INLINE int32_t dispatch(Set<bool>, const ElementPlan& plan, int64_t begin, int64_t end) {
  using OfBools = Loop<F, bool, kArity, kOut, false>;
  if (plan.dense) return OfBools::run(plan, begin, end, TT_BOOL);
  uint32_t native = OfBools::native(TT_BOOL);
  for (int k = 1; k <= kArity; k++) {
    const bool is_byte = plan.dtype[k] == TT_U8 || plan.dtype[k] == TT_I8;
    if (is_byte) native ^= uint32_t(plan.dtype[k] ^ TT_BOOL) << (8 * k);
  }
  return run_elementwise(plan, begin, end, OfBools::block, native);
}

// The first compute type is the usual one, whose dense loop is called directly.
template <class F, int kArity, OutKind kOut, class First, class... Rest>
TT_INLINE int32_t dispatch(Set<First, Rest...>, const ElementPlan& plan, int64_t begin,
                           int64_t end) {
  constexpr int32_t kUsual = Traits<First>::kDtype;
  if constexpr (requires { typename F::OfFloats; }) {
    using OfFloats = Loop<typename F::OfFloats, double, kArity, kOut, false>;
    if (is_dtype(plan.compute, TT_F32)) return run_in_double(plan, begin, end, OfFloats::block);
  } else if (is_dtype(plan.compute, kUsual)) {
    return Loop<FunctorFor<F, First>, First, kArity, kOut, false>::run(plan, begin, end, kUsual);
  }
  if constexpr (requires { F::kOfIntegers; }) {
    if (is_dtype(plan.compute, TT_I32) || is_dtype(plan.compute, TT_I64)) {
      ElementPlan result = plan;
      result.n_operands = 1;
      using OfNone = Loop<Constant<F::kOfIntegers>, bool, 0, kOut, false>;
      return run_elementwise(result, begin, end, OfNone::block, OfNone::native(TT_BOOL));
    }
  }
  Block block = nullptr;
  uint32_t native = 0;
  bool ran = false;
  const auto pick_if = [&]<class T>(T) TT_INLINE_BODY {
    if constexpr (kIsInt<T> && requires { F::kOfIntegers; }) {
      return false;
    } else {
      using OfT = Loop<FunctorFor<F, T>, T, kArity, kOut, false>;
      constexpr int32_t kDtype = Traits<T>::kDtype;
      if (!is_dtype(plan.compute, kDtype)) return false;
      block = OfT::block;
      native = OfT::native(kDtype);
      ran = OfT::ran_by_one(plan, begin, end, kDtype);
      return true;
    }
  };
  (void)(pick_if(Rest{}) || ...);
  if (ran) return TT_OK;
  return block ? run_general<F>(plan, begin, end, block, native) : TT_INTERNAL;
}

template <class F, int kArity, OutKind kOut>
TT_INLINE int32_t dispatch(SetAll, const ElementPlan& plan, int64_t begin, int64_t end) {
  if constexpr (kIsSame<F, Copy>) return run_copy(plan, begin, end);
  const int32_t dtype = plan.compute;
  const int32_t item = kItemSize[dtype & 15];
  if (item == 4) return Loop<F, uint32_t, kArity, kOut, true>::run(plan, begin, end, dtype);
  Block block = nullptr;
  const auto pick_if = [&]<class T>(T) TT_INLINE_BODY {
    if (item != int32_t(sizeof(T))) return false;
    block = Loop<F, T, kArity, kOut, true>::block;
    return true;
  };
  if constexpr (is_built(TT_C128)) pick_if(Bytes16{});
  (void)(pick_if(uint8_t{}) || pick_if(uint16_t{}) || pick_if(uint64_t{}));
  if (!block) return TT_INTERNAL;
  // Which operands are bool is the same for every T.
  const uint32_t native = Loop<F, uint8_t, kArity, kOut, true>::native(dtype);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ISA_END

// Defines a kernel: its name, functor, number of inputs, compute set (Set_…) and output (same or
// bool).
#define TT_ELEMENTWISE(name, functor, arity, compute_set, out_kind)               \
  TT_KERNEL(name)(const void* plan, int64_t begin, int64_t end) noexcept {        \
    return dispatch<functor, arity, kOut_##out_kind>(                             \
        Set_##compute_set{}, *static_cast<const ElementPlan*>(plan), begin, end); \
  }
