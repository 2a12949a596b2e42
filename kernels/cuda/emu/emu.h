// CUDA's names for g++: a launch runs block by block, each thread of a block as a fiber (emu.cpp),
// at once or, on a device whose streams run late, when its turn comes. It finds deadlocks, barriers
// that part of a block does not reach, launches beyond the limits, overruns of shared arrays and,
// under ThreadSanitizer, races. It proves neither speed nor the memory model: atomics and
// __threadfence are stronger here.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tuple>

#include "base/platform.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ TT_INLINE
// The address of a kernel is aligned to the number of threads that its bounds allow. A launch reads
// that alignment and refuses larger blocks, as a device does; it misses them where the address is
// aligned further by chance.
#define __launch_bounds__(...) \
  __attribute__((aligned(::TT_NS::emu::alignment_of_bounds(__VA_ARGS__))))
#define __grid_constant__
#define __restrict__ __restrict

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};

namespace TT_NS::emu {

constexpr unsigned alignment_of_bounds(unsigned threads, unsigned /*blocks*/ = 1) {
  unsigned alignment = 1;
  while (alignment < threads) alignment *= 2;
  return alignment;
}

struct Where {
  const char* file;
  int line;
};

// What a thread knows of itself.
struct Thread {
  dim3 index, block, block_size, grid_size;
  int linear;  // in its block
};
extern __thread const Thread* t_self;
TT_INLINE const Thread& self() noexcept { return *t_self; }

struct Launch {
  dim3 grid, block;
  size_t shared_bytes;
  size_t argument_bytes;
  const char* kernel;  // its signature
  void (*run)(void* closure);
  void* closure;
  bool early;         // the kernel begins with wait_for_previous
  uintptr_t address;  // of the kernel
};
// Runs all threads; 0 or TT_DEVICE, then last_fault tells what is wrong.
int32_t run(const Launch& launch) noexcept;
const char* last_fault() noexcept;

// A device whose work may run later than it is launched. NULL: there is none.
struct LateStreams {
  bool (*is_later)(void* stream);
  // Runs the launch after what the stream has to do, perhaps several times; drop(closure) at last.
  void (*enqueue)(void* stream, const Launch& launch, void (*drop)(void* closure));
};
extern const LateStreams* late_streams;

// The order in which the threads of a block, and the blocks, run: as numbered, backwards, or
// shuffled by this seed (2 and more). Right kernels give the same bits in every order.
enum : uint64_t { kForward = 0, kBackward = 1 };
void set_order(uint64_t order) noexcept;

void barrier(Where where) noexcept;
// The sum of `value` over the block, as of the barrier.
int barrier_sum(int value, Where where) noexcept;
// Waits for the lanes of `mask`, all of which call the same operation; sets all[lane] to their
// values, and returns the mask of those that took part: exited lanes do not.
uint32_t exchange(uint32_t mask, uint64_t value, const char* operation, Where where,
                  uint64_t (&all)[32]) noexcept;
[[noreturn]] void fault(const char* what) noexcept;
void* shared(const void* key, size_t bytes, size_t alignment) noexcept;
void* shared_dynamic() noexcept;

template <class T> TT_INLINE uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
TT_INLINE T shuffle(uint32_t mask, T value, int source, const char* operation, Where where) {
  uint64_t all[32];
  const uint32_t present = exchange(mask, bits_of(value), operation, where, all);
  if (!(present >> source & 1)) fault("a shuffle reads a lane that takes no part in it");
  T result;
  memcpy(&result, &all[source], sizeof result);
  return result;
}
inline int lane() { return self().linear % 32; }

}  // namespace TT_NS::emu

#define threadIdx (::TT_NS::emu::self().index)
#define blockIdx (::TT_NS::emu::self().block)
#define blockDim (::TT_NS::emu::self().block_size)
#define gridDim (::TT_NS::emu::self().grid_size)
#define TT_SHARED(T, name, n) \
  static char tt_key_##name;  \
  T(&name)                    \
  [n] = *static_cast<T(*)[n]>(::TT_NS::emu::shared(&tt_key_##name, sizeof(T) * (n), alignof(T)))
#define TT_SHARED_DYNAMIC(T, name) T* const name = static_cast<T*>(::TT_NS::emu::shared_dynamic())

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  TT_NS::emu::barrier({file, line});
}
inline int __syncthreads_or(int p, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  return TT_NS::emu::barrier_sum(p != 0, {file, line}) != 0;
}
inline void __syncwarp(uint32_t mask = 0xffffffffu, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  uint64_t all[32];
  TT_NS::emu::exchange(mask, 0, "__syncwarp", {file, line}, all);
}
template <class T> T __shfl_sync(uint32_t mask, T value, int source, int width = 32,
                                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int first = TT_NS::emu::lane() / width * width;
  return TT_NS::emu::shuffle(mask, value, first + (source & (width - 1)), "__shfl_sync",
                             {file, line});
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, int other, int width = 32,
                                     const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
  const int lane = TT_NS::emu::lane();
  const int source = lane ^ other;
  const bool inside = source / width <= lane / width;
  return TT_NS::emu::shuffle(mask, value, inside ? source : lane, "__shfl_xor_sync", {file, line});
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, unsigned delta, int width = 32,
                                      const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  const int lane = TT_NS::emu::lane();
  const bool inside = lane % width + int(delta) < width;
  return TT_NS::emu::shuffle(mask, value, inside ? lane + int(delta) : lane, "__shfl_down_sync",
                             {file, line});
}
template <class T> T __shfl_up_sync(uint32_t mask, T value, unsigned delta, int width = 32,
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  const int lane = TT_NS::emu::lane();
  const bool inside = lane % width >= int(delta);
  return TT_NS::emu::shuffle(mask, value, inside ? lane - int(delta) : lane, "__shfl_up_sync",
                             {file, line});
}
inline uint32_t __ballot_sync(uint32_t mask, int p, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  uint64_t all[32];
  const uint32_t present = TT_NS::emu::exchange(mask, p != 0, "__ballot_sync", {file, line}, all);
  uint32_t votes = 0;
  for (int i = 0; i < 32; i++)
    if (present >> i & 1) votes |= uint32_t(all[i]) << i;
  return votes;
}
inline int __any_sync(uint32_t mask, int p, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return __ballot_sync(mask, p, file, line) != 0;
}

inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return uint64_t(static_cast<unsigned __int128>(a) * b >> 64);
}
inline void __threadfence() {}

// Read, change and write in one step, by compare and swap of the bits.
namespace TT_NS::emu {
template <class Bits, class T, class F> T atomically(T* p, F change) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits* bits = reinterpret_cast<Bits*>(p);
  Bits old = __atomic_load_n(bits, __ATOMIC_ACQUIRE);
  for (;;) {
    T before;
    memcpy(&before, &old, sizeof old);
    const T after = change(before);
    Bits next;
    memcpy(&next, &after, sizeof next);
    if (__atomic_compare_exchange_n(bits, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return before;
  }
}
template <size_t kBytes> struct BitsOf { using type = uint64_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <class T, class F> T atomic(T* p, F change) {
  return atomically<typename BitsOf<sizeof(T)>::type>(p, change);
}
}  // namespace TT_NS::emu
template <class T> T atomicAdd(T* p, T v) {
  return TT_NS::emu::atomic(p, [v](T old) { return T(old + v); });
}
template <class T> T atomicMax(T* p, T v) {
  return TT_NS::emu::atomic(p, [v](T old) { return old < v ? v : old; });
}
template <class T> T atomicMin(T* p, T v) {
  return TT_NS::emu::atomic(p, [v](T old) { return v < old ? v : old; });
}
template <class T> T atomicOr(T* p, T v) {
  return TT_NS::emu::atomic(p, [v](T old) { return T(old | v); });
}
template <class T> T atomicExch(T* p, T v) {
  return TT_NS::emu::atomic(p, [v](T) { return v; });
}
template <class T> T atomicCAS(T* p, T expected, T v) {
  return TT_NS::emu::atomic(p, [=](T old) { return old == expected ? v : old; });
}

namespace TT_NS::device {

template <class... P, class... A> int32_t launch_as(bool early, void (*kernel)(P...), dim3 grid,
                                                    dim3 block, size_t shared_bytes, void* stream,
                                                    A&&... a) {
  auto closure = [&] { kernel(static_cast<P>(a)...); };
  emu::Launch all = {grid,
                     block,
                     shared_bytes,
                     (size_t(0) + ... + sizeof(P)),
                     __PRETTY_FUNCTION__,
                     [](void* c) { (*static_cast<decltype(closure)*>(c))(); },
                     &closure,
                     early,
                     reinterpret_cast<uintptr_t>(kernel)};
  if (!emu::late_streams || !emu::late_streams->is_later(stream)) return emu::run(all);
  struct Later {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
  };
  all.closure = new Later{kernel, {static_cast<P>(a)...}};
  all.run = [](void* c) {
    std::apply(static_cast<Later*>(c)->kernel, static_cast<Later*>(c)->arguments);
  };
  emu::late_streams->enqueue(stream, all, [](void* c) { delete static_cast<Later*>(c); });
  return 0;
}

template <class... P, class... A> int32_t launch(void (*kernel)(P...), dim3 grid, dim3 block,
                                                 size_t shared_bytes, void* stream, A&&... a) {
  return launch_as(false, kernel, grid, block, shared_bytes, stream, static_cast<A&&>(a)...);
}
void wait_for_previous() noexcept;
template <class... P, class... A> int32_t launch_early_with(void (*kernel)(P...), dim3 grid,
                                                            dim3 block, size_t shared_bytes,
                                                            void* stream, A&&... a) {
  return launch_as(true, kernel, grid, block, shared_bytes, stream, static_cast<A&&>(a)...);
}
template <class... P, class... A>
int32_t launch_early(void (*kernel)(P...), dim3 grid, dim3 block, void* stream, A&&... a) {
  return launch_as(true, kernel, grid, block, 0, stream, static_cast<A&&>(a)...);
}

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) noexcept;
void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) noexcept;

}  // namespace TT_NS::device
