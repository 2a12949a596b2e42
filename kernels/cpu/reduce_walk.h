// Walks a ReducePlan: the sequence of one output in blocks, rows of a column tile, stages and partials.
#pragma once

#include "plan/reduce_plan.h"
#include "cpu/reduce_load.h"
#include "cpu/reduce_vec.h"

TT_ISA_BEGIN

// Position in a nest of up to 64 dimensions, dimension `first` fastest.
struct Odometer {
  const int64_t* size;
  int32_t first, n;
  int64_t at[kMaxPlanDims];

  TT_NOINLINE void start(const int64_t* sizes, int32_t from, int32_t dims, int64_t position) {
    size = sizes, first = from, n = dims;
    for (int32_t d = from; d < dims; d++) at[d] = position % sizes[d], position /= sizes[d];
  }
  TT_NOINLINE int64_t offset(const int64_t* stride) const {
    int64_t o = 0;
    for (int32_t d = first; d < n; d++) {
      o += at[d] * stride[d];
      TT_SCALAR_LOOP;
    }
    return o;
  }
  // Steps one position and moves *offset along.
  TT_NOINLINE void step(const int64_t* stride, int64_t* offset) {
    for (int32_t d = first; d < n; d++) {
      *offset += stride[d];
      if (++at[d] < size[d]) return;
      *offset -= size[d] * stride[d];
      at[d] = 0;
    }
  }
};

// The reduced sequence [from, to) of one output as blocks of compute type T.
template <class T>
struct Stream {
  static constexpr int64_t kBuffer = 8192 / int64_t(sizeof(T)) < 1024 ? 8192 / int64_t(sizeof(T)) : 1024;
  static constexpr int64_t kDirect = 128 * kBuffer;
  const ReducePlan& p;
  const char* at;
  int64_t left;
  Odometer odometer;
  alignas(64) T buffer[kBuffer];

  Stream(const ReducePlan& plan, const char* base, int64_t from, int64_t to) : p(plan), left(to - from) {
    odometer.start(p.red_size, 0, p.n_red, from);
    at = base + odometer.offset(p.red_stride);
  }

  // The next block, or 0. Unit-stride runs of native type are read in place.
  TT_NOINLINE int64_t next(const T** block) {
    if (!left) return 0;
    int64_t run = run_length();
    if (native<T>(p.dtype) && p.red_stride[0] == int64_t(sizeof(T)) && (run >= kBuffer || run == left)) {
      run = run < kDirect ? run : kDirect;
      *block = reinterpret_cast<const T*>(at);
      advance(run);
      return run;
    }
    int64_t n = 0;
    while (left && n < kBuffer) {
      run = run_length();
      run = run < kBuffer - n ? run : kBuffer - n;
      load_run(buffer + n, at, p.red_stride[0], run, p.dtype);
      n += run;
      advance(run);
    }
    *block = buffer;
    return n;
  }

 private:
  int64_t run_length() const {
    const int64_t run = p.red_size[0] - odometer.at[0];
    return run < left ? run : left;
  }
  void advance(int64_t run) {
    left -= run;
    at += run * p.red_stride[0];
    odometer.at[0] += run;
    if (odometer.at[0] < p.red_size[0] || !left) return;
    at -= p.red_size[0] * p.red_stride[0];
    odometer.at[0] = 0;
    for (int32_t d = 1; d < p.n_red; d++) {
      at += p.red_stride[d];
      if (++odometer.at[d] < p.red_size[d]) return;
      at -= p.red_size[d] * p.red_stride[d];
      odometer.at[d] = 0;
    }
  }
};

// An output that is not wanted stays NULL.
TT_INLINE char* place(char* base, int64_t offset) { return base ? base + offset : nullptr; }

// Byte offsets of the outputs [begin, …) in in, out and index, stepped together.
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
      in += p.kept_stride[d], out += p.out_stride[d], index += p.index_stride[d];
      if (++odometer.at[d] < p.kept_size[d]) return;
      in -= p.kept_size[d] * p.kept_stride[d], out -= p.kept_size[d] * p.out_stride[d];
      index -= p.kept_size[d] * p.index_stride[d];
      odometer.at[d] = 0;
    }
  }
};

// A reduction R has
//   T (compute type of an element), P (partial result), kRows (rows that one call of columns takes at once),
//   static P row(Stream<T>&, int64_t from, dtype)           the partial of a sequence whose first position is `from`
//   struct Columns { P-parts of a tile; start(n), rows(const T* const*, kRows rows, n, position), get(i) }
//   static P combine(P earlier, P later), static void finish(const ReducePlan&, P, char* out, char* index).
template <class R>
TT_NOINLINE void run_rows(const ReducePlan& p, int64_t begin, int64_t end) {
  using T = typename R::T;
  typename R::P* partial = static_cast<typename R::P*>(p.workspace);
  KeptWalk kept(p, 0, begin / p.splits);
  int64_t o = begin / p.splits, s = begin % p.splits;
  for (int64_t u = begin; u < end; u++) {
    const int64_t from = s * p.split_len, to = from + p.split_len < p.length ? from + p.split_len : p.length;
    Stream<T> stream(p, p.in + kept.in, from, to);
    const typename R::P r = R::row(stream, from);
    if (p.splits > 1) partial[s * p.n_out + o] = r;
    else R::finish(p, r, place(p.out, kept.out), place(p.index, kept.index));
    if (++s < p.splits) continue;
    s = 0, o++;
    kept.step();
  }
}

// The rows of a tile, a few at a time, each as n elements of T.
template <class R>
TT_NOINLINE void reduce_tile(const ReducePlan& p, typename R::Columns* acc, const char* base, int64_t n, int64_t from,
                        int64_t to) {
  using T = typename R::T;
  constexpr int kRows = R::kRows;
  alignas(64) T buffer[kRows][kReduceMaxTile / int64_t(sizeof(T))];
  const T* row[kRows];
  const bool direct = native<T>(p.dtype) && p.kept_stride[0] == int64_t(sizeof(T));
  Odometer odometer;
  odometer.start(p.red_size, 0, p.n_red, from);
  int64_t offset = odometer.offset(p.red_stride);
  acc->start(n);
  for (int64_t r = from; r < to;) {
    const int k = to - r < kRows ? int(to - r) : kRows;
    for (int i = 0; i < k; i++) {
      if (!direct) load_run(buffer[i], base + offset, p.kept_stride[0], n, p.dtype);
      row[i] = direct ? reinterpret_cast<const T*>(base + offset) : buffer[i];
      odometer.step(p.red_stride, &offset);
    }
    acc->rows(row, k, n, r);
    r += k;
  }
}

template <class R>
TT_NOINLINE void run_columns(const ReducePlan& p, int64_t begin, int64_t end) {
  typename R::P* partial = static_cast<typename R::P*>(p.workspace);
  typename R::Columns acc;
  for (int64_t u = begin; u < end; u++) {
    const int64_t s = u % p.splits, t = u / p.splits % p.n_tiles, outer = u / p.splits / p.n_tiles;
    const int64_t column = t * p.tile, rest = p.kept_size[0] - column, n = rest < p.tile ? rest : p.tile;
    const int64_t from = s * p.split_len, to = from + p.split_len < p.length ? from + p.split_len : p.length;
    KeptWalk kept(p, 1, outer);
    reduce_tile<R>(p, &acc, p.in + kept.in + column * p.kept_stride[0], n, from, to);
    if (p.splits > 1) {
      typename R::P* dst = partial + s * p.n_out + outer * p.kept_size[0] + column;
      for (int64_t i = 0; i < n; i++) {
        dst[i] = acc.get(i);
        TT_SCALAR_LOOP;
      }
      continue;
    }
    char* out = place(p.out, kept.out + column * p.out_stride[0]);
    char* index = place(p.index, kept.index + column * p.index_stride[0]);
    for (int64_t i = 0; i < n; i++) 
      R::finish(p, acc.get(i), place(out, i * p.out_stride[0]), place(index, i * p.index_stride[0]));
  }
}

// Combines the partials of outputs [begin, end) in place, neighbours first, tile by tile.
template <class R>
TT_NOINLINE void run_partials(const ReducePlan& p, int64_t begin, int64_t end) {
  using P = typename R::P;
  P* partial = static_cast<P*>(p.workspace);
  constexpr int64_t kTile = 256;
  KeptWalk kept(p, 0, begin);
  for (int64_t o = begin; o < end; o += kTile) {
    const int64_t n = end - o < kTile ? end - o : kTile;
    for (int64_t step = 1; step < p.splits; step *= 2)
      for (int64_t s = 0; s + step < p.splits; s += 2 * step) {
        P* a = partial + s * p.n_out + o;
        const P* b = partial + (s + step) * p.n_out + o;
        for (int64_t i = 0; i < n; i++) {
          a[i] = R::combine(a[i], b[i]);
          TT_SCALAR_LOOP;
        }
      }
    for (int64_t i = 0; i < n; i++, kept.step()) R::finish(p, partial[o + i], place(p.out, kept.out), place(p.index, kept.index));
  }
}

template <class R>
inline int32_t run_reduce(const ReducePlan& p, int64_t begin, int64_t end) {
  if (begin >= end) return TT_OK;
  if (p.run.stage == 1) run_partials<R>(p, begin, end);
  else if (p.path == kReduceRows) run_rows<R>(p, begin, end);
  else run_columns<R>(p, begin, end);
  return TT_OK;
}

TT_ISA_END
