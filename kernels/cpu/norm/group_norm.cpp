// The backward of group_norm.
//   g, x, dx: (rows, channels, inner); mean, rstd: (rows); a row is a group of an image
//   sums: workspace [2][rows][channels], of g and of g (x - mean) rstd
// With h = (x - mean) rstd and u = g weight: dx = rstd (u - mean(u) - h mean(u h)), as in
// layer_norm.
#include "kernels/cpu/norm/group_norm.h"

#include "kernels/cpu/norm/gradient_pairs.h"
#include "plan/norm_plan.h"

TT_ISA_BEGIN

constexpr int64_t kShortPlane = 16;  // elements of a plane that one sum adds up

template <class T> struct GroupRow {
  const GroupNormBackwardPlan& p;
  const int64_t row;
  const T mean, rstd;
  alignas(64) T xs[kRowBlock], gs[kRowBlock], out[kRowBlock];

  GroupRow(const GroupNormBackwardPlan& p, int64_t r)
      : p(p),
        row(r),
        mean(reinterpret_cast<const T*>(p.mean)[r]),
        rstd(reinterpret_cast<const T*>(p.rstd)[r]) {}

  T* sums(int which) const {
    return static_cast<T*>(p.workspace) + (which * p.rows + row) * p.channels;
  }
  T weight(int64_t c) const {
    if (!p.weight) return T(1);
    const int64_t at = row % p.groups * p.channels + c;
    return load_one<T>(p.weight + at * kItemSize[p.weight_dtype], p.weight_dtype);
  }
  // The offset of channel c in bytes.
  int64_t offset(int64_t c) const { return (row * p.channels + c) * p.inner * kItemSize[p.dtype]; }

  // Sums of channel c.
  void sum_channel(int64_t c) {
    const RowIn<T> g{p.g + offset(c), p.dtype};
    const RowIn<T> x{p.x + offset(c), p.dtype};
    T of_g = 0;
    T of_gx = 0;
    if (p.inner < kShortPlane) {
      const T* gv = g.get(0, p.inner, gs);
      const T* xv = x.get(0, p.inner, xs);
      for (int64_t i = 0; i < p.inner; i++) {
        of_g += gv[i];
        of_gx += gv[i] * (xv[i] - mean);
      }
    } else {
      RowSum<T> all_g, all_gx;
      for_blocks(p.inner, [&](int64_t i, int64_t n) {
        add_pairs(&all_g, &all_gx, g.get(i, n, gs), x.get(i, n, xs), mean, n);
      });
      of_g = row_total(all_g);
      of_gx = row_total(all_gx);
    }
    sums(0)[c] = of_g;
    sums(1)[c] = of_gx * rstd;
  }

  // dx of the channels [from, to).
  void compute_dx(int64_t from, int64_t to) {
    double of_u = 0;
    double of_uh = 0;
    for (int64_t c = 0; c < p.channels; c++) {
      of_u += double(sums(0)[c]) * double(weight(c));
      of_uh += double(sums(1)[c]) * double(weight(c));
    }
    const double n = double(p.channels) * double(p.inner);
    const T mean_u = T(of_u / n);
    const T slope = rstd * rstd * T(of_uh / n);
    for (int64_t c = from; c < to; c++) {
      const T w = weight(c);
      const RowIn<T> g{p.g + offset(c), p.dtype};
      const RowIn<T> x{p.x + offset(c), p.dtype};
      const RowOut<T> dx{p.dx + offset(c), p.dtype};
      for_blocks(p.inner, [&](int64_t i, int64_t k) {
        T* TT_RESTRICT d = dx.at(i, out);
        const T* TT_RESTRICT gv = g.get(i, k, gs);
        const T* TT_RESTRICT xv = x.get(i, k, xs);
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++)
          d[j] = vfma(mean - xv[j], slope, (gv[j] * w - mean_u) * rstd);
        dx.put(i, k, d);
      });
    }
  }
};

// Stages 0 and 1 of unit u, a chunk of a row's channels.
template <class T> inline void group_chunk(const GroupNormBackwardPlan& p, int64_t u) {
  GroupRow<T> row(p, u / p.n_chunks);
  const int64_t from = u % p.n_chunks * p.chunk;
  const int64_t to = min(from + p.chunk, p.channels);
  if (p.run.stage == 0)
    for (int64_t c = from; c < to; c++) row.sum_channel(c);
  if (p.dx && (p.run.stage == 1 || p.n_chunks == 1)) row.compute_dx(from, to);
}

// Stage 2: sums over images for the channels [from, to) of all groups; which: 0 dbias, 1 dweight.
template <class T> inline void sum_images(const GroupNormBackwardPlan& p, int which, int64_t from,
                                          int64_t to, char* out) {
  alignas(64) T sum[kChannelTile] = {};
  const int64_t all = p.groups * p.channels;
  for (int64_t image = 0; image < p.rows / p.groups; image++) {
    const T* part = static_cast<const T*>(p.workspace) + which * p.rows * p.channels + image * all;
    for (int64_t c = from; c < to; c++) sum[c - from] += part[c];
  }
  store_run(out + from * kItemSize[p.weight_dtype], sum, to - from, p.weight_dtype);
}

template <class T>
inline int32_t group_units(const GroupNormBackwardPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage < 2) {
      group_chunk<T>(p, u);
      continue;
    }
    const int64_t from = u * kChannelTile;
    const int64_t to = min(from + kChannelTile, p.groups * p.channels);
    if (p.dweight) sum_images<T>(p, 1, from, to, p.dweight);
    if (p.dbias) sum_images<T>(p, 0, from, to, p.dbias);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(group_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const GroupNormBackwardPlan& p = *static_cast<const GroupNormBackwardPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? group_units<double>(p, begin, end)
                                   : group_units<float>(p, begin, end);
}

TT_ENTRY_END
