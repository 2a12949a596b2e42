// blockwise_linear of many rows by what this processor has, or by emulated tiles of AMX, against
// sums in double precision, and without tiles where numbers are not finite.
#include "amx_fixture.h"

#include <cmath>
#include <random>
#include <vector>

namespace TT_NS {
namespace {

// A format of blocks: its numbers, bytes, and where the float16 numbers are; -1: none.
struct Format {
  int id;
  int64_t items, bytes;
  int halves[2];
};
constexpr Format kFormats[] = {
    {TT_BLOCKFORMAT_Q8_0, 32, 34, {0, -1}},     {TT_BLOCKFORMAT_Q4_0, 32, 18, {0, -1}},
    {TT_BLOCKFORMAT_Q4_1, 32, 20, {0, 2}},      {TT_BLOCKFORMAT_Q5_0, 32, 22, {0, -1}},
    {TT_BLOCKFORMAT_Q5_1, 32, 24, {0, 2}},      {TT_BLOCKFORMAT_Q2_K, 256, 84, {80, 82}},
    {TT_BLOCKFORMAT_Q3_K, 256, 110, {108, -1}}, {TT_BLOCKFORMAT_Q4_K, 256, 144, {0, 2}},
    {TT_BLOCKFORMAT_Q5_K, 256, 176, {0, 2}},    {TT_BLOCKFORMAT_Q6_K, 256, 210, {208, -1}},
    {TT_BLOCKFORMAT_IQ4_NL, 32, 18, {0, -1}},   {TT_BLOCKFORMAT_IQ4_XS, 256, 136, {0, -1}},
    {TT_BLOCKFORMAT_MXFP4, 32, 17, {-1, -1}},
};

class BlockTiles : public AmxTest {
 protected:
  tt_tensor* floats(const std::vector<float>& values, int64_t rows, int64_t cols) {
    tt_tensor* t = nullptr;
    const int64_t shape[2] = {rows, cols};
    EXPECT_EQ(tt_tensor_from_data(c, values.data(), TT_F32, shape, 2, &t), TT_OK);
    return t;
  }
  static std::vector<float> numbers(const tt_tensor* t) {
    const auto* data = static_cast<const float*>(tt_tensor_data(t));
    return std::vector<float>(data, data + tt_tensor_numel(t));
  }
  std::vector<float> normal(int64_t n) {
    std::normal_distribution<float> draw;
    std::vector<float> out(static_cast<size_t>(n));
    for (float& x : out) x = draw(rng);
    return out;
  }
  std::vector<float> product(const tt_tensor* x, const tt_tensor* w, const tt_tensor* bias,
                             int format, bool tiles) {
    assume_amx_products(tiles);
    tt_tensor* y = nullptr;
    EXPECT_EQ(tt_blockwise_linear(c, x, w, bias, format, &y), TT_OK);
    return y ? numbers(y) : std::vector<float>();
  }
  // A matrix of blocks of any bytes, but for scales, which are 2^-7 to 2^-3 in magnitude.
  tt_tensor* blocks(int64_t n, int64_t k, const Format& format) {
    const int64_t shape[2] = {n, k / format.items * format.bytes};
    std::vector<uint8_t> bytes(static_cast<size_t>(shape[0] * shape[1]));
    for (uint8_t& b : bytes) b = uint8_t(rng());
    for (size_t i = 0; i < bytes.size(); i += size_t(format.bytes)) {
      if (format.id == TT_BLOCKFORMAT_MXFP4) bytes[i] = uint8_t(120 + bytes[i] % 4);
      for (const int half : format.halves) {
        if (half < 0) continue;
        uint8_t& upper = bytes[i + size_t(half) + 1];  // sign and exponent of a float16
        upper = uint8_t(0x20 + (upper & 0x8f));
      }
    }
    tt_tensor* packed = nullptr;
    EXPECT_EQ(tt_tensor_from_data(c, bytes.data(), TT_U8, shape, 2, &packed), TT_OK);
    return packed;
  }
  // Each result is within 2^-20 of the sum of the magnitudes of its products.
  void check(int64_t m, int64_t n, int64_t k, const Format& format) {
    const tt_tensor* packed = blocks(n, k, format);
    tt_tensor* exact = nullptr;
    ASSERT_EQ(tt_dequantize_blockwise(c, packed, format.id, &exact), TT_OK);
    const std::vector<float> x = normal(m * k);
    const std::vector<float> w = numbers(exact);
    const std::vector<float> y = product(floats(x, m, k), packed, nullptr, format.id, usable);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        double size = 0;
        for (int64_t l = 0; l < k; l++) {
          const double term = double(x[size_t(i * k + l)]) * double(w[size_t(j * k + l)]);
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(y[size_t(i * n + j)], sum, size * 0x1p-20)
            << "format " << format.id << ", " << m << "x" << n << "x" << k << ": " << i << "," << j;
      }
  }

  std::mt19937 rng{7};
};

TEST_F(BlockTiles, EqualsSums) {
  for (const Format& format : kFormats) {
    const int64_t block = format.items;
    ASSERT_NO_FATAL_FAILURE(check(9, 16, block, format));
    ASSERT_NO_FATAL_FAILURE(check(16, 33, 256, format));
    ASSERT_NO_FATAL_FAILURE(check(47, 70, 256 + block, format));
  }
  ASSERT_NO_FATAL_FAILURE(check(270, 300, 64, kFormats[0]));
}

// Rows with numbers that three bf16 do not express, and columns whose scales are not finite, are
// those without tiles; their neighbours do not notice.
TEST_F(BlockTiles, OddNumbers) {
  constexpr int64_t kRows = 40;
  constexpr int64_t kColumns = 37;
  constexpr int64_t kTerms = 320;
  const float special[] = {INFINITY, -INFINITY, NAN, 3e38f, -1e31f, 1e-39f, 1e-33f};
  const std::vector<float> weight = normal(kColumns * kTerms);
  tt_tensor* packed = nullptr;
  ASSERT_EQ(
      tt_quantize_blockwise(c, floats(weight, kColumns, kTerms), TT_BLOCKFORMAT_Q8_0, &packed),
      TT_OK);
  for (const uint16_t scale : {uint16_t(0), uint16_t(0x7c00), uint16_t(0x7e00)}) {
    if (scale) memcpy(static_cast<char*>(tt_tensor_data(packed)) + 5 * kTerms / 32 * 34, &scale, 2);
    for (const float number : special) {
      std::vector<float> values = normal(kRows * kTerms);
      for (int64_t l = 0; std::fabs(number) < 1e-30f && l < kTerms; l++)
        values[size_t(20 * kTerms + l)] = number;  // a row of small numbers alone
      values[size_t(20 * kTerms + 7)] = number;
      const tt_tensor* x = floats(values, kRows, kTerms);
      const tt_tensor* bias = floats(normal(kColumns), 1, kColumns);
      const int64_t of_bias[1] = {kColumns};
      tt_tensor* shift = nullptr;
      ASSERT_EQ(tt_reshape(c, bias, of_bias, 1, &shift), TT_OK);
      const auto want = product(x, packed, shift, TT_BLOCKFORMAT_Q8_0, false);
      const auto got = product(x, packed, shift, TT_BLOCKFORMAT_Q8_0, usable);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); i++) {
        const bool of_small = std::fabs(number) < 1e-30f && i / kColumns == 20;
        const double bound = of_small ? std::fabs(number) * 0.05 : 1e-4;
        if (std::isnan(want[i])) ASSERT_TRUE(std::isnan(got[i])) << number << " " << i;
        else if (std::isinf(want[i])) ASSERT_EQ(got[i], want[i]) << number << " " << i;
        else ASSERT_NEAR(got[i], want[i], bound + std::fabs(want[i]) * 1e-4) << number << " " << i;
      }
    }
  }
}

// Products of pieces of both signs must not overflow to inf - inf.
TEST_F(BlockTiles, LargeScales) {
  constexpr int64_t kRows = 16;
  constexpr int64_t kTerms = 32;
  const int64_t shape[2] = {16, 17};
  std::vector<uint8_t> bytes(16 * 17, 0x22);  // numbers 1
  for (size_t i = 0; i < bytes.size(); i += 17) bytes[i] = 127 + 60;
  tt_tensor* packed = nullptr;
  ASSERT_EQ(tt_tensor_from_data(c, bytes.data(), TT_U8, shape, 2, &packed), TT_OK);
  for (const float number : {1.7e27f, -1.23e27f}) {
    std::vector<float> values(size_t(kRows * kTerms), number);
    const tt_tensor* x = floats(values, kRows, kTerms);
    const auto got = product(x, packed, nullptr, TT_BLOCKFORMAT_MXFP4, usable);
    for (const float y : got) ASSERT_EQ(y, number > 0 ? INFINITY : -INFINITY);
  }
}

}  // namespace
}  // namespace TT_NS
