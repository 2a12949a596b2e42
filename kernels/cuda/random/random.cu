// Uniform, normal, Bernoulli and integer values, and dropout. A thread computes the values of one
// counter of Philox (functors/philox.h), so that the random words, and what is made of them without
// rounding, are those of the CPU bit by bit:
//   values of one word    counter 16 g + lane has values 64 g + 16 w + lane, w = 0 … 3
//   values of two words   counter 16 g + lane has values 32 g + 16 s + lane, s = 0, 1
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/strided.h"
#include "kernels/functors/math.h"
#include "kernels/functors/philox.h"
#include "plan/random_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// Calls value(words, s, i) for each value i of this thread's counter; s is its place among them.
template <int kWords, class F>
__device__ __forceinline__ void for_values(const RandomPlan& p, const F& value) {
  constexpr int kValues = 4 / kWords;
  const int64_t counter = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t first = counter / kPhiloxGroup * kPhiloxGroup * kValues + counter % kPhiloxGroup;
  if (first >= p.n) return;
  const uint64_t at = p.offset + uint64_t(counter);
  const PhiloxBlock words =
      philox({{uint32_t(at), uint32_t(at >> 32), 0, 0}}, uint32_t(p.seed), uint32_t(p.seed >> 32));
#pragma unroll
  for (int s = 0; s < kValues; s++) {
    const int64_t i = first + s * kPhiloxGroup;
    if (i < p.n) value(words, s, i);
  }
}

// Counters that n values take, a grid of one thread each.
template <int kWords> unsigned grid_for(int64_t n) {
  constexpr int64_t kValues = kPhiloxGroup * (4 / kWords);
  return blocks_for((n + kValues - 1) / kValues * kPhiloxGroup, kThreads, 1);
}
template <int kWords>
int32_t launch_random(void (*kernel)(RandomPlan), const RandomPlan& p, void* stream) {
  if (p.n == 0) return TT_OK;
  return device::launch_early(kernel, grid_for<kWords>(p.n), kThreads, stream, p);
}

template <class T> __device__ __forceinline__ void store_at(const RandomPlan& p, int64_t i, T v) {
  store_element(p.out + i * item_size(p.dtype), p.dtype, v);
}
__device__ __forceinline__ double uniform_of(const PhiloxBlock& b, int s) {
  return uniform_f64(b.word[2 * s], b.word[2 * s + 1]);
}

// -log(1 - v) if the plan asks for it, then scale and shift.
template <class T> __device__ __forceinline__ T transformed(const RandomPlan& p, T v) {
  if (p.exponential) {
    constexpr T kMin = sizeof(T) == 8 ? T(0x1p-54) : T(0x1p-25);
    const T y = -math::log(T(1) - v);
    v = y > kMin ? y : kMin;
  }
  const T scale = T(p.scale);
  const T shift = T(p.shift);
  return scale != T(1) || shift != T(0) ? v * scale + shift : v;
}

// As many bits as the significand of the dtype holds: no result is rounded up to 1.
__global__ void __launch_bounds__(kThreads) uniform(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  int bits = p.dtype == TT_F16 ? 11 : 8;
  if (p.dtype == TT_F32 || p.exponential) bits = 24;
  const float step = 1.0f / float(1 << bits);
  for_values<1>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    store_at(p, i, transformed(p, float(int32_t(b.word[s] >> (32 - bits))) * step));
  });
}
__global__ void __launch_bounds__(kThreads) uniform_double(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<2>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    reinterpret_cast<double*>(p.out)[i] = transformed(p, uniform_of(b, s));
  });
}

// Box & Muller, Ann. Math. Stat. 29 (1958). Words 2 h and 2 h + 1 give values 2 h and 2 h + 1.
__global__ void __launch_bounds__(kThreads) normal(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<1>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    const float u = float(int32_t(b.word[s & 2] >> 8) + 1) * 0x1p-24f;
    const double turns = double(int32_t(b.word[s | 1] >> 8)) * 0x1p-24;
    const float radius = math::sqrt(-2.0f * math::log(u));
    float sine, cosine;
    // Quarters of a turn are exact, so that the angle loses nothing.
    const int quarter = int(turns * 4.0 + 0.5);
    math::sin_cos(float((turns - quarter * 0.25) * 6.283185307179586), &sine, &cosine);
    // A quarter more: the cosine becomes minus the sine, the sine the cosine.
    const bool swaps = (quarter & 1) != (s & 1);
    const bool negative = s & 1 ? (quarter & 2) != 0 : ((quarter + 1) & 2) != 0;
    const float z = swaps ? sine : cosine;
    store_at(p, i, transformed(p, radius * (negative ? -z : z)));
  });
}
__global__ void __launch_bounds__(kThreads) normal_double(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<2>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    const double u = uniform_of(b, 0) + 0x1p-53;
    const double angle = uniform_of(b, 1) * 6.283185307179586;
    const double radius = math::sqrt(-2.0 * math::log(u));
    const double z = s ? math::sin(angle) : math::cos(angle);
    reinterpret_cast<double*>(p.out)[i] = transformed(p, radius * z);
  });
}

__global__ void __launch_bounds__(kThreads) bernoulli(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<1>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    bool one = int32_t(b.word[s] >> 8) < p.threshold;
    if (p.p) {
      const char* q = p.p + i * item_size(p.p_dtype);
      one = double(uniform_f32(b.word[s])) < load_element<double>(q, p.p_dtype);
    }
    store_at(p, i, int64_t(one));
  });
}

__global__ void __launch_bounds__(kThreads) dropout_double(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<1>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    const bool keep = int32_t(b.word[s] >> 8) < p.threshold;
    reinterpret_cast<double*>(p.out)[i] =
        reinterpret_cast<const double*>(p.x)[i] * (keep ? p.scale : 0.0);
    p.mask[i] = keep;
  });
}
template <class S> __device__ __forceinline__ S scaled(S x, float factor) {
  if constexpr (__is_same(S, F16)) return narrow_f16(widen(x) * factor);
  else if constexpr (__is_same(S, BF16)) return narrow_bf16(widen(x) * factor);
  else return x * factor;
}
// A half-warp has the 64 values of 16 counters. Thread t of it computes the words of counter t, and
// by votes learns of values 4 t … 4 t + 3, which it scales: lanes 4 (t % 4) … of word t / 4.
template <class S> __global__ void __launch_bounds__(kThreads)
    dropout(const __grid_constant__ RandomPlan p, bool aligned) {
  device::wait_for_previous();
  using Values = Pack<S, 4>;
  using Flags = Pack<uint8_t, 4>;
  const S* const x = reinterpret_cast<const S*>(p.x);
  S* const out = reinterpret_cast<S*>(p.out);
  const int64_t counter = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t first = counter * 4;
  const bool whole = aligned && first + 4 <= p.n;
  Values values;
  if (whole) {
    values = *reinterpret_cast<const Values*>(x + first);
  } else {
    for (int j = 0; j < 4; j++) values.v[j] = first + j < p.n ? x[first + j] : S{};
  }
  const uint64_t at = p.offset + uint64_t(counter);
  const PhiloxBlock words =
      philox({{uint32_t(at), uint32_t(at >> 32), 0, 0}}, uint32_t(p.seed), uint32_t(p.seed >> 32));
  const int lane = int(threadIdx.x) & 31;
  uint32_t kept = 0;
#pragma unroll
  for (int w = 0; w < 4; w++) {
    const uint32_t all = __ballot_sync(kAllLanes, int32_t(words.word[w] >> 8) < p.threshold);
    if ((lane >> 2 & 3) == w) kept = all;
  }
  kept >>= (lane & 16) + 4 * (lane & 3);
  Flags flags;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    flags.v[j] = uint8_t(kept >> j & 1);
    values.v[j] = scaled(values.v[j], flags.v[j] ? float(p.scale) : 0.0f);
  }
  if (whole) {
    *reinterpret_cast<Values*>(out + first) = values;
    *reinterpret_cast<Flags*>(p.mask + first) = flags;
    return;
  }
  for (int j = 0; j < 4 && first + j < p.n; j++) {
    out[first + j] = values.v[j];
    p.mask[first + j] = flags.v[j];
  }
}
template <class S> int32_t launch_dropout(const RandomPlan& p, void* stream) {
  if (p.n == 0) return TT_OK;
  const auto is_aligned = [](const void* at, size_t bytes) {
    return reinterpret_cast<uintptr_t>(at) % bytes == 0;
  };
  const bool aligned =
      is_aligned(p.x, 4 * sizeof(S)) && is_aligned(p.out, 4 * sizeof(S)) && is_aligned(p.mask, 4);
  const unsigned grid = blocks_for(p.n, kThreads, 4);
  return device::launch_early(dropout<S>, grid, kThreads, stream, p, aligned);
}

__global__ void __launch_bounds__(kThreads) integers(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<1>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    store_at(p, i, int64_t(uint64_t(p.low) + (uint64_t(b.word[s]) * p.range >> 32)));
  });
}
__global__ void __launch_bounds__(kThreads) wide_integers(const __grid_constant__ RandomPlan p) {
  device::wait_for_previous();
  for_values<2>(p, [&](const PhiloxBlock& b, int s, int64_t i) {
    const uint64_t all = uint64_t(b.word[2 * s]) << 32 | b.word[2 * s + 1];
    store_at(p, i, int64_t(uint64_t(p.low) + (p.range ? __umul64hi(all, p.range) : all)));
  });
}

const RandomPlan& random_plan(const void* plan) { return *static_cast<const RandomPlan*>(plan); }

}  // namespace

namespace cuda {

int32_t random_uniform(const void* plan, void* stream, void*) {
  const RandomPlan& p = random_plan(plan);
  if (p.dtype == TT_F64) return launch_random<2>(uniform_double, p, stream);
  return launch_random<1>(uniform, p, stream);
}
int32_t random_normal(const void* plan, void* stream, void*) {
  const RandomPlan& p = random_plan(plan);
  if (p.dtype == TT_F64) return launch_random<2>(normal_double, p, stream);
  return launch_random<1>(normal, p, stream);
}
int32_t random_bernoulli(const void* plan, void* stream, void*) {
  return launch_random<1>(bernoulli, random_plan(plan), stream);
}
int32_t random_dropout(const void* plan, void* stream, void*) {
  const RandomPlan& p = random_plan(plan);
  switch (p.dtype) {
    case TT_F16: return launch_dropout<F16>(p, stream);
    case TT_BF16: return launch_dropout<BF16>(p, stream);
    case TT_F32: return launch_dropout<float>(p, stream);
    default: return launch_random<1>(dropout_double, p, stream);
  }
}
int32_t random_integers(const void* plan, void* stream, void*) {
  const RandomPlan& p = random_plan(plan);
  const bool narrow = p.range && p.range <= uint64_t(1) << 32;
  if (narrow) return launch_random<1>(integers, p, stream);
  return launch_random<2>(wide_integers, p, stream);
}

}  // namespace cuda
}  // namespace TT_NS
