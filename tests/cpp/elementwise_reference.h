// What each functor computes, in long double or integers, by kernel name.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace {
using Wide = long double;
using WideC = std::complex<long double>;

Wide P0, P1;  // the scalars, also as integers

struct Reference {
  std::function<Wide(const Wide*)> real = {};
  std::function<int64_t(const int64_t*)> whole = {};  // wraps to the type
  std::function<WideC(const WideC*)> complex = {};
  double ulp = 0.501;  // the error of the real function in double
  double complex_eps = 4;
};

int64_t wrap(__int128 v) { return int64_t(uint64_t(v)); }
Wide nan_max(Wide a, Wide b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
Wide nan_min(Wide a, Wide b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }
// What of a gradient `all` the larger one of two numbers receives, a.
Wide share_of_larger(Wide a, Wide b, Wide all) {
  if (a < b) return 0;
  return a == b ? all / 2 : all;
}
// The derivative of a clamped to [low, high] by a.
Wide clamp_weight(const Wide* x) {
  const Wide a = x[0];
  const Wide low = x[1];
  const Wide high = x[2];
  if (low == high) return !(a < low) && !(a > high);
  return share_of_larger(high, nan_max(a, low), 1) * share_of_larger(a, low, 1);
}
template <class T> T floor_rest(T r, T b) { return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const __int128 q = __int128(a) / b;
  return wrap(q - (__int128(a) % b != 0 && (a < 0) != (b < 0)));
}
int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0 && a == -1) return b & 1 ? -1 : 1;
  if (b < 0) return a == 1;
  uint64_t r = 1;
  uint64_t base = uint64_t(a);
  for (; b; b >>= 1, base *= base)
    if (b & 1) r *= base;
  return int64_t(r);
}
// Python's float //, in the arithmetic of T.
template <class T> T float_floor_div(T a, T b) {
  if (b == 0) return a / b;
  const T mod = std::fmod(a, b);
  T div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
  if (div == 0) return std::copysign(T(0), a / b);
  T down = std::floor(div);
  return div - down > T(0.5) ? down + 1 : down;
}
Wide sigmoid(Wide x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

WideC sgn(WideC z) { return z == WideC() ? z : z / std::abs(z); }
WideC log1p(WideC z) { return std::log(WideC(1) + z); }
WideC expm1(WideC z) { return std::exp(z) - WideC(1); }

const Wide kLn2 = std::log(Wide(2));
const Wide kLn10 = std::log(Wide(10));
const WideC kOne(1, 0);

using A = const Wide*;
using I = const int64_t*;
using Z = const WideC*;

// By the name of the kernel.
const std::map<std::string, Reference> kReferences = {
    {"add",
     {.real = [](A a) { return a[0] + a[1]; },
      .whole = [](I a) { return wrap(__int128(a[0]) + a[1]); },
      .complex = [](Z a) { return a[0] + a[1]; }}},
    {"sub",
     {.real = [](A a) { return a[0] - a[1]; },
      .whole = [](I a) { return wrap(__int128(a[0]) - a[1]); },
      .complex = [](Z a) { return a[0] - a[1]; }}},
    {"rsub",
     {.real = [](A a) { return a[1] - a[0]; },
      .whole = [](I a) { return wrap(__int128(a[1]) - a[0]); },
      .complex = [](Z a) { return a[1] - a[0]; }}},
    {"mul",
     {.real = [](A a) { return a[0] * a[1]; },
      .whole = [](I a) { return wrap(__int128(a[0]) * a[1]); },
      .complex = [](Z a) { return a[0] * a[1]; }}},
    {"div",
     {.real = [](A a) { return a[0] / a[1]; },
      .complex = [](Z a) { return a[0] / a[1]; },
      .ulp = 0.501,
      .complex_eps = 8}},
    {"div_trunc",
     {.real = [](A a) { return std::trunc(a[0] / a[1]); },
      .whole = [](I a) { return a[1] ? wrap(__int128(a[0]) / a[1]) : 0; },
      .ulp = 1e9}},
    {"div_floor", {.whole = [](I a) { return floor_div(a[0], a[1]); }}},
    {"neg",
     {.real = [](A a) { return -a[0]; },
      .whole = [](I a) { return wrap(-__int128(a[0])); },
      .complex = [](Z a) { return -a[0]; }}},
    {"conj",
     {.real = [](A a) { return a[0]; },
      .whole = [](I a) { return a[0]; },
      .complex = [](Z a) { return std::conj(a[0]); }}},
    {"pow",
     {.real = [](A a) { return std::pow(a[0], a[1]); },
      .whole = [](I a) { return int_pow(a[0], a[1]); },
      .complex = [](Z a) { return a[1] == WideC() ? WideC(1) : std::pow(a[0], a[1]); },
      .ulp = 1.1,
      .complex_eps = 200}},
    {"pow_scalar",
     {.real = [](A a) { return std::pow(a[0], P0); },
      .whole = [](I a) { return int_pow(a[0], int64_t(P0)); },
      .complex = [](Z a) { return std::pow(a[0], P0); },
      .ulp = 2,
      .complex_eps = 200}},
    {"pow_scalar_base",
     {.real = [](A a) { return std::pow(P0, a[0]); },
      .whole = [](I a) { return int_pow(int64_t(P0), a[0]); },
      .complex = [](Z a) { return std::pow(WideC(P0), a[0]); },
      .ulp = 1.1,
      .complex_eps = 200}},
    {"fmod",
     {.real = [](A a) { return std::fmod(a[0], a[1]); },
      .whole = [](I a) { return a[1] ? wrap(__int128(a[0]) % a[1]) : a[0]; }}},
    {"remainder",
     {.real = [](A a) { return floor_rest(std::fmod(a[0], a[1]), a[1]); },
      .whole =
          [](I a) {
            return a[1] ? wrap(floor_rest(__int128(a[0]) % a[1], __int128(a[1]))) : a[0];
          }}},
    {"atan2", {.real = [](A a) { return std::atan2(a[0], a[1]); }, .ulp = 3}},
    {"maximum",
     {.real = [](A a) { return nan_max(a[0], a[1]); },
      .whole = [](I a) { return std::max(a[0], a[1]); }}},
    {"minimum",
     {.real = [](A a) { return nan_min(a[0], a[1]); },
      .whole = [](I a) { return std::min(a[0], a[1]); }}},
    {"clamp",
     {.real = [](A a) { return nan_min(nan_max(a[0], P0), P1); },
      .whole = [](I a) { return std::min(std::max(a[0], int64_t(P0)), int64_t(P1)); }}},
    {"clamp_between",
     {.real = [](A a) { return nan_min(nan_max(a[0], a[1]), a[2]); },
      .whole = [](I a) { return std::min(std::max(a[0], a[1]), a[2]); }}},
    {"greater_share", {.real = [](A a) { return share_of_larger(a[1], a[2], a[0]); }}},
    {"clamp_weight", {.real = clamp_weight}},
    {"eq",
     {.real = [](A a) { return Wide(a[0] == a[1]); },
      .whole = [](I a) { return int64_t(a[0] == a[1]); },
      .complex = [](Z a) { return WideC(a[0] == a[1]); }}},
    {"ne",
     {.real = [](A a) { return Wide(a[0] != a[1]); },
      .whole = [](I a) { return int64_t(a[0] != a[1]); },
      .complex = [](Z a) { return WideC(a[0] != a[1]); }}},
    {"lt",
     {.real = [](A a) { return Wide(a[0] < a[1]); },
      .whole = [](I a) { return int64_t(a[0] < a[1]); }}},
    {"le",
     {.real = [](A a) { return Wide(a[0] <= a[1]); },
      .whole = [](I a) { return int64_t(a[0] <= a[1]); }}},
    {"gt",
     {.real = [](A a) { return Wide(a[0] > a[1]); },
      .whole = [](I a) { return int64_t(a[0] > a[1]); }}},
    {"ge",
     {.real = [](A a) { return Wide(a[0] >= a[1]); },
      .whole = [](I a) { return int64_t(a[0] >= a[1]); }}},
    {"isnan",
     {.real = [](A a) { return Wide(std::isnan(a[0])); },
      .whole = [](I) { return int64_t(0); },
      .complex = [](Z) { return WideC(0); }}},
    {"logical_not", {.whole = [](I a) { return int64_t(!a[0]); }}},
    {"logical_and", {.whole = [](I a) { return int64_t(a[0] && a[1]); }}},
    {"logical_or", {.whole = [](I a) { return int64_t(a[0] || a[1]); }}},
    {"logical_xor", {.whole = [](I a) { return int64_t(!a[0] != !a[1]); }}},
    {"bitwise_and", {.whole = [](I a) { return a[0] & a[1]; }}},
    {"bitwise_or", {.whole = [](I a) { return a[0] | a[1]; }}},
    {"bitwise_xor", {.whole = [](I a) { return a[0] ^ a[1]; }}},
    {"exp",
     {.real = [](A a) { return std::exp(a[0]); },
      .complex = [](Z a) { return std::exp(a[0]); },
      .ulp = 1.5}},
    {"log",
     {.real = [](A a) { return std::log(a[0]); },
      .complex = [](Z a) { return std::log(a[0]); },
      .ulp = 1.5}},
    {"tanh",
     {.real = [](A a) { return std::tanh(a[0]); },
      .complex = [](Z a) { return std::tanh(a[0]); },
      .ulp = 2}},
    {"sigmoid",
     {.real = [](A a) { return sigmoid(a[0]); },
      .complex = [](Z a) { return kOne / (kOne + std::exp(-a[0])); },
      .ulp = 3,
      .complex_eps = 8}},
    {"sqrt",
     {.real = [](A a) { return std::sqrt(a[0]); }, .complex = [](Z a) { return std::sqrt(a[0]); }}},
    {"rsqrt",
     {.real = [](A a) { return 1 / std::sqrt(a[0]); },
      .complex = [](Z a) { return kOne / std::sqrt(a[0]); },
      .ulp = 1.6,
      .complex_eps = 8}},
    {"sin",
     {.real = [](A a) { return std::sin(a[0]); },
      .complex = [](Z a) { return std::sin(a[0]); },
      .ulp = 1.5}},
    {"cos",
     {.real = [](A a) { return std::cos(a[0]); },
      .complex = [](Z a) { return std::cos(a[0]); },
      .ulp = 1.5}},
    {"square",
     {.real = [](A a) { return a[0] * a[0]; },
      .whole = [](I a) { return wrap(__int128(a[0]) * a[0]); },
      .complex = [](Z a) { return a[0] * a[0]; }}},
    {"reciprocal",
     {.real = [](A a) { return 1 / a[0]; },
      .complex = [](Z a) { return kOne / a[0]; },
      .ulp = 0.501,
      .complex_eps = 8}},
    {"abs",
     {.real = [](A a) { return std::fabs(a[0]); },
      .whole = [](I a) { return a[0] < 0 ? wrap(-__int128(a[0])) : a[0]; },
      .complex = [](Z a) { return WideC(std::abs(a[0])); }}},
    {"sign",
     {.real = [](A a) { return Wide((a[0] > 0) - (a[0] < 0)); },
      .whole = [](I a) { return int64_t((a[0] > 0) - (a[0] < 0)); }}},
    {"relu",
     {.real = [](A a) { return a[0] < 0 ? Wide(0) : a[0]; },
      .whole = [](I a) { return std::max<int64_t>(a[0], 0); }}},
    {"threshold_backward",
     {.real = [](A a) { return a[1] <= P0 ? Wide(0) : a[0]; },
      .whole = [](I a) { return a[1] <= int64_t(P0) ? int64_t(0) : a[0]; }}},
    {"exp2",
     {.real = [](A a) { return std::exp2(a[0]); },
      .complex = [](Z a) { return std::exp(a[0] * kLn2); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"expm1",
     {.real = [](A a) { return std::expm1(a[0]); },
      .complex = [](Z a) { return expm1(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"log2",
     {.real = [](A a) { return std::log2(a[0]); },
      .complex = [](Z a) { return std::log(a[0]) / kLn2; },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"log10",
     {.real = [](A a) { return std::log10(a[0]); },
      .complex = [](Z a) { return std::log(a[0]) / kLn10; },
      .ulp = 2,
      .complex_eps = 12}},
    {"log1p",
     {.real = [](A a) { return std::log1p(a[0]); },
      .complex = [](Z a) { return log1p(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"tan",
     {.real = [](A a) { return std::tan(a[0]); },
      .complex = [](Z a) { return std::tan(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"asin",
     {.real = [](A a) { return std::asin(a[0]); },
      .complex = [](Z a) { return std::asin(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"acos",
     {.real = [](A a) { return std::acos(a[0]); },
      .complex = [](Z a) { return std::acos(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"atan",
     {.real = [](A a) { return std::atan(a[0]); },
      .complex = [](Z a) { return std::atan(a[0]); },
      .ulp = 1.5,
      .complex_eps = 12}},
    {"sinh",
     {.real = [](A a) { return std::sinh(a[0]); },
      .complex = [](Z a) { return std::sinh(a[0]); },
      .ulp = 2,
      .complex_eps = 12}},
    {"cosh",
     {.real = [](A a) { return std::cosh(a[0]); },
      .complex = [](Z a) { return std::cosh(a[0]); },
      .ulp = 2,
      .complex_eps = 12}},
    {"erf", {.real = [](A a) { return std::erf(a[0]); }, .ulp = 1.5}},
    {"erfc", {.real = [](A a) { return std::erfc(a[0]); }, .ulp = 6}},
    {"sgn",
     {.real = [](A a) { return Wide((a[0] > 0) - (a[0] < 0)); },
      .whole = [](I a) { return int64_t((a[0] > 0) - (a[0] < 0)); },
      .complex = [](Z a) { return sgn(a[0]); }}},
    {"floor", {.real = [](A a) { return std::floor(a[0]); }, .whole = [](I a) { return a[0]; }}},
    {"ceil", {.real = [](A a) { return std::ceil(a[0]); }, .whole = [](I a) { return a[0]; }}},
    {"trunc", {.real = [](A a) { return std::trunc(a[0]); }, .whole = [](I a) { return a[0]; }}},
    {"round_even",
     {.real = [](A a) { return std::nearbyint(a[0]); }, .whole = [](I a) { return a[0]; }}},
    {"isinf",
     {.real = [](A a) { return Wide(std::isinf(a[0])); },
      .whole = [](I) { return int64_t(0); },
      .complex = [](Z) { return WideC(0); }}},
    {"isfinite",
     {.real = [](A a) { return Wide(std::isfinite(a[0])); },
      .whole = [](I) { return int64_t(1); },
      .complex = [](Z) { return WideC(1); }}},
};

// Without functions if the kernel has none here.
Reference reference(const std::string& name) {
  const auto found = kReferences.find(name);
  return found == kReferences.end() ? Reference{} : found->second;
}

}  // namespace
