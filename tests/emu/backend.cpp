// libtt_emu.so: the fake device with the kernels of kernels/cuda in place of its rows, run by the
// emulation. Rows without a kernel there are absent, as on a GPU.
//   TT_EMU_ORDER   the order of threads (emu::set_order): 0, 1, or a seed
//   TT_EMU_LATE    when work runs (tt_fake_late): 0, 1, or a seed
#include "kernels/cuda/device.h"

#include <stdio.h>
#include <stdlib.h>

#include <memory>

#include "../fake/fake.h"
#include "../fake/memory.h"
#include "../fake/streams.h"
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

void set_order() {
  if (const char* order = getenv("TT_EMU_ORDER")) emu::set_order(strtoull(order, nullptr, 10));
}

fake::Stream* as_stream(void* s) { return static_cast<fake::Stream*>(s); }

// Only kernels reach the memory of the device, also where a row would do so by itself.
bool is_later(void* stream) { return fake::is_later(as_stream(stream)); }
void enqueue(void* stream, const emu::Launch& launch, void (*drop)(void*)) {
  const std::shared_ptr<void> closure(launch.closure, drop);
  const int32_t device = fake::device_of(as_stream(stream));
  fake::enqueue(device, as_stream(stream), [launch, closure, device] {
    const fake::Access access;
    set_order();
    const int32_t status = emu::run(launch);
    if (status == TT_DEVICE) fprintf(stderr, "%s\n", emu::last_fault());
    if (status) fake::fail_later(device, status);
  });
}
constexpr emu::LateStreams kStreams = {.is_later = is_later, .enqueue = enqueue};

int32_t run(Row row, const void* plan, void* stream, void* workspace) {
  if (is_later(stream)) return row(plan, stream, workspace);
  const fake::Access access;
  set_order();
  const int32_t status = row(plan, stream, workspace);
  if (status == TT_DEVICE) fprintf(stderr, "%s\n", emu::last_fault());
  return status;
}
template <Row kRow> int32_t run_row(int32_t, const void* plan, void* stream, void* workspace) {
  return run(kRow, plan, stream, workspace);
}

WorkspaceBytes g_workspace[kMaxKernels];
size_t workspace_bytes(int32_t, int32_t kernel, const void* plan) {
  return g_workspace[kernel] ? g_workspace[kernel](plan) : 0;
}

// ---- graphs ----

int32_t capture_begin(int32_t, void* stream) {
  return fake::begin_capture(as_stream(stream)) ? TT_OK : TT_INTERNAL;
}
int32_t capture_end(int32_t, void* stream, void** out) {
  *out = fake::end_capture(as_stream(stream));
  return *out ? TT_OK : TT_INTERNAL;
}
int32_t graph_launch(int32_t, void* graph, void* stream) {
  fake::launch_graph(static_cast<fake::Graph*>(graph), as_stream(stream));
  return TT_OK;
}
void graph_free(int32_t, void* graph) { fake::free_graph(static_cast<fake::Graph*>(graph)); }

void replace_rows(DeviceBackend* table) {
  for (DeviceKernel& row : table->kernels) row = nullptr;
#define TT_CUDA_ROW(name) table->kernels[kId_##name] = run_row<cuda::name>;
#define TT_CUDA_ROW_WORKSPACE(name) \
  TT_CUDA_ROW(name)                 \
  g_workspace[kId_##name] = cuda::name##_workspace;
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE
  table->workspace_bytes = workspace_bytes;
  table->cpu_scratch = 0;
  table->capture_begin = capture_begin;
  table->capture_end = capture_end;
  table->graph_launch = graph_launch;
  table->graph_free = graph_free;
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
  emu::late_streams = &kStreams;
  if (const char* late = getenv("TT_EMU_LATE")) tt_fake_late(strtoull(late, nullptr, 10));
  *out = &table;
  return TT_OK;
}
