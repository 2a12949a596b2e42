#include "graph/plan/prepack.h"

#include "cpu/matmul_run.h"
#include "plan/conv_build.h"

#include <string.h>

namespace TT_NS {

void Prepacking::note_argument(int32_t v, const char* data) {
  const IrStorage& s = g_.storages[g_.values[v].storage];
  if (s.frozen && s.role == IrRole::kConstant) frozen_.push_back(data);
}
bool Prepacking::is_frozen(const char* data) const {
  for (const char* f : frozen_)
    if (f == data) return true;
  return false;
}

static bool is_kernel(const Kernel& k, const char* name) { return !strcmp(k.name, name); }

bool Prepacking::only_packs(const Kernel& k, const void* plan) const {
  if (frozen_.empty()) return false;
  if (is_kernel(k, "conv")) {
    const auto& p = *static_cast<const ConvPlan*>(plan);
    return p.run.stage == 0 && p.path != kConvColumns && is_frozen(p.weight);
  }
  if (!is_kernel(k, "conv_interleaved")) return false;
  const auto& p = *static_cast<const ConvInterleavedPlan*>(plan);
  // The weight's gradient, flipped, is read from its last tap on.
  return p.run.stage == 0 && is_frozen(p.weight);
}

char* Prepacking::new_memory(int64_t bytes) {
  p_.packed.reserve(p_.packed.size() + 1);
  char* data = static_cast<char*>(mem_alloc(size_t(bytes)));
  p_.packed.push_back({data, bytes});
  return data;
}

void Prepacking::pack(const Kernel& k, const void* plan, Isa isa) {
  const auto run = [&](auto p, int64_t bytes) {
    from_ = p.packed;
    packed_ = new_memory(bytes);
    p.packed = packed_;
    const int32_t status = k.cpu[isa](&p, 0, p.run.units[0]);
    if (status) fail(status, "kernel {} failed", k.name);
  };
  if (is_kernel(k, "conv")) {
    const auto& p = *static_cast<const ConvPlan*>(plan);
    return run(p, conv_packed_bytes(p, kItemSize[p.dtype]));
  }
  const auto& p = *static_cast<const ConvInterleavedPlan*>(plan);
  run(p, p.s.co * p.s.k[0] * p.s.run() * 4);
}

bool Prepacking::find_or_add(const MatmulPlan& p, int32_t path, int64_t bytes, char** memory) {
  const PackedB own = {p.b, p.m, p.n, p.k, p.b_row, p.b_col, p.dtype, path, nullptr};
  for (const PackedB& b : packed_b_)
    if (b.from == own.from && b.m == own.m && b.n == own.n && b.k == own.k && b.row == own.row &&
        b.col == own.col && b.dtype == own.dtype && b.path == own.path) {
      *memory = b.memory;
      return true;
    }
  packed_b_.push_back(own);
  *memory = packed_b_.back().memory = new_memory(bytes);
  return false;
}

void Prepacking::copy_b(MatmulPlan* p) {
  const bool turned = p->b_row == 1;
  const int64_t rows = turned ? p->n : p->k;
  const int64_t cols = turned ? p->k : p->n;
  const int64_t row_step = turned ? p->b_col : p->b_row;
  const int64_t col_step = turned ? p->b_row : p->b_col;
  const int64_t item = kItemSize[p->dtype];
  char* to = nullptr;
  const bool copied = find_or_add(*p, p->path, rows * cols * item, &to);
  for (int64_t i = 0; i < rows && !copied; i++)
    for (int64_t j = 0; j < cols; j++)
      memcpy(to + (i * cols + j) * item, p->b + (i * row_step + j * col_step) * item, size_t(item));
  p->b = to;
  p->b_row = turned ? 1 : cols;
  p->b_col = turned ? cols : 1;
}

void Prepacking::pack_b(const Kernel& k, MatmulPlan* p, Isa isa, int32_t packs, int32_t packed,
                        int64_t bytes) {
  MatmulPlan first = *p;
  first.path = packs;
  if (!find_or_add(*p, packs, bytes, &first.c)) {
    const int32_t status = k.cpu[isa](&first, 0, 1);
    if (status) fail(status, "kernel {} failed", k.name);
  }
  p->path = packed;
  p->b = first.c;
}

void Prepacking::use(const Kernel& k, void* plan, Isa isa) {
  if (frozen_.empty()) return;
  if (is_kernel(k, "conv")) {
    auto& p = *static_cast<ConvPlan*>(plan);
    if (p.packed == from_ && is_frozen(p.weight)) p.packed = packed_;
    return;
  }
  if (is_kernel(k, "conv_interleaved")) {
    auto& p = *static_cast<ConvInterleavedPlan*>(plan);
    if (p.packed == from_ && is_frozen(p.weight)) p.packed = packed_;
    return;
  }
  if (!is_kernel(k, "matmul")) return;
  auto& p = *static_cast<MatmulPlan*>(plan);
  if (!is_frozen(p.b)) return;
  if (p.path == kMatmulPieces && p.batch == 1) copy_b(&p);
  if (matmul_can_pack_pieces(p)) {
    const int64_t bytes = matmul_packed_pieces_bytes(p);
    return pack_b(k, &p, isa, kMatmulPackPieces, kMatmulPackedPieces, bytes);
  }
  if (matmul_can_pack_b(p))
    pack_b(k, &p, isa, kMatmulPackB, kMatmulPackedB, matmul_panel_bytes(p, p.n));
}

}  // namespace TT_NS
