#include "cpu/blas.h"

#include "base/os.h"

namespace TT_NS {

namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
constexpr int64_t kTileRows = 512;
// for smaller matrices tt's own kernels start faster on every instruction set
constexpr int64_t kMinWork = int64_t(96) * 96 * 96;

using GemmReal32 = void (*)(int, int, int, int, int, int, float, const void*, int, const void*, int,
                            float, void*, int);
using GemmReal64 = void (*)(int, int, int, int, int, int, double, const void*, int, const void*,
                            int, double, void*, int);
using GemmComplex = void (*)(int, int, int, int, int, int, const void*, const void*, int,
                             const void*, int, const void*, void*, int);

struct Blas {
  GemmReal32 sgemm;
  GemmReal64 dgemm;
  GemmComplex cgemm, zgemm;
  const char* (*core)();
};
constinit Blas g_blas = {};
constinit void* g_library = nullptr;
constinit int32_t g_state = 0;  // 0 not tried, 1 open, 2 absent
constinit Mutex g_mutex;
constinit Mutex g_calls;  // the serial build shares one buffer between concurrent calls

// Tries the serial build first: it starts no threads.
int32_t open_blas() noexcept {
  constexpr const char* kNames[] = {"/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
                                    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
                                    "libopenblas.so.0", nullptr};
  void* lib = TT_BLAS ? os_dlopen(kNames) : nullptr;
  if (!lib) return 2;
  g_library = lib;
  g_blas.sgemm = reinterpret_cast<GemmReal32>(os_dlsym(lib, "cblas_sgemm"));
  g_blas.dgemm = reinterpret_cast<GemmReal64>(os_dlsym(lib, "cblas_dgemm"));
  g_blas.cgemm = reinterpret_cast<GemmComplex>(os_dlsym(lib, "cblas_cgemm"));
  g_blas.zgemm = reinterpret_cast<GemmComplex>(os_dlsym(lib, "cblas_zgemm"));
  g_blas.core = reinterpret_cast<const char* (*)()>(os_dlsym(lib, "openblas_get_corename"));
  return g_blas.sgemm && g_blas.dgemm && g_blas.cgemm && g_blas.zgemm ? 1 : 2;
}

bool is_open() noexcept {
  int32_t state = atomic_load(&g_state, kAcquire);
  if (state) return state == 1;
  Lock lock(g_mutex);
  if (!g_state) atomic_store(&g_state, open_blas(), kRelease);
  return g_state == 1;
}

// Returns the leading dimension of a factor stored by rows (or by columns: transposed); 0 if it is
// neither.
int64_t leading(int64_t row, int64_t col, int64_t rows, int64_t cols) noexcept {
  if (row != 1 && col != 1) return 0;
  int64_t ld = col == 1 ? row : col;
  const int64_t min_ld = col == 1 ? cols : rows;
  if (col == 1 && rows == 1) ld = cols;
  return ld >= min_ld && ld <= INT32_MAX && ld > 0 ? ld : 0;
}

}  // namespace

// Measured (docs/benchmarks/zen5-products.md): with AVX2 and AVX-512 tt's kernels are on par with
// OpenBLAS 0.3.21 and use all threads. The baseline's take three times as long, since OpenBLAS
// picks its kernels by the processor.
bool blas_serves(const MatmulPlan& p, Isa isa) noexcept {
  if (!TT_BLAS || isa != kIsaBaseline || p.path != kMatmulPacked) return false;
  if (p.dtype != TT_F32 && p.dtype != TT_F64 && !matmul_is_complex(p.dtype)) return false;
  if (p.batch != 1 || p.d || p.k == 0 || p.c_col != 1) return false;
  if (p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX || p.m * p.n < kMinWork / p.k)
    return false;
  if (!leading(p.a_row, p.a_col, p.m, p.k) || !leading(p.b_row, p.b_col, p.k, p.n) ||
      !leading(p.c_row, 1, p.m, p.n))
    return false;
  return is_open();
}

int64_t blas_units(const MatmulPlan& p) noexcept { return matmul_ceil(p.m, kTileRows); }

int32_t blas_tiles(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  const int ta = p.a_col == 1 ? kNoTrans : kTrans;
  const int tb = p.b_col == 1 ? kNoTrans : kTrans;
  const int lda = int(leading(p.a_row, p.a_col, p.m, p.k));
  const int ldb = int(leading(p.b_row, p.b_col, p.k, p.n));
  const int ldc = int(leading(p.c_row, 1, p.m, p.n));
  const int64_t size = kItemSize[p.dtype];
  for (int64_t u = begin; u < end; u++) {
    const int64_t from = u * kTileRows;
    const int64_t rows = matmul_min(kTileRows, p.m - from);
    const char* a = p.a + from * p.a_row * size;
    char* c = p.c + from * p.c_row * size;
    const float alpha_c[2] = {float(p.alpha.re), float(p.alpha.im)};
    const float zero_c[2] = {0, 0};
    const double alpha_z[2] = {p.alpha.re, p.alpha.im};
    const double zero_z[2] = {0, 0};
    const int m = int(rows);
    const int n = int(p.n);
    const int k = int(p.k);
    Lock lock(g_calls);
    switch (p.dtype) {
      case TT_F32:
        g_blas.sgemm(kRowMajor, ta, tb, m, n, k, float(p.alpha.re), a, lda, p.b, ldb, 0, c, ldc);
        break;
      case TT_F64:
        g_blas.dgemm(kRowMajor, ta, tb, m, n, k, p.alpha.re, a, lda, p.b, ldb, 0, c, ldc);
        break;
      case TT_C64:
        g_blas.cgemm(kRowMajor, ta, tb, m, n, k, alpha_c, a, lda, p.b, ldb, zero_c, c, ldc);
        break;
      case TT_C128:
        g_blas.zgemm(kRowMajor, ta, tb, m, n, k, alpha_z, a, lda, p.b, ldb, zero_z, c, ldc);
        break;
      default: return TT_INTERNAL;
    }
  }
  return TT_OK;
}

void* blas_symbol(const char* name) noexcept {
  return is_open() ? os_dlsym(g_library, name) : nullptr;
}
Mutex& blas_calls() noexcept { return g_calls; }

const char* blas_core() noexcept {
  if (atomic_load(&g_state, kAcquire) != 1) return nullptr;
  return g_blas.core ? g_blas.core() : "unknown";
}

}  // namespace TT_NS
