// householder_qr and householder_product, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/qr.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
// Finds the reflections of L columns, as reflect() does for one. Returns tau.
static F reflect_group(F* x, int64_t n, int64_t stride) {
  F rest = {};
  for (int64_t i = 1; i < n; i++) rest = larger_or_nan(rest, size_of(x[i * stride]));
  const F alpha = x[0];
  const Mask none = (rest == 0) & (alpha - alpha == 0);
  const F one = splat(1.0);
  const F top = larger_or_nan(rest, size_of(alpha));
  const F by = one / top;
  F sum = {};
  for (int64_t i = 0; i < n; i++) {
    const F scaled = x[i * stride] * by;
    sum += scaled * scaled;
  }
  const F norm = top * vsqrt(sum);
  const F beta = chosen(alpha < 0, norm, F(-norm));
  const F factor = one / (alpha - beta);
  for (int64_t i = 1; i < n; i++)
    x[i * stride] = chosen(none, x[i * stride], F(x[i * stride] * factor));
  x[0] = chosen(none, alpha, beta);
  return chosen(none, F{}, F((beta - alpha) * (one / beta)));
}

// apply_left() for the columns of L matrices.
static void apply_left_group(F* a, int64_t m, int64_t width, int64_t stride, const F* v,
                             int64_t step, F tau) {
  each_columns(width, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
    F w[kWidth];
    for (int c = 0; c < kWidth; c++) w[c] = a[at + c];
    for (int64_t i = 1; i < m; i++)
      for (int c = 0; c < kWidth; c++) w[c] = w[c] + v[i * step] * a[i * stride + at + c];
    for (int c = 0; c < kWidth; c++) a[at + c] = a[at + c] - tau * w[c];
    for (int64_t i = 1; i < m; i++) {
      const F factor = tau * v[i * step];
      for (int c = 0; c < kWidth; c++)
        a[i * stride + at + c] = a[i * stride + at + c] - factor * w[c];
    }
  });
}
#endif

struct QrGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  static constexpr bool kComplex = false;
  // room: (m, n), and tau
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = m < n ? m : n;
    F* tau = a + m * n;
    double* matrices = matrix_of<double>(p.a, first, m * n);
    read_group(a, matrices, m * n);
    for (int64_t k = 0; k < steps; k++) {
      F* corner = a + k * n + k;
      tau[k] = reflect_group(corner, m - k, n);
      apply_left_group(corner + 1, m - k, n - k - 1, n, corner, n, tau[k]);
    }
    write_group(matrices, a, m * n);
    write_group(matrix_of<double>(p.b, first, steps), tau, steps);
    return true;
  }
#endif
};

struct ProductGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  static constexpr bool kComplex = false;
  // room: (m, n), the reflectors, (m, n), the product, and tau
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    F* q = a + m * n;
    F* tau = q + m * n;
    read_group(a, matrix_of<double>(p.a, first, m * n), m * n);
    read_group(tau, matrix_of<double>(p.w, first, p.k), p.k);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) q[i * n + j] = splat(i == j ? 1.0 : 0.0);
    for (int64_t k = p.k - 1; k >= 0; k--)
      apply_left_group(q + k * n + k, m - k, n - k, n, a + k * n + k, n, tau[k]);
    write_group(matrix_of<double>(p.b, first, m * n), q, m * n);
    return true;
  }
#endif
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(householder_qr)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<QrGroup, HouseholderQr>(plan, begin, end);
}
TT_KERNEL(householder_product)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<ProductGroup, HouseholderProduct>(plan, begin, end);
}

TT_ENTRY_END
