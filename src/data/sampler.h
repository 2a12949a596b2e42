// Sampler: the order of the samples of an epoch, which follows from {seed, epoch}.
#pragma once

#include "base/ref.h"
#include "core/ctx.h"
#include "core/tensor.h"

namespace TT_NS {

enum class SamplerKind : int32_t {
  kSequential,   // 0, 1, …
  kRandom,       // permutations; with replacement independent draws
  kWeighted,     // drawn by weights
  kSubset,       // of given indices, in their order or permuted
  kDistributed,  // those of one process, of an order of all indices
};

// Where a sampler is: the next index is number `position` of the epoch.
struct SamplerState {
  int64_t seed, epoch, position;
};

struct Sampler {
  uint32_t tag;
  RefCount refs;
  SamplerKind kind;
  bool replacement;
  bool shuffle;                  // (kSubset, kDistributed)
  int32_t rank, size;            // (kDistributed)
  int64_t n;                     // samples to choose from
  int64_t length;                // indices of an epoch
  TensorRef weights;             // (kWeighted) float64
  SmallVec<int64_t, 1> indices;  // (kSubset)
  Mutex mutex;                   // guards the fields below
  SamplerState state;
  int64_t drawn_epoch;         // of `order`; -1: none
  SmallVec<int64_t, 1> order;  // empty where the order is 0, 1, … or that of the indices
  static void destroy(Sampler*) noexcept;
};

// All fail with INVALID_ARG or OOM.
Ref<Sampler> sequential_sampler(int64_t n);
// length < 0: n
Ref<Sampler> random_sampler(int64_t n, bool replacement, int64_t length, int64_t seed);
Ref<Sampler> weighted_sampler(Span<const double> weights, int64_t length, bool replacement,
                              int64_t seed);
Ref<Sampler> subset_sampler(Ints indices, bool shuffle, int64_t seed);
Ref<Sampler> distributed_sampler(int64_t n, int32_t rank, int32_t size, bool shuffle,
                                 bool drop_last, int64_t seed);

// Writes the next indices, at most n, and returns their number. 0: the epoch has ended, and the
// next one begins.
int64_t sampler_next(Sampler& s, int64_t* out, int64_t n);
SamplerState sampler_state(Sampler& s) noexcept;
void sampler_set_state(Sampler& s, const SamplerState& state);  // fails with INVALID_ARG

}  // namespace TT_NS
