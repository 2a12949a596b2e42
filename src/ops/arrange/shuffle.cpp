// Channels to pixels and back, and channels in another order: pixel_shuffle, pixel_unshuffle,
// channel_shuffle.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
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
static bool is_channels_last(const Tensor& self) {
  return self.ndim == 4 && has_channels_last_strides(self);
}
// Copies t, whose dimensions 1 to n_channels are channels, and reshapes it to `result`. If `last`,
// channels are innermost in the copy; t is then a batch of images.
static TensorRef merged(const Tensor& t, int64_t n_channels, const Shape& result, bool last) {
  if (!last) return op::reshape(*op::clone(t, TT_CONTIGUOUS), result);
  Shape order({0});
  for (int64_t d = 1 + n_channels; d < t.ndim; d++) order.push_back(d);
  for (int64_t d = 1; d <= n_channels; d++) order.push_back(d);
  const TensorRef dense = op::clone(*op::permute(t, order), TT_CONTIGUOUS);
  const Shape images({result[0], result[2], result[3], result[1]});
  return op::permute(*op::reshape(dense, images), Shape({0, 3, 1, 2}));
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
  const TensorRef turned =
      op::permute(*op::reshape(self, split), order_behind(lead, {0, 3, 1, 4, 2}));
  return merged(*turned, 1, result, is_channels_last(self));
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
  const TensorRef turned =
      op::permute(*op::reshape(self, split), order_behind(lead, {0, 2, 4, 1, 3}));
  return merged(*turned, 3, result, is_channels_last(self));
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
  return merged(*swapped, 2, Shape(self.sizes()), is_channels_last(self));
}

}  // namespace TT_NS::impl
