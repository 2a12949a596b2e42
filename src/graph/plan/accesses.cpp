#include "graph/plan/accesses.h"

#include "cpu/matmul_run.h"
#include "plan/conv_plan.h"
#include "plan/elementwise_plan.h"
#include "plan/norm_plan.h"
#include "plan/pool_plan.h"
#include "plan/reduce_plan.h"
#include "plan/softmax_plan.h"

#include <string.h>

namespace TT_NS {

namespace {

class Reader {
 public:
  Reader(int64_t units, LaunchRows* out) : units_(units), out_(*out) {}
  bool element(const ElementPlan& p);
  bool pool(const PoolPlan& p, bool backward);
  bool pool_interleaved(const PoolInterleavedPlan& p, bool backward);
  bool interleave(const ConvInterleavePlan& p);
  bool interleaved(const ConvInterleavedPlan& p);
  bool padded(const ConvPadPlan& p);
  bool conv(const ConvPlan& p);
  bool softmax(const SoftmaxPlan& p, bool backward);
  bool layer_norm(const LayerNormPlan& p);
  bool layer_norm_backward(const LayerNormBackwardPlan& p);
  bool channel_affine(const ChannelAffinePlan& p);
  bool reduce(const ReducePlan& p);
  bool matmul(const MatmulPlan& p);

 private:
  bool rows(int64_t n) {
    out_.rows = n;
    return n > 1 && units_ % n == 0;
  }
  // All rows of it, one after the other.
  void by_rows(const void* base, int64_t bytes, bool write = false) {
    if (base) out_.list.push_back({address(base), bytes, bytes, write});
  }
  void whole(const void* base, int64_t bytes, bool write = false) {
    if (base) out_.list.push_back({address(base), bytes, 0, write});
  }
  bool strided_rows(const ElementPlan& p, int32_t inner);

  const int64_t units_;
  LaunchRows& out_;
};

// Rows of the dimensions below `inner`: each operand has one stride from row to row, or stays.
bool Reader::strided_rows(const ElementPlan& p, int32_t inner) {
  int64_t n = 1;
  out_.list = {};
  for (int32_t d = inner; d < p.ndim; d++) n *= p.size[d];
  for (int32_t k = 0; k < p.n_operands; k++) {
    const int64_t* stride = p.stride[k];
    int64_t row = kItemSize[p.dtype[k] & 15];
    for (int32_t d = 0; d < inner; d++) {
      if (stride[d] < 0) return false;
      row += (p.size[d] - 1) * stride[d];
    }
    const int64_t step = stride[inner];
    for (int32_t d = inner + 1; d < p.ndim; d++)
      if (stride[d] != stride[d - 1] * p.size[d - 1]) return false;
    if (step == 0 && k > 0) {
      whole(p.ptr[k], row);
      continue;
    }
    if (step < row) return false;
    out_.list.push_back({address(p.ptr[k]), step * (n - 1) + row, step * n, k == 0});
  }
  return rows(n);
}

bool Reader::element(const ElementPlan& p) {
  if (p.n != units_) return false;
  if (!p.dense) {
    for (int32_t inner = 0; inner < p.ndim; inner++)
      if (strided_rows(p, inner)) return true;
    return false;
  }
  for (int32_t k = 0; k < p.n_operands; k++) {
    const int64_t item = kItemSize[p.dtype[k] & 15];
    if (p.scalar_in[k]) whole(p.ptr[k], item);
    else by_rows(p.ptr[k], p.n * item, k == 0);
  }
  return rows(p.n);
}

bool Reader::pool(const PoolPlan& p, bool backward) {
  if (backward ? p.run.stage != 2 || p.run.units[0] : p.run.stage != 0 || p.run.units[1])
    return false;
  if (p.n_parts > 1) return false;
  const int64_t item = kItemSize[p.dtype & 15];
  const int64_t x = p.n * p.c * p.in[0] * p.in[1] * item;
  const int64_t y = p.n * p.c * p.out[0] * p.out[1] * item;
  by_rows(p.x, x);
  if (backward) by_rows(p.g, y);
  by_rows(p.y, backward ? x : y, true);
  return rows(p.channels_last ? p.n : p.n * p.c);
}

bool Reader::pool_interleaved(const PoolInterleavedPlan& p, bool backward) {
  const int64_t x = p.n * p.c * p.in[0] * p.in[1] * 4;
  const int64_t y = p.n * p.c * p.out[0] * p.out[1] * 4;
  by_rows(p.x, x);
  if (backward) by_rows(p.g, y);
  by_rows(p.y, backward ? x : y, true);
  return rows(p.n / kConvLanes);
}

bool Reader::interleave(const ConvInterleavePlan& p) {
  if (p.n % kConvLanes) return false;
  by_rows(p.src, p.n * p.channels * p.size[0] * p.size[1] * 4);
  by_rows(p.dst, p.n * p.channels * p.full[0] * p.full[1] * 4, true);
  return rows(p.n / kConvLanes);
}

bool Reader::interleaved(const ConvInterleavedPlan& p) {
  const ConvInterleavedShape& s = p.s;
  if (p.run.stage != 1 || s.n % kConvLanes) return false;
  by_rows(p.src, s.n * s.ci * s.full[0] * s.full[1] * 4);
  by_rows(p.dst, s.n * s.co * s.y[0] * s.y[1] * 4, true);
  whole(p.packed, s.co * s.k[0] * s.run() * 4);
  whole(p.bias, s.co * 4);
  return rows(s.blocks());
}

bool Reader::padded(const ConvPadPlan& p) {
  by_rows(p.src, p.rows * p.from * p.pixel_bytes);
  by_rows(p.dst, p.rows * p.width * p.pixel_bytes, true);
  return rows(p.rows);
}

// Blocks of pixels of a single phase, whose windows reach into those of others.
bool Reader::conv(const ConvPlan& p) {
  const ConvShape& s = p.s;
  if (p.run.stage != 1 || p.path != kConvPixels || p.mode != kConvForward || s.groups != 1 ||
      p.across_images)
    return false;
  const int64_t item = kItemSize[p.dtype & 15];
  const int64_t pixels = s.n * s.y[0] * s.y[1] * s.y[2];
  if (pixels != p.pixels.blocks.count * p.pixels.blocks.rows) return false;
  whole(p.src, s.n * p.gather.size[0] * p.gather.size[1] * p.gather.row * item);
  whole(p.packed, round_up(s.co, kConvCols) * s.taps() * s.ci * item);
  whole(p.bias, s.co * item);
  whole(p.zeros, p.gather.run * item);
  by_rows(p.dst, pixels * s.co * item, true);
  return rows(p.pixels.blocks.count);
}

bool Reader::softmax(const SoftmaxPlan& p, bool backward) {
  if (p.n_chunks != 1) return false;
  const int64_t bytes = p.outer * p.dim * p.inner * kItemSize[p.dtype & 15];
  by_rows(p.a, bytes);
  if (backward) by_rows(p.b, bytes);
  by_rows(p.out, bytes, true);
  return rows(p.outer);
}

bool Reader::layer_norm(const LayerNormPlan& p) {
  if (p.n_chunks != 1) return false;
  const int64_t bytes = p.rows * p.n * kItemSize[p.dtype & 15];
  const int64_t stat = p.rows * kItemSize[p.stat_dtype & 15];
  const int64_t weights = p.inner ? p.n / p.inner * p.groups : p.n;
  const int64_t weight = weights * kItemSize[p.weight_dtype & 15];
  by_rows(p.x, bytes);
  by_rows(p.y, bytes, true);
  by_rows(p.mean, stat, true);
  by_rows(p.rstd, stat, true);
  whole(p.weight, weight);
  whole(p.bias, weight);
  return rows(p.rows);
}

bool Reader::layer_norm_backward(const LayerNormBackwardPlan& p) {
  if (p.run.stage != 0 || p.n_parts != 1 || p.rows % p.n_chunks) return false;
  const int64_t bytes = p.rows * p.n * kItemSize[p.dtype & 15];
  const int64_t stat = p.rows * kItemSize[p.stat_dtype & 15];
  const int64_t weight = p.n * kItemSize[p.weight_dtype & 15];
  const int64_t sums = p.n_chunks * 2 * p.n * (p.dtype == TT_F64 ? 8 : 4);
  by_rows(p.g, bytes);
  by_rows(p.x, bytes);
  by_rows(p.mean, stat);
  by_rows(p.rstd, stat);
  by_rows(p.dx, bytes, true);
  whole(p.weight, weight);
  whole(p.dweight, weight, true);
  whole(p.dbias, weight, true);
  if (p.run.units[2]) by_rows(p.workspace, sums, true);
  return rows(p.n_chunks);
}

bool Reader::channel_affine(const ChannelAffinePlan& p) {
  if (p.inner == 1) return false;
  const int64_t bytes = p.outer * p.channels * p.inner * kItemSize[p.dtype & 15];
  const int64_t stat = p.channels * (p.dtype == TT_F64 ? 8 : 4);
  const int64_t weight = p.channels * kItemSize[p.weight_dtype & 15];
  by_rows(p.x, bytes);
  by_rows(p.g, bytes);
  by_rows(p.y, bytes, true);
  whole(p.mean, stat);
  whole(p.rstd, stat);
  whole(p.sums, 2 * stat);
  whole(p.weight, weight);
  whole(p.bias, weight);
  return rows(p.outer);
}

// Sums of the trailing dimensions of a dense array.
bool Reader::reduce(const ReducePlan& p) {
  if (p.path != kReduceRows || p.splits != 1 || p.term || p.index || !p.out || p.n_kept != 1 ||
      p.n_red != 1)
    return false;
  const int64_t item = kItemSize[p.dtype & 15];
  const int64_t out = kItemSize[p.out_dtype & 15];
  if (p.red_stride[0] != item || p.kept_stride[0] != item * p.length || p.out_stride[0] != out)
    return false;
  by_rows(p.in, p.n_out * p.length * item);
  by_rows(p.out, p.n_out * out, true);
  return rows(p.n_out);
}

bool Reader::matmul(const MatmulPlan& p) {
  const int64_t item = kItemSize[p.dtype & 15];
  if (!matmul_has_rows(p)) return false;
  int64_t a = 1 + (p.m - 1) * p.a_row + (p.k - 1) * p.a_col;
  int64_t b = 1 + (p.k - 1) * p.b_row + (p.n - 1) * p.b_col;
  int64_t d = 1 + (p.m - 1) * p.d_row + (p.n - 1) * p.d_col;
  a *= item;
  b *= item;
  d *= item;
  bool forward = p.a_row >= 0 && p.a_col >= 0 && p.b_row >= 0 && p.b_col >= 0;
  if (p.d) forward = forward && p.d_row >= 0 && p.d_col >= 0;
  for (int32_t i = 0; i < p.n_batch; i++) {
    const MatmulBatchDim& dim = p.batch_dim[i];
    forward = forward && dim.a >= 0 && dim.b >= 0 && (!p.d || dim.d >= 0);
    a += (dim.size - 1) * dim.a;
    b += (dim.size - 1) * dim.b;
    d += (dim.size - 1) * dim.d;
  }
  if (!forward) return false;
  whole(p.a, a);
  whole(p.b, p.path == kMatmulPackedB ? matmul_panel_bytes(p, p.n) : b);
  if (p.d) whole(p.d, d);
  MatmulPlan packed = p;
  packed.path = kMatmulPacked;
  whole(p.workspace, matmul_workspace_bytes(packed), true);
  by_rows(p.c, p.batch * p.m * p.n * item, true);
  out_.product_row = p.n * item;
  out_.rows = p.batch * p.m;
  return true;
}

}  // namespace

bool read_accesses(const Kernel& k, const void* plan, int64_t units, LaunchRows* out) {
  Reader r(units, out);
  const auto is = [&](const char* name) { return !strcmp(k.name, name); };
  if (k.rng >= 0) return false;
  if (k.rebase == rebase_element_plan) return r.element(*static_cast<const ElementPlan*>(plan));
  if (is("matmul")) return r.matmul(*static_cast<const MatmulPlan*>(plan));
  if (is("conv")) return r.conv(*static_cast<const ConvPlan*>(plan));
  if (is("conv_pad")) return r.padded(*static_cast<const ConvPadPlan*>(plan));
  if (is("conv_interleave")) return r.interleave(*static_cast<const ConvInterleavePlan*>(plan));
  if (is("conv_interleaved")) return r.interleaved(*static_cast<const ConvInterleavedPlan*>(plan));
  if (is("pool_max") || is("pool_average"))
    return r.pool(*static_cast<const PoolPlan*>(plan), false);
  if (is("pool_max_backward") || is("pool_average_backward"))
    return r.pool(*static_cast<const PoolPlan*>(plan), true);
  if (is("pool_max_interleaved") || is("pool_max_interleaved_backward"))
    return r.pool_interleaved(*static_cast<const PoolInterleavedPlan*>(plan),
                              is("pool_max_interleaved_backward"));
  if (is("softmax") || is("log_softmax"))
    return r.softmax(*static_cast<const SoftmaxPlan*>(plan), false);
  if (is("softmax_backward") || is("log_softmax_backward"))
    return r.softmax(*static_cast<const SoftmaxPlan*>(plan), true);
  if (is("layer_norm")) return r.layer_norm(*static_cast<const LayerNormPlan*>(plan));
  if (is("layer_norm_backward"))
    return r.layer_norm_backward(*static_cast<const LayerNormBackwardPlan*>(plan));
  if (is("channel_affine")) return r.channel_affine(*static_cast<const ChannelAffinePlan*>(plan));
  if (is("reduce_sum") || is("reduce_max") || is("reduce_min"))
    return r.reduce(*static_cast<const ReducePlan*>(plan));
  return false;
}

}  // namespace TT_NS
