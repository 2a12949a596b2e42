// Complex decompositions in memory that ends where nothing may be read: OpenBLAS reads behind its
// matrices, so that tt must give it copies with room.
#include "tt.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <sys/mman.h>

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFence = size_t(1) << 20;  // longer than a column, so that no read leaps it

size_t pages_of(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Blocks end at a fence, as far as their alignment allows; slabs of small ones, which ask for more
// than a page's, are in the C allocator's memory.
void* fenced_alloc(void*, size_t size, size_t align) {
  if (align > kPage) return aligned_alloc(align, size);
  const size_t pages = pages_of(size);
  void* const p = mmap(nullptr, pages + kFence, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (mprotect(p, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  return static_cast<char*>(p) + (pages - size) / align * align;
}
void fenced_free(void*, void* p, size_t size, size_t align) {
  if (align > kPage) return free(p);
  const uintptr_t begin = uintptr_t(p) / kPage * kPage;
  munmap(reinterpret_cast<void*>(begin), pages_of(size) + kFence);
}

class FencedMatrices : public testing::TestWithParam<tt_dtype> {
 protected:
  void SetUp() override {
    const tt_allocator allocator = {sizeof allocator, nullptr, fenced_alloc, fenced_free};
    tt_runtime_opts opts = {};
    opts.struct_size = sizeof opts;
    opts.allocator = &allocator;
    tt_runtime* runtime = nullptr;
    ASSERT_EQ(tt_runtime_new(&opts, &runtime), TT_OK);
    ASSERT_EQ(tt_ctx_new(runtime, &c), TT_OK);
    tt_runtime_release(runtime);
  }
  void TearDown() override { tt_ctx_release(c); }
  void check(tt_status s) { ASSERT_EQ(s, TT_OK) << tt_ctx_error(c)->message; }

  tt_tensor* random_matrix(int64_t m, int64_t n) {
    const int64_t sizes[2] = {m, n};
    tt_randn_opts opts = {};
    opts.set = TT_RANDN_DTYPE;
    opts.dtype = GetParam();
    tt_tensor* t = nullptr;
    check(tt_randn(c, sizes, 2, &opts, &t));
    return t;
  }
  tt_ctx* c = nullptr;
};

// Sizes are such that tt's heap hardly rounds up: without the room, 160 and 300 end the program.
TEST_P(FencedMatrices, Eigh) {
  for (const int32_t triangle : {TT_TRIANGLE_L, TT_TRIANGLE_U}) {
    tt_tensor* const a = random_matrix(300, 300);
    const tt_linalg_eigh_opts opts = {TT_LINALG_EIGH_UPLO, triangle};
    tt_tensor *values = nullptr, *vectors = nullptr;
    check(tt_linalg_eigh(c, a, &opts, &values, &vectors));
    for (tt_tensor* t : {a, values, vectors}) tt_tensor_release(t);
  }
}
TEST_P(FencedMatrices, Svd) {
  for (const int64_t n : {61, 160, 230}) {
    tt_tensor* const a = random_matrix(160, n);
    tt_tensor *u = nullptr, *s = nullptr, *vh = nullptr;
    check(tt_linalg_svd(c, a, nullptr, &u, &s, &vh));
    for (tt_tensor* t : {a, u, s, vh}) tt_tensor_release(t);
  }
}
TEST_P(FencedMatrices, Eig) {
  tt_tensor* const a = random_matrix(131, 131);
  tt_tensor *values = nullptr, *vectors = nullptr;
  check(tt_linalg_eig(c, a, &values, &vectors));
  for (tt_tensor* t : {a, values, vectors}) tt_tensor_release(t);
}
INSTANTIATE_TEST_SUITE_P(Dtypes, FencedMatrices, testing::Values(TT_F32, TT_F64, TT_C64, TT_C128));

// What is left of dependent columns shrinks with each reflection, until its reciprocal overflows.
TEST(DependentColumns, HaveFactors) {
  constexpr int64_t kRows = 48;
  for (int32_t isa = 1; isa <= 3; isa++) {
    tt_runtime_opts opts = {};
    opts.struct_size = sizeof opts;
    opts.threads = 1;
    opts.isa = isa;
    tt_runtime* runtime = nullptr;
    if (tt_runtime_new(&opts, &runtime) != TT_OK) continue;  // the processor has no such kernels
    tt_ctx* c = nullptr;
    ASSERT_EQ(tt_ctx_new(runtime, &c), TT_OK);
    tt_runtime_release(runtime);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
    const int64_t sizes[2] = {kRows, kRows};
    tt_ones_opts of_ones = {};
    of_ones.set = TT_ONES_DTYPE;
    of_ones.dtype = TT_F64;
    tt_tensor *ones, *values, *vectors, *q, *r;
    ASSERT_EQ(tt_ones(c, sizes, 2, &of_ones, &ones), TT_OK);
    ASSERT_EQ(tt_linalg_eigh(c, ones, nullptr, &values, &vectors), TT_OK)
        << isa << ": " << tt_ctx_error(c)->message;
    const auto* w = static_cast<const double*>(tt_tensor_data(values));
    EXPECT_NEAR(w[kRows - 1], kRows, 1e-12) << isa;
    EXPECT_NEAR(w[0], 0, 1e-12) << isa;
    ASSERT_EQ(tt_linalg_qr(c, ones, nullptr, &q, &r), TT_OK) << isa;
    const auto* first = static_cast<const double*>(tt_tensor_data(q));
    for (int64_t j = 0; j < kRows; j++)
      for (int64_t k = j; k < kRows; k++) {
        double product = 0;
        for (int64_t i = 0; i < kRows; i++) product += first[i * kRows + j] * first[i * kRows + k];
        EXPECT_NEAR(product, j == k ? 1 : 0, 1e-13) << isa << ": columns " << j << ", " << k;
      }
    tt_tensor* product = nullptr;
    ASSERT_EQ(tt_matmul(c, q, r, &product), TT_OK);
    const auto* again = static_cast<const double*>(tt_tensor_data(product));
    for (int64_t i = 0; i < kRows * kRows; i++) EXPECT_NEAR(again[i], 1, 1e-12) << isa;
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }
}

}  // namespace
