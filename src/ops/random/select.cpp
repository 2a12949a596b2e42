// Random selections: randperm, multinomial.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "ops/one_pass.h"
#include "ops/sort/sort.h"
#include "plan/random_build.h"
#include "plan/sort_plan.h"

#include <string.h>

namespace TT_NS::impl {

// Sorts the positions of n random keys by key. The highest bits of a key choose one of the parts,
// of about kPart items each, and the next bits a bucket of the part, which fits in the first cache.
constexpr int64_t kPart = 1024, kMostOfPart = 2 * kPart, kMostKeys = kPart << 16;
constexpr int32_t kMostBucketBits = 11;

// An item has the 32 bits of a key that follow those of its part, then the position.
struct PermutationPlan {
  int64_t n;
  int32_t part_bits;
  const int64_t* keys;
  uint64_t* items;  // [n]
  int64_t* ends;    // [parts]
  int64_t* out;
};
static TT_INLINE uint64_t key_of(const PermutationPlan& p, uint64_t position) {
  return uint64_t(p.keys[position]) ^ uint64_t(1) << 63;
}
static TT_INLINE bool is_after(const PermutationPlan& p, uint64_t a, uint64_t b) {
  if (TT_LIKELY((a ^ b) >> 32)) return a > b;
  return key_of(p, uint32_t(a)) > key_of(p, uint32_t(b));
}
static void sort_by_insertion(const PermutationPlan& p, uint64_t* items, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const uint64_t item = items[i];
    int64_t at = i;
    for (; at > 0 && is_after(p, items[at - 1], item); at--) items[at] = items[at - 1];
    items[at] = item;
  }
}
static void sort_part(const PermutationPlan& p, uint64_t* items, int64_t n, int64_t* out) {
  uint64_t sorted[kMostOfPart];
  if (TT_LIKELY(n <= kMostOfPart)) {
    int32_t bits = 1;
    while (bits < kMostBucketBits && int64_t(1) << bits < 2 * n) bits++;
    const int32_t shift = 64 - bits;
    const int64_t buckets = int64_t(1) << bits;
    uint16_t starts[1 << kMostBucketBits];
    memset(starts, 0, size_t(buckets) * sizeof starts[0]);
    for (int64_t i = 0; i < n; i++) starts[items[i] >> shift]++;
    uint32_t start = 0;
    for (int64_t b = 0; b < buckets; b++) {
      const uint32_t size = starts[b];
      starts[b] = uint16_t(start);
      start += size;
    }
    for (int64_t i = 0; i < n; i++) sorted[starts[items[i] >> shift]++] = items[i];
    items = sorted;
  }
  sort_by_insertion(p, items, n);
  for (int64_t i = 0; i < n; i++) out[i] = uint32_t(items[i]);
}
static void permute(const PermutationPlan& p) {
  if (p.part_bits == 0) {
    for (int64_t i = 0; i < p.n; i++) p.items[i] = key_of(p, uint64_t(i)) >> 32 << 32 | uint64_t(i);
    return sort_part(p, p.items, p.n, p.out);
  }
  const int64_t parts = int64_t(1) << p.part_bits;
  const int32_t shift = 64 - p.part_bits;
  const auto part_of = [&](uint64_t key) { return int64_t(key >> shift); };
  memset(p.ends, 0, size_t(parts) * sizeof p.ends[0]);
  for (int64_t i = 0; i < p.n; i++) p.ends[part_of(key_of(p, uint64_t(i)))]++;
  int64_t start = 0;
  for (int64_t part = 0; part < parts; part++) {
    const int64_t size = p.ends[part];
    p.ends[part] = start;
    start += size;
  }
  for (int64_t i = 0; i < p.n; i++) {
    const uint64_t key = key_of(p, uint64_t(i));
    const uint64_t below = key << p.part_bits >> 32 << 32;
    p.items[p.ends[part_of(key)]++] = below | uint64_t(i);
  }
  start = 0;
  for (int64_t part = 0; part < parts; part++) {
    sort_part(p, p.items + start, p.ends[part] - start, p.out + start);
    start = p.ends[part];
  }
}
constexpr Kernel kPermutation = one_pass_kernel<PermutationPlan, permute>("permutation");

static TensorRef permutation(const Tensor& keys) {
  const int64_t n = keys.numel;
  int32_t part_bits = 0;
  while (kPart << part_bits < n) part_bits++;
  Workspace items(n * 8, kCpuDevice);
  Workspace ends(int64_t(8) << part_bits, kCpuDevice);
  TensorRef out = new_tensor(keys.sizes(), Dtype::kI64, kCpuDevice);
  const PermutationPlan plan = {.n = n,
                                .part_bits = part_bits,
                                .keys = keys.as<int64_t>(),
                                .items = reinterpret_cast<uint64_t*>(items.data()),
                                .ends = reinterpret_cast<int64_t*>(ends.data()),
                                .out = out->as<int64_t>()};
  launch(kPermutation, kCpuDevice, &plan, 1);
  return out;
}

TensorRef randperm(Call, int64_t n, Dtype dtype, Opt<Device> device, Generator* generator) {
  if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
  if (dtype == Dtype::kNone) dtype = Dtype::kI64;
  if (is_complex(dtype) || dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "dtype", "dtype is {}: must be real, and not bool", fmt(dtype));
  if (n && !fits(Scalar(n - 1), dtype))
    fail_arg(TT_INVALID_ARG, "n", "n is {}: n - 1 is not a value of {}", n, fmt(dtype));
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef keys = op::empty(Ints(&n, 1), Dtype::kI64, device.or_else(kCpuDevice));
  op::random_(*keys, INT64_MIN, {}, generator);
  const bool in_parts = n && n <= kMostKeys && takes_one_pass(*keys);
  TensorRef order = in_parts ? permutation(*keys) : sorted_rows(*keys, 0, n, false, false).second;
  return dtype == Dtype::kI64 ? std::move(order) : op::to_dtype(*order, dtype);
}

static void check_weights(const Tensor& p, int64_t samples, bool replacement) {
  if (!is_float(p.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: weights must be floating", fmt(p.dtype));
  if (p.ndim < 1 || p.ndim > 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have 1 or 2 dimensions", p.sizes());
  if (samples <= 0)
    fail_arg(TT_INVALID_ARG, "num_samples", "num_samples is {}: must be positive", samples);
  if (p.size(-1) == 0 || p.size(-1) > 1 << 24)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: rows must have 1 to 2^24 weights", p.sizes());
  if (!replacement && samples > p.size(-1))
    fail_arg(TT_INVALID_ARG, "num_samples",
             "num_samples is {}, self is {}: must be at most the row length without replacement",
             samples, p.sizes());
  if (p.numel == 0 || p.device.type == TT_META) return;
  require_each(*op::logical_and(*op::ge(p, 0), *op::lt(p, kInf)), p, "self",
               "self has weights that are negative, infinite or nan");
  const int64_t last[1] = {-1};
  require(*op::all(op::gt(*op::amax(p, last), 0)), TT_INVALID_ARG, "self",
          "self has a row without a positive weight");
}

// Exponential race: selects the positions with the largest weight / e, one after the other, without
// repetition.
static TensorRef race(const Tensor& p, int64_t samples, Generator* generator) {
  TensorRef wide = p.dtype == Dtype::kF64 ? TensorRef::share(&p) : op::to_dtype(p, Dtype::kF32);
  TensorRef e = op::empty(p.sizes(), wide->dtype, p.device);
  op::exponential_(*e, 1, generator);
  return sorted_rows(*op::div_true(*wide, *e), p.ndim - 1, samples, true, false).second;
}

static TensorRef by_weight(const Tensor& p, int64_t samples, Generator* generator) {
  const int64_t rows = p.ndim == 2 ? p.size(0) : 1;
  Shape shape(p.sizes());
  shape[p.ndim - 1] = samples;
  checked_numel(shape, Dtype::kI64, "num_samples");
  TensorRef sums = new_tensor(p.sizes(), Dtype::kF64, p.device);
  TensorRef out = new_tensor(shape, Dtype::kI64, p.device);
  copy_elements(*sums, p);
  TensorRef uniform = op::rand(shape, Dtype::kF64, p.device, generator);
  if (out->numel) {
    MultinomialPlan plan;
    build_multinomial(&plan, rows, p.size(-1), samples);
    plan.sums = sums->as<double>();
    plan.uniform = uniform->as<double>();
    plan.out = out->as<int64_t>();
    launch_stages(kernel_multinomial, p.device, &plan.run);
  }
  return out;
}

TensorRef multinomial(Call, const Tensor& self, int64_t num_samples, bool replacement,
                      Generator* generator) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_weights(self, num_samples, replacement);
  return replacement && num_samples > 1 ? by_weight(self, num_samples, generator)
                                        : race(self, num_samples, generator);
}

}  // namespace TT_NS::impl
