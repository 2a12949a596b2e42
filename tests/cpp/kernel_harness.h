// Shared by the kernel tests: the builds of a kernel, buffers of any dtype, split runs.
#pragma once

#include "base/cpuid.h"
#include "plan/stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

// An instruction set that the build lacks is replaced by the next lower one.
namespace TT_NS {
namespace baseline {}
#if TT_HAVE_SVE256
namespace sve256 {}
#elif TT_HAVE_NEON
namespace neon {
using namespace baseline;
}
#endif
namespace avx2 {
#if TT_HAVE_SVE256
using namespace sve256;
#elif TT_HAVE_NEON
using namespace neon;
#elif !TT_HAVE_AVX2
using namespace baseline;
#endif
}  // namespace avx2
namespace avx512 {
#if !TT_HAVE_AVX512
using namespace avx2;
#endif
}  // namespace avx512
}  // namespace TT_NS

#define DECLARE_IN(isa, name)                           \
  namespace TT_NS {                                     \
  namespace isa {                                       \
  int32_t name(const void*, int64_t, int64_t) noexcept; \
  }                                                     \
  }
#if TT_HAVE_AVX512
#define DECLARE_KERNEL(name) \
  DECLARE_IN(baseline, name) DECLARE_IN(avx2, name) DECLARE_IN(avx512, name)
#elif TT_HAVE_AVX2
#define DECLARE_KERNEL(name) DECLARE_IN(baseline, name) DECLARE_IN(avx2, name)
#elif TT_HAVE_SVE256
#define DECLARE_KERNEL(name) DECLARE_IN(baseline, name) DECLARE_IN(sve256, name)
#else
#define DECLARE_KERNEL(name) DECLARE_IN(baseline, name)
#endif
// A kernel that AVX-512 takes from AVX2 (kernels.txt).
#if TT_HAVE_AVX512
#define DECLARE_KERNEL_OF_AVX2(name)                                  \
  DECLARE_IN(baseline, name) DECLARE_IN(avx2, name) namespace TT_NS { \
    namespace avx512 {                                                \
    using avx2::name;                                                 \
    }                                                                 \
  }
#else
#define DECLARE_KERNEL_OF_AVX2(name) DECLARE_KERNEL(name)
#endif
#define KERNEL_ROW(name) \
  (kernel_test::KernelRow{{TT_NS::baseline::name, TT_NS::avx2::name, TT_NS::avx512::name}})

namespace kernel_test {
using namespace TT_NS;

struct KernelRow {
  CpuKernel isa[kNumIsa];
};

inline float half_to_float(uint16_t h) {
  const int e = h >> 10 & 31;
  const int m = h & 1023;
  const float sign = h & 0x8000 ? -1.f : 1.f;
  if (e == 31)
    return m ? std::numeric_limits<float>::quiet_NaN()
             : sign * std::numeric_limits<float>::infinity();
  return sign * (e ? std::ldexp(float(m + 1024), e - 25) : std::ldexp(float(m), -24));
}
inline uint16_t float_to_half(double v) {
  if (std::isnan(v)) return 0x7e00;
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  if (v >= 65520) return sign | 0x7c00;
  if (v < std::ldexp(1, -14)) return sign | uint16_t(std::nearbyint(std::ldexp(v, 24)));
  int e;
  const double m = std::frexp(v, &e);  // 0.5 … 1
  const int64_t q = int64_t(std::nearbyint(std::ldexp(m, 11)));
  return uint16_t(sign | (((e + 14) << 10) + (q - 1024)));
}
inline float bf16_to_float(uint16_t h) {
  const uint32_t b = uint32_t(h) << 16;
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}
inline uint16_t float_to_bf16(float f) {
  uint32_t b;
  std::memcpy(&b, &f, 4);
  if (std::isnan(f)) return 0x7fc0;
  return uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

using Value = std::complex<double>;

inline Value get(const void* base, int32_t dtype) {
  switch (dtype) {
    case TT_BOOL:
    case TT_U8: return double(*static_cast<const uint8_t*>(base));
    case TT_I8: return double(*static_cast<const int8_t*>(base));
    case TT_I16: return double(*static_cast<const int16_t*>(base));
    case TT_I32: return double(*static_cast<const int32_t*>(base));
    case TT_I64: return double(*static_cast<const int64_t*>(base));
    case TT_F16: return half_to_float(*static_cast<const uint16_t*>(base));
    case TT_BF16: return bf16_to_float(*static_cast<const uint16_t*>(base));
    case TT_F32: return *static_cast<const float*>(base);
    case TT_F64: return *static_cast<const double*>(base);
    case TT_C64: return Value(*static_cast<const std::complex<float>*>(base));
    default: return *static_cast<const Value*>(base);
  }
}
inline void set(void* base, int32_t dtype, Value v) {
  switch (dtype) {
    case TT_BOOL: *static_cast<uint8_t*>(base) = v.real() != 0; break;
    case TT_U8: *static_cast<uint8_t*>(base) = uint8_t(v.real()); break;
    case TT_I8: *static_cast<int8_t*>(base) = int8_t(v.real()); break;
    case TT_I16: *static_cast<int16_t*>(base) = int16_t(v.real()); break;
    case TT_I32: *static_cast<int32_t*>(base) = int32_t(v.real()); break;
    case TT_I64: *static_cast<int64_t*>(base) = int64_t(v.real()); break;
    case TT_F16: *static_cast<uint16_t*>(base) = float_to_half(v.real()); break;
    case TT_BF16: *static_cast<uint16_t*>(base) = float_to_bf16(float(v.real())); break;
    case TT_F32: *static_cast<float*>(base) = float(v.real()); break;
    case TT_F64: *static_cast<double*>(base) = v.real(); break;
    case TT_C64: *static_cast<std::complex<float>*>(base) = std::complex<float>(v); break;
    default: *static_cast<Value*>(base) = v;
  }
}

inline bool is_float(int32_t d) { return d >= TT_F16; }
inline bool is_complex(int32_t d) { return d >= TT_C64; }
inline const char* dtype_text(int32_t d) {
  static const char* const names[] = {"",    "bool", "u8",  "i8",  "i16", "i32", "i64",
                                      "f16", "bf16", "f32", "f64", "c64", "c128"};
  return names[d];
}
// Spacing of numbers around 1.
inline double epsilon(int32_t d) {
  switch (d) {
    case TT_F16: return 0x1p-10;
    case TT_BF16: return 0x1p-7;
    case TT_F32:
    case TT_C64: return 0x1p-23;
    case TT_F64:
    case TT_C128: return 0x1p-52;
    default: return 0;
  }
}

// n elements of a dtype, 64-byte aligned, with a guard behind them.
struct Buffer {
  int32_t dtype;
  int64_t n;
  std::vector<char> bytes;

  Buffer(int32_t d, int64_t count)
      : dtype(d), n(count), bytes(size_t(count * kItemSize[d] + 128), char(0x5a)) {}
  char* data() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }
  char* at(int64_t i) { return data() + i * kItemSize[dtype]; }
  Value operator[](int64_t i) { return get(at(i), dtype); }
  double real(int64_t i) { return (*this)[i].real(); }
  void put(int64_t i, Value v) { set(at(i), dtype, v); }
  template <class F> void fill(F f) {
    for (int64_t i = 0; i < n; i++) put(i, f(i));
  }
  bool same_bytes(Buffer& o) {
    return n == o.n && !std::memcmp(data(), o.data(), size_t(n * kItemSize[dtype]));
  }
};

// Small values of any dtype: integers in a narrow range, floats around 0.
inline void fill_random(Buffer* b, uint32_t seed) {
  std::mt19937 g(seed);
  std::normal_distribution<double> normal;
  b->fill([&](int64_t) -> Value {
    if (b->dtype == TT_BOOL) return double(g() & 1);
    if (b->dtype == TT_U8) return double(g() % 100);
    if (!is_float(b->dtype)) return double(int(g() % 200) - 100);
    const double re = normal(g);
    return is_complex(b->dtype) ? Value(re, normal(g)) : Value(re);
  });
}

// Runs the stages of a plan in ranges of `piece` units (0: all at once), the last range first.
template <class Plan> int32_t run_split(CpuKernel kernel, Plan* plan, int64_t piece) {
  for (int s = 0; s < plan->run.n; s++) {
    plan->run.stage = s;
    const int64_t units = plan->run.units[s];
    const int64_t step = piece ? piece : units;
    if (!units) continue;
    for (int64_t b = (units - 1) / step * step; b >= 0; b -= step) {
      const int32_t r = kernel(plan, b, b + step < units ? b + step : units);
      if (r) return r;
    }
  }
  return 0;
}

inline std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& size, int64_t item) {
  std::vector<int64_t> s(size.size());
  for (size_t i = size.size(); i-- > 0; item *= size[i]) s[i] = item;
  return s;
}

}  // namespace kernel_test
