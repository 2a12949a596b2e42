// cuBLAS has matrices by columns, so they are transposed on the way in and out.
//
//   workspace   [addresses of a][addresses of b][transposed a][transposed b][int32: pivots]
#include "kernels/cuda/linalg/cublas.h"

#include "kernels/cuda/library.h"
#include "kernels/cuda/linalg/columns.h"

namespace TT_NS::cuda::cublas {
namespace {

// The part of cublas_v2.h that is used here. The functions of float64 and of complex128 differ in
// the types that their pointers name. `status` of getrs is in the host's memory and judges the
// arguments; `info` of getrf is in the device's and judges the matrices.
using Handle = void*;
enum Operation : int32_t { kAsItIs = 0, kAdjoint = 2 };
struct Functions {
  int32_t (*getrf)(Handle, int n, void* const* a, int lda, int* pivots, int* info, int batch);
  int32_t (*getrs)(Handle, int32_t operation, int n, int k, const void* const* a, int lda,
                   const int* pivots, void* const* b, int ldb, int* status, int batch);
};
int32_t (*g_create)(Handle*);
int32_t (*g_set_stream)(Handle, void* stream);
Functions g_functions[2];  // of real and of complex numbers

bool find_all(void* from) {
  return find_function(from, "cublasCreate_v2", &g_create) &&
         find_function(from, "cublasSetStream_v2", &g_set_stream) &&
         find_function(from, "cublasDgetrfBatched", &g_functions[0].getrf) &&
         find_function(from, "cublasDgetrsBatched", &g_functions[0].getrs) &&
         find_function(from, "cublasZgetrfBatched", &g_functions[1].getrf) &&
         find_function(from, "cublasZgetrsBatched", &g_functions[1].getrs);
}

constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);
Handle g_handles[kMaxLibraryDevices];
int32_t g_busy;  // whether a thread uses a handle

// The handle of the current device for the stream, NULL if there is none. The caller has the lock.
Handle handle_for(void* stream) {
  const int32_t device = library_device();
  if (device < 0) return nullptr;
  Handle& handle = g_handles[device];
  const AllowDuringCapture allow;
  if (!handle && g_create(&handle) != 0) return nullptr;
  return g_set_stream(handle, stream) == 0 ? handle : nullptr;
}

// The parts of the workspace.
struct Room {
  void** a_list;
  void** b_list;
  char* a;
  char* b;
  int32_t* pivots;  // [batch][n]
  size_t bytes;
};
Room room_of(const MatrixPlan& p, void* workspace) {
  const int64_t batch = p.run.units[0];
  const int64_t item = p.complex ? 16 : 8;
  const int64_t lists = round_up(2 * batch * int64_t(sizeof(void*)), int64_t(16));
  Room r;
  r.a_list = static_cast<void**>(workspace);
  r.b_list = r.a_list + batch;
  r.a = static_cast<char*>(workspace) + lists;
  r.b = r.a + batch * p.n * p.n * item;
  r.pivots = reinterpret_cast<int32_t*>(r.b + batch * p.n * p.k * item);
  r.bytes = size_t(reinterpret_cast<char*>(r.pivots + batch * p.n) - static_cast<char*>(workspace));
  return r;
}

// What the matrices of a plan are computed with.
template <class T> struct Job : Sequence {
  const Functions& f;
  Handle handle;
  const MatrixPlan& p;
  Room room;

  // Transposes all matrices, and lists their new addresses.
  void to_columns(const double* from, char* to, void** list, int64_t rows, int64_t columns) {
    const int64_t batch = p.run.units[0];
    T* const matrices = reinterpret_cast<T*>(to);
    launch(transpose<T>, batch * rows * columns, reinterpret_cast<const T*>(from), matrices, rows,
           columns, batch * rows * columns, false);
    launch(list_matrices<T>, batch, matrices, rows * columns, reinterpret_cast<T**>(list), batch);
  }
  void to_rows(const char* from, double* to, int64_t rows, int64_t columns) {
    const int64_t items = p.run.units[0] * rows * columns;
    launch(transpose<T>, items, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), columns,
           rows, items, false);
  }

  void lu_factor() {
    const int batch = int(p.run.units[0]);
    const int n = int(p.n);
    to_columns(p.a, room.a, room.a_list, p.n, p.n);
    call([&] { return f.getrf(handle, n, room.a_list, n, p.pivots, p.info, batch); });
    to_rows(room.a, p.a, p.n, p.n);
    if (p.det) write_determinants(reinterpret_cast<T*>(p.a), p.pivots, p.n, batch, p.det);
  }
  void lu_solve() {
    const int batch = int(p.run.units[0]);
    const int n = int(p.n);
    to_columns(p.a, room.a, room.a_list, p.n, p.n);
    to_columns(p.b, room.b, room.b_list, p.n, p.k);
    launch(valid_pivots, batch * p.n, p.pivots, room.pivots, p.n, batch * p.n);
    int refused = 0;
    call([&] {
      return f.getrs(handle, p.adjoint ? kAdjoint : kAsItIs, n, int(p.k), room.a_list, n,
                     room.pivots, room.b_list, n, &refused, batch);
    });
    call([&] { return refused; });
    to_rows(room.b, p.b, p.n, p.k);
  }
};

template <class T>
int32_t run_as(const MatrixPlan& p, void (Job<T>::*task)(), void* stream, void* workspace) {
  const LaunchLock lock(&g_busy);
  const Handle handle = handle_for(stream);
  if (!handle) return TT_INTERNAL;
  Job<T> job = {{stream}, g_functions[p.complex], handle, p, room_of(p, workspace)};
  (job.*task)();
  return job.status;
}

// PyTorch's rule: these functions serve several matrices of fewer than 512 rows. Those of up to 32
// have kernels of their own.
constexpr int64_t kSmall = kWarp;
constexpr int64_t kLarge = 512;

}  // namespace

void use_library(const char* path) {
  for (Handle& handle : g_handles) handle = nullptr;
  g_file.use(path);
}

bool serves(const MatrixPlan& p) {
  const int64_t batch = p.run.units[0];
  if ((p.math & kOwnLinalg) || p.m != p.n || p.n <= kSmall || p.n >= kLarge) return false;
  if (batch < 2 || batch > INT32_MAX || p.n * p.k > INT32_MAX) return false;
  return g_file.is_open();
}
size_t workspace_bytes(const MatrixPlan& p) { return room_of(p, nullptr).bytes; }
int32_t lu_factor(const MatrixPlan& p, void* stream, void* workspace) {
  if (p.complex) return run_as<c128>(p, &Job<c128>::lu_factor, stream, workspace);
  return run_as<double>(p, &Job<double>::lu_factor, stream, workspace);
}
int32_t lu_solve(const MatrixPlan& p, void* stream, void* workspace) {
  if (p.complex) return run_as<c128>(p, &Job<c128>::lu_solve, stream, workspace);
  return run_as<double>(p, &Job<double>::lu_solve, stream, workspace);
}

}  // namespace TT_NS::cuda::cublas
