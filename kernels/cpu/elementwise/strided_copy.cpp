// run_copy: any dtype to any dtype, any strides. Paths, the first that fits:
//   dense                         memcpy, streamed if large; or one element repeated
//   rows of one dtype, both       copy_plain_rows
//     contiguous in dimension 0
//   the same, but an element of   fill_plain_rows
//     the source is repeated
//   output contiguous in          copy_crossed_rows (d is 1), copy_crossed_block: transpositions
//     dimension 0, source in d
//   otherwise                     copy_row, through blocks
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/elementwise/rows.h"
#include "kernels/cpu/elementwise/walk.h"

TT_ISA_BEGIN

void copy_run(char* dst, const char* src, int64_t bytes, bool stream) {
  if (!stream) {
    memcpy(dst, src, size_t(bytes));
    return;
  }
  const int64_t head = min(bytes, -int64_t(reinterpret_cast<uintptr_t>(dst)) & 63);
  memcpy(dst, src, size_t(head));
  stream_copy(dst + head, src + head, bytes - head);
  stream_fence();
}

// Copies m elements of a row, through a block if the dtype changes.
void copy_row(const ElementPlan& p, char* dst, const char* src, int64_t m) {
  alignas(64) char block[2][kBlockBytes];
  const int64_t to = kItemSize[p.dtype[0]];
  const int64_t from = kItemSize[p.dtype[1]];
  const int64_t dst_stride = p.stride[0][0];
  const int64_t src_stride = p.stride[1][0];
  const bool same = p.dtype[0] == p.dtype[1];
  if (same && dst_stride == to) return gather(dst, src, src_stride, m, to);
  if (same && src_stride == to) return scatter(dst, dst_stride, src, m, to);
  const int64_t block_n = block_elements(max(to, from));
  for (int64_t n; m > 0; m -= n, dst += n * dst_stride, src += n * src_stride) {
    n = min(m, block_n);
    const char* s = src;
    if (src_stride != from) {
      gather(block[0], src, src_stride, n, from);
      s = block[0];
    }
    char* d = dst_stride == to ? dst : block[1];
    if (same) d = const_cast<char*>(s);
    else convert_block(d, p.dtype[0], s, p.dtype[1], n);
    if (d != dst) scatter(dst, dst_stride, d, n, to);
  }
}

// Copies rows from w on that have one dtype and unit stride in both operands. Returns the number of
// elements copied, 0 if less than a row is left.
int64_t copy_plain_rows(const ElementPlan& p, const Walk& w, int64_t left) {
  if (w.index[0] != 0) return 0;
  const int64_t rows = min(left / p.size[0], p.size[1] - w.index[1]);
  const int64_t bytes = p.size[0] * kItemSize[p.dtype[0]];
  for (int64_t r = 0; r < rows; r++)
    copy_bytes(w.at[0] + r * p.stride[0][1], w.at[1] + r * p.stride[1][1], bytes);
  return rows * p.size[0];
}
// The same where each row of the output repeats an element.
int64_t fill_plain_rows(const ElementPlan& p, const Walk& w, int64_t left) {
  if (w.index[0] != 0) return 0;
  const int64_t rows = min(left / p.size[0], p.size[1] - w.index[1]);
  const int64_t item = kItemSize[p.dtype[0]];
  for (int64_t r = 0; r < rows; r++)
    fill_row(w.at[0] + r * p.stride[0][1], w.at[1] + r * p.stride[1][1], p.size[0], item);
  return rows * p.size[0];
}

// The dimension d > 0 in which the source has unit stride while the output has it in dimension 0; 0
// if there is none, or if either is too short for a transposition to pay.
int crossed_dim(const ElementPlan& p) {
  constexpr int64_t kMinSize = 2;
  const int64_t item = kItemSize[p.dtype[0]];
  if (p.dtype[0] != p.dtype[1] || p.stride[0][0] != item || p.stride[1][0] == item ||
      p.size[0] < kMinSize)
    return 0;
  for (int d = 1; d < p.ndim; d++)
    if (p.stride[1][d] == item && p.size[d] >= kMinSize) return d;
  return 0;
}

// Copies rows of dimension 1 from w on by a transposition. Returns the number of elements copied, 0
// if w is within a row or less than a row is left.
int64_t copy_crossed_rows(const ElementPlan& p, const Walk& w, int64_t left) {
  if (w.index[0] != 0) return 0;
  const int64_t rows = min(left / p.size[0], p.size[1] - w.index[1]);
  if (rows == 0) return 0;
  transpose_elements(w.at[0], p.stride[0][1], w.at[1], p.stride[1][0], rows, p.size[0],
                     kItemSize[p.dtype[0]]);
  return rows * p.size[0];
}

// Copies one whole block of dimensions 0 … d from w on, transposing dimensions 0 and d. Returns its
// number of elements, 0 if less than a block is left.
int64_t copy_crossed_block(const ElementPlan& p, const Walk& w, int64_t left, int d) {
  int64_t planes = 1;
  for (int k = 0; k <= d; k++) {
    if (w.index[k] != 0) return 0;
    if (k > 0 && k < d) planes *= p.size[k];
  }
  const int64_t n = planes * p.size[0] * p.size[d];
  if (n > left) return 0;
  for (int64_t i = 0; i < planes; i++) {
    int64_t dst = 0;
    int64_t src = 0;
    int64_t rest = i;
    for (int k = 1; k < d; k++) {
      dst += rest % p.size[k] * p.stride[0][k];
      src += rest % p.size[k] * p.stride[1][k];
      rest /= p.size[k];
    }
    transpose_elements(w.at[0] + dst, p.stride[0][d], w.at[1] + src, p.stride[1][0], p.size[d],
                       p.size[0], kItemSize[p.dtype[0]]);
  }
  return n;
}

TT_ISA_END

TT_ENTRY_BEGIN

int32_t run_copy(const ElementPlan& plan, int64_t begin, int64_t end) noexcept {
  if (begin >= end) return TT_OK;
  const int64_t item = kItemSize[plan.dtype[0]];
  if (plan.dense && !plan.scalar_in[1]) {
    copy_run(plan.ptr[0] + begin * item, plan.ptr[1] + begin * item, (end - begin) * item,
             worth_streaming(plan.n * item));
    return TT_OK;
  }
  if (plan.dense) {
    alignas(64) char block[kBlockBytes];
    fill_block(block, plan.ptr[1], kBlockBytes / item, item);
    const int64_t last = end * item;
    for (int64_t at = begin * item, m; at < last; at += m) {
      m = min(kBlockBytes, last - at);
      copy_run(plan.ptr[0] + at, block, m, false);
    }
    return TT_OK;
  }
  const int crossed = crossed_dim(plan);
  const bool rows = plan.ndim > 1 && plan.dtype[0] == plan.dtype[1] && plan.stride[0][0] == item;
  const bool plain = rows && plan.stride[1][0] == item;
  const bool filled = rows && plan.stride[1][0] == 0;
  Walk w;
  w.start(plan, begin);
  for (int64_t i = begin, m; i < end; i += m) {
    const int64_t left = end - i;
    m = 0;
    if (plain) m = copy_plain_rows(plan, w, left);
    else if (filled) m = fill_plain_rows(plan, w, left);
    else if (crossed == 1) m = copy_crossed_rows(plan, w, left);
    else if (crossed) m = copy_crossed_block(plan, w, left, crossed);
    if (m == 0) {
      m = min(left, w.row_left());
      copy_row(plan, w.at[0], w.at[1], m);
    }
    if (m < left) w.skip(m);
  }
  return TT_OK;
}

TT_ENTRY_END
