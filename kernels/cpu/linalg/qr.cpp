// householder_qr and householder_product, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/qr.h"

#include <string.h>

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

// HouseholderQr of L matrices.
template <class N> static void reflect_columns(N* a, N* tau, int64_t m, int64_t n) {
  for (int64_t k = 0; k < min(m, n); k++) {
    N* corner = a + k * n + k;
    tau[k] = reflect_group(corner, m - k, n);
    apply_left_group(corner + 1, m - k, n - k - 1, n, corner, n, conj_of(tau[k]));
  }
}
// HouseholderProduct of L matrices: q, (m, n), becomes the first n columns of the product of k
// reflections, which are in columns of rows `stride` apart.
template <class N> static void multiply_reflections(N* q, const N* a, const N* tau, int64_t m,
                                                    int64_t n, int64_t k, int64_t stride) {
  set_identities(q, m, n);
  for (int64_t i = k - 1; i >= 0; i--)
    apply_left_group(q + i * n + i, m - i, n - i, n, a + i * stride + i, stride, tau[i]);
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
    reflect_columns(a, tau, m, n);
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
    multiply_reflections(q, a, tau, m, n, p.k, n);
    write_numbers(p.b, first, q, m * n);
    return true;
  }
#endif
};

// householder_qr with vectors: see MatrixPlan.
struct ReducedQr {
#if TT_VEC_BYTES > 16
  // room: (m, n), R and the reflectors, (m, k), Q, and tau, where k is the smaller of m and n
  template <class N> static void run_group(const MatrixPlan& p, int64_t first, N* a) {
    const int64_t k = min(p.m, p.n);
    N* q = a + p.m * p.n;
    N* tau = q + p.m * k;
    read_matrices(a, p, first);
    reflect_columns(a, tau, p.m, p.n);
    multiply_reflections(q, a, tau, p.m, k, k, p.n);
    for (int64_t i = 1; i < k; i++)
      for (int64_t j = 0; j < i; j++) a[i * p.n + j] = N{};
    write_results(p, p.w, first, a, k * p.n);
    write_results(p, p.b, first, q, p.m * k);
  }
#endif
  // room: (m, n), R and the reflectors, (m, k), the reflectors, (m, k), Q, tau, and (n), work
  static TT_NOINLINE void run_one(const MatrixPlan& p, int64_t at, double* room) {
    const int64_t k = min(p.m, p.n);
    const int64_t parts = p.complex ? 2 : 1;
    const int64_t row = p.n * parts;
    const int64_t count_r = k * row;
    const int64_t count_q = p.m * k * parts;
    MatrixPlan one = {};
    one.complex = p.complex;
    one.m = p.m;
    one.n = p.n;
    one.k = k;
    one.a = room;
    double* const reflectors = room + p.m * row;
    double* const q = reflectors + count_q;
    double* const tau = q + count_q;
    one.b = tau;
    one.work = tau + k * parts;
    if (p.floats) convert_floats(room, p.floats + at * p.m * row, p.m * row);
    else copy_doubles(room, p.a + at * p.m * row, p.m * row);
    run_singly<QrGroup, HouseholderQr>(one, 0, 1, nullptr);
    for (int64_t i = 0; i < p.m; i++)
      copy_doubles(reflectors + i * k * parts, room + i * row, k * parts);
    for (int64_t i = 1; i < k; i++) fill_row(room + i * row, i * parts, 0.0, Along());
    write_one(p, p.w, at, room, count_r);
    one.n = k;
    one.a = reflectors;
    one.b = q;
    one.w = tau;
    run_singly<ProductGroup, HouseholderProduct>(one, 0, 1, nullptr);
    write_one(p, p.b, at, q, count_q);
  }
  static void write_one(const MatrixPlan& p, double* of, int64_t at, const double* from,
                        int64_t count) {
    if (p.floats) convert_doubles(reinterpret_cast<float*>(of) + at * count, from, count);
    else copy_doubles(of + at * count, from, count);
  }
  static void copy_doubles(double* to, const double* from, int64_t n) {
    memcpy(to, from, size_t(n) * sizeof(double));
  }

  static int32_t run(const MatrixPlan& p, int64_t begin, int64_t end) {
    const Room room(p.rooms);
    int64_t i = begin;
#if TT_VEC_BYTES > 16
    for (; i + L <= end; i += L) {
      if (p.complex) run_group(p, i, room.as<C>());
      else run_group(p, i, room.as<F>());
    }
#endif
    for (; i < end; i++) run_one(p, i, room.as<double>());
    return TT_OK;
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(householder_qr)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (p.vectors) return ReducedQr::run(p, begin, end);
  return in_groups<QrGroup, HouseholderQr>(plan, begin, end);
}
TT_KERNEL(householder_product)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<ProductGroup, HouseholderProduct>(plan, begin, end);
}

TT_ENTRY_END
