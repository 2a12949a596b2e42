// The DeviceBackend table over host memory: every kernel is the baseline CPU kernel of the same
// name, run over all its units.
#include "fake.h"
#include "memory.h"
#include "plan/backend_id.h"
#include "plan/elementwise_plan.h"
#include "cpu/matmul_run.h"
#include "plan/stages.h"

#include <stddef.h>
#include <string.h>

#include <atomic>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace TT_NS {

// ---- the kernels' CPU forms ----

#define DECLARE_element(name) int32_t name(const void* plan, int64_t begin, int64_t end) noexcept;
#define DECLARE_staged(name) DECLARE_element(name)
#define DECLARE_units(name) DECLARE_element(name)
#define DECLARE_driver(name)
#define TT_KERNEL_ROW(name, kind) DECLARE_##kind(name)
namespace baseline {
#include "plan/gen/kernel_rows.inc"
}
#undef TT_KERNEL_ROW

namespace {

constexpr uint64_t kBuildId = BackendId()
#define TT_KERNEL_ROW(name, kind) .kernel(#name)
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
                                  .value;

const DeviceHost* g_host;
std::atomic<int64_t> g_launches{0};
std::atomic<int64_t> g_fail_at{-1};
std::atomic<int32_t> g_fail_status{0};
std::atomic<int32_t> g_fail_late{0};
std::atomic<int32_t>
    g_pending[TT_FAKE_DEVICES];  // status of work that failed; reported when the host next waits

// The first failure stays until the host asks.
void set_pending(int32_t device, int32_t status) {
  int32_t none = 0;
  if (status) g_pending[device].compare_exchange_strong(none, status);
}

// Runs body() as the work of one launch. It may access device memory; its failure is reported
// later.
template <class F> int32_t launch(int32_t device, F body) {
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  g_launches++;
  if (g_fail_at >= 0 && g_fail_at-- == 0) {
    if (!g_fail_late) return g_fail_status;
    set_pending(device, g_fail_status);
    return TT_OK;
  }
  fake::Access access;
  set_pending(device, body());
  return TT_OK;
}

int32_t host_pointer(const char* what) {
  if (g_host && g_host->log) g_host->log(TT_LOG_ERROR, what);
  return TT_INTERNAL;
}

// ---- by kind of plan ----

// A host scalar has no place in device memory: its operand points into the plan's copy.
template <CpuKernel kKernel> int32_t run_element(int32_t device, const void* p, void*, void*) {
  const auto& given = *static_cast<const ElementPlan*>(p);
  ElementPlan plan;
  memcpy(static_cast<void*>(&plan), &given,
         given.dense ? offsetof(ElementPlan, size) : sizeof plan);
  for (int k = 0; k < plan.n_operands; k++) {
    if (plan.ptr[k]) {
      if (!fake::is_device_pointer(plan.ptr[k]))
        return host_pointer("an elementwise kernel got a host pointer");
    } else {
      plan.ptr[k] = plan.scalar[k];
    }
  }
  return launch(device, [&] { return kKernel(&plan, 0, plan.n); });
}

// The stages run in order; the caller's plan has the number of the running one, as on the CPU.
template <CpuKernel kKernel> int32_t run_staged(int32_t device, const void* p, void*, void*) {
  auto* run = static_cast<Stages*>(const_cast<void*>(p));
  return launch(device, [&] {
    int32_t status = TT_OK;
    for (run->stage = 0; run->stage < run->n && !status; run->stage++)
      if (run->units[run->stage]) status = kKernel(p, 0, run->units[run->stage]);
    run->stage = 0;
    return status;
  });
}

template <CpuKernel kKernel> int32_t run_units(int32_t device, const void* p, void*, void*) {
  return launch(device, [&] { return kKernel(p, 0, *static_cast<const int64_t*>(p)); });
}

int32_t run_matmul_kernel(int32_t device, const void* p, void*, void*) {
  const auto& plan = *static_cast<const MatmulPlan*>(p);
  for (const void* x : {static_cast<const void*>(plan.a), static_cast<const void*>(plan.b),
                        static_cast<const void*>(plan.c), static_cast<const void*>(plan.workspace)})
    if (x && !fake::is_device_pointer(x)) return host_pointer("a product got a host pointer");
  return launch(device, [&] { return run_matmul(plan, Isa(0), nullptr); });
}

// ---- memory, copies, streams, events ----

int32_t raw_alloc(int32_t device, size_t bytes, void** out) {
  *out = device >= 0 && device < TT_FAKE_DEVICES ? fake::take(device, bytes) : nullptr;
  return *out ? TT_OK : TT_OOM;
}
void raw_free(int32_t device, void* p) { fake::give(device, p); }

int32_t take_pending(int32_t device) { return g_pending[device].exchange(0); }

int32_t copy(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind, void*) {
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  if (kind == kDeviceToHost)
    if (int32_t s = take_pending(device)) return s;
  if (bytes == 0) return TT_OK;
  if (fake::is_device_pointer(dst) != (kind != kDeviceToHost) ||
      fake::is_device_pointer(src) != (kind != kHostToDevice))
    return host_pointer("a copy's pointers do not fit its kind");
  fake::Access access;
  memmove(dst, src, bytes);
  return TT_OK;
}
int32_t stream_sync(int32_t device, void*) {
  return device >= 0 && device < TT_FAKE_DEVICES ? take_pending(device) : TT_DEVICE;
}

// Work is complete when its launch returns, so an event is complete once it is recorded.
int32_t event_new(int32_t, void** out) {
  *out = new int32_t(0);
  return TT_OK;
}
void event_free(int32_t, void* event) { delete static_cast<int32_t*>(event); }
int32_t event_record(int32_t, void* event, void*) {
  *static_cast<int32_t*>(event) = 1;
  return TT_OK;
}
int32_t event_done(int32_t, void* event) { return *static_cast<int32_t*>(event); }
size_t workspace_bytes(int32_t, const void*) { return 0; }

#define RUN_element(name) run_element<baseline::name>
#define RUN_staged(name) run_staged<baseline::name>
#define RUN_units(name) run_units<baseline::name>
#define RUN_driver(name) run_##name##_kernel

DeviceBackend g_backend = {kBuildId,
                           TT_FAKE_DEVICES,
#define TT_KERNEL_ROW(name, kind) +1
                           0
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
                           ,
                           raw_alloc,
                           raw_free,
                           copy,
                           stream_sync,
                           event_new,
                           event_free,
                           event_record,
                           event_done,
                           workspace_bytes,
                           {
#define TT_KERNEL_ROW(name, kind) RUN_##kind(name),
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
                           }};
uint64_t g_claimed = kBuildId;

}  // namespace

}  // namespace TT_NS

using namespace TT_NS;

EXPORT int32_t tt_cuda_backend(uint64_t build_id, const DeviceHost* host,
                               const DeviceBackend** out) {
  static DeviceBackend other;
  if (g_claimed != kBuildId) {
    other.build_id = g_claimed;
    *out = &other;
    return TT_ABI;
  }
  *out = &g_backend;
  if (build_id != kBuildId) return TT_ABI;
  g_host = host;
  return TT_OK;
}

EXPORT int64_t tt_fake_live(int32_t device) { return fake::live(device); }
EXPORT void tt_fake_capacity(int32_t device, int64_t bytes) { fake::set_capacity(device, bytes); }
EXPORT int64_t tt_fake_launches(void) { return g_launches; }
EXPORT void tt_fake_fail(int64_t n, int32_t status, int32_t late) {
  g_fail_at = n;
  g_fail_status = status;
  g_fail_late = late;
}
EXPORT void tt_fake_claim(uint64_t build_id) { g_claimed = build_id ? build_id : kBuildId; }
