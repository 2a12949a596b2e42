// fft: discrete Fourier transforms along one dimension (plan/fft_plan.h).
#include "kernels/cpu/fft/split.h"
#include "kernels/cpu/simd/room.h"

TT_ISA_BEGIN

template <class T> void fill_tables(const FftPlan& plan) {
  T* tables = reinterpret_cast<T*>(plan.tables);
  const FftTables t = fft_tables(plan);
  fill_pass_roots(plan.first, tables + 2 * t.first);
  fill_pass_roots(plan.second, tables + 2 * t.second);
  if (t.packing > t.turns)
    for (int64_t tile = 0; tile * kTile<T> < plan.second.n; tile++)
      fill_turns(tables + 2 * (t.turns + tile * plan.first.n * kTile<T>), plan, tile);
  if (t.chirp > t.packing)
    write_first_roots(tables + 2 * t.packing, t.chirp - t.packing, double(plan.n));
  if (plan.chirp) {
    const Room room(plan.rooms);
    fill_chirp(plan, tables, room.as<T>(), room.as<T>() + 2 * (plan.first.n + 1) * kTile<T>);
  }
}

// Where the parts of a split transform are. A row's in and out are those of the complex transform:
// of Hermitian numbers, in has been packed.
template <class T> struct SplitRow {
  const FftPlan& plan;
  int64_t row;
  T* room;

  T* tables() const { return reinterpret_cast<T*>(plan.tables); }
  T* roots() const { return tables() + 2 * fft_tables(plan).packing; }
  T* tile(int64_t i) const { return room + 2 * i * fft_tile_length(plan) * kTile<T>; }
  int64_t middle_numbers() const { return round_up(plan.first.n, kTile<T>) * plan.second.n; }
  T* middle() const {
    if (plan.whole) return tile(3);
    return reinterpret_cast<T*>(plan.middle) + row * middle_numbers() * 2;
  }
  T* packed() const {
    if (plan.whole) return tile(3) + middle_numbers() * 2;
    return reinterpret_cast<T*>(plan.packed) + row * plan.length * 2;
  }
  bool packs() const { return plan.kind == kFftHermitian && fft_is_packed(plan); }
  // Numbers of one row, of which real ones take half.
  T* in() const {
    const int64_t reals = plan.kind == kFftReal ? plan.n : 2 * fft_inputs(plan);
    return const_cast<T*>(reinterpret_cast<const T*>(plan.in)) + row * reals;
  }
  T* out() const {
    const int64_t reals = plan.kind == kFftHermitian ? plan.n : 2 * fft_outputs(plan);
    return reinterpret_cast<T*>(plan.out) + row * reals;
  }
  SplitTransform<T> split() const {
    const bool backward = plan.kind == kFftComplex ? plan.inverse : plan.kind == kFftHermitian;
    return {plan,    tables(), packs() ? packed() : in(), out(), middle(), tile(0),
            tile(1), tile(2),  parts<T>(backward)};
  }
  void prepare() const { pack_spectrum(in(), packed(), roots(), plan.length, !plan.inverse); }
  void complete() const { unpack_spectrum(out(), roots(), plan.length, plan.inverse); }
};

template <class T> void run_whole(const SplitRow<T>& r) {
  const FftPlan& plan = r.plan;
  if (r.packs()) r.prepare();
  const SplitTransform<T> s = r.split();
  for (int64_t tile = 0; tile * kTile<T> < plan.second.n; tile++) run_columns(s, tile);
  for (int64_t tile = 0; tile * kTile<T> < plan.first.n; tile++) run_rows(s, tile);
  if (plan.kind == kFftReal) r.complete();
}

enum class Work { kTables, kTiles, kWhole, kPrepare, kColumns, kRows, kComplete };
TT_INLINE Work work_of(const FftPlan& plan) {
  if (plan.run.stage == 0) return Work::kTables;
  if (!plan.second.n) return Work::kTiles;
  if (plan.whole) return Work::kWhole;
  const int32_t step = plan.run.stage - (plan.kind == kFftHermitian);
  if (step == 0) return Work::kPrepare;
  if (step == 1) return Work::kColumns;
  return step == 2 ? Work::kRows : Work::kComplete;
}

template <class T> void run(const FftPlan& plan, int64_t begin, int64_t end) {
  const Work work = work_of(plan);
  if (work == Work::kTables) return fill_tables<T>(plan);
  const Room room(plan.rooms);
  T* const memory = room.as<T>();
  const int64_t column_tiles = plan.second.n ? ceil_div(plan.second.n, kTile<T>) : 1;
  const int64_t row_tiles = ceil_div(plan.first.n, kTile<T>);
  for (int64_t unit = begin; unit < end; unit++) {
    switch (work) {
      case Work::kTiles: run_tile(plan, unit, memory, SplitRow<T>{plan, 0, memory}.tile(1)); break;
      case Work::kWhole: run_whole(SplitRow<T>{plan, unit, memory}); break;
      case Work::kPrepare: SplitRow<T>{plan, unit, memory}.prepare(); break;
      case Work::kColumns:
        run_columns(SplitRow<T>{plan, unit / column_tiles, memory}.split(), unit % column_tiles);
        break;
      case Work::kRows:
        run_rows(SplitRow<T>{plan, unit / row_tiles, memory}.split(), unit % row_tiles);
        break;
      default: SplitRow<T>{plan, unit, memory}.complete();
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(fft)(const void* plan, int64_t begin, int64_t end) noexcept {
  const FftPlan& p = *static_cast<const FftPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) run<double>(p, begin, end);
  else run<float>(p, begin, end);
  return 0;
}
TT_ENTRY_END
