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

// The positions of n random keys in ascending order: by their highest bits to about n / 2 buckets,
// which are sorted by insertion.
struct PermutationPlan {
  int64_t n;
  int32_t shift;  // of a key to its bucket
  const int64_t* keys;
  SortItem* items;  // [n]
  int64_t* starts;  // [buckets + 1], 0
  int64_t* out;
};
static void permute(const PermutationPlan& p) {
  const auto key_of = [&](int64_t i) { return uint64_t(p.keys[i]) ^ uint64_t(1) << 63; };
  const int64_t buckets = int64_t(1) << (64 - p.shift);
  for (int64_t i = 0; i < p.n; i++) p.starts[(key_of(i) >> p.shift) + 1]++;
  for (int64_t b = 0; b < buckets; b++) p.starts[b + 1] += p.starts[b];
  for (int64_t i = 0; i < p.n; i++) {
    const uint64_t key = key_of(i);
    p.items[p.starts[key >> p.shift]++] = {key, i};
  }
  for (int64_t i = 0; i < p.n; i++) {
    const SortItem item = p.items[i];
    int64_t at = i;
    for (; at > 0 && p.items[at - 1].key > item.key; at--) p.items[at] = p.items[at - 1];
    p.items[at] = item;
  }
  for (int64_t i = 0; i < p.n; i++) p.out[i] = p.items[i].index;
}
constexpr Kernel kPermutation = one_pass_kernel<PermutationPlan, permute>("permutation");

static TensorRef permutation(const Tensor& keys) {
  const int64_t n = keys.numel;
  int32_t bits = 1;
  while (int64_t(2) << bits < n) bits++;
  const int64_t buckets = int64_t(1) << bits;
  Workspace items(n * int64_t(sizeof(SortItem)), kCpuDevice);
  Workspace starts((buckets + 1) * 8, kCpuDevice);
  memset(starts.data(), 0, size_t(buckets + 1) * 8);
  TensorRef out = new_tensor(keys.sizes(), Dtype::kI64, kCpuDevice);
  const PermutationPlan plan = {.n = n,
                                .shift = 64 - bits,
                                .keys = keys.as<int64_t>(),
                                .items = reinterpret_cast<SortItem*>(items.data()),
                                .starts = reinterpret_cast<int64_t*>(starts.data()),
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
  TensorRef order = n && takes_one_pass(*keys) ? permutation(*keys)
                                               : sorted_rows(*keys, 0, n, false, false).second;
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
