// cuSOLVER has matrices by columns. A row-major matrix a is a^T by columns, which of a Hermitian
// one is its conjugate; other matrices are transposed on the way in and out.
//
//   cholesky    conj(A) = L L^H by columns is A = U^H U by rows, with U = L^T in place; of several
//               matrices in one call, unless these are few and large
//   eigh        conj(A) W = W diag(w): the eigenvectors of A are conj(W)
//
//   workspace   [scratch of the library][transposed a][transposed b][int32: status, flag, pivots],
//               or the addresses of the matrices
#include "kernels/cuda/linalg/cusolver.h"

#include "kernels/cuda/library.h"
#include "kernels/cuda/linalg/columns.h"

namespace TT_NS {
namespace {

// Clears a triangle of each n x n matrix; all have `items` numbers together.
template <class T> __global__ void __launch_bounds__(kThreads)
    clear_triangle(T* a, int64_t n, bool upper, int64_t items) {
  for (int64_t at = first_item(); at < items; at += item_step()) {
    const int64_t row = quotient(at, n);
    const int64_t i = row - quotient(row, n) * n;
    const int64_t j = at - row * n;
    if (upper ? j > i : j < i) a[at] = from_real<T>(0);
  }
}
// *flag: whether an element is not finite. Then the matrix becomes zeros, for which the library
// ends.
template <class T> __global__ void __launch_bounds__(kThreads)
    check_finite(T* a, int64_t n, int32_t* flag) {
  TT_SHARED(TeamSlot, slots, kTeamWarps);
  const Team t(slots);
  double odd = 0;
  double* parts = reinterpret_cast<double*>(a);
  for (int64_t i = threadIdx.x; i < n * kParts<T>; i += kThreads) odd += parts[i] - parts[i];
  const bool finite = t.sum(odd) == 0;
  if (threadIdx.x == 0) *flag = finite ? 0 : 1;
  if (!finite) fill_row(a, n, from_real<T>(0), t.all());
}
// Without a result: nan, and info is 1.
template <class T> __global__ void __launch_bounds__(kThreads)
    refuse(double* w, T* b, int64_t n, const int32_t* flag, const int32_t* status, int32_t* info) {
  const bool failed = *flag != 0 || *status != 0;
  if (first_item() == 0) *info = failed ? 1 : 0;
  if (!failed) return;
  for (int64_t i = first_item(); i < n; i += item_step()) w[i] = __builtin_nan("");
  for (int64_t i = first_item(); b && i < n * n; i += item_step())
    b[i] = from_real<T>(__builtin_nan(""));
}

}  // namespace

namespace cuda::cusolver {
namespace {

// The part of cusolverDn.h that is used here. The functions of float64 and of complex128 differ in
// the types that their pointers name.
using Handle = void*;
enum Fill : int32_t { kLower = 0, kUpper = 1 };
enum Operation : int32_t { kAsItIs = 0, kAdjoint = 2 };
struct Functions {
  int32_t (*potrf_size)(Handle, int32_t fill, int n, void* a, int lda, int* numbers);
  int32_t (*potrf)(Handle, int32_t fill, int n, void* a, int lda, void* work, int, int* info);
  int32_t (*potrf_batched)(Handle, int32_t fill, int n, void** a, int lda, int* info, int batch);
  int32_t (*getrf_size)(Handle, int m, int n, void* a, int lda, int* numbers);
  int32_t (*getrf)(Handle, int m, int n, void* a, int lda, void* work, int* pivots, int* info);
  int32_t (*getrs)(Handle, int32_t operation, int n, int k, const void* a, int lda,
                   const int* pivots, void* b, int ldb, int* info);
  int32_t (*geqrf_size)(Handle, int m, int n, void* a, int lda, int* numbers);
  int32_t (*geqrf)(Handle, int m, int n, void* a, int lda, void* tau, void* work, int, int* info);
  int32_t (*gqr_size)(Handle, int m, int n, int k, const void* a, int lda, const void* tau,
                      int* numbers);
  int32_t (*gqr)(Handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int,
                 int* info);
  int32_t (*evd_size)(Handle, int32_t vectors, int32_t fill, int n, const void* a, int lda,
                      const double* w, int* numbers);
  int32_t (*evd)(Handle, int32_t vectors, int32_t fill, int n, void* a, int lda, double* w,
                 void* work, int, int* info);
};
int32_t (*g_create)(Handle*);
int32_t (*g_set_stream)(Handle, void* stream);
Functions g_functions[2];  // of real and of complex numbers

bool find_functions(void* from, bool complex) {
  Functions* f = &g_functions[complex];
  const auto find = [&](const char* real_name, const char* complex_name, auto* function) {
    return find_function(from, complex ? complex_name : real_name, function);
  };
  return find("cusolverDnDpotrf_bufferSize", "cusolverDnZpotrf_bufferSize", &f->potrf_size) &&
         find("cusolverDnDpotrf", "cusolverDnZpotrf", &f->potrf) &&
         find("cusolverDnDpotrfBatched", "cusolverDnZpotrfBatched", &f->potrf_batched) &&
         find("cusolverDnDgetrf_bufferSize", "cusolverDnZgetrf_bufferSize", &f->getrf_size) &&
         find("cusolverDnDgetrf", "cusolverDnZgetrf", &f->getrf) &&
         find("cusolverDnDgetrs", "cusolverDnZgetrs", &f->getrs) &&
         find("cusolverDnDgeqrf_bufferSize", "cusolverDnZgeqrf_bufferSize", &f->geqrf_size) &&
         find("cusolverDnDgeqrf", "cusolverDnZgeqrf", &f->geqrf) &&
         find("cusolverDnDorgqr_bufferSize", "cusolverDnZungqr_bufferSize", &f->gqr_size) &&
         find("cusolverDnDorgqr", "cusolverDnZungqr", &f->gqr) &&
         find("cusolverDnDsyevd_bufferSize", "cusolverDnZheevd_bufferSize", &f->evd_size) &&
         find("cusolverDnDsyevd", "cusolverDnZheevd", &f->evd);
}
bool find_all(void* from) {
  return find_function(from, "cusolverDnCreate", &g_create) &&
         find_function(from, "cusolverDnSetStream", &g_set_stream) && find_functions(from, false) &&
         find_functions(from, true);
}

constexpr const char* kNames[] = {"libcusolver.so.12", "libcusolver.so.11", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);
Handle g_handles[kMaxLibraryDevices];
int32_t g_busy;  // whether a thread uses a handle

// The handle of the current device, NULL if there is none. The caller has the lock.
Handle current_handle() {
  const int32_t device = library_device();
  if (device < 0) return nullptr;
  Handle& handle = g_handles[device];
  return handle || g_create(&handle) == 0 ? handle : nullptr;
}

int64_t item_bytes(const MatrixPlan& p) { return p.complex ? 16 : 8; }

// Numbers of scratch memory; negative if the library does not say.
int64_t scratch_numbers(Task task, const MatrixPlan& p, Handle handle) {
  const Functions& f = g_functions[p.complex];
  const int m = int(p.m);
  const int n = int(p.n);
  int numbers = 0;
  int32_t error = 0;
  switch (task) {
    case kCholesky: error = f.potrf_size(handle, kLower, n, p.a, n, &numbers); break;
    case kLu: error = f.getrf_size(handle, m, n, p.a, m, &numbers); break;
    case kLuSolve: break;
    case kQr: error = f.geqrf_size(handle, m, n, p.a, m, &numbers); break;
    case kProduct: error = f.gqr_size(handle, m, n, int(p.k), p.a, m, p.w, &numbers); break;
    case kEigh: error = f.evd_size(handle, p.vectors, kLower, n, p.a, n, p.w, &numbers); break;
  }
  return error == 0 ? numbers : -1;
}

// The parts of the workspace.
struct Room {
  char* scratch;
  char* a;
  char* b;
  int32_t* status;
  int32_t* flag;
  int32_t* pivots;  // [n]
  int64_t bytes;
};
Room room_of(const MatrixPlan& p, int64_t numbers, char* workspace) {
  const int64_t item = item_bytes(p);
  const int64_t scratch = round_up(numbers * item, int64_t(256));
  const int64_t a = p.m * p.n * item;
  const int64_t b = p.n * p.k * item;
  Room r;
  r.scratch = workspace;
  r.a = workspace + scratch;
  r.b = r.a + a;
  r.status = reinterpret_cast<int32_t*>(r.b + b);
  r.flag = r.status + 1;
  r.pivots = r.flag + 1;
  r.bytes = scratch + a + b + (p.n + 2) * 4;
  return r;
}

// What one matrix is computed with.
template <class T> struct Job : Sequence {
  const Functions& f;
  Handle handle;
  const MatrixPlan& p;
  Room room;
  int scratch;

  void to_columns(const T* from, char* to, int64_t rows, int64_t columns) {
    launch(transpose<T>, rows * columns, from, reinterpret_cast<T*>(to), rows, columns,
           rows * columns, false);
  }
  void to_rows(const char* from, T* to, int64_t rows, int64_t columns, bool conjugate = false) {
    launch(transpose<T>, rows * columns, reinterpret_cast<const T*>(from), to, columns, rows,
           rows * columns, conjugate);
  }

  void cholesky(int64_t at) {
    T* a = matrix_at<T>(p.a, at, p.n * p.n);
    const int n = int(p.n);
    call([&] {
      return f.potrf(handle, p.upper ? kLower : kUpper, n, a, n, room.scratch, scratch,
                     p.info + at);
    });
    launch(clear_triangle<T>, p.n * p.n, a, p.n, !p.upper, p.n * p.n);
  }
  void cholesky_of_all(void* list) {
    T* a = matrix_at<T>(p.a, 0, 0);
    const int64_t batch = p.run.units[0];
    const int n = int(p.n);
    launch(list_matrices<T>, batch, a, p.n * p.n, static_cast<T**>(list), batch);
    call([&] {
      return f.potrf_batched(handle, p.upper ? kLower : kUpper, n, static_cast<void**>(list), n,
                             p.info, int(batch));
    });
    const int64_t items = batch * p.n * p.n;
    launch(clear_triangle<T>, items, a, p.n, !p.upper, items);
  }
  void lu(int64_t at) {
    T* a = matrix_at<T>(p.a, at, p.m * p.n);
    int32_t* pivots = p.pivots + at * min(p.m, p.n);
    const int m = int(p.m);
    to_columns(a, room.a, p.m, p.n);
    call(
        [&] { return f.getrf(handle, m, int(p.n), room.a, m, room.scratch, pivots, p.info + at); });
    to_rows(room.a, a, p.m, p.n);
    if (p.det) write_determinants(a, pivots, p.n, 1, p.det + at * 6);
  }
  void lu_solve(int64_t at) {
    T* b = matrix_at<T>(p.b, at, p.n * p.k);
    const int n = int(p.n);
    to_columns(matrix_at<T>(p.a, at, p.n * p.n), room.a, p.n, p.n);
    to_columns(b, room.b, p.n, p.k);
    launch(valid_pivots, p.n, p.pivots + at * p.n, room.pivots, p.n, p.n);
    call([&] {
      return f.getrs(handle, p.adjoint ? kAdjoint : kAsItIs, n, int(p.k), room.a, n, room.pivots,
                     room.b, n, room.status);
    });
    to_rows(room.b, b, p.n, p.k);
  }
  void qr(int64_t at) {
    T* a = matrix_at<T>(p.a, at, p.m * p.n);
    T* tau = matrix_at<T>(p.b, at, min(p.m, p.n));
    const int m = int(p.m);
    to_columns(a, room.a, p.m, p.n);
    call([&] {
      return f.geqrf(handle, m, int(p.n), room.a, m, tau, room.scratch, scratch, room.status);
    });
    to_rows(room.a, a, p.m, p.n);
  }
  void product(int64_t at) {
    const T* tau = matrix_at<T>(p.w, at, p.k);
    const int m = int(p.m);
    to_columns(matrix_at<T>(p.a, at, p.m * p.n), room.a, p.m, p.n);
    call([&] {
      return f.gqr(handle, m, int(p.n), int(p.k), room.a, m, tau, room.scratch, scratch,
                   room.status);
    });
    to_rows(room.a, matrix_at<T>(p.b, at, p.m * p.n), p.m, p.n);
  }
  void eigh(int64_t at) {
    T* a = matrix_at<T>(p.a, at, p.n * p.n);
    T* b = p.vectors ? matrix_at<T>(p.b, at, p.n * p.n) : nullptr;
    double* w = p.w + at * p.n;
    const int n = int(p.n);
    if (status == TT_OK)
      status = device::launch(check_finite<T>, 1, kThreads, 0, stream, a, p.n * p.n, room.flag);
    call([&] {
      return f.evd(handle, p.vectors, p.upper ? kLower : kUpper, n, a, n, w, room.scratch, scratch,
                   room.status);
    });
    if (b) to_rows(reinterpret_cast<char*>(a), b, p.n, p.n, true);
    launch(refuse<T>, b ? p.n * p.n : p.n, w, b, p.n, room.flag, room.status, p.info + at);
  }

  void run(Task task, int64_t at) {
    switch (task) {
      case kCholesky: return cholesky(at);
      case kLu: return lu(at);
      case kLuSolve: return lu_solve(at);
      case kQr: return qr(at);
      case kProduct: return product(at);
      case kEigh: return eigh(at);
    }
  }
};

// Cholesky factors of several matrices in one call: PyTorch's way on an H200, which took 0.2 of the
// time of a block for each of 64 matrices of 256 rows.
constexpr int64_t kSmallestOfAll = 64;
constexpr int64_t kLargestOfAll = 512;
constexpr int64_t kFew = 32;
bool takes_all(Task task, const MatrixPlan& p) {
  const int64_t batch = p.run.units[0];
  if (task != kCholesky || batch < 2 || batch > INT32_MAX) return false;
  return p.n > kSmallestOfAll && (p.n <= kLargestOfAll || batch > kFew);
}

template <class T> int32_t run_all(Task task, const MatrixPlan& p, Handle handle, int64_t numbers,
                                   void* stream, void* workspace) {
  const Room room = room_of(p, numbers, static_cast<char*>(workspace));
  Job<T> job = {{stream}, g_functions[p.complex], handle, p, room, int(numbers)};
  if (takes_all(task, p)) job.cholesky_of_all(workspace);
  else
    for (int64_t i = 0; i < p.run.units[0]; i++) job.run(task, i);
  return job.status;
}

}  // namespace

void use_library(const char* path) {
  for (Handle& handle : g_handles) handle = nullptr;
  g_file.use(path);
}

// No device has said yet where the library is faster.
constexpr int64_t kLarge = 128;

bool serves(Task task, const MatrixPlan& p) {
  const int64_t small = min(p.m, p.n);
  const bool fits = p.m * p.n < INT32_MAX && p.n * p.k < INT32_MAX;
  const int64_t above = task == kEigh ? kLarge / 2 : kLarge;
  if ((p.math & kOwnLinalg) || !fits) return false;
  if (takes_all(task, p)) return g_file.is_open();
  if (small <= above) return false;
  return p.run.units[0] <= kFew && g_file.is_open();
}
size_t workspace_bytes(Task task, const MatrixPlan& p) {
  if (!serves(task, p)) return 0;
  if (takes_all(task, p)) return size_t(p.run.units[0]) * sizeof(void*);
  const LaunchLock lock(&g_busy);
  const Handle handle = current_handle();
  const int64_t numbers = handle ? scratch_numbers(task, p, handle) : -1;
  return size_t(room_of(p, max<int64_t>(numbers, 0), nullptr).bytes);
}
int32_t run(Task task, const MatrixPlan& p, void* stream, void* workspace) {
  const LaunchLock lock(&g_busy);
  const Handle handle = current_handle();
  int64_t numbers = handle ? 0 : -1;
  if (handle && !takes_all(task, p)) numbers = scratch_numbers(task, p, handle);
  if (numbers < 0 || g_set_stream(handle, stream) != 0) return TT_INTERNAL;
  if (p.complex) return run_all<c128>(task, p, handle, numbers, stream, workspace);
  return run_all<double>(task, p, handle, numbers, stream, workspace);
}

}  // namespace cuda::cusolver
}  // namespace TT_NS
