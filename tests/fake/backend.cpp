// The DeviceBackend table over host memory: every kernel is the baseline CPU kernel of the same
// name, run over all its units.
#include "fake.h"
#include "memory.h"
#include "streams.h"
#include "plan/attention_plan.h"
#include "plan/backend_id.h"
#include "plan/elementwise_plan.h"
#include "plan/scan_plan.h"
#include "base/os.h"
#include "core/half.h"
#include "cpu/matmul_run.h"
#include "ops/gen/kernels.h"
#include "plan/stages.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <vector>

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
  fake::Access access;
  set_pending(device, body());
  return TT_OK;
}

// Whether this launch is the one that is to fail, and how.
bool fails_now(int32_t device, int32_t* status) {
  g_launches++;
  *status = TT_OK;
  if (g_fail_at < 0 || g_fail_at-- != 0) return false;
  if (g_fail_late) set_pending(device, g_fail_status);
  else *status = g_fail_status;
  return true;
}

int32_t host_pointer(const char* what) {
  if (g_host && g_host->log) g_host->log(TT_LOG_ERROR, what);
  return TT_INTERNAL;
}

// ---- by kind of plan ----

// Functions of the kernel: as templates, each of the 250 rows would be compiled for long.
using Run = int32_t (*)(CpuKernel kernel, int32_t device, const void* plan);

// A host scalar has no place in device memory: its operand points into the plan's copy.
int32_t run_element(CpuKernel kernel, int32_t device, const void* p) {
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
  return launch(device, [&] { return kernel(&plan, 0, plan.n); });
}

// The stages run in order; the caller's plan has the number of the running one, as on the CPU.
int32_t run_staged(CpuKernel kernel, int32_t device, const void* p) {
  auto* run = static_cast<Stages*>(const_cast<void*>(p));
  return launch(device, [&] {
    int32_t status = TT_OK;
    for (run->stage = 0; run->stage < run->n && !status; run->stage++)
      if (run->units[run->stage]) status = kernel(p, 0, run->units[run->stage]);
    run->stage = 0;
    return status;
  });
}

// A device's gradients of attention have the inputs' dtype, those of the CPU's kernel that of sums.
int32_t run_attention_backward(CpuKernel kernel, int32_t device, const void* p) {
  AttentionPlan plan = *static_cast<const AttentionPlan*>(p);
  if (plan.dtype != TT_F16 && plan.dtype != TT_BF16) return run_staged(kernel, device, p);
  char* const to[3] = {plan.dq, plan.dk, plan.dv};
  const int64_t keys = plan.batch * plan.key_heads * plan.keys;
  const int64_t n[3] = {plan.batch * plan.heads * plan.queries * plan.width, keys * plan.width,
                        keys * plan.value_width};
  std::vector<float> sums[3];
  for (int i = 0; i < 3; i++) sums[i].resize(size_t(n[i]));
  plan.dq = reinterpret_cast<char*>(sums[0].data());
  plan.dk = reinterpret_cast<char*>(sums[1].data());
  plan.dv = reinterpret_cast<char*>(sums[2].data());
  const int32_t status = run_staged(kernel, device, &plan);
  return status ? status : launch(device, [&] {
    for (int i = 0; i < 3; i++)
      for (int64_t e = 0; e < n[i]; e++) {
        const float sum = sums[i][size_t(e)];
        const uint16_t bits = plan.dtype == TT_F16 ? float_to_f16(sum) : float_to_bf16(sum);
        memcpy(to[i] + 2 * e, &bits, sizeof bits);
      }
    return TT_OK;
  });
}

// The CPU's kernel writes values, too, of 8 bytes at most, which devices gather.
int32_t run_cummax(CpuKernel kernel, int32_t device, const void* p) {
  CumExtremePlan plan = *static_cast<const CumExtremePlan*>(p);
  std::vector<int64_t> values(size_t(plan.outer * plan.dim * plan.inner));
  plan.values = reinterpret_cast<char*>(values.data());
  return run_staged(kernel, device, &plan);
}

[[maybe_unused]] int32_t run_units(CpuKernel kernel, int32_t device, const void* p) {
  return launch(device, [&] { return kernel(p, 0, *static_cast<const int64_t*>(p)); });
}

int32_t run_matmul_kernel(CpuKernel, int32_t device, const void* p) {
  const auto& plan = *static_cast<const MatmulPlan*>(p);
  for (const void* x : {static_cast<const void*>(plan.a), static_cast<const void*>(plan.b),
                        static_cast<const void*>(plan.c), static_cast<const void*>(plan.workspace)})
    if (x && !fake::is_device_pointer(x)) return host_pointer("a product got a host pointer");
  return launch(device, [&] { return run_matmul(plan, Isa(0), nullptr); });
}

// A kernel's row: its work runs on the stream, from a copy of the plan if that is later.
int32_t start(Run run, CpuKernel kernel, const Kernel& k, int32_t device, const void* plan,
              void* stream) {
  int32_t status;
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  if (&k == &kernel_attention_backward) run = run_attention_backward;
  if (&k == &kernel_cummax) run = run_cummax;
  if (fails_now(device, &status)) return status;
  if (!fake::is_late()) return run(kernel, device, plan);
  auto copy = std::make_shared<std::vector<int64_t>>(size_t(k.plan_bytes + 7) / 8);
  memcpy(copy->data(), plan, size_t(k.plan_bytes));
  if (k.rebase) k.rebase(copy->data(), plan);
  fake::enqueue(device, static_cast<fake::Stream*>(stream), [=] {
    if (const int32_t failed = run(kernel, device, copy->data())) set_pending(device, failed);
  });
  return TT_OK;
}

// ---- memory, copies, streams, events ----

std::atomic<int64_t> g_syncs{0};

int32_t raw_alloc(int32_t device, size_t bytes, void** out) {
  *out = nullptr;
  if (fake::is_capturing(nullptr)) {
    fake::spoil_captures();
    return TT_INTERNAL;
  }
  *out = device >= 0 && device < TT_FAKE_DEVICES ? fake::take(device, bytes) : nullptr;
  return *out ? TT_OK : TT_OOM;
}
void raw_free(int32_t device, void* p) {
  fake::wait_device(device);  // as cudaFree does
  fake::give(device, p);
}

int32_t take_pending(int32_t device) { return g_pending[device].exchange(0); }

fake::Stream* as_stream(void* s) { return static_cast<fake::Stream*>(s); }
fake::Event* as_event(void* e) { return static_cast<fake::Event*>(e); }

int32_t stream_sync(int32_t device, void* stream) {
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  g_syncs++;
  const bool captures = stream && fake::is_capturing(as_stream(stream));
  fake::wait(device, as_stream(stream));
  return captures ? int32_t(TT_INTERNAL) : take_pending(device);
}

int32_t copy_pinned(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind,
                    void* stream) {
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  if (bytes == 0) return TT_OK;
  if (fake::is_device_pointer(dst) != (kind != kDeviceToHost) ||
      fake::is_device_pointer(src) != (kind != kHostToDevice))
    return host_pointer("a copy's pointers do not fit its kind");
  fake::enqueue(device, as_stream(stream), [=] {
    fake::Access access;
    memmove(dst, src, bytes);
  });
  return TT_OK;
}
int32_t copy(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind, void* stream) {
  if (device < 0 || device >= TT_FAKE_DEVICES) return TT_DEVICE;
  if (kind == kHostToDevice && fake::is_late() && bytes) {
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(src),
                                                      static_cast<const char*>(src) + bytes);
    if (!fake::is_device_pointer(dst) || fake::is_device_pointer(src))
      return host_pointer("a copy's pointers do not fit its kind");
    fake::enqueue(device, as_stream(stream), [=] {
      fake::Access access;
      memcpy(dst, staged->data(), bytes);
    });
    return TT_OK;
  }
  const int32_t status = copy_pinned(device, dst, src, bytes, kind, stream);
  if (status || kind != kDeviceToHost) return status;
  return stream_sync(device, stream);
}
int32_t copy_peer(int32_t device, void* dst, int32_t, const void* src, size_t bytes, void* stream) {
  return copy_pinned(device, dst, src, bytes, kDeviceToDevice, stream);
}

int32_t stream_new(int32_t device, int32_t, void** out) {
  *out = fake::new_stream(device);
  return TT_OK;
}
void stream_free(int32_t, void* s) { fake::free_stream(as_stream(s)); }
int32_t stream_wait(int32_t device, void* s, void* e) {
  fake::let_wait(device, as_stream(s), as_event(e));
  return TT_OK;
}
int32_t stream_done(int32_t device, void* s) { return fake::is_done(device, as_stream(s)); }

int32_t event_new(int32_t, void** out) {
  *out = fake::new_event();
  return TT_OK;
}
void event_free(int32_t, void* e) { fake::free_event(as_event(e)); }
int32_t event_record(int32_t device, void* e, void* s) {
  fake::record(device, as_event(e), as_stream(s));
  return TT_OK;
}
int32_t event_done(int32_t, void* e) { return fake::has_happened(as_event(e)); }
int32_t event_sync(int32_t device, void* e) {
  g_syncs++;
  fake::wait(as_event(e));
  return take_pending(device);
}
int32_t event_elapsed(int32_t, void* start, void* end, double* ms) {
  *ms = fake::time_of(as_event(end)) - fake::time_of(as_event(start));
  return TT_OK;
}

int32_t pinned_alloc(int32_t, size_t bytes, void** out) {
  *out = os_alloc(bytes, 256);
  return *out ? TT_OK : TT_OOM;
}
void pinned_free(int32_t, void* p) { os_free(p); }
int32_t memory_info(int32_t device, int64_t* left, int64_t* total) {
  *total = fake::capacity(device);
  *left = *total - fake::live(device);
  return TT_OK;
}
int32_t properties(int32_t, tt_device_properties* out) {
  *out = {.name = "fake",
          .major = 9,
          .minor = 0,
          .multi_processor_count = 1,
          .warp_size = 32,
          .max_threads_per_multi_processor = 2048,
          .is_integrated = 1,
          .total_memory = fake::capacity(0),
          .shared_memory_per_block = 48 << 10,
          .shared_memory_per_block_optin = 227 << 10,
          .l2_cache_size = 1 << 20};
  return TT_OK;
}
int32_t peer_access(int32_t, int32_t) { return 1; }
int32_t make_current(int32_t device) { return device < TT_FAKE_DEVICES ? TT_OK : TT_DEVICE; }
thread_local const char* g_error = "";
const char* error_text() { return g_error; }
std::atomic<int32_t> g_measured{-1};
size_t workspace_bytes(int32_t device, int32_t, const void*) {
  g_measured = device;
  return 0;
}

#define RUN_element(name) run_element, baseline::name
#define RUN_staged(name) run_staged, baseline::name
#define RUN_units(name) run_units, baseline::name
#define RUN_driver(name) run_##name##_kernel, nullptr

// The rows: one function for each kernel.
#define TT_KERNEL_ROW(name, kind)                                             \
  int32_t row_##name(int32_t device, const void* plan, void* stream, void*) { \
    return start(RUN_##kind(name), kernel_##name, device, plan, stream);      \
  }
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW

DeviceBackend g_backend = {.build_id = kBuildId,
                           .n_devices = TT_FAKE_DEVICES,
                           .n_kernels =
#define TT_KERNEL_ROW(name, kind) +1
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
                               ,
                           .raw_alloc = raw_alloc,
                           .raw_free = raw_free,
                           .copy = copy,
                           .stream_sync = stream_sync,
                           .event_new = event_new,
                           .event_free = event_free,
                           .event_record = event_record,
                           .event_done = event_done,
                           .workspace_bytes = workspace_bytes,
                           .kernels =
                               {
#define TT_KERNEL_ROW(name, kind) row_##name,
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
                               },
                           .block_rule = kWholeBlocks,
                           .cpu_scratch = 1,
                           .stream_new = stream_new,
                           .stream_free = stream_free,
                           .stream_wait = stream_wait,
                           .stream_done = stream_done,
                           .timed_event_new = event_new,
                           .event_sync = event_sync,
                           .event_elapsed = event_elapsed,
                           .copy_peer = copy_peer,
                           .pinned_alloc = pinned_alloc,
                           .pinned_free = pinned_free,
                           .copy_pinned = copy_pinned,
                           .memory_info = memory_info,
                           .properties = properties,
                           .peer_access = peer_access,
                           .capture_begin = nullptr,
                           .capture_end = nullptr,
                           .graph_launch = nullptr,
                           .graph_free = nullptr,
                           .error_text = error_text,
                           .make_current = make_current};
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
// The device whose scratch memory was asked for last.
EXPORT int32_t tt_fake_measured(void) { return g_measured; }
EXPORT int64_t tt_fake_syncs(void) { return g_syncs; }
EXPORT int64_t tt_fake_graphs(void) { return fake::graph_launches(); }
void fake::fail_later(int32_t device, int32_t status) { set_pending(device, status); }

EXPORT void tt_fake_late(uint64_t order) { fake::set_late(order); }
EXPORT void tt_fake_cut_blocks(int32_t cut) {
  g_backend.block_rule = cut ? kCutBlocks : kWholeBlocks;
}
EXPORT void tt_fake_fail(int64_t n, int32_t status, int32_t late) {
  g_fail_at = n;
  g_fail_status = status;
  g_fail_late = late;
}
EXPORT void tt_fake_claim(uint64_t build_id) { g_claimed = build_id ? build_id : kBuildId; }
