// Fills rooms of depthwise convolutions of planes (depthwise_planes.h).
#include "kernels/cpu/conv/depthwise_planes.h"

TT_ISA_BEGIN

struct RoomRows {
  static constexpr int kL = kLanes<float>;
  const ConvDepthwiseShape& s;

  static TT_INLINE void copy(float* to, const float* from, int64_t n) {
    int64_t i = 0;
    for (; i + kL <= n; i += kL) store(to + i, load(from + i));
    if (i == n) return;
    const Part<float> rest(int(n - i));
    store(to + i, load(from + i, rest), rest);
  }

  // Row `at` of the source; NULL if it is padding.
  TT_INLINE const float* source_row(const float* src, int64_t at) const {
    if (s.gap[0] > 1) {
      if (at % s.gap[0] != 0) return nullptr;
      at /= s.gap[0];
    }
    return at >= 0 && at < s.x[0] ? src + at * s.x[1] : nullptr;
  }
  static TT_INLINE void clear(float* to, int64_t n) {
    int64_t i = 0;
    for (; i + kL <= n; i += kL) store(to + i, Vec<float>{});
    if (i < n) store(to + i, Vec<float>{}, Part<float>(int(n - i)));
  }
  // to[m] = padded column m * stride + phase.
  TT_INLINE void fill_row(float* TT_RESTRICT to, const float* TT_RESTRICT row,
                          int64_t phase) const {
    const int64_t step = s.stride[1];
    const int64_t shift = s.lead[1] - phase;  // of column 0
    const int64_t before = max<int64_t>(shift, 0);
    const int64_t behind = max<int64_t>(s.x[1] + shift, 0);
    const int64_t from = min(step == 1 ? before : ceil_div(before, step), s.pitch);
    const int64_t end = clamp(step == 1 ? behind : ceil_div(behind, step), from, s.pitch);
    clear(to, from);
    row += from * step - shift;
    if (step == 1) copy(to + from, row, end - from);
    else if (step == 2) every<2>(to + from, row, step, end - from);
    else every<0>(to + from, row, step, end - from);
    clear(to + end, s.pitch - end);
  }
  // kStep: step, or 0 for any.
  template <int kStep> static TT_INLINE void every(float* TT_RESTRICT to,
                                                   const float* TT_RESTRICT row, int64_t step,
                                                   int64_t n) {
    TT_VECTORIZE
    for (int64_t m = 0; m < n; m++) to[m] = row[(kStep ? kStep : step) * m];
  }
  // Columns `gap` apart, zeros between them.
  TT_INLINE void spread_row(float* TT_RESTRICT to, const float* TT_RESTRICT row) const {
    clear(to, s.pitch);
    for (int64_t i = 0, m = s.lead[1]; i < s.x[1] && m < s.pitch; i++, m += s.gap[1])
      to[m] = row[i];
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

void fill_depthwise_room(const ConvDepthwiseShape& s, float* room, const float* src, int64_t o,
                         int64_t rows) noexcept {
  const RoomRows room_rows{s};
  const int64_t end = (rows - 1) * s.stride[0] + s.dil[0] * (s.k[0] - 1) + 1;
  float* first = room;  // of the current rows, phase by phase
  for (int64_t i = 0; i < end; first += s.pitch) {
    float* to = first;
    for (int64_t phase = 0; phase < s.stride[0] && i < end; phase++, i++) {
      const float* row = room_rows.source_row(src, o * s.stride[0] + i - s.lead[0]);
      for (int64_t k = 0; k < s.stride[1]; k++, to += s.plane_items()) {
        if (!row) RoomRows::clear(to, s.pitch);
        else if (s.gap[1] == 1) room_rows.fill_row(to, row, k);
        else room_rows.spread_row(to, row);
      }
    }
  }
}

TT_ENTRY_END
