// Generator: seed and position of a Philox4x32-10 stream (Salmon et al., SC'11).
#pragma once

#include "base/ref.h"
#include "core/tensor.h"

namespace TT_NS {

// What a random kernel or a gradient formula needs to draw the same numbers again.
struct Rng {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in counters of four 32-bit words
};

struct Generator {
  uint32_t tag;
  RefCount refs;
  Rng next;
  static void destroy(Generator*) noexcept;
};

Ref<Generator> new_generator(uint64_t seed);

}  // namespace TT_NS
