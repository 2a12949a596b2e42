// Products x G(x) with a gate G in (0, 1), as in SiLU and GELU. In the tail, where the gate is
// small and steep, two things keep them accurate: arguments in two parts, and powers of two that
// scale the product instead of the gate. x = -inf gives nan, as in PyTorch. Included by math.h.
#pragma once

TT_ISA_BEGIN
namespace math {

// x gate 2^n. For x < -150, every gate here makes the product 0.
template <class V> TT_INLINE V gate_scaled(V x, V gate, V n) {
  return scale((gate + at_most(x, 0) * 0.0f) * at_least(x, -150.0f), n);
}

// gated: x sigmoid(v + lost). gate: sigmoid(v + lost).
template <class V> TT_INLINE V gated_lanes(V x, V v, V lost) {
  V n;
  const V q = sigmoid_parts(v, lost, &n);
  return gate_scaled(x, q, n);
}
template <class V> TT_INLINE V gate_lanes(V v, V lost) {
  V n;
  const V q = sigmoid_parts(v, lost, &n);
  return scale(q, n);
}
TT_INLINE float gated(float x, float v, float lost) { return gated_lanes(x, v, lost); }
TT_INLINE float gate(float v, float lost) { return gate_lanes(v, lost); }
#if TT_VECTOR_MATH
TT_INLINE F32v gated(F32v x, F32v v, F32v lost) { return gated_lanes(x, v, lost); }
#endif
TT_INLINE double gate(double v, double lost) {
  const double s = sigmoid(v);
  return s + s * (1.0 - s) * lost;
}
TT_INLINE double gated(double x, double v, double lost) { return x * gate(v, lost); }

// x tanh(log(1 + e)) = x n / (n + 2), where n = e (e + 2) and e = exp(x). x is bounded in exp,
// where the quotient has become 1.
TT_INLINE float mish(float x) {
  float k;
  const float m = exp_parts(at_most(x, 20.0f), 0.0f, &k);
  const double e = scale(m, k);
  const double up = e + 2.0;
  return gate_scaled(x, float(m * (up / (e * up + 2.0))), k);
}
TT_INLINE double mish(double x) {
  const double e = exp(x > 40.0 ? 40.0 : x);
  const double n = e * (e + 2.0);
  return x * (n / (n + 2.0));
}

}  // namespace math
TT_ISA_END
