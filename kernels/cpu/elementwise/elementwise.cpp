// run_elementwise: gives a functor's loop contiguous arrays of its own types, whatever the strides
// and dtypes of the plan. Operands that are not such arrays are copied through blocks on the stack.
//
//   run_few      dense, at most kBlockBytes / 16 elements
//   run_dense    dense; scalars are expanded to a block, large outputs are streamed
//   run_by_one   rows of an output and an input beside one element of the other input
//   run_rows     every operand is an array within a row
//   run_strided  everything else: fetch inputs to blocks, compute, store the block
#include "kernels/cpu/elementwise/elementwise.h"

#include "kernels/cpu/simd/stream.h"
#include "kernels/cpu/elementwise/rows.h"
#include "kernels/cpu/elementwise/walk.h"

TT_ISA_BEGIN

constexpr int kMaxInputs = kMaxOperands - 1;
// Several rows shorter than this are gathered into one block.
constexpr int64_t kShortRow = 128;
// The bytes that all blocks of a run share. Each block is followed by another kBehind bytes.
constexpr int64_t kRoomBytes = kMaxOperands * kBlockBytes;
constexpr int64_t kBehind = 64;
TT_INLINE int64_t share_of_room(int64_t n_blocks) { return kRoomBytes / n_blocks & ~INT64_C(63); }

TT_INLINE int32_t native_of(uint32_t native, int k) { return int32_t(native >> (8 * k) & 0xff); }

// ---- dense plans: every operand is contiguous, or one scalar ----

int32_t run_few(const ElementPlan& plan, int64_t begin, int64_t end, Block block, uint32_t native) {
  alignas(64) char scalar[kMaxInputs][kBlockBytes];
  const char* in[kMaxOperands] = {};
  for (int k = 1; k < plan.n_operands; k++) {
    const int64_t item = kItemSize[native_of(native, k)];
    in[k] = plan.ptr[k] + begin * item;
    if (!plan.scalar_in[k]) continue;
    fill_block(scalar[k - 1], plan.ptr[k], end - begin, item);
    in[k] = scalar[k - 1];
  }
  block(plan, plan.ptr[0] + begin * kItemSize[native_of(native, 0)], in[1], in[2], in[3],
        end - begin);
  return TT_OK;
}

int32_t run_dense(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                  uint32_t native) {
  alignas(64) char room[kRoomBytes], buffer[kBlockBytes];
  int64_t item[kMaxOperands] = {};
  int64_t widest = 1;
  const char* in[kMaxOperands] = {};
  int64_t n_scalars = 0;
  bool in_place = false;
  for (int k = 0; k < plan.n_operands; k++) {
    item[k] = kItemSize[native_of(native, k)];
    widest = max(item[k], widest);
    in_place |= k > 0 && plan.ptr[k] == plan.ptr[0];
    n_scalars += plan.scalar_in[k];
  }
  const int64_t n = end - begin;
  const bool stream = !in_place && worth_streaming(plan.n * item[0]);
  const int64_t share = n_scalars ? share_of_room(n_scalars) : kRoomBytes;
  const int64_t block_n = stream ? block_elements(widest) : share / widest;
  char* next = room;
  for (int k = 1; k < plan.n_operands; k++) {
    in[k] = plan.ptr[k] + begin * item[k];
    if (!plan.scalar_in[k]) continue;
    fill_block(next, plan.ptr[k], min(block_n, n), item[k]);
    in[k] = next;
    next += share;
    item[k] = 0;  // in[k] does not advance
  }
  char* out = plan.ptr[0] + begin * item[0];
  if (!stream && n_scalars == 0) {
    block(plan, out, in[1], in[2], in[3], n);
    return TT_OK;
  }
  // A streamed run starts with a short block that ends on a cache line.
  const int64_t head = (64 - int64_t(reinterpret_cast<uintptr_t>(out) & 63)) / item[0];
  int64_t m = min(stream ? head : block_n, n);
  for (int64_t i = 0; i < n; i += m, m = min(block_n, n - i)) {
    const bool past_cache = stream && is_line_aligned(out);
    block(plan, past_cache ? buffer : out, in[1], in[2], in[3], m);
    if (past_cache) stream_copy(out, buffer, m * item[0]);
    out += m * item[0];
    for (int k = 1; k < plan.n_operands; k++) in[k] += m * item[k];
  }
  if (stream) stream_fence();
  return TT_OK;
}

// ---- all other plans ----

// Calls move(address, n, rows, step) for the runs of m elements of operand k from position w on:
// `rows` runs of n elements, `step` bytes apart; more than one only if they are whole rows. Meant
// for short rows.
template <class Move> TT_INLINE void for_rows(const Walk& w, int k, int64_t m, const Move& move) {
  const ElementPlan& p = *w.plan;
  const int64_t* stride = p.stride[k];
  int64_t index[kMaxPlanDims];
  for (int d = 0; d < p.ndim; d++) index[d] = w.index[d];
  char* at = w.at[k];
  for (;;) {
    const int64_t n = min(m, p.size[0] - index[0]);
    const int64_t rows = n == p.size[0] ? min(m / n, p.size[1] - index[1]) : 1;
    move(at, n, rows, stride[1]);
    m -= rows * n;
    if (m == 0) return;
    at += rows * stride[1] - index[0] * stride[0];
    index[0] = 0;
    index[1] += rows;
    for (int d = 1; d + 1 < p.ndim && index[d] == p.size[d]; d++) {
      at += stride[d + 1] - index[d] * stride[d];
      index[d] = 0;
      index[d + 1]++;
    }
  }
}

// Writes rows of n elements of a size, each of which repeats its element of the source. Whole
// vectors are written, the last one maybe behind the last row.
TT_INLINE void fill_rows(char* block, const char* at, int64_t n, int64_t rows, int64_t step,
                         int64_t itemsize) {
  with_item(itemsize, [&]<class T>(T) TT_INLINE_BODY {
    auto* out = reinterpret_cast<T*>(block);
    for (int64_t r = 0; r < rows; r++, out += n, at += step) {
      const T one = *reinterpret_cast<const T*>(at);
      if constexpr (sizeof(T) > 8) {
        for (int64_t i = 0; i < n; i++) out[i] = one;
      } else {
        const Vec<T> all = splat(one);
        for (int64_t i = 0; i < n; i += kLanes<T>) store(out + i, all);
      }
    }
  });
}

// Copies m elements of operand k, of `item` bytes each, from position w on to a block.
void gather_rows(const Walk& w, int k, char* block, int64_t m, int64_t item) {
  const int64_t stride = w.plan->stride[k][0];
  const auto gather_strided = [&](const char* at, int64_t n) TT_INLINE_BODY {
    with_item(item, [&]<class T>(T) TT_INLINE_BODY {
      for (int64_t i = 0; i < n; i++)
        reinterpret_cast<T*>(block)[i] = *reinterpret_cast<const T*>(at + i * stride);
    });
  };
  for_rows(w, k, m, [&](const char* at, int64_t n, int64_t rows, int64_t step) TT_INLINE_BODY {
    const int64_t bytes = n * item;
    if (stride == 0) {
      fill_rows(block, at, n, rows, step, item);
      block += rows * bytes;
      return;
    }
    for (int64_t r = 0; r < rows; r++, at += step, block += bytes) {
      if (stride == item) copy_bytes(block, at, bytes);
      else gather_strided(at, n);
    }
  });
}
// The same where all rows are one.
void gather_repeated_row(const Walk& w, int k, char* block, int64_t m, int64_t item) {
  constexpr int64_t kFewRows = 8;
  const int64_t first = min(m, kFewRows * w.plan->size[0]);
  gather_rows(w, k, block, first, item);
  for (int64_t done = first; done < m; done *= 2)
    copy_bytes(block + done * item, block, min(done, m - done) * item);
}
// Copies a block to them.
void scatter_rows(const Walk& w, int k, const char* block, int64_t m, int64_t item) {
  const int64_t stride = w.plan->stride[k][0];
  for_rows(w, k, m, [&](char* at, int64_t n, int64_t rows, int64_t step) TT_INLINE_BODY {
    for (int64_t r = 0; r < rows; r++, at += step, block += n * item) {
      if (stride == item) copy_bytes(at, block, n * item);
      else scatter(at, stride, block, n, item);
    }
  });
}

// Which of two inputs has one element for each row of the other input and of the output; 0: none.
int input_by_one(const ElementPlan& p, uint32_t native) {
  if (p.n_operands != 3) return 0;
  int one = 0;
  for (int k = 0; k < 3; k++) {
    if (p.dtype[k] != native_of(native, k)) return 0;
    if (p.stride[k][0] == kItemSize[p.dtype[k]]) continue;
    if (p.stride[k][0] != 0 || k == 0 || one) return 0;
    one = k;
  }
  return one;
}

// Calls run(walk, n, rows) for the runs of n elements of dimension 0 in turn. There are `rows` such
// runs, which follow each other in dimension 1; more than one only if they are whole rows.
template <class Run>
TT_INLINE void for_runs(const ElementPlan& plan, int64_t begin, int64_t end, const Run& run) {
  Walk w;
  w.start(plan, begin);
  for (int64_t i = begin; i < end;) {
    const int64_t n = min(w.row_left(), end - i);
    const bool whole = plan.ndim > 1 && n == plan.size[0];
    const int64_t rows = whole ? min((end - i) / n, plan.size[1] - w.index[1]) : 1;
    run(w, n, rows);
    i += n * rows;
    if (i < end) w.skip(n * rows);
  }
}

// Runs the block over each row.
int32_t run_rows(const ElementPlan& plan, int64_t begin, int64_t end, Block block) {
  for_runs(plan, begin, end, [&](const Walk& w, int64_t n, int64_t rows) TT_INLINE_BODY {
    char* at[kMaxOperands] = {};
    for (int64_t r = 0; r < rows; r++) {
      for (int k = 0; k < plan.n_operands; k++) at[k] = w.at[k] + r * plan.stride[k][1];
      block(plan, at[0], at[1], at[2], at[3], n);
    }
  });
  return TT_OK;
}

// The operands of a strided plan at one position, and their blocks.
struct Strided {
  const ElementPlan& plan;
  uint32_t native;
  bool short_rows;          // blocks span rows
  bool unit[kMaxOperands];  // the operand has unit stride within a block
  // The block of the operand depends on its address alone: an element or a short row is repeated.
  bool repeats[kMaxOperands];
  // If so: the address that its block was made from, and its number of elements.
  const char* filled[kMaxOperands] = {};
  int64_t filled_n[kMaxOperands] = {};
  bool all_direct;  // no operand has a block
  int64_t block_n;  // elements of a block
  Walk w;
  char* block[kMaxOperands];
  alignas(64) char room[kRoomBytes + kMaxOperands * kBehind];
  char raw[kBlockBytes + kBehind];

  TT_INLINE Strided(const ElementPlan& p, uint32_t native_dtypes) : plan(p), native(native_dtypes) {
    int64_t widest = 1;
    bool all_native = true;
    for (int k = 0; k < p.n_operands; k++) {
      const int64_t stored = kItemSize[p.dtype[k]];
      const int64_t item = kItemSize[native_of(native, k)];
      widest = max(stored, widest);
      widest = max(item, widest);
      all_native &= p.dtype[k] == native_of(native, k);
    }
    short_rows = p.ndim > 1 && (p.size[0] < kShortRow || (all_native && rows_fit(widest)));
    int64_t n_blocks = 0;
    for (int k = 0; k < p.n_operands; k++) {
      unit[k] = short_rows ? is_linear(p, k) : p.stride[k][0] == kItemSize[p.dtype[k]];
      repeats[k] = short_rows ? !unit[k] && is_one_row(p, k) : p.stride[k][0] == 0;
      n_blocks += !direct(k);
    }
    all_direct = n_blocks == 0;
    if (all_direct) return;
    const int64_t share = share_of_room(n_blocks);
    char* next = room;
    for (int k = 0; k < p.n_operands; k++) {
      block[k] = next;
      if (!direct(k)) next += share + kBehind;
    }
    block_n = all_native ? share / widest : block_elements(widest);
    if (short_rows) block_n -= block_n % p.size[0];  // so that rows repeat in phase
  }

  // Returns whether blocks that span rows pay although rows are not short: operands that are not
  // linear repeat a row or an element, and two rows and more fit a block.
  bool rows_fit(int64_t widest) const {
    int64_t bytes = 0;  // of a row's blocks
    for (int k = 0; k < plan.n_operands; k++) {
      if (is_linear(plan, k)) continue;
      const bool is_row = plan.stride[k][0] == kItemSize[plan.dtype[k]] && is_one_row(plan, k);
      if (k == 0 || (!is_row && plan.stride[k][0] != 0)) return false;
      bytes += plan.size[0] * widest;
    }
    return 2 * bytes <= kRoomBytes;
  }

  TT_INLINE bool direct(int k) const { return unit[k] && plan.dtype[k] == native_of(native, k); }

  // Returns m elements of input k as an array of its native dtype.
  TT_INLINE const char* fetch(int k, int64_t m) {
    if (direct(k)) return w.at[k];
    const int32_t dtype = plan.dtype[k];
    const int32_t as = native_of(native, k);
    const int64_t stored = kItemSize[dtype];
    if (repeats[k]) {
      if (filled[k] == w.at[k] && filled_n[k] >= m) return block[k];
      filled[k] = w.at[k];
      filled_n[k] = m;
    }
    if (plan.stride[k][0] == 0 && !short_rows) {
      alignas(16) char one[16];
      convert_block(one, as, w.at[k], dtype, 1);
      fill_block(block[k], one, m, kItemSize[as]);
      return block[k];
    }
    const char* from = w.at[k];
    if (!unit[k]) {
      char* to = dtype == as ? block[k] : raw;
      if (short_rows && repeats[k]) gather_repeated_row(w, k, to, m, stored);
      else if (short_rows) gather_rows(w, k, to, m, stored);
      else gather(to, from, plan.stride[k][0], m, stored);
      from = to;
    }
    if (dtype != as) convert_block(block[k], as, from, dtype, m);
    return block[k];
  }

  // Stores block[0], m elements of the output's native dtype.
  TT_INLINE void store(int64_t m) {
    const int32_t dtype = plan.dtype[0];
    const int32_t as = native_of(native, 0);
    const int64_t stored = kItemSize[dtype];
    if (unit[0]) return convert_block(w.at[0], dtype, block[0], as, m);
    char* from = block[0];
    if (dtype != as) {
      from = raw;
      convert_block(from, dtype, block[0], as, m);
    }
    if (short_rows) scatter_rows(w, 0, from, m, stored);
    else scatter(w.at[0], plan.stride[0][0], from, m, stored);
  }
};

int32_t run_strided(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                    uint32_t native) {
  Strided s(plan, native);
  if (s.all_direct) return run_rows(plan, begin, end, block);
  s.w.start(plan, begin);
  for (int64_t i = begin; i < end;) {
    int64_t m = min(s.block_n, end - i);
    if (!s.short_rows) m = min(m, s.w.row_left());
    const char* in[kMaxOperands] = {};
    for (int k = 1; k < plan.n_operands; k++) in[k] = s.fetch(k, m);
    const bool direct = s.direct(0);
    block(plan, direct ? s.w.at[0] : s.block[0], in[1], in[2], in[3], m);
    if (!direct) s.store(m);
    i += m;
    if (i == end) break;
    s.w.skip(m);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

int32_t run_indirect(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                     uint32_t native) noexcept {
  if (begin >= end) return TT_OK;
  if (plan.dense && end - begin <= kBlockBytes / 16)
    return run_few(plan, begin, end, block, native);
  if (plan.dense) return run_dense(plan, begin, end, block, native);
  return run_strided(plan, begin, end, block, native);
}

int32_t run_in_double(const ElementPlan& plan, int64_t begin, int64_t end, Block block) noexcept {
  constexpr uint32_t kDoubles = TT_F64 * 0x01010101u;
  if (begin >= end) return TT_OK;
  if (!plan.dense) return run_strided(plan, begin, end, block, kDoubles);
  ElementPlan row = plan;
  row.ndim = 1;
  row.size[0] = plan.n;
  for (int k = 0; k < plan.n_operands; k++)
    row.stride[k][0] = plan.scalar_in[k] ? 0 : kItemSize[plan.dtype[k]];
  return run_strided(row, begin, end, block, kDoubles);
}

bool run_by_one(const ElementPlan& plan, int64_t begin, int64_t end, RowsByOne second_is_one,
                RowsByOne first_is_one, uint32_t native) noexcept {
  const int one = input_by_one(plan, native);
  const RowsByOne loop = one == 1 ? first_is_one : second_is_one;
  if (one == 0 || !loop) return false;
  const int other = 3 - one;
  int64_t stride[3] = {};
  if (plan.ndim > 1) {
    stride[0] = plan.stride[0][1];
    stride[1] = plan.stride[other][1];
    stride[2] = plan.stride[one][1];
  }
  for_runs(plan, begin, end, [&](const Walk& w, int64_t n, int64_t rows) TT_INLINE_BODY {
    loop(plan, w.at[0], w.at[other], w.at[one], stride, n, rows);
  });
  return true;
}

int32_t run_elementwise(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                        uint32_t native) noexcept {
  if (begin >= end) return TT_OK;
  bool direct = plan.dense && plan.n <= kStreamCandidate / 16;
  for (int k = 1; k < plan.n_operands; k++) direct = direct && !plan.scalar_in[k];
  if (!direct) return run_indirect(plan, begin, end, block, native);
  const char* in[kMaxOperands] = {};
  for (int k = 1; k < plan.n_operands; k++)
    in[k] = plan.ptr[k] + begin * kItemSize[native_of(native, k)];
  block(plan, plan.ptr[0] + begin * kItemSize[native_of(native, 0)], in[1], in[2], in[3],
        end - begin);
  return TT_OK;
}

TT_ENTRY_END
