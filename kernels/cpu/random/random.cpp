// Uniform, normal, Bernoulli and integer values, and dropout. Element i is a function of seed,
// offset and i (random_plan.h), so results depend on neither threads nor instruction set.
#include "kernels/cpu/random/random.h"

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/random/words.h"
#include "kernels/cpu/simd/load.h"
#include "plan/random_plan.h"

TT_ISA_BEGIN

constexpr int64_t kWords = 1024;  // random words of one step

// Calls f(words, i, n) to fill elements [i, i + n), n <= kWords / kPerValue. A value takes
// kPerValue words; `words` is padded to whole groups.
template <int kPerValue, class F>
inline int32_t for_words(const RandomPlan& p, int64_t begin, int64_t end, const F& f) {
  alignas(64) uint32_t words[kWords];
  constexpr int64_t kStep = kWords / kPerValue;
  const int64_t last = min(end * kRandomChunk, p.n);
  for (int64_t i = begin * kRandomChunk; i < last; i += kStep) {
    const int64_t n = min(last - i, kStep);
    const int64_t group = i * kPerValue / 64;
    philox_words<Stored::kWord>(words, p.seed, p.offset + uint64_t(group) * kPhiloxGroup,
                                ceil_div(n * kPerValue, 64));
    f(words, i, n);
  }
  return TT_OK;
}

TT_INLINE char* element(const RandomPlan& p, int64_t i) { return p.out + i * kItemSize[p.dtype]; }

// The two words of value i (random_plan.h).
struct TwoWords {
  uint32_t hi, lo;
};
TT_INLINE TwoWords two_words(const uint32_t* words, int64_t i) {
  const uint32_t* w = words + i / 16 * 32 + i % 16;
  return {w[0], w[16]};
}

// In place: v = -log(1 - v) if p.exponential, then v * scale + shift.
template <class T> TT_NOINLINE void transform(const RandomPlan& p, T* v, int64_t n) {
  constexpr T kMin = sizeof(T) == 8 ? T(0x1p-54) : T(0x1p-25);
  const T scale = T(p.scale);
  const T shift = T(p.shift);
  if (p.exponential)
    for (int64_t i = 0; i < n; i++) {
      const T y = -math::log(T(1) - v[i]);
      v[i] = max(y, kMin);  // never 0
    }
  if (scale != T(1) || shift != T(0))
    for (int64_t i = 0; i < n; i++) v[i] = v[i] * scale + shift;
}

// out: [n], n <= kRandomChunk; the first element has the first word of the group at `counter`.
inline void uniform_floats(float* out, int64_t n, uint64_t seed, uint64_t counter) {
  int64_t done = 0;
  // Words become numbers before they are stored: stores, which may wait for memory, are then spread
  // over the arithmetic. Narrower vectors would gain less than the second body of Philox costs.
  if constexpr (kLanes<uint64_t> == 8) {
    const int64_t groups = n / 64 / kGroupsAtOnce * kGroupsAtOnce;
    philox_words<Stored::kUniform>(reinterpret_cast<uint32_t*>(out), seed, counter, groups);
    done = groups * 64;
  }
  alignas(64) uint32_t words[kWords];
  while (done < n) {
    const int64_t m = min(n - done, kWords);
    const uint64_t group = uint64_t(done) / 64;
    philox_words<Stored::kWord>(words, seed, counter + group * kPhiloxGroup, ceil_div(m, 64));
    for (int64_t k = 0; k < m; k++) out[done + k] = uniform_f32(words[k]);
    done += m;
  }
}

// ---- normal ----

struct Pair {
  float a, b;
};

// log(x) for a normal x > 0: math::log without its special cases.
TT_INLINE float log_of_normal(float x) {
  const uint32_t u = bit_cast<uint32_t>(x) - 0x3f3504f3u;
  const float n = float(int32_t(u) >> 23);
  const float f = bit_cast<float>((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float f2 = f * f;
  float q = 0x1.14622p-4f;
  q = math::fma(q, f, -0x1.de4ed2p-4f);
  q = math::fma(q, f, 0x1.e6f604p-4f);
  q = math::fma(q, f, -0x1.fc1f8ep-4f);
  q = math::fma(q, f, 0x1.2336e6p-3f);
  q = math::fma(q, f, -0x1.555c58p-3f);
  q = math::fma(q, f, 0x1.99a4bcp-3f);
  q = math::fma(q, f, -0x1.000006p-2f);
  q = math::fma(q, f, 0x1.555548p-2f);
  const float low = math::fma(f * f2, q, math::fma(f2, -0.5f, n * math::kLn2Lo));
  return math::fma(n, math::kLn2Hi, f + low);
}

// Box & Muller, Ann. Math. Stat. 29 (1958). The angle is 2 pi u, u = u24 / 2^24; in quarters of a
// circle it is exactly k + f, |f| <= 1/2. The polynomials of sin and cos are those of math.h.
TT_INLINE Pair box_muller(uint32_t w0, uint32_t w1) {
  const float u = float(int32_t(w0 >> 8) + 1) * 0x1p-24f;  // (0, 1]
  const float radius = libm::sqrtf(-2.0f * log_of_normal(u));
  const int32_t u24 = int32_t(w1 >> 8);
  const int32_t k = (u24 + (1 << 21)) >> 22;
  const float x = float(u24 - (k << 22)) * (0x1p-22f * 0x1.921fb6p+0f);
  const float z = x * x;
  float s = 0x1.6cd5ecp-19f;
  s = math::fma(s, z, -0x1.a00f94p-13f);
  s = math::fma(s, z, 0x1.111108p-7f);
  s = math::fma(s, z, -0x1.555556p-3f);
  s = math::fma(x * z, s, x);
  float c = 0x1.99ff42p-16f;
  c = math::fma(c, z, -0x1.6c0c82p-10f);
  c = math::fma(c, z, 0x1.55554ap-5f);
  c = math::fma(z * z, c, math::fma(z, -0.5f, 1.0f));
  const float cosine = k & 1 ? s : c;
  const float sine = k & 1 ? c : s;
  const uint32_t cos_sign = uint32_t((k + 1) & 2) << 30;
  const uint32_t sin_sign = uint32_t(k & 2) << 30;
  return {radius * bit_cast<float>(bit_cast<uint32_t>(cosine) ^ cos_sign),
          radius * bit_cast<float>(bit_cast<uint32_t>(sine) ^ sin_sign)};
}

// Converts each group of 64 words, [4][16], to as many floats: words l and 16 + l of each half give
// values l and 16 + l.
TT_NOINLINE void normals(float* out, const uint32_t* words, int64_t groups) {
  for (int64_t h = 0; h < 2 * groups; h++, words += 32, out += 32)
    for (int l = 0; l < 16; l++) {
      const Pair z = box_muller(words[l], words[16 + l]);
      out[l] = z.a;
      out[16 + l] = z.b;
    }
}

// Four words of a counter give two doubles.
TT_NOINLINE void normals(double* out, const uint32_t* words, int64_t groups) {
  for (int64_t g = 0; g < groups; g++, words += 64, out += 32)
    for (int l = 0; l < 16; l++) {
      const double u = uniform_f64(words[l], words[16 + l]) + 0x1p-53;
      const double angle = uniform_f64(words[32 + l], words[48 + l]) * 0x1.921fb54442d18p+2;
      const double radius = libm::sqrt(-2.0 * math::log(u));
      out[l] = radius * math::cos(angle);
      out[16 + l] = radius * math::sin(angle);
    }
}

// ---- integers, stored as any dtype ----

template <class T> TT_NOINLINE void store_ints(char* out, const int64_t* v, int64_t n) {
  T* d = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < n; i++) d[i] = T(v[i]);
}

TT_NOINLINE void store_values(const RandomPlan& p, int64_t i, const int64_t* v, int64_t n) {
  char* out = element(p, i);
  switch (p.dtype) {
    case TT_BOOL:
    case TT_U8:
    case TT_I8: return store_ints<uint8_t>(out, v, n);
    case TT_I16: return store_ints<int16_t>(out, v, n);
    case TT_I32: return store_ints<int32_t>(out, v, n);
    case TT_I64: return store_ints<int64_t>(out, v, n);
    case TT_F64: return store_ints<double>(out, v, n);
    case TT_C64:
      for (int64_t k = 0; k < n; k++) reinterpret_cast<C64*>(out)[k] = {float(v[k]), 0};
      return;
    case TT_C128:
      for (int64_t k = 0; k < n; k++) reinterpret_cast<C128*>(out)[k] = {double(v[k]), 0};
      return;
    default: break;
  }
  alignas(64) float f[kWords];
  for (int64_t k = 0; k < n; k++) f[k] = float(v[k]);
  store_f32(out, kItemSize[p.dtype], f, n, p.dtype);
}

// ---- dropout ----

// out, mask, x, words: [n]. The mask is that of the elements that are kept.
template <class T> inline void drop(T* TT_RESTRICT out, uint8_t* TT_RESTRICT mask,
                                    const T* TT_RESTRICT x, const uint32_t* TT_RESTRICT words,
                                    int64_t n, int32_t threshold, T scale) {
  for (int64_t i = 0; i < n; i++) {
    const bool keep = int32_t(words[i] >> 8) < threshold;
    out[i] = x[i] * (keep ? scale : T(0));
  }
  for (int64_t i = 0; i < n; i++) mask[i] = int32_t(words[i] >> 8) < threshold;
}

TT_ISA_END

TT_ENTRY_BEGIN

void random_words(uint32_t* out, uint64_t seed, uint64_t counter, int64_t groups) noexcept {
  philox_words<Stored::kWord>(out, seed, counter, groups);
}

TT_KERNEL(random_uniform)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RandomPlan& p = *static_cast<const RandomPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) {
    return for_words<2>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
      double* out = reinterpret_cast<double*>(p.out) + i;
      int64_t k = 0;
      for (; k + 16 <= n; k += 16, words += 32)
        for (int l = 0; l < 16; l++) out[k + l] = uniform_f64(words[l], words[16 + l]);
      for (int l = 0; k < n; k++, l++) out[k] = uniform_f64(words[l], words[16 + l]);
      transform(p, reinterpret_cast<double*>(p.out) + i, n);
    });
  }
  if (p.dtype == TT_F32) {
    const int64_t last = min(end * kRandomChunk, p.n);
    for (int64_t i = begin * kRandomChunk; i < last; i += kRandomChunk) {
      float* out = reinterpret_cast<float*>(p.out) + i;
      const int64_t n = min(last - i, kRandomChunk);
      uniform_floats(out, n, p.seed, p.offset + uint64_t(i / 64) * kPhiloxGroup);
      transform(p, out, n);
    }
    return TT_OK;
  }
  // As many bits as the dtype's significand holds: no result is rounded up to 1.
  int bits = is_dtype(p.dtype, TT_F16) ? 11 : 8;
  if (p.exponential) bits = 24;
  const float step = math::power_of_two(int32_t(-bits));
  return for_words<1>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
    alignas(64) float v[kWords];
    for (int64_t k = 0; k < n; k++) v[k] = float(int32_t(words[k] >> (32 - bits))) * step;
    transform(p, v, n);
    store_f32(element(p, i), 2, v, n, p.dtype);
  });
}

TT_KERNEL(random_normal)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RandomPlan& p = *static_cast<const RandomPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) {
    return for_words<2>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
      alignas(64) double v[kWords / 2];
      normals(v, words, ceil_div(n, 32));
      transform(p, v, n);
      memcpy(element(p, i), v, size_t(n) * 8);
    });
  }
  return for_words<1>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
    alignas(64) float v[kWords];
    if (p.dtype == TT_F32 && n % 64 == 0) {
      normals(reinterpret_cast<float*>(p.out) + i, words, n / 64);
      return transform(p, reinterpret_cast<float*>(p.out) + i, n);
    }
    normals(v, words, ceil_div(n, 64));
    transform(p, v, n);
    store_f32(element(p, i), kItemSize[p.dtype], v, n, p.dtype);
  });
}

TT_KERNEL(random_bernoulli)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RandomPlan& p = *static_cast<const RandomPlan*>(plan);
  return for_words<1>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
    alignas(64) int64_t v[kWords];
    if (!p.p) {
      for (int64_t k = 0; k < n; k++) v[k] = int32_t(words[k] >> 8) < p.threshold;
    } else if (is_dtype(p.p_dtype, TT_F64)) {
      const double* q = reinterpret_cast<const double*>(p.p) + i;
      for (int64_t k = 0; k < n; k++) v[k] = double(uniform_f32(words[k])) < q[k];
    } else {
      alignas(64) float q[kWords];
      load_f32(q, p.p + i * kItemSize[p.p_dtype], kItemSize[p.p_dtype], n, p.p_dtype);
      for (int64_t k = 0; k < n; k++) v[k] = uniform_f32(words[k]) < q[k];
    }
    store_values(p, i, v, n);
  });
}

TT_KERNEL(random_dropout)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RandomPlan& p = *static_cast<const RandomPlan*>(plan);
  return for_words<1>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
    if (is_dtype(p.dtype, TT_F64)) {
      return drop(reinterpret_cast<double*>(p.out) + i, p.mask + i,
                  reinterpret_cast<const double*>(p.x) + i, words, n, p.threshold, p.scale);
    }
    if (p.dtype == TT_F32) {
      return drop(reinterpret_cast<float*>(p.out) + i, p.mask + i,
                  reinterpret_cast<const float*>(p.x) + i, words, n, p.threshold, float(p.scale));
    }
    alignas(64) float x[kWords], v[kWords];
    load_f32(x, p.x + i * 2, 2, n, p.dtype);
    drop(v, p.mask + i, x, words, n, p.threshold, float(p.scale));
    store_f32(element(p, i), 2, v, n, p.dtype);
  });
}

TT_KERNEL(random_integers)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RandomPlan& p = *static_cast<const RandomPlan*>(plan);
  alignas(64) int64_t v[kWords];
  if (p.range && p.range <= uint64_t(1) << 32) {
    return for_words<1>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
      for (int64_t k = 0; k < n; k++)
        v[k] = int64_t(uint64_t(p.low) + (uint64_t(words[k]) * p.range >> 32));
      store_values(p, i, v, n);
    });
  }
  return for_words<2>(p, begin, end, [&](const uint32_t* words, int64_t i, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
      const TwoWords w = two_words(words, k);
      const uint64_t all = uint64_t(w.hi) << 32 | w.lo;
      const uint64_t scaled = p.range ? mul_high(all, p.range) : all;
      v[k] = int64_t(uint64_t(p.low) + scaled);
      TT_SCALAR_LOOP;
    }
    store_values(p, i, v, n);
  });
}

TT_ENTRY_END
