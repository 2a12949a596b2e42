// ExtDevice: a device that the application registers with a runtime. Callbacks implement its memory
// and operators.
#pragma once

#include "base/ref.h"
#include "core/device.h"

namespace TT_NS {

struct Runtime;

struct ExtDef {
  const char* name;
  void* user;
  void* (*alloc)(void* user, int64_t bytes);
  void (*free)(void* user, void* p, int64_t bytes);
  // kind is a CopyKind.
  tt_status (*copy)(void* user, tt_ctx* ctx, void* dst, const void* src, int64_t bytes,
                    int32_t kind);
  tt_status (*compute)(void* user, tt_ctx* ctx, const tt_op* op, const tt_value* args,
                       int64_t n_args, tt_tensor** outs, int64_t n_outs);
  void (*drop)(void* user);
};

constexpr int kMaxExt = 8;
constexpr int kMaxExtName = 32;  // with the terminating zero

// The runtime and each storage on the device hold a reference; memory is returned through def.free
// whenever its storage ends.
struct ExtDevice {
  RefCount refs;
  int32_t index;
  ExtDef def;
  char name[kMaxExtName];
  int64_t in_use, peak;                      // bytes; atomics
  static void destroy(ExtDevice*) noexcept;  // runs def.drop
};

ExtDevice* find_ext(Runtime*, int32_t index) noexcept;  // NULL: none
// Returns a device of the running call's runtime; fails with DEVICE.
ExtDevice& ext_device(int32_t index, const char* arg = "");
// Requires bytes > 0. Returns NULL if the device is out of memory.
char* ext_get(ExtDevice&, int64_t bytes) noexcept;
void ext_put(ExtDevice&, char* p, int64_t bytes) noexcept;
// Fails with CALLBACK.
void ext_copy(ExtDevice&, void* dst, const void* src, int64_t bytes, int32_t kind);

}  // namespace TT_NS
