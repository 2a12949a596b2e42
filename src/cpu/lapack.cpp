#include "cpu/lapack.h"

#include "base/arith.h"
#include "base/os.h"
#include "core/ctx.h"
#include "cpu/blas.h"
#include "cpu/decompose.h"
#include "cpu/product.h"

#include <cstring>

namespace TT_NS {

namespace {

enum Routine { kPotrf, kTrsm, kSyevd, kGesdd, kGeev, kSterf, kBdsqr, kRoutines };
// of real and of complex numbers, behind the letter of the dtype
constexpr const char* kNames[kRoutines][2] = {
    {"potrf_", "potrf_"}, {"trsm_", "trsm_"},  {"syevd_", "heevd_"}, {"gesdd_", "gesdd_"},
    {"geev_", "geev_"},   {"sterf_", nullptr}, {"bdsqr_", nullptr},
};
constexpr char kLetters[] = {'s', 'd', 'c', 'z'};

constinit void* g_routines[kRoutines][4] = {};
constinit int32_t g_state = 0;  // 0 not tried, 1 open, 2 absent
constinit Mutex g_opening;

int32_t find_routines() noexcept {
  for (int r = 0; r < kRoutines; r++)
    for (int d = 0; d < 4; d++) {
      char name[16] = {kLetters[d]};
      const char* rest = kNames[r][d >= 2];
      if (!rest) continue;
      for (int i = 0; rest[i]; i++) name[i + 1] = rest[i];
      g_routines[r][d] = blas_symbol(name);
      if (!g_routines[r][d]) return 2;
    }
  return 1;
}

int index_of(Dtype d) { return int(d) - int(Dtype::kF32); }
int64_t real_size(Dtype d) { return item_size(real_of(d)); }

// Calls a routine of Fortran's ABI. The lengths of its texts come last.
template <class... A> void call(Routine r, Dtype d, A... args) {
  using F = void (*)(A...);
  Lock lock(blas_calls());
  reinterpret_cast<F>(g_routines[r][index_of(d)])(args...);
}

// The size of a workspace, which a query leaves in its first number.
int queried(Dtype d, const void* work) {
  const double n = real_of(d) == Dtype::kF32 ? double(*static_cast<const float*>(work))
                                             : *static_cast<const double*>(work);
  return int(n) + 1;
}

struct Number {  // room for one number of any dtype
  alignas(16) char bytes[16];
};
constexpr size_t kText = 1;

Number one_of(Dtype d) {
  Number one = {};
  if (real_of(d) == Dtype::kF32) *reinterpret_cast<float*>(one.bytes) = 1;
  else *reinterpret_cast<double*>(one.bytes) = 1;
  return one;
}

// OpenBLAS's cgemv and zgemv (0.3.21) read up to a column and a number past the end of a complex
// matrix whose number of rows is no multiple of four.
int64_t bytes_read_behind(Dtype d, int64_t rows) {
  return is_complex(d) ? (rows + 1) * item_size(d) : 0;
}

// A column-major matrix for a call that may read past its end. A complex one is copied to memory
// that has room there.
class Fenced {
 public:
  Fenced(Dtype d, int64_t rows, int64_t columns, void* data)
      : data_(data),
        bytes_(is_complex(d) ? rows * columns * item_size(d) : 0),
        copy_(bytes_ + bytes_read_behind(d, rows)) {}
  void* get() const { return bytes_ ? copy_.get() : data_; }
  void* filled() const {
    if (bytes_) memcpy(copy_.get(), data_, size_t(bytes_));
    return get();
  }
  void write_back() const {
    if (bytes_) memcpy(data_, copy_.get(), size_t(bytes_));
  }

 private:
  void* data_;
  int64_t bytes_;  // 0: no copy
  Memory copy_;
};

// ---- blocks: LAPACK solves the corners, tt multiplies ----

// OpenBLAS has kernels for the processors that its version knows, and multiplies on one thread.
constexpr int64_t kSolveBlock = 32;
bool multiplies_itself() { return Isa(ctx().isa) != kIsaBaseline; }

// Row-major a (n, n) and b (n, k) with these distances between rows. In LAPACK's order of columns
// it is X^T a^T = b^T.
void solve_block(Dtype d, int64_t n, int64_t k, const void* a, int64_t a_row, void* b,
                 int64_t b_row, bool upper, bool adjoint, bool unit) {
  const int size = int(n);
  const int columns = int(k);
  const int a_step = int(a_row);
  const int b_step = int(b_row);
  const Number one = one_of(d);
  const void* alpha = one.bytes;
  const char* triangle = upper ? "L" : "U";
  const char* form = adjoint ? "C" : "N";
  const char* diagonal = unit ? "U" : "N";
  call(kTrsm, d, "R", triangle, form, diagonal, &columns, &size, alpha, a, &a_step, b, &b_step,
       kText, kText, kText, kText);
}

}  // namespace

bool lapack_is_open() noexcept {
  const int32_t state = atomic_load(&g_state, kAcquire);
  if (state) return state == 1;
  Lock lock(g_opening);
  if (!g_state) atomic_store(&g_state, find_routines(), kRelease);
  return g_state == 1;
}

int64_t lapack_cholesky(Dtype d, int64_t n, void* a, bool upper) {
  const int size = int(n);
  int info = 0;
  call(kPotrf, d, upper ? "U" : "L", &size, a, &size, &info, kText);
  return info;
}

void lapack_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                             bool adjoint, bool unit) {
  const bool whole = n < 4 * kSolveBlock || k < kSolveBlock || (adjoint && is_complex(d));
  if (!whole && decomposes(d)) return own_solve_triangular(d, n, k, a, b, upper, adjoint, unit);
  if (whole || !multiplies_itself()) return solve_block(d, n, k, a, n, b, k, upper, adjoint, unit);
  const int64_t size = item_size(d);
  const auto row = [&](int64_t i) { return static_cast<char*>(b) + i * k * size; };
  const auto at = [&](int64_t i, int64_t j) {
    return static_cast<char*>(const_cast<void*>(a)) + (i * n + j) * size;
  };
  const bool lower = upper == adjoint;  // the matrix that is solved
  const int64_t blocks = ceil_div(n, kSolveBlock);
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t j = (lower ? i : blocks - 1 - i) * kSolveBlock;
    const int64_t height = min(n - j, kSolveBlock);
    const int64_t from = lower ? 0 : j + height;  // the known rows
    const int64_t known = lower ? j : n - from;
    const Part left =
        adjoint ? Part{at(from, j), height, known, 1, n} : Part{at(j, from), height, known, n, 1};
    multiply_parts(d, {row(j), height, k, k, 1}, left, {row(from), known, k, k, 1}, -1, true);
    solve_block(d, height, k, at(j, j), n, row(j), k, upper, adjoint, unit);
  }
}

int64_t lapack_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors) {
  const char* job = vectors ? "V" : "N";
  const char* triangle = upper ? "U" : "L";
  const Fenced matrix(d, n, n, a);
  void* const entries = matrix.filled();
  const int size = int(n);
  int info = 0;
  int n_work = -1;
  int n_real = -1;
  int n_int = -1;
  Number first;
  Number first_real;
  void* query = first.bytes;
  void* query_real = first_real.bytes;
  int query_int = 0;
  const auto run = [&](void* work, void* reals, int* ints) {
    if (is_complex(d))
      call(kSyevd, d, job, triangle, &size, entries, &size, w, work, &n_work, reals, &n_real, ints,
           &n_int, &info, kText, kText);
    else
      call(kSyevd, d, job, triangle, &size, entries, &size, w, work, &n_work, ints, &n_int, &info,
           kText, kText);
  };
  run(query, query_real, &query_int);
  n_work = queried(d, query);
  n_real = is_complex(d) ? queried(d, query_real) : 1;
  n_int = query_int;
  const Memory work(n_work * item_size(d) + bytes_read_behind(d, n));
  const Memory reals(n_real * real_size(d));
  const Memory ints(n_int * 4);
  run(work.get(), reals.get(), ints.as<int>());
  matrix.write_back();
  return info;
}

int64_t lapack_svd(Dtype d, int64_t m, int64_t n, void* a, void* u, void* s, void* vt,
                   bool vectors) {
  const char* job = vectors ? "S" : "N";
  const int rows = int(m);
  const int columns = int(n);
  const int k = min(rows, columns);
  const int top = max(rows, columns);
  int info = 0;
  int n_work = -1;
  Number first;
  void* query = first.bytes;
  const int64_t n_real = max(int64_t(5) * k * k + 5 * k, int64_t(2) * top * k + 2 * k * k + k);
  const Memory reals(is_complex(d) ? n_real * real_size(d) : 0);
  const Memory ints(8 * int64_t(k) * 4);
  const Fenced matrix(d, m, n, a);
  const Fenced left(d, m, vectors ? k : 0, u);
  const Fenced right(d, k, vectors ? n : 0, vt);
  void* const entries = matrix.filled();
  const auto run = [&](void* work) {
    if (is_complex(d))
      call(kGesdd, d, job, &rows, &columns, entries, &rows, s, left.get(), &rows, right.get(), &k,
           work, &n_work, reals.get(), ints.get(), &info, kText);
    else
      call(kGesdd, d, job, &rows, &columns, entries, &rows, s, left.get(), &rows, right.get(), &k,
           work, &n_work, ints.get(), &info, kText);
  };
  run(query);
  n_work = queried(d, query);
  const Memory work(n_work * item_size(d) + bytes_read_behind(d, top));
  run(work.get());
  left.write_back();
  right.write_back();
  return info;
}

int64_t lapack_tridiagonal_eigvalsh(Dtype d, int64_t n, void* w, void* e) {
  const int size = int(n);
  int info = 0;
  call(kSterf, d, &size, w, e, &info);
  return info;
}

int64_t lapack_bidiagonal_svdvals(Dtype d, int64_t n, void* s, void* e, void* work) {
  const char* upper = "U";
  const int size = int(n);
  const int none = 0;
  const int one = 1;
  int info = 0;
  void* absent = work;
  call(kBdsqr, d, upper, &size, &none, &none, &none, s, e, absent, &one, absent, &one, absent, &one,
       work, &info);
  return info;
}

int64_t lapack_eig(Dtype d, int64_t n, void* a, void* w, void* v) {
  const char* left = "N";
  const char* right = v ? "V" : "N";
  const int size = int(n);
  const int one = 1;
  int info = 0;
  int n_work = -1;
  Number first;
  void* query = first.bytes;
  void* none = first.bytes;
  const Fenced matrix(d, n, n, a);
  const Fenced basis(d, n, v ? n : 0, v);
  void* const entries = matrix.filled();
  void* const vectors = v ? basis.get() : none;
  const Memory reals(2 * n * real_size(d));
  void* imaginary = static_cast<char*>(w) + n * item_size(d);
  const auto run = [&](void* work) {
    if (is_complex(d))
      call(kGeev, d, left, right, &size, entries, &size, w, none, &one, vectors, &size, work,
           &n_work, reals.get(), &info, kText, kText);
    else
      call(kGeev, d, left, right, &size, entries, &size, w, imaginary, none, &one, vectors, &size,
           work, &n_work, &info, kText, kText);
  };
  run(query);
  n_work = queried(d, query);
  const Memory work(n_work * item_size(d) + bytes_read_behind(d, n));
  run(work.get());
  basis.write_back();
  return info;
}

}  // namespace TT_NS
