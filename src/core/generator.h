// Generator: seed and position of a Philox4x32-10 stream (Salmon et al., SC'11).
#pragma once

#include "base/os.h"
#include "base/ref.h"
#include "core/tensor.h"

namespace TT_NS {

// State with which a random kernel or a gradient formula reproduces the same numbers.
struct Rng {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in counters of four 32-bit words
};

// Seed of stream `number`: the given seed for 0, else seed XOR the number-th output of SplitMix64
// started at 0 (Steele, Lea, Flood, OOPSLA 2014), a bijection that maps 0 to 0. All streams differ.
constexpr uint64_t stream_seed(uint64_t seed, uint64_t number) {
  uint64_t z = number * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return seed ^ z ^ (z >> 31);
}

// Threads may share one: each draw gets its own numbers.
struct Generator {
  uint32_t tag;
  RefCount refs;
  mutable Mutex mutex;
  Rng next;  // under mutex

  Rng state() const noexcept {
    Lock lock(mutex);
    return next;
  }
  void set(const Rng& to) noexcept {
    Lock lock(mutex);
    next = to;
  }
  // Reserves `counters` counters and returns the first.
  Rng take(uint64_t counters) noexcept {
    Lock lock(mutex);
    const Rng begin = next;
    next.offset += counters;
    return begin;
  }
  // Returns unused counters; they are lost if another draw came in between.
  void give_back(const Rng& begin, uint64_t counters) noexcept {
    Lock lock(mutex);
    if (next.seed == begin.seed && next.offset == begin.offset + counters) next = begin;
  }
  static void destroy(Generator*) noexcept;
};

Ref<Generator> new_generator(uint64_t seed);

}  // namespace TT_NS
