// Builds the plans of random numbers and counts the generator's counters that they use.
#pragma once

#include "plan/random_plan.h"
#include "plan/rows.h"

namespace TT_NS {

// Number of random words per value.
inline int64_t random_words(RandomKind kind, int32_t dtype, uint64_t range) {
  if (kind == kRandomUniform || kind == kRandomNormal || kind == kRandomExponential)
    return dtype == TT_F64 ? 2 : 1;
  if (kind == kRandomInteger) return range == 0 || range > (uint64_t(1) << 32) ? 2 : 1;
  return 1;
}

// Distance by which n values advance the generator's offset.
inline uint64_t random_counters(int64_t n, RandomKind kind, int32_t dtype, uint64_t range = 1) {
  const uint64_t groups = (uint64_t(n) * uint64_t(random_words(kind, dtype, range)) + 63) / 64;
  return groups * 16;
}

// p is the probability of 1. Returns whether it is in [0, 1].
inline bool random_threshold(double p, int32_t* threshold) {
  if (!(p >= 0 && p <= 1)) return false;
  const double t = p * 16777216.0;
  int32_t k = int32_t(t);
  if (double(k) < t) k++;
  *threshold = k;
  return true;
}

// Fills all but the kind's own fields: uniform and normal scale, shift, exponential; bernoulli p,
// p_dtype or threshold; dropout x, mask, threshold (of 1 - p), scale; integers low, range.
inline void build_random(RandomPlan* r, int32_t dtype, int64_t n, uint64_t seed, uint64_t offset,
                         void* out) {
  r->dtype = dtype;
  r->p_dtype = 0;
  r->n = n;
  r->seed = seed;
  r->offset = offset;
  r->out = static_cast<char*>(out);
  r->mask = nullptr;
  r->x = r->p = nullptr;
  r->threshold = 0;
  r->scale = 1;
  r->shift = 0;
  r->exponential = false;
  r->low = 0;
  r->range = 1;
  one_stage(&r->run, ceil_div(n, kRandomChunk), 4);
}

// Fills all but the pointers.
inline void build_multinomial(MultinomialPlan* p, int64_t rows, int64_t n, int64_t samples) {
  p->rows = rows;
  p->n = n;
  p->samples = samples;
  const int64_t blocks = ceil_div(samples, kMultinomialBlock);
  one_stage(&p->run, rows, row_grain(n));
  p->run.n = 2;
  p->run.units[1] = rows * blocks;
  p->run.grain[1] = samples < kMultinomialBlock ? row_grain(16 * samples) : 1;
}

}  // namespace TT_NS
