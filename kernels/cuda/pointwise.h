// Elementwise kernels of the device: a functor over an ElementPlan. One kernel for each functor,
// compute type T and storage S (T itself; f16 and bf16 for float) serves dense and strided
// operands:
//
//   group of kVector elements along dimension 0 -> Walk -> place in each operand
//   an operand with unit stride there loads its group at once (16 bytes), one with stride 0 repeats
//
// Operands without gaps, which lie in one dimension, have a kernel of their own (pointwise_runs).
// Families whose arithmetic outweighs their memory have groups there only: TT_STRIDED_GROUPS is 0,
// which halves their kernels. What is rare has no other kernel (kFlat): other types than float in
// such families, complex numbers in all.
//
// Operands of other dtypes than S, those with gaps where there is no kernel for them, and plans of
// more than kMaxWalkDims dimensions are first copied into the workspace (staging.h).
#pragma once

#include <bit>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/strided.h"
#include "kernels/functors/functor.h"

#ifndef TT_STRIDED_GROUPS
#define TT_STRIDED_GROUPS 1
#endif

namespace TT_NS {
namespace {

constexpr bool kStridedGroups = TT_STRIDED_GROUPS;
// Whether kernels of a compute type take runs of elements only.
constexpr bool is_flat(int32_t compute) {
  return compute == TT_C64 || compute == TT_C128 || (!kStridedGroups && compute != TT_F32);
}
constexpr int kPointwiseThreads = 256;

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

template <class T> constexpr bool kFlat = is_flat(Traits<T>::kDtype);
// Functors that only move values take elements as words of their size.
template <> constexpr bool kFlat<uint8_t> = false;
template <> constexpr bool kFlat<uint16_t> = false;
template <> constexpr bool kFlat<uint32_t> = false;
template <> constexpr bool kFlat<uint64_t> = false;
template <> constexpr bool kFlat<Bytes16> = false;

template <class F>
concept HasBoolInputs = requires {
  F::kBoolIn;
};
template <class F> constexpr uint32_t kBoolInputs = 0;
template <HasBoolInputs F> constexpr uint32_t kBoolInputs<F> = F::kBoolIn;

// Bit k: operand k is bool, whatever T is.
template <class F, class T, OutKind kOut>
constexpr uint32_t kBoolOperands = __is_same(T, bool)
                                       ? 15u
                                       : kBoolInputs<F> | (kOut == kOut_bool ? 1u : 0u);

template <class T> struct StoredOf { using type = T; };
template <> struct StoredOf<bool> { using type = uint8_t; };

template <class T> constexpr int kVector = sizeof(T) == 1 ? 8 : 16 / sizeof(T);

template <class X, int n> struct alignas(sizeof(X) * n) Pack { X v[n]; };

template <class T, int kArity> struct PointwiseArguments {
  int64_t n;       // elements
  int64_t groups;  // of kVector elements; of one if not in_groups
  // Every group is kVector elements of one row, and aligned; only the last one may be short, in a
  // plan of one dimension.
  bool in_groups;
  bool repeats[kArity + 1];  // operand k has stride 0 along dimension 0
  char* ptr[kArity + 1];     // NULL: a number
  T number[kArity + 1];
  bool flag[kArity + 1];  // the number of an operand that is bool
  Param<T> param;
  Walk<kArity + 1> walk;
};

template <bool kFirst, class A, class B> struct Choose { using type = A; };
template <class A, class B> struct Choose<false, A, B> { using type = B; };

// The operands of one kernel as it reads and writes them.
template <class F, class T, class S, int kArity, uint32_t kBools> struct Pointwise {
  static constexpr int kGroup = kVector<typename StoredOf<S>::type>;
  using Arguments = PointwiseArguments<T, kArity>;
  template <int k> static constexpr bool kIsBool = (kBools >> k & 1) != 0;
  template <int k> using Stored =
      typename Choose<(kBools >> k & 1) != 0, uint8_t, typename StoredOf<S>::type>::type;
  template <int k> using Value = typename Choose<(kBools >> k & 1) != 0, bool, T>::type;

  template <int k> static __device__ __forceinline__ Value<k> value_of(Stored<k> x) {
    if constexpr (kIsBool<k>) return x != 0;
    else if constexpr (kIsHalf<S>) return widen(x);
    else return x;
  }
  template <class V> static __device__ __forceinline__ Stored<0> stored_as(V x) {
    if constexpr (__is_same(Stored<0>, F16)) return narrow_f16(x);
    else if constexpr (__is_same(Stored<0>, BF16)) return narrow_bf16(x);
    else return Stored<0>(x);
  }

  // F of numbers; where they are halves, by its shorter way if it has one (op_half).
  template <class... V> static __device__ __forceinline__ auto applied(const Arguments& a, V... x) {
    if constexpr (kArity == 0) return F::template op<T>(a.param);
    else if constexpr (kIsHalf<S> && requires { F::op_half(x..., a.param); })
      return F::op_half(x..., a.param);
    else return F::op(x..., a.param);
  }

  // The group of operand k at p as values.
  template <int k> static __device__ __forceinline__ void load(const Arguments& a, const char* p,
                                                               Value<k> (&out)[kGroup]) {
    if (!a.ptr[k] || a.repeats[k]) {
      Value<k> one;
      if (a.ptr[k]) one = value_of<k>(*reinterpret_cast<const Stored<k>*>(p));
      else if constexpr (kIsBool<k>) one = a.flag[k];
      else one = a.number[k];
#pragma unroll
      for (int j = 0; j < kGroup; j++) out[j] = one;
      return;
    }
    const auto all = *reinterpret_cast<const Pack<Stored<k>, kGroup>*>(p);
#pragma unroll
    for (int j = 0; j < kGroup; j++) out[j] = value_of<k>(all.v[j]);
  }
  template <int k>
  static __device__ __forceinline__ Value<k> load_one(const Arguments& a, const char* p) {
    if (a.ptr[k]) return value_of<k>(*reinterpret_cast<const Stored<k>*>(p));
    if constexpr (kIsBool<k>) return a.flag[k];
    else return a.number[k];
  }

  // F of the numbers of one group.
  static __device__ __forceinline__ Pack<Stored<0>, kGroup> results(const Arguments& a,
                                                                    const Value<1> (&x)[kGroup],
                                                                    const Value<2> (&y)[kGroup],
                                                                    const Value<3> (&z)[kGroup]) {
    Pack<Stored<0>, kGroup> out;
#pragma unroll
    for (int j = 0; j < kGroup; j++) {
      if constexpr (kArity == 0) out.v[j] = stored_as(applied(a));
      else if constexpr (kArity == 1) out.v[j] = stored_as(applied(a, x[j]));
      else if constexpr (kArity == 2) out.v[j] = stored_as(applied(a, x[j], y[j]));
      else out.v[j] = stored_as(applied(a, x[j], y[j], z[j]));
    }
    return out;
  }
  // at: the place of the group in each operand.
  static __device__ __forceinline__ void run_group(const Arguments& a,
                                                   const int64_t (&at)[kArity + 1]) {
    Value<1> x[kGroup];
    Value<2> y[kGroup];
    Value<3> z[kGroup];
    if constexpr (kArity >= 1) load<1>(a, a.ptr[1] + at[1], x);
    if constexpr (kArity >= 2) load<2>(a, a.ptr[2] + at[2], y);
    if constexpr (kArity >= 3) load<3>(a, a.ptr[3] + at[3], z);
    *reinterpret_cast<Pack<Stored<0>, kGroup>*>(a.ptr[0] + at[0]) = results(a, x, y, z);
  }

  // The element `within` behind `at` along dimension 0.
  static __device__ __forceinline__ void run_one(const Arguments& a,
                                                 const int64_t (&at)[kArity + 1], int64_t within) {
    const auto place = [&](int k, int64_t bytes) {
      return a.ptr[k] + at[k] + (a.repeats[k] ? 0 : within * bytes);
    };
    Stored<0> out;
    if constexpr (kArity == 0) {
      out = stored_as(applied(a));
    } else if constexpr (kArity == 1) {
      out = stored_as(applied(a, load_one<1>(a, place(1, sizeof(Stored<1>)))));
    } else if constexpr (kArity == 2) {
      out = stored_as(applied(a, load_one<1>(a, place(1, sizeof(Stored<1>))),
                              load_one<2>(a, place(2, sizeof(Stored<2>)))));
    } else {
      out = stored_as(applied(a, load_one<1>(a, place(1, sizeof(Stored<1>))),
                              load_one<2>(a, place(2, sizeof(Stored<2>))),
                              load_one<3>(a, place(3, sizeof(Stored<3>)))));
    }
    *reinterpret_cast<Stored<0>*>(place(0, sizeof(Stored<0>))) = out;
  }
};

template <class F, class T, class S, int kArity, uint32_t kBools>
__global__ void __launch_bounds__(kPointwiseThreads)
    pointwise(const __grid_constant__ PointwiseArguments<T, kArity> a) {
  using Body = Pointwise<F, T, S, kArity, kBools>;
  device::wait_for_previous();
  const int64_t i = int64_t(blockIdx.x) * kPointwiseThreads + threadIdx.x;
  if (i >= a.groups) return;
  int64_t at[kArity + 1];
  a.walk.find(i, at);
  int64_t n = 1;
  if constexpr (kStridedGroups) {
    if (a.in_groups) n = a.n - i * Body::kGroup;
    if (a.in_groups && n >= Body::kGroup) {
      Body::run_group(a, at);
      return;
    }
  }
  for (int64_t j = 0; j < n; j++) Body::run_one(a, at, j);
}

// ---- operands without gaps ----

// Operand k of such a plan: a run of groups, or, beside others, one number.
template <class Body, int k, bool kMayRepeat> struct Run {
  using Stored = typename Body::template Stored<k>;
  using Value = typename Body::template Value<k>;
  using Group = Pack<Stored, Body::kGroup>;
  using Word = typename Choose<sizeof(Group) % 4 == 0, uint32_t, uint8_t>::type;
  static constexpr int kWords = sizeof(Group) / sizeof(Word);
  bool repeats;
  Value number;
  Pack<Word, kWords> words;  // the group

  __device__ __forceinline__ Run(const typename Body::Arguments& a, int64_t i)
      : repeats(kMayRepeat && a.repeats[k]), number{}, words{} {
    if (repeats) number = Body::template load_one<k>(a, a.ptr[k]);
    else words = reinterpret_cast<const Pack<Word, kWords>*>(a.ptr[k])[i];
  }
  // Without this, the compiler makes values of one operand before it loads the next.
  __device__ __forceinline__ void keep_stored() {
#if defined(__CUDA_ARCH__)
#pragma unroll
    for (Word& word : words.v) {
      if constexpr (sizeof word == 4) asm volatile("" : "+r"(word));
    }
#endif
  }
  __device__ __forceinline__ void values(Value (&x)[Body::kGroup]) const {
    const Group group = bits_as<Group>(words);
#pragma unroll
    for (int j = 0; j < Body::kGroup; j++)
      x[j] = repeats ? number : Body::template value_of<k>(group.v[j]);
  }
};
template <class Body> struct NoRun {
  __device__ __forceinline__ NoRun(const typename Body::Arguments&, int64_t) {}
  __device__ __forceinline__ void keep_stored() {}
  template <class X> __device__ __forceinline__ void values(X&) const {}
};

// A thread for each group, or for each element where they are not aligned. The operands' groups are
// on their way before the first one is used.
template <class F, class T, class S, int kArity, uint32_t kBools>
__global__ void __launch_bounds__(kPointwiseThreads)
    pointwise_runs(const __grid_constant__ PointwiseArguments<T, kArity> a) {
  using Body = Pointwise<F, T, S, kArity, kBools>;
  constexpr int kGroup = Body::kGroup;
  using Out = Pack<typename Body::template Stored<0>, kGroup>;
  device::wait_for_previous();
  const int64_t i = int64_t(blockIdx.x) * kPointwiseThreads + threadIdx.x;
  const int64_t whole = a.in_groups ? a.n / kGroup : 0;
  if (i < whole) {
    typename Choose<(kArity >= 1), Run<Body, 1, (kArity > 1)>, NoRun<Body>>::type first(a, i);
    typename Choose<(kArity >= 2), Run<Body, 2, true>, NoRun<Body>>::type second(a, i);
    typename Choose<(kArity >= 3), Run<Body, 3, true>, NoRun<Body>>::type third(a, i);
    first.keep_stored();
    second.keep_stored();
    third.keep_stored();
    typename Body::template Value<1> x[kGroup];
    typename Body::template Value<2> y[kGroup];
    typename Body::template Value<3> z[kGroup];
    first.values(x);
    second.values(y);
    third.values(z);
    reinterpret_cast<Out*>(a.ptr[0])[i] = Body::results(a, x, y, z);
    return;
  }
  const int64_t starts[kArity + 1] = {};
  int64_t at = i;
  int64_t end = i < a.n ? i + 1 : i;
  if (a.in_groups) {
    at = whole * kGroup;
    end = i == whole ? a.n : at;
  }
#pragma unroll 1
  for (; at < end; at++) Body::run_one(a, starts, at);
}

// ---- on the host ----

// The number that stands for operand k. Where values are only moved: its bytes as `native`.
template <class T, bool kMoves> T number_as(const ElementPlan& p, int k, int32_t native) {
  const char* from = p.scalar[k];
  const int32_t dtype = p.dtype[k];
  if constexpr (!kMoves) return load_element<T>(from, dtype);
  alignas(16) char bits[16] = {};
  if (dtype == native) __builtin_memcpy(bits, from, kItemSize[native & 15]);
  else if (dtype == TT_C64 || dtype == TT_C128)
    store_element(bits, native, load_element<c128>(from, dtype));
  else if (dtype >= TT_F16 && dtype < TT_C64)
    store_element(bits, native, load_element<double>(from, dtype));
  else store_element(bits, native, load_element<int64_t>(from, dtype));
  T value;
  __builtin_memcpy(static_cast<void*>(&value), bits, sizeof value);
  return value;
}

// Whether groups of elements are aligned runs, or single elements, of every operand. group and the
// items are powers of 2.
inline bool can_group(const ElementPlan& p, int n_operands, const int32_t* item, int group) {
  if (p.ndim > 1 && (p.size[0] & (group - 1)) != 0) return false;
  for (int k = 0; k < n_operands; k++) {
    if (!p.ptr[k] || p.stride[k][0] == 0) continue;
    if (p.stride[k][0] != item[k]) return false;
    uint64_t places = reinterpret_cast<uintptr_t>(p.ptr[k]);
    for (int d = 1; d < p.ndim; d++) places |= uint64_t(p.stride[k][d]);
    if (places & (uint64_t(item[k]) * uint64_t(group) - 1)) return false;
  }
  return true;
}

// The kernels of a functor for one stored type. Code of the host is per T and arity, since there
// are a thousand of these.
template <class T, int kArity> struct PointwiseKernels {
  using Kernel = void (*)(PointwiseArguments<T, kArity>);
  Kernel walk;  // NULL: it takes runs only
  Kernel runs;
  int32_t group;
  int32_t item[kArity + 1];  // bytes of an element of each operand
};
template <class F, class T, class S, int kArity, uint32_t kBools>
PointwiseKernels<T, kArity> kernels_stored() {
  using Body = Pointwise<F, T, S, kArity, kBools>;
  PointwiseKernels<T, kArity> k = {
      nullptr, pointwise_runs<F, T, S, kArity, kBools>, Body::kGroup, {}};
  if constexpr (!kFlat<T>) k.walk = pointwise<F, T, S, kArity, kBools>;
  k.item[0] = sizeof(typename Body::template Stored<0>);
  if constexpr (kArity >= 1) k.item[1] = sizeof(typename Body::template Stored<1>);
  if constexpr (kArity >= 2) k.item[2] = sizeof(typename Body::template Stored<2>);
  if constexpr (kArity >= 3) k.item[3] = sizeof(typename Body::template Stored<3>);
  return k;
}
template <class F, class T, int kArity, uint32_t kBools>
PointwiseKernels<T, kArity> kernels_for([[maybe_unused]] int32_t stored) {
  if constexpr (__is_same(T, float)) {
    if (stored == TT_F16) return kernels_stored<F, T, F16, kArity, kBools>();
    if (stored == TT_BF16) return kernels_stored<F, T, BF16, kArity, kBools>();
  }
  return kernels_stored<F, T, T, kArity, kBools>();
}

// A functor picks the one that fits the numbers of the call; on the host, so that each is a kernel.
template <class T, int kArity, uint32_t kBools> struct Picked {
  PointwiseKernels<T, kArity> (**finder)(int32_t);
  template <class G> TT_FN void operator()(G) const { *finder = kernels_for<G, T, kArity, kBools>; }
};
template <class F, class T>
concept Picks = requires(const Param<T>& p) {
  F::template pick<T>(p, Picked<T, 1, 0>{});
};
template <class F, class T>
concept Prepares = requires(Param<T>& p) {
  F::prepare(p);
};
// Prepares the parameters of F and finds its kernels.
template <class F, class T, int kArity, uint32_t kBools>
PointwiseKernels<T, kArity> choose_kernels(Param<T>& param, int32_t stored) {
  if constexpr (Prepares<F, T>) F::prepare(param);
  if constexpr (Picks<F, T>) {
    PointwiseKernels<T, kArity> (*finder)(int32_t) = nullptr;
    F::template pick<T>(param, Picked<T, kArity, kBools>{&finder});
    return finder(stored);
  } else {
    return kernels_for<F, T, kArity, kBools>(stored);
  }
}

template <class T, int kArity>
int32_t launch_pointwise(const ElementPlan& p, const PointwiseKernels<T, kArity>& kernels,
                         const Param<T>& param, const T* number, const bool* flag, void* stream) {
  PointwiseArguments<T, kArity> a;
  a.n = p.n;
  a.param = param;
  const bool runs = p.ndim <= 1 && p.stride[0][0] != 0 && (kArity != 1 || p.stride[1][0] != 0);
  a.in_groups = kernels.group > 1 && (runs || (kStridedGroups && kernels.walk)) &&
                can_group(p, kArity + 1, kernels.item, kernels.group);
  const int64_t unit = a.in_groups ? kernels.group : 1;
  a.groups = (p.n + unit - 1) >> std::countr_zero(uint32_t(unit));
  for (int k = 0; k <= kArity; k++) {
    a.ptr[k] = p.ptr[k];
    a.number[k] = number[k];
    a.flag[k] = flag[k];
    a.repeats[k] = p.stride[k][0] == 0;
  }
  const unsigned grid = blocks_for(a.groups, kPointwiseThreads, 1);
  if ((a.in_groups && runs) || !kernels.walk)
    return device::launch_early(kernels.runs, grid, kPointwiseThreads, stream, a);
  a.walk.set(p, unit);
  return device::launch_early(kernels.walk, grid, kPointwiseThreads, stream, a);
}

template <class T, int kArity, uint32_t kBools, bool kMoves>
int32_t run_chosen(const ElementPlan& given,
                   PointwiseKernels<T, kArity> (*choose)(Param<T>&, int32_t), void* stream,
                   void* workspace) {
  if (given.n == 0) return TT_OK;
  const Natives native = natives_of(given, kBools, kMoves, kFlat<T>);
  ElementPlan copy;
  const ElementPlan& p = staged(given, native, &copy);
  T number[kMaxOperands] = {};
  bool flag[kMaxOperands] = {};
  for (int k = 1; k <= kArity; k++) {
    if (p.ptr[k]) continue;
    if (kBools >> k & 1) flag[k] = load_element<bool>(p.scalar[k], p.dtype[k]);
    else number[k] = number_as<T, kMoves>(p, k, native.dtype[k]);
  }
  Param<T> param;
  if constexpr (kMoves) {
    param = {};
    for (int i = 0; i < 2; i++) {
      param.has[i] = p.param[i].kind != 0;
      if (param.has[i]) encode_number(&param.v[i], p.compute, p.param[i]);
    }
  } else {
    param = load_param<T>(p.param);
  }
  const PointwiseKernels<T, kArity> kernels = choose(param, native.values);
  if (&p == &given || given.dense) return launch_pointwise(p, kernels, param, number, flag, stream);
  int32_t status = stage_inputs(given, native, &copy, workspace, stream);
  if (status == TT_OK) status = launch_pointwise(copy, kernels, param, number, flag, stream);
  if (status == TT_OK) status = unstage_output(given, copy, stream);
  return status;
}
template <class F, class T, int kArity, uint32_t kBools, bool kMoves>
int32_t run_pointwise_as(const ElementPlan& p, void* stream, void* workspace) {
  return run_chosen<T, kArity, kBools, kMoves>(p, choose_kernels<F, T, kArity, kBools>, stream,
                                               workspace);
}

template <class F, int kArity, OutKind kOut, class... Ts>
int32_t run_pointwise(Set<Ts...>, const ElementPlan& p, void* stream, void* workspace) {
  int32_t status = TT_INTERNAL;
  const auto run_if = [&]<class T>(T) {
    if (p.compute != Traits<T>::kDtype && !__is_same(Set<Ts...>, Set_logical)) return false;
    using Functor = FunctorFor<F, T>;
    constexpr uint32_t kBools = kBoolOperands<F, T, kOut>;
    status = run_pointwise_as<Functor, T, kArity, kBools, false>(p, stream, workspace);
    return true;
  };
  (void)(run_if(Ts{}) || ...);
  return status;
}

template <class F, int kArity, OutKind kOut>
int32_t run_pointwise(SetAll, const ElementPlan& p, void* stream, void* workspace) {
  constexpr uint32_t kBools = kBoolInputs<F>;
  switch (kItemSize[p.compute & 15]) {
    case 1: return run_pointwise_as<F, uint8_t, kArity, kBools, true>(p, stream, workspace);
    case 2: return run_pointwise_as<F, uint16_t, kArity, kBools, true>(p, stream, workspace);
    case 4: return run_pointwise_as<F, uint32_t, kArity, kBools, true>(p, stream, workspace);
    case 8: return run_pointwise_as<F, uint64_t, kArity, kBools, true>(p, stream, workspace);
    default: return run_pointwise_as<F, Bytes16, kArity, kBools, true>(p, stream, workspace);
  }
}

template <class F, OutKind kOut, class S> size_t pointwise_workspace(S, const void* plan) {
  const ElementPlan& p = *static_cast<const ElementPlan*>(plan);
  constexpr bool kMoves = __is_same(S, SetAll);
  const bool all_bool = (p.compute == TT_BOOL && !kMoves) || __is_same(S, Set_logical);
  uint32_t bools = kBoolInputs<F> | uint32_t(kOut == kOut_bool);
  if (all_bool) bools = 15;
  const bool flat = !kMoves && is_flat(all_bool ? TT_BOOL : p.compute);
  return staging_bytes(p, natives_of(p, bools, kMoves, flat));
}

}  // namespace
}  // namespace TT_NS

// Defines a row: its name, functor, number of inputs, compute set and output, as in
// kernels/functors/gen.
#define TT_ELEMENTWISE(name, functor, arity, compute_set, out_kind)                      \
  int32_t name(const void* plan, void* stream, void* workspace) {                        \
    return run_pointwise<functor, arity, kOut_##out_kind>(                               \
        Set_##compute_set{}, *static_cast<const ElementPlan*>(plan), stream, workspace); \
  }                                                                                      \
  size_t name##_workspace(const void* plan) {                                            \
    return pointwise_workspace<functor, kOut_##out_kind>(Set_##compute_set{}, plan);     \
  }
