// multinomial: positions by weight, with replacement. A block turns the weights of a row into their
// running sums: each thread adds a run of neighbours to the sum of those before it, so that sums
// never descend and a weight of 0 leaves them as they are. Then a thread draws each sample.
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "plan/random_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) sum_weights(double* sums, int64_t rows, int64_t n) {
  TT_SHARED(double, before, kThreads);
  const int thread = int(threadIdx.x);
  const int64_t each = (n + kThreads - 1) / kThreads;
  const int64_t begin = thread * each < n ? thread * each : n;
  const int64_t end = begin + each < n ? begin + each : n;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    double* const row = sums + r * n;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += row[i];
    before[thread] = sum;
    __syncthreads();
    if (thread == 0) {
      double all = 0;
      for (int t = 0; t < kThreads; t++) {
        const double next = all + before[t];
        before[t] = all;
        all = next;
      }
    }
    __syncthreads();
    sum = 0;
    for (int64_t i = begin; i < end; i++) {
      sum += row[i];
      row[i] = before[thread] + sum;
    }
    __syncthreads();
  }
}

// The first position whose sum exceeds x. A weight of 0 is never sampled.
__global__ void __launch_bounds__(kThreads) sample(const __grid_constant__ MultinomialPlan p) {
  for (int64_t i = first_item(); i < p.rows * p.samples; i += item_step()) {
    const double* sums = p.sums + quotient(i, p.samples) * p.n;
    const double x = p.uniform[i] * sums[p.n - 1];
    int64_t low = 0;
    int64_t high = p.n - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sums[middle] > x) high = middle;
      else low = middle + 1;
    }
    while (low > 0 && sums[low] == sums[low - 1]) low--;  // x was rounded up to the total
    p.out[i] = low;
  }
}

}  // namespace

namespace cuda {

int32_t multinomial(const void* plan, void* stream, void*) {
  const MultinomialPlan& p = *static_cast<const MultinomialPlan*>(plan);
  if (p.rows == 0 || p.n == 0) return TT_OK;
  const int32_t status =
      device::launch(sum_weights, grid_of(p.rows, 1), kThreads, 0, stream, p.sums, p.rows, p.n);
  if (status != TT_OK || p.samples == 0) return status;
  return device::launch(sample, grid_of(p.rows * p.samples, kThreads), kThreads, 0, stream, p);
}

}  // namespace cuda
}  // namespace TT_NS
