// Micro-kernels of convolutions, and the addresses that they read through.
#pragma once

#include "kernels/cpu/matmul/pack.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

// Tiles of convolutions: kConvMr rows by up to two vectors. Types other than f32 are rare enough to
// be given fewer kernels.
#if defined(__AVX512F__)
constexpr int kConvMaxRows = 14;
#elif defined(__AVX2__)
constexpr int kConvMaxRows = 6;
#else
constexpr int kConvMaxRows = 4;
#endif
template <class T> constexpr int kConvMr = sizeof(T) == 4 ? kConvMaxRows : 4;
template <class T> constexpr int kConvNr = 2 * kLanes<T>;
static_assert(kConvRows % kConvMaxRows == 0 && kConvRows % 4 == 0);

// Position of a walk over the pixels of images, in row-major order; or, if n images are given, over
// the first row of all images, then the second: pixels side by side then meet the same padding
// above and below.
struct ConvWalk {
  int64_t size[kConvDims];
  int64_t at[kConvDims];
  int64_t image, images;

  TT_INLINE void start(const int64_t* grid, int64_t position, int64_t n = 0) {
    images = n;
    for (int d = kConvDims - 1; d >= 0; d--) {
      size[d] = grid[d];
      at[d] = position % grid[d];
      position /= grid[d];
      if (n && d == kConvDims - 1) {
        image = position % n;
        position /= n;
      }
    }
    if (!n) image = position;
  }
  // The pixels of this row from here on, at most n.
  TT_INLINE int64_t row(int64_t n) const { return size[2] - at[2] < n ? size[2] - at[2] : n; }
  // Moves n <= row(n) on.
  TT_INLINE void advance(int64_t n) {
    at[2] += n;
    if (at[2] < size[2]) return;
    at[2] = 0;
    if (images && ++image < images) return;
    if (images) image = 0;
    for (int d = kConvDims - 2; d >= 0; d--) {
      if (++at[d] < size[d]) return;
      at[d] = 0;
    }
    if (!images) image++;
  }
};

// to[i] = from + i * step for i < n; up to a vector more may be written.
template <class T> TT_INLINE void fill_addresses(T** to, T* from, int64_t step, int64_t n) {
  constexpr int kL = kLanes<int64_t>;
  constexpr int64_t kRamp[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int64_t bytes = step * int64_t(sizeof(T));
  Vec<int64_t> at = splat(int64_t(from)) + load(kRamp) * splat(bytes);
  for (int64_t i = 0; i < n; i += kL, at += splat(kL * bytes))
    __builtin_memcpy(to + i, &at, sizeof at);
}
constexpr int64_t kConvSlack = 8;  // addresses that fill_addresses may write too many

// The addresses of up to kN pixels (rows) of a source.
template <class T, int kN> struct ConvSource {
  // Rows [at, at + n): pixels of one line, `step` apart.
  struct Line {
    int64_t at, n, c0, c1, c2, offset;  // coordinates in the source, before a tap is added
  };
  const T* base;  // of the source and the group
  const T* zeros;
  const ConvGather& g;
  int64_t lines = 0, step = 1;
  Line line[kN];

  TT_INLINE ConvSource(const ConvGather& gather, const char* src, const char* zero, int64_t group)
      : base(reinterpret_cast<const T*>(src) + group * gather.group),
        zeros(reinterpret_cast<const T*>(zero)),
        g(gather) {}

  // Pixels of a line up to n elements on; steps may be as long as an int64_t.
  TT_INLINE int64_t steps(int64_t n) const { return n > 0 ? (n - 1) / step + 1 : 0; }
  TT_INLINE void clear(int64_t pixel_step) {
    lines = 0;
    step = pixel_step;
  }
  // Rows [i, i + n), which follow those that are there: the pixels at c0, c1, and c2, c2 + step, ….
  TT_INLINE void set(int64_t i, int64_t n, int64_t image, int64_t c0, int64_t c1, int64_t c2) {
    line[lines++] = {i,  n,  c0,
                     c1, c2, ((image * g.size[0] + c0) * g.size[1] + c1) * g.row + c2 * g.pixel};
  }
  // The addresses of all rows, and of zeros up to row `end`, for a tap that adds o[d] to their
  // coordinates; returns how many rows are no padding. out has kConvSlack elements more.
  TT_NOINLINE int64_t addresses(int64_t end, const int64_t* o, const T** out) const {
    const int64_t shift = (o[0] * g.size[1] + o[1]) * g.row + o[2] * g.pixel;
    int64_t inside = 0, done = 0;
    for (const Line* l = line; l < line + lines; l++) {
      const T** to = out + l->at;
      const int64_t first = l->c2 + o[2];
      const int64_t left = g.size[2] - first;  // pixels of the source from there on
      int64_t from = first < 0 ? -first : 0;
      int64_t till = left < 0 ? 0 : left;
      if (step != 1) {
        from = steps(from);
        till = steps(till);
      }
      if (till > l->n) till = l->n;
      const bool meets = (uint64_t(l->c0 + o[0]) < uint64_t(g.size[0])) &
                         (uint64_t(l->c1 + o[1]) < uint64_t(g.size[1]));
      if (!meets || from >= till) from = till = 0;
      const int64_t gap = till - from > 1
                              ? step * g.pixel
                              : 0;  // a step out of the source may be too long to multiply
      if (from) fill_addresses(to, zeros, 0, from);
      if (from < till)
        fill_addresses(to + from, base + (l->offset + shift + from * step * g.pixel), gap,
                       till - from);
      if (till < l->n) fill_addresses(to + till, zeros, 0, l->n - till);
      inside += till - from;
      done = l->at + l->n;
    }
    if (done < end) fill_addresses(out + done, zeros, 0, end - done);
    return inside;
  }
};

TT_ISA_END
