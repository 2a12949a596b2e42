// The walk over a ReducePlan.
#include "kernels/cpu/reduce/walk.h"

#include "kernels/cpu/simd/convert.h"

TT_ENTRY_BEGIN

void Odometer::start(const int64_t* sizes, int32_t from, int32_t dims, int64_t position) noexcept {
  size = sizes;
  first = from;
  n = dims;
  for (int32_t d = from; d < dims; d++) {
    at[d] = position % sizes[d];
    position /= sizes[d];
  }
}

int64_t Odometer::offset(const int64_t* stride) const noexcept {
  int64_t o = 0;
  for (int32_t d = first; d < n; d++) {
    o += at[d] * stride[d];
    TT_SCALAR_LOOP;
  }
  return o;
}

void Odometer::step(const int64_t* stride, int64_t* offset) noexcept {
  for (int32_t d = first; d < n; d++) {
    *offset += stride[d];
    if (++at[d] < size[d]) return;
    *offset -= size[d] * stride[d];
    at[d] = 0;
  }
}

Stream::Stream(const ReducePlan& plan, const ReduceOps& parts, const char* base, int64_t from,
               int64_t to) noexcept
    : p(plan), ops(parts), left(to - from) {
  odometer.start(p.red_size, 0, p.n_red, from);
  at = base + odometer.offset(p.red_stride);
}

// Advances by `run` elements along dimension 0; they do not cross its end.
static void advance(Stream* s, int64_t run) {
  const ReducePlan& p = s->p;
  s->left -= run;
  s->at += run * p.red_stride[0];
  s->odometer.at[0] += run;
  if (s->odometer.at[0] < p.red_size[0] || !s->left) return;
  s->at -= p.red_size[0] * p.red_stride[0];
  s->odometer.at[0] = 0;
  Odometer& o = s->odometer;
  for (int32_t d = 1; d < p.n_red; d++) {
    s->at += p.red_stride[d];
    if (++o.at[d] < p.red_size[d]) return;
    s->at -= p.red_size[d] * p.red_stride[d];
    o.at[d] = 0;
  }
}

int64_t Stream::next_block(const void** block) noexcept {
  const auto run_length = [&] { return min(p.red_size[0] - odometer.at[0], left); };
  if (!left) return 0;
  const int64_t room = min<int64_t>(kBytes / ops.item, 1024);
  int64_t run = run_length();
  if (ops.native == p.dtype && p.red_stride[0] == ops.item && (run >= room || run == left)) {
    run = run < kDirectBytes / ops.item ? run : kDirectBytes / ops.item;
    *block = at;
    advance(this, run);
    return run;
  }
  int64_t n = 0;
  while (left && n < room) {
    run = run_length();
    run = min(run, room - n);
    ops.load(buffer + n * ops.item, at, p.red_stride[0], run, p.dtype);
    n += run;
    advance(this, run);
  }
  *block = buffer;
  return n;
}

TT_ENTRY_END

TT_ISA_BEGIN

// NULL if the output is not wanted.
inline char* place(char* base, int64_t offset) { return base ? base + offset : nullptr; }

// The byte offsets of one output in `in`, `out` and `index`, stepped together.
struct KeptWalk {
  const ReducePlan& p;
  Odometer odometer;
  int64_t in, out, index;

  TT_NOINLINE KeptWalk(const ReducePlan& plan, int32_t first, int64_t position) : p(plan) {
    odometer.start(p.kept_size, first, p.n_kept, position);
    in = odometer.offset(p.kept_stride);
    out = odometer.offset(p.out_stride);
    index = odometer.offset(p.index_stride);
  }
  TT_NOINLINE void step() {
    for (int32_t d = odometer.first; d < p.n_kept; d++) {
      in += p.kept_stride[d];
      out += p.out_stride[d];
      index += p.index_stride[d];
      if (++odometer.at[d] < p.kept_size[d]) return;
      in -= p.kept_size[d] * p.kept_stride[d];
      out -= p.kept_size[d] * p.out_stride[d];
      index -= p.kept_size[d] * p.index_stride[d];
      odometer.at[d] = 0;
    }
  }
};

struct Piece {
  int64_t from, to;
};
inline Piece piece_of(const ReducePlan& p, int64_t s) {
  const int64_t from = s * p.split_len;
  const int64_t to = from + p.split_len;
  return {from, min(to, p.length)};
}

inline void run_rows(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) {
  KeptWalk kept(p, 0, begin / p.splits);
  int64_t o = begin / p.splits;
  int64_t s = begin % p.splits;
  for (int64_t u = begin; u < end; u++) {
    const Piece piece = piece_of(p, s);
    Stream stream(p, ops, p.in + kept.in, piece.from, piece.to);
    alignas(16) char partial[16];
    ops.row(stream, piece.from, partial);
    if (p.splits > 1)
      memcpy(static_cast<char*>(p.workspace) + (s * p.n_out + o) * ops.partial, partial,
             size_t(ops.partial));
    else ops.finish(p, ops, partial, 1, place(p.out, kept.out), place(p.index, kept.index));
    if (++s < p.splits) continue;
    s = 0;
    o++;
    kept.step();
  }
}

// Accumulates rows piece.from … piece.to of a tile of n columns, rows_at_once at a time.
inline void reduce_tile(const ReduceOps& ops, const ReducePlan& p, void* acc, const char* base,
                        int64_t n, Piece piece) {
  constexpr int kMaxRows = 8;
  alignas(64) char buffer[kMaxRows][kReduceLoadTile];
  const void* row[kMaxRows];
  const bool direct = ops.native == p.dtype && p.kept_stride[0] == ops.item;
  Odometer odometer;
  odometer.start(p.red_size, 0, p.n_red, piece.from);
  int64_t offset = odometer.offset(p.red_stride);
  ops.start(acc, ops, n, piece.from);
  for (int64_t r = piece.from; r < piece.to;) {
    const int k = piece.to - r < ops.rows_at_once ? int(piece.to - r) : ops.rows_at_once;
    for (int i = 0; i < k; i++) {
      if (!direct) ops.load(buffer[i], base + offset, p.kept_stride[0], n, p.dtype);
      row[i] = direct ? base + offset : buffer[i];
      odometer.step(p.red_stride, &offset);
    }
    ops.rows(acc, row, k, n, r);
    r += k;
  }
}

// Writes the results of n accumulated columns.
inline void finish_columns(const ReduceOps& ops, const ReducePlan& p, const void* acc, int64_t n,
                           char* out, char* index) {
  if (ops.put && out && !index && p.out_dtype == ops.native && p.out_stride[0] == ops.item)
    return ops.put(acc, p, ops, n, out);
  constexpr int64_t kSome = 64;
  alignas(64) char partial[16 * kSome];
  for (int64_t i = 0; i < n; i += kSome) {
    const int64_t some = min(n - i, kSome);
    ops.get(acc, i, some, partial);
    ops.finish(p, ops, partial, some, place(out, i * p.out_stride[0]),
               place(index, i * p.index_stride[0]));
  }
}

// Short contiguous rows: a tile of them is transposed, so that a row is a column.
constexpr int64_t kShortRow = 64, kShortTile = 64, kShortBytes = 8192;
inline bool has_short_rows(const ReduceOps& ops, const ReducePlan& p) {
  return ops.rows_at_once && p.length > 1 && p.length <= kShortRow && p.n_out >= 16 &&
         p.splits == 1 && p.n_red == 1 && p.red_stride[0] == kItemSize[p.dtype] &&
         (ops.item == 4 || ops.item == 8);
}
// Converts n rows, which begin at `in`.
inline void load_rows(const ReduceOps& ops, const ReducePlan& p, const char* in, int64_t n,
                      char* loaded) {
  const int64_t stride = p.red_stride[0];
  if (p.kept_stride[0] == p.length * stride)
    return ops.load(loaded, in, stride, n * p.length, p.dtype);
  for (int64_t i = 0; i < n; i++, loaded += p.length * ops.item)
    ops.load(loaded, in + i * p.kept_stride[0], stride, p.length, p.dtype);
}
inline void run_short_rows(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) {
  alignas(64) char acc[kAccumulatorBytes];
  alignas(64) char loaded[kShortBytes], columns[kShortBytes];
  const int64_t tile = min(kShortBytes / (p.length * ops.item) / 16 * 16, kShortTile);
  const int64_t step = tile * ops.item;  // between rows of `columns`
  const bool direct = p.dtype == ops.native;
  for (int64_t o = begin, n; o < end; o += n) {
    const KeptWalk kept(p, 0, o);
    n = min(min(end - o, tile), p.kept_size[0] - kept.odometer.at[0]);
    const char* rows = p.in + kept.in;
    int64_t row_stride = p.kept_stride[0];
    if (!direct) {
      load_rows(ops, p, rows, n, loaded);
      rows = loaded;
      row_stride = p.length * ops.item;
    }
    transpose_elements(columns, step, rows, row_stride, p.length, n, ops.item);
    ops.start(acc, ops, n, 0);
    for (int64_t r = 0; r < p.length; r += ops.rows_at_once) {
      const void* row[8];
      const int64_t k = min<int64_t>(p.length - r, ops.rows_at_once);
      for (int64_t i = 0; i < k; i++) row[i] = columns + (r + i) * step;
      ops.rows(acc, row, int(k), n, r);
    }
    finish_columns(ops, p, acc, n, place(p.out, kept.out), place(p.index, kept.index));
  }
}

inline void run_columns(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) {
  alignas(64) char acc[kAccumulatorBytes];
  for (int64_t u = begin; u < end; u++) {
    const int64_t s = u % p.splits;
    const int64_t t = u / p.splits % p.n_tiles;
    const int64_t outer = u / p.splits / p.n_tiles;
    const int64_t column = t * p.tile;
    const int64_t rest = p.kept_size[0] - column;
    const int64_t n = min(rest, p.tile);
    KeptWalk kept(p, 1, outer);
    reduce_tile(ops, p, acc, p.in + kept.in + column * p.kept_stride[0], n, piece_of(p, s));
    if (p.splits > 1) {
      ops.get(acc, 0, n,
              static_cast<char*>(p.workspace) +
                  (s * p.n_out + outer * p.kept_size[0] + column) * ops.partial);
      continue;
    }
    finish_columns(ops, p, acc, n, place(p.out, kept.out + column * p.out_stride[0]),
                   place(p.index, kept.index + column * p.index_stride[0]));
  }
}

// ---- few columns: several rows that follow each other are one wide row ----

constexpr int64_t kWideRow = 128;     // columns of a wide row, at most
constexpr int64_t kMinWideRows = 16;  // fewer do not pay

// Returns how many rows are a wide one; 1: rows stay as they are.
inline int64_t rows_of_wide(const ReduceOps& ops, const ReducePlan& p) {
  if (p.n_kept == 0 || p.n_red != 1 || !ops.any_order || ops.rows_at_once == 0) return 1;
  const int64_t n = p.kept_size[0];
  const int64_t item = kItemSize[p.dtype];
  if (n < 2 || n > kWideRow / 2) return 1;
  if (p.kept_stride[0] != item || p.red_stride[0] != n * item) return 1;
  // Terms have their own row() on some instruction sets.
  if (p.path == kReduceRows && (p.n_kept > 1 || p.term != kReduceElements)) return 1;
  const int64_t rows = kWideRow / n;
  return p.split_len >= kMinWideRows * rows ? rows : 1;
}

// Accumulates rows of n columns that follow each other.
inline void add_adjacent_rows(const ReduceOps& ops, const ReducePlan& p, void* acc,
                              const char* base, int64_t n, int64_t rows) {
  constexpr int kMaxRows = 8;
  alignas(64) char buffer[kMaxRows][kWideRow * 16];
  const void* row[kMaxRows];
  const int64_t item = kItemSize[p.dtype];
  for (int64_t r = 0; r < rows; r += ops.rows_at_once) {
    const int k = int(min<int64_t>(rows - r, ops.rows_at_once));
    for (int i = 0; i < k; i++, base += n * item) {
      row[i] = base;
      if (ops.native == p.dtype) continue;
      ops.load(buffer[i], base, item, n, p.dtype);
      row[i] = buffer[i];
    }
    ops.rows(acc, row, k, n, 0);
  }
}

// Reduces a piece of the rows from `base` on. partial: [n], with room for kWideRow.
inline void reduce_wide_rows(const ReduceOps& ops, const ReducePlan& p, int64_t rows_of_one,
                             const char* base, Piece piece, char* partial) {
  alignas(64) char acc[kAccumulatorBytes];
  const int64_t n = p.kept_size[0];
  const int64_t rows = piece.to - piece.from;
  const int64_t rest = rows % rows_of_one;
  base += piece.from * p.red_stride[0];
  ops.start(acc, ops, n * rows_of_one, 0);
  add_adjacent_rows(ops, p, acc, base, n * rows_of_one, rows / rows_of_one);
  add_adjacent_rows(ops, p, acc, base + (rows - rest) * p.red_stride[0], n, rest);
  ops.get(acc, 0, n * rows_of_one, partial);
  for (int64_t left = rows_of_one; left > 1; left -= left / 2) {
    const int64_t half = left / 2;
    ops.combine(partial, partial + (left - half) * n * ops.partial, half * n);
  }
}

// Not inline: its arrays would cost every reduction a frame.
TT_NOINLINE void run_wide_rows(const ReduceOps& ops, const ReducePlan& p, int64_t rows_of_one,
                               int64_t begin, int64_t end) {
  alignas(64) char partial[16 * kWideRow];
  const int64_t n = p.kept_size[0];
  // On the rows path the units of the first output reduce the pieces of all; the others are idle.
  if (p.path == kReduceRows) end = min(end, p.splits);
  for (int64_t u = begin; u < end; u++) {
    const int64_t s = u % p.splits;
    const int64_t outer = u / p.splits;
    KeptWalk kept(p, 1, outer);
    reduce_wide_rows(ops, p, rows_of_one, p.in + kept.in, piece_of(p, s), partial);
    if (p.splits > 1)
      memcpy(static_cast<char*>(p.workspace) + (s * p.n_out + outer * n) * ops.partial, partial,
             size_t(n * ops.partial));
    else ops.finish(p, ops, partial, n, place(p.out, kept.out), nullptr);
  }
}

// Stage 1. workspace: [splits][n_out] partials. Combines those of outputs [begin, end) in place as
// a binary tree, and writes the results.
inline void run_partials(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) {
  constexpr int64_t kTile = 256;
  char* base = static_cast<char*>(p.workspace);
  KeptWalk kept(p, 0, begin);
  for (int64_t o = begin; o < end; o += kTile) {
    const int64_t n = min(end - o, kTile);
    for (int64_t step = 1; step < p.splits; step *= 2)
      for (int64_t s = 0; s + step < p.splits; s += 2 * step)
        ops.combine(base + (s * p.n_out + o) * ops.partial,
                    base + ((s + step) * p.n_out + o) * ops.partial, n);
    for (int64_t i = 0; i < n; i++, kept.step())
      ops.finish(p, ops, base + (o + i) * ops.partial, 1, place(p.out, kept.out),
                 place(p.index, kept.index));
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

int32_t run_reduce(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) noexcept {
  if (begin >= end) return TT_OK;
  if (p.run.stage == 1) {
    run_partials(ops, p, begin, end);
    return TT_OK;
  }
  const int64_t wide = rows_of_wide(ops, p);
  if (wide > 1) run_wide_rows(ops, p, wide, begin, end);
  else if (p.path == kReduceColumns) run_columns(ops, p, begin, end);
  else if (has_short_rows(ops, p)) run_short_rows(ops, p, begin, end);
  else run_rows(ops, p, begin, end);
  return TT_OK;
}

TT_ENTRY_END
