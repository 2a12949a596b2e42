#include "data/sampler.h"

#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

// The epochs of a seed draw from different parts of its stream.
constexpr int kEpochBits = 30;

void Sampler::destroy(Sampler* s) noexcept {
  s->tag = 0;
  s->~Sampler();
  mem_retire(s, sizeof *s);
}

static Ref<Sampler> new_sampler(SamplerKind kind, int64_t n, int64_t length, int64_t seed) {
  if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
  auto* s = new (mem_alloc(sizeof(Sampler))) Sampler{};
  s->tag = kTagSampler;
  s->refs = 1;
  s->kind = kind;
  s->n = n;
  s->length = length;
  s->state = {seed, 0, 0};
  s->drawn_epoch = -1;
  return Ref<Sampler>::adopt(s);
}

Ref<Sampler> sequential_sampler(int64_t n) {
  return new_sampler(SamplerKind::kSequential, n, n, 0);
}

Ref<Sampler> random_sampler(int64_t n, bool replacement, int64_t length, int64_t seed) {
  if (length > 0 && !n)
    fail_arg(TT_INVALID_ARG, "num_samples", "num_samples is {}, but there are no samples", length);
  Ref<Sampler> s = new_sampler(SamplerKind::kRandom, n, length < 0 ? n : length, seed);
  s->replacement = replacement;
  return s;
}

Ref<Sampler> weighted_sampler(Span<const double> weights, int64_t length, bool replacement,
                              int64_t seed) {
  if (length < 0)
    fail_arg(TT_INVALID_ARG, "num_samples", "num_samples is {}: must not be negative", length);
  int64_t positive = 0;
  for (int64_t i = 0; i < weights.n; i++) {
    if (!(weights[i] >= 0 && weights[i] <= 1.7976931348623157e308))
      fail_arg(TT_INVALID_ARG, "weights", "weights[{}] is {}: must be finite and not negative", i,
               weights[i]);
    positive += weights[i] > 0;
  }
  if (length && (!positive || (!replacement && length > positive)))
    fail_arg(TT_INVALID_ARG, "num_samples",
             "num_samples is {}: only {} of the weights are positive", length, positive);
  Ref<Sampler> s = new_sampler(SamplerKind::kWeighted, weights.n, length, seed);
  s->replacement = replacement;
  s->weights = new_tensor({&weights.n, 1}, Dtype::kF64, kCpuDevice);
  if (weights.n) memcpy(s->weights->data, weights.ptr, size_t(weights.n) * sizeof(double));
  return s;
}

Ref<Sampler> subset_sampler(Ints indices, bool shuffle, int64_t seed) {
  Ref<Sampler> s = new_sampler(SamplerKind::kSubset, indices.n, indices.n, seed);
  s->shuffle = shuffle;
  s->indices.append(indices);
  return s;
}

Ref<Sampler> distributed_sampler(int64_t n, int32_t rank, int32_t size, bool shuffle,
                                 bool drop_last, int64_t seed) {
  if (size < 1) fail_arg(TT_INVALID_ARG, "size", "size is {}: must be positive", size);
  if (rank < 0 || rank >= size)
    fail_arg(TT_INVALID_ARG, "rank", "rank is {}: must be 0 to {}", rank, size - 1);
  const int64_t whole = n / size;
  const int64_t length = whole + (!drop_last && n % size > 0);
  Ref<Sampler> s = new_sampler(SamplerKind::kDistributed, n, length, seed);
  s->shuffle = shuffle;
  s->rank = rank;
  s->size = size;
  return s;
}

static void append_values(SmallVec<int64_t, 1>& to, const Tensor& t) {
  to.append({t.as<const int64_t>(), t.numel});
}

// Draws the order of the epoch. The caller holds the mutex.
static void draw(Sampler& s) {
  const bool may_shuffle = s.kind == SamplerKind::kSubset || s.kind == SamplerKind::kDistributed;
  const bool in_order = s.kind == SamplerKind::kSequential || (may_shuffle && !s.shuffle);
  if (s.drawn_epoch == s.state.epoch) return;
  MaskGuard quiet(bit(kKeyAutograd));
  Ref<Generator> g = new_generator(uint64_t(s.state.seed));
  g->set({uint64_t(s.state.seed), uint64_t(s.state.epoch) << (64 - kEpochBits)});
  SmallVec<int64_t, 1> order;
  const Opt<Device> cpu = kCpuDevice;
  if (in_order || !s.length) {
    // no order is stored
  } else if (s.kind == SamplerKind::kWeighted) {
    append_values(order, *op::multinomial(*s.weights, s.length, s.replacement, g.get()));
  } else if (s.kind == SamplerKind::kDistributed) {
    append_values(order, *op::randperm(s.n, Dtype::kI64, cpu, g.get()));
  } else if (s.replacement) {
    const Ints length{&s.length, 1};
    append_values(order, *op::randint(0, s.n, length, Dtype::kI64, cpu, g.get()));
  } else {
    while (order.size() < s.length)
      append_values(order, *op::randperm(s.n, Dtype::kI64, cpu, g.get()));
    order.resize(s.length);
  }
  s.order = std::move(order);
  s.drawn_epoch = s.state.epoch;
}

int64_t sampler_next(Sampler& s, int64_t* out, int64_t n) {
  Lock lock(s.mutex);
  const int64_t count = min(n, s.length - s.state.position);
  if (count <= 0 && n > 0) {
    s.state = {s.state.seed, s.state.epoch + 1, 0};
    return 0;
  }
  draw(s);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = s.state.position + i;
    if (s.kind == SamplerKind::kDistributed) at = (s.rank + at * s.size) % s.n;
    const int64_t chosen = s.order.empty() ? at : s.order[at];
    out[i] = s.kind == SamplerKind::kSubset ? s.indices[chosen] : chosen;
  }
  s.state.position += count;
  return count;
}

SamplerState sampler_state(Sampler& s) noexcept {
  Lock lock(s.mutex);
  return s.state;
}

void sampler_set_state(Sampler& s, const SamplerState& state) {
  if (state.epoch < 0 || state.epoch >= int64_t(1) << kEpochBits)
    fail_arg(TT_INVALID_ARG, "state", "the epoch is {}: must be 0 to 2^{} - 1", state.epoch,
             kEpochBits);
  if (state.position < 0 || state.position > s.length)
    fail_arg(TT_INVALID_ARG, "state", "the position is {}: an epoch has {} samples", state.position,
             s.length);
  Lock lock(s.mutex);
  if (state.seed != s.state.seed) s.drawn_epoch = -1;
  s.state = state;
}

}  // namespace TT_NS
