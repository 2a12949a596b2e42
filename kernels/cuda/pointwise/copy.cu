// The rows copy (any dtype to any dtype, any number of dimensions) and fill.
//   equal dtypes, dense in different dimensions      tiles (copy/transpose.cu)
//   equal dtypes, at most kMaxWalkDims dimensions    the pointwise engine, moving 16 bytes at once
//   between f32, f16 and bf16, dense                 cast_runs, 8 elements at once
//   other dtypes, at most kMaxWalkDims dimensions    convert_walk
//   more dimensions                                  copy_general, from the whole plan
#include "kernels/cuda/copy/transpose.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/functors/copy.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

struct ConvertArguments {
  int64_t n;
  char* out;
  const char* in;
  int32_t out_dtype, in_dtype;
  Walk<2> walk;
};

// T: the widest number of the source's kind.
template <class T> __global__ void __launch_bounds__(kThreads)
    convert_walk(const __grid_constant__ ConvertArguments a) {
  device::wait_for_previous();
  const int64_t first = int64_t(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;
#pragma unroll
  for (int step = 0; step < kPerThread; step++) {
    const int64_t i = first + step * kThreads;
    if (i >= a.n) return;
    int64_t at[2];
    a.walk.find(i, at);
    store_element(a.out + at[0], a.out_dtype, load_element<T>(a.in + at[1], a.in_dtype));
  }
}

template <class D, class S> __global__ void __launch_bounds__(kThreads)
    cast_runs(D* out, const S* in, int64_t n) {
  device::wait_for_previous();
  constexpr int kGroup = 8;
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kGroup;
  const auto narrow = [](float x) {
    if constexpr (__is_same(D, F16)) return narrow_f16(x);
    else if constexpr (__is_same(D, BF16)) return narrow_bf16(x);
    else return x;
  };
  const auto value = [](S x) {
    if constexpr (kIsHalf<S>) return widen(x);
    else return x;
  };
  if (i + kGroup <= n) {
    // 16 bytes are the widest load: a pack of eight floats would be two.
    using From = Pack<S, 4>;
    using To = Pack<D, 4>;
    const From* from = reinterpret_cast<const From*>(in + i);
    To* to = reinterpret_cast<To*>(out + i);
    const From parts[2] = {from[0], from[1]};
#pragma unroll
    for (int h = 0; h < 2; h++) {
      To part;
#pragma unroll
      for (int j = 0; j < 4; j++) part.v[j] = narrow(value(parts[h].v[j]));
      to[h] = part;
    }
    return;
  }
  for (int64_t k = i; k < n; k++) out[k] = narrow(value(in[k]));
}

__device__ __forceinline__ void places(const ElementPlan& p, int64_t i, char** out,
                                       const char** in) {
  *out = p.ptr[0];
  *in = p.ptr[1];
  for (int d = 0; d < p.ndim; d++) {
    const int64_t rest = i / p.size[d];
    const int64_t index = i - rest * p.size[d];
    *out += index * p.stride[0][d];
    *in += index * p.stride[1][d];
    i = rest;
  }
}

template <class T> __global__ void __launch_bounds__(kThreads)
    copy_general(const __grid_constant__ ElementPlan p, bool moves) {
  device::wait_for_previous();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.n) return;
  char* out;
  const char* in;
  places(p, i, &out, &in);
  if (!moves) {
    store_element(out, p.dtype[0], load_element<T>(in, p.dtype[1]));
    return;
  }
  switch (item_size(p.dtype[0])) {
    case 1: *out = *in; return;
    case 2: *reinterpret_cast<uint16_t*>(out) = *reinterpret_cast<const uint16_t*>(in); return;
    case 4: *reinterpret_cast<uint32_t*>(out) = *reinterpret_cast<const uint32_t*>(in); return;
    case 8: *reinterpret_cast<uint64_t*>(out) = *reinterpret_cast<const uint64_t*>(in); return;
    default: *reinterpret_cast<Bytes16*>(out) = *reinterpret_cast<const Bytes16*>(in); return;
  }
}

template <class T> int32_t run_conversion(const ElementPlan& p, void* stream) {
  const bool moves = p.dtype[0] == p.dtype[1];
  if (p.ndim > kMaxWalkDims)
    return device::launch_early(copy_general<T>, blocks_for(p.n, kThreads, 1), kThreads, stream, p,
                                moves);
  ConvertArguments a;
  a.n = p.n;
  a.out = p.ptr[0];
  a.in = p.ptr[1];
  a.out_dtype = p.dtype[0];
  a.in_dtype = p.dtype[1];
  a.walk.set(p, 1);
  return device::launch_early(convert_walk<T>, blocks_for(p.n, kThreads, kPerThread), kThreads,
                              stream, a);
}

template <class D, class S> int32_t run_cast(const ElementPlan& p, void* stream) {
  return device::launch_early(cast_runs<D, S>, blocks_for(p.n, kThreads, 8), kThreads, stream,
                              reinterpret_cast<D*>(p.ptr[0]), reinterpret_cast<const S*>(p.ptr[1]),
                              p.n);
}

using Cast = int32_t (*)(const ElementPlan& p, void* stream);
Cast cast_between(int32_t to, int32_t from) {
  if (to == TT_F32 && from == TT_F16) return run_cast<float, F16>;
  if (to == TT_F32 && from == TT_BF16) return run_cast<float, BF16>;
  if (to == TT_F16 && from == TT_F32) return run_cast<F16, float>;
  if (to == TT_F16 && from == TT_BF16) return run_cast<F16, BF16>;
  if (to == TT_BF16 && from == TT_F32) return run_cast<BF16, float>;
  if (to == TT_BF16 && from == TT_F16) return run_cast<BF16, F16>;
  return nullptr;
}
bool is_aligned_run(const ElementPlan& p) {
  for (int k = 0; k < 2; k++) {
    if (p.stride[k][0] != kItemSize[p.dtype[k]]) return false;
    if (reinterpret_cast<uintptr_t>(p.ptr[k]) % 16 != 0) return false;
  }
  return p.ndim == 1;
}

int32_t run_conversion_of(const ElementPlan& p, void* stream) {
  const Cast cast = cast_between(p.dtype[0], p.dtype[1]);
  if (cast && is_aligned_run(p)) return cast(p, stream);
  switch (p.dtype[1]) {
    case TT_U32:
    case TT_I64: return run_conversion<int64_t>(p, stream);
    case TT_U64: return run_conversion<uint64_t>(p, stream);
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_conversion<float>(p, stream);
    case TT_F64: return run_conversion<double>(p, stream);
    case TT_C64: return run_conversion<c64>(p, stream);
    case TT_C128: return run_conversion<c128>(p, stream);
    default: return run_conversion<int32_t>(p, stream);
  }
}

int32_t run_moves(const ElementPlan& given, void* stream) {
  ElementPlan p = given;
  p.compute = given.dtype[0];
  return run_pointwise<Copy, 1, kOut_same>(SetAll{}, p, stream, nullptr);
}

}  // namespace

namespace cuda {

int32_t copy(const void* plan, void* stream, void*) {
  const ElementPlan& p = *static_cast<const ElementPlan*>(plan);
  if (p.n == 0) return TT_OK;
  const bool is_number = p.ptr[1] == nullptr;
  const bool moves = is_number || p.dtype[0] == p.dtype[1];
  int32_t status;
  if (moves && !is_number && !p.dense && transpose(p, stream, &status)) return status;
  if (moves && (p.dense || p.ndim <= kMaxWalkDims)) return run_moves(p, stream);
  return run_conversion_of(p, stream);
}
size_t copy_workspace(const void*) { return 0; }
TT_ELEMENTWISE(fill, Fill, 0, all, same)

}  // namespace cuda
}  // namespace TT_NS
