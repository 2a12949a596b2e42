#include "cpu/matmul_run.h"

#include "base/amx.h"
#include "core/ctx.h"
#include "cpu/blas.h"
#include "cpu/matmul_kernels.h"
#include "cpu/matmul_sums.h"
#include "plan/matmul_pieces.h"
#include "plan/matmul_tiles.h"

namespace TT_NS {

namespace {

constexpr int64_t kMaxFlops = 128;                // per core and nanosecond
constexpr int64_t kPollFlops = int64_t(1) << 30;  // about 5 to 10 ms
constexpr int64_t kTilesSpeedup = 8;              // of tiles beside vectors
constexpr int64_t kPiecesSpeedup = 2;             // of tiles for f32
constexpr int64_t kHalfPiecesSpeedup = 4;         // of tiles for f16

struct Task {
  CpuKernel kernel;
  const void* plan;
  int64_t first;
  int32_t status;
};

void run_range(void* ctx, int64_t begin, int64_t end) {
  Task* t = static_cast<Task*>(ctx);
  const int32_t status = t->kernel(t->plan, t->first + begin, t->first + end);
  if (TT_UNLIKELY(status)) atomic_store(&t->status, status, kRelaxed);
}

// Runs units [first, end) in ranges of about kMatmulTaskFlops: more than the overhead of a range,
// few enough that threads finish together.
int32_t run_units(Pool* pool, CpuKernel kernel, const void* plan, int64_t first, int64_t end,
                  int64_t unit_flops) {
  const int64_t grain =
      unit_flops >= kMatmulTaskFlops ? 1 : kMatmulTaskFlops / (unit_flops + 1) + 1;
  if (!pool || end - first <= grain) return kernel(plan, first, end);
  Task t = {kernel, plan, first, TT_OK};
  const int64_t range_ns = unit_flops / kMaxFlops * grain;
  if (parallel_for(pool, end - first, grain, run_range, &t, range_ns)) return kKernelEnded;
  return t.status;
}

// Runs all units; long work in steps of kPollFlops, or of one unit per thread, between which the
// application is polled.
int32_t run_watched(Pool* pool, CpuKernel kernel, const void* plan, int64_t end, int64_t unit_flops,
                    MatmulGoOn go_on) {
  const int64_t some = kPollFlops / (unit_flops + 1);
  if (!go_on || end <= some) return run_units(pool, kernel, plan, 0, end, unit_flops);
  const int64_t threads = pool ? pool_threads(pool) : 1;
  const int64_t step = max(some / threads, int64_t(1)) * threads;
  int32_t status = TT_OK;
  for (int64_t at = 0; !status && at < end; at += step) {
    if (at > 0 && !go_on()) return kKernelEnded;
    status = run_units(pool, kernel, plan, at, matmul_min(at + step, end), unit_flops);
  }
  return status;
}

// What follows the rows of a product.
struct MatmulFinish {
  CpuKernel rows;   // of a RunningBlock: its row blocks, each followed by fn
  CpuKernel tiles;  // of a MatmulBlock
  MatmulFinishFn fn;
  const void* user;
};
// A block, and what follows its rows; kernels see the first part.
struct RunningBlock : MatmulBlock {
  const MatmulFinish* finish;  // or NULL
  int64_t matrix;              // of the batch
};

// Runs one block: packs its panels, then computes its tiles.
int32_t run_block(const RunningBlock& k, const MatmulKernels& kernels, Pool* pool) {
  const int64_t rows = k.row_blocks();
  const int64_t cols = k.col_blocks();
  if (k.nk > 0) {
    // Packing an element costs about as much as 16 flops.
    const int64_t unit = matmul_min(k.ni, kMatmulRowBlock) * k.nk * 16;
    const int64_t to_pack = k.plan->path == kMatmulPackedB ? rows : rows + cols;
    if (const int32_t status = run_units(pool, kernels.pack, &k, 0, to_pack, unit)) return status;
  }
  const int64_t unit = 2 * k.ni * k.nj / (rows * cols) * k.nk;
  if (k.finish && k.k0 + k.nk == k.plan->k) {
    // The first row block packs b.
    const int32_t status = run_units(pool, k.finish->rows, &k, 0, 1, unit * cols);
    return status ? status : run_units(pool, k.finish->rows, &k, 1, rows, unit * cols);
  }
  if (!k.copy_b) return run_units(pool, kernels.tiles, &k, 0, rows * cols, unit);
  const int32_t status = run_units(pool, kernels.tiles, &k, 0, cols, unit);
  return status || rows == 1 ? status : run_units(pool, kernels.tiles, &k, cols, rows * cols, unit);
}

// Where the panels of a block of columns and positions are, in those of all of b.
char* packed_b(const MatmulBlock& k, const void* all) {
  const MatmulPlan& p = *k.plan;
  const int64_t before = k.k0 * round_up(k.nj, int64_t(64)) * matmul_compute_size(p.dtype);
  return static_cast<char*>(const_cast<void*>(all)) + matmul_panel_bytes(p, k.j0) + before;
}

int32_t run_packed(RunningBlock& k, const MatmulLayout& l, const MatmulKernels& kernels, Pool* pool,
                   MatmulGoOn go_on) {
  const MatmulPlan& p = *k.plan;
  const int64_t n_j = matmul_ceil(p.n, l.max_cols);
  const int64_t n_i = matmul_ceil(p.m, l.max_rows);
  const int64_t n_p = p.k == 0 ? 1 : matmul_ceil(p.k, matmul_depth(k.factors));
  for (int64_t j = 0; j < n_j; j++) {
    k.j0 = matmul_piece(p.n, n_j, j);
    k.nj = matmul_piece(p.n, n_j, j + 1) - k.j0;
    for (int64_t i = 0; i < n_i; i++) {
      k.i0 = matmul_piece(p.m, n_i, i);
      k.ni = matmul_piece(p.m, n_i, i + 1) - k.i0;
      for (int64_t q = 0; q < n_p; q++) {
        k.k0 = matmul_piece(p.k, n_p, q);
        k.nk = matmul_piece(p.k, n_p, q + 1) - k.k0;
        if (p.path == kMatmulPackedB) k.b_pack = packed_b(k, p.b);
        if (go_on && !go_on()) return kKernelEnded;
        if (const int32_t status = run_block(k, kernels, pool)) return status;
      }
    }
  }
  return TT_OK;
}

// Runs one matrix by tiles: block by block, packing, then units.
int32_t run_tiles(MatmulTiles& k, const MatmulTilesLayout& l, Pool* pool, MatmulGoOn go_on) {
  const MatmulPlan& p = *k.plan;
  for (k.j0 = 0; k.j0 < p.n; k.j0 += l.cols) {
    k.nj = matmul_min(l.cols, p.n - k.j0);
    for (k.i0 = 0; k.i0 < p.m; k.i0 += l.rows) {
      k.ni = matmul_min(l.rows, p.m - k.i0);
      for (k.k0 = 0; k.k0 < p.k; k.k0 += l.depth) {
        k.nk = matmul_min(l.depth, p.k - k.k0);
        // All blocks of columns share a's panels if they fit.
        const bool has_a = k.j0 > 0 && k.ni == p.m && k.nk == p.k;
        k.packs_a = k.a_pack && !has_a;
        if (go_on && !go_on()) return kKernelEnded;
        const int64_t packed = kTilesPackCols * k.nk * 16;
        int32_t status = run_units(pool, avx512::matmul_tiles_pack, &k, 0, k.pack_units(), packed);
        if (status) return status;
        const int64_t flops = 2 * k.unit_rows * k.unit_cols * k.nk / kTilesSpeedup;
        const int64_t units = k.row_blocks() * k.col_blocks();
        status = run_units(pool, avx512::matmul_tiles_units, &k, 0, units, flops);
        if (status) return status;
      }
    }
  }
  return TT_OK;
}

// Packs the panels of all of b to p.c.
int32_t pack_b(const MatmulPlan& p, Isa isa, Pool* pool) {
  const MatmulLayout l = matmul_layout(p, false);
  const int64_t n_j = matmul_ceil(p.n, l.max_cols);
  const int64_t n_p = matmul_ceil(p.k, matmul_depth(p.dtype));
  MatmulBlock k = {};
  k.plan = &p;
  k.b = p.b;
  k.ni = matmul_min(p.m, l.max_rows);
  k.factors = p.dtype;
  for (int64_t j = 0; j < n_j; j++) {
    k.j0 = matmul_piece(p.n, n_j, j);
    k.nj = matmul_piece(p.n, n_j, j + 1) - k.j0;
    for (int64_t q = 0; q < n_p; q++) {
      k.k0 = matmul_piece(p.k, n_p, q);
      k.nk = matmul_piece(p.k, n_p, q + 1) - k.k0;
      k.b_pack = packed_b(k, p.c);
      const int64_t rows = k.row_blocks();
      const int64_t unit = kMatmulColBlock * k.nk * 16;
      const int32_t status =
          run_units(pool, kMatmulKernels[isa].pack, &k, rows, rows + k.col_blocks(), unit);
      if (status) return status;
    }
  }
  return TT_OK;
}

// Sets the operands of matrix `index` of the batch.
template <class Block> void locate(Block& k, int64_t index) {
  const MatmulPlan& p = *k.plan;
  k.a = p.a;
  k.b = p.b;
  k.c = p.c;
  k.d = p.d;
  for (int32_t i = 0; i < p.n_batch; i++) {
    const MatmulBatchDim& dim = p.batch_dim[i];
    const int64_t at = index % dim.size;
    index /= dim.size;
    k.a += at * dim.a;
    k.b += at * dim.b;
    k.c += at * dim.c;
    k.d += at * dim.d;
  }
}

// Ways to multiply bf16 that are faster than widening, as bits; -1: not known yet.
constexpr int32_t kGroupsPay = 1;
constexpr int32_t kTilesPay = 2;
constinit int32_t bf16_ways = -1;

// AVX512_BF16's fma of pairs is as fast as one of f32 on some processors and takes four times as
// long on others; two would make it useless. So it is measured, once.
int32_t find_bf16_ways() {
  int32_t ways = 0;
  if (has_bf16_products() && avx512::matmul_bf16_groups_pay()) ways |= kGroupsPay;
  if (has_amx_products()) ways |= kTilesPay;
  return ways;
}

Bf16Products bf16_products(const MatmulPlan& p, int32_t factors, Isa isa) {
  if (!kTilesAreBuilt || factors != TT_BF16 || isa < kBf16Isa) return kBf16Widened;
  int32_t ways = atomic_load(&bf16_ways, kRelaxed);
  if (ways < 0) {
    ways = find_bf16_ways();
    atomic_store(&bf16_ways, ways, kRelaxed);
  }
  if (ways & kTilesPay && p.k >= kMatmulAmxDepth) return kBf16Tiles;
  return ways & kGroupsPay ? kBf16Groups : kBf16Widened;
}

// run_products() by tiles of AMX.
int32_t run_tiled_products(const MatmulPlan& p, const MatmulTilesLayout& l, char* room,
                           int64_t begin, int64_t end, Pool* pool, MatmulGoOn go_on) {
  MatmulTiles k = {};
  k.plan = &p;
  k.unit_rows = l.unit_rows;
  k.unit_cols = l.unit_cols;
  k.unit_bytes = l.unit_bytes;
  k.b_pack = room;
  k.a_pack = l.a_pack ? room + l.a_pack : nullptr;
  k.sum = l.sum ? room + l.sum : nullptr;
  k.scratch = room + l.scratch;
  k.rounds = has_bf16_products();
  for (int64_t i = begin; i < end; i++) {
    locate(k, i);
    if (const int32_t status = run_tiles(k, l, pool, go_on)) return status;
  }
  return TT_OK;
}

int32_t run_products(const MatmulPlan& p, int32_t factors, const MatmulLayout& l, Isa isa,
                     void* room, int64_t begin, int64_t end, Pool* pool, MatmulGoOn go_on,
                     const MatmulFinish* finish = nullptr);

// The product of rows [i, i + n) and the columns of a block by vectors.
int32_t run_without_pieces(const MatmulPieces& k, int64_t i, int64_t n, void* room, Pool* pool,
                           MatmulGoOn go_on) {
  const int64_t row = k.i0 + i;
  MatmulPlan p = *k.plan;
  const int64_t item = kItemSize[p.dtype];
  p.path = kMatmulPacked;
  p.m = n;
  p.n = k.nj;
  p.a = k.a + row * p.a_row * kItemSize[k.factors];
  p.b = k.b + k.j0 * p.b_col * kItemSize[k.factors];
  p.c = k.c + (row * p.c_row + k.j0 * p.c_col) * item;
  if (p.d) p.d = k.d + (row * p.d_row + k.j0 * p.d_col) * item;
  p.batch = 1;
  p.n_batch = 0;
  MatmulPlan of_factors = p;
  of_factors.dtype = k.factors;
  const MatmulLayout l = matmul_layout(of_factors, p.dtype != k.factors);
  return run_products(p, k.factors, l, kIsaAvx512, room, 0, 1, pool, go_on);
}

// Multiplies the panels of rows that tiles have left out.
int32_t run_odd_rows(const MatmulPieces& k, void* room, Pool* pool, MatmulGoOn go_on) {
  // k.odd is in the room.
  uint64_t odd[kPieceMaxRows / kPiecePanel / 64] = {};
  const int64_t panels = k.row_panels();
  for (int64_t i = 0; i < panels; i++) odd[i / 64] |= uint64_t(k.odd[i]) << i % 64;
  for (int64_t i = 0; i < panels; i++) {
    if (!(odd[i / 64] >> i % 64 & 1)) continue;
    int64_t end = i + 1;
    while (end < panels && odd[end / 64] >> end % 64 & 1) end++;
    const int64_t row = i * kPiecePanel;
    const int64_t n = matmul_min(k.ni, end * kPiecePanel) - row;
    if (const int32_t status = run_without_pieces(k, row, n, room, pool, go_on)) return status;
    i = end;
  }
  return TT_OK;
}

// Lets a block of rows and positions use what was packed beforehand.
void use_packed_rows(MatmulPieces& k, const MatmulPackedPieces& all, int64_t depth) {
  const int64_t rows = round_up(k.plan->m, kPiecePanel);
  const int64_t bytes = matmul_number_bytes(k.factors);
  k.packed_rows = all.panels + k.k0 * rows * bytes + k.i0 / kPiecePanel * k.panel_bytes();
  k.packed_ranges = all.ranges + (k.k0 / depth * rows + k.i0) / kPiecePanel;
}

// Runs all positions of k of a block of rows and columns. Results are written with the last ones,
// when all numbers have been seen.
int32_t run_pieces_block(MatmulPieces& k, const MatmulPiecesLayout& l,
                         const MatmulPackedPieces* packed_rows, Pool* pool, MatmulGoOn go_on) {
  const MatmulPlan& p = *k.plan;
  k.b_range = kNoPieces;
  for (k.k0 = 0; k.k0 < p.k; k.k0 += l.depth) {
    k.nk = matmul_min(l.depth, p.k - k.k0);
    if (packed_rows) use_packed_rows(k, *packed_rows, l.depth);
    if (go_on && !go_on()) return kKernelEnded;
    const int64_t packed = k.pack_cols * k.nk * 16;
    int32_t status = run_units(pool, avx512::matmul_pieces_pack, &k, 0, k.pack_units(), packed);
    if (status) return status;
    for (int64_t j = 0; j < k.col_panels(); j++) k.b_range.join(k.b_ranges[j]);
    const int64_t speedup = k.factors == TT_F16 ? kHalfPiecesSpeedup : kPiecesSpeedup;
    const int64_t flops = 2 * k.unit_rows * k.unit_cols * k.nk / speedup;
    status = run_units(pool, avx512::matmul_pieces_units, &k, 0, k.units(), flops);
    if (status) return status;
  }
  return run_odd_rows(k, k.b_pack, pool, go_on);
}

// run_products() by tiles of AMX, as sums of bf16. packed_rows: of the transposed product; or NULL.
int32_t run_pieces(const MatmulPlan& plan, int32_t factors, const MatmulPackedPieces* packed_rows,
                   char* room, int64_t begin, int64_t end, Pool* pool, MatmulGoOn go_on) {
  const int64_t threads = pool ? pool_threads(pool) : 1;
  MatmulPlan p = plan;
  if (matmul_pieces_turned(plan)) matmul_detail::transpose_plan(&p);
  const MatmulPiecesLayout l = matmul_pieces_layout(p, factors, p.k);
  const int64_t row_panels = l.rows / kPiecePanel;
  const int64_t col_panels = l.cols / kPiecePanel;
  MatmulPieces k = {};
  k.plan = &p;
  k.factors = factors;
  k.b_pack = room;
  k.sum = l.sum ? reinterpret_cast<float*>(room + l.sum) : nullptr;
  k.b_ranges = reinterpret_cast<PieceRange*>(room + l.ranges);
  k.a_ranges = k.b_ranges + col_panels;
  k.odd = reinterpret_cast<bool*>(k.a_ranges + row_panels * col_panels);
  k.unit_rows = l.rows;
  k.unit_cols = l.cols;
  k.pack_cols = kPiecePanel;
  if (p.b_col == 1) k.pack_cols = round_up(ceil_div(l.cols, threads), kPiecePanel);
  if (threads > 1) {
    k.unit_rows = round_up(ceil_div(l.rows, 4 * threads), kPiecePanel);
    const int64_t parts = ceil_div(2 * threads, ceil_div(l.rows, k.unit_rows));
    k.unit_cols = round_up(ceil_div(l.cols, parts), kPiecePanel);
  }
  build_rooms(&k.rooms, l.room_bytes, min(threads, min(kPieceMaxRooms, row_panels * col_panels)));
  k.rooms.memory = room + l.rooms;
  for (int64_t at = begin; at < end; at++) {
    locate(k, at);
    for (k.j0 = 0; k.j0 < p.n; k.j0 += l.cols) {
      k.nj = matmul_min(l.cols, p.n - k.j0);
      for (k.i0 = 0; k.i0 < p.m; k.i0 += l.rows) {
        k.ni = matmul_min(l.rows, p.m - k.i0);
        if (const int32_t status = run_pieces_block(k, l, packed_rows, pool, go_on)) return status;
      }
    }
  }
  return TT_OK;
}

int32_t run_packed_pieces(const MatmulPlan& plan, Pool* pool, MatmulGoOn go_on) {
  const auto& packed = *reinterpret_cast<const MatmulPackedPieces*>(plan.b);
  MatmulPlan p = plan;
  p.path = kMatmulPieces;
  p.b = packed.b;
  return run_pieces(p, p.dtype, &packed, static_cast<char*>(p.workspace), 0, 1, pool, go_on);
}

// Packs the pieces of the columns of b, rows of the transposed product, to p.c.
int32_t pack_pieces(const MatmulPlan& plan, Pool* pool) {
  char* const panels = plan.c + kMatmulPackedPiecesHead;
  char* const ranges = panels + matmul_piece_panels_bytes(plan);
  auto& all = *reinterpret_cast<MatmulPackedPieces*>(plan.c);
  all = {plan.b, panels, reinterpret_cast<PieceRange*>(ranges)};
  MatmulPlan p = plan;
  matmul_detail::transpose_plan(&p);
  const int64_t depth = matmul_pieces_layout(plan, plan.dtype, plan.k).depth;
  MatmulPieces k = {};
  k.plan = &p;
  k.factors = plan.dtype;
  k.a = p.a;
  k.ni = p.m;
  for (; k.k0 < p.k; k.k0 += depth) {
    k.nk = matmul_min(depth, p.k - k.k0);
    use_packed_rows(k, all, depth);
    const int64_t flops = kPiecePanel * k.nk * 16;
    const int32_t status =
        run_units(pool, avx512::matmul_pieces_rows, &k, 0, k.row_panels(), flops);
    if (status) return status;
  }
  return TT_OK;
}

// Runs matrices [begin, end) of the batch on panels in `room`. p's c may be f32 if its factors are
// f16 or bf16.
int32_t run_products(const MatmulPlan& p, int32_t factors, const MatmulLayout& l, Isa isa,
                     void* room, int64_t begin, int64_t end, Pool* pool, MatmulGoOn go_on,
                     const MatmulFinish* finish) {
  if (kTilesAreBuilt && p.path == kMatmulPieces)
    return run_pieces(p, factors, nullptr, static_cast<char*>(room), begin, end, pool, go_on);
  const MatmulKernels& kernels = kMatmulKernels[isa];
  const Bf16Products bf16 = bf16_products(p, factors, isa);
  if (bf16 == kBf16Tiles) {
    const int64_t threads = pool ? pool_threads(pool) : 1;
    const MatmulTilesLayout tiles = matmul_tiles_layout(p, l.bytes(), threads);
    char* const at = static_cast<char*>(room);
    if (tiles.rows) return run_tiled_products(p, tiles, at, begin, end, pool, go_on);
  }
  RunningBlock k;
  k.finish = finish;
  k.plan = &p;
  k.a_pack = static_cast<char*>(room);
  k.b_pack = k.a_pack + l.a_bytes;
  k.factors = factors;
  k.bf16 = bf16 == kBf16Tiles ? kBf16Widened : bf16;
  k.copy_b = (factors == TT_F32 || factors == TT_F64) && p.b_col == 1 && p.path != kMatmulPackedB;
  k.sum = l.sum_bytes ? k.b_pack + l.b_bytes : nullptr;
  for (int64_t i = begin; i < end; i++) {
    locate(k, i);
    k.matrix = i;
    if (const int32_t status = run_packed(k, l, kernels, pool, go_on)) return status;
  }
  return TT_OK;
}

// A matmul that matmul_split() splits.
struct Cut {
  const MatmulPlan& plan;
  const MatmulSplit split;
  const CpuKernel units;  // for one piece; NULL: packed path
  const Isa isa;
  const MatmulLayout layout;  // packed path: panels of a task
  char *const sums, *const panels;
  uint32_t busy;  // bit mask of panels in use
};

// Turns p into the plan of a piece, but for its position: sums in row-major order, no epilogue.
void plan_pieces(MatmulPlan* p) {
  if (matmul_is_half(p->dtype)) p->dtype = TT_F32;
  int64_t stride = p->m * p->n * kItemSize[p->dtype];
  for (int32_t i = 0; i < p->n_batch; i++) {
    p->batch_dim[i].c = stride;
    stride *= p->batch_dim[i].size;
  }
  p->d = nullptr;
  p->alpha = kMatmulOne;
  p->scaled = false;
  p->c_row = p->n;
  p->c_col = 1;
}

// Runs parts [begin, end) of a matmul on one thread.
int32_t run_parts(const Cut& w, char* panels, int64_t begin, int64_t end) {
  const int64_t size = kItemSize[w.plan.dtype];
  const int64_t per_piece = w.split.units;
  MatmulPlan p = w.plan;
  if (w.sums) plan_pieces(&p);
  while (begin < end) {
    const int64_t piece = begin / per_piece;
    const int64_t from = begin % per_piece;
    const int64_t to = matmul_min(per_piece, from + end - begin);
    if (w.sums) {
      const int64_t at = piece * w.split.depth;
      p.k = matmul_min(w.split.depth, w.plan.k - at);
      p.a = w.plan.a + at * p.a_col * size;
      p.b = w.plan.b + at * p.b_row * size;
      p.c = w.sums + piece * matmul_piece_bytes(w.plan);
    }
    const int32_t status = w.units ? w.units(&p, from, to)
                                   : run_products(p, w.plan.dtype, w.layout, w.isa, panels, from,
                                                  to, nullptr, nullptr);
    if (status) return status;
    begin += to - from;
  }
  return TT_OK;
}

int32_t run_cut_units(const void* cut, int64_t begin, int64_t end) noexcept {
  return run_parts(*static_cast<const Cut*>(cut), nullptr, begin, end);
}

// Runs tasks [begin, end) of the packed path on the first panels that no other thread uses: the
// touched memory depends on the number of threads, not of tasks.
int32_t run_cut_packed(const void* cut, int64_t begin, int64_t end) noexcept {
  Cut& w = *static_cast<Cut*>(const_cast<void*>(cut));
  const int64_t parts = w.split.pieces * w.split.units;
  const int64_t tasks = w.split.tasks;
  uint32_t seen = atomic_load(&w.busy, kRelaxed);
  uint32_t bit;
  do bit = ~seen & (seen + 1);
  while (!atomic_compare_exchange_weak(&w.busy, &seen, seen | bit, kAcquire, kRelaxed));
  char* panels = w.panels + trailing_zeros(bit) * w.layout.bytes();
  const int32_t status =
      run_parts(w, panels, matmul_piece(parts, tasks, begin), matmul_piece(parts, tasks, end));
  atomic_and_fetch(&w.busy, ~bit, kRelease);
  return status;
}

TT_NOINLINE int32_t run_cut(const MatmulPlan& p, const MatmulSplit& s, Isa isa, Pool* pool,
                            MatmulGoOn go_on) {
  const bool several = s.pieces > 1;
  const CpuKernel units = p.path == kMatmulRows ? kMatmulKernels[isa].rows : nullptr;
  char* sums = several ? static_cast<char*>(p.workspace) : nullptr;
  char* panels = static_cast<char*>(p.workspace) +
                 (several ? matmul_ceil(s.pieces * matmul_piece_bytes(p), 64) * 64 : 0);
  Cut w = {p, s, units, isa, matmul_layout(p, several), sums, panels, 0};
  int32_t status =
      run_watched(pool, units ? run_cut_units : run_cut_packed, &w, s.tasks, s.flops, go_on);
  if (status || !several) return status;
  const MatmulSums all = {&p, sums, s.pieces};
  return run_units(pool, matmul_add_pieces, &all, 0, p.batch * p.m, 4 * p.n * s.pieces);
}

// Row blocks [begin, end): all of their tiles, then what follows.
int32_t run_finished_rows(const void* block, int64_t begin, int64_t end) noexcept {
  const auto& k = *static_cast<const RunningBlock*>(static_cast<const MatmulBlock*>(block));
  const int64_t n = k.row_blocks();
  const int64_t cols = k.col_blocks();
  for (int64_t i = begin; i < end; i++) {
    for (int64_t j = 0; j < cols; j++) {
      const int64_t u = i ? cols + j * (n - 1) + i - 1 : j;
      if (const int32_t status = k.finish->tiles(block, u, u + 1)) return status;
    }
    const int64_t above = k.matrix * k.plan->m + k.i0;
    const int32_t status = k.finish->fn(k.finish->user, above + matmul_piece(k.ni, n, i),
                                        above + matmul_piece(k.ni, n, i + 1));
    if (status) return status;
  }
  return TT_OK;
}

int32_t run_then(const MatmulPlan& p, Isa isa, Pool* pool, MatmulGoOn go_on) {
  const auto& then = *reinterpret_cast<const MatmulThen*>(p.a);
  const MatmulPlan& product = *then.product;
  const MatmulFinish finish = {run_finished_rows, kMatmulKernels[isa].tiles, then.fn, then.user};
  return run_products(product, product.dtype, matmul_layout(product, false), isa, product.workspace,
                      0, product.batch, pool, go_on, &finish);
}

}  // namespace

void assume_bf16_products(int32_t products) noexcept {
  constexpr int32_t kWays[] = {0, kGroupsPay, kTilesPay};
  atomic_store(&bf16_ways, products < 0 ? -1 : kWays[products], kRelaxed);
}

// Products of f32 and f16 that tiles multiply faster than vectors, if there are tiles: measured
// (docs/benchmarks/xeon-amx.md).
static bool pieces_pay(const MatmulPlan& p, Isa isa) noexcept {
  if ((p.dtype != TT_F32 && p.dtype != TT_F16) || isa != kIsaAvx512) return false;
  if (p.path != kMatmulPacked && p.path != kMatmulSmall) return false;
  if (p.dtype == TT_F16)
    return p.k >= kPiecePanel && p.m * p.n >= 32 * 32 && p.m * p.n * p.k >= 1 << 17;
  return min(p.m, p.n) >= 16 && p.m * p.n >= 64 * 64 && p.k >= 96 && p.m * p.n * p.k >= 1 << 20;
}

void matmul_pick_provider(MatmulPlan* p, Isa isa) noexcept {
  const int64_t few = matmul_rows_by_dot(*p) ? kMatmulAmxDotsMax : kMatmulAmxRowsMax;
  const bool many = p->path == kMatmulRows && p->m > few;
  if (many && bf16_products(*p, p->dtype, isa) == kBf16Tiles) p->path = kMatmulPacked;
  if (blas_serves(*p, isa)) p->path = kMatmulBlas;
  if (kTilesAreBuilt && pieces_pay(*p, isa) && has_amx_products()) p->path = kMatmulPieces;
}

int32_t run_matmul(const MatmulPlan& p, Isa isa, Pool* pool, MatmulGoOn go_on) noexcept {
  if (TT_UNLIKELY(p.batch == 0 || p.m == 0 || p.n == 0)) return TT_OK;
  const MatmulKernels& kernels = kMatmulKernels[isa];
  if (TT_UNLIKELY(p.path == kMatmulPackB)) return pack_b(p, isa, pool);
  if (TT_UNLIKELY(kTilesAreBuilt && p.path == kMatmulPackPieces)) return pack_pieces(p, pool);
  if (kTilesAreBuilt && p.path == kMatmulPackedPieces) return run_packed_pieces(p, pool, go_on);
  if (TT_UNLIKELY(p.path == kMatmulThen)) return run_then(p, isa, pool, go_on);
  if (p.path == kMatmulSmall)
    return run_watched(pool, kernels.small, &p, p.n_units,
                       2 * p.m * matmul_min(p.n, kMatmulSmallCols) * p.k, go_on);
  if (const MatmulSplit s = matmul_split(p); s.tasks) return run_cut(p, s, isa, pool, go_on);
  if (p.path == kMatmulBlas)
    return run_watched(pool, blas_tiles, &p, blas_units(p), 2 * p.m * p.n * p.k / blas_units(p),
                       go_on);
  // Reading b from memory takes as long as 8 flops per element.
  if (p.path == kMatmulRows)
    return run_watched(pool, kernels.rows, &p, p.n_units, 8 * p.k * matmul_rows_unit(p), go_on);
  return run_products(p, p.dtype, matmul_layout(p, false), isa, p.workspace, 0, p.batch, pool,
                      go_on);
}

// If false, the error record has the reason.
static bool may_continue() noexcept {
  try {
    poll_if_watched(true);
    return true;
  } catch (...) {
    return false;
  }
}

int32_t matmul_driver(const void* plan, int64_t, int64_t) noexcept {
  const Ctx& c = ctx();
  const MatmulGoOn go_on = c.watched & kWatchPoll ? may_continue : nullptr;
  return run_matmul(*static_cast<const MatmulPlan*>(plan), Isa(c.isa), c.rt->pool, go_on);
}

}  // namespace TT_NS
