// The elementwise engine: a functor becomes one loop per compute type (Block), over contiguous
// arrays of this type. A dense plan runs it directly; otherwise run_elementwise calls it block by
// block.
//
// A file <family>.cpp of this folder includes this header, the functors, and the generated list
// kernels/functors/gen/<family>.inc, each line of which defines one kernel (TT_ELEMENTWISE below).
#pragma once

#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/loop.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/functors/copy.h"
#include "kernels/functors/functor.h"

TT_ENTRY_BEGIN

// Computes n contiguous elements of native dtype; unused inputs are ignored. out may be an input;
// arrays do not overlap otherwise.
using Block = void (*)(const ElementPlan& plan, char* out, const char* a, const char* b,
                       const char* c, int64_t n);

// native: the dtypes that block reads and writes, 8 bits per operand, operand 0 lowest.
int32_t run_elementwise(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                        uint32_t native) noexcept;
// The copy kernel: any dtype to any dtype.
int32_t run_copy(const ElementPlan& plan, int64_t begin, int64_t end) noexcept;
// Maps one function over n doubles, for functors with a kVector.
void map_function(VectorId id, char* out, const char* in, int64_t n) noexcept;

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

template <class F, class T, int kArity, OutKind kOut, bool kMoves> struct Loop {
  template <int i> static constexpr bool is_bool = (bool_inputs<F>() >> i & 1) ||
                                                   __is_same(T, bool);
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

  template <class G> static TT_INLINE void loop(const Param<T>& p, char* out, const char* a,
                                                const char* b, const char* c, int64_t n) {
    auto* o = reinterpret_cast<Out*>(out);
    TT_VECTORIZE for (int64_t i = 0; i < n; i++) {
      if constexpr (kArity == 0) o[i] = G::template op<T>(p);
      else if constexpr (kArity == 1) o[i] = G::op(load<1>(a, i), p);
      else if constexpr (kArity == 2) o[i] = G::op(load<1>(a, i), load<2>(b, i), p);
      else o[i] = G::op(load<1>(a, i), load<2>(b, i), load<3>(c, i), p);
    }
  }

#if TT_VECTOR_MATH
  // Floats as vectors. The tail is a partial vector, so that no value depends on its position.
  static TT_INLINE void lanes_loop(char* out, const char* a, int64_t n) {
    auto* o = reinterpret_cast<float*>(out);
    const auto* s = reinterpret_cast<const float*>(a);
    int64_t i = 0;
    for (; i + math::kLanes <= n; i += math::kLanes)
      math::store_lanes(o + i, F::lanes(math::load_lanes(s + i)));
    if (i < n) math::store_some(o + i, F::lanes(math::load_some(s + i, n - i)), n - i);
  }
  static constexpr bool kHasLanes = __is_same(T, float) && requires { F::lanes(math::F32v{}); };
#else
  static TT_INLINE void lanes_loop(char*, const char*, int64_t) {}
  static constexpr bool kHasLanes = false;
#endif

  static constexpr bool kHasVector = __is_same(T, double) && requires { F::kVector; };

  // For functors with is_hard: a block with a hard element is computed by a scalar loop. An easy
  // element has the same value in both loops.
  static TT_INLINE void checked_loop(const Param<T>& p, char* out, const char* a, int64_t n) {
    for (int64_t m; n > 0; n -= m, a += m * int64_t(sizeof(T)), out += m * int64_t(sizeof(T))) {
      m = min(n, kBlock);
      uint32_t hard = 0;
      TT_VECTORIZE for (int64_t i = 0; i < m; i++) hard |= uint32_t(F::is_hard(load<1>(a, i)));
      if (TT_LIKELY(!hard)) {
        loop<F>(p, out, a, nullptr, nullptr, m);
        continue;
      }
      for (int64_t i = 0; i < m; i++) {
        const T x = load<1>(a, i);
        reinterpret_cast<T*>(out)[i] = F::is_hard(x) ? F::op_hard(x) : F::op(x, p);
      }
    }
  }

  static TT_NOINLINE void block(const ElementPlan& plan, char* out, const char* a, const char* b,
                                const char* c, int64_t n) {
    if constexpr (kHasVector) return map_function(F::kVector, out, a, n);
    Param<T> p = param(plan);
    if constexpr (requires { F::prepare(p); }) F::prepare(p);
    if constexpr (kHasLanes) return lanes_loop(out, a, n);
    if constexpr (requires { F::is_hard(T{}); }) checked_loop(p, out, a, n);
    else if constexpr (requires { F::pick(p, [](auto) {}); })
      F::pick(p, [&](auto g) TT_INLINE_LAMBDA { loop<decltype(g)>(p, out, a, b, c, n); });
    else loop<F>(p, out, a, b, c, n);
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
    if (TT_UNLIKELY(!direct)) return run_elementwise(plan, begin, end, block, native(dtype));
    const char* in[4] = {};
    if constexpr (kArity >= 1) in[1] = plan.ptr[1] + begin * kInSize<1>;
    if constexpr (kArity >= 2) in[2] = plan.ptr[2] + begin * kInSize<2>;
    if constexpr (kArity >= 3) in[3] = plan.ptr[3] + begin * kInSize<3>;
    block(plan, plan.ptr[0] + begin * kOutSize, in[1], in[2], in[3], end - begin);
    return TT_OK;
  }
};

// Logical operators: operands of any dtype are converted to bool.
template <class F, int kArity, OutKind kOut>
TT_INLINE int32_t dispatch(Set<bool>, const ElementPlan& plan, int64_t begin, int64_t end) {
  return Loop<F, bool, kArity, kOut, false>::run(plan, begin, end, TT_BOOL);
}

template <class F, int kArity, OutKind kOut, class... Ts>
TT_INLINE int32_t dispatch(Set<Ts...>, const ElementPlan& plan, int64_t begin, int64_t end) {
  int32_t status = TT_INTERNAL;
  const auto run_if = [&]<class T>(T) TT_INLINE_LAMBDA {
    constexpr int32_t kDtype = Traits<T>::kDtype;
    if (!is_dtype(plan.compute, kDtype)) return false;
    status = Loop<F, T, kArity, kOut, false>::run(plan, begin, end, kDtype);
    return true;
  };
  (void)(run_if(Ts{}) || ...);
  return status;
}

template <class F, int kArity, OutKind kOut>
TT_INLINE int32_t dispatch(SetAll, const ElementPlan& plan, int64_t begin, int64_t end) {
  if constexpr (__is_same(F, Copy)) return run_copy(plan, begin, end);
  const int32_t dtype = plan.compute;
  switch (kItemSize[dtype & 15]) {
    case 1: return Loop<F, uint8_t, kArity, kOut, true>::run(plan, begin, end, dtype);
    case 2: return Loop<F, uint16_t, kArity, kOut, true>::run(plan, begin, end, dtype);
    case 4: return Loop<F, uint32_t, kArity, kOut, true>::run(plan, begin, end, dtype);
    case 8: return Loop<F, uint64_t, kArity, kOut, true>::run(plan, begin, end, dtype);
    case 16:
      if (!is_built(TT_C128)) return TT_INTERNAL;
      return Loop<F, Bytes16, kArity, kOut, true>::run(plan, begin, end, dtype);
    default: return TT_INTERNAL;
  }
}

TT_ISA_END

// Defines a kernel: its name, functor, number of inputs, compute set (Set_…) and output (same or
// bool).
#define TT_ELEMENTWISE(name, functor, arity, compute_set, out_kind)               \
  TT_KERNEL(name)(const void* plan, int64_t begin, int64_t end) noexcept {        \
    return dispatch<functor, arity, kOut_##out_kind>(                             \
        Set_##compute_set{}, *static_cast<const ElementPlan*>(plan), begin, end); \
  }
