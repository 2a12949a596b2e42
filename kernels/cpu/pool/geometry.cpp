// Tiles and windows of pooling.
#include "kernels/cpu/pool/pool.h"

TT_ENTRY_BEGIN

PoolTile pool_tile(const PoolTiles& t, const int64_t* size, int64_t u) noexcept {
  if (whole(t))
    return {.image = u, .from = 0, .to = size[0], .left = 0, .right = size[1], .part = 0};
  const int64_t left = u % t.n_columns * t.columns;
  const int64_t from = u / t.n_columns % t.n_rows * t.rows;
  return {
      .image = u / t.n_columns / t.n_rows,
      .from = from,
      .to = min(from + t.rows, size[0]),
      .left = left,
      .right = min(left + t.columns, size[1]),
      .part = 0,
  };
}

PoolTile window_tile(const PoolPlan& p, int64_t u) noexcept {
  if (!leaves_parts(p)) return pool_tile(p.y_tiles, p.out, u);
  PoolTile t = pool_tile(p.y_tiles, p.out, u / p.n_parts);
  t.part = u % p.n_parts;
  return t;
}

Window window_part(const PoolPlan& p, int d, int64_t o, int64_t part) noexcept {
  Window w = window(p, d, o);
  if (!leaves_parts(p) || p.part_dim != d) return w;
  w.begin += part * p.part * w.step;
  if ((w.end - w.begin - 1) / w.step >= p.part) w.end = w.begin + p.part * w.step;
  return w;
}

Window pool_window(const PoolPlan& p, int d, int64_t o) noexcept { return window(p, d, o); }

int64_t counted(const PoolPlan& p, int d, int64_t o) noexcept {
  const Window w = window(p, d, o);
  return p.count_pad ? w.full : w.count();
}

PoolColumns pool_columns(const PoolPlan& p, int64_t o1, int64_t n) noexcept {
  if (p.adaptive) {
    const int64_t begin = window(p, 1, o1).begin;
    const int64_t width = window(p, 1, o1 + n - 1).end - begin;
    return {.origin = begin, .width = width, .begin = begin, .have = width};
  }
  const int64_t origin = o1 * p.stride[1] - p.pad[1];
  const int64_t begin = max<int64_t>(origin, 0);
  const int64_t width = (n - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
  const int64_t end = origin + width;
  return {.origin = origin, .width = width, .begin = begin, .have = min(end, p.in[1]) - begin};
}

int64_t columns_that_fit(const PoolPlan& p, int64_t o1, int64_t right, int64_t max_n) noexcept {
  if (right - o1 < max_n) max_n = right - o1;
  if (p.one_by_one) return 0;
  if (!p.adaptive) {
    const int64_t span = (p.kernel[1] - 1) * p.dilation[1] + 1;
    if (span > kPoolSpan) return 0;
    return min((kPoolSpan - span) / p.stride[1] + 1, max_n);
  }
  if (p.in[1] <= kPoolSpan) return max_n;
  const int64_t origin = window(p, 1, o1).begin;
  int64_t n = 0;
  while (n < max_n && window(p, 1, o1 + n).end - origin <= kPoolSpan) n++;
  return n;
}

PoolRange windows_over(const PoolPlan& p, int d, int64_t from, int64_t to) noexcept {
  const int64_t in = p.in[d];
  const int64_t out = p.out[d];
  if (p.adaptive) return {.first = from * out / in, .end = ceil_div(to * out, in)};
  const int64_t before = from + p.pad[d] - (p.kernel[d] - 1) * p.dilation[d] - 1;
  const int64_t end = ceil_div(to + p.pad[d], p.stride[d]);
  return {.first = before < 0 ? 0 : before / p.stride[d] + 1, .end = min(end, out)};
}

void store_maxima(const PoolPlan& p, int64_t part, int64_t r, int64_t n, const void* best,
                  int64_t item, const int64_t* at) noexcept {
  int64_t* index = p.index + r;
  if (leaves_parts(p)) {
    memcpy(p.parts + (part * p.results + r) * item, best, size_t(n * item));
    index = part_places(p, part) + r;
  } else if (!p.g) {
    memcpy(p.y + r * item, best, size_t(n * item));
    for (int64_t j = 0; p.index && j < n; j++) index[j] = max<int64_t>(at[j], 0);
    return;
  }
  memcpy(index, at, size_t(n) * sizeof(int64_t));
}

void clear_tile(char* image, const PoolTile& t, int64_t width, int64_t pixel_bytes,
                int64_t n) noexcept {
  const int64_t run = n == pixel_bytes ? t.right - t.left : 1;  // pixels zeroed at once
  const size_t bytes = size_t(run > 1 ? run * pixel_bytes : n);
  for (int64_t i = t.from; i < t.to; i++)
    for (int64_t j = t.left; j < t.right; j += run)
      memset(image + (i * width + j) * pixel_bytes, 0, bytes);
}

TT_ENTRY_END
