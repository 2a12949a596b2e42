// Runs a MatmulPlan on the CPU: picks the units of its path and runs them on the pool.
#pragma once

#include "base/pool.h"
#include "plan/matmul_build.h"
#include "plan/matmul_split.h"

namespace TT_NS {

// Sets the plan's path to OpenBLAS if that is the faster provider. Must precede
// matmul_workspace_bytes.
void matmul_pick_provider(MatmulPlan* p, Isa isa) noexcept;

// Called on the calling thread between parts of a long matmul; false stops them.
using MatmulGoOn = bool (*)() noexcept;

// p.workspace holds matmul_workspace_bytes(p). A NULL pool means serial. Returns 0, a tt_status, or
// kKernelEnded if go_on has stopped it. matmul_driver, the kernel matmul of the CPU, calls it with
// the ctx's instruction set, pool and poll.
int32_t run_matmul(const MatmulPlan& p, Isa isa, Pool* pool, MatmulGoOn go_on = nullptr) noexcept;
int32_t matmul_driver(const void* plan, int64_t begin, int64_t end) noexcept;

// Sets how matrices of bf16 are multiplied on kIsaAvx512, a Bf16Products, for tests; -1: as is
// fastest. Small matrices do without tiles.
void assume_bf16_products(int32_t products) noexcept;

}  // namespace TT_NS
