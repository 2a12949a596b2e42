#include "core/ext_device.h"

#include "base/finalizer.h"
#include "core/callback.h"

namespace TT_NS {

void ExtDevice::destroy(ExtDevice* d) noexcept {
  drop_and_free(d, sizeof *d, d->def.drop, d->def.user);
}

ExtDevice* find_ext(Runtime* rt, int32_t index) noexcept {
  return index >= 0 && index < kMaxExt ? atomic_load(&rt->ext[index], kAcquire) : nullptr;
}

ExtDevice& ext_device(int32_t index, const char* arg) {
  ExtDevice* d = find_ext(ctx().rt, index);
  if (!d)
    fail_arg(TT_DEVICE, arg, "device {} does not exist: no backend of this runtime has that index",
             fmt(Device{TT_EXT, int8_t(index)}));
  return *d;
}

char* ext_get(ExtDevice& d, int64_t bytes) noexcept {
  void* p = nullptr;
  try {
    p = d.def.alloc(d.def.user, bytes);
  } catch (...) {  // an allocator that throws is out of memory
  }
  if (!p) return nullptr;
  const int64_t now = atomic_add_fetch(&d.in_use, bytes, kRelaxed);
  int64_t peak = atomic_load(&d.peak, kRelaxed);
  while (now > peak && !atomic_compare_exchange_weak(&d.peak, &peak, now, kRelaxed, kRelaxed)) {}
  return static_cast<char*>(p);
}

void ext_put(ExtDevice& d, char* p, int64_t bytes) noexcept {
  try {
    d.def.free(d.def.user, p, bytes);
  } catch (...) {  // from a C++ application; the process must not end
  }
  atomic_sub_fetch(&d.in_use, bytes, kRelaxed);
}

void ext_copy(ExtDevice& d, void* dst, const void* src, int64_t bytes, int32_t kind) {
  if (!bytes) return;
  char what[80];
  const FmtArg args[] = {d.name};
  format_to(what, sizeof what, "the copy callback of device {}", args);
  run_callback(what, true,
               [&](tt_ctx* c) { return d.def.copy(d.def.user, c, dst, src, bytes, kind); });
}

}  // namespace TT_NS
