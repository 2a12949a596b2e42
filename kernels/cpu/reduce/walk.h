// The walk over a ReducePlan, shared by all reductions. It calls one reduction through a table of
// functions (ReduceOps). Two paths:
//
//   rows     each output is a Stream: its elements in order, block by block
//   columns  a tile of neighbouring outputs is accumulated at once, one row of inputs after another
//            (short rows, too: a few of them are transposed first; few columns: several rows are
//            one wide row, whose columns are combined)
//
// Either may be split over threads; then stage 1 combines the partials of the pieces.
#pragma once

#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/virtual_lanes.h"
#include "plan/reduce_plan.h"

TT_ENTRY_BEGIN

struct ReduceOps;

// A position in dimensions [first, n) of a nest, dimension `first` fastest.
struct Odometer {
  const int64_t* size;
  int32_t first, n;
  int64_t at[kMaxPlanDims];

  void start(const int64_t* sizes, int32_t from, int32_t dims, int64_t position) noexcept;
  int64_t offset(const int64_t* stride) const noexcept;
  // Steps to the next position and updates *offset.
  void step(const int64_t* stride, int64_t* offset) noexcept;
};

// Elements [from, to) that one output reduces, as blocks of the compute type.
struct Stream {
  static constexpr int64_t kBytes = 8192;           // largest block that is copied or converted
  static constexpr int64_t kDirectBytes = 1 << 19;  // largest block that is read in place
  const ReducePlan& p;
  const ReduceOps& ops;
  const char* at;
  int64_t left;
  Odometer odometer;
  alignas(64) char buffer[kBytes];

  Stream(const ReducePlan& plan, const ReduceOps& parts, const char* base, int64_t from,
         int64_t to) noexcept;
  // Sets *block; returns its length, 0 at the end.
  int64_t next_block(const void** block) noexcept;
  template <class T> TT_INLINE int64_t next(const T** block) {
    const void* p = nullptr;
    const int64_t n = next_block(&p);
    *block = static_cast<const T*>(p);
    return n;
  }
};

// One reduction. A partial is the result of a piece of the elements, at most 16 bytes.
struct ReduceOps {
  LoadRun load;
  int32_t native;        // dtype that needs no load
  int32_t item;          // bytes of an element of the compute type
  int32_t partial;       // bytes of a partial
  int32_t rows_at_once;  // at most 8; 0: short rows must not be transposed into columns
  bool any_order;        // elements may be combined in any grouping
  uint64_t flip;         // the bits of elements that are inverted before comparing (extreme.h)
  // Reduces a stream whose first element has the position `from`.
  void (*row)(Stream& s, int64_t from, void* partial) noexcept;
  // A tile of n columns: start sets n accumulators; rows adds k rows, the first at `position`; get
  // reads n partials from column `first` on.
  void (*start)(void* acc, const ReduceOps& ops, int64_t n, int64_t position) noexcept;
  void (*rows)(void* acc, const void* const* row, int k, int64_t n, int64_t position) noexcept;
  void (*get)(const void* acc, int64_t first, int64_t n, void* partial) noexcept;
  void (*combine)(void* earlier, const void* later, int64_t n) noexcept;  // into `earlier`
  // Writes the results of n columns, which are contiguous and of dtype `native`; NULL: by finish.
  void (*put)(const void* acc, const ReducePlan& p, const ReduceOps& ops, int64_t n,
              char* out) noexcept;
  // Writes n results at the strides of dimension 0; out or index may be NULL.
  void (*finish)(const ReducePlan& p, const ReduceOps& ops, const void* partial, int64_t n,
                 char* out, char* index) noexcept;
};
constexpr int64_t kAccumulatorBytes = 2 * kReduceMaxTile + 64;

int32_t run_reduce(const ReduceOps& ops, const ReducePlan& p, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

// Functions of ReduceOps from a reduction R, which has
//   T: compute type, P: partial, Columns: accumulators of a tile, kRows: rows_at_once
//   P row(Stream&, int64_t from); P combine(P, P);
//   void finish(const ReducePlan&, const ReduceOps&, P, char* out, char* index)
//   kPuts: whether Columns has put(const ReducePlan&, const ReduceOps&, int64_t n, T* out); a
//   reduction without this constant depends on the order of elements
template <class R> struct Parts {
  using T = typename R::T;
  using P = typename R::P;
  using Columns = typename R::Columns;
  static_assert(sizeof(P) <= 16 && sizeof(Columns) <= kAccumulatorBytes);

  static void row(Stream& s, int64_t from, void* partial) noexcept {
    *static_cast<P*>(partial) = R::row(s, from);
  }
  static void start(void* acc, const ReduceOps& ops, int64_t n, int64_t position) noexcept {
    static_cast<Columns*>(acc)->start(ops, n, position);
  }
  static TT_NOINLINE void rows(void* acc, const void* const* row, int k, int64_t n,
                               int64_t position) noexcept {
    static_cast<Columns*>(acc)->rows(reinterpret_cast<const T* const*>(row), k, n, position);
  }
  static void get(const void* acc, int64_t first, int64_t n, void* partial) noexcept {
    for (int64_t i = 0; i < n; i++) {
      static_cast<P*>(partial)[i] = static_cast<const Columns*>(acc)->get(first + i);
      TT_SCALAR_LOOP;
    }
  }
  static void combine(void* earlier, const void* later, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) {
      static_cast<P*>(earlier)[i] =
          R::combine(static_cast<P*>(earlier)[i], static_cast<const P*>(later)[i]);
      TT_SCALAR_LOOP;
    }
  }
  static void finish(const ReducePlan& p, const ReduceOps& ops, const void* partial, int64_t n,
                     char* out, char* index) noexcept {
    for (int64_t i = 0; i < n; i++) {
      R::finish(p, ops, static_cast<const P*>(partial)[i],
                out ? out + i * p.out_stride[0] : nullptr,
                index ? index + i * p.index_stride[0] : nullptr);
      TT_SCALAR_LOOP;
    }
  }
};

template <class R> constexpr decltype(ReduceOps::put) put_of() {
  if constexpr (requires { R::kPuts; }) {
    if constexpr (R::kPuts)
      return [](const void* acc, const ReducePlan& p, const ReduceOps& ops, int64_t n,
                char* out) noexcept {
        static_cast<const typename R::Columns*>(acc)->put(p, ops, n,
                                                          reinterpret_cast<typename R::T*>(out));
      };
  }
  return nullptr;
}

// Sums and the like, whose columns put() finishes, take elements in any grouping.
template <class R> constexpr bool any_order_of() {
  return requires { R::kPuts; };
}

template <class R, uint64_t kFlip = 0>
constexpr ReduceOps kParts = {.load = Loads<typename R::T>::run,
                              .native = Loads<typename R::T>::native,
                              .item = int32_t(sizeof(typename R::T)),
                              .partial = int32_t(sizeof(typename R::P)),
                              .rows_at_once = R::kRows,
                              .any_order = any_order_of<R>(),
                              .flip = kFlip,
                              .row = Parts<R>::row,
                              .start = Parts<R>::start,
                              .rows = Parts<R>::rows,
                              .get = Parts<R>::get,
                              .combine = Parts<R>::combine,
                              .put = put_of<R>(),
                              .finish = Parts<R>::finish};

// The `flip` that reverses the order of T.
template <class T> constexpr uint64_t kReversed = ~uint64_t(0);
template <> constexpr uint64_t kReversed<float> = 0x80000000u;
template <> constexpr uint64_t kReversed<double> = uint64_t(1) << 63;

template <class R, bool kMin> constexpr const ReduceOps& kExtreme =
    kParts<R, kMin ? kReversed<typename R::T> : 0>;

// Runs the reduction R of the input's compute type; kMin: with the order reversed.
template <template <class> class R, bool kMin>
inline int32_t run_extreme(const ReducePlan& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce(kExtreme<R<float>, kMin>, p, begin, end);
    case TT_F64:
      if (!is_built(TT_F64)) return TT_NOT_IMPLEMENTED;
      return run_reduce(kExtreme<R<double>, kMin>, p, begin, end);
    case TT_I64: return run_reduce(kExtreme<R<int64_t>, kMin>, p, begin, end);
    default: return run_reduce(kExtreme<R<int32_t>, kMin>, p, begin, end);
  }
}

TT_ISA_END
