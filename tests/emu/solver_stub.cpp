// A cuSOLVER, and the batched functions of a cuBLAS, that decompose matrices by columns, element by
// element, from what they are given: leading dimensions, sizes of the scratch memory and status
// numbers as in the manuals. They count the calls, and refuse less scratch memory than they asked
// for.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <complex>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int solver_stub_calls;
int solver_stub_calls;

namespace {

constexpr int kInvalid = 3;
constexpr int kScratch = 7;  // numbers; each is written
using Complex = std::complex<double>;
double conjugate(double x) { return x; }
Complex conjugate(Complex x) { return std::conj(x); }

void* g_stream;
int handle_of_all;
template <class T> bool begin(void* handle, T* work, int n) {
  solver_stub_calls++;
  if (handle != &handle_of_all || n != kScratch) return false;
  std::fill(work, work + n, T(NAN));
  return true;
}
template <class T> struct Columns {
  T* p;
  int ld;
  T& operator()(int i, int j) const { return p[int64_t(j) * ld + i]; }
};

template <class T>
int potrf(void* handle, int fill, int n, T* p, int ld, T* work, int size, int* info) {
  if (!begin(handle, work, size) || ld < n) return kInvalid;
  const Columns<T> a{p, ld};
  const auto at = [&](int i, int j) { return fill == 0 ? a(i, j) : conjugate(a(j, i)); };
  const auto set = [&](int i, int j, T x) {
    (fill == 0 ? a(i, j) : a(j, i)) = fill == 0 ? x : conjugate(x);
  };
  *info = 0;
  for (int j = 0; j < n; j++) {
    double d = std::real(at(j, j));
    for (int k = 0; k < j; k++) d -= std::norm(at(j, k));
    if (!(d > 0)) {
      *info = j + 1;
      return 0;
    }
    set(j, j, sqrt(d));
    for (int i = j + 1; i < n; i++) {
      T x = at(i, j);
      for (int k = 0; k < j; k++) x -= at(i, k) * conjugate(at(j, k));
      set(i, j, x / sqrt(d));
    }
  }
  return 0;
}

template <class T>
int potrf_batched(void* handle, int fill, int n, T** a, int ld, int* info, int batch) {
  for (int i = 0; i < batch; i++) {
    std::vector<T> unused(kScratch);
    const int status = potrf(handle, fill, n, a[i], ld, unused.data(), kScratch, info + i);
    if (status) return status;
  }
  solver_stub_calls -= batch - 1;
  return 0;
}

template <class T>
int getrf(void* handle, int m, int n, T* p, int ld, T* work, int* pivots, int* info) {
  if (!begin(handle, work, kScratch) || ld < m) return kInvalid;
  const Columns<T> a{p, ld};
  *info = 0;
  for (int k = 0; k < std::min(m, n); k++) {
    int best = k;
    for (int i = k; i < m; i++)
      if (abs(a(i, k)) > abs(a(best, k))) best = i;
    pivots[k] = best + 1;
    for (int j = 0; j < n && best != k; j++) std::swap(a(k, j), a(best, j));
    if (a(k, k) == T(0)) {
      if (!*info) *info = k + 1;
      continue;
    }
    for (int i = k + 1; i < m; i++) {
      a(i, k) /= a(k, k);
      for (int j = k + 1; j < n; j++) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return 0;
}
template <class T> int getrs(void* handle, int operation, int n, int k, const T* lu, int ld,
                             const int* pivots, T* p, int ldb, int* info) {
  std::vector<T> unused(kScratch);
  if (!begin(handle, unused.data(), kScratch) || ld < n || ldb < n) return kInvalid;
  *info = 0;
  const Columns<const T> a{lu, ld};
  const Columns<T> b{p, ldb};
  const auto exchange = [&](int i, int c) { std::swap(b(i, c), b(pivots[i] - 1, c)); };
  for (int c = 0; c < k; c++) {
    if (operation == 0) {
      for (int i = 0; i < n; i++) exchange(i, c);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) b(i, c) -= a(i, j) * b(j, c);
      for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) b(i, c) -= a(i, j) * b(j, c);
        b(i, c) /= a(i, i);
      }
    } else {
      for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) b(i, c) -= conjugate(a(j, i)) * b(j, c);
        b(i, c) /= conjugate(a(i, i));
      }
      for (int i = n - 1; i >= 0; i--)
        for (int j = i + 1; j < n; j++) b(i, c) -= conjugate(a(j, i)) * b(j, c);
      for (int i = n - 1; i >= 0; i--) exchange(i, c);
    }
  }
  return 0;
}

// The batched functions of cuBLAS; each counts as one call.
template <class T>
int getrf_batched(void* handle, int n, T* const* a, int ld, int* pivots, int* info, int batch) {
  for (int i = 0; i < batch; i++) {
    std::vector<T> unused(kScratch);
    const int status =
        getrf(handle, n, n, a[i], ld, unused.data(), pivots + int64_t(i) * n, info + i);
    if (status) return status;
  }
  solver_stub_calls -= batch - 1;
  return 0;
}
template <class T> int getrs_batched(void* handle, int operation, int n, int k, const T* const* lu,
                                     int ld, const int* pivots, T* const* b, int ldb,
                                     int* status_of_arguments, int batch) {
  for (int i = 0; i < batch; i++) {
    const int status = getrs(handle, operation, n, k, lu[i], ld, pivots + int64_t(i) * n, b[i], ldb,
                             status_of_arguments);
    if (status) return status;
  }
  solver_stub_calls -= batch - 1;
  return 0;
}

// x -= tau v (v^H x) for a column x; v is below the diagonal of column k, with 1 on it.
template <class T>
void reflect(const Columns<T>& a, int k, int m, T tau, const Columns<T>& to, int j) {
  T sum = to(k, j);
  for (int i = k + 1; i < m; i++) sum += conjugate(a(i, k)) * to(i, j);
  to(k, j) -= tau * sum;
  for (int i = k + 1; i < m; i++) to(i, j) -= tau * a(i, k) * sum;
}
template <class T>
int geqrf(void* handle, int m, int n, T* p, int ld, T* tau, T* work, int size, int* info) {
  if (!begin(handle, work, size) || ld < m) return kInvalid;
  *info = 0;
  const Columns<T> a{p, ld};
  for (int k = 0; k < std::min(m, n); k++) {
    double sum = 0;
    for (int i = k; i < m; i++) sum += std::norm(a(i, k));
    const T alpha = a(k, k);
    const double beta = std::real(alpha) < 0 ? sqrt(sum) : -sqrt(sum);
    tau[k] = (T(beta) - alpha) / beta;
    for (int i = k + 1; i < m; i++) a(i, k) /= alpha - T(beta);
    a(k, k) = beta;
    for (int j = k + 1; j < n; j++) reflect(a, k, m, conjugate(tau[k]), a, j);
  }
  return 0;
}
template <class T> int gqr(void* handle, int m, int n, int k, T* p, int ld, const T* tau, T* work,
                           int size, int* info) {
  if (!begin(handle, work, size) || ld < m) return kInvalid;
  *info = 0;
  std::vector<T> all(size_t(m) * size_t(n));
  const Columns<T> q{all.data(), m};
  const Columns<T> a{p, ld};
  for (int j = 0; j < n; j++) q(j, j) = 1;
  for (int r = k - 1; r >= 0; r--)
    for (int j = 0; j < n; j++) reflect(a, r, m, tau[r], q, j);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) a(i, j) = q(i, j);
  return 0;
}

// Jacobi's rotations.
template <class T> int evd(void* handle, int vectors, int fill, int n, T* p, int ld, double* w,
                           T* work, int size, int* info) {
  if (!begin(handle, work, size) || ld < n) return kInvalid;
  std::vector<T> h(size_t(n) * size_t(n)), v(h.size());
  const Columns<T> from{p, ld}, a{h.data(), n}, z{v.data(), n};
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      a(i, j) = fill == 0 ? from(i, j) : conjugate(from(j, i));
      a(j, i) = conjugate(a(i, j));
    }
  for (int i = 0; i < n; i++) z(i, i) = 1;
  for (int sweep = 0; sweep < 12; sweep++)
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++) {
        const double size_of = abs(a(i, j));
        if (size_of < 1e-300) continue;
        const T phase = a(i, j) / size_of;
        const double theta = 0.5 * atan2(2 * size_of, std::real(a(j, j)) - std::real(a(i, i)));
        const double c = cos(theta);
        const T s = sin(theta) * phase;
        for (int r = 0; r < n; r++)
          for (const Columns<T>& m : {a, z}) {
            const T x = m(r, i), y = m(r, j);
            m(r, i) = c * x - conjugate(s) * y;
            m(r, j) = s * x + c * y;
          }
        for (int r = 0; r < n; r++) {
          const T x = a(i, r), y = a(j, r);
          a(i, r) = c * x - s * y;
          a(j, r) = conjugate(s) * x + c * y;
        }
      }
  std::vector<int> order;
  for (int i = 0; i < n; i++) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](int i, int j) { return std::real(a(i, i)) < std::real(a(j, j)); });
  for (int j = 0; j < n; j++) {
    const int k = order[size_t(j)];
    w[j] = std::real(a(k, k));
    for (int i = 0; i < n; i++) from(i, j) = vectors ? z(i, k) : T(NAN);
  }
  *info = 0;
  return 0;
}

int ask(int* numbers) {
  *numbers = kScratch;
  return 0;
}

}  // namespace

EXPORT int cusolverDnCreate(void** handle) {
  *handle = &handle_of_all;
  return 0;
}
EXPORT int cusolverDnSetStream(void*, void* stream) {
  g_stream = stream;
  return 0;
}
EXPORT int cublasCreate_v2(void** handle) { return cusolverDnCreate(handle); }
EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  return cusolverDnSetStream(handle, stream);
}
#define BATCHED_FUNCTIONS(letter, T)                                                               \
  EXPORT int cublas##letter##getrfBatched(void* h, int n, T* const* a, int ld, int* pivots,        \
                                          int* info, int batch) {                                  \
    return getrf_batched(h, n, a, ld, pivots, info, batch);                                        \
  }                                                                                                \
  EXPORT int cublas##letter##getrsBatched(void* h, int operation, int n, int k, const T* const* a, \
                                          int ld, const int* pivots, T* const* b, int ldb,         \
                                          int* status, int batch) {                                \
    return getrs_batched(h, operation, n, k, a, ld, pivots, b, ldb, status, batch);                \
  }
BATCHED_FUNCTIONS(D, double)
BATCHED_FUNCTIONS(Z, Complex)
#define FUNCTIONS(letter, T, gqr_name, evd_name)                                                  \
  EXPORT int cusolverDn##letter##potrf_bufferSize(void*, int, int, T*, int, int* n) {             \
    return ask(n);                                                                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##potrf(void* h, int fill, int n, T* a, int ld, T* work, int size, \
                                       int* info) {                                               \
    return potrf(h, fill, n, a, ld, work, size, info);                                            \
  }                                                                                               \
  EXPORT int cusolverDn##letter##potrfBatched(void* h, int fill, int n, T** a, int ld, int* info, \
                                              int batch) {                                        \
    return potrf_batched(h, fill, n, a, ld, info, batch);                                         \
  }                                                                                               \
  EXPORT int cusolverDn##letter##getrf_bufferSize(void*, int, int, T*, int, int* n) {             \
    return ask(n);                                                                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##getrf(void* h, int m, int n, T* a, int ld, T* work, int* pivots, \
                                       int* info) {                                               \
    return getrf(h, m, n, a, ld, work, pivots, info);                                             \
  }                                                                                               \
  EXPORT int cusolverDn##letter##getrs(void* h, int operation, int n, int k, const T* a, int ld,  \
                                       const int* pivots, T* b, int ldb, int* info) {             \
    return getrs(h, operation, n, k, a, ld, pivots, b, ldb, info);                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##geqrf_bufferSize(void*, int, int, T*, int, int* n) {             \
    return ask(n);                                                                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##geqrf(void* h, int m, int n, T* a, int ld, T* tau, T* work,      \
                                       int size, int* info) {                                     \
    return geqrf(h, m, n, a, ld, tau, work, size, info);                                          \
  }                                                                                               \
  EXPORT int cusolverDn##letter##gqr_name##_bufferSize(void*, int, int, int, const T*, int,       \
                                                       const T*, int* n) {                        \
    return ask(n);                                                                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##gqr_name(void* h, int m, int n, int k, T* a, int ld,             \
                                          const T* tau, T* work, int size, int* info) {           \
    return gqr(h, m, n, k, a, ld, tau, work, size, info);                                         \
  }                                                                                               \
  EXPORT int cusolverDn##letter##evd_name##_bufferSize(void*, int, int, int, const T*, int,       \
                                                       const double*, int* n) {                   \
    return ask(n);                                                                                \
  }                                                                                               \
  EXPORT int cusolverDn##letter##evd_name(void* h, int vectors, int fill, int n, T* a, int ld,    \
                                          double* w, T* work, int size, int* info) {              \
    return evd(h, vectors, fill, n, a, ld, w, work, size, info);                                  \
  }
FUNCTIONS(D, double, orgqr, syevd)
FUNCTIONS(Z, Complex, ungqr, heevd)
