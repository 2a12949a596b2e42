#include "cpu/lapack.h"

#include "base/arith.h"
#include "base/os.h"
#include "core/ctx.h"
#include "cpu/blas.h"

namespace TT_NS {

namespace {

enum Routine { kGetrf, kPotrf, kTrsm, kGeqrf, kOrgqr, kSyevd, kGesdd, kGeev, kRoutines };
// of real and of complex numbers, behind the letter of the dtype
constexpr const char* kNames[kRoutines][2] = {
    {"getrf_", "getrf_"}, {"potrf_", "potrf_"}, {"trsm_", "trsm_"},   {"geqrf_", "geqrf_"},
    {"orgqr_", "ungqr_"}, {"syevd_", "heevd_"}, {"gesdd_", "gesdd_"}, {"geev_", "geev_"},
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

class Memory {
 public:
  explicit Memory(int64_t bytes)
      : bytes_(size_t(max(bytes, int64_t(16)))), p_(mem_alloc_wide(max(bytes, int64_t(16)))) {}
  ~Memory() { mem_free(p_, bytes_); }
  Memory(const Memory&) = delete;
  void* get() const { return p_; }
  template <class T> T* as() const { return static_cast<T*>(p_); }

 private:
  size_t bytes_;
  void* p_;
};

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

}  // namespace

bool lapack_is_open() noexcept {
  const int32_t state = __atomic_load_n(&g_state, __ATOMIC_ACQUIRE);
  if (state) return state == 1;
  Lock lock(g_opening);
  if (!g_state) __atomic_store_n(&g_state, find_routines(), __ATOMIC_RELEASE);
  return g_state == 1;
}

int64_t lapack_lu_factor(Dtype d, int64_t m, int64_t n, void* a, int32_t* pivots) {
  const int rows = int(m);
  const int columns = int(n);
  int info = 0;
  call(kGetrf, d, &rows, &columns, a, &rows, pivots, &info);
  return info;
}

int64_t lapack_cholesky(Dtype d, int64_t n, void* a, bool upper) {
  const int size = int(n);
  int info = 0;
  call(kPotrf, d, upper ? "U" : "L", &size, a, &size, &info, kText);
  return info;
}

// In LAPACK's order of columns it is X^T a^T = b^T.
void lapack_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                             bool adjoint, bool unit) {
  const int size = int(n);
  const int columns = int(k);
  Number one = {};
  if (real_of(d) == Dtype::kF32) *reinterpret_cast<float*>(one.bytes) = 1;
  else *reinterpret_cast<double*>(one.bytes) = 1;
  const void* alpha = one.bytes;
  const char* triangle = upper ? "L" : "U";
  const char* form = adjoint ? "C" : "N";
  const char* diagonal = unit ? "U" : "N";
  call(kTrsm, d, "R", triangle, form, diagonal, &columns, &size, alpha, a, &size, b, &columns,
       kText, kText, kText, kText);
}

int64_t lapack_qr(Dtype d, int64_t m, int64_t n, void* a, void* tau) {
  const int rows = int(m);
  const int columns = int(n);
  int info = 0;
  int size = -1;
  Number first;
  void* query = first.bytes;
  call(kGeqrf, d, &rows, &columns, a, &rows, tau, query, &size, &info);
  size = queried(d, query);
  const Memory work(size * item_size(d));
  call(kGeqrf, d, &rows, &columns, a, &rows, tau, work.get(), &size, &info);
  return info;
}

int64_t lapack_householder_product(Dtype d, int64_t m, int64_t n, int64_t k, void* a,
                                   const void* tau) {
  const int rows = int(m);
  const int columns = int(n);
  const int reflectors = int(k);
  int info = 0;
  int size = -1;
  Number first;
  void* query = first.bytes;
  call(kOrgqr, d, &rows, &columns, &reflectors, a, &rows, tau, query, &size, &info);
  size = queried(d, query);
  const Memory work(size * item_size(d));
  call(kOrgqr, d, &rows, &columns, &reflectors, a, &rows, tau, work.get(), &size, &info);
  return info;
}

int64_t lapack_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors) {
  const char* job = vectors ? "V" : "N";
  const char* triangle = upper ? "U" : "L";
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
      call(kSyevd, d, job, triangle, &size, a, &size, w, work, &n_work, reals, &n_real, ints,
           &n_int, &info, kText, kText);
    else
      call(kSyevd, d, job, triangle, &size, a, &size, w, work, &n_work, ints, &n_int, &info, kText,
           kText);
  };
  run(query, query_real, &query_int);
  n_work = queried(d, query);
  n_real = is_complex(d) ? queried(d, query_real) : 1;
  n_int = query_int;
  const Memory work(n_work * item_size(d));
  const Memory reals(n_real * real_size(d));
  const Memory ints(n_int * 4);
  run(work.get(), reals.get(), ints.as<int>());
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
  const auto run = [&](void* work) {
    if (is_complex(d))
      call(kGesdd, d, job, &rows, &columns, a, &rows, s, u, &rows, vt, &k, work, &n_work,
           reals.get(), ints.get(), &info, kText);
    else
      call(kGesdd, d, job, &rows, &columns, a, &rows, s, u, &rows, vt, &k, work, &n_work,
           ints.get(), &info, kText);
  };
  run(query);
  n_work = queried(d, query);
  const Memory work(n_work * item_size(d));
  run(work.get());
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
  void* vectors = v ? v : none;
  const Memory reals(2 * n * real_size(d));
  void* imaginary = static_cast<char*>(w) + n * item_size(d);
  const auto run = [&](void* work) {
    if (is_complex(d))
      call(kGeev, d, left, right, &size, a, &size, w, none, &one, vectors, &size, work, &n_work,
           reals.get(), &info, kText, kText);
    else
      call(kGeev, d, left, right, &size, a, &size, w, imaginary, none, &one, vectors, &size, work,
           &n_work, &info, kText, kText);
  };
  run(query);
  n_work = queried(d, query);
  const Memory work(n_work * item_size(d));
  run(work.get());
  return info;
}

}  // namespace TT_NS
