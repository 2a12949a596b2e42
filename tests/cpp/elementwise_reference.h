// What each functor computes, in long double or integers, by kernel name.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <string>

namespace {
using Wide = long double;
using WideC = std::complex<long double>;

Wide P0, P1;  // the scalars, also as integers

struct Reference {
  std::function<Wide(const Wide*)> real;
  std::function<int64_t(const int64_t*)> whole;  // wraps to the type
  std::function<WideC(const WideC*)> complex;
  double ulp = 0.501, complex_eps = 4;
};

int64_t wrap(__int128 v) { return int64_t(uint64_t(v)); }
Wide nan_max(Wide a, Wide b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
Wide nan_min(Wide a, Wide b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }
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

using A = const Wide*;
using I = const int64_t*;
using Z = const WideC*;

#include "elementwise_reference_math.h"

Reference reference(const std::string& n) {
  const WideC one(1, 0);
  if (n == "add")
    return {[](A a) { return a[0] + a[1]; }, [](I a) { return wrap(__int128(a[0]) + a[1]); },
            [](Z a) { return a[0] + a[1]; }};
  if (n == "sub")
    return {[](A a) { return a[0] - a[1]; }, [](I a) { return wrap(__int128(a[0]) - a[1]); },
            [](Z a) { return a[0] - a[1]; }};
  if (n == "rsub")
    return {[](A a) { return a[1] - a[0]; }, [](I a) { return wrap(__int128(a[1]) - a[0]); },
            [](Z a) { return a[1] - a[0]; }};
  if (n == "mul")
    return {[](A a) { return a[0] * a[1]; }, [](I a) { return wrap(__int128(a[0]) * a[1]); },
            [](Z a) { return a[0] * a[1]; }};
  if (n == "div")
    return {[](A a) { return a[0] / a[1]; }, {}, [](Z a) { return a[0] / a[1]; }, 0.501, 8};
  if (n == "div_trunc")
    return {[](A a) { return std::trunc(a[0] / a[1]); },
            [](I a) { return a[1] ? wrap(__int128(a[0]) / a[1]) : 0; },
            {},
            1e9};
  if (n == "div_floor") return {{}, [](I a) { return floor_div(a[0], a[1]); }, {}};
  if (n == "neg")
    return {[](A a) { return -a[0]; }, [](I a) { return wrap(-__int128(a[0])); },
            [](Z a) { return -a[0]; }};
  if (n == "conj")
    return {[](A a) { return a[0]; }, [](I a) { return a[0]; },
            [](Z a) { return std::conj(a[0]); }};
  if (n == "pow")
    return {[](A a) { return std::pow(a[0], a[1]); }, [](I a) { return int_pow(a[0], a[1]); },
            [](Z a) { return a[1] == WideC() ? WideC(1) : std::pow(a[0], a[1]); }, 1.1, 200};
  if (n == "pow_scalar")
    return {[](A a) { return std::pow(a[0], P0); }, [](I a) { return int_pow(a[0], int64_t(P0)); },
            [](Z a) { return std::pow(a[0], P0); }, 2, 200};
  if (n == "pow_scalar_base")
    return {[](A a) { return std::pow(P0, a[0]); }, [](I a) { return int_pow(int64_t(P0), a[0]); },
            [](Z a) { return std::pow(WideC(P0), a[0]); }, 1.1, 200};
  if (n == "fmod")
    return {[](A a) { return std::fmod(a[0], a[1]); },
            [](I a) { return a[1] ? wrap(__int128(a[0]) % a[1]) : a[0]; },
            {}};
  if (n == "remainder")
    return {
        [](A a) { return floor_rest(std::fmod(a[0], a[1]), a[1]); },
        [](I a) { return a[1] ? wrap(floor_rest(__int128(a[0]) % a[1], __int128(a[1]))) : a[0]; },
        {}};
  if (n == "atan2") return {[](A a) { return std::atan2(a[0], a[1]); }, {}, {}, 3};
  if (n == "maximum")
    return {[](A a) { return nan_max(a[0], a[1]); }, [](I a) { return std::max(a[0], a[1]); }, {}};
  if (n == "minimum")
    return {[](A a) { return nan_min(a[0], a[1]); }, [](I a) { return std::min(a[0], a[1]); }, {}};
  if (n == "clamp")
    return {[](A a) { return nan_min(nan_max(a[0], P0), P1); },
            [](I a) { return std::min(std::max(a[0], int64_t(P0)), int64_t(P1)); },
            {}};
  if (n == "clamp_tensor")
    return {[](A a) { return nan_min(nan_max(a[0], a[1]), a[2]); },
            [](I a) { return std::min(std::max(a[0], a[1]), a[2]); },
            {}};
  if (n == "eq")
    return {[](A a) { return Wide(a[0] == a[1]); }, [](I a) { return int64_t(a[0] == a[1]); },
            [&](Z a) { return WideC(a[0] == a[1]); }};
  if (n == "ne")
    return {[](A a) { return Wide(a[0] != a[1]); }, [](I a) { return int64_t(a[0] != a[1]); },
            [&](Z a) { return WideC(a[0] != a[1]); }};
  if (n == "lt")
    return {[](A a) { return Wide(a[0] < a[1]); }, [](I a) { return int64_t(a[0] < a[1]); }, {}};
  if (n == "le")
    return {[](A a) { return Wide(a[0] <= a[1]); }, [](I a) { return int64_t(a[0] <= a[1]); }, {}};
  if (n == "gt")
    return {[](A a) { return Wide(a[0] > a[1]); }, [](I a) { return int64_t(a[0] > a[1]); }, {}};
  if (n == "ge")
    return {[](A a) { return Wide(a[0] >= a[1]); }, [](I a) { return int64_t(a[0] >= a[1]); }, {}};
  if (n == "isnan")
    return {[](A a) { return Wide(std::isnan(a[0])); }, [](I) { return int64_t(0); },
            [](Z) { return WideC(0); }};
  if (n == "logical_not") return {{}, [](I a) { return int64_t(!a[0]); }, {}};
  if (n == "logical_and") return {{}, [](I a) { return int64_t(a[0] && a[1]); }, {}};
  if (n == "logical_or") return {{}, [](I a) { return int64_t(a[0] || a[1]); }, {}};
  if (n == "logical_xor") return {{}, [](I a) { return int64_t(!a[0] != !a[1]); }, {}};
  if (n == "bitwise_and") return {{}, [](I a) { return a[0] & a[1]; }, {}};
  if (n == "bitwise_or") return {{}, [](I a) { return a[0] | a[1]; }, {}};
  if (n == "bitwise_xor") return {{}, [](I a) { return a[0] ^ a[1]; }, {}};
  if (n == "exp")
    return {[](A a) { return std::exp(a[0]); }, {}, [](Z a) { return std::exp(a[0]); }, 1.5};
  if (n == "log")
    return {[](A a) { return std::log(a[0]); }, {}, [](Z a) { return std::log(a[0]); }, 1.5};
  if (n == "tanh")
    return {[](A a) { return std::tanh(a[0]); }, {}, [](Z a) { return std::tanh(a[0]); }, 2};
  if (n == "sigmoid")
    return {[](A a) { return sigmoid(a[0]); },
            {},
            [one](Z a) { return one / (one + std::exp(-a[0])); },
            3,
            8};
  if (n == "sqrt")
    return {[](A a) { return std::sqrt(a[0]); }, {}, [](Z a) { return std::sqrt(a[0]); }};
  if (n == "rsqrt")
    return {[](A a) { return 1 / std::sqrt(a[0]); },
            {},
            [one](Z a) { return one / std::sqrt(a[0]); },
            1.6,
            8};
  if (n == "sin")
    return {[](A a) { return std::sin(a[0]); }, {}, [](Z a) { return std::sin(a[0]); }, 1.5};
  if (n == "cos")
    return {[](A a) { return std::cos(a[0]); }, {}, [](Z a) { return std::cos(a[0]); }, 1.5};
  if (n == "square")
    return {[](A a) { return a[0] * a[0]; }, [](I a) { return wrap(__int128(a[0]) * a[0]); },
            [](Z a) { return a[0] * a[0]; }};
  if (n == "reciprocal")
    return {[](A a) { return 1 / a[0]; }, {}, [one](Z a) { return one / a[0]; }, 0.501, 8};
  if (n == "abs")
    return {[](A a) { return std::fabs(a[0]); },
            [](I a) { return a[0] < 0 ? wrap(-__int128(a[0])) : a[0]; },
            [](Z a) { return WideC(std::abs(a[0])); }};
  if (n == "sign")
    return {[](A a) { return Wide((a[0] > 0) - (a[0] < 0)); },
            [](I a) { return int64_t((a[0] > 0) - (a[0] < 0)); },
            {}};
  if (n == "relu")
    return {[](A a) { return a[0] < 0 ? Wide(0) : a[0]; },
            [](I a) { return std::max<int64_t>(a[0], 0); },
            {}};
  if (n == "threshold_backward")
    return {[](A a) { return a[1] <= P0 ? Wide(0) : a[0]; },
            [](I a) { return a[1] <= int64_t(P0) ? int64_t(0) : a[0]; },
            {}};
  return math_reference(n);
}

}  // namespace
