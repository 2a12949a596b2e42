// multinomial: samples positions by weight, with replacement.
//   sums: (rows, n), weights that stage 0 replaces by their cumulative sums
//   uniform: (rows, samples) in [0, 1); out: (rows, samples) positions
#include "kernels/cpu/random/random.h"

#include "plan/random_plan.h"

TT_ISA_BEGIN

// The first position whose cumulative sum exceeds x. A weight of 0 is never sampled.
TT_INLINE int64_t sample_position(const double* sums, int64_t n, double x) {
  int64_t low = 0;
  int64_t high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sums[middle] > x) high = middle;
    else low = middle + 1;
  }
  while (low > 0 && sums[low] == sums[low - 1]) low--;  // x was rounded up to the total
  return low;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(multinomial)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MultinomialPlan& p = *static_cast<const MultinomialPlan*>(plan);
  const int64_t blocks = ceil_div(p.samples, kMultinomialBlock);
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) {
      double* sums = p.sums + u * p.n;
      for (int64_t i = 1; i < p.n; i++) sums[i] += sums[i - 1];
      continue;
    }
    const int64_t row = u / blocks;
    const int64_t first = u % blocks * kMultinomialBlock;
    const int64_t rest = p.samples - first;
    const double* sums = p.sums + row * p.n;
    const double* uniform = p.uniform + row * p.samples + first;
    int64_t* out = p.out + row * p.samples + first;
    for (int64_t i = 0; i < min(rest, kMultinomialBlock); i++)
      out[i] = sample_position(sums, p.n, uniform[i] * sums[p.n - 1]);
  }
  return TT_OK;
}

TT_ENTRY_END
