// The addresses that convolutions read through. Windows are not copied into a matrix; for each tap
// there is the address of the source pixel that each result pixel (row) sees there, or of zeros
// where that is padding:
//
//               row 0        row 1        row 2   …
//   tap 0       zeros        &x(0, 0)     &x(0, 1)
//   tap 1       &x(0, 0)     &x(0, 1)     &x(0, 2)
//   …
#pragma once

#include "kernels/cpu/conv/tile.h"

TT_ISA_BEGIN

// Position of a walk over the pixels of images, in row-major order. If the number of images is
// given, it leads over the first row of all images, then the second: adjacent pixels then have the
// same padding above and below.
struct ConvWalk {
  int64_t size[kConvDims];
  int64_t at[kConvDims];
  int64_t image = 0, images;

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
  TT_INLINE int64_t row(int64_t n) const { return min(size[2] - at[2], n); }
  // Advances by n <= row(n).
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

// to[i] = from + i * step for i < n; writes up to kConvSlack addresses more.
template <class T> TT_INLINE void fill_addresses(T** to, T* from, int64_t step, int64_t n) {
  using Address = intptr_t;
  constexpr int kL = kLanes<Address>;
  constexpr Address kRamp[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Address bytes = Address(step) * Address(sizeof(T));
  Vec<Address> at = splat(Address(from)) + load(kRamp) * splat(bytes);
  for (int64_t i = 0; i < n; i += kL) {
    memcpy(to + i, &at, sizeof at);
    at += splat(kL * bytes);
  }
}
constexpr int64_t kConvSlack = 8;

// The positions in a source of the windows of up to kN result pixels (rows).
template <class T, int kN> struct ConvSource {
  // Rows [row, row + n): pixels of one line of the source, `step` apart.
  struct Line {
    int64_t row, n;
    int64_t c0, c1, c2;  // coordinates of the first in the source, before a tap is added
    int64_t offset;      // of that pixel in the source, in elements
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

  // Pixels of a line that begin in the first n elements; steps may be as long as an int64_t.
  TT_INLINE int64_t steps(int64_t n) const { return n > 0 ? (n - 1) / step + 1 : 0; }
  TT_INLINE void clear(int64_t pixel_step) {
    lines = 0;
    step = pixel_step;
  }
  // Appends rows [row, row + n): the pixels (c0, c1, c2), (c0, c1, c2 + step), ….
  TT_INLINE void add_line(int64_t row, int64_t n, int64_t image, int64_t c0, int64_t c1,
                          int64_t c2) {
    const int64_t offset = ((image * g.size[0] + c0) * g.size[1] + c1) * g.row + c2 * g.pixel;
    line[lines++] = {.row = row, .n = n, .c0 = c0, .c1 = c1, .c2 = c2, .offset = offset};
  }
  // The lines of n result pixels, from m on.
  TT_INLINE void set_pixels(const ConvShape& s, int64_t m, int64_t n) {
    ConvWalk walk;
    if (n) walk.start(s.y, m);
    clear(s.stride[2]);
    for (int64_t i = 0, k; i < n; i += k, walk.advance(k)) {
      k = walk.row(n - i);
      add_line(i, k, walk.image, walk.at[0] * s.stride[0], walk.at[1] * s.stride[1],
               walk.at[2] * s.stride[2]);
    }
  }
  // Writes the addresses of all rows for a tap that adds shift[d] to their coordinates, and of
  // zeros up to row `end`; returns how many rows are no padding. out has room for kConvSlack more.
  TT_NOINLINE int64_t addresses(int64_t end, const int64_t* shift, const T** out) const {
    const int64_t tap = (shift[0] * g.size[1] + shift[1]) * g.row + shift[2] * g.pixel;
    int64_t inside = 0, done = 0;
    for (const Line* l = line; l < line + lines; l++) {
      const T** to = out + l->row;
      const int64_t first = l->c2 + shift[2];
      const int64_t left = g.size[2] - first;   // pixels of the source from there on
      int64_t begin = max<int64_t>(-first, 0);  // the rows of the line that are no padding
      int64_t stop = max<int64_t>(left, 0);
      if (step != 1) {
        begin = steps(begin);
        stop = steps(stop);
      }
      if (stop > l->n) stop = l->n;
      const bool in_source = (uint64_t(l->c0 + shift[0]) < uint64_t(g.size[0])) &
                             (uint64_t(l->c1 + shift[1]) < uint64_t(g.size[1]));
      if (!in_source || begin >= stop) begin = stop = 0;
      // A step that leaves the source may be too long to multiply.
      const int64_t gap = stop - begin > 1 ? step * g.pixel : 0;
      if (begin) fill_addresses(to, zeros, 0, begin);
      if (begin < stop)
        fill_addresses(to + begin, base + (l->offset + tap + begin * step * g.pixel), gap,
                       stop - begin);
      if (stop < l->n) fill_addresses(to + stop, zeros, 0, l->n - stop);
      inside += stop - begin;
      done = l->row + l->n;
    }
    if (done < end) fill_addresses(out + done, zeros, 0, end - done);
    return inside;
  }
};

TT_ISA_END
