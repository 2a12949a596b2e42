// The emulation of the device (kernels/cuda/emu) computes correct results in every order of
// threads, and finds faults that are planted here. Built three times: as it is, with
// AddressSanitizer, with ThreadSanitizer. Without an argument it runs itself once per case and
// reads what is printed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "kernels/cuda/device.h"
#include "group_product.h"
#include "kernels/cuda/matmul/async.h"

#ifndef EMU_TSAN
#define EMU_TSAN 0
#endif
#ifndef EMU_ASAN
#define EMU_ASAN 0
#endif

using namespace TT_NS;
using device::launch;

namespace {

constexpr int kThreads = 128;
constexpr uint32_t kAll = 0xffffffffu;

// Of neighbours, every second one begins at a multiple of its own bounds only.
template <int> __global__ void __launch_bounds__(kThreads / 2) bounded(int*) {}
template <int n> int32_t launch_bounded(int* out) {
  const int32_t status = launch(bounded<n>, 1, kThreads, 0, nullptr, out);
  if constexpr (n == 0) return status;
  else return status ? status : launch_bounded<n - 1>(out);
}
// The other kernels may have any block.
#undef __global__
#define __global__ __attribute__((aligned(1024)))

// ---- right kernels ----

__global__ void sum_blocks(const float* in, float* out, int n) {
  TT_SHARED(float, parts, 4);
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  float v = i < n ? in[i] : 0;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(kAll, v, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Shifts through shared memory, twice: both barriers are needed.
__global__ void shift_twice(int* data) {
  TT_SHARED_DYNAMIC(int, all);
  const int t = int(threadIdx.x);
  int v = data[t];
  for (int step = 0; step < 2; step++) {
    all[t] = v;
    __syncthreads();
    v = all[(t + 1) % kThreads];
    __syncthreads();
  }
  data[t] = v;
}

// The last block to finish adds the others' parts.
__global__ void last_block(const int* in, int* parts, unsigned* finished, int* out) {
  TT_SHARED(int, is_last, 1);
  atomicAdd(&parts[blockIdx.x], in[blockIdx.x * blockDim.x + threadIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last[0] = atomicAdd(finished, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!is_last[0] || threadIdx.x) return;
  int sum = 0;
  for (unsigned b = 0; b < gridDim.x; b++) sum += atomicAdd(&parts[b], 0);
  *out = sum;
}

// One warp multiplies a[16,16] by b[16,8], row-major, of bf16.
__global__ void multiply(const uint16_t* a, const uint16_t* b, float* out) {
  const int group = int(threadIdx.x) / 4;
  const int pair = int(threadIdx.x) % 4;
  uint32_t fa[4], fb[2];
  for (int r = 0; r < 4; r++) {
    const uint16_t* at = a + (group + 8 * (r & 1)) * 16 + 2 * pair + 8 * (r >> 1);
    fa[r] = at[0] | uint32_t(at[1]) << 16;
  }
  for (int r = 0; r < 2; r++) {
    const uint16_t* at = b + (2 * pair + 8 * r) * 8 + group;
    fb[r] = at[0] | uint32_t(at[8]) << 16;
  }
  float d[4] = {};
  device::mma_bf16(d, fa, fb);
  for (int r = 0; r < 4; r++) out[(group + 8 * (r >> 1)) * 8 + 2 * pair + (r & 1)] = d[r];
}

// The same by ldmatrix, from copies; b's columns are in its transposed matrices.
struct alignas(16) Halves {
  uint16_t row[16][16];
};
__global__ void multiply_copies(const uint16_t* a, const uint16_t* b, float* out) {
  TT_SHARED(Halves, shared, 2);
  const int lane = int(threadIdx.x);
  const int row = lane / 2;
  const int half = lane % 2;
  device::copy_async(&shared[0].row[row][8 * half], a + row * 16 + half * 8, true);
  device::commit_copies();
  device::copy_async(&shared[1].row[row][8 * half], b + row * 8, half == 0);
  device::commit_copies();
  device::wait_for_copies<1>();
  __syncwarp();
  uint32_t fa[4], fb[4];
  const int offset = lane % 16 * 32 + lane / 16 * 16;
  device::ldmatrix(fa, &shared[0], offset);
  device::wait_for_copies<0>();
  __syncwarp();
  device::ldmatrix_transposed(fb, &shared[1], offset);
  const uint32_t first[2] = {fb[0], fb[1]};
  float d[4] = {};
  device::mma_bf16(d, fa, first);
  const bool padded = fb[2] == 0 && fb[3] == 0;
  for (int r = 0; r < 4; r++) {
    const int at = (lane / 4 + 8 * (r >> 1)) * 8 + 2 * (lane % 4) + (r & 1);
    out[at] = padded ? d[r] : -1.0f;
  }
}

// ---- planted faults ----

struct alignas(16) Four {
  int item[4];
};
// A thread reads what its copy has not brought yet; what another thread's copy brings, without a
// barrier; and copies to where another thread still reads.
__global__ void no_wait_before_read(int* out, const Four* in) {
  TT_SHARED(Four, all, kThreads);
  device::copy_async(&all[threadIdx.x], in + threadIdx.x, true);
  device::commit_copies();
  device::wait_for_copies<1>();
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x].item[0];
}
__global__ void no_barrier_after_wait(int* out, const Four* in) {
  TT_SHARED(Four, all, kThreads);
  device::copy_async(&all[threadIdx.x], in + threadIdx.x, true);
  device::commit_copies();
  device::wait_for_copies<0>();
  out[threadIdx.x] = all[(threadIdx.x + 1) % kThreads].item[0];
}
__global__ void no_barrier_before_copy(int* out, const Four* in) {
  TT_SHARED(Four, all, kThreads);
  all[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int v = all[(threadIdx.x + 1) % kThreads].item[0];
  device::copy_async(&all[threadIdx.x], in + threadIdx.x, true);
  device::commit_copies();
  __syncthreads();
  device::wait_for_copies<0>();
  out[threadIdx.x] = v;
}
__global__ void copies_from_an_odd_place(int* out) {
  TT_SHARED(Four, all, kThreads);
  device::copy_async(&all[threadIdx.x], out + threadIdx.x + 1, true);
}

// Vectors of a slice that begins behind one element; a word of two halves.
__global__ void loads_from_an_odd_place(int* out, const int* in) {
  out[threadIdx.x] = reinterpret_cast<const Four*>(in + 1)[threadIdx.x].item[0];
}
__global__ void stores_to_an_odd_place(int* out) {
  reinterpret_cast<uint4*>(out + 2)[0] = {1, 2, 3, 4};
}
__global__ void word_of_halves(int* out, const uint16_t* in) {
  out[threadIdx.x] = int(*reinterpret_cast<const uint32_t*>(in + threadIdx.x));
}

__global__ void no_barrier_before_read(int* out) {
  TT_SHARED(int, all, kThreads);
  all[threadIdx.x] = int(threadIdx.x);
  out[threadIdx.x] = all[(threadIdx.x + 1) % kThreads];
}
__global__ void no_barrier_after_read(int* out) {
  TT_SHARED(int, all, kThreads);
  int v = int(threadIdx.x);
  for (int step = 0; step < 2; step++) {
    all[threadIdx.x] = v;
    __syncthreads();
    v = all[(threadIdx.x + 1) % kThreads];
  }
  out[threadIdx.x] = v;
}
__global__ void blocks_share_a_word(int* out) {
  if (threadIdx.x == 0) out[0] += 1;
}
__global__ void overrun(int* out, int n) {
  TT_SHARED(int, all, kThreads);
  all[threadIdx.x + unsigned(n)] = int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x];
}
__global__ void half_at_barrier(int* out) {
  if (threadIdx.x < 16) __syncthreads();
  else out[threadIdx.x] = __shfl_sync(kAll, 1, 0);
}
__global__ void two_barriers(int* out) {
  if (threadIdx.x % 2) {
    __syncthreads();
    out[threadIdx.x] = 1;
  } else {
    __syncthreads();
  }
}
__global__ void reads_absent_lane(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0xffffu, 1, 16);
}
__global__ void nothing(int*) {}
__global__ void array_beside_dynamic(int* out) {
  TT_SHARED(int, array, 20 * 256);
  array[threadIdx.x] = 1;
  out[threadIdx.x] = array[threadIdx.x];
}
struct Large {
  char bytes[33000];
};
__global__ void large_argument(Large, int*) {}

// ---- the cases ----

template <Left kLeft, bool kRightAcross, int n> int32_t launch_group(int* out, Fault fault) {
  static GroupProduct<n> product;
  fill_product<kLeft, kRightAcross>(&product);
  const int32_t status = launch(multiply_group<kLeft, kRightAcross, n>, 1, kThreads, product.kBytes,
                                nullptr, &product, fault);
  for (int t = 0; t < kThreads; t++) out[t] = product.out[t];
  return status;
}
template <Left kLeft, bool kRightAcross, int n> bool group_is_right() {
  int out[kThreads] = {};
  if (launch_group<kLeft, kRightAcross, n>(out, kNone)) return false;
  for (int t = 0; t < kThreads; t++)
    if (out[t] != t + 1) return false;
  return true;
}

int run_right() {
  float in[1000], out[8];
  float first[8] = {};
  for (int i = 0; i < 1000; i++) in[i] = 1.0f / float(i + 1);
  for (uint64_t order = 0; order < 3; order++) {
    emu::set_order(order);
    if (launch(sum_blocks, 8, kThreads, 0, nullptr, in, out, 1000)) return 1;
    if (order == 0) memcpy(first, out, sizeof out);
    if (memcmp(first, out, sizeof out)) return 2;
    int data[kThreads];
    for (int i = 0; i < kThreads; i++) data[i] = i;
    if (launch(shift_twice, 1, kThreads, sizeof data, nullptr, data)) return 3;
    for (int i = 0; i < kThreads; i++)
      if (data[i] != (i + 2) % kThreads) return 4;
    int ones[4 * kThreads], parts[4] = {}, total = 0;
    unsigned finished = 0;
    for (int& i : ones) i = 1;
    if (launch(last_block, 4, kThreads, 0, nullptr, ones, parts, &finished, &total)) return 5;
    if (total != 4 * kThreads) return 6;
    alignas(16) uint16_t a[256], b[128];
    float product[128];
    for (int i = 0; i < 256; i++) a[i] = uint16_t(0x3f80 + (i % 7) * 16);
    for (int i = 0; i < 128; i++) b[i] = uint16_t(0x4000 + (i % 5) * 16);
    if (launch(multiply, 1, 32, 0, nullptr, a, b, product)) return 7;
    float again[128];
    if (launch(multiply_copies, 1, 32, 0, nullptr, a, b, again)) return 9;
    if (memcmp(product, again, sizeof again)) return 10;
    if (!group_is_right<kAlong, false, 64>() || !group_is_right<kAlong, true, 128>() ||
        !group_is_right<kAcross, true, 64>() || !group_is_right<kAcross, false, 128>() ||
        !group_is_right<kRegisters, true, 128>() || !group_is_right<kRegisters, false, 64>())
      return 11;
    for (int i = 0; i < 128; i++) {
      float want = 0;
      for (int k = 0; k < 16; k++) {
        const uint32_t x = uint32_t(a[i / 8 * 16 + k]) << 16;
        const uint32_t y = uint32_t(b[k * 8 + i % 8]) << 16;
        float fx, fy;
        memcpy(&fx, &x, 4);
        memcpy(&fy, &y, 4);
        want += fx * fy;
      }
      if (product[i] != want) return 8;
    }
  }
  return 0;
}

struct Case {
  const char* name;
  int32_t (*run)(int* out);
  // What is printed: by the plain build (NULL: wrong values), with ASan, with TSan.
  const char *plain, *asan, *tsan;
};

template <class Kernel> int32_t launch_copies(Kernel* kernel, int* out) {
  static Four in[kThreads];
  for (int i = 0; i < kThreads; i++) in[i] = {{i, i, i, i}};
  return launch(kernel, 1, kThreads, 0, nullptr, out, in);
}

const char kRace[] = "ThreadSanitizer: data race";
const char kFine[] = "status 0";

const Case kCases[] = {
    {"right", [](int*) { return int32_t(run_right()); }, kFine, kFine, kFine},
    {"no_barrier_before_read",
     [](int* out) { return launch(no_barrier_before_read, 1, kThreads, 0, nullptr, out); }, nullptr,
     nullptr, kRace},
    {"no_barrier_after_read",
     [](int* out) { return launch(no_barrier_after_read, 1, kThreads, 0, nullptr, out); }, kFine,
     kFine, kRace},
    {"blocks_share_a_word",
     [](int* out) { return launch(blocks_share_a_word, 2, 32, 0, nullptr, out); }, kFine, kFine,
     kRace},
    {"no_wait_before_read", [](int* out) { return launch_copies(no_wait_before_read, out); },
     "values: -1 -1", "values: -1 -1", "values: -1 -1"},
    {"no_barrier_after_wait", [](int* out) { return launch_copies(no_barrier_after_wait, out); },
     nullptr, nullptr, kRace},
    {"no_barrier_before_copy", [](int* out) { return launch_copies(no_barrier_before_copy, out); },
     kFine, kFine, kRace},
    {"copies_from_an_odd_place",
     [](int* out) { return launch(copies_from_an_odd_place, 1, 32, 0, nullptr, out); },
     "16 aligned bytes", "16 aligned bytes", "16 aligned bytes"},
    {"loads_from_an_odd_place",
     [](int* out) { return launch(loads_from_an_odd_place, 1, 2, 0, nullptr, out, out); },
     "not aligned to 16 bytes", "not aligned to 16 bytes", "not aligned to 16 bytes"},
    {"stores_to_an_odd_place",
     [](int* out) { return launch(stores_to_an_odd_place, 1, 1, 0, nullptr, out); },
     "not aligned to 16 bytes", "not aligned to 16 bytes", "not aligned to 16 bytes"},
    {"word_of_halves",
     [](int* out) {
       return launch(word_of_halves, 1, 2, 0, nullptr, out, reinterpret_cast<uint16_t*>(out));
     },
     "not aligned to 4 bytes", "not aligned to 4 bytes", "not aligned to 4 bytes"},
    {"overrun", [](int* out) { return launch(overrun, 1, kThreads, 0, nullptr, out, 1); },
     "wrote behind a shared array", "use-after-poison", "wrote behind a shared array"},
    {"half_at_barrier", [](int* out) { return launch(half_at_barrier, 1, 32, 0, nullptr, out); },
     "deadlock: 32 of 32 threads wait", "deadlock", "deadlock"},
    {"two_barriers", [](int* out) { return launch(two_barriers, 1, 32, 0, nullptr, out); },
     "at two barriers", "at two barriers", "at two barriers"},
    {"reads_absent_lane",
     [](int* out) { return launch(reads_absent_lane, 1, 32, 0, nullptr, out); },
     "takes no part in it", "takes no part in it", "takes no part in it"},
    {"starts_early", [](int* out) { return device::launch_early(nothing, 1, 1, nullptr, out); },
     "does not wait", "does not wait", "does not wait"},
    {"too_many_threads", [](int* out) { return launch(nothing, 1, 1025, 0, nullptr, out); },
     "more than 1024 threads", "more than 1024 threads", "more than 1024 threads"},
    {"more_threads_than_bounds", [](int* out) { return launch_bounded<7>(out); },
     "than __launch_bounds__", "than __launch_bounds__", "than __launch_bounds__"},
    {"too_many_blocks",
     [](int* out) { return launch(nothing, dim3(1, 65536), 1, 0, nullptr, out); },
     "too many blocks", "too many blocks", "too many blocks"},
    {"no_block", [](int* out) { return launch(nothing, 0, 1, 0, nullptr, out); }, "is empty",
     "is empty", "is empty"},
    {"too_much_shared_memory",
     [](int* out) { return launch(nothing, 1, 1, 228 * 1024, nullptr, out); }, "more than 227 kB",
     "more than 227 kB", "more than 227 kB"},
    {"shared_memory_of_some_devices",
     [](int* out) { return launch(nothing, 1, 1, 100 * 1024, nullptr, out); }, "more than 99 kB",
     "more than 99 kB", "more than 99 kB"},
    {"shared_memory_not_asked_for",
     [](int* out) { return launch(array_beside_dynamic, 1, 1, 32 * 1024, nullptr, out); },
     "has not asked for", "has not asked for", "has not asked for"},
    {"operand_unaligned", [](int* out) { return launch_group<kAlong, true, 128>(out, kUnaligned); },
     "begins at a multiple of 1024", "begins at a multiple of 1024",
     "begins at a multiple of 1024"},
    {"operand_in_other_order",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kOtherOrder); }, nullptr, nullptr,
     nullptr},
    {"operand_of_other_panels",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kOtherPanels); },
     "neither store_operand", "neither store_operand", "neither store_operand"},
    {"no_operand_fence",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kNoOperandFence); },
     "without fence_operands", "without fence_operands", "without fence_operands"},
    {"operand_fence_after_barrier",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kLateFence); },
     "without a barrier after", "without a barrier after", "without a barrier after"},
    {"no_barrier_before_products",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kNoBarrier); },
     "a product reads what", "a product reads what", "a product reads what"},
    {"no_register_fence",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kNoRegisterFence); },
     "without fence_registers", "without fence_registers", "without fence_registers"},
    {"no_commit", [](int* out) { return launch_group<kAlong, true, 128>(out, kNoCommit); },
     "before its products are complete", "before its products are complete",
     "before its products are complete"},
    {"reads_sums_early", [](int* out) { return launch_group<kAlong, true, 128>(out, kReadsEarly); },
     nullptr, nullptr, nullptr},
    {"writes_operand_early",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kWritesEarly); }, nullptr, nullptr,
     kRace},
    {"no_wait_for_products", [](int* out) { return launch_group<kAlong, true, 128>(out, kNoWait); },
     "before its products are complete", "before its products are complete",
     "before its products are complete"},
    {"operand_of_plain_stores",
     [](int* out) { return launch_group<kAlong, true, 128>(out, kPlainStores); },
     "what neither store_operand nor a copy", "what neither store_operand nor a copy",
     "what neither store_operand nor a copy"},
    {"warps_differ", [](int* out) { return launch_group<kAlong, true, 128>(out, kWarpsDiffer); },
     "without a product of its warpgroup", "without a product of its warpgroup",
     "without a product of its warpgroup"},
    {"too_large_argument",
     [](int* out) { return launch(large_argument, 1, 1, 0, nullptr, Large{}, out); },
     "more than 32764 bytes", "more than 32764 bytes", "more than 32764 bytes"},
};

int run_case(const Case& c) {
  alignas(16) static int out[kThreads];
  const int32_t status = c.run(out);
  printf("status %d\n%s\nvalues:", status, status ? emu::last_fault() : "");
  for (int v : out) printf(" %d", v);
  printf("\n");
  return 0;
}

std::string output_of(const char* program, const char* name) {
  int pipes[2];
  if (pipe(pipes)) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipes[1], 1);
    dup2(pipes[1], 2);
    close(pipes[0]);
    execl(program, program, name, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(pipes[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipes[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  close(pipes[0]);
  int status;
  waitpid(child, &status, 0);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  int failed = 0;
  for (const Case& c : kCases) {
    if (argc > 1) {
      if (strcmp(argv[1], c.name) == 0) return run_case(c);
      continue;
    }
    const std::string text = output_of("/proc/self/exe", c.name);
    const char* want = c.plain;
    if (EMU_ASAN) want = c.asan;
    if (EMU_TSAN) want = c.tsan;
    bool found = want && text.find(want) != std::string::npos;
    // The first thread runs first: its neighbour's value is not there yet.
    if (!want) found = text.find("values: 1 2 3") == std::string::npos;
    if (want == kFine && text.find("Sanitizer") != std::string::npos) found = false;
    printf("%-24s %s\n", c.name, found ? "ok" : "FAILED");
    if (found) continue;
    failed = 1;
    printf("wanted \"%s\" in:\n%s\n", want ? want : "other values", text.c_str());
  }
  return failed;
}
