// Elementwise kernels of the device, from the functors and plans that the CPU uses.
#include "kernels/cuda/elementwise.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "kernels/functors/arith.h"
#include "kernels/functors/unary.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256, kPerThread = 4;

// Loads an element of any dtype as T, and stores it; conversions as in cpu/simd/convert.h.
template <class T, class S> __device__ T convert_to(S s) {
  if constexpr (kIsComplex<S> && kIsComplex<T>)
    return {typename T::Real(s.re), typename T::Real(s.im)};
  else if constexpr (kIsComplex<S>) return convert_to<T>(s.re);
  else if constexpr (kIsComplex<T>) return {typename T::Real(s), 0};
  else return T(s);
}

template <class T> __device__ T load_as(const char* p, int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return convert_to<T>(int32_t(*reinterpret_cast<const uint8_t*>(p) != 0));
    case TT_U8: return convert_to<T>(int32_t(*reinterpret_cast<const uint8_t*>(p)));
    case TT_I8: return convert_to<T>(int32_t(*reinterpret_cast<const int8_t*>(p)));
    case TT_I16: return convert_to<T>(int32_t(*reinterpret_cast<const int16_t*>(p)));
    case TT_I32: return convert_to<T>(*reinterpret_cast<const int32_t*>(p));
    case TT_I64: return convert_to<T>(*reinterpret_cast<const int64_t*>(p));
    case TT_F16: return convert_to<T>(__half2float(*reinterpret_cast<const __half*>(p)));
    case TT_BF16:
      return convert_to<T>(__bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(p)));
    case TT_F32: return convert_to<T>(*reinterpret_cast<const float*>(p));
    case TT_F64: return convert_to<T>(*reinterpret_cast<const double*>(p));
    case TT_C64: return convert_to<T>(*reinterpret_cast<const c64*>(p));
    default: return convert_to<T>(*reinterpret_cast<const c128*>(p));
  }
}

template <class T> __device__ bool is_true(T v) {
  if constexpr (kIsComplex<T>) return v.re != 0 || v.im != 0;
  else return v != 0;
}

template <class T> __device__ void store_as(char* p, int32_t dtype, T v) {
  switch (dtype) {
    case TT_BOOL: *reinterpret_cast<uint8_t*>(p) = is_true(v); return;
    case TT_U8: *reinterpret_cast<uint8_t*>(p) = uint8_t(convert_to<int32_t>(v)); return;
    case TT_I8: *reinterpret_cast<int8_t*>(p) = int8_t(convert_to<int32_t>(v)); return;
    case TT_I16: *reinterpret_cast<int16_t*>(p) = int16_t(convert_to<int32_t>(v)); return;
    case TT_I32: *reinterpret_cast<int32_t*>(p) = convert_to<int32_t>(v); return;
    case TT_I64: *reinterpret_cast<int64_t*>(p) = convert_to<int64_t>(v); return;
    case TT_F16: *reinterpret_cast<__half*>(p) = __float2half_rn(convert_to<float>(v)); return;
    case TT_BF16:
      *reinterpret_cast<__nv_bfloat16*>(p) = __float2bfloat16_rn(convert_to<float>(v));
      return;
    case TT_F32: *reinterpret_cast<float*>(p) = convert_to<float>(v); return;
    case TT_F64: *reinterpret_cast<double*>(p) = convert_to<double>(v); return;
    case TT_C64: *reinterpret_cast<c64*>(p) = convert_to<c64>(v); return;
    default: *reinterpret_cast<c128*>(p) = convert_to<c128>(v); return;
  }
}

// Byte offsets of element i of a strided plan, for all operands.
__device__ void offsets_of(const ElementPlan& p, int64_t i, int64_t* offset) {
  for (int k = 0; k < p.n_operands; k++) offset[k] = 0;
  for (int d = 0; d < p.ndim; d++) {
    const int64_t rest = i / p.size[d];
    const int64_t index = i - rest * p.size[d];
    for (int k = 0; k < p.n_operands; k++) offset[k] += index * p.stride[k][d];
    i = rest;
  }
}

template <class F, class T, int kArity> __device__ T apply(const T* in, const Param<T>& param) {
  if constexpr (kArity == 1) return F::op(in[0], param);
  else if constexpr (kArity == 2) return F::op(in[0], in[1], param);
  else return F::op(in[0], in[1], in[2], param);
}

template <class F, class T, int kArity> __global__ void __launch_bounds__(kThreads)
    run(const __grid_constant__ ElementPlan p) {
  Param<T> param = load_param<T>(p.param);
  if constexpr (requires { F::prepare(param); }) F::prepare(param);
  const int64_t first = int64_t(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;
#pragma unroll
  for (int step = 0; step < kPerThread; step++) {
    const int64_t i = first + step * kThreads;
    if (i >= p.n) return;
    T in[kArity];
    int64_t offset[kMaxOperands];
    if (!p.dense) offsets_of(p, i, offset);
#pragma unroll
    for (int k = 0; k < kArity; k++) {
      // A host scalar has no address on the device: its value is in the plan.
      const char* at = p.ptr[k + 1] ? p.ptr[k + 1] : p.scalar[k + 1];
      if (p.dense) in[k] = reinterpret_cast<const T*>(at)[p.scalar_in[k + 1] ? 0 : i];
      else in[k] = load_as<T>(at + offset[k + 1], p.dtype[k + 1]);
    }
    const T out = apply<F, T, kArity>(in, param);
    if (p.dense) reinterpret_cast<T*>(p.ptr[0])[i] = out;
    else store_as(p.ptr[0] + offset[0], p.dtype[0], out);
  }
}

template <class F, class T, int kArity>
int32_t launch_as(const ElementPlan& p, cudaStream_t stream) {
  const int64_t blocks = (p.n + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  run<F, T, kArity><<<dim3(unsigned(blocks)), kThreads, 0, stream>>>(p);
  return cudaGetLastError() == cudaSuccess ? TT_OK : TT_DEVICE;
}

template <class... Ts> struct Set {};
using Set_float = Set<float, double, c64, c128>;
using Set_arith = Set<float, double, int32_t, int64_t, c64, c128>;

template <class F, int kArity, class... Ts>
int32_t launch(Set<Ts...>, const void* plan, void* stream) {
  const ElementPlan& p = *static_cast<const ElementPlan*>(plan);
  if (p.n == 0) return TT_OK;
  int32_t status = TT_INTERNAL;
  const auto launch_if = [&]<class T>(T) {
    if (p.compute != Traits<T>::kDtype) return false;
    status = launch_as<F, T, kArity>(p, static_cast<cudaStream_t>(stream));
    return true;
  };
  (launch_if(Ts{}) || ...);
  return status;
}

}  // namespace

namespace cuda {

#define TT_ELEMENTWISE(name, functor, arity, compute_set)             \
  int32_t name(const void* plan, void* stream, void* /*workspace*/) { \
    return launch<functor, arity>(Set_##compute_set{}, plan, stream); \
  }
TT_ELEMENTWISE(add, Add, 2, arith)
TT_ELEMENTWISE(exp, Exp, 1, float)

}  // namespace cuda
}  // namespace TT_NS
