// Elementwise kernels. Numbers: every functor, compute type and instruction set against long double
// or integer references over the cross product of special values. Structure: any layout and mix of
// stored dtypes must give the bits of the dense native run of the converted operands. And the plan
// builder itself.
#define TT_ISA baseline
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/functors/all.h"

#include "elementwise_reference.h"
#include "kernel_harness.h"
#include "plan/elementwise_build.h"
#include "tests/c/harness/share.h"

#include <string>

TT_ENTRY_BEGIN
#include "elementwise_extra.h"
TT_ENTRY_END
#undef TT_ELEMENTWISE

#define TT_ELEMENTWISE(name, functor, arity, set, out) DECLARE_KERNEL(name)
// Activations are tested by the op table; these two have integer loops, too.
TT_ELEMENTWISE(relu, Relu, 1, real, same)
TT_ELEMENTWISE(threshold_backward, ThresholdBackward, 2, real, same)
#include "kernels/functors/gen/arith.inc"
#include "kernels/functors/gen/compare.inc"
#include "kernels/functors/gen/unary.inc"
#include "kernels/functors/gen/bitwise.inc"
#include "kernels/functors/gen/copy.inc"
#include "kernels/functors/gen/index.inc"
#include "kernels/functors/gen/random.inc"
#undef TT_ELEMENTWISE

namespace {
using namespace kernel_test;
// ---- the kernels ----

using Types = std::vector<int32_t>;
const Types kSet_float = {TT_F32, TT_F64, TT_C64, TT_C128};
const Types kSet_real_float = {TT_F32, TT_F64};
const Types kSet_real = {TT_F32, TT_F64, TT_I32, TT_I64};
const Types kSet_arith = {TT_F32, TT_F64, TT_I32, TT_I64, TT_C64, TT_C128};
const Types kSet_bitwise = {TT_BOOL, TT_U8, TT_I32, TT_I64};
const Types kSet_logical = {TT_BOOL};
const Types kSet_all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr bool kOut_same_bool = false, kOut_bool_bool = true;

struct Entry {
  std::string name;
  KernelRow row;
  int arity;
  Types types;
  bool bool_out;
  uint32_t bools;  // operands that are bool natively
};

uint32_t bool_operands(const std::string& name, bool bool_out) {
  if (name == "where") return kBoolCond;
  if (name == "masked_fill" || name == "mask_scale") return kBoolMask;
  if (name.find("logical") != std::string::npos) return kBoolAll;
  return bool_out ? kBoolOut : kBoolNone;
}

// An undeclared functor's kernel has the prefix extra_.
std::string plain(const std::string& name) {
  return name.rfind("extra_", 0) == 0 ? name.substr(6) : name;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
#define TT_ELEMENTWISE(name, functor, arity, set, out) \
  {#name,      KERNEL_ROW(name),  arity,               \
   kSet_##set, kOut_##out##_bool, bool_operands(#name, kOut_##out##_bool)},
      // Activations are tested by the op table; these two have integer loops, too.
      TT_ELEMENTWISE(relu, Relu, 1, real, same)
          TT_ELEMENTWISE(threshold_backward, ThresholdBackward, 2, real, same)
#include "kernels/functors/gen/arith.inc"
#include "kernels/functors/gen/compare.inc"
#include "kernels/functors/gen/unary.inc"
#include "kernels/functors/gen/bitwise.inc"
#include "kernels/functors/gen/copy.inc"
#include "kernels/functors/gen/index.inc"
#include "kernels/functors/gen/random.inc"
#undef TT_ELEMENTWISE
#define TT_ELEMENTWISE(name, functor, arity, set, out) \
  {#name,                                              \
   KernelRow{{baseline::name, nullptr, nullptr}},      \
   arity,                                              \
   kSet_##set,                                         \
   kOut_##out##_bool,                                  \
   bool_operands(#name, kOut_##out##_bool)},
#include "elementwise_extra.h"
#undef TT_ELEMENTWISE
  };
  return list;
}

template <class F> void each_isa(const Entry& e, F f) {
  for (int isa = 0; isa <= best_isa(); isa++)
    if (e.row.isa[isa]) {
      SCOPED_TRACE(e.name + " on " + isa_name(Isa(isa)));
      f(e.row.isa[isa]);
    }
}

int32_t native(const Entry& e, int k, int32_t compute) {
  return e.bools >> k & 1 ? int32_t(TT_BOOL) : compute;
}

tt_scalar number(double v) { return {TT_SCALAR_FLOAT, 0, int64_t(v), v, 0}; }
tt_scalar integer(int64_t v) { return {TT_SCALAR_INT, 0, v, 0, 0}; }

// ---- numbers ----

std::vector<double> special_reals(int32_t t) {
  const double inf = INFINITY;
  const double big = t == TT_F32 ? FLT_MAX : DBL_MAX;
  const double small = t == TT_F32 ? FLT_MIN : DBL_MIN;
  std::vector<double> v = {0,    -0.0, 1,     -1,    0.5,    -0.5,      2,
                           3,    -2,   -7.25, 10.5,  88.5,   -87.5,     -103,
                           1e-3, 0.1,  1e5,   -3e6,  4e9,    inf,       -inf,
                           NAN,  big,  -big,  small, -small, small / 8, -small / 64};
  std::mt19937 g(7);
  std::normal_distribution<double> normal(0, 4);
  for (int i = 0; i < 20; i++) v.push_back(normal(g));
  return v;
}

std::vector<int64_t> special_integers(int32_t t) {
  if (t == TT_BOOL) return {0, 1};
  if (t == TT_U8) return {0, 1, 2, 3, 7, 8, 9, 31, 100, 127, 128, 200, 255};
  const int64_t low = t == TT_I32 ? INT32_MIN : INT64_MIN;
  const int64_t high = t == TT_I32 ? INT32_MAX : INT64_MAX;
  return {0,  1,  -1, 2,  -2,  3,     7,     -7,  10,   -10,     31,      32,
          33, 63, 64, 65, 100, -1000, 12345, low, high, low + 1, high - 1};
}

std::vector<Value> special_complex() {
  std::vector<Value> v = {{0, 0},       {1, 0},       {0, 1}, {-1, 0.5},    {2, -3},
                          {0.25, 0.75}, {-0.125, -4}, {3, 3}, {1e-3, -1e-3}};
  std::mt19937 g(9);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 12; i++) v.push_back({normal(g), normal(g)});
  return v;
}

double ulp_of(Wide want, int32_t t) {
  int e;
  std::frexp(want, &e);
  const int digits = t == TT_F32 ? 24 : 53;
  const int min_exponent = t == TT_F32 ? -125 : -1021;
  return std::ldexp(1.0, std::max(e, min_exponent) - digits);
}

bool near_real(double got, Wide want, int32_t t, double ulp) {
  if (std::isnan(want)) return std::isnan(got);
  const double rounded = t == TT_F32 ? double(float(want)) : double(want);
  if (got == rounded) return true;
  if (std::isinf(rounded) || std::isinf(got)) return false;
  return std::fabs(Wide(got) - want) <= Wide(ulp) * ulp_of(want, t);
}

// The cross product of the special values of all inputs.
struct Inputs {
  std::vector<Buffer> in;
  Inputs(const Entry& e, int32_t compute) {
    size_t s = 0;
    if (is_complex(compute)) s = special_complex().size();
    else if (is_float(compute)) s = special_reals(compute).size();
    else s = special_integers(native(e, 1, compute)).size();
    int64_t n = 1;
    for (int k = 0; k < e.arity; k++) n *= int64_t(s);
    int64_t period = 1;
    for (int k = 0; k < e.arity; k++, period *= int64_t(s)) {
      in.emplace_back(native(e, k + 1, compute), n);
      const int32_t t = in.back().dtype;
      for (int64_t i = 0; i < n; i++) {
        const size_t j = size_t(i / period) % s;
        if (is_complex(compute)) in.back().put(i, special_complex()[j]);
        else if (is_float(compute)) in.back().put(i, special_reals(compute)[j]);
        else if (t == TT_I64)
          reinterpret_cast<int64_t*>(in.back().data())[i] = special_integers(t)[j];
        else in.back().put(i, double(special_integers(t)[j]));
      }
    }
  }
};

void plan_dense(ElementPlan* p, const Entry& e, int32_t compute, Buffer* out,
                std::vector<Buffer>* in) {
  memset(static_cast<void*>(p), 0xee, sizeof *p);
  memset(static_cast<void*>(p->param), 0, sizeof p->param);
  const int64_t size = out->n;
  const int64_t stride = 1;
  ElementOperand ops[kMaxOperands] = {{out->data(), &size, &stride, 1, out->dtype}};
  for (size_t k = 0; k < in->size(); k++)
    ops[k + 1] = {(*in)[k].data(), &size, &stride, 1, (*in)[k].dtype};
  build_element_plan(*p, ops, e.arity + 1, compute, e.bools);
}

int64_t whole_at(Buffer& b, int64_t i) {
  return b.dtype == TT_I64 ? reinterpret_cast<int64_t*>(b.data())[i] : int64_t(b.real(i));
}

int64_t cut(int64_t v, int32_t t) {
  switch (t) {
    case TT_BOOL: return v != 0;
    case TT_U8: return uint8_t(v);
    case TT_I32: return int32_t(v);
    default: return v;
  }
}

void check_numbers(const Entry& e, int32_t compute, const Reference& ref, tt_scalar p0 = {},
                   tt_scalar p1 = {}) {
  Inputs x(e, compute);
  const int64_t n = e.arity ? x.in[0].n : 5;
  each_isa(e, [&](CpuKernel kernel) {
    SCOPED_TRACE(dtype_text(compute));
    Buffer out(native(e, 0, compute), n);
    ElementPlan plan;
    plan_dense(&plan, e, compute, &out, &x.in);
    ASSERT_TRUE(plan.dense);
    plan.param[0] = p0;
    plan.param[1] = p1;
    ASSERT_EQ(kernel(&plan, 0, n), TT_OK);
    for (int64_t i = 0; i < n; i++) {
      std::string at;
      for (auto& b : x.in)
        at += " " + std::to_string(b.real(i)) + "," + std::to_string(b[i].imag());
      if (is_complex(compute)) {
        WideC a[3];
        for (int k = 0; k < e.arity; k++)
          a[k] = WideC(x.in[size_t(k)][i].real(), x.in[size_t(k)][i].imag());
        const WideC want = ref.complex(a);
        if (!std::isfinite(std::abs(want))) continue;  // special values of C99, as in the C library
        const WideC got(out[i].real(), out[i].imag());
        ASSERT_LE(double(std::abs(got - want)),
                  ref.complex_eps * epsilon(compute) * double(std::abs(want)) + 1e-300)
            << at;
      } else if (is_float(compute)) {
        Wide a[3];
        for (int k = 0; k < e.arity; k++) a[k] = x.in[size_t(k)].real(i);
        const Wide want = ref.real(a);
        ASSERT_TRUE(
            near_real(out.real(i), want, out.dtype == TT_BOOL ? int32_t(TT_F64) : compute, ref.ulp))
            << at << " gives " << out.real(i) << " for " << double(want);
      } else {
        int64_t a[3];
        for (int k = 0; k < e.arity; k++) a[k] = whole_at(x.in[size_t(k)], i);
        ASSERT_EQ(whole_at(out, i), cut(ref.whole(a), out.dtype)) << at;
      }
    }
  });
}

bool has_reference(const Reference& r, int32_t t) {
  if (is_complex(t)) return bool(r.complex);
  return is_float(t) ? bool(r.real) : bool(r.whole);
}

TEST(Elementwise, NumbersAgreeWithReferences) {
  for (const Entry& e : entries()) {
    const Reference ref = reference(plain(e.name));
    if (e.name == "div_trunc" || e.name == "pow_scalar" || e.name == "clamp" || e.types == kSet_all)
      continue;
    const bool base = e.name == "extra_pow_scalar_base";
    P0 = base ? 3 : 0;
    for (int32_t t : e.types)
      if (has_reference(ref, t)) check_numbers(e, t, ref, base ? integer(3) : tt_scalar{});
  }
}

const Entry& entry(const char* name) {
  for (const Entry& e : entries())
    if (e.name == name) return e;
  ADD_FAILURE() << "no kernel " << name;
  return entries()[0];
}

TEST(Elementwise, EveryFunctorHasAReferenceOrATest) {
  // The first three lines: functors that the op table alone compares, through their operators.
  const std::string own =
      " fmax fmin copysign hypot logaddexp logaddexp2 heaviside nextafter next_bf16 next_f16 gcd"
      " frexp_mantissa frexp_exponent lerp addcmul addcdiv asinh acosh atanh logit logit_backward"
      " frac isposinf isneginf isreal signbit replace_nan replace_inf lcm"
      " copy fill where masked_fill mask_scale tanh_backward sigmoid_backward bitwise_not"
      " bitwise_left_shift bitwise_right_shift div_floor round_decimals round_up ";
  for (const Entry& e : entries()) {
    const Reference r = reference(plain(e.name));
    EXPECT_TRUE(r.real || r.whole || own.find(" " + plain(e.name) + " ") != std::string::npos)
        << e.name;
  }
}

TEST(Elementwise, AlphaScalesTheSecondOperand) {
  for (const char* name : {"add", "sub"}) {
    const Wide sign = name[0] == 'a' ? 1 : -1;
    Reference r;
    r.whole = [sign](I a) { return wrap(__int128(a[0]) + int64_t(sign) * __int128(3) * a[1]); };
    for (int32_t t : {TT_I32, TT_I64}) check_numbers(entry(name), t, r, integer(3));
    r.complex = [sign](Z a) { return a[0] + sign * WideC(0.5, 2) * a[1]; };
    r.complex_eps = 40;
    for (int32_t t : {TT_C64, TT_C128})
      check_numbers(entry(name), t, r, {TT_SCALAR_COMPLEX, 0, 0, 0.5, 2});
    // Two roundings: not one fused operation.
    const Entry& e = entry(name);
    Buffer out(TT_F32, 1);
    std::vector<Buffer> in;
    in.emplace_back(TT_F32, 1);
    in.emplace_back(TT_F32, 1);
    const float a = -1.0f;
    const float b = 1.0f + 0x1p-12f;
    const float alpha = 1.0f - 0x1p-12f;
    in[0].put(0, a);
    in[1].put(0, b);
    each_isa(e, [&](CpuKernel k) {
      ElementPlan p;
      plan_dense(&p, e, TT_F32, &out, &in);
      p.param[0] = number(alpha);
      k(&p, 0, 1);
      volatile float product = alpha * b;
      EXPECT_EQ(out.real(0), double(a + float(sign) * product));
    });
  }
}

TEST(Elementwise, PowersByAScalar) {
  for (double p : {0.5, 1.0, 2.0, 3.0, -1.0, -0.5, -2.0, 0.0, 1.75, -3.0}) {
    P0 = p;
    Reference r = reference("pow_scalar");
    if (p == 3.0) r.ulp = 1.6;
    if (p == 0.5)
      r.real = [](A a) {
        return std::sqrt(a[0]);
      };  // as PyTorch: pow(-inf, 0.5) is nan, pow(-0, 0.5) is -0
    if (p == -0.5) r.real = [](A a) { return 1 / std::sqrt(a[0]); };
    const bool squares =
        p == 3 ||
        p == -2;  // intermediate overflow and underflow round early: compare where there is none
    for (int32_t t : {TT_F32, TT_F64}) {
      if (squares) {
        auto plain = r.real;
        Reference in_type = r;
        in_type.real = [t, p](A a) -> Wide {
          if (t == TT_F32) {
            const float x = float(a[0]), y = x * x;
            return p == 3 ? y * x : 1.0f / y;
          }
          const double x = double(a[0]), y = x * x;
          return p == 3 ? y * x : 1.0 / y;
        };
        check_numbers(entry("pow_scalar"), t, in_type, number(p));
      } else {
        check_numbers(entry("pow_scalar"), t, r, number(p));
      }
    }
    for (int32_t t : {TT_C64, TT_C128}) check_numbers(entry("pow_scalar"), t, r, number(p));
    if (p == std::floor(p))
      for (int32_t t : {TT_I32, TT_I64})
        check_numbers(entry("pow_scalar"), t, r, integer(int64_t(p)));
  }
}

TEST(Elementwise, ClampWithEitherLimitAbsent) {
  const double inf = INFINITY;
  for (int limits = 1; limits < 4; limits++) {
    const tt_scalar none = {};
    for (int32_t t : {TT_F32, TT_F64}) {
      P0 = limits & 1 ? -0.75 : -inf;
      P1 = limits & 2 ? 2.5 : inf;
      check_numbers(entry("clamp"), t, reference("clamp"), limits & 1 ? number(double(P0)) : none,
                    limits & 2 ? number(double(P1)) : none);
      P0 = limits & 1 ? NAN : -inf;
      check_numbers(entry("clamp"), t, reference("clamp"), limits & 1 ? number(double(P0)) : none,
                    limits & 2 ? number(double(P1)) : none);
    }
    for (int32_t t : {TT_I32, TT_I64}) {
      Reference r;
      r.whole = [limits](I a) {
        int64_t v = limits & 1 ? std::max<int64_t>(a[0], -3) : a[0];
        return limits & 2 ? std::min<int64_t>(v, 5) : v;
      };
      check_numbers(entry("clamp"), t, r, limits & 1 ? integer(-3) : none,
                    limits & 2 ? integer(5) : none);
    }
  }
  Reference max_wins;
  max_wins.whole = [](I) { return int64_t(1); };
  check_numbers(entry("clamp"), TT_I64, max_wins, integer(4), integer(1));
}

// References in the type itself.
TEST(Elementwise, QuotientsRoundedToIntegers) {
  for (const char* name : {"div_floor", "div_trunc"}) {
    const bool down = name[4] == 'f';
    Reference r;
    r.real = [down](A a) -> Wide {
      const float x = float(a[0]), y = float(a[1]);
      return down ? float_floor_div(x, y) : std::trunc(x / y);
    };
    check_numbers(entry(name), TT_F32, r);
    r.real = [down](A a) -> Wide {
      const double x = double(a[0]), y = double(a[1]);
      return down ? float_floor_div(x, y) : std::trunc(x / y);
    };
    check_numbers(entry(name), TT_F64, r);
    for (int32_t t : {TT_I32, TT_I64}) check_numbers(entry(name), t, reference(name));
  }
}

// Multiples, their neighbours, subnormal divisors and, in every second block, long quotients.
TEST(Elementwise, RemaindersOfFloatsAreExact) {
  const int64_t n = 4096;
  const Entry& e = entry("fmod");
  std::vector<Buffer> in;
  for (int k = 0; k < 2; k++) {
    in.emplace_back(TT_F32, n);
    fill_random(&in.back(), uint32_t(k) + 21);
  }
  const float scales[] = {1, 1e3f, 1e-39f, 1e30f};
  for (int64_t i = 0; i < n; i++) {
    const float by = float(in[1].real(i)) * scales[i % 4];
    const float multiple = by * float(i * 7919 % 100000);
    const float near[] = {multiple, std::nextafter(multiple, 0.0f), float(in[0].real(i)),
                          -multiple};
    in[1].put(i, by);
    in[0].put(i, near[i / 4 % 4]);
    if (i / 256 % 2 && i % 5 == 0) in[0].put(i, 1e35f);
  }
  each_isa(e, [&](CpuKernel k) {
    Buffer out(TT_F32, n), want(TT_F32, n);
    ElementPlan p;
    plan_dense(&p, e, TT_F32, &out, &in);
    k(&p, 0, n);
    for (int64_t i = 0; i < n; i++)
      want.put(i, std::fmod(float(in[0].real(i)), float(in[1].real(i))));
    for (int64_t i = 0; i < n; i++)
      ASSERT_EQ(out.real(i), want.real(i)) << in[0].real(i) << " % " << in[1].real(i);
    ASSERT_TRUE(out.same_bytes(want));
  });
}

// The same of doubles: by fused products where a quotient is short.
TEST(Elementwise, RemaindersOfDoublesAreExact) {
  const int64_t n = 4096;
  const Entry& e = entry("fmod");
  std::vector<Buffer> in;
  for (int k = 0; k < 2; k++) {
    in.emplace_back(TT_F64, n);
    fill_random(&in.back(), uint32_t(k) + 23);
  }
  const double scales[] = {1, 1e9, 1e-310, 1e200};
  for (int64_t i = 0; i < n; i++) {
    const double by = in[1].real(i) * scales[i % 4];
    const double multiple = by * double(i * 790219 % 1000000007);
    const double near[] = {multiple, std::nextafter(multiple, 0.0), in[0].real(i), -multiple};
    in[1].put(i, by);
    in[0].put(i, near[i / 4 % 4]);
    if (i / 256 % 2 && i % 5 == 0) in[0].put(i, 1e300);
  }
  each_isa(e, [&](CpuKernel k) {
    Buffer out(TT_F64, n), want(TT_F64, n);
    ElementPlan p;
    plan_dense(&p, e, TT_F64, &out, &in);
    k(&p, 0, n);
    for (int64_t i = 0; i < n; i++) want.put(i, std::fmod(in[0].real(i), in[1].real(i)));
    for (int64_t i = 0; i < n; i++)
      ASSERT_EQ(out.real(i), want.real(i)) << in[0].real(i) << " % " << in[1].real(i);
    ASSERT_TRUE(out.same_bytes(want));
  });
}

TEST(Elementwise, GradientsFromResults) {
  Reference s, t;
  s.complex = [](Z a) { return a[0] * std::conj(a[1] * (WideC(1) - a[1])); };
  t.complex = [](Z a) { return a[0] * std::conj(WideC(1) - a[1] * a[1]); };
  s.complex_eps = t.complex_eps = 60;
  for (int32_t type : {TT_C64, TT_C128}) {
    check_numbers(entry("sigmoid_backward"), type, s);
    check_numbers(entry("tanh_backward"), type, t);
  }
  s.real = [](A a) -> Wide {
    float g = float(a[0]), y = float(a[1]);
    volatile float u = g * (1 - y);
    return u * y;
  };
  t.real = [](A a) -> Wide {
    float g = float(a[0]), y = float(a[1]);
    volatile float u = y * y;
    return g * (1 - u);
  };
  check_numbers(entry("sigmoid_backward"), TT_F32, s);
  check_numbers(entry("tanh_backward"), TT_F32, t);
  s.real = [](A a) -> Wide {
    double g = double(a[0]), y = double(a[1]);
    volatile double u = g * (1 - y);
    return double(u * y);
  };
  t.real = [](A a) -> Wide {
    double g = double(a[0]), y = double(a[1]);
    volatile double u = y * y;
    return double(g * (1 - u));
  };
  check_numbers(entry("sigmoid_backward"), TT_F64, s);
  check_numbers(entry("tanh_backward"), TT_F64, t);
}

TEST(Elementwise, ShiftsAndComplements) {
  for (int32_t t : kSet_bitwise) {
    const int width = t == TT_BOOL ? 1 : int(8 * kItemSize[t]);
    Reference left, right, flip;
    left.whole = [width](I a) {
      return a[1] < 0 || a[1] >= width ? 0 : int64_t(uint64_t(a[0]) << a[1]);
    };
    right.whole = [width](I a) {
      const int64_t sign = a[0] < 0 ? -1 : 0;
      return a[1] < 0 || a[1] >= width ? sign : a[0] >> a[1];
    };
    flip.whole = [t](I a) { return t == TT_BOOL ? !a[0] : ~a[0]; };
    check_numbers(entry("bitwise_left_shift"), t, left);
    check_numbers(entry("bitwise_right_shift"), t, right);
    check_numbers(entry("bitwise_not"), t, flip);
  }
}

TEST(Elementwise, MaskedMovesAndScales) {
  for (const char* name : {"where", "masked_fill", "mask_scale"}) {
    const Entry& e = entry(name);
    const bool where = e.name == "where";
    const bool scales = e.name == "mask_scale";
    for (int32_t t : e.types) {
      const int64_t n = 77;
      std::vector<Buffer> in;
      for (int k = 1; k <= e.arity; k++) {
        in.emplace_back(native(e, k, t), n);
        in.back().fill([k](int64_t i) { return Value(double((i * (k + 3) + k) % 5 < 2)); });
      }
      each_isa(e, [&](CpuKernel kernel) {
        SCOPED_TRACE(dtype_text(t));
        Buffer out(t, n);
        ElementPlan p;
        plan_dense(&p, e, t, &out, &in);
        p.param[0] = number(3);
        ASSERT_EQ(kernel(&p, 0, n), TT_OK);
        for (int64_t i = 0; i < n; i++) {
          const Value a = in[0][i];
          const Value b = in[1][i];
          const Value fill = t == TT_BOOL ? 1 : 3;
          Value want = b != 0. ? fill : a;
          if (where) want = a != 0. ? b : in[2][i];
          else if (scales) want = b != 0. ? a * 3. : 0.;
          ASSERT_EQ(out[i], want) << i;
        }
      });
    }
  }
}

// ---- structure ----

// A vector's copy may be aligned differently, so that Buffer's own copy would not hold the same
// elements.
Buffer clone(Buffer& b) {
  Buffer c(b.dtype, b.n);
  memcpy(c.data(), b.data(), size_t(b.n * kItemSize[b.dtype]));
  return c;
}

struct Layout {
  std::vector<int64_t> size;                   // of the output
  std::vector<int64_t> op_size[kMaxOperands];  // {}: the output's; right-aligned
  std::vector<int>
      order[kMaxOperands];      // memory order of the dimensions, outermost first; {}: row-major
  int64_t gap[kMaxOperands];    // elements between neighbours of the innermost stored dimension
  bool zero_dim[kMaxOperands];  // a 0-dim operand
};

struct Laid {
  std::vector<int64_t> size, stride;
  Buffer data;
};

std::vector<int64_t> strides_of(const std::vector<int64_t>& size, std::vector<int> order,
                                int64_t gap) {
  if (order.empty())
    for (size_t i = 0; i < size.size(); i++) order.push_back(int(i));
  std::vector<int64_t> s(size.size());
  int64_t next = gap;
  for (size_t i = order.size(); i-- > 0;) {
    s[size_t(order[i])] = next;
    next *= size[size_t(order[i])];
  }
  return s;
}

Laid lay(const Layout& l, int k, int32_t dtype) {
  std::vector<int64_t> size;
  if (!l.zero_dim[k]) size = l.op_size[k].empty() ? l.size : l.op_size[k];
  const auto stride = strides_of(
      size, size.size() == l.order[k].size() ? l.order[k] : std::vector<int>{}, l.gap[k]);
  int64_t n = 1;
  for (size_t i = 0; i < size.size(); i++) n += size[i] ? (size[i] - 1) * stride[i] : 0;
  return {size, stride, Buffer(dtype, n)};
}

// Offset, in elements, of the operand's element for row-major index i of the output.
int64_t offset_of(const Laid& x, const std::vector<int64_t>& out_size, int64_t i) {
  int64_t off = 0;
  const size_t lead = out_size.size() - x.size.size();
  for (size_t d = out_size.size(); d-- > 0;) {
    const int64_t index = i % out_size[d];
    i /= out_size[d];
    if (d >= lead && x.size[d - lead] != 1) off += index * x.stride[d - lead];
  }
  return off;
}

std::vector<Layout> layouts() {
  std::vector<Layout> v;
  auto add = [&v](std::vector<int64_t> size, auto change) {
    Layout l = {size, {}, {}, {1, 1, 1, 1}, {}};
    change(l);
    v.push_back(l);
  };
  add({1000}, [](Layout&) {});
  add({0, 4}, [](Layout&) {});
  add({}, [](Layout&) {});
  add({1, 1, 1}, [](Layout& l) { l.order[1] = {2, 1, 0}; });
  add({700}, [](Layout& l) { l.zero_dim[2] = true; });
  add({700}, [](Layout& l) { l.zero_dim[1] = l.zero_dim[3] = true; });
  add({300}, [](Layout& l) {
    l.gap[0] = 2;
    l.gap[1] = 3;
  });
  add({5, 300}, [](Layout& l) {
    l.op_size[1] = {5, 1};
    l.op_size[2] = {300};
    l.op_size[3] = {1, 300};
  });
  add({70, 3}, [](Layout& l) {
    l.op_size[1] = {3};
    l.op_size[2] = {70, 1};
  });
  add({22, 49}, [](Layout& l) {  // blocks of whole rows
    l.op_size[1] = {22, 1};
    l.op_size[2] = {49};
    l.op_size[3] = {1, 1};
  });
  add({9, 200}, [](Layout& l) {  // the same, of longer rows
    l.op_size[2] = {200};
    l.op_size[3] = {9, 1};
  });
  add({3, 4, 140}, [](Layout& l) {  // rows, none of which fits a block or repeats
    l.order[1] = {1, 0, 2};
    l.op_size[2] = {3, 1, 140};
  });
  add({6, 7, 30}, [](Layout& l) {
    l.order[1] = {2, 0, 1};
    l.op_size[2] = {7, 1};
  });
  add({40, 33}, [](Layout& l) { l.order[1] = {1, 0}; });
  add({40, 33}, [](Layout& l) {
    l.order[0] = {1, 0};
    l.gap[2] = 2;
  });
  add({2, 3, 2, 5, 2, 3}, [](Layout& l) {
    l.order[1] = {5, 4, 3, 2, 1, 0};
    l.op_size[2] = {5, 1, 3};
    l.order[3] = {1, 0, 3, 2, 5, 4};
  });
  add({4, 5, 20}, [](Layout& l) { l.order[1] = {1, 0, 2}; });
  add({3, 4, 90}, [](Layout& l) { l.order[0] = {1, 0, 2}; });
  add({9, 2, 3}, [](Layout& l) {
    l.order[1] = {1, 0, 2};
    l.order[2] = {1, 2, 0};
  });
  add({4, 20, 17}, [](Layout& l) {
    l.order[1] = {2, 1, 0};
    l.order[0] = {0, 2, 1};
  });
  return v;
}

// dst <- src, by the rules of cpu/simd/convert.h, implemented independently.
void convert_reference(Buffer* dst, int64_t i, Buffer& src, int64_t j) {
  const int32_t d = dst->dtype;
  const int32_t s = src.dtype;
  if (d == s) {
    memcpy(dst->at(i), src.at(j), kItemSize[d]);
    return;
  }
  const Value v = s == TT_BOOL ? Value(src.real(j) != 0) : src[j];
  if (d == TT_BOOL) {
    *reinterpret_cast<uint8_t*>(dst->at(i)) = v != Value(0);
  } else if (is_float(d)) {
    if (s == TT_I64 && d == TT_F32) *reinterpret_cast<float*>(dst->at(i)) = float(whole_at(src, j));
    else if (s == TT_I64 && (d == TT_F16 || d == TT_BF16)) dst->put(i, float(whole_at(src, j)));
    else if (s == TT_I64 && d == TT_C64) dst->put(i, float(whole_at(src, j)));
    else if (d == TT_F16 || d == TT_BF16) dst->put(i, float(v.real()));
    else dst->put(i, is_complex(d) ? v : Value(v.real()));
  } else {
    int64_t w;
    if (!is_float(s)) {
      w = whole_at(src, j);
    } else {
      const double x = std::trunc(v.real());
      const double limit = d == TT_I64 ? 0x1p63 : 0x1p31;
      const int64_t lowest = d == TT_I64 ? INT64_MIN : INT32_MIN;
      w = x >= -limit && x < limit ? int64_t(x) : lowest;
    }
    switch (d) {
      case TT_U8: *reinterpret_cast<uint8_t*>(dst->at(i)) = uint8_t(w); break;
      case TT_I8: *reinterpret_cast<int8_t*>(dst->at(i)) = int8_t(w); break;
      case TT_I16: *reinterpret_cast<int16_t*>(dst->at(i)) = int16_t(w); break;
      case TT_I32: *reinterpret_cast<int32_t*>(dst->at(i)) = int32_t(w); break;
      default: *reinterpret_cast<int64_t*>(dst->at(i)) = w;
    }
  }
}

bool same_value(Buffer& a, int64_t i, Buffer& b, int64_t j) {
  if (!memcmp(a.at(i), b.at(j), kItemSize[a.dtype])) return true;
  if (!is_float(a.dtype)) return false;
  const Value x = a[i];
  const Value y = b[j];  // any nan is a nan
  auto same = [](double p, double q) {
    return p == q ? std::signbit(p) == std::signbit(q) : std::isnan(p) && std::isnan(q);
  };
  return same(x.real(), y.real()) && same(x.imag(), y.imag());
}

struct Params {
  tt_scalar p[2];
};
Params params_for(const Entry& e, int32_t compute) {
  if (e.name == "clamp") return {{integer(-1), integer(40)}};
  if (e.name == "mask_scale") return {{number(1.25), {}}};
  if (e.name == "masked_fill" || e.name == "fill")
    return {{integer(compute == TT_BOOL ? 1 : 3), {}}};
  if (e.name.find("pow_scalar") != std::string::npos) return {{integer(2), {}}};
  if (e.name == "round_decimals" || e.name == "round_up") return {{integer(100), {}}};
  if (e.name == "add") return {{integer(3), {}}};
  return {};
}

// Runs the plan in ranges of `piece` units (0: in one).
void run_pieces(CpuKernel kernel, ElementPlan* p, int64_t piece) {
  if (!piece) piece = p->n ? p->n : 1;
  for (int64_t b = 0; b < p->n; b += piece)
    ASSERT_EQ(kernel(p, b, std::min(b + piece, p->n)), TT_OK);
}

void check_layout(const Entry& e, const Layout& l, int32_t compute, const int32_t* dtypes,
                  int64_t piece, const Params& params) {
  std::vector<Laid> x;
  for (int k = 0; k <= e.arity; k++) {
    x.push_back(lay(l, k, dtypes[k]));
    fill_random(&x.back().data, uint32_t(k + 1));
    if (dtypes[k] == TT_BF16 || dtypes[k] == TT_F16 ||
        dtypes[k] == TT_F32)  // room for float -> integer overflow
      for (int64_t i = 0; i < x.back().data.n; i += 37)
        x.back().data.put(i, (i & 1 ? -1 : 1) * 6e4 * double(i + 1));
  }
  int64_t n = 1;
  for (int64_t s : l.size) n *= s;
  // The expected result: operands gathered as native arrays, a dense run, the result converted.
  std::vector<Buffer> in;
  for (int k = 1; k <= e.arity; k++) {
    in.emplace_back(native(e, k, compute), n);
    for (int64_t i = 0; i < n; i++)
      convert_reference(&in.back(), i, x[size_t(k)].data, offset_of(x[size_t(k)], l.size, i));
  }
  each_isa(e, [&](CpuKernel kernel) {
    Buffer dense(native(e, 0, compute), n);
    ElementPlan p;
    plan_dense(&p, e, compute, &dense, &in);
    p.param[0] = params.p[0];
    p.param[1] = params.p[1];
    run_pieces(kernel, &p, 0);
    Laid out = {x[0].size, x[0].stride, clone(x[0].data)};
    Laid expect = {x[0].size, x[0].stride, clone(x[0].data)};
    memset(static_cast<void*>(&p), 0xee, sizeof p);
    ElementOperand ops[kMaxOperands];
    for (int k = 0; k <= e.arity; k++) {
      Laid& o = k ? x[size_t(k)] : out;
      ops[k] = {o.data.data(), o.size.data(), o.stride.data(), int32_t(o.size.size()), dtypes[k]};
    }
    build_element_plan(p, ops, e.arity + 1, compute, e.bools);
    p.param[0] = params.p[0];
    p.param[1] = params.p[1];
    run_pieces(kernel, &p, piece);
    for (int64_t i = 0; i < n; i++)
      convert_reference(&expect.data, offset_of(expect, l.size, i), dense, i);
    for (int64_t i = 0; i < out.data.n; i++)
      ASSERT_TRUE(same_value(out.data, i, expect.data, i))
          << "element " << i << " of " << out.data.n;
    ASSERT_EQ(memcmp(out.data.at(out.data.n), expect.data.at(expect.data.n), 32), 0)
        << "wrote behind the output";
  });
}

int32_t some_dtype(std::mt19937* g, int32_t compute) {
  static const Types real = {TT_BOOL, TT_U8,  TT_I8,   TT_I16, TT_I32,
                             TT_I64,  TT_F16, TT_BF16, TT_F32, TT_F64};
  static const Types whole = {TT_BOOL, TT_U8, TT_I8, TT_I16, TT_I32, TT_I64};
  if (is_complex(compute)) return kSet_all[(*g)() % kSet_all.size()];
  const Types& from = is_float(compute) ? real : whole;
  return from[(*g)() % from.size()];
}

TEST(Elementwise, AnyLayoutAndDtypeGivesTheBitsOfTheDenseRun) {
  std::mt19937 g(1);
  for (const Entry& e : entries()) {
    if (e.name == "copy") continue;
    for (int32_t compute : e.types)
      for (size_t i = 0; i < layouts().size(); i++) {
        if (left_out()) continue;
        const Layout l = layouts()[i];
        SCOPED_TRACE(std::string(dtype_text(compute)) + " layout " + std::to_string(i));
        int32_t dtypes[kMaxOperands] = {};
        for (int mixed = 0; mixed < 2; mixed++) {
          const bool moves = e.types == kSet_all;
          for (int k = 0; k <= e.arity; k++)
            dtypes[k] =
                mixed && !(moves && k == 0) ? some_dtype(&g, compute) : native(e, k, compute);
          const Params params = params_for(e, compute);
          check_layout(e, l, compute, dtypes, mixed ? 101 : 0, params);
          check_layout(e, l, compute, dtypes, mixed ? 0 : 37, params);
          if (HasFatalFailure()) return;
        }
      }
  }
}

// Operands of 8 or 16 bits, for which some operators have loops of their own.
TEST(Elementwise, NarrowOperandsGiveTheBitsOfTheDenseRun) {
  for (const Entry& e : entries()) {
    if (e.name == "copy" || e.types == kSet_all) continue;
    for (int32_t compute : e.types) {
      if (compute != TT_F32 && compute != TT_I32) continue;
      const Types narrow = compute == TT_F32 ? Types{TT_F16, TT_BF16} : Types{TT_U8, TT_I8, TT_I16};
      for (int32_t dtype : narrow)
        for (size_t i = 0; i < layouts().size(); i++) {
          SCOPED_TRACE(std::string(dtype_text(dtype)) + " layout " + std::to_string(i));
          int32_t dtypes[kMaxOperands] = {};
          for (int k = 0; k <= e.arity; k++)
            dtypes[k] = native(e, k, compute) == TT_BOOL ? int32_t(TT_BOOL) : dtype;
          Params params = params_for(e, compute);
          const bool scaled = e.name == "add" || e.name == "sub" || e.name == "rsub";
          if (scaled) params = {{compute == TT_F32 ? number(-2.5) : integer(1), {}}};
          if (e.name == "leaky_relu") params = {{number(0.3), {}}};
          check_layout(e, layouts()[i], compute, dtypes, 0, params);
          check_layout(e, layouts()[i], compute, dtypes, 101, params);
          if (HasFatalFailure()) return;
        }
    }
  }
}

TEST(Elementwise, CopyConvertsEveryDtypeToEveryOther) {
  for (int32_t d : kSet_all)
    for (int32_t s : kSet_all)
      for (size_t i = 0; i < layouts().size(); i++) {
        SCOPED_TRACE(std::string(dtype_text(s)) + " to " + dtype_text(d) + " layout " +
                     std::to_string(i));
        const Layout l = layouts()[i];
        Laid src = lay(l, 1, s);
        Laid dst = lay(l, 0, d);
        fill_random(&src.data, 3);
        if (is_float(s)) {
          const double odd[] = {NAN,   INFINITY, -INFINITY, 3e9,   -3e9,   1e19, -1e19,
                                0.5,   -0.5,     65519.9,   65520, 6e-8,   3e-8, 1e-41,
                                255.9, -1,       300,       3e38,  3.4e38, -0.0};
          for (int64_t k = 0; k < src.data.n; k++)
            if (k % 3 == 0) src.data.put(k, odd[size_t(k / 3) % 20]);
        }
        int64_t n = 1;
        for (int64_t z : l.size) n *= z;
        each_isa(entry("copy"), [&](CpuKernel kernel) {
          for (int64_t piece : {int64_t(0), int64_t(50), int64_t(333)}) {
            Laid out = {dst.size, dst.stride, clone(dst.data)};
            Laid expect = {dst.size, dst.stride, clone(dst.data)};
            ElementPlan p;
            memset(static_cast<void*>(&p), 0xee, sizeof p);
            const ElementOperand ops[2] = {
                {out.data.data(), out.size.data(), out.stride.data(), int32_t(out.size.size()), d},
                {src.data.data(), src.size.data(), src.stride.data(), int32_t(src.size.size()), s}};
            build_element_plan(p, ops, 2, d, 0);
            run_pieces(kernel, &p, piece);
            for (int64_t k = 0; k < n; k++)
              convert_reference(&expect.data, offset_of(expect, l.size, k), src.data,
                                offset_of(src, l.size, k));
            for (int64_t k = 0; k < out.data.n; k++)
              ASSERT_TRUE(same_value(out.data, k, expect.data, k))
                  << k << ": " << out.data.real(k) << " for " << expect.data.real(k);
          }
        });
        if (HasFatalFailure()) return;
      }
}

// Beyond a source of 1 MB tiles are turned in bands of several rows.
TEST(Elementwise, LargeTranspositionsMoveEveryElement) {
  const int64_t rows = 555, cols = 701;  // neither whole tiles nor whole bands
  for (int32_t t : {TT_U8, TT_I16, TT_F32, TT_F64, TT_C128}) {
    Buffer src(t, rows * cols);
    for (int64_t i = 0; i < src.n; i++) src.put(i, double(i % 127));
    each_isa(entry("copy"), [&](CpuKernel kernel) {
      Buffer out(t, rows * cols);
      const int64_t size[] = {rows, cols};
      const int64_t dense[] = {cols, 1};
      const int64_t turned[] = {1, rows};
      const ElementOperand ops[] = {{out.data(), size, dense, 2, t},
                                    {src.data(), size, turned, 2, t}};
      ElementPlan p;
      build_element_plan(p, ops, 2, t, 0);
      kernel(&p, 0, p.n);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
          ASSERT_EQ(out.real(r * cols + c), double((c * rows + r) % 127)) << r << ", " << c;
    });
  }
}

TEST(Elementwise, MovesKeepEveryBit) {
  // where and masked_fill keep the bits of signalling nans and of bools other than 0 and 1.
  for (int32_t t : kSet_all) {
    const int64_t n = 333;
    std::vector<Buffer> in;
    in.emplace_back(TT_BOOL, n);
    in.emplace_back(t, n);
    in.emplace_back(t, n);
    std::mt19937 g(5);
    for (auto& b : in)
      for (int64_t i = 0; i < n * kItemSize[b.dtype]; i++) b.data()[i] = char(g());
    for (int64_t i = 0; i < n; i++) in[0].put(i, double(g() & 1));
    each_isa(entry("where"), [&](CpuKernel k) {
      Buffer out(t, n);
      ElementPlan p;
      plan_dense(&p, entry("where"), t, &out, &in);
      ASSERT_TRUE(p.dense);
      k(&p, 0, n);
      for (int64_t i = 0; i < n; i++)
        ASSERT_EQ(memcmp(out.at(i), in[in[0].real(i) != 0 ? 1 : 2].at(i), kItemSize[t]), 0);
    });
  }
}

TEST(Elementwise, ExactFunctorsAgreeAcrossInstructionSets) {
  for (const char* name : {"add", "sub", "rsub", "mul", "div", "neg", "eq", "lt", "maximum", "relu",
                           "clamp", "div_floor"}) {
    const Entry& e = entry(name);
    for (int32_t t : e.types) {
      Inputs x(e, t);
      Buffer first(native(e, 0, t), x.in[0].n);
      bool have = false;
      each_isa(e, [&](CpuKernel k) {
        Buffer out(native(e, 0, t), x.in[0].n);
        ElementPlan p;
        plan_dense(&p, e, t, &out, &x.in);
        p.param[0] = params_for(e, t).p[0];
        p.param[1] = params_for(e, t).p[1];
        k(&p, 0, p.n);
        if (!have) memcpy(first.data(), out.data(), size_t(out.n * kItemSize[out.dtype]));
        have = true;
        for (int64_t i = 0; i < out.n; i++) ASSERT_TRUE(same_value(out, i, first, i)) << i;
      });
    }
  }
}

TEST(Elementwise, OutputMayBeAnInput) {
  const int64_t n = 1003;
  for (const char* name : {"add", "mul", "exp", "tanh", "sin"}) {
    const Entry& e = entry(name);
    std::vector<Buffer> in;
    for (int k = 0; k < e.arity; k++) {
      in.emplace_back(TT_F32, n);
      fill_random(&in.back(), uint32_t(k) + 9);
    }
    if (e.name == "sin") in[0].put(300, 1e20);
    each_isa(e, [&](CpuKernel k) {
      Buffer apart(TT_F32, n);
      ElementPlan p;
      plan_dense(&p, e, TT_F32, &apart, &in);
      k(&p, 0, n);
      std::vector<Buffer> again;
      for (Buffer& b : in) again.push_back(clone(b));
      p.ptr[0] = again[0].data();
      for (int o = 0; o < e.arity; o++) p.ptr[o + 1] = again[size_t(o)].data();
      k(&p, 0, n);
      ASSERT_TRUE(again[0].same_bytes(apart));
    });
  }
}

TEST(Elementwise, LargeOutputsAreStreamedToTheSameValues) {
  const int64_t n = (40 << 20) / 4 + 5;
  std::vector<Buffer> in;
  in.emplace_back(TT_F32, n);
  in.emplace_back(TT_F32, n);
  auto* a = reinterpret_cast<float*>(in[0].data());
  auto* b = reinterpret_cast<float*>(in[1].data());
  for (int64_t i = 0; i < n; i++) {
    a[i] = float(i & 1023);
    b[i] = float(i & 255);
  }
  const Entry& sum = entry("add");
  const Entry& same = entry("copy");
  each_isa(sum, [&](CpuKernel k) {
    Buffer out(TT_F32, n);
    ElementPlan p;
    plan_dense(&p, sum, TT_F32, &out, &in);
    p.ptr[0] += 4;
    p.ptr[1] += 4;  // not on a line
    k(&p, 0, n - 1);
    const auto* o = reinterpret_cast<float*>(out.data());
    for (int64_t i = 0; i < n - 1; i++) ASSERT_EQ(o[i + 1], a[i + 1] + b[i]);
  });
  each_isa(same, [&](CpuKernel k) {
    Buffer out(TT_F32, n);
    std::vector<Buffer> one;
    one.push_back(clone(in[0]));
    ElementPlan p;
    plan_dense(&p, same, TT_F32, &out, &one);
    k(&p, 0, n);
    ASSERT_TRUE(out.same_bytes(one[0]));
  });
}

// ---- the plan builder ----

TEST(ElementPlan, CoalescesAndFindsDense) {
  float data[64];
  auto* ptr = reinterpret_cast<char*>(data);
  const int64_t size[] = {2, 3, 4};
  const int64_t rows[] = {12, 4, 1};
  const int64_t channels_last[] = {12, 1, 3};
  const int64_t one[] = {1};
  const int64_t last[] = {4};
  ElementPlan p;
  ElementOperand ops[3] = {{ptr, size, rows, 3, TT_F32},
                           {ptr, size, rows, 3, TT_F32},
                           {ptr, nullptr, nullptr, 0, TT_F32}};
  build_element_plan(p, ops, 3, TT_F32, kBoolNone);
  EXPECT_TRUE(p.dense && p.scalar_in[2] && !p.scalar_in[1] && p.n == 24);
  ops[0].stride = ops[1].stride = channels_last;  // one permuted run
  build_element_plan(p, ops, 2, TT_F32, kBoolNone);
  EXPECT_TRUE(p.dense && p.n == 24);
  build_element_plan(p, ops, 2, TT_F64, kBoolNone);
  EXPECT_TRUE(!p.dense && p.ndim == 1 && p.size[0] == 24);
  ops[1].stride = rows;
  build_element_plan(p, ops, 2, TT_F32, kBoolNone);
  EXPECT_TRUE(!p.dense && p.ndim == 3);
  EXPECT_EQ(p.stride[0][0], 4);
  EXPECT_EQ(p.stride[1][0], 16);
  ops[0].stride = rows;
  ops[1] = {ptr, last, one, 1, TT_F32};
  build_element_plan(p, ops, 2, TT_F32, kBoolNone);
  EXPECT_TRUE(!p.dense && p.ndim == 2 && p.size[0] == 4 && p.size[1] == 6);
  EXPECT_EQ(p.stride[1][1], 0);
  build_element_plan(p, ops, 2, TT_F32, kBoolOut);
  EXPECT_FALSE(p.dense);
}

TEST(ElementPlan, SixtyFourDimensions) {
  int64_t size[64], stride[64], other[64];
  for (int d = 0; d < 64; d++) {
    size[d] = d % 8 ? 1 : 2;
    stride[d] = 1;
    other[d] = 1;
  }
  int64_t next = 1;
  for (int d = 63; d >= 0; d--) {
    stride[d] = next;
    next *= size[d];
  }
  for (int d = 0, s = 1; d < 64; d++) {
    other[d] = s;
    s *= int(size[d]);
  }
  Buffer in(TT_F32, next);
  Buffer out(TT_F32, next);
  fill_random(&in, 1);
  const ElementOperand ops[2] = {{out.data(), size, stride, 64, TT_F32},
                                 {in.data(), size, other, 64, TT_F32}};
  ElementPlan p;
  build_element_plan(p, ops, 2, TT_F32, kBoolNone);
  ASSERT_EQ(entry("copy").row.isa[0](&p, 0, p.n), TT_OK);
  for (int64_t i = 0; i < next; i++) {
    int64_t from = 0;
    for (int d = 63, rest = int(i); d >= 0; d--) {
      from += rest % size[d] * other[d];
      rest /= int(size[d]);
    }
    ASSERT_EQ(out.real(i), in.real(from));
  }
}

}  // namespace
