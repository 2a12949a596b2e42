// Entry points over a RandomPlan, and multinomial over a MultinomialPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

// f16 bf16 f32 f64
TT_KERNEL(random_uniform)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(random_normal)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(random_dropout)(const void* plan, int64_t begin, int64_t end) noexcept;
// 0 or 1 of any dtype
TT_KERNEL(random_bernoulli)(const void* plan, int64_t begin, int64_t end) noexcept;
// any real dtype
TT_KERNEL(random_integers)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(multinomial)(const void* plan, int64_t begin, int64_t end) noexcept;

// Writes the words of `groups` groups of 64; the first group begins at `counter`.
void random_words(uint32_t* out, uint64_t seed, uint64_t counter, int64_t groups) noexcept;

TT_ENTRY_END
