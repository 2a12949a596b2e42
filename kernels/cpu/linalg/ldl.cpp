// ldl_factor: A = L D L^T, or L D L^H if `adjoint`, with the pivoting of Bunch & Kaufman, Math.
// Comp. 31 (1977), in the form of LAPACK's sytf2 and hetf2. A block of D has size 1 or 2.
//
//   a: (n, n), whose lower triangle is read and replaced by D and, below its blocks, L
//   pivots: (n), from 1; a block of size 2 has the negative pivot twice    info: (1)
//
// ldl_solve: A X = B.
//
//   a, pivots: as above    b: (n, k), B, replaced by X
#include "kernels/cpu/linalg/dense.h"

TT_ISA_BEGIN

template <class T> TT_INLINE T conj_if(T x, bool yes) { return yes ? conj_of(x) : x; }

template <class T> struct BunchKaufman {
  static constexpr double kAlpha = 0.6403882032022076;  // (1 + sqrt(17)) / 8
  T* a;
  int64_t n;
  bool adjoint;

  T& at(int64_t i, int64_t j) { return a[i * n + j]; }
  double diagonal_size(int64_t i) {
    return adjoint ? __builtin_fabs(real_part(at(i, i))) : size_of(at(i, i));
  }
  int64_t largest_below(int64_t k) {
    int64_t best = k + 1;
    for (int64_t i = k + 2; i < n; i++)
      if (size_of(at(i, k)) > size_of(at(best, k))) best = i;
    return best;
  }
  // The largest element beside the diagonal in row r of the matrix that remains from k on.
  double row_top(int64_t r, int64_t k) {
    double top = 0;
    for (int64_t j = k; j < r; j++) top = max(top, size_of(at(r, j)));
    for (int64_t i = r + 1; i < n; i++) top = max(top, size_of(at(i, r)));
    return top;
  }
  // Exchanges rows and columns i < j of the matrix that remains.
  void exchange(int64_t i, int64_t j) {
    for (int64_t r = j + 1; r < n; r++) swap_rows(&at(r, i), &at(r, j), 1);
    for (int64_t r = i + 1; r < j; r++) {
      const T t = conj_if(at(r, i), adjoint);
      at(r, i) = conj_if(at(j, r), adjoint);
      at(j, r) = t;
    }
    at(j, i) = conj_if(at(j, i), adjoint);
    swap_rows(&at(i, i), &at(j, j), 1);
  }
  void make_real(int64_t i) {
    if (adjoint) at(i, i) = from_real<T>(real_part(at(i, i)));
  }
  void eliminate_one(int64_t k) {
    make_real(k);
    const T inverse = from_real<T>(1) / at(k, k);
    for (int64_t j = k + 1; j < n; j++) {
      const T factor = conj_if(at(j, k), adjoint) * inverse;
      for (int64_t i = j; i < n; i++) at(i, j) = at(i, j) - at(i, k) * factor;
      make_real(j);
    }
    for (int64_t i = k + 1; i < n; i++) at(i, k) = at(i, k) * inverse;
  }
  void eliminate_two(int64_t k) {
    make_real(k);
    make_real(k + 1);
    const T p = at(k, k);
    const T q = at(k + 1, k + 1);
    const T b = at(k + 1, k);
    const T c = conj_if(b, adjoint);
    const T det = p * q - b * c;
    for (int64_t j = k + 2; j < n; j++) {
      const T x = at(j, k);
      const T y = at(j, k + 1);
      const T left = (x * q - y * b) / det;
      const T right = (y * p - x * c) / det;
      for (int64_t i = j; i < n; i++)
        at(i, j) =
            at(i, j) - (at(i, k) * conj_if(left, adjoint) + at(i, k + 1) * conj_if(right, adjoint));
      make_real(j);
      at(j, k) = left;
      at(j, k + 1) = right;
    }
  }

  // Returns the size of the block at k, and the row that is exchanged with its last one.
  int64_t choose(int64_t k, int64_t* other) {
    const double own = diagonal_size(k);
    *other = k;
    if (k == n - 1) return 1;
    const int64_t below = largest_below(k);
    const double top = size_of(at(below, k));
    if (!(max(own, top) > 0) || own >= kAlpha * top) return 1;
    const double beside = row_top(below, k);
    if (own >= kAlpha * top * (top / beside)) return 1;
    *other = below;
    return diagonal_size(below) >= kAlpha * beside ? 1 : 2;
  }

  int32_t run(int32_t* pivots) {
    int32_t info = 0;
    for (int64_t k = 0; k < n;) {
      int64_t other;
      const int64_t size = choose(k, &other);
      const int64_t last = k + size - 1;
      if (other != last) {
        if (size == 2) swap_rows(&at(k + 1, k), &at(other, k), 1);
        exchange(last, other);
      }
      for (int64_t i = k; i <= last; i++) pivots[i] = int32_t(size == 1 ? other + 1 : -other - 1);
      const bool zero = size == 1 && size_of(at(k, k)) == 0;
      if (zero && !info) info = int32_t(k + 1);
      if (size == 2) eliminate_two(k);
      else if (!zero) eliminate_one(k);
      k += size;
    }
    return info;
  }
};

struct LdlFactor {
  template <class T> static void run(const MatrixPlan& p, int64_t at) {
    BunchKaufman<T> b = {matrix_of<T>(p.a, at, p.n * p.n), p.n, p.adjoint};
    p.info[at] = b.run(p.pivots + at * p.n);
    for (int64_t i = 0; i < p.n; i++)
      for (int64_t j = i + 1; j < p.n; j++) b.at(i, j) = from_real<T>(0);
  }
};

struct LdlSolve {
  template <class T> static void exchange(T* b, int64_t i, int32_t pivot, int64_t n, int64_t k) {
    const int64_t other = (pivot < 0 ? -int64_t(pivot) : int64_t(pivot)) - 1;
    if (other != i && other >= 0 && other < n) swap_rows(b + i * k, b + other * k, k);
  }
  template <class T> static void run(const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    const T* a = matrix_of<T>(p.a, at, n * n);
    T* b = matrix_of<T>(p.b, at, n * k);
    const int32_t* pivots = p.pivots + at * n;
    for (int64_t i = 0; i < n;) {
      const int64_t size = pivots[i] < 0 && i + 1 < n ? 2 : 1;
      exchange(b, i + size - 1, pivots[i], n, k);
      for (int64_t j = i; j < i + size; j++)
        for (int64_t r = i + size; r < n; r++) subtract_row(b + r * k, b + j * k, k, a[r * n + j]);
      if (size == 1) multiply_row(b + i * k, k, from_real<T>(1) / a[i * n + i]);
      else solve_block(a + i * n + i, b + i * k, n, k, p.adjoint);
      i += size;
    }
    for (int64_t i = n - 1; i >= 0;) {
      const int64_t size = pivots[i] < 0 && i > 0 ? 2 : 1;
      for (int64_t j = i - size + 1; j <= i; j++)
        for (int64_t r = i + 1; r < n; r++)
          subtract_row(b + j * k, b + r * k, k, conj_if(a[r * n + j], p.adjoint));
      exchange(b, i, pivots[i], n, k);
      i -= size;
    }
  }
  // Two rows of b by a block of D.
  template <class T> static void solve_block(const T* d, T* b, int64_t n, int64_t k, bool adjoint) {
    const T lower = d[n];
    const T upper = conj_if(lower, adjoint);
    const T det = d[0] * d[n + 1] - lower * upper;
    for (int64_t j = 0; j < k; j++) {
      const T x = b[j];
      const T y = b[k + j];
      b[j] = (d[n + 1] * x - upper * y) / det;
      b[k + j] = (d[0] * y - lower * x) / det;
    }
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(ldl_factor)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LdlFactor>(plan, begin, end);
}
TT_KERNEL(ldl_solve)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LdlSolve>(plan, begin, end);
}

TT_ENTRY_END
