// householder_qr and householder_product, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/qr.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
static TT_INLINE F squared_modulus(F x) { return x * x; }
static TT_INLINE F squared_modulus(C x) { return x.re * x.re + x.im * x.im; }

// Finds the reflections of L columns, as reflect() does for one. Returns tau.
template <class N> static N reflect_group(N* x, int64_t n, int64_t stride) {
  F rest = {};
  for (int64_t i = 1; i < n; i++) rest = larger_or_nan(rest, size_of(x[i * stride]));
  const N alpha = x[0];
  const F real = real_part(alpha);
  const Mask none = (rest == 0) & (size_of(alpha - from_real_lanes<N>(real)) == 0);
  const F one = splat(1.0);
  const F top = larger_or_nan(rest, size_of(alpha));
  const F by = one / top;
  F sum = {};
  for (int64_t i = 0; i < n; i++) sum += squared_modulus(x[i * stride] * by);
  const F norm = top * vsqrt(sum);
  const F beta = chosen(real < 0, norm, F(-norm));
  const N from_beta = from_real_lanes<N>(beta);
  const N factor = inverse_of(alpha - from_beta);
  for (int64_t i = 1; i < n; i++)
    x[i * stride] = chosen(none, x[i * stride], N(x[i * stride] * factor));
  x[0] = chosen(none, alpha, from_beta);
  return chosen(none, N{}, N((from_beta - alpha) * (one / beta)));
}

// apply_left() for the columns of L matrices.
template <class N> static TT_ONE_BODY void apply_left_group(N* a, int64_t m, int64_t width,
                                                            int64_t stride, const N* v,
                                                            int64_t step, N tau) {
  each_columns<kColumns<N>, kShrink<N>>(width, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
    N w[kWidth];
    for (int c = 0; c < kWidth; c++) w[c] = a[at + c];
    for (int64_t i = 1; i < m; i++) {
      const N factor = N{} - conj_of(v[i * step]);
      for (int c = 0; c < kWidth; c++) w[c] = take_product(factor, a[i * stride + at + c], w[c]);
    }
    for (int c = 0; c < kWidth; c++) a[at + c] = take_product(tau, w[c], a[at + c]);
    for (int64_t i = 1; i < m; i++) {
      const N factor = tau * v[i * step];
      for (int c = 0; c < kWidth; c++)
        a[i * stride + at + c] = take_product(factor, w[c], a[i * stride + at + c]);
    }
  });
}
#endif

struct QrGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  // room: (m, n), and tau
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = min(m, n);
    N* tau = a + m * n;
    read_numbers(a, p.a, first, m * n);
    for (int64_t k = 0; k < steps; k++) {
      N* corner = a + k * n + k;
      tau[k] = reflect_group(corner, m - k, n);
      apply_left_group(corner + 1, m - k, n - k - 1, n, corner, n, conj_of(tau[k]));
    }
    write_numbers(p.a, first, a, m * n);
    write_numbers(p.b, first, tau, steps);
    return true;
  }
#endif
};

struct ProductGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  // room: (m, n), the reflectors, (m, n), the product, and tau
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    N* q = a + m * n;
    N* tau = q + m * n;
    read_numbers(a, p.a, first, m * n);
    read_numbers(tau, p.w, first, p.k);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) q[i * n + j] = from_real_lanes<N>(splat(i == j ? 1.0 : 0.0));
    for (int64_t k = p.k - 1; k >= 0; k--)
      apply_left_group(q + k * n + k, m - k, n - k, n, a + k * n + k, n, tau[k]);
    write_numbers(p.b, first, q, m * n);
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
