// The copy kernel: any dtype to any dtype, any strides.
#include "cpu/elementwise.h"
#include "cpu/stream.h"
#include "cpu/walk.h"

TT_ISA_BEGIN

TT_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void copy_run(char* dst, const char* src, int64_t bytes, bool stream) {
  if (!stream) {
    __builtin_memcpy(dst, src, size_t(bytes));
    return;
  }
  const int64_t head = least(bytes, -int64_t(reinterpret_cast<uintptr_t>(dst)) & 63);
  __builtin_memcpy(dst, src, size_t(head));
  stream_copy(dst + head, src + head, bytes - head);
  stream_fence();
}

// m elements of a row, through a block if the dtype changes.
void copy_row(const ElementPlan& p, char* dst, const char* src, int64_t m) {
  alignas(64) char block[2][kBlockBytes];
  const int64_t to = kItemSize[p.dtype[0]], from = kItemSize[p.dtype[1]];
  const int64_t dst_stride = p.stride[0][0], src_stride = p.stride[1][0];
  const bool same = p.dtype[0] == p.dtype[1];
  if (same && dst_stride == to) return gather(dst, src, src_stride, m, to);
  if (same && src_stride == to) return scatter(dst, dst_stride, src, m, to);
  const int64_t most = block_elements(to > from ? to : from);
  for (int64_t n; m > 0; m -= n, dst += n * dst_stride, src += n * src_stride) {
    n = least(m, most);
    const char* s = src;
    if (src_stride != from) gather(block[0], src, src_stride, n, from), s = block[0];
    char* d = dst_stride == to ? dst : block[1];
    if (same) d = const_cast<char*>(s);
    else convert_block(d, p.dtype[0], s, p.dtype[1], n);
    if (d != dst) scatter(dst, dst_stride, d, n, to);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

int32_t run_copy(const ElementPlan& plan, int64_t begin, int64_t end) noexcept {
  if (begin >= end) return TT_OK;
  const int64_t item = kItemSize[plan.dtype[0]];
  if (plan.dense && !plan.scalar_in[1]) {
    copy_run(plan.ptr[0] + begin * item, plan.ptr[1] + begin * item, (end - begin) * item, worth_streaming(plan.n * item));
    return TT_OK;
  }
  if (plan.dense) {
    fill_block(plan.ptr[0] + begin * item, plan.ptr[1], end - begin, item);
    return TT_OK;
  }
  Walk w;
  w.start(plan, begin);
  for (int64_t i = begin, m; i < end; i += m) {
    m = least(end - i, w.row_left());
    copy_row(plan, w.at[0], w.at[1], m);
    if (i + m < end) w.advance(m);
  }
  return TT_OK;
}

TT_ENTRY_END
