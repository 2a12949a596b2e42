// Generator: seed and position of a Philox4x32-10 stream (Salmon et al., SC'11).
#pragma once

#include "base/os.h"
#include "base/ref.h"
#include "core/tensor.h"

namespace TT_NS {

// What a random kernel or a gradient formula needs to draw the same numbers again.
struct Rng {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in counters of four 32-bit words
};

// Threads may draw from one at once: each draw has numbers of its own.
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
  // Moves on by so many counters; where they begin.
  Rng take(uint64_t counters) noexcept {
    Lock lock(mutex);
    const Rng begin = next;
    next.offset += counters;
    return begin;
  }
  // What was taken, unused; lost if somebody has drawn since.
  void give_back(const Rng& begin, uint64_t counters) noexcept {
    Lock lock(mutex);
    if (next.seed == begin.seed && next.offset == begin.offset + counters) next = begin;
  }
  static void destroy(Generator*) noexcept;
};

Ref<Generator> new_generator(uint64_t seed);

}  // namespace TT_NS
