// pool_max_interleaved and its backward: windows of 2 x 2, side by side, of images in the layout of
// convolutions of few channels. A vector holds one element of several images, so that nothing is
// shuffled:
//
//   x   [block of 16 images][rows][columns][channels][16 images]
//   y   the same, or (n, channels, rows, columns): 16 pixels of a channel are transposed at a time
//
// Maxima are joined in the order of pool_max: rows first, then columns. relu behind them, and its
// gradient, are computed with them.
#include "kernels/cpu/conv/image_blocks.h"
#include "plan/pool_plan.h"

TT_ISA_BEGIN

using V = Vec<float>;
constexpr int kL = kLanes<float>;

TT_INLINE V larger(V m, V v) {
  const V top = chosen(v > m, v, m);
  return chosen(v != v, v, top);
}

struct Windows {
  const PoolInterleavedPlan& p;
  const int64_t pixel, row, column;  // elements of a pixel and a row of x; of a window
  const int64_t plane;               // results of an image's channel
  const V zeroed;                    // maxima up to it become 0; nan: none do
  alignas(64) float tile[kImages * kImages];

  explicit Windows(const PoolInterleavedPlan& plan)
      : p(plan),
        pixel(plan.c * kImages),
        row(plan.in[1] * pixel),
        column(2 * pixel),
        plane(plan.out[0] * plan.out[1]),
        zeroed(splat(plan.relu ? 0.0f : float(kNan))) {}

  // Where the window of result i of block b begins.
  TT_INLINE int64_t at(int64_t b, int64_t i) const {
    return (b * p.in[0] + i / p.out[1] * 2) * row + i % p.out[1] * column;
  }
  TT_INLINE void max_of(const float* x, float* y) const {
    for (int l = 0; l < kImages; l += kL) {
      const V low = larger(load(x + l), load(x + row + l));
      const V high = larger(load(x + pixel + l), load(x + row + pixel + l));
      const V top = larger(low, high);
      store(y + l, chosen(top <= zeroed, V{}, top));
    }
  }
  // dx gets g at the largest element, the first of equal ones or the last nan, else 0.
  TT_INLINE void gradient_of(const float* x, const float* g, float* dx) const {
    const V none = {};
    for (int l = 0; l < kImages; l += kL) {
      const V v0 = load(x + l);
      const V v1 = load(x + pixel + l);
      const V v2 = load(x + row + l);
      const V v3 = load(x + row + pixel + l);
      const auto k1 = (v1 > v0) | (v1 != v1);
      const V best1 = chosen(k1, v1, v0);
      const auto k2 = (v2 > best1) | (v2 != v2);
      const V best2 = chosen(k2, v2, best1);
      const auto k3 = (v3 > best2) | (v3 != v3);
      const V best3 = chosen(k3, v3, best2);
      const V grad = chosen(best3 <= zeroed, none, load(g + l));
      const V left3 = chosen(k3, none, grad);
      const V left2 = chosen(k2, none, left3);
      store(dx + l, chosen(k1, none, left2));
      store(dx + pixel + l, chosen(k1, left2, none));
      store(dx + row + l, chosen(k2, left3, none));
      store(dx + row + pixel + l, chosen(k3, grad, none));
    }
  }

  // Results [i, i + n) of a row or of a channel, n <= kImages.
  void row_max(int64_t b, int64_t o) const {
    const float* x = reinterpret_cast<const float*>(p.x) + at(b, o * p.out[1]);
    float* y = reinterpret_cast<float*>(p.y) + (b * plane + o * p.out[1]) * pixel;
    for (int64_t w = 0; w < p.out[1]; w++, x += column, y += pixel)
      for (int64_t c = 0; c < pixel; c += kImages) max_of(x + c, y + c);
  }
  void channel_max(int64_t b, int64_t c) {
    const float* x = reinterpret_cast<const float*>(p.x) + c * kImages;
    float* y = reinterpret_cast<float*>(p.y) + (b * kImages * p.c + c) * plane;
    alignas(64) float images[kImages * kImages];
    for (int64_t i = 0; i < plane; i += kImages) {
      const int64_t n = min<int64_t>(plane - i, kImages);
      for (int64_t k = 0; k < n; k++) max_of(x + at(b, i + k), tile + k * kImages);
      if (n == kImages) {
        transpose_block<kImages>(y + i, p.c * plane, tile, kImages);
        continue;
      }
      transpose_block<kImages>(images, kImages, tile, kImages);
      for (int64_t k = 0; k < kImages; k++)
        memcpy(y + k * p.c * plane + i, images + k * kImages, size_t(n) * 4);
    }
  }

  // Zeroes channels [c, c + n) of the last row and column of block b if no window covers them.
  void clear_rest(int64_t b, int64_t c, int64_t n) const {
    float* dx = reinterpret_cast<float*>(p.y) + b * p.in[0] * row;
    for (int64_t r = 0; r < p.in[0]; r++) {
      const int64_t covered = r < 2 * p.out[0] ? 2 * p.out[1] : 0;
      for (int64_t w = covered; w < p.in[1]; w++) {
        float* to = dx + r * row + w * pixel;
        for (int64_t i = c * kImages; i < (c + n) * kImages; i += kL) store(to + i, V{});
      }
    }
  }
  void row_gradient(int64_t b, int64_t o) const {
    const int64_t first = at(b, o * p.out[1]);
    const float* x = reinterpret_cast<const float*>(p.x) + first;
    const float* g = reinterpret_cast<const float*>(p.g) + (b * plane + o * p.out[1]) * pixel;
    float* dx = reinterpret_cast<float*>(p.y) + first;
    for (int64_t w = 0; w < p.out[1]; w++, x += column, g += pixel, dx += column)
      for (int64_t c = 0; c < pixel; c += kImages) gradient_of(x + c, g + c, dx + c);
    if (o == 0) clear_rest(b, 0, p.c);
  }
  void channel_gradient(int64_t b, int64_t c) {
    const float* x = reinterpret_cast<const float*>(p.x) + c * kImages;
    const float* g = reinterpret_cast<const float*>(p.g) + (b * kImages * p.c + c) * plane;
    float* dx = reinterpret_cast<float*>(p.y) + c * kImages;
    alignas(64) float images[kImages * kImages] = {};
    for (int64_t i = 0; i < plane; i += kImages) {
      const int64_t n = min<int64_t>(plane - i, kImages);
      if (n == kImages) {
        transpose_block<kImages>(tile, kImages, g + i, p.c * plane);
      } else {
        for (int64_t k = 0; k < kImages; k++)
          memcpy(images + k * kImages, g + k * p.c * plane + i, size_t(n) * 4);
        transpose_block<kImages>(tile, kImages, images, kImages);
      }
      for (int64_t k = 0; k < n; k++) {
        const int64_t window = at(b, i + k);
        gradient_of(x + window, tile + k * kImages, dx + window);
      }
    }
    clear_rest(b, c, 1);
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(pool_max_interleaved)(const void* plan, int64_t begin, int64_t end) noexcept {
  const auto& p = *static_cast<const PoolInterleavedPlan*>(plan);
  Windows windows(p);
  const int64_t parts = p.y_interleaved ? p.out[0] : p.c;
  for (int64_t u = begin; u < end; u++) {
    if (p.y_interleaved) windows.row_max(u / parts, u % parts);
    else windows.channel_max(u / parts, u % parts);
  }
  return TT_OK;
}

TT_KERNEL(pool_max_interleaved_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const auto& p = *static_cast<const PoolInterleavedPlan*>(plan);
  Windows windows(p);
  const int64_t parts = p.y_interleaved ? p.out[0] : p.c;
  for (int64_t u = begin; u < end; u++) {
    if (p.y_interleaved) windows.row_gradient(u / parts, u % parts);
    else windows.channel_gradient(u / parts, u % parts);
  }
  return TT_OK;
}

TT_ENTRY_END
