#include "core/cuda_device.h"

#include "core/ctx.h"
#include "core/device_checks.h"
#include "core/graph_hooks.h"
#include "core/pinned.h"

#include <string.h>

namespace TT_NS {

void (*open_cuda_library)() = nullptr;
const char* why_no_cuda = "";

// ---- devices of a runtime ----

static void destroy_device(void* p) {
  auto* d = static_cast<CudaDevice*>(p);
  end_pinned(*d);
  if (d->own.handle && !d->lost && *d->alive) d->backend->stream_free(d->index, d->own.handle);
  os_free(d);
}

static CudaDevice* new_device(const DeviceBackend* b, int32_t index) {
  auto* d = static_cast<CudaDevice*>(os_alloc(sizeof(CudaDevice), 64));
  if (!d) fail_oom(int64_t(sizeof(CudaDevice)));
  memset(static_cast<void*>(d), 0, sizeof *d);
  d->backend = b;
  d->index = index;
  d->alive = os_process_word();
  d->own.tag = kTagStream;
  d->own.refs = 1;
  d->own.device = d;
  d->streams[0] = &d->own;
  int32_t status = TT_OK;
  if (b->stream_new) status = b->stream_new(index, 0, &d->own.handle);
  if (!status) d->alloc = device_alloc_new(b, index, destroy_device, d);
  if (d->alloc) d->own.pool = device_alloc_stream(d->alloc, 0, d->own.handle);
  if (d->own.pool) return d;
  if (d->alloc) {
    device_alloc_release(d->alloc);  // destroys d
    fail_oom(0);
  }
  const char* text = status && b->error_text ? b->error_text() : "";
  if (d->own.handle) b->stream_free(index, d->own.handle);
  os_free(d);
  if (!status) fail_oom(0);
  fail(status, "{} cannot be used{}{}", fmt(Device{TT_CUDA, int8_t(index)}), *text ? ": " : "",
       text);
}

CudaDevice& open_cuda(Runtime* rt, int32_t index, const char* arg) {
  if (const auto open = atomic_load(&open_cuda_library, kAcquire); open && !cuda_backend()) open();
  const DeviceBackend* b = cuda_backend();
  if (!b) fail_arg(TT_DEVICE, arg, "no CUDA backend is loaded: {}", why_no_cuda);
  if (index < 0 || index >= b->n_devices || index >= kMaxDevices)
    fail_arg(TT_DEVICE, arg, "device {} does not exist: {} found",
             fmt(Device{TT_CUDA, int8_t(index)}), b->n_devices);
  if (!*os_process_word()) fail_forked();
  Lock lock(*rt->mutex);
  CudaDevice*& d = rt->cuda[index];
  if (!d) {
    CudaDevice* made = new_device(b, index);
    device_alloc_limit(made->alloc, rt->device_limit);
    atomic_store(&d, made, kRelease);
  }
  return *d;
}

void close_cuda(CudaDevice* d) noexcept {
  if (!d) return;
  DeviceChecks::destroy(*d);
  if (!*d->alive) device_alloc_lose(d->alloc);
  device_alloc_release(d->alloc);
}

// ---- errors ----

void fail_forked() {
  fail(
      TT_DEVICE,
      "CUDA cannot be used in a child of fork: start processes by spawn, or use the device only in "
      "the child");
}

void fail_unusable(CudaDevice& d) {
  if (!*d.alive) fail_forked();
  fail(TT_DEVICE, "{} was lost: {}", fmt(Device{TT_CUDA, int8_t(d.index)}), d.first_error);
}

static void lose(CudaDevice& d, const char* what, const char* text) noexcept {
  Lock lock(d.mutex);
  if (d.lost) return;
  const FmtArg args[] = {what, *text ? ": " : "", text};
  format_to(d.first_error, sizeof d.first_error, "{} failed{}{}", args);
  atomic_store(&d.lost, TT_DEVICE, kRelease);
  device_alloc_lose(d.alloc);
}

void fail_cuda(CudaDevice& d, int32_t status, const char* what) {
  const char* text = d.backend->error_text ? d.backend->error_text() : "";
  if (status == TT_DEVICE) lose(d, what, text);
  fail(status, "{} failed{}{}", what, *text ? ": " : "", text);
}

void fail_device_memory(CudaDevice& d, int64_t bytes) {
  DeviceAllocStats s;
  device_alloc_stats(d.alloc, &s);
  if (d.lost || !*d.alive) fail_unusable(d);
  int64_t left = 0;
  int64_t total = 0;
  if (d.backend->memory_info) d.backend->memory_info(d.index, &left, &total);
  fail(TT_OOM,
       "out of memory on {}: cannot allocate {} bytes: {} are in use, {} reserved, the limit is {} "
       "(0: none); the device has {} of {} left",
       fmt(Device{TT_CUDA, int8_t(d.index)}), bytes, s.in_use, s.reserved, s.limit, left, total);
}

// ---- streams ----

struct SideStreams : CtxPart {
  DeviceStream* current[kMaxDevices];  // owned; NULL: the device's own
};

static void destroy_streams(CtxPart* part) noexcept {
  auto* s = static_cast<SideStreams*>(part);
  for (DeviceStream* stream : s->current)
    if (stream) Ref<DeviceStream>::adopt(stream).reset();
  mem_free(s, sizeof *s);
}

DeviceStream& side_stream(CudaDevice& d) {
  DeviceStream* s = static_cast<SideStreams*>(ctx().streams)->current[d.index];
  return s && s->device == &d ? *s : d.own;
}

void set_current_stream(Ctx& c, DeviceStream& stream) {
  if (!c.streams) {
    if (stream.number == 0) return;
    auto* s = static_cast<SideStreams*>(mem_alloc(sizeof(SideStreams)));
    memset(static_cast<void*>(s), 0, sizeof *s);
    s->destroy_fn = destroy_streams;
    c.streams = s;
  }
  CudaDevice& d = *stream.device;
  DeviceStream& before = current_stream(d);
  if (before.number == stream.number) return;
  // Later work of the ctx may use the results of its earlier work.
  if (stream.number) cuda_wait_stream(stream, before);
  DeviceStream*& place = static_cast<SideStreams*>(c.streams)->current[d.index];
  Ref<DeviceStream> old = Ref<DeviceStream>::adopt(place);
  place = stream.number ? Ref<DeviceStream>::share(&stream).leak() : nullptr;
}

static void free_stream(DeviceStream* s) noexcept {
  CudaDevice& d = *s->device;
  s->tag = 0;
  os_free(s);
  device_alloc_unhold(d.alloc);
}

// Later work of a stream starts after what another one has been given.
static void order_after(CudaDevice& d, void* stream, void* other) noexcept {
  void* event = nullptr;
  const DeviceBackend& b = *d.backend;
  bool ordered = b.event_new(d.index, &event) == TT_OK &&
                 b.event_record(d.index, event, other) == TT_OK &&
                 b.stream_wait(d.index, stream, event) == TT_OK;
  if (!ordered) b.stream_sync(d.index, other);
  if (event) b.event_free(d.index, event);
}

// Removes a stream from those of the device. From now on, waiting for its number is waiting for the
// device's own stream. Requires d.mutex.
static void end_stream(CudaDevice& d, DeviceStream* s) noexcept {
  const bool usable = !d.lost && *d.alive;
  if (usable) order_after(d, d.own.handle, s->handle);
  device_alloc_stream(d.alloc, s->number, d.own.handle);  // others use the handle until then
  if (usable && !s->imported) d.backend->stream_free(d.index, s->handle);
  d.streams[s->number] = nullptr;
  d.ended |= uint32_t(1) << s->number;
}

void DeviceStream::destroy(DeviceStream* s) noexcept {
  CudaDevice& d = *s->device;
  if (s->number) {
    Lock lock(d.mutex);
    s->released = true;
    if (s->borrowers) return;
    end_stream(d, s);
  }
  free_stream(s);
}

namespace {

// Keeps the stream of a number, if there is one, in existence. A reference cannot do that: the last
// one may just have been dropped.
class BorrowedStream {
 public:
  BorrowedStream(CudaDevice& d, int32_t number) noexcept : d_(d) {
    Lock lock(d.mutex);
    s_ = d.streams[number];
    if (s_) s_->borrowers++;
  }
  ~BorrowedStream() {
    if (!s_) return;
    {
      Lock lock(d_.mutex);
      if (--s_->borrowers || !s_->released) return;
      end_stream(d_, s_);
    }
    free_stream(s_);
  }
  BorrowedStream(const BorrowedStream&) = delete;
  DeviceStream* get() const { return s_; }

 private:
  CudaDevice& d_;
  DeviceStream* s_;
};

}  // namespace

static DeviceStream* alloc_stream(CudaDevice& d, int32_t number) {
  auto* s = static_cast<DeviceStream*>(os_alloc(sizeof(DeviceStream), 64));
  if (!s) fail_oom(int64_t(sizeof(DeviceStream)));
  *s = DeviceStream{kTagStream, 1, &d, nullptr, number, nullptr, false};
  return s;
}

Ref<DeviceStream> own_stream(CudaDevice& d) {
  DeviceStream* s = alloc_stream(d, 0);
  s->handle = d.own.handle;
  s->pool = d.own.pool;
  device_alloc_hold(d.alloc);
  return Ref<DeviceStream>::adopt(s);
}

// A stream with the next free number, without a handle. Requires d.mutex.
static DeviceStream* numbered_stream(CudaDevice& d) {
  int32_t number = 1;
  while (number < kMaxStreams && d.streams[number]) number++;
  if (number == kMaxStreams)
    fail(TT_DEVICE, "{} has {} streams: that is the maximum", fmt(Device{TT_CUDA, int8_t(d.index)}),
         kMaxStreams - 1);
  return alloc_stream(d, number);
}
// Gives the stream its memory and its place among those of the device. Requires d.mutex. Returns
// false if memory is short.
static bool enter_stream(CudaDevice& d, DeviceStream* s) {
  s->pool = device_alloc_stream(d.alloc, s->number, s->handle);
  if (!s->pool) return false;
  // Work of an ended stream of this number may still use free blocks of the pool, and what waits
  // for that work waits for this stream from now on.
  if (d.ended >> s->number & 1) order_after(d, s->handle, d.own.handle);
  d.streams[s->number] = s;
  device_alloc_hold(d.alloc);
  return true;
}
static void require_streams(CudaDevice& d) {
  cuda_usable(d);
  if (!d.backend->stream_new)
    fail(TT_NOT_IMPLEMENTED, "the device library of {} has no streams",
         fmt(Device{TT_CUDA, int8_t(d.index)}));
}

Ref<DeviceStream> new_stream(CudaDevice& d, int32_t priority) {
  require_streams(d);
  Lock lock(d.mutex);
  DeviceStream* s = numbered_stream(d);
  if (const int32_t status = d.backend->stream_new(d.index, priority, &s->handle)) {
    os_free(s);
    fail(status, "a stream of {} cannot be made", fmt(Device{TT_CUDA, int8_t(d.index)}));
  }
  if (!enter_stream(d, s)) {
    d.backend->stream_free(d.index, s->handle);
    os_free(s);
    fail_oom(0);
  }
  return Ref<DeviceStream>::adopt(s);
}

Ref<DeviceStream> import_stream(CudaDevice& d, void* handle) {
  require_streams(d);
  Lock lock(d.mutex);
  DeviceStream* s = numbered_stream(d);
  s->handle = handle;
  s->imported = true;
  if (!enter_stream(d, s)) {
    os_free(s);
    fail_oom(0);
  }
  return Ref<DeviceStream>::adopt(s);
}

void cuda_wait_stream(DeviceStream& stream, DeviceStream& other) {
  CudaDevice& d = *stream.device;
  if (other.device == &d && other.number == stream.number) return;
  cuda_usable(d);
  Ref<DeviceEvent> event = new_event(*other.device, false);
  cuda_check(*other.device,
             other.device->backend->event_record(other.device->index, event->handle, other.handle),
             "recording an event");
  cuda_check(d, d.backend->stream_wait(d.index, stream.handle, event->handle),
             "waiting for an event");
}

// ---- events ----

void DeviceEvent::destroy(DeviceEvent* e) noexcept {
  CudaDevice& d = *e->device;
  if (!d.lost && *d.alive) d.backend->event_free(d.index, e->handle);
  e->tag = 0;
  os_free(e);
  device_alloc_unhold(d.alloc);
}

Ref<DeviceEvent> new_event(CudaDevice& d, bool timed) {
  cuda_usable(d);
  if (timed && !d.backend->timed_event_new)
    fail(TT_NOT_IMPLEMENTED, "the device library of {} has no events with times",
         fmt(Device{TT_CUDA, int8_t(d.index)}));
  auto* e = static_cast<DeviceEvent*>(os_alloc(sizeof(DeviceEvent), 64));
  if (!e) fail_oom(int64_t(sizeof(DeviceEvent)));
  *e = DeviceEvent{kTagEvent, 1, &d, nullptr, timed, false};
  const auto make = timed ? d.backend->timed_event_new : d.backend->event_new;
  if (const int32_t status = make(d.index, &e->handle)) {
    os_free(e);
    fail_cuda(d, status, "making an event");
  }
  device_alloc_hold(d.alloc);
  return Ref<DeviceEvent>::adopt(e);
}

// ---- waiting ----

void cuda_synchronize(CudaDevice& d, DeviceStream* only) {
  cuda_usable(d);
  char what[64];
  const FmtArg args[] = {fmt(Device{TT_CUDA, int8_t(d.index)})};
  format_to(what, sizeof what, "work on device {}", args);
  if (only) {
    cuda_check(d, d.backend->stream_sync(d.index, only->handle), what);
    if (d.checks) d.checks->report(d, true);
    return;
  }
  // A failure is reported after all streams have been waited for.
  int32_t failed = TT_OK;
  for (int32_t k = 0; k < kMaxStreams; k++) {
    const BorrowedStream s(d, k);
    if (!s.get()) continue;
    const int32_t status = d.backend->stream_sync(d.index, s.get()->handle);
    if (!failed) failed = status;
  }
  cuda_check(d, failed, what);
  if (d.checks) d.checks->report(d, true);
}

// ---- copies ----

static void copy_between(CudaDevice& to, char* dst, CudaDevice& from, const char* src,
                         int64_t bytes, const char* what) {
  DeviceStream& reader = current_stream(to);
  DeviceStream& writer = current_stream(from);
  cuda_wait_stream(reader, writer);
  const DeviceBackend& b = *to.backend;
  const int32_t status =
      b.copy_peer ? b.copy_peer(to.index, dst, from.index, src, size_t(bytes), reader.handle)
                  : b.copy(to.index, dst, src, size_t(bytes), kDeviceToDevice, reader.handle);
  cuda_check(to, status, what);
  cuda_wait_stream(writer, reader);  // before the memory of src is used again
}

void cuda_copy(Ctx& c, char* dst, Device to, const char* src, Device from, int64_t bytes) {
  if (const DeviceHooks* hooks = device_hooks())
    return hooks->copy(*c.graph, dst, to, src, from, bytes);
  char what[80];
  const FmtArg args[] = {fmt(from), fmt(to)};
  format_to(what, sizeof what, "copying from {} to {}", args);
  CudaDevice& d = runtime_cuda(c.rt, to.type == TT_CUDA ? to.index : from.index);
  cuda_usable(d);
  if (to.type == TT_CUDA && from.type == TT_CUDA && !(to == from)) {
    CudaDevice& other = runtime_cuda(c.rt, from.index);
    cuda_usable(other);
    if (d.backend->stream_new) return copy_between(d, dst, other, src, bytes, what);
  }
  int32_t kind = kDeviceToDevice;
  if (to.type == TT_CPU) kind = kDeviceToHost;
  else if (from.type == TT_CPU) kind = kHostToDevice;
  cuda_check(d, d.backend->copy(d.index, dst, src, size_t(bytes), kind, current_stream(d).handle),
             what);
  if (kind == kDeviceToHost && d.checks) d.checks->report(d, false);
}

DeviceBlock* cuda_block(CudaDevice& d, int64_t bytes) noexcept {
  return device_alloc_get(current_stream(d).pool, size_t(bytes));
}

// ---- side streams ----

// A stream that has ended is ordered before the device's own.
static void wait_for_number(DeviceStream& stream, int32_t number) {
  CudaDevice& d = *stream.device;
  const BorrowedStream other(d, number);
  cuda_wait_stream(stream, other.get() ? *other.get() : d.own);
}

void wait_for_writer(DeviceStream& stream, const Storage& s) {
  const uint64_t users = atomic_load(&s.users, kRelaxed);
  const int32_t writer = int32_t(users >> kWriterShift);
  // What the device's own stream wrote was ordered when the side stream was set.
  if (writer && writer != stream.number) wait_for_number(stream, writer);
}

void wait_for_users(DeviceStream& stream, const Storage& s) {
  const uint64_t users = atomic_load(&s.users, kRelaxed);
  for (int32_t k = 0; k < kMaxStreams; k++)
    if ((users >> k & 1) && k != stream.number) wait_for_number(stream, k);
}

void mark_used(DeviceStream& stream, Storage& s, bool written) noexcept {
  const uint64_t mine = uint64_t(1) << stream.number;
  uint64_t users = atomic_load(&s.users, kRelaxed);
  for (;;) {
    uint64_t next = users | mine;
    if (written) next = (next & UINT32_MAX) | uint64_t(stream.number) << kWriterShift;
    if (next == users || atomic_compare_exchange_weak(&s.users, &users, next, kRelaxed, kRelaxed))
      return;
  }
}

}  // namespace TT_NS
