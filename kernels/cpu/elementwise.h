// The elementwise engine: a functor becomes one loop per compute type (Block); run_elementwise feeds it blocks.
//
// A kernels/cpu/elementwise_<family>.cpp includes this file, the functors, and
// the generated list src/gen/kernels_<family>.inc, each of whose lines makes one kernel (TT_ELEMENTWISE below).
#pragma once

#include "cpu/convert.h"
#include "cpu/loop.h"
#include "functors/functor.h"
#include "functors/move.h"

TT_ENTRY_BEGIN

// Computes n elements of unit stride and native dtype; unused inputs are ignored. out may be an input, else no overlap.
using Block = void (*)(const ElementPlan& plan, char* out, const char* a, const char* b, const char* c, int64_t n);

// native: the dtypes that block reads and writes, 8 bits per operand, operand 0 lowest.
int32_t run_elementwise(const ElementPlan& plan, int64_t begin, int64_t end, Block block, uint32_t native) noexcept;
// The copy kernel: any dtype to any dtype.
int32_t run_copy(const ElementPlan& plan, int64_t begin, int64_t end) noexcept;

// Outputs above this many bytes may be worth streaming past the caches; run_elementwise decides.
constexpr int64_t kStreamCandidate = 4 << 20;

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

template <class F> constexpr uint32_t bool_inputs() {
  if constexpr (requires { F::kBoolIn; }) return F::kBoolIn;
  else return 0;
}

template <class F, class T, int kArity, OutKind kOut, bool kMoves>
struct Loop {
  template <int i> static constexpr bool is_bool = (bool_inputs<F>() >> i & 1) || __is_same(T, bool);
  template <bool b> struct InOf { using type = T; };
  template <int i> using In = typename InOf<is_bool<i>>::type;
  using Out = typename StoredOf<T>::type;

  // The scalars; the moving functors know T only by its size, so theirs are encoded as the plan's dtype.
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

  static void block(const ElementPlan& plan, char* out, const char* a, const char* b, const char* c, int64_t n) {
    const Param<T> p = param(plan);
    auto store = [out](int64_t i, auto v) TT_INLINE_LAMBDA {
      if constexpr (kOut == kOut_bool || __is_same(T, bool)) reinterpret_cast<uint8_t*>(out)[i] = v;
      else reinterpret_cast<Out*>(out)[i] = v;
    };
    TT_VECTORIZE for (int64_t i = 0; i < n; i++) {
      if constexpr (kArity == 0) store(i, F::template op<T>(p));
      else if constexpr (kArity == 1) store(i, F::op(load<1>(a, i), p));
      else if constexpr (kArity == 2) store(i, F::op(load<1>(a, i), load<2>(b, i), p));
      else store(i, F::op(load<1>(a, i), load<2>(b, i), load<3>(c, i), p));
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
    constexpr int64_t kOutSize = kOut == kOut_bool ? 1 : int64_t(sizeof(Out));
    bool direct = plan.dense && plan.n <= kStreamCandidate / kOutSize;
    for (int i = 1; i <= kArity; i++) direct &= !plan.scalar_in[i];
    if (TT_UNLIKELY(!direct)) return run_elementwise(plan, begin, end, block, native(dtype));
    const char* in[4] = {};
    if constexpr (kArity >= 1) in[1] = plan.ptr[1] + begin * int64_t(is_bool<1> ? 1 : sizeof(T));
    if constexpr (kArity >= 2) in[2] = plan.ptr[2] + begin * int64_t(is_bool<2> ? 1 : sizeof(T));
    if constexpr (kArity >= 3) in[3] = plan.ptr[3] + begin * int64_t(is_bool<3> ? 1 : sizeof(T));
    block(plan, plan.ptr[0] + begin * kOutSize, in[1], in[2], in[3], end - begin);
    return TT_OK;
  }
};

template <class F, int kArity, OutKind kOut, class... Ts>
TT_INLINE int32_t dispatch(Set<Ts...>, const ElementPlan& plan, int64_t begin, int64_t end) {
  int32_t status = TT_INTERNAL;
  ((plan.compute == Traits<Ts>::kDtype &&
    (status = Loop<F, Ts, kArity, kOut, false>::run(plan, begin, end, Traits<Ts>::kDtype), true)) ||
   ...);
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
    case 16: return Loop<F, Bytes16, kArity, kOut, true>::run(plan, begin, end, dtype);
    default: return TT_INTERNAL;
  }
}

TT_ISA_END

// One kernel: its name, functor, number of inputs, compute types (Set_…) and whether the output is bool.
#define TT_ELEMENTWISE(name, functor, arity, compute_set, out_kind)                                             \
  TT_KERNEL(name)(const void* plan, int64_t begin, int64_t end) noexcept {                                       \
    return dispatch<functor, arity, kOut_##out_kind>(Set_##compute_set{}, *static_cast<const ElementPlan*>(plan), \
                                                     begin, end);                                               \
  }
