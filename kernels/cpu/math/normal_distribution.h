// The standard normal distribution. normal_tail(x, &bell) returns 1 - Phi(|x|), to a few ulp
// everywhere, and sets bell to exp(-x^2 / 2). Included by math.h.
#pragma once

TT_ISA_BEGIN
namespace math {

// (1 + e) b c with about one rounding; *a = 1 + e.
TT_INLINE float scaled_product(float e, float b, float c, float* a) {
  *a = e + 1.0f;
  return float((double(e) + 1.0) * b * c);
}
#if TT_VECTOR_MATH
TT_INLINE F32v scaled_product(F32v e, F32v b, F32v c, F32v* a) {
  const F32v bc = b * c;
  *a = e + 1.0f;
  return fma(*a, bc, fma(e - (*a - 1.0f), bc, *a * product_rest(b, c, bc)));
}
#endif

// The tail as exp(-t^2 / 2) z P(z - 0.546875) = 2^n bell z P, where t = |x| and
// z = 1 / (1 + 0.296875 t); P: 2^-27. Tail and bell are 0 beyond 15.
template <class V> TT_INLINE V tail_parts(V x, V* bell, V* n) {
  const V t = at_most(abs(x), 15.0f);
  const V half = t * 0.5f;
  const V square = half * t;
  const V slope = splat<V>(0.296875f);
  const V d = fma(t, slope, splat<V>(1.0f));
  const V low = product_rest(t, slope, d - 1.0f);
  const V rough = 1.0f / d;
  const V lost = product_rest(-rough, d, splat<V>(-1.0f)) - rough * low;
  const V z = fma(rough, lost, rough);
  const V y = fma(rough, lost, rough - 0.546875f);  // z - 0.546875 with more bits than z has
  const V e = exp_rest(-square, -product_rest(half, t, square), n);
  V p = fma(y, -0x1.545de2p-6f, splat<V>(0x1.d5c542p-7f));
  p = fma(p, y, 0x1.46e81p-5f);
  p = fma(p, y, -0x1.e794c6p-6f);
  p = fma(p, y, -0x1.5bba08p-4f);
  p = fma(p, y, 0x1.519c66p-6f);
  p = fma(p, y, 0x1.e5a28cp-3f);
  p = fma(p, y, 0x1.87a534p-2f);
  p = fma(p, y, 0x1.72edb8p-2f);
  p = fma(p, y, 0x1.e3917ep-3f);
  return scaled_product(e, p, z, bell);
}
TT_INLINE float normal_tail(float x, float* bell) {
  float n;
  const float tail = tail_parts(x, bell, &n);
  *bell = scale(*bell, n);
  return scale(tail, n);
}
template <class V> TT_INLINE V gelu_by_tail(V x) {
  V bell, n;
  const V tail = tail_parts(x, &bell, &n);
  return if_negative(x, gate_scaled(x, tail, n), V(x * (1.0f - scale(tail, n))));
}

#if TT_VECTOR_MATH
// The polynomial in u = 4 x - n around the multiple n of 1/4 that is nearest to x, for x in
// [-3.875, 4.125). row[i]: the coefficients of u^i for n = -15 … 16.
TT_INLINE F32v near_polynomial(const float (&row)[7][32], F32v x) {
  const F32v shifted = fma(x, 4.0f, splat<F32v>(kRound + 15));
  const F32v u = fma(x, 4.0f, splat<F32v>(kRound + 15) - shifted);
  const auto n = bits_of(shifted);  // its low five bits are n + 15
  F32v c[7];
  TT_UNROLL_BY(8)
  for (int i = 0; i < 7; i++) c[i] = look_up(row[i], n);
  const F32v u2 = u * u;
  const F32v high = fma(u2, c[6], fma(u, c[5], c[4]));
  return fma(u2, fma(u2, high, fma(u, c[3], c[2])), fma(u, c[1], c[0]));
}

// gelu is x Phi(x). On [-3.875, 4.125): a polynomial whose error is 2^-29. Elsewhere: by the tail.
static TT_NOINLINE F32v gelu_far(F32v x) { return gelu_by_tail(x); }
TT_INLINE F32v gelu(F32v x) {
  alignas(64) static constexpr float kRow[7][32] = {
      {-0x1.5babcp-12f, -0x1.aae05p-11f, -0x1.eb9b5cp-10f, -0x1.096698p-8f,
       -0x1.0c832ep-7f, -0x1.fcb21ep-7f, -0x1.c2a49ap-6f,  -0x1.74bcf8p-5f,
       -0x1.1f24ep-4f,  -0x1.9a76a4p-4f, -0x1.0e76a2p-3f,  -0x1.44ed0cp-3f,
       -0x1.5c198p-3f,  -0x1.3bf144p-3f, -0x1.9aecbap-4f,  0.0f,
       0x1.3289a2p-3f,  0x1.62075ep-2f,  0x1.28f9ap-1f,    0x1.aec4bep-1f,
       0x1.1e312cp+0f,  0x1.665896p+0f,  0x1.ae0db2p+0f,   0x1.f45a18p+0f,
       0x1.1c7ab6p+1f,  0x1.3e034ep+1f,  0x1.5ef37cp+1f,   0x1.7f7b4cp+1f,
       0x1.9fc28cp+1f,  0x1.bfe552p+1f,  0x1.dff522p+1f,   0x1.fffbdap+1f},
      {-0x1.437006p-12f, -0x1.71da9p-11f, -0x1.8a5ae6p-10f, -0x1.876f5ap-9f, -0x1.68e62cp-8f,
       -0x1.341c2ap-7f,  -0x1.e4e1e4p-7f, -0x1.5d1c06p-6f,  -0x1.c65a8p-6f,  -0x1.050e92p-5f,
       -0x1.f66bfep-6f,  -0x1.55429ap-6f, 0x1.95f206p-13f,  0x1.0f5eb8p-5f,  0x1.37f00cp-4f,
       0x1p-3f,          0x1.6407fap-3f,  0x1.bc2852p-3f,   0x1.ff9a84p-3f,  0x1.15542ap-2f,
       0x1.1f66cp-2f,    0x1.20a1d2p-2f,  0x1.1c65a8p-2f,   0x1.15d1cp-2f,   0x1.0f271p-2f,
       0x1.09a0e2p-2f,   0x1.05a398p-2f,  0x1.030edep-2f,   0x1.018a5ap-2f,  0x1.00b8eep-2f,
       0x1.0050dcp-2f,   0x1.002102p-2f},
      {-0x1.16bc9cp-13f, -0x1.251c16p-12f, -0x1.1ca6ap-11f,  -0x1.fc47a2p-11f, -0x1.9e601ep-10f,
       -0x1.3121f6p-9f,  -0x1.8e2466p-9f,  -0x1.ba4b44p-9f,  -0x1.777a98p-9f,  -0x1.094086p-10f,
       0x1.474ea2p-9f,   0x1.ef8e58p-8f,   0x1.bb4638p-7f,   0x1.3b7356p-6f,   0x1.7f9324p-6f,
       0x1.988454p-6f,   0x1.7f9324p-6f,   0x1.3b7356p-6f,   0x1.bb4638p-7f,   0x1.ef8e58p-8f,
       0x1.474ea2p-9f,   -0x1.094086p-10f, -0x1.777a98p-9f,  -0x1.ba4b44p-9f,  -0x1.8e2466p-9f,
       -0x1.3121f6p-9f,  -0x1.9e601ep-10f, -0x1.fc47a2p-11f, -0x1.1ca6aep-11f, -0x1.251c14p-12f,
       -0x1.16bc9cp-13f, -0x1.eb28b8p-15f},
      {-0x1.22a6f6p-15f, -0x1.133d14p-14f, -0x1.d8b1a2p-14f, -0x1.6b0f4p-13f,
       -0x1.e68b6ap-13f, -0x1.0d3c36p-12f, -0x1.9e63dep-13f, 0x1.fe9db4p-29f,
       0x1.828732p-12f,  0x1.d03194p-11f,  0x1.7be916p-10f,  0x1.ef8e12p-10f,
       0x1.08ffeep-9f,   0x1.c2a40cp-10f,  0x1.03d6cep-10f,  0.0f,
       -0x1.03d6cep-10f, -0x1.c2a40cp-10f, -0x1.08ffeep-9f,  -0x1.ef8e12p-10f,
       -0x1.7be916p-10f, -0x1.d03194p-11f, -0x1.828732p-12f, -0x1.fe9db4p-29f,
       0x1.9e63dep-13f,  0x1.0d3c36p-12f,  0x1.e68b6ap-13f,  0x1.6b0f4p-13f,
       0x1.d8b0bcp-14f,  0x1.133d16p-14f,  0x1.22a6f8p-15f,  0x1.18a948p-16f},
      {-0x1.8de694p-18f, -0x1.459284p-17f, -0x1.cd775p-17f,  -0x1.0a3e12p-16f, -0x1.99e98cp-17f,
       0x1.074606p-19f,  0x1.f7701ap-16f,  0x1.26dd28p-14f,  0x1.daa408p-14f,  0x1.27a51ep-13f,
       0x1.184ddep-13f,  0x1.4a5e1ap-14f,  -0x1.3795bp-16f,  -0x1.15e58ap-13f, -0x1.d6b3d4p-13f,
       -0x1.10580cp-12f, -0x1.d6b3d4p-13f, -0x1.15e58ap-13f, -0x1.3795bp-16f,  0x1.4a5e1ap-14f,
       0x1.184ddep-13f,  0x1.27a51ep-13f,  0x1.daa408p-14f,  0x1.26dd28p-14f,  0x1.f7701ap-16f,
       0x1.074606p-19f,  -0x1.99e98cp-17f, -0x1.0a3e12p-16f, -0x1.cd4e02p-17f, -0x1.459468p-17f,
       -0x1.8de714p-18f, -0x1.b0b05ap-19f},
      {-0x1.6080c2p-21f, -0x1.bb0c4ep-21f, -0x1.7cab02p-21f, 0x1.4d9226p-27f,
       0x1.b78434p-20f,  0x1.17f592p-18f,  0x1.d5972ap-18f,  0x1.25dd7ap-17f,
       0x1.02a298p-17f,  0x1.60bfe2p-19f,  -0x1.968394p-18f, -0x1.07bcd4p-16f,
       -0x1.74c4acp-16f, -0x1.6e9464p-16f, -0x1.c72858p-17f, 0.0f,
       0x1.c72858p-17f,  0x1.6e9464p-16f,  0x1.74c4acp-16f,  0x1.07bcd4p-16f,
       0x1.968394p-18f,  -0x1.60bfe2p-19f, -0x1.02a298p-17f, -0x1.25dd7ap-17f,
       -0x1.d5972ap-18f, -0x1.17f592p-18f, -0x1.b78434p-20f, -0x1.4d9226p-27f,
       0x1.7e1032p-21f,  0x1.bb0824p-21f,  0x1.608022p-21f,  0x1.caf8bcp-22f},
      {-0x1.437f9ep-25f, -0x1.c6d75ep-27f, 0x1.35dfe6p-24f,  0x1.974842p-23f,  0x1.7bfa6ep-22f,
       0x1.fdd954p-22f,  0x1.cd532cp-22f,  0x1.cdd262p-24f,  -0x1.0915b4p-21f, -0x1.3f6e64p-20f,
       -0x1.b6403p-20f,  -0x1.8adb3ap-20f, -0x1.3c1b8cp-21f, 0x1.8f06ecp-21f,  0x1.04f954p-19f,
       0x1.45e738p-19f,  0x1.04f954p-19f,  0x1.8f06ecp-21f,  -0x1.3c1b8cp-21f, -0x1.8adb3ap-20f,
       -0x1.b6403p-20f,  -0x1.3f6e64p-20f, -0x1.0915b4p-21f, 0x1.cdd262p-24f,  0x1.cd532cp-22f,
       0x1.fdd954p-22f,  0x1.7bfa6ep-22f,  0x1.974842p-23f,  0x1.00098ep-24f,  -0x1.b29ce4p-27f,
       -0x1.42d634p-25f, -0x1.36801cp-25f},
  };
  F32v y = near_polynomial(kRow, x);
  const auto near = less(abs(x - 0.125f), splat<F32v>(4.0f));
  if (TT_UNLIKELY(near != kAllLanes)) y = select(near, y, gelu_far(x));
  return with_sign(y, x);
}

// The derivative of gelu, Phi(x) + x phi(x), in the same way; the polynomial's error is 2^-24.
template <class V> TT_INLINE V slope_by_tail(V x) {
  V bell, n;
  const V scaled = tail_parts(x, &bell, &n);
  const V tail = scale(scaled, n);
  return if_negative(x, tail, V(1.0f - tail)) + x * scale(bell, n) * 0.3989422804014327f;
}
static TT_NOINLINE F32v gelu_slope_far(F32v x) { return slope_by_tail(x); }
TT_INLINE F32v gelu_slope(F32v x) {
  alignas(64) static constexpr float kRow[7][32] = {
      {-0x1.437006p-10f, -0x1.71da9p-9f,  -0x1.8a5ae8p-8f, -0x1.876f5ap-7f, -0x1.68e62cp-6f,
       -0x1.341c2ap-5f,  -0x1.e4e1e4p-5f, -0x1.5d1c06p-4f, -0x1.c65a8p-4f,  -0x1.050e92p-3f,
       -0x1.f66bfep-4f,  -0x1.55429ap-4f, 0x1.95f1dep-11f, 0x1.0f5eb8p-3f,  0x1.37f00cp-2f,
       0x1p-1f,          0x1.6407fap-1f,  0x1.bc2852p-1f,  0x1.ff9a84p-1f,  0x1.15542ap+0f,
       0x1.1f66cp+0f,    0x1.20a1d2p+0f,  0x1.1c65a8p+0f,  0x1.15d1cp+0f,   0x1.0f271p+0f,
       0x1.09a0e2p+0f,   0x1.05a398p+0f,  0x1.030edep+0f,  0x1.018a5ap+0f,  0x1.00b8eep+0f,
       0x1.0050dcp+0f,   0x1.002102p+0f},
      {-0x1.16bc9cp-10f, -0x1.251c14p-9f, -0x1.1ca6aep-8f, -0x1.fc47a2p-8f, -0x1.9e601ep-7f,
       -0x1.3121f6p-6f,  -0x1.8e2468p-6f, -0x1.ba4b44p-6f, -0x1.777a98p-6f, -0x1.094084p-7f,
       0x1.474ea2p-6f,   0x1.ef8e5ap-5f,  0x1.bb4638p-4f,  0x1.3b7356p-3f,  0x1.7f9324p-3f,
       0x1.988454p-3f,   0x1.7f9324p-3f,  0x1.3b7356p-3f,  0x1.bb4638p-4f,  0x1.ef8e5ap-5f,
       0x1.474ea2p-6f,   -0x1.094084p-7f, -0x1.777a98p-6f, -0x1.ba4b44p-6f, -0x1.8e2468p-6f,
       -0x1.3121f6p-6f,  -0x1.9e601ep-7f, -0x1.fc47a2p-8f, -0x1.1ca6aep-8f, -0x1.251c14p-9f,
       -0x1.16bc9cp-10f, -0x1.eb28b8p-12f},
      {-0x1.b3fa3ep-12f, -0x1.9cdb1p-11f, -0x1.6283eap-10f, -0x1.104af2p-9f,
       -0x1.6ce80ep-9f,  -0x1.93da2p-9f,  -0x1.36cb7p-9f,   0x1.544386p-37f,
       0x1.21e44cp-8f,   0x1.5c24bp-7f,   0x1.1ceebep-6f,   0x1.73aac2p-6f,
       0x1.8d805cp-6f,   0x1.51fb94p-6f,  0x1.85c2fp-7f,    0.0f,
       -0x1.85c2fp-7f,   -0x1.51fb94p-6f, -0x1.8d805cp-6f,  -0x1.73aac2p-6f,
       -0x1.1ceebep-6f,  -0x1.5c24bp-7f,  -0x1.21e44cp-8f,  -0x1.544386p-37f,
       0x1.36cb7p-9f,    0x1.93da2p-9f,   0x1.6ce80ep-9f,   0x1.104af2p-9f,
       0x1.6283eap-10f,  0x1.9cdb1p-11f,  0x1.b3fa3ep-12f,  0x1.a4fe56p-13f},
      {-0x1.8de782p-14f, -0x1.4594dp-13f,  -0x1.cd4e84p-13f, -0x1.0a3e3cp-12f, -0x1.99e938p-13f,
       0x1.074b9ep-15f,  0x1.f7714cp-12f,  0x1.26dd76p-10f,  0x1.daa426p-10f,  0x1.27a4fcp-9f,
       0x1.184d8ap-9f,   0x1.4a5d5p-10f,   -0x1.3797b2p-12f, -0x1.15e578p-9f,  -0x1.d6b37p-9f,
       -0x1.1057bp-8f,   -0x1.d6b37p-9f,   -0x1.15e578p-9f,  -0x1.3797b2p-12f, 0x1.4a5d5p-10f,
       0x1.184d8ap-9f,   0x1.27a4fcp-9f,   0x1.daa426p-10f,  0x1.26dd76p-10f,  0x1.f7714cp-12f,
       0x1.074b9ep-15f,  -0x1.99e938p-13f, -0x1.0a3e3cp-12f, -0x1.cd4e84p-13f, -0x1.4594dp-13f,
       -0x1.8de782p-14f, -0x1.b0b0a2p-15f},
      {-0x1.b8f91ap-17f, -0x1.15d84cp-16f, -0x1.e1d4dp-17f,  0x1.973ab4p-33f,
       0x1.11043cp-15f,  0x1.5da228p-14f,  0x1.25f10cp-13f,  0x1.7093e4p-13f,
       0x1.451e8cp-13f,  0x1.bf9976p-15f,  -0x1.fb2912p-14f, -0x1.4a5ed6p-12f,
       -0x1.d3838ep-12f, -0x1.cc077cp-12f, -0x1.1dae68p-12f, 0.0f,
       0x1.1dae68p-12f,  0x1.cc077cp-12f,  0x1.d3838ep-12f,  0x1.4a5ed6p-12f,
       0x1.fb2912p-14f,  -0x1.bf9976p-15f, -0x1.451e8cp-13f, -0x1.7093e4p-13f,
       -0x1.25f10cp-13f, -0x1.5da228p-14f, -0x1.11043cp-15f, -0x1.973ab4p-33f,
       0x1.e1d4dp-17f,   0x1.15d84cp-16f,  0x1.b8f91ap-17f,  0x1.1e82dep-17f},
      {-0x1.e36298p-21f, -0x1.42bb94p-22f, 0x1.8112e2p-20f,  0x1.31a01ep-18f,  0x1.1ce6f8p-17f,
       0x1.7e098ap-17f,  0x1.5964b8p-17f,  0x1.57e1fap-19f,  -0x1.8ddbe8p-17f, -0x1.dee1d8p-16f,
       -0x1.485c42p-15f, -0x1.27bef4p-15f, -0x1.d92832p-17f, 0x1.2b2262p-16f,  0x1.87115cp-15f,
       0x1.e818fep-15f,  0x1.87115cp-15f,  0x1.2b2262p-16f,  -0x1.d92832p-17f, -0x1.27bef4p-15f,
       -0x1.485c42p-15f, -0x1.dee1d8p-16f, -0x1.8ddbe8p-17f, 0x1.57e1fap-19f,  0x1.5964b8p-17f,
       0x1.7e098ap-17f,  0x1.1ce6f8p-17f,  0x1.31a01ep-18f,  0x1.8112e2p-20f,  -0x1.42bb94p-22f,
       -0x1.e36298p-21f, -0x1.d17756p-21f},
      {0x1.1cd862p-25f,  0x1.8532fep-23f,  0x1.b36ce4p-22f,  0x1.4d37a6p-21f,
       0x1.583cdp-21f,   0x1.025be8p-22f,  -0x1.6eb0a6p-21f, -0x1.fe6e6ep-20f,
       -0x1.75cae8p-19f, -0x1.550b5cp-19f, -0x1.9204a8p-21f, 0x1.1e0fe6p-19f,
       0x1.3e208ap-18f,  0x1.718954p-18f,  0x1.ee9dbap-19f,  0.0f,
       -0x1.ee9dbap-19f, -0x1.718954p-18f, -0x1.3e208ap-18f, -0x1.1e0fe6p-19f,
       0x1.9204a8p-21f,  0x1.550b5cp-19f,  0x1.75cae8p-19f,  0x1.fe6e6ep-20f,
       0x1.6eb0a6p-21f,  -0x1.025be8p-22f, -0x1.583cdp-21f,  -0x1.4d37a6p-21f,
       -0x1.b36ce4p-22f, -0x1.8532fep-23f, -0x1.1cd862p-25f, 0x1.1b596ap-25f},
  };
  const F32v y = near_polynomial(kRow, x);
  const auto near = less(abs(x - 0.125f), splat<F32v>(4.0f));
  return TT_UNLIKELY(near != kAllLanes) ? select(near, y, gelu_slope_far(x)) : y;
}
#endif

// In double: exp(-t^2 / 2) u P(u - 0.5), t = |x| <= 40, u = 4 / (4 + t / sqrt(2)); P: 2^-53.
TT_INLINE double normal_tail(double x, double* bell) {
  const double t = libm::fabs(x) > 40.0 ? 40.0 : libm::fabs(x);
  const double half = 0.5 * t;
  const double square = half * t;
  const double e = exp(-square);
  *bell = mul_add(e, -product_rest(half, t, square), e);
  constexpr double kScale = 0x1.6a09e667f3bcdp+2;
  const double d = kScale + t;
  const double d_low = (kScale - d) + t;
  const double u = kScale / d;  // its rounding error counts 4.5 times near 0
  const double u_low = (-product_rest(u, d, kScale) - u * d_low) * (u * (1.0 / kScale));
  const double p = polynomial(
      (u - 0.5) + u_low, 0x1.18932bf08e154p-3, 0x1.f3fe31ecb49bfp-3, 0x1.8be202d26c708p-2,
      0x1.14eacb1ad034dp-1, 0x1.52cac23710036p-1, 0x1.645fd8a4bb77ep-1, 0x1.38dbd2c8ea3e1p-1,
      0x1.b00c052c82c85p-2, 0x1.908f471c8c1f7p-3, 0x1.269b517f8fb5fp-6, -0x1.dd2840c061461p-5,
      -0x1.72cda1779d7b2p-5, -0x1.e7f638be45246p-10, 0x1.3c6e458ae7cb1p-6, 0x1.3b22604d4a877p-7,
      -0x1.7e430d78c305ep-8, -0x1.c80682a34729ep-8, 0x1.4544395e32644p-10, 0x1.144390a59e779p-8,
      -0x1.dbd3dd7627382p-14, -0x1.47913d6dccca2p-9, 0x1.fa2bc7b4c9431p-13, 0x1.35d3b727015b0p-10,
      -0x1.05f0dd490952bp-11);
  return *bell * mul_add(u, p, u_low * p);
}

TT_INLINE float gelu(float x) { return gelu_by_tail(x); }
TT_INLINE double gelu(double x) {
  double bell;
  const double tail = normal_tail(x, &bell);
  return x * (x < 0 ? tail : 1.0 - tail);
}

}  // namespace math
TT_ISA_END
