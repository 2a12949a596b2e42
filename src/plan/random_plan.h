// Plans of random numbers. A RandomPlan fills a contiguous array; element i depends on (seed,
// offset, i) only. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum RandomKind : int32_t {
  kRandomUniform = 1,      // [0, 1): 11 bits for f16, 8 for bf16, 24 for f32, 53 for f64
  kRandomNormal = 2,       // Box-Muller, pairs within a counter
  kRandomBernoulli = 3,    // 1 with probability p
  kRandomDropout = 4,      // mask and scaled input
  kRandomInteger = 5,      // [low, low + range)
  kRandomExponential = 6,  // of the uniform kernel: -log(1 - u) with 24 or 53 bits
};

// Units are chunks of kRandomChunk elements. functors/philox.h defines the numbering of random
// words. A value of two words takes both from one counter: value i has words 2 s and 2 s + 1 of
// counter 16 (i / 32) + i % 16, s = i / 16 % 2.
struct RandomPlan {
  Stages run;
  int32_t dtype;    // of out (and x)
  int32_t p_dtype;  // of p: f16 bf16 f32 f64
  int64_t n;
  uint64_t seed, offset;
  char* out;
  uint8_t* mask;      // dropout: bool, 1 = kept
  const char* x;      // dropout
  const char* p;      // bernoulli: n probabilities; NULL: a single one, by threshold
  int32_t threshold;  // bernoulli, dropout: 1 (kept) iff the word's upper 24 bits are below it
  // dropout: factor of kept elements; uniform, normal, exponential: factor of the values
  double scale;
  double shift;  // uniform, normal: added to the scaled values
  bool exponential;
  int64_t low;     // integers
  uint64_t range;  // 0: all 2^64
};

constexpr int64_t kRandomChunk = 8192;

// multinomial: draws `samples` positions from each row of n weights, with replacement. Stage 0 sums
// the weights; units: rows. Stage 1 draws; units: [rows][blocks of kMultinomialBlock samples].
struct MultinomialPlan {
  Stages run;
  int64_t rows, n, samples;
  double* sums;           // [rows][n]: the weights, replaced by their running sums
  const double* uniform;  // [rows][samples]: in [0, 1)
  int64_t* out;           // [rows][samples]
};

constexpr int64_t kMultinomialBlock = 4096;

}  // namespace TT_NS
