// References of functors/unary.h. Included by elementwise_reference.h.
#pragma once

WideC sgn(WideC z) { return z == WideC() ? z : z / std::abs(z); }
WideC log1p(WideC z) { return std::log(WideC(1) + z); }
WideC expm1(WideC z) { return std::exp(z) - WideC(1); }

// A real and a complex function; ulp: of the real one in double.
Reference math_reference(const std::string& n) {
  const Wide ln2 = std::log(Wide(2));
  const Wide ln10 = std::log(Wide(10));
  if (n == "exp2")
    return {[](A a) { return std::exp2(a[0]); },
            {},
            [ln2](Z a) { return std::exp(a[0] * ln2); },
            1.5,
            12};
  if (n == "expm1")
    return {[](A a) { return std::expm1(a[0]); }, {}, [](Z a) { return expm1(a[0]); }, 1.5, 12};
  if (n == "log2")
    return {[](A a) { return std::log2(a[0]); },
            {},
            [ln2](Z a) { return std::log(a[0]) / ln2; },
            1.5,
            12};
  if (n == "log10")
    return {[](A a) { return std::log10(a[0]); },
            {},
            [ln10](Z a) { return std::log(a[0]) / ln10; },
            2,
            12};
  if (n == "log1p")
    return {[](A a) { return std::log1p(a[0]); }, {}, [](Z a) { return log1p(a[0]); }, 1.5, 12};
  if (n == "tan")
    return {[](A a) { return std::tan(a[0]); }, {}, [](Z a) { return std::tan(a[0]); }, 1.5, 12};
  if (n == "asin")
    return {[](A a) { return std::asin(a[0]); }, {}, [](Z a) { return std::asin(a[0]); }, 1.5, 12};
  if (n == "acos")
    return {[](A a) { return std::acos(a[0]); }, {}, [](Z a) { return std::acos(a[0]); }, 1.5, 12};
  if (n == "atan")
    return {[](A a) { return std::atan(a[0]); }, {}, [](Z a) { return std::atan(a[0]); }, 1.5, 12};
  if (n == "sinh")
    return {[](A a) { return std::sinh(a[0]); }, {}, [](Z a) { return std::sinh(a[0]); }, 2, 12};
  if (n == "cosh")
    return {[](A a) { return std::cosh(a[0]); }, {}, [](Z a) { return std::cosh(a[0]); }, 2, 12};
  if (n == "erf") return {[](A a) { return std::erf(a[0]); }, {}, {}, 1.5};
  if (n == "erfc") return {[](A a) { return std::erfc(a[0]); }, {}, {}, 6};
  if (n == "sgn")
    return {[](A a) { return Wide((a[0] > 0) - (a[0] < 0)); },
            [](I a) { return int64_t((a[0] > 0) - (a[0] < 0)); }, [](Z a) { return sgn(a[0]); }};
  if (n == "floor") return {[](A a) { return std::floor(a[0]); }, [](I a) { return a[0]; }, {}};
  if (n == "ceil") return {[](A a) { return std::ceil(a[0]); }, [](I a) { return a[0]; }, {}};
  if (n == "trunc") return {[](A a) { return std::trunc(a[0]); }, [](I a) { return a[0]; }, {}};
  if (n == "round_even")
    return {[](A a) { return std::nearbyint(a[0]); }, [](I a) { return a[0]; }, {}};
  if (n == "isinf")
    return {[](A a) { return Wide(std::isinf(a[0])); }, [](I) { return int64_t(0); },
            [](Z) { return WideC(0); }};
  if (n == "isfinite")
    return {[](A a) { return Wide(std::isfinite(a[0])); }, [](I) { return int64_t(1); },
            [](Z) { return WideC(1); }};
  return {};
}
