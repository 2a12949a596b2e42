// Runs a MatmulPlan on the CPU: picks the units of its path and drives them over the pool.
#pragma once

#include "base/pool.h"
#include "plan/matmul_build.h"
#include "plan/matmul_split.h"

namespace TT_NS {

// Sets the plan's path to OpenBLAS where that is the faster provider. Before matmul_workspace_bytes.
void matmul_pick_provider(MatmulPlan* p, Isa isa) noexcept;

// p.workspace holds matmul_workspace_bytes(p). pool NULL: serial. Returns 0 or a tt_status.
int32_t run_matmul(const MatmulPlan& p, Isa isa, Pool* pool) noexcept;

}  // namespace TT_NS
