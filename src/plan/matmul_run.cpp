#include "plan/matmul_run.h"

#include "plan/blas.h"
#include "plan/matmul_kernels.h"

namespace TT_NS {

namespace {

// Flops of a range, some 5 to 10 µs: more than a range costs, little enough that threads end together.
constexpr int64_t kTaskFlops = 1 << 20;

struct Task {
  CpuKernel kernel;
  const void* plan;
  int64_t first;
  int32_t status;
};

void run_range(void* ctx, int64_t begin, int64_t end) {
  Task* t = static_cast<Task*>(ctx);
  const int32_t status = t->kernel(t->plan, t->first + begin, t->first + end);
  if (TT_UNLIKELY(status)) __atomic_store_n(&t->status, status, __ATOMIC_RELAXED);
}

// Units [first, end), in ranges of about kTaskFlops.
int32_t run_units(Pool* pool, CpuKernel kernel, const void* plan, int64_t first, int64_t end, int64_t unit_flops) {
  const int64_t grain = unit_flops >= kTaskFlops ? 1 : kTaskFlops / (unit_flops + 1) + 1;
  if (!pool || end - first <= grain) return kernel(plan, first, end);
  Task t = {kernel, plan, first, TT_OK};
  const tt_status status = parallel_for(pool, end - first, grain, run_range, &t);
  return status ? status : t.status;
}

// One block: its panels, then its tiles.
int32_t run_block(const MatmulBlock& k, const MatmulKernels& kernels, Pool* pool) {
  const int64_t rows = k.row_blocks(), cols = k.col_blocks();
  if (k.np > 0) {
    // Packing an element costs about as much as 16 flops.
    const int64_t unit = matmul_min(k.ni, kMatmulRowBlock) * k.np * 16;
    if (const int32_t status = run_units(pool, kernels.pack, &k, 0, rows + cols, unit)) return status;
  }
  const int64_t unit = 2 * k.ni * k.nj / (rows * cols) * k.np;
  if (!k.copy_b) return run_units(pool, kernels.tiles, &k, 0, rows * cols, unit);
  const int32_t status = run_units(pool, kernels.tiles, &k, 0, cols, unit);
  return status || rows == 1 ? status : run_units(pool, kernels.tiles, &k, cols, rows * cols, unit);
}

int32_t run_packed(MatmulBlock& k, const MatmulLayout& l, const MatmulKernels& kernels, Pool* pool) {
  const MatmulPlan& p = *k.plan;
  const int64_t n_j = matmul_ceil(p.n, l.max_cols), n_i = matmul_ceil(p.m, l.max_rows);
  const int64_t n_p = p.k == 0 ? 1 : matmul_ceil(p.k, matmul_depth(p.dtype));
  for (int64_t j = 0; j < n_j; j++) {
    k.j0 = matmul_piece(p.n, n_j, j), k.nj = matmul_piece(p.n, n_j, j + 1) - k.j0;
    for (int64_t i = 0; i < n_i; i++) {
      k.i0 = matmul_piece(p.m, n_i, i), k.ni = matmul_piece(p.m, n_i, i + 1) - k.i0;
      for (int64_t q = 0; q < n_p; q++) {
        k.p0 = matmul_piece(p.k, n_p, q), k.np = matmul_piece(p.k, n_p, q + 1) - k.p0;
        if (const int32_t status = run_block(k, kernels, pool)) return status;
      }
    }
  }
  return TT_OK;
}

// Operands of product `index` of the batch.
void locate(MatmulBlock& k, int64_t index) {
  const MatmulPlan& p = *k.plan;
  k.a = p.a, k.b = p.b, k.c = p.c, k.d = p.d;
  for (int32_t i = 0; i < p.n_batch; i++) {
    const MatmulBatchDim& dim = p.batch_dim[i];
    const int64_t at = index % dim.size;
    index /= dim.size;
    k.a += at * dim.a, k.b += at * dim.b, k.c += at * dim.c, k.d += at * dim.d;
  }
}

// A product of few results and long sums: pieces of k, whose sums are then added in double, in order. The pieces follow
// from the shape alone.
struct LongSums {
  const MatmulPlan* plan;
  CpuKernel rows;
  int64_t depth;
  char* sums;  // [pieces][m][n]
};
constexpr int64_t kLongSums = 2048, kLongDepth = 65536;  // results of all pieces, at most; least k

int64_t long_depth(const MatmulPlan& p) {
  const int64_t results = p.m * p.n;
  if (p.batch != 1 || p.k < kLongDepth || results > kLongSums / 8) return p.k;
  const int64_t most = matmul_min(64, kLongSums / results), least = 32768 / p.n;
  const int64_t depth = matmul_ceil(p.k, most);
  return matmul_ceil(depth < least ? least : depth, 512) * 512;
}

int32_t run_pieces(const void* ctx, int64_t begin, int64_t end) noexcept {
  const LongSums& l = *static_cast<const LongSums*>(ctx);
  MatmulPlan p = *l.plan;
  const int64_t size = kItemSize[p.dtype], k = p.k;
  p.d = nullptr, p.scaled = false, p.c_row = p.n, p.c_col = 1;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = i * l.depth;
    p.k = matmul_min(l.depth, k - at);
    p.a = l.plan->a + at * p.a_col * size, p.b = l.plan->b + at * p.b_row * size;
    p.c = l.sums + i * p.m * p.n * size;
    if (const int32_t status = l.rows(&p, 0, p.n_units)) return status;
  }
  return TT_OK;
}

template <class T> void add_pieces(const MatmulPlan& p, const T* sums, int64_t pieces) {
  for (int64_t r = 0; r < p.m * p.n; r++) {
    const int64_t i = r / p.n, j = r % p.n;
    double sum = 0;
    for (int64_t s = 0; s < pieces; s++) sum += double(sums[s * p.m * p.n + r]);
    T v = p.scaled ? T(sum) * T(p.alpha.re) : T(sum);
    if (p.d) v += T(p.beta.re) * reinterpret_cast<const T*>(p.d)[i * p.d_row + j * p.d_col];
    reinterpret_cast<T*>(p.c)[i * p.c_row + j * p.c_col] = v;
  }
}

TT_NOINLINE int32_t run_long_sums(const MatmulPlan& p, CpuKernel rows, int64_t depth, Pool* pool) {
  alignas(64) char sums[kLongSums * 8];
  const LongSums l = {&p, rows, depth, sums};
  const int64_t pieces = matmul_ceil(p.k, depth);
  if (const int32_t status = run_units(pool, run_pieces, &l, 0, pieces, 8 * depth * p.n)) return status;
  if (p.dtype == TT_F32) add_pieces(p, reinterpret_cast<const float*>(sums), pieces);
  else add_pieces(p, reinterpret_cast<const double*>(sums), pieces);
  return TT_OK;
}

TT_NOINLINE int32_t run_all_packed(const MatmulPlan& p, Isa isa, Pool* pool) {
  const MatmulKernels& kernels = kMatmulKernels[isa];
  const MatmulLayout l = matmul_layout(p);
  MatmulBlock k;
  k.plan = &p;
  k.a_pack = static_cast<char*>(p.workspace);
  k.b_pack = k.a_pack + l.a_bytes;
  k.bf16_pairs = isa == kIsaAvx512 && p.dtype == TT_BF16 && has_bf16_products();
  k.copy_b = (p.dtype == TT_F32 || p.dtype == TT_F64) && p.b_col == 1;
  k.sum = l.sum_bytes ? k.b_pack + l.b_bytes : nullptr;
  for (int64_t i = 0; i < p.batch; i++) {
    locate(k, i);
    if (const int32_t status = run_packed(k, l, kernels, pool)) return status;
  }
  return TT_OK;
}

}  // namespace

void matmul_pick_provider(MatmulPlan* p, Isa isa) noexcept {
  if (blas_serves(*p, isa)) p->path = kMatmulBlas;
}

int32_t run_matmul(const MatmulPlan& p, Isa isa, Pool* pool) noexcept {
  if (TT_UNLIKELY(p.batch == 0 || p.m == 0 || p.n == 0)) return TT_OK;
  const MatmulKernels& kernels = kMatmulKernels[isa];
  if (p.path == kMatmulBlas)
    return run_units(pool, blas_tiles, &p, 0, blas_units(p), 2 * p.m * p.n * p.k / blas_units(p));
  if (p.path == kMatmulSmall)
    return run_units(pool, kernels.small, &p, 0, p.n_units, 2 * p.m * matmul_min(p.n, kMatmulSmallCols) * p.k);
  // Reading b from memory takes as long as 8 flops an element.
  if (p.path == kMatmulRows) {
    if (const int64_t depth = long_depth(p); depth < p.k) return run_long_sums(p, kernels.rows, depth, pool);
    return run_units(pool, kernels.rows, &p, 0, p.n_units, 8 * p.k * matmul_rows_unit(p));
  }
  return run_all_packed(p, isa, pool);
}

}  // namespace TT_NS
