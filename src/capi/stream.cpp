// Facts and memory of CUDA devices, their streams and events.
#include "capi/api.h"
#include "core/pinned.h"
#include "dispatch/key.h"
#include "modes/streams.h"
#include "ops/gen/ops.h"

using namespace TT_NS;

static DeviceStream* stream_of(const tt_stream* h) {
  auto* s = reinterpret_cast<DeviceStream*>(const_cast<tt_stream*>(h));
  return s && s->tag == kTagStream ? s : nullptr;
}
static DeviceEvent* event_of(const tt_event* h) {
  auto* e = reinterpret_cast<DeviceEvent*>(const_cast<tt_event*>(h));
  return e && e->tag == kTagEvent ? e : nullptr;
}
static DeviceStream& stream_arg(const tt_stream* h, const char* arg, int32_t index) {
  if (!stream_of(h)) fail_handle(h, arg, index, "stream");
  return *stream_of(h);
}
static DeviceEvent& event_arg(const tt_event* h, const char* arg, int32_t index) {
  if (!event_of(h)) fail_handle(h, arg, index, "event");
  return *event_of(h);
}
static tt_stream* handle_of(Ref<DeviceStream> s) { return reinterpret_cast<tt_stream*>(s.leak()); }

// NULL: the first CUDA device.
static CudaDevice& cuda_arg(Ctx& c, const tt_device* device, const char* arg, int32_t index) {
  if (!device) return runtime_cuda(c.rt, 0, arg);
  const Device d = device_arg(device, arg, index);
  if (d.type != TT_CUDA) fail_arg(TT_DEVICE, arg, "{} is {}: must be a CUDA device", arg, fmt(d));
  return runtime_cuda(c.rt, d.index, arg);
}

static void check_runtime(const Ctx& c, const CudaDevice& d, const char* arg) {
  for (const CudaDevice* own : c.rt->cuda)
    if (own == &d) return;
  fail_arg(TT_DEVICE, arg, "{} belongs to a device of another runtime", arg);
}

// ---- devices ----

tt_status tt_device_get_properties(tt_ctx* h, const tt_device* device, tt_device_properties* out) {
  return api_call(h, "device_get_properties", [&](Ctx& c) {
    out_arg(out, "out", 2);
    *out = tt_device_properties{};
    CudaDevice& d = cuda_arg(c, device, "device", 1);
    out->name = "";
    if (!d.backend->properties) return;
    cuda_usable(d);
    cuda_check(d, d.backend->properties(d.index, out), "reading the properties");
  });
}

tt_status tt_device_memory_stats(tt_ctx* h, const tt_device* device, tt_device_memory* out) {
  return api_call(h, "device_memory_stats", [&](Ctx& c) {
    out_arg(out, "out", 2);
    *out = tt_device_memory{};
    CudaDevice& d = cuda_arg(c, device, "device", 1);
    DeviceAllocStats s;
    device_alloc_stats(d.alloc, &s);
    out->allocated = s.in_use;
    out->max_allocated = s.peak_in_use;
    out->reserved = s.reserved;
    out->max_reserved = s.peak_reserved;
    out->limit = s.limit;
    out->allocations = s.allocations;
    out->retries = s.retries;
    out->failures = s.failures;
    if (!d.backend->memory_info) return;
    cuda_usable(d);
    cuda_check(d, d.backend->memory_info(d.index, &out->free, &out->total),
               "asking for its memory");
  });
}

tt_status tt_device_reset_peak(tt_ctx* h, const tt_device* device) {
  return api_call(h, "device_reset_peak",
                  [&](Ctx& c) { device_alloc_reset_peak(cuda_arg(c, device, "device", 1).alloc); });
}

tt_status tt_device_can_access_peer(tt_ctx* h, const tt_device* device, const tt_device* peer,
                                    int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "device_can_access_peer", [&](Ctx& c) {
    out_arg(out, "out", 3);
    if (!device) fail_null("device", 1);
    if (!peer) fail_null("peer", 2);
    CudaDevice& a = cuda_arg(c, device, "device", 1);
    CudaDevice& b = cuda_arg(c, peer, "peer", 2);
    if (a.index != b.index && a.backend->peer_access)
      *out = a.backend->peer_access(a.index, b.index);
  });
}

// ---- pinned memory ----

tt_status tt_pin_memory(tt_ctx* h, const tt_tensor* t, const tt_device* device, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "pin_memory", [&](Ctx& c) {
    const Tensor& src = tensor_arg(t, "t", 1);
    out_arg(out, "out", 3);
    if (!src.is_cpu())
      fail_arg(TT_DEVICE, "t", "t is on {}: only tensors of the CPU can be pinned",
               fmt(src.device));
    if (is_pinned(*src.storage)) return give(c, out, TensorRef::share(&src));
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef pinned = new_pinned(cuda_arg(c, device, "device", 2), src.sizes(), src.dtype);
    op::copy_(*pinned, src);
    give(c, out, std::move(pinned));
  });
}
int32_t tt_tensor_is_pinned(const tt_tensor* h) {
  const Tensor* t = tensor_of(h);
  return t && t->tag == kTagTensor && is_pinned(*t->storage);
}

static bool is_block_pair(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && same(a.sizes(), b.sizes()) && a.contiguous() && b.contiguous() &&
         a.is_cpu() != b.is_cpu();
}
tt_status tt_copy_non_blocking(tt_ctx* h, tt_tensor* dst, const tt_tensor* src) {
  return api_call(h, "copy_non_blocking", [&](Ctx& c) {
    Tensor& to = mutable_arg(dst, "dst", 1);
    const Tensor& from = tensor_arg(src, "src", 2);
    const Tensor& cpu = to.is_cpu() ? to : from;
    const Tensor& other = to.is_cpu() ? from : to;
    const bool fits = is_block_pair(to, from) && other.device.type == TT_CUDA &&
                      is_pinned(*cpu.storage) && to.storage->writable;
    MaskGuard no_grad(bit(kKeyAutograd));
    if (!fits) return op::copy_(to, from);
    if (!to.numel) return;
    DeviceStream& stream = current_stream(runtime_cuda(c.rt, other.device.index));
    wait_for_writer(stream, *other.storage);
    if (&other == &to) wait_for_users(stream, *other.storage);
    copy_pinned(c, to.data, to.device, from.data, from.device, to.numel * to.item_size(),
                *cpu.storage);
    mark_used(stream, *other.storage, &other == &to);
    to.bump_version();
  });
}

// ---- streams ----

tt_status tt_stream_new(tt_ctx* h, const tt_device* device, int32_t priority, tt_stream** out) {
  if (out) *out = nullptr;
  return api_call(h, "stream_new", [&](Ctx& c) {
    out_arg(out, "out", 3);
    *out = handle_of(new_stream(cuda_arg(c, device, "device", 1), priority));
  });
}
tt_status tt_stream_import(tt_ctx* h, const tt_device* device, void* handle, tt_stream** out) {
  if (out) *out = nullptr;
  return api_call(h, "stream_import", [&](Ctx& c) {
    out_arg(out, "out", 3);
    if (!handle) fail_null("handle", 2);
    *out = handle_of(import_stream(cuda_arg(c, device, "device", 1), handle));
  });
}
void tt_stream_retain(tt_stream* h) {
  if (DeviceStream* s = stream_of(h)) ref_inc_external(&s->refs);
}
void tt_stream_release(tt_stream* h) {
  if (DeviceStream* s = stream_of(h)) Ref<DeviceStream>::adopt(s).reset();
}

tt_status tt_stream_current(tt_ctx* h, const tt_device* device, tt_stream** out) {
  if (out) *out = nullptr;
  return api_call(h, "stream_current", [&](Ctx& c) {
    out_arg(out, "out", 2);
    CudaDevice& d = cuda_arg(c, device, "device", 1);
    DeviceStream& s = current_stream(d);
    *out = handle_of(s.number ? Ref<DeviceStream>::share(&s) : own_stream(d));
  });
}
tt_status tt_stream_default(tt_ctx* h, const tt_device* device, tt_stream** out) {
  if (out) *out = nullptr;
  return api_call(h, "stream_default", [&](Ctx& c) {
    out_arg(out, "out", 2);
    *out = handle_of(own_stream(cuda_arg(c, device, "device", 1)));
  });
}
tt_status tt_stream_set(tt_ctx* h, tt_stream* s) {
  return api_call(h, "stream_set", [&](Ctx& c) {
    DeviceStream& stream = stream_arg(s, "s", 1);
    check_runtime(c, *stream.device, "s");
    use_stream(c, stream);
  });
}

tt_status tt_stream_query(tt_ctx* h, tt_stream* s, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "stream_query", [&](Ctx&) {
    DeviceStream& stream = stream_arg(s, "s", 1);
    out_arg(out, "out", 2);
    CudaDevice& d = *stream.device;
    cuda_usable(d);
    *out = !d.backend->stream_done || d.backend->stream_done(d.index, stream.handle);
  });
}
tt_status tt_stream_synchronize(tt_ctx* h, tt_stream* s) {
  return api_call(h, "stream_synchronize", [&](Ctx&) {
    DeviceStream& stream = stream_arg(s, "s", 1);
    cuda_synchronize(*stream.device, &stream);
  });
}
tt_status tt_stream_wait_event(tt_ctx* h, tt_stream* s, tt_event* e) {
  return api_call(h, "stream_wait_event", [&](Ctx&) {
    DeviceStream& stream = stream_arg(s, "s", 1);
    DeviceEvent& event = event_arg(e, "e", 2);
    CudaDevice& d = *stream.device;
    cuda_usable(d);
    if (!atomic_load(&event.recorded, kAcquire) || !d.backend->stream_wait) return;
    cuda_check(d, d.backend->stream_wait(d.index, stream.handle, event.handle),
               "waiting for an event");
  });
}
tt_status tt_stream_wait_stream(tt_ctx* h, tt_stream* s, tt_stream* other) {
  return api_call(h, "stream_wait_stream", [&](Ctx&) {
    DeviceStream& stream = stream_arg(s, "s", 1);
    cuda_wait_stream(stream, stream_arg(other, "other", 2));
  });
}
int32_t tt_stream_device_index(const tt_stream* h) {
  const DeviceStream* s = stream_of(h);
  return s ? s->device->index : 0;
}
void* tt_stream_handle(const tt_stream* h) {
  const DeviceStream* s = stream_of(h);
  return s ? s->handle : nullptr;
}

// ---- events ----

tt_status tt_event_new(tt_ctx* h, const tt_device* device, int32_t timing, tt_event** out) {
  if (out) *out = nullptr;
  return api_call(h, "event_new", [&](Ctx& c) {
    out_arg(out, "out", 3);
    CudaDevice& d = cuda_arg(c, device, "device", 1);
    *out = reinterpret_cast<tt_event*>(new_event(d, timing != 0).leak());
  });
}
void tt_event_retain(tt_event* h) {
  if (DeviceEvent* e = event_of(h)) ref_inc_external(&e->refs);
}
void tt_event_release(tt_event* h) {
  if (DeviceEvent* e = event_of(h)) Ref<DeviceEvent>::adopt(e).reset();
}
tt_status tt_event_record(tt_ctx* h, tt_event* e, tt_stream* s) {
  return api_call(h, "event_record", [&](Ctx&) {
    DeviceEvent& event = event_arg(e, "e", 1);
    CudaDevice& d = *event.device;
    cuda_usable(d);
    DeviceStream& stream = s ? stream_arg(s, "s", 2) : current_stream(d);
    if (stream.device != &d)
      fail_arg(TT_DEVICE, "s", "the event is of {}, the stream of {}: must be of one device",
               fmt(Device{TT_CUDA, int8_t(d.index)}),
               fmt(Device{TT_CUDA, int8_t(stream.device->index)}));
    cuda_check(d, d.backend->event_record(d.index, event.handle, stream.handle),
               "recording an event");
    atomic_store(&event.recorded, true, kRelease);
  });
}
tt_status tt_event_query(tt_ctx* h, tt_event* e, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "event_query", [&](Ctx&) {
    DeviceEvent& event = event_arg(e, "e", 1);
    out_arg(out, "out", 2);
    CudaDevice& d = *event.device;
    cuda_usable(d);
    *out = !atomic_load(&event.recorded, kAcquire) || d.backend->event_done(d.index, event.handle);
  });
}
tt_status tt_event_synchronize(tt_ctx* h, tt_event* e) {
  return api_call(h, "event_synchronize", [&](Ctx&) {
    DeviceEvent& event = event_arg(e, "e", 1);
    CudaDevice& d = *event.device;
    cuda_usable(d);
    if (!atomic_load(&event.recorded, kAcquire)) return;
    if (!d.backend->event_sync) return cuda_synchronize(d);
    cuda_check(d, d.backend->event_sync(d.index, event.handle), "the work before an event");
  });
}
tt_status tt_event_elapsed(tt_ctx* h, tt_event* start, tt_event* stop, double* out) {
  if (out) *out = 0;
  return api_call(h, "event_elapsed", [&](Ctx&) {
    DeviceEvent& a = event_arg(start, "start", 1);
    DeviceEvent& b = event_arg(stop, "stop", 2);
    out_arg(out, "out", 3);
    CudaDevice& d = *a.device;
    cuda_usable(d);
    for (const DeviceEvent* e : {&a, &b}) {
      const char* name = e == &a ? "start" : "stop";
      if (e->device != &d)
        fail_arg(TT_DEVICE, name, "the events are of two devices: must be of one");
      if (!e->timed) fail_arg(TT_INVALID_ARG, name, "{} was made without timing", name);
      if (!atomic_load(&e->recorded, kAcquire) || d.backend->event_done(d.index, e->handle) != 1)
        fail_arg(TT_INVALID_ARG, name, "{} has not happened: synchronize first", name);
    }
    cuda_check(d, d.backend->event_elapsed(d.index, a.handle, b.handle, out), "reading a time");
  });
}
