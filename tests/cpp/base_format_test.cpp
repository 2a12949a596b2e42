#include "base/text/format.h"

#include "base/error.h"
#include "base/tls.h"
#include "tests/c/harness/share.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace tt {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const int kRounds = 50000 / share();
#else
const int kRounds = 1000000 / share();
#endif

std::string shortest(double v, bool f32 = false) {
  char t[32];
  return std::string(t, size_t(format_double(t, v, f32)));
}
std::string fixed(double v, int digits) {
  char t[512];
  return std::string(t, size_t(format_fixed(t, v, digits)));
}
std::string sci(double v, int digits) {
  char t[128];
  return std::string(t, size_t(format_sci(t, v, digits)));
}

// Digits of a number's text, without point, exponent and padding zeros.
int significant(const std::string& s) {
  std::string d;
  for (char c : s.substr(0, s.find('e')))
    if (c >= '0' && c <= '9') d += c;
  d.erase(0, d.find_first_not_of('0'));
  d.erase(d.find_last_not_of('0') + 1);
  return int(d.size());
}

TEST(Format, LooksLikePython) {
  EXPECT_EQ(shortest(0.0), "0.0");
  EXPECT_EQ(shortest(-0.0), "-0.0");
  EXPECT_EQ(shortest(1), "1.0");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(shortest(1e-4), "0.0001");
  EXPECT_EQ(shortest(1e-5), "1e-05");
  EXPECT_EQ(shortest(-1.25e-7), "-1.25e-07");
  EXPECT_EQ(shortest(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(shortest(1e15), "1000000000000000.0");
  EXPECT_EQ(shortest(1e16), "1e+16");
  EXPECT_EQ(shortest(1e22), "1e+22");
  EXPECT_EQ(shortest(9007199254740993.0), "9007199254740992.0");
  EXPECT_EQ(shortest(5e-324), "5e-324");
  EXPECT_EQ(shortest(2.2250738585072014e-308), "2.2250738585072014e-308");
  EXPECT_EQ(shortest(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(shortest(INFINITY), "inf");
  EXPECT_EQ(shortest(-INFINITY), "-inf");
  EXPECT_EQ(shortest(NAN), "nan");
  EXPECT_EQ(shortest(-NAN), "nan");
}

TEST(Format, Float32) {
  EXPECT_EQ(shortest(0.1f, true), "0.1");
  EXPECT_EQ(shortest(0.1f, false), "0.10000000149011612");
  EXPECT_EQ(shortest(16777216.0f, true), "16777216.0");
  EXPECT_EQ(shortest(std::numeric_limits<float>::max(), true), "3.4028235e+38");
  EXPECT_EQ(shortest(std::numeric_limits<float>::denorm_min(), true), "1e-45");
  EXPECT_EQ(shortest(std::numeric_limits<float>::min(), true), "1.1754944e-38");
}

TEST(Format, DoublesReadBackAndAreShortest) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < kRounds; i++) {
    uint64_t bits = rng();
    if (i % 2)
      bits = (bits & 0x800fffffffffffff) | ((1023 - 40 + bits % 80) << 52);  // everyday magnitudes
    if (i % 8 == 0) bits &= ~((uint64_t(1) << 52) - 1);                      // powers of two
    double v;
    memcpy(&v, &bits, 8);
    if (!std::isfinite(v)) continue;
    const std::string s = shortest(v);
    ASSERT_EQ(strtod(s.c_str(), nullptr), v) << s;
    char ref[40];
    *std::to_chars(ref, ref + 40, v, std::chars_format::scientific).ptr = 0;
    ASSERT_EQ(significant(s), significant(ref)) << s << " against " << ref;
  }
}

TEST(Format, FloatsReadBackAndAreShortest) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < kRounds; i++) {
    uint32_t bits = uint32_t(rng());
    if (i % 8 == 0) bits &= 0xff800000;
    float v;
    memcpy(&v, &bits, 4);
    if (!std::isfinite(v)) continue;
    const std::string s = shortest(v, true);
    ASSERT_EQ(strtof(s.c_str(), nullptr), v) << s;
    char ref[40];
    *std::to_chars(ref, ref + 40, v, std::chars_format::scientific).ptr = 0;
    ASSERT_EQ(significant(s), significant(ref)) << s << " against " << ref;
  }
}

TEST(Format, FixedAndScientificRoundAsPrintf) {
  std::mt19937_64 rng(3);
  const double some[] = {0.0,  -0.0, 0.5,   1.5,      2.5,   0.125,  0.375, 9.5,        99.95,
                         0.05, 0.06, 0.004, 999.9995, 1e300, 5e-324, 1e-7,  123456.789, -0.0001};
  auto check = [](double v) {
    for (int digits : {0, 1, 2, 3, 4, 8, 17}) {
      char ref[512];
      snprintf(ref, sizeof ref, "%.*f", digits, v);
      ASSERT_EQ(fixed(v, digits), ref);
      snprintf(ref, sizeof ref, "%.*e", digits, v);
      ASSERT_EQ(sci(v, digits), ref);
    }
  };
  for (double v : some) check(v);
  for (int i = 0; i < kRounds / 50; i++) {
    const uint64_t bits = rng();
    double v;
    memcpy(&v, &bits, 8);
    if (std::isfinite(v)) check(v);
    check(double(int64_t(rng() % 2000000) - 1000000) / 1000);
  }
  EXPECT_EQ(fixed(NAN, 4), "nan");
  EXPECT_EQ(sci(-INFINITY, 4), "-inf");
  EXPECT_EQ(fixed(1, 1000).size(), size_t(2 + kMaxDigits));
}

TEST(Format, Integers) {
  char t[20];
  EXPECT_EQ(std::string(t, size_t(format_int(t, INT64_MIN))), "-9223372036854775808");
  EXPECT_EQ(std::string(t, size_t(format_int(t, INT64_MAX))), "9223372036854775807");
  EXPECT_EQ(std::string(t, size_t(format_uint(t, UINT64_MAX))), "18446744073709551615");
  EXPECT_EQ(std::string(t, size_t(format_int(t, 0))), "0");
}

TEST(Format, Templates) {
  const int64_t shape[] = {2, 3};
  const FmtArg args[] = {Ints(shape, 2),
                         Ints(shape, 0),
                         fmt_dtype(TT_BF16),
                         fmt_device(TT_CUDA, 1),
                         fmt_device(TT_CPU, 0),
                         uint64_t(7),
                         -7,
                         true,
                         2.5,
                         "%s{}"};
  char t[128];
  const int64_t n = format_to(t, sizeof t, "{}{} {} {} {} {} {} {} {} {} {}", args);
  EXPECT_STREQ(t, "[2,3][] bfloat16 cuda:1 cpu 7 -7 true 2.5 %s{} {}");
  EXPECT_EQ(n, int64_t(strlen(t)));
  char cut[6];
  EXPECT_EQ(format_to(cut, sizeof cut, "{}{} {} {} {} {} {} {} {} {} {}", args), n);
  EXPECT_STREQ(cut, "[2,3]");
  const char* none = nullptr;
  const FmtArg null[] = {none};
  format_to(t, sizeof t, "{}", null);
  EXPECT_STREQ(t, "NULL");
  const char* const names[] = {"bool",    "uint8",   "int8",      "int16",
                               "int32",   "int64",   "float16",   "bfloat16",
                               "float32", "float64", "complex64", "complex128"};
  for (int32_t d = TT_BOOL; d <= TT_C128; d++) {
    const FmtArg a[] = {fmt_dtype(d)};
    format_to(t, sizeof t, "{}", a);
    EXPECT_STREQ(t, names[d - 1]);
  }
}

class Errors : public testing::Test {
 protected:
  Errors() {
    tls.error = &record;
    tls.op = "matmul";
  }
  ~Errors() override {
    tls.error = nullptr;
    tls.op = nullptr;
  }
  ErrorRecord record = {};
};

TEST_F(Errors, RecordOpArgumentAndOperands) {
  const int64_t a[] = {2, 3};
  const int64_t b[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  bool caught = false;
  try {
    fail_arg(TT_SHAPE, "other", "a is {}, b is {} of {}", Ints(a, 2), Ints(b, 9),
             fmt_dtype(TT_F32));
  } catch (const std::exception&) {
    FAIL() << "a host's catch clause must not match";
  } catch (...) {
    caught = true;
  }
  ASSERT_TRUE(caught);
  EXPECT_STREQ(record.view.message, "matmul: a is [2,3], b is [1,2,3,4,5,6,7,8,9] of float32");
  EXPECT_EQ(record.view.code, TT_SHAPE);
  EXPECT_STREQ(record.view.op, "matmul");
  EXPECT_STREQ(record.view.arg, "other");
  EXPECT_EQ(record.view.arg_index, -1);
  EXPECT_EQ(record.view.ndim[0], 2);
  EXPECT_EQ(record.view.ndim[1], 9);
  EXPECT_EQ(record.view.shape[1][7], 8);
  EXPECT_EQ(record.view.dtype[0], TT_F32);
  EXPECT_EQ(record.view.dtype[1], 0);
  EXPECT_EQ(record.view.cause, nullptr);
}

TEST_F(Errors, LongTextsAreCut) {
  const std::string longer(5000, 'x');
  EXPECT_ANY_THROW(fail(TT_FORMAT, "{}", longer.c_str()));
  EXPECT_EQ(strlen(record.view.message), sizeof record.message - 1);
  const std::string op(3000, 'o');
  set_error(&record, TT_FORMAT, op.c_str(), nullptr, "text", {});
  EXPECT_EQ(strlen(record.view.message), sizeof record.message - 1);
}

TEST_F(Errors, CauseIsKeptForTheNextErrorOnly) {
  EXPECT_ANY_THROW(fail(TT_DTYPE, "inner"));
  error_to_cause(&record);
  tls.op = "outer";
  EXPECT_ANY_THROW(fail(TT_CALLBACK, "the callback failed"));
  ASSERT_NE(record.view.cause, nullptr);
  EXPECT_EQ(record.view.cause->code, TT_DTYPE);
  EXPECT_STREQ(record.view.cause->message, "matmul: inner");
  EXPECT_STREQ(record.view.message, "outer: the callback failed");
  EXPECT_ANY_THROW(fail_oom(5));
  EXPECT_EQ(record.view.cause, nullptr);
  EXPECT_EQ(record.view.code, TT_OOM);
}

TEST_F(Errors, NoRecordIsFine) {
  tls.error = nullptr;
  EXPECT_ANY_THROW(fail(TT_INTERNAL, "nobody reads this"));
  EXPECT_ANY_THROW(fail_again());
}

}  // namespace
}  // namespace tt
