// Channels to pixels and back, and channels in another order: pixel_shuffle, pixel_unshuffle,
// channel_shuffle.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_image(const Tensor& self) {
  if (self.ndim < 3) fail_arg(TT_SHAPE, "self", "self is {}: must be (…, C, H, W)", self.sizes());
}
// The dimensions [0, lead), then lead + each of `rest`.
static Shape order_behind(int64_t lead, std::initializer_list<int64_t> rest) {
  Shape order;
  for (int64_t d = 0; d < lead; d++) order.push_back(d);
  for (int64_t d : rest) order.push_back(lead + d);
  return order;
}
static TensorRef rearranged(const Tensor& split, const Shape& order, const Shape& result) {
  return op::reshape(*op::clone(*op::permute(split, order), TT_CONTIGUOUS), result);
}

// (…, C r r, H, W) -> (…, C, r, r, H, W) -> (…, C, H, r, W, r).
TensorRef pixel_shuffle(Call, const Tensor& self, int64_t upscale_factor) {
  check_image(self);
  const int64_t r = upscale_factor;
  int64_t pixels, height, width;
  const int64_t channels = self.size(-3);
  if (r < 1 || mul_overflow(r, r, &pixels) || channels % pixels)
    fail_arg(TT_INVALID_ARG, "upscale_factor",
             "upscale_factor is {}, self is {}: its square must divide the number of channels", r,
             self.sizes());
  if (mul_overflow(self.size(-2), r, &height) || mul_overflow(self.size(-1), r, &width))
    fail_arg(TT_INVALID_ARG, "upscale_factor",
             "upscale_factor is {}: a size of the result overflows", r);
  const int64_t lead = self.ndim - 3;
  const int64_t parts[5] = {channels / pixels, r, r, self.size(-2), self.size(-1)};
  const int64_t image[3] = {channels / pixels, height, width};
  Shape split(self.sizes().slice(0, lead));
  Shape result(split);
  split.append(Ints(parts, 5));
  result.append(Ints(image, 3));
  return rearranged(*op::reshape(self, split), order_behind(lead, {0, 3, 1, 4, 2}), result);
}

// (…, C, H r, W r) -> (…, C, H, r, W, r) -> (…, C, r, r, H, W).
TensorRef pixel_unshuffle(Call, const Tensor& self, int64_t downscale_factor) {
  check_image(self);
  const int64_t r = downscale_factor;
  int64_t channels;
  if (r < 1 || self.size(-2) % r || self.size(-1) % r)
    fail_arg(TT_INVALID_ARG, "downscale_factor",
             "downscale_factor is {}, self is {}: must divide the last two sizes", r, self.sizes());
  if (mul_overflow(self.size(-3), r, &channels) || mul_overflow(channels, r, &channels))
    fail_arg(TT_INVALID_ARG, "downscale_factor",
             "downscale_factor is {}: a size of the result overflows", r);
  const int64_t lead = self.ndim - 3;
  const int64_t parts[5] = {self.size(-3), self.size(-2) / r, r, self.size(-1) / r, r};
  const int64_t image[3] = {channels, self.size(-2) / r, self.size(-1) / r};
  Shape split(self.sizes().slice(0, lead));
  Shape result(split);
  split.append(Ints(parts, 5));
  result.append(Ints(image, 3));
  return rearranged(*op::reshape(self, split), order_behind(lead, {0, 2, 4, 1, 3}), result);
}

// (N, groups, C / groups, …) -> (N, C / groups, groups, …).
TensorRef channel_shuffle(Call, const Tensor& self, int64_t groups) {
  if (self.ndim < 3)
    fail_arg(TT_SHAPE, "self", "self is {}: must be (N, C, …) with at least 3 dimensions",
             self.sizes());
  const int64_t channels = self.size(1);
  if (groups < 1 || channels % groups)
    fail_arg(TT_INVALID_ARG, "groups", "groups is {}, self is {}: must divide the {} channels",
             groups, self.sizes(), channels);
  Shape split(self.sizes());
  split[1] = channels / groups;
  split.insert(1, groups);
  TensorRef swapped = op::transpose(*op::reshape(self, split), 1, 2);
  return op::reshape(*op::clone(*swapped, TT_CONTIGUOUS), self.sizes());
}

}  // namespace TT_NS::impl
