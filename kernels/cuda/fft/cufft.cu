// A transform along dim of a dense array [outer][dim][inner] is a batch for cuFFT: of `inner`
// neighbours, `inner` elements apart, for each of outer, or of all if inner is 1. It does not
// scale, it transforms real numbers forward and Hermitian ones backward only: the other signs are
// the conjugates. Hermitian inputs are copied, since it may write to them, and real ones that are
// not aligned as complex numbers are, which it takes for granted.
#include "kernels/cuda/fft/cufft.h"

#include <string.h>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/nest.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// to[i] = scale * from[i], or its conjugate.
template <class T> __global__ void __launch_bounds__(kThreads)
    scale_numbers(const Complex<T>* from, Complex<T>* to, int64_t n, T scale, bool conjugate) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    const Complex<T> x = from[i];
    to[i] = {x.re * scale, (conjugate ? -x.im : x.im) * scale};
  }
}
template <class T> __global__ void __launch_bounds__(kThreads)
    scale_reals(const T* from, T* to, int64_t n, T scale) {
  for (int64_t i = first_item(); i < n; i += item_step()) to[i] = from[i] * scale;
}

}  // namespace

namespace cuda::cufft {
namespace {

// The part of cufft.h that is used here.
using Handle = int32_t;
enum Type : int32_t {
  kR2C = 0x2a,
  kC2R = 0x2c,
  kC2C = 0x29,
  kD2Z = 0x6a,
  kZ2D = 0x6c,
  kZ2Z = 0x69
};
constexpr int32_t kForward = -1;
constexpr int32_t kInverse = 1;
using Exec = int32_t (*)(Handle, void* in, void* out);
using ExecComplex = int32_t (*)(Handle, void* in, void* out, int32_t direction);
struct Library {
  int32_t (*create)(Handle*);
  int32_t (*destroy)(Handle);
  int32_t (*auto_allocate)(Handle, int32_t);
  int32_t (*make)(Handle, int32_t rank, long long* n, long long* in_embed, long long in_stride,
                  long long in_distance, long long* out_embed, long long out_stride,
                  long long out_distance, int32_t type, long long batch, size_t* bytes);
  int32_t (*set_work)(Handle, void*);
  int32_t (*set_stream)(Handle, void*);
  ExecComplex complex[2];  // of f32 and f64
  Exec real[2], hermitian[2];
};
Library g_library;
bool find_all(void* from) {
  Library* const out = &g_library;
  return find_function(from, "cufftCreate", &out->create) &&
         find_function(from, "cufftDestroy", &out->destroy) &&
         find_function(from, "cufftSetAutoAllocation", &out->auto_allocate) &&
         find_function(from, "cufftMakePlanMany64", &out->make) &&
         find_function(from, "cufftSetWorkArea", &out->set_work) &&
         find_function(from, "cufftSetStream", &out->set_stream) &&
         find_function(from, "cufftExecC2C", &out->complex[0]) &&
         find_function(from, "cufftExecZ2Z", &out->complex[1]) &&
         find_function(from, "cufftExecR2C", &out->real[0]) &&
         find_function(from, "cufftExecD2Z", &out->real[1]) &&
         find_function(from, "cufftExecC2R", &out->hermitian[0]) &&
         find_function(from, "cufftExecZ2D", &out->hermitian[1]);
}
constexpr const char* kNames[] = {"libcufft.so.12", "libcufft.so.11", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);

struct Geometry {
  int64_t n, inner, batch;
  int32_t type, device;
};
struct Entry {
  Geometry geometry;
  Handle handle;
  bool made, ready;
  bool captured;  // a graph launches kernels that read the plan's memory: it stays
  size_t bytes;   // of its work area
};
constexpr uint64_t kEntries = 64;  // each may have any geometry
Entry g_entries[kEntries];
Entry g_full;    // of geometries that found no entry: never ready
int32_t g_busy;  // whether a thread uses an entry

Geometry geometry_of(const FftPlan& p) {
  Geometry g;
  memset(static_cast<void*>(&g), 0, sizeof g);
  const bool wide = p.dtype == TT_F64;
  g.type = wide ? kZ2Z : kC2C;
  if (p.kind == kFftReal) g.type = wide ? kD2Z : kR2C;
  if (p.kind == kFftHermitian) g.type = wide ? kZ2D : kC2R;
  g.n = p.n;
  g.inner = p.inner;
  g.batch = p.inner == 1 ? p.outer : p.inner;
  g.device = library_device();
  return g;
}
bool make(Entry* e, const FftPlan& p) {
  if (g_library.create(&e->handle) != 0) return false;
  e->made = true;
  long long n[1] = {p.n};
  long long inputs[1] = {fft_inputs(p)};
  long long outputs[1] = {fft_outputs(p)};
  const bool dense = p.inner == 1;
  return g_library.auto_allocate(e->handle, 0) == 0 &&
         g_library.make(e->handle, 1, n, inputs, p.inner, dense ? inputs[0] : 1, outputs, p.inner,
                        dense ? outputs[0] : 1, e->geometry.type, e->geometry.batch,
                        &e->bytes) == 0;
}
// The entry of a plan; one that the library refuses is kept, too. The caller has the lock.
Entry& entry_of(const FftPlan& p) {
  const Geometry g = geometry_of(p);
  uint64_t h = uint64_t(g.n) * 0x9e3779b97f4a7c15u;
  h = (h ^ uint64_t(g.inner)) * 0x9e3779b97f4a7c15u;
  h = (h ^ uint64_t(g.batch) ^ uint64_t(g.type) << 32) * 0x9e3779b97f4a7c15u;
  const uint64_t first = (h ^ uint64_t(g.device)) >> 32;
  Entry* free = nullptr;
  Entry* replaceable = nullptr;
  for (uint64_t i = 0; i < kEntries && !free; i++) {
    Entry* const entry = &g_entries[(first + i) % kEntries];
    if (entry->geometry.n && memcmp(&entry->geometry, &g, sizeof g) == 0) return *entry;
    if (!entry->geometry.n) free = entry;
    if (!entry->captured && !replaceable) replaceable = entry;
  }
  if (!replaceable) return g_full;
  Entry& e = free ? *free : *replaceable;
  const AllowDuringCapture allow;
  if (e.made) g_library.destroy(e.handle);
  e = Entry{};
  e.geometry = g;
  e.ready = g.device >= 0 && make(&e, p);
  return e;
}

// Room for a copy of the inputs.
int64_t copied_bytes(const FftPlan& p) {
  if (p.kind == kFftComplex) return 0;
  const int64_t parts = p.kind == kFftHermitian ? 2 : 1;
  return p.outer * fft_inputs(p) * p.inner * parts * int64_t(kItemSize[p.dtype]);
}
bool is_copied(const FftPlan& p) {
  const auto at = reinterpret_cast<uintptr_t>(p.in);
  return p.kind == kFftHermitian || (p.kind == kFftReal && at % (2 * kItemSize[p.dtype]) != 0);
}

template <class T> int32_t run_as(const FftPlan& p, const Entry& e, void* stream, char* copied) {
  using C = Complex<T>;
  constexpr bool kWide = sizeof(T) == 8;
  const int64_t in_numbers = fft_inputs(p) * p.inner;
  const int64_t out_numbers = fft_outputs(p) * p.inner;
  const int64_t all = p.outer * out_numbers;
  int32_t status = TT_OK;
  const int64_t n = p.outer * in_numbers;
  if (copied && p.kind == kFftReal) {
    status =
        device::launch(scale_reals<T>, grid_of(n, kThreads), kThreads, 0, stream,
                       reinterpret_cast<const T*>(p.in), reinterpret_cast<T*>(copied), n, T(1));
  } else if (copied) {
    status = device::launch(scale_numbers<T>, grid_of(n, kThreads), kThreads, 0, stream,
                            reinterpret_cast<const C*>(p.in), reinterpret_cast<C*>(copied), n, T(1),
                            p.inverse == 0);
  }
  const int64_t in_bytes = in_numbers * int64_t(p.kind == kFftReal ? sizeof(T) : sizeof(C));
  const int64_t out_bytes = out_numbers * int64_t(p.kind == kFftHermitian ? sizeof(T) : sizeof(C));
  char* in = copied ? copied : const_cast<char*>(p.in);
  const int64_t calls = p.inner == 1 ? 1 : p.outer;
  for (int64_t i = 0; i < calls && status == TT_OK; i++) {
    char* from = in + i * in_bytes;
    char* to = p.out + i * out_bytes;
    int32_t error;
    if (p.kind == kFftReal) error = g_library.real[kWide](e.handle, from, to);
    else if (p.kind == kFftHermitian) error = g_library.hermitian[kWide](e.handle, from, to);
    else error = g_library.complex[kWide](e.handle, from, to, p.inverse ? kInverse : kForward);
    if (error != 0) status = TT_INTERNAL;
  }
  const bool conjugate = p.kind == kFftReal && p.inverse;
  if (status != TT_OK || (p.scale == 1 && !conjugate)) return status;
  if (p.kind == kFftHermitian)
    return device::launch(scale_reals<T>, grid_of(all, kThreads), kThreads, 0, stream,
                          reinterpret_cast<const T*>(p.out), reinterpret_cast<T*>(p.out), all,
                          T(p.scale));
  C* const out = reinterpret_cast<C*>(p.out);
  return device::launch(scale_numbers<T>, grid_of(all, kThreads), kThreads, 0, stream,
                        static_cast<const C*>(out), out, all, T(p.scale), conjugate);
}

}  // namespace

void use_library(const char* path) {
  for (Entry& e : g_entries) {
    if (e.made) g_library.destroy(e.handle);
    e = Entry{};
  }
  g_file.use(path);
}

// Many outer arrays with neighbours would be many calls.
constexpr int64_t kMaxCalls = 64;

// Whether the real numbers of each call are aligned as complex ones.
static bool calls_align(const FftPlan& p) {
  return p.kind == kFftComplex || p.inner == 1 || p.outer == 1 || p.n * p.inner % 2 == 0;
}

bool serves(const FftPlan& p) {
  if ((p.math & kOwnFft) || p.n < 2 || (p.inner > 1 && p.outer > kMaxCalls)) return false;
  if (!calls_align(p) || !g_file.is_open()) return false;
  const LaunchLock lock(&g_busy);
  return entry_of(p).ready;
}
size_t workspace_bytes(const FftPlan& p) {
  const LaunchLock lock(&g_busy);
  return size_t(round_up(int64_t(entry_of(p).bytes), int64_t(256)) + copied_bytes(p));
}
int32_t run(const FftPlan& p, void* stream, void* workspace) {
  const LaunchLock lock(&g_busy);
  Entry& e = entry_of(p);
  if (e.ready && is_captured(stream)) e.captured = true;
  char* const room = static_cast<char*>(workspace);
  char* const copied = is_copied(p) ? room + round_up(int64_t(e.bytes), int64_t(256)) : nullptr;
  if (!e.ready || g_library.set_stream(e.handle, stream) != 0 ||
      g_library.set_work(e.handle, room) != 0)
    return TT_INTERNAL;
  if (p.dtype == TT_F64) return run_as<double>(p, e, stream, copied);
  return run_as<float>(p, e, stream, copied);
}

}  // namespace cuda::cufft
}  // namespace TT_NS
