// Products of bytes by what this processor has, or by emulated tiles of AMX, against sums of ints.
#include "amx_fixture.h"

#include <random>
#include <vector>

namespace TT_NS {
namespace {

class Int8Amx : public AmxTest {
 protected:
  tt_tensor* matrix(const std::vector<uint8_t>& bytes, tt_dtype dtype, int64_t rows, int64_t cols) {
    tt_tensor* t = nullptr;
    const int64_t shape[2] = {rows, cols};
    EXPECT_EQ(tt_tensor_from_data(c, bytes.data(), dtype, shape, 2, &t), TT_OK);
    return t;
  }
  // Columns of b are neighbours in memory if `transposed`.
  void check(int64_t m, int64_t n, int64_t k, tt_dtype of_a, tt_dtype of_b, bool transposed) {
    std::vector<uint8_t> a(size_t(m * k));
    std::vector<uint8_t> b(size_t(k * n));
    for (uint8_t& x : a) x = uint8_t(rng());
    for (uint8_t& x : b) x = uint8_t(rng());
    tt_tensor* x = matrix(a, of_a, m, k);
    tt_tensor* y = transposed ? matrix(b, of_b, n, k) : matrix(b, of_b, k, n);
    if (transposed) {
      tt_tensor* turned = nullptr;
      ASSERT_EQ(tt_transpose(c, y, 0, 1, &turned), TT_OK);
      y = turned;
    }
    tt_tensor* out = nullptr;
    assume_amx_products(usable);
    ASSERT_EQ(tt_int_mm(c, x, y, &out), TT_OK);
    const int32_t* got = static_cast<const int32_t*>(tt_tensor_data(out));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        uint32_t sum = 0;
        for (int64_t p = 0; p < k; p++) {
          const uint8_t u = a[size_t(i * k + p)];
          const uint8_t v = b[size_t(transposed ? j * k + p : p * n + j)];
          const int32_t left = of_a == TT_I8 ? int8_t(u) : u;
          const int32_t right = of_b == TT_I8 ? int8_t(v) : v;
          sum += uint32_t(left * right);
        }
        ASSERT_EQ(got[i * n + j], int32_t(sum))
            << m << "x" << n << "x" << k << " " << i << "," << j;
      }
  }

  std::mt19937 rng{5};
};

TEST_F(Int8Amx, EqualsSums) {
  for (tt_dtype of_a : {TT_I8, TT_U8})
    for (tt_dtype of_b : {TT_I8, TT_U8})
      for (bool transposed : {false, true})
        for (int64_t m : {1, 3, 16, 17, 32, 48, 79, 128, 129})
          for (int64_t k : {5, 8, 64, 65, 200})
            ASSERT_NO_FATAL_FAILURE(
                check(m, m == 48 ? 64 : 33 + m % 16, k, of_a, of_b, transposed));
  // Several units of several panels.
  ASSERT_NO_FATAL_FAILURE(check(300, 700, 130, TT_U8, TT_I8, false));
  ASSERT_NO_FATAL_FAILURE(check(33, 1100, 64, TT_U8, TT_I8, true));
}

// With scales of 1 the results are integers, which float32 holds.
TEST_F(Int8Amx, SubtractsZeroPoints) {
  constexpr int64_t kColumns = 70;
  constexpr int64_t kDepth = 100;
  const float one = 1;
  const int64_t single[1] = {1};
  tt_tensor* scale = nullptr;
  ASSERT_EQ(tt_tensor_from_data(c, &one, TT_F32, single, 1, &scale), TT_OK);
  for (int64_t m : {16, 31, 32, 33, 64, 127, 128}) {
    std::vector<uint8_t> a(size_t(m * kDepth));
    std::vector<uint8_t> b(size_t(kColumns * kDepth));
    std::vector<int32_t> zero;
    for (uint8_t& x : a) x = uint8_t(rng());
    for (uint8_t& x : b) x = uint8_t(rng());
    for (int64_t i = 0; i < m; i++) zero.push_back(int32_t(rng() % 256));
    tt_tensor* zeros = nullptr;
    tt_tensor* out = nullptr;
    ASSERT_EQ(tt_tensor_from_data(c, zero.data(), TT_I32, &m, 1, &zeros), TT_OK);
    assume_amx_products(usable);
    ASSERT_EQ(tt_quantized_linear(c, matrix(a, TT_U8, m, kDepth), scale, zeros,
                                  matrix(b, TT_I8, kColumns, kDepth), scale, nullptr, &out),
              TT_OK)
        << tt_ctx_error(c)->message;
    const float* got = static_cast<const float*>(tt_tensor_data(out));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < kColumns; j++) {
        int32_t sum = 0;
        for (int64_t k = 0; k < kDepth; k++)
          sum += (a[size_t(i * kDepth + k)] - zero[size_t(i)]) * int8_t(b[size_t(j * kDepth + k)]);
        ASSERT_EQ(got[i * kColumns + j], float(sum)) << m << ": " << i << "," << j;
      }
  }
}

// Kernels of all instruction sets read plans that say that there are tiles.
TEST_F(Int8Amx, EqualsSumsOfOtherKernels) {
  tt_ctx* const own = c;
  for (int32_t isa = 1; isa <= 3; isa++) {
    tt_runtime_opts opts = {};
    opts.struct_size = sizeof opts;
    opts.threads = 1;
    opts.isa = isa;
    tt_runtime* runtime = nullptr;
    if (tt_runtime_new(&opts, &runtime) != TT_OK) continue;  // the processor has no such kernels
    ASSERT_EQ(tt_ctx_new(runtime, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
    check(150, 70, 130, TT_I8, TT_U8, false);
    check(33, 40, 64, TT_U8, TT_I8, true);
    check(33, 1100, 64, TT_U8, TT_I8, true);  // units of several panels
    check(128, 2048, 100, TT_I8, TT_I8, true);
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
    tt_runtime_release(runtime);
  }
  c = own;
}

#if TT_AMX_EMULATOR
TEST_F(Int8Amx, UsesTiles) {
  if (!usable || of_processor) return;
  const int64_t before = amx_emulator::executed();
  ASSERT_NO_FATAL_FAILURE(check(15, 33, 100, TT_I8, TT_I8, false));
  ASSERT_EQ(amx_emulator::executed(), before);
  ASSERT_NO_FATAL_FAILURE(check(16, 32, 64, TT_I8, TT_I8, false));
  // configure, two zeros, three loads, two products, two stores, release
  ASSERT_EQ(amx_emulator::executed(), before + 11);
  ASSERT_NO_FATAL_FAILURE(check(16, 32, 64, TT_I8, TT_I8, true));
  ASSERT_EQ(amx_emulator::executed(), before + 22);
  ASSERT_FALSE(amx_emulator::state().configured);
}
#endif

}  // namespace
}  // namespace TT_NS
