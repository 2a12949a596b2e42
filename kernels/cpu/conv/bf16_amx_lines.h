// Lines of a source that are copied with their padding, so that the pixels of any tap are at an
// offset in the copy.
#pragma once

#include "kernels/cpu/conv/conv_tile.h"

TT_ISA_BEGIN

// Where the pixels of taps are in a copy. If rows are some pixels of the source apart, it has an
// image for each remainder of a line and a column that a tap needs.
struct LineTaps {
  int64_t n = 0;
  int64_t shift[kConvTilesLineTaps][kConvDims];
  int64_t image[kConvTilesLineTaps];   // of each tap
  int64_t offset[kConvTilesLineTaps];  // pixels in that image
  int64_t images = 0;

  // Sets the rest from n and shift.
  void place(int64_t line_step, int64_t column_step, int64_t pitch) {
    by_column = column_step;
    for (int d = 0; d < kConvDims; d++) {
      lead[d] = n ? shift[0][d] : 0;
      for (int64_t t = 1; t < n; t++) lead[d] = min(lead[d], shift[t][d]);
    }
    for (int64_t t = 0; t < n; t++) {
      const int64_t i = shift[t][1] - lead[1];
      const int64_t j = shift[t][2] - lead[2];
      image[t] = image_of(i % line_step * column_step + j % column_step);
      offset[t] = i / line_step * pitch + j / column_step;
    }
  }
  // The first line and column of an image in the source, of a block that begins at 0.
  TT_INLINE int64_t first_line(int64_t of) const { return lead[1] + remainder[of] / by_column; }
  TT_INLINE int64_t first_column(int64_t of) const { return lead[2] + remainder[of] % by_column; }

 private:
  int64_t lead[kConvDims];  // the least shift of a tap
  int64_t by_column;
  int64_t remainder[kConvTilesMaxStride * kConvTilesMaxStride];  // of an image

  int64_t image_of(int64_t wanted) {
    for (int64_t of = 0; of < images; of++)
      if (remainder[of] == wanted) return of;
    remainder[images] = wanted;
    return images++;
  }
};

// The pixels of a line of a source that a copy of `width` has: [begin, end) of those from `from` on
// in steps; the rest is padding.
struct LinePixels {
  int64_t begin = 0, end = 0;

  TT_INLINE LinePixels(const ConvGather& g, int64_t line, int64_t from, int64_t step,
                       int64_t width) {
    if (line < 0 || line >= g.size[1]) return;
    begin = min(ceil_div(max<int64_t>(-from, 0), step), width);
    end = clamp(ceil_div(g.size[2] - from, step), begin, width);
  }
};

TT_ISA_END
