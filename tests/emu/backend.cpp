// libtt_emu.so: the fake device with the kernels of kernels/cuda in place of its rows, run by the
// emulation. Rows without a kernel there stay the fake's, the baseline CPU kernels.
//   TT_EMU_ORDER   the order of threads (emu::set_order): 0, 1, or a seed
#include "kernels/cuda/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "../fake/memory.h"
#include "kernels/cuda/rows.h"
#include "plan/backend_id.h"

namespace TT_NS {
namespace {

enum KernelId : int32_t {
#define TT_KERNEL_ROW(name, kind) kId_##name,
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
};

using Row = int32_t (*)(const void* plan, void* stream, void* workspace);
using WorkspaceBytes = size_t (*)(const void* plan);

int32_t run(Row row, const void* plan, void* stream, void* workspace) {
  fake::Access access;
  const char* order = getenv("TT_EMU_ORDER");
  if (order) emu::set_order(strtoull(order, nullptr, 10));
  const int32_t status = row(plan, stream, workspace);
  if (status == TT_DEVICE) fprintf(stderr, "%s\n", emu::last_fault());
  return status;
}
template <Row kRow> int32_t run_row(int32_t, const void* plan, void* stream, void* workspace) {
  return run(kRow, plan, stream, workspace);
}

WorkspaceBytes g_workspace[kMaxKernels];
size_t workspace_bytes(int32_t kernel, const void* plan) {
  return g_workspace[kernel] ? g_workspace[kernel](plan) : 0;
}

void replace_rows(DeviceBackend* table) {
#define TT_CUDA_ROW(name) table->kernels[kId_##name] = run_row<cuda::name>;
#define TT_CUDA_ROW_WORKSPACE(name) \
  TT_CUDA_ROW(name)                 \
  g_workspace[kId_##name] = cuda::name##_workspace;
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE
  table->workspace_bytes = workspace_bytes;
}

}  // namespace
}  // namespace TT_NS

using namespace TT_NS;

extern "C" int32_t tt_fake_backend(uint64_t build_id, const DeviceHost* host,
                                   const DeviceBackend** out);  // that of tests/fake/backend.cpp

extern "C" __attribute__((visibility("default"))) int32_t tt_cuda_backend(
    uint64_t build_id, const DeviceHost* host, const DeviceBackend** out) {
  static DeviceBackend table;
  const DeviceBackend* fake;
  const int32_t status = tt_fake_backend(build_id, host, &fake);
  *out = fake;
  if (status != TT_OK) return status;
  table = *fake;
  replace_rows(&table);
  *out = &table;
  return TT_OK;
}
