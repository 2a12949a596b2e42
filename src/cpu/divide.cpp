#include "cpu/divide.h"

#include "cpu/product.h"

#include <string.h>

namespace TT_NS {

namespace {

// Where a pole's vector is not 0: in the columns of the first part, of the second one, or both.
enum Kind : int32_t { kFirst, kBoth, kSecond, kKinds };

// A pole of the secular equation: a value of a part, and the row of its vector in the subproblem.
struct Pole {
  double d, z;
  int32_t row;
  Kind kind;
};

// A subproblem: rows [at, at + size), columns [at, middle) of its first part and [middle, end) of
// its second. Matrices of singular values have a column more than rows but at the end of the whole.
struct Range {
  int64_t at, size, middle, end;
};

constexpr int64_t kExponentBias = 1023;
double power_of_2(int64_t exponent) {
  return bit_cast<double>(uint64_t(exponent + kExponentBias) << 52);
}
// An even exponent that scales x > 0 to [1/2, 2).
int64_t scale_exponent(double x) {
  const int64_t exponent = int64_t(bit_cast<uint64_t>(x) >> 52) - kExponentBias;
  return clamp(-exponent, int64_t(-1022), int64_t(1022)) & -2;
}

template <class T> class Divide {
 public:
  Divide(const SecularKernels<T>& kernels, int64_t n, bool squares, const T* d, const T* e,
         const Basis<T>& v, const Basis<T>& u)
      : kernels_(kernels),
        n_(n),
        squares_(squares),
        v_(v),
        u_(u),
        d_(n),
        e_(n),
        order_(n),
        poles_(n),
        gone_(n),
        pole_(room(n)),
        z_(room(n)),
        near_(room(n)),
        shift_(room(n)),
        work_(room(n)),
        places_(n),
        factors_(n * padded<T>(n) * int64_t(sizeof(T))),
        rows_(n * (n + 1) * int64_t(sizeof(T))) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = max(top, libm::fabs(double(d[i])));
    for (int64_t i = 0; i + 1 < n; i++) top = max(top, libm::fabs(double(e[i])));
    scale_ = power_of_2(scale_exponent(top));
    for (int64_t i = 0; i < n; i++) {
      d_.get()[i] = scaled(d[i]);
      e_.get()[i] = i + 1 < n ? scaled(e[i]) : 0;
    }
  }

  void run() {
    if (squares_) solve_bidiagonal(0, n_, 0);
    else solve_tridiagonal(0, n_);
  }
  void read_values(T* d) const {
    for (int64_t i = 0; i < n_; i++) d[i] = T(d_.get()[source(i)] / scale_);
  }
  void sort_rows(const Basis<T>& basis) const {
    for (int64_t i = 0; i < n_; i++)
      memcpy(rows_.as<T>() + i * n_, basis.at(i, 0), size_t(n_) * sizeof(T));
    for (int64_t i = 0; i < n_; i++)
      memcpy(basis.at(i, 0), rows_.as<T>() + source(i) * n_, size_t(n_) * sizeof(T));
  }

 private:
  static constexpr double kUnit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;  // of rounding
  static constexpr double kTolerance = sizeof(T) == 4 ? 0x1p-40 : 0x1p-53;
  // The largest number is about 1; numbers that are nothing beside it are 0, so that squares of the
  // others are in range.
  double scaled(T x) const {
    const double y = double(x) * scale_;
    return libm::fabs(y) < 0x1p-900 ? 0 : y;
  }
  static int64_t room(int64_t n) { return padded<double>(n); }

  // The row of result i.
  int64_t source(int64_t i) const { return order_.get()[squares_ ? n_ - 1 - i : i]; }

  // Two blocks and a matrix of rank one, beside * (1, ±1)^T (1, ±1) around the corner of both.
  void solve_tridiagonal(int64_t at, int64_t size) {
    if (size == 1) {
      order_.get()[at] = 0;
      *v_.at(at, at) = 1;
      return;
    }
    const int64_t middle = at + size / 2;
    const double beside = e_.get()[middle - 1];
    const double weight = libm::fabs(beside);
    d_.get()[middle - 1] -= weight;
    d_.get()[middle] -= weight;
    solve_tridiagonal(at, middle - at);
    solve_tridiagonal(middle, at + size - middle);
    const double root = libm::sqrt(weight);
    merge({at, size, middle, at + size}, root, beside < 0 ? -root : root);
  }
  // Two blocks with a column more than rows, but for the end, and the row between them.
  void solve_bidiagonal(int64_t at, int64_t size, int64_t more) {
    if (size == 0) {
      if (more) *v_.at(at, at) = 1;
      return;
    }
    const int64_t row = at + size / 2;
    const double alpha = d_.get()[row];
    const double beta = e_.get()[row];
    solve_bidiagonal(at, row - at, 1);
    solve_bidiagonal(row + 1, at + size - row - 1, more);
    d_.get()[row] = 0;
    *u_.at(row, row) = 1;
    merge({at, size, row + 1, at + size + more}, alpha, beta);
  }

  // Rows x and y become c x + s y and c y - s x.
  void rotate(const Basis<T>& basis, const Range& r, int64_t x, int64_t y, double c, double s) {
    T* const p = basis.at(r.at + x, r.at);
    T* const q = basis.at(r.at + y, r.at);
    const T cosine = T(c);
    const T sine = T(s);
    for (int64_t i = 0; i < r.end - r.at; i++) {
      const T a = p[i];
      const T b = q[i];
      p[i] = cosine * a + sine * b;
      q[i] = cosine * b - sine * a;
    }
  }

  // Both parts have a vector to which no value belongs: joins these into one that the row between
  // the parts meets, the first, and one that is left, the last. Returns what the row has of it.
  double join_free_vectors(const Range& r, double first, double second, double tolerance) {
    const double z = first * double(*v_.at(r.middle - 1, r.middle - 1));
    if (r.end == r.at + r.size) return z;
    const double other = second * double(*v_.at(r.end - 1, r.middle));
    const double size = libm::sqrt(z * z + other * other);
    if (size <= tolerance) return z;
    rotate(v_, r, r.middle - 1 - r.at, r.size, z / size, other / size);
    return size;
  }

  // The values of both parts in ascending order, and first that of the row between them.
  void read_poles(const Range& r, double first, double second, double scale, double tolerance) {
    const int64_t between = squares_ ? r.middle - 1 - r.at : -1;
    const int64_t firsts = squares_ ? between : r.middle - r.at;
    const int64_t seconds = r.middle - r.at;  // the row of the second part's first one
    Pole* p = poles_.get();
    if (squares_) {
      const Kind kind = r.end > r.at + r.size ? kBoth : kFirst;
      *p++ = {0, join_free_vectors(r, first, second, tolerance), int32_t(between), kind};
    }
    int64_t i = 0;
    int64_t j = seconds;
    while (i < firsts || j < r.size) {
      const int64_t of_first = i < firsts ? order_.get()[r.at + i] : 0;
      const int64_t of_second = j < r.size ? seconds + order_.get()[r.at + j] : 0;
      const bool takes_first =
          j == r.size || (i < firsts && d_.get()[r.at + of_first] <= d_.get()[r.at + of_second]);
      const int64_t row = takes_first ? of_first : of_second;
      const double z = takes_first ? first * double(*v_.at(r.at + row, r.middle - 1))
                                   : second * double(*v_.at(r.at + row, r.middle));
      i += takes_first;
      j += !takes_first;
      *p++ = {d_.get()[r.at + row] * scale, z, int32_t(row), takes_first ? kFirst : kSecond};
    }
  }

  void leave(const Pole& p) {
    int64_t i = n_gone_++;
    for (; i > 0 && gone_.get()[i - 1].d > p.d; i--) gone_.get()[i] = gone_.get()[i - 1];
    gone_.get()[i] = p;
  }
  // Leaves the poles that the row or the matrix of rank one misses, and one of two that are close.
  void deflate(const Range& r, double tolerance, double smallest) {
    const int64_t fixed = squares_;
    n_gone_ = 0;
    k_ = fixed;
    for (int64_t i = fixed; i < r.size; i++) {
      Pole p = poles_.get()[i];
      if (!(libm::fabs(p.z) > smallest)) {
        leave(p);
        continue;
      }
      if (squares_) p.d = max(p.d, tolerance / 2);
      if (k_ == fixed || !merge_close(r, poles_.get()[k_ - 1], p, tolerance)) k_++;
      poles_.get()[k_ - 1] = p;
    }
    double& of_between = poles_.get()[0].z;
    if (squares_ && k_ > 1 && libm::fabs(of_between) < tolerance) of_between = tolerance;
  }
  // Rotates the vectors of q and p so that q is missed, and leaves it, if they are close.
  bool merge_close(const Range& r, Pole q, Pole& p, double tolerance) {
    const double size = libm::sqrt(p.z * p.z + q.z * q.z);
    const double c = p.z / size;
    const double s = -q.z / size;
    if (libm::fabs((p.d - q.d) * c * s) > tolerance) return false;
    rotate(v_, r, q.row, p.row, c, s);
    if (squares_) rotate(u_, r, q.row, p.row, c, s);
    const double d = q.d * c * c + p.d * s * s;
    p.d = q.d * s * s + p.d * c * c;
    q.d = d;
    p.z = size;
    p.kind = p.kind == q.kind ? p.kind : kBoth;
    leave(q);
    return true;
  }

  // Places of the kept poles in the order of their kinds. starts[kind]: the first one
  void sort_kinds(int64_t* starts) {
    int64_t counts[kKinds] = {};
    for (int64_t i = 0; i < k_; i++) counts[poles_.get()[i].kind]++;
    starts[kFirst] = 0;
    starts[kBoth] = counts[kFirst];
    starts[kSecond] = counts[kFirst] + counts[kBoth];
    int64_t next[kKinds] = {starts[0], starts[1], starts[2]};
    for (int64_t i = 0; i < k_; i++) places_.get()[i] = int32_t(next[poles_.get()[i].kind]++);
  }

  // Finds the roots and, in the order of places, the poles and the weights of their vectors.
  void solve_secular() {
    double* const d = pole_.get();
    double* const z = z_.get();
    const int64_t whole = room(k_);
    for (int64_t i = 0; i < whole; i++) {
      d[i] = i < k_ ? poles_.get()[i].d : kBeyondPoles;
      z[i] = i < k_ ? poles_.get()[i].z : 0;
    }
    if (k_ == 1) {
      near_.get()[0] = d[0];
      shift_.get()[0] = z[0] * z[0];
      return;
    }
    const Secular equation = secular();
    kernels_.roots(equation);
    kernels_.weights(equation, work_.get());
    for (int64_t i = 0; i < k_; i++) {
      const int64_t place = places_.get()[i];
      d[place] = poles_.get()[i].d;
      z[place] = work_.get()[i];
    }
  }
  Secular secular() const {
    return {.k = k_,
            .squares = squares_,
            .tolerance = kTolerance,
            .d = pole_.get(),
            .z = z_.get(),
            .near = near_.get(),
            .shift = shift_.get()};
  }
  double value(int64_t i) const {
    const double near = near_.get()[i];
    const double shift = shift_.get()[i];
    if (!squares_ || shift == 0) return near + shift;
    return near + shift / (near + libm::sqrt(near * near + shift));
  }

  // out (k, columns) = the factors of poles [from, to) times their rows
  void multiply(T* out, int64_t out_row, int64_t from, int64_t to, T* rows, int64_t columns) {
    const int64_t row = padded<T>(k_);
    T* const factors = factors_.as<T>() + from;
    const int64_t count = to - from;
    if (count && k_ * count * columns > kFewProducts)
      return multiply_parts(kDtype<T>, {out, k_, columns, out_row, 1}, {factors, k_, count, row, 1},
                            {rows, count, columns, columns, 1}, 1, false);
    for (int64_t i = 0; i < k_; i++)
      for (int64_t c = 0; c < columns; c++) {
        T sum = 0;
        for (int64_t j = 0; j < count; j++) sum += factors[i * row + j] * rows[j * columns + c];
        out[i * out_row + c] = sum;
      }
  }
  // The rows of `basis` become those of the roots, and behind these those of the poles that are
  // gone.
  void update(const Range& r, const Basis<T>& basis, bool left, const int64_t* starts) {
    const auto copy = [](T* to, const T* from, int64_t n) {
      memcpy(to, from, size_t(n) * sizeof(T));
    };
    const int64_t columns = (left ? r.at + r.size : r.end) - r.at;
    const int64_t first = r.middle - r.at;
    const int64_t second = columns - first;
    T* const of_first = rows_.as<T>();
    T* const of_second = of_first + starts[kSecond] * first;
    T* const of_gone = of_second + (k_ - starts[kBoth]) * second;
    for (int64_t i = 0; i < k_; i++) {
      const Pole& p = poles_.get()[i];
      const int64_t place = places_.get()[i];
      const T* const row = basis.at(r.at + p.row, r.at);
      if (p.kind != kSecond) copy(of_first + place * first, row, first);
      if (p.kind != kFirst) copy(of_second + (place - starts[kBoth]) * second, row + first, second);
    }
    for (int64_t i = 0; i < n_gone_; i++)
      copy(of_gone + i * columns, basis.at(r.at + gone_.get()[i].row, r.at), columns);
    const Secular equation = secular();
    if (k_ == 1) factors_.as<T>()[0] = left && z_.get()[0] < 0 ? -1 : 1;
    else
      kernels_.vectors({.of = &equation,
                        .left = left,
                        .rows = factors_.as<T>(),
                        .row = padded<T>(k_),
                        .work = work_.get()});
    multiply(basis.at(r.at, r.at), basis.row, 0, starts[kSecond], of_first, first);
    multiply(basis.at(r.at, r.middle), basis.row, starts[kBoth], k_, of_second, second);
    for (int64_t i = 0; i < n_gone_; i++)
      copy(basis.at(r.at + k_ + i, r.at), of_gone + i * columns, columns);
  }

  // The roots and the values that are gone, in ascending order.
  void write_values(const Range& r, double scale) {
    double* const d = d_.get() + r.at;
    for (int64_t i = 0; i < k_; i++) d[i] = value(i) / scale;
    for (int64_t i = 0; i < n_gone_; i++) d[k_ + i] = gone_.get()[i].d / scale;
    int64_t i = 0;
    int64_t j = k_;
    for (int64_t at = r.at; at < r.at + r.size; at++) {
      const bool is_root = j == r.size || (i < k_ && d[i] <= d[j]);
      order_.get()[at] = int32_t(is_root ? i++ : j++);
    }
  }

  // Joins the parts of a subproblem, which `first` of the first one's last column and `second` of
  // the other's first connect: the coefficients of a row, or those of a matrix of rank one.
  void merge(const Range& r, double first, double second) {
    poll_if_watched(r.size >= kLarge);
    double top = squares_ ? max(libm::fabs(first), libm::fabs(second)) : first * first;
    for (int64_t i = r.at; i < r.at + r.size; i++) top = max(top, libm::fabs(d_.get()[i]));
    const int64_t exponent = scale_exponent(top);
    const double scale = power_of_2(exponent);
    const double z_scale = squares_ ? scale : power_of_2(exponent / 2);
    const double tolerance = 2 * kUnit * top * scale;  // LAPACK: 8, with a larger residual
    read_poles(r, first * z_scale, second * z_scale, scale, tolerance);
    deflate(r, tolerance, squares_ ? tolerance : tolerance / (first * z_scale));
    if (k_ == 0) {
      for (int64_t i = 0; i < r.size; i++) order_.get()[r.at + i] = gone_.get()[i].row;
      return;
    }
    int64_t starts[kKinds];
    sort_kinds(starts);
    solve_secular();
    update(r, v_, false, starts);
    if (squares_) update(r, u_, true, starts);
    write_values(r, scale);
  }

  static constexpr int64_t kLarge = 256;  // a subproblem before which the application is polled
  static constexpr int64_t kFewProducts = 256;  // that take less time than a plan of them

  const SecularKernels<T> kernels_;
  const int64_t n_;
  const bool squares_;
  const Basis<T> v_, u_;
  const Numbers<double> d_, e_;
  const Numbers<int32_t> order_;      // of each subproblem, ascending: rows from its first one
  const Numbers<Pole> poles_, gone_;  // ascending
  const Numbers<double> pole_, z_, near_, shift_, work_;
  const Numbers<int32_t> places_;
  const Memory factors_, rows_;  // of T
  double scale_;
  int64_t k_ = 0;  // poles that are kept
  int64_t n_gone_ = 0;
};

}  // namespace

template <class T>
void divide_eigh(const SecularKernels<T>& kernels, int64_t n, T* d, const T* e, const Basis<T>& v) {
  Divide<T> work(kernels, n, false, d, e, v, v);
  work.run();
  work.read_values(d);
  work.sort_rows(v);
}
template <class T> void divide_svd(const SecularKernels<T>& kernels, int64_t n, T* d, const T* e,
                                   const Basis<T>& u, const Basis<T>& v) {
  Divide<T> work(kernels, n, true, d, e, v, u);
  work.run();
  work.read_values(d);
  work.sort_rows(u);
  work.sort_rows(v);
}

template void divide_eigh(const SecularKernels<float>&, int64_t, float*, const float*,
                          const Basis<float>&);
template void divide_eigh(const SecularKernels<double>&, int64_t, double*, const double*,
                          const Basis<double>&);
template void divide_svd(const SecularKernels<float>&, int64_t, float*, const float*,
                         const Basis<float>&, const Basis<float>&);
template void divide_svd(const SecularKernels<double>&, int64_t, double*, const double*,
                         const Basis<double>&, const Basis<double>&);

}  // namespace TT_NS
