// What the device itself can do, as lines of JSON, {"name": number}: the ceilings of the other
// measurements. Without a driver it says so and returns 3.
#include <cuda_runtime.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>

namespace {

void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  fprintf(stderr, "probe: %s: %s\n", what, cudaGetErrorString(e));
  exit(e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ? 3 : 1);
}
#define CHECK(call) check(call, #call)

template <int kBytes> struct Parameter { char bytes[kBytes]; };
template <int kBytes> __global__ void nothing(const __grid_constant__ Parameter<kBytes> p) {
  if (p.bytes[0] == 77 && threadIdx.x > 4096) __trap();
}
__global__ void copy(const uint4* in, uint4* out, size_t n) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i];
}

double now_us() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(t).count();
}

// Microseconds of the host for one launch, the median of 21 rounds.
template <int kBytes> void measure_launch(const char* name) {
  constexpr int kRounds = 21, kCalls = 2000;
  Parameter<kBytes> p = {};
  double us[kRounds];
  for (double& u : us) {
    const double begin = now_us();
    for (int i = 0; i < kCalls; i++) nothing<kBytes><<<1, 32>>>(p);
    u = (now_us() - begin) / kCalls;
    CHECK(cudaDeviceSynchronize());
  }
  std::sort(us, us + kRounds);
  printf("{\"%s\": %.3f}\n", name, us[kRounds / 2]);
}

void measure_copy() {
  constexpr size_t kBytes = size_t(1) << 30;
  constexpr int kRounds = 21;
  uint4 *in, *out;
  CHECK(cudaMalloc(&in, kBytes));
  CHECK(cudaMalloc(&out, kBytes));
  CHECK(cudaMemset(in, 1, kBytes));
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  float ms[kRounds];
  for (float& m : ms) {
    CHECK(cudaEventRecord(start));
    copy<<<2048, 512>>>(in, out, kBytes / sizeof(uint4));
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&m, start, stop));
  }
  std::sort(ms, ms + kRounds);
  printf("{\"copy, GB/s\": %.1f}\n", 2.0 * double(kBytes) / double(ms[kRounds / 2]) / 1e6);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

}  // namespace

int main() {
  const double begin = now_us();
  CHECK(cudaFree(nullptr));
  printf("{\"start of the context, ms\": %.1f}\n", (now_us() - begin) / 1000);
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  printf("{\"device\": \"%s\"}\n{\"multiprocessors\": %d}\n", p.name, p.multiProcessorCount);
  measure_copy();
  measure_launch<200>("launch of 200 bytes, us");
  measure_launch<2800>("launch of 2800 bytes, us");
  measure_launch<32000>("launch of 32000 bytes, us");
  return 0;
}
