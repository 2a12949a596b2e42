// libtt_null.so: a device library that computes nothing, for bench/launch.c: what is left of a call
// is tt's own part. Its memory has addresses, but no bytes.
#include "plan/backend_id.h"

#include <atomic>

namespace TT_NS {
namespace {

int32_t no_kernel(int32_t, const void*, void*, void*) { return TT_OK; }
int32_t raw_alloc(int32_t, size_t bytes, void** out) {
  static std::atomic<uintptr_t> next{uintptr_t(1) << 40};
  *out = reinterpret_cast<void*>(next.fetch_add((bytes + 0xffff) & ~uintptr_t(0xffff)));
  return TT_OK;
}
void raw_free(int32_t, void*) {}
int32_t copy(int32_t, void*, const void*, size_t, int32_t, void*) { return TT_OK; }
int32_t stream_sync(int32_t, void*) { return TT_OK; }
int32_t make(int32_t, void** out) {
  static char any;
  *out = &any;
  return TT_OK;
}
int32_t stream_new(int32_t device, int32_t, void** out) { return make(device, out); }
void end(int32_t, void*) {}
int32_t event_record(int32_t, void*, void*) { return TT_OK; }
int32_t stream_wait(int32_t, void*, void*) { return TT_OK; }
int32_t is_done(int32_t, void*) { return 1; }
size_t workspace_bytes(int32_t, int32_t, const void*) { return 0; }

enum Row : int32_t {
#define TT_KERNEL_ROW(name, kind) kRow_##name,
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
  kNumRows
};

constexpr DeviceBackend make_table() {
  DeviceBackend b = {};
  b.build_id = kBuildId;
  b.n_devices = 1;
  b.n_kernels = kNumRows;
  b.raw_alloc = raw_alloc;
  b.raw_free = raw_free;
  b.copy = copy;
  b.stream_sync = stream_sync;
  b.event_new = make;
  b.event_free = end;
  b.event_record = event_record;
  b.event_done = is_done;
  b.workspace_bytes = workspace_bytes;
  for (int32_t k = 0; k < kNumRows; k++) b.kernels[k] = no_kernel;
  b.stream_new = stream_new;
  b.stream_free = end;
  b.stream_wait = stream_wait;
  b.stream_done = is_done;
  return b;
}
constinit const DeviceBackend g_table = make_table();

}  // namespace
}  // namespace TT_NS

extern "C" __attribute__((visibility("default"))) int32_t tt_cuda_backend(
    uint64_t build_id, const TT_NS::DeviceHost*, const TT_NS::DeviceBackend** out) {
  *out = &TT_NS::g_table;
  return build_id == TT_NS::kBuildId ? TT_OK : TT_ABI;
}
