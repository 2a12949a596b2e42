// What Microsoft's compiler gets in the place of GNU's extensions, compiled by this compiler: the
// functions of base/compiler/standard.h, and the class of kernels/cpu/simd/vector.h.
#include <gtest/gtest.h>

#include "plan/kernel.h"

#undef TT_NS
#undef TT_HAS_UINT128
#define TT_NS portable
namespace portable {
template <class T> struct Itself { using Type = T; };
template <class A, class B> constexpr bool kIsSame = tt::kIsSame<A, B>;
}  // namespace portable
#include "base/compiler/standard.h"

#define TT_NO_VECTOR_EXTENSION
#define TT_ISA lanes
#include "kernels/cpu/simd/vector.h"

namespace {

const int64_t kIntegers[] = {0,
                             1,
                             -1,
                             2,
                             -2,
                             3,
                             7,
                             10,
                             -5,
                             INT32_MAX,
                             INT32_MIN,
                             3037000500LL,
                             1LL << 32,
                             -(1LL << 32),
                             INT64_MAX / 2,
                             INT64_MAX / 3 + 1,
                             INT64_MAX,
                             INT64_MIN,
                             INT64_MIN + 1};

#define EXPECT_SAME(name, T)                                                  \
  for (int64_t x : kIntegers)                                                 \
    for (int64_t y : kIntegers) {                                             \
      T of_gnu, of_standard;                                                  \
      const T a = T(x), b = T(y);                                             \
      EXPECT_EQ(tt::name(a, b, &of_gnu), portable::name(a, b, &of_standard))  \
          << #name << " of " << x << " and " << y;                            \
      EXPECT_EQ(of_gnu, of_standard) << #name << " of " << x << " and " << y; \
    }

TEST(Standard, OverflowIsThatOfGnu){
    EXPECT_SAME(add_overflow, int64_t) EXPECT_SAME(sub_overflow, int64_t)
        EXPECT_SAME(mul_overflow, int64_t) EXPECT_SAME(add_overflow, uint64_t)
            EXPECT_SAME(sub_overflow, uint64_t) EXPECT_SAME(mul_overflow, uint64_t)}

TEST(Standard, BitsAreThoseOfGnu) {
  for (int64_t x : kIntegers) {
    const uint64_t bits = uint64_t(x) | 1ull << 40;
    EXPECT_EQ(tt::leading_zeros(bits), portable::leading_zeros(bits));
    EXPECT_EQ(tt::trailing_zeros(bits), portable::trailing_zeros(bits));
    EXPECT_EQ(tt::count_ones(uint32_t(x)), portable::count_ones(uint32_t(x)));
    EXPECT_EQ(tt::swap_bytes(uint64_t(x)), portable::swap_bytes(uint64_t(x)));
    EXPECT_EQ(tt::bit_cast<uint64_t>(double(x)), portable::bit_cast<uint64_t>(double(x)));
  }
  EXPECT_EQ(tt::bit_cast<uint64_t>(tt::kNan), tt::bit_cast<uint64_t>(portable::kNan));
  EXPECT_EQ(tt::kInf, portable::kInf);
}

TEST(Standard, AtomicOperationsReturnWhatThoseOfGnuDo) {
  using namespace portable;
  int64_t x = 5;
  EXPECT_EQ(atomic_fetch_add(&x, 2, kRelaxed), 5);
  EXPECT_EQ(atomic_sub_fetch(&x, 3, kAcqRel), 4);
  EXPECT_EQ(atomic_fetch_or(&x, 3, kSeqCst), 4);
  EXPECT_EQ(atomic_and_fetch(&x, 6, kRelease), 6);
  EXPECT_EQ(atomic_exchange(&x, 9, kAcquire), 6);
  int64_t seen = 1;
  EXPECT_FALSE(atomic_compare_exchange(&x, &seen, 7, kAcqRel, kAcquire));
  EXPECT_EQ(seen, 9);
  EXPECT_TRUE(atomic_compare_exchange(&x, &seen, 7, kAcqRel, kAcquire));
  atomic_store(&x, atomic_load(&x, kRelaxed) + 1, kRelease);
  EXPECT_EQ(x, 8);
}

TEST(Standard, FunctionsOfTheCLibraryAreThoseOfGnu) {
  for (double x : {0.25, 1.0, 2.5, 300.0}) {
#define TT_LIBM(T, name) EXPECT_EQ(tt::libm::name(T(x)), portable::libm::name(T(x))) << #name;
#define TT_LIBM_2(T, name) \
  EXPECT_EQ(tt::libm::name(T(x), T(3)), portable::libm::name(T(x), T(3))) << #name;
#define TT_LIBM_3(T, name) \
  EXPECT_EQ(tt::libm::name(T(x), T(3), T(7)), portable::libm::name(T(x), T(3), T(7))) << #name;
#include "base/compiler/libm.inc"
    const auto a = tt::libm::tanh(tt::libm::ComplexDouble{x / 100, 1});
    const auto b = portable::libm::tanh(portable::libm::ComplexDouble{x / 100, 1});
    EXPECT_EQ(a.re, b.re);
    EXPECT_EQ(a.im, b.im);
  }
  EXPECT_TRUE(portable::libm::is_infinite(-portable::kInf));
  EXPECT_FALSE(portable::libm::is_finite(portable::kNan));
  EXPECT_TRUE(portable::libm::has_sign(-0.0));
}

TEST(Standard, VectorsComputeByLanes) {
  using namespace portable::lanes;
  using Floats = Vector<float, 4>;
  using Ints = Vector<int32_t, 4>;
  const Floats x(1, -2, 3, -4);
  const Floats y = 2.0f * x - x / Floats::all(2) + 1.0f;
  const Ints below = x < 0.0f;
  const Ints bits = (Ints(x) & below) >> 31;
  const auto zipped = shuffled<0, 4, 1, 5>(x, y);
  const auto doubles = converted<Vector<double, 4>>(x);
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(y[i], 1.5f * x[i] + 1);
    EXPECT_EQ(below[i], x[i] < 0 ? -1 : 0);
    EXPECT_EQ(bits[i], x[i] < 0 ? -1 : 0);
    EXPECT_EQ(zipped[i], i % 2 ? y[i / 2] : x[i / 2]);
    EXPECT_EQ(doubles[i], double(x[i]));
    EXPECT_EQ(Floats{}[i], 0);
    EXPECT_EQ((~Ints{})[i], -1);
    EXPECT_EQ((-x)[i], -x[i]);
  }
}

}  // namespace
