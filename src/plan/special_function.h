// The functions of the operators bessel and orthogonal_polynomial, by number. Also device code.
#pragma once

#include "base/platform.h"

namespace TT_NS {

// Orders 0 and 1 alternate. Scaled: times exp(x).
enum BesselFunction : int32_t {
  kBesselJ0,
  kBesselJ1,
  kBesselY0,
  kBesselY1,
  kBesselK0,
  kBesselK1,
  kBesselK0Scaled,
  kBesselK1Scaled,
  kAiry,
};

// Orthogonal polynomials by their recurrences: p(0) = 1, p(1) = slope x + offset, and from then on
// p(k) = (slope x + offset) p(k - 1) - before p(k - 2).
enum Polynomial : int32_t {
  kChebyshevT,
  kChebyshevU,
  kChebyshevV,
  kChebyshevW,
  kHermiteH,
  kHermiteHe,
  kLaguerre,
  kLegendre,
};
// Added to one of them: of 2 x - 1.
constexpr int32_t kShifted = 8;

struct PolynomialStep {
  double slope, offset, before;
};

TT_FN PolynomialStep first_step(int32_t kind) {
  if (kind == kChebyshevV) return {2.0, -1.0, 0.0};
  if (kind == kChebyshevW) return {2.0, 1.0, 0.0};
  if (kind == kLaguerre) return {-1.0, 1.0, 0.0};
  return {kind == kChebyshevU || kind == kHermiteH ? 2.0 : 1.0, 0.0, 0.0};
}
TT_FN PolynomialStep polynomial_step(int32_t kind, double k) {
  if (kind == kHermiteH) return {2.0, 0.0, 2.0 * (k - 1.0)};
  if (kind == kHermiteHe) return {1.0, 0.0, k - 1.0};
  if (kind == kLaguerre) return {-1.0 / k, (2.0 * k - 1.0) / k, (k - 1.0) / k};
  if (kind == kLegendre) return {(2.0 * k - 1.0) / k, 0.0, (k - 1.0) / k};
  return {2.0, 0.0, 1.0};
}

}  // namespace TT_NS
