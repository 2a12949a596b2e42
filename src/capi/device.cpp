// Devices by name, device libraries, synchronisation.
#include "base/finalizer.h"
#include "capi/api.h"
#include "ext/backend.h"
#include "plan/backend_id.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

// Parses "name" or "name:index"; returns false for another device type.
static bool parse_as(const char* text, const char* name, int32_t type, int32_t max,
                     tt_device* out) {
  size_t n = strlen(name);
  if (strncmp(text, name, n)) return false;
  const char* p = text + n;
  int32_t index = 0;
  if (*p == ':') {
    const char* digits = ++p;
    for (; *p >= '0' && *p <= '9' && p - digits < 3; p++) index = index * 10 + (*p - '0');
    if (p == digits || index > max) return false;
  }
  if (*p) return false;
  *out = {type, index};
  return true;
}

tt_status tt_device_parse(tt_ctx* h, const char* text, tt_device* out) {
  if (out) *out = {0, 0};
  return api_call(h, "device_parse", [&](Ctx& c) {
    out_arg(out, "out", 2);
    if (!text) fail_arg(TT_INVALID_ARG, "text", "text is NULL: must be the name of a device");
    if (parse_as(text, "cpu", TT_CPU, 0, out) || parse_as(text, "meta", TT_META, 0, out) ||
        parse_as(text, "cuda", TT_CUDA, kMaxDevices - 1, out))
      return;
    int32_t ext = find_ext_named(c.rt, text);
    tt_device numbered;
    if (ext < 0 && parse_as(text, "ext", TT_EXT, kMaxExt - 1, &numbered) &&
        find_ext(c.rt, numbered.index))
      ext = numbered.index;
    if (ext < 0)
      fail_arg(TT_INVALID_ARG, "text",
               "there is no device \"{}\": must be cpu, meta, cuda, cuda:N with N below {} or a "
               "backend's name",
               text, kMaxDevices);
    *out = {TT_EXT, ext};
  });
}

static void log_of_backend(int32_t level, const char* message) {
  if (tls.ctx) log_line(ctx().rt, level, "{}", message);
}
static constexpr DeviceHost kHost = {sizeof(DeviceHost), log_of_backend};

// Why a device library does not serve; status 0: it does.
struct Refusal {
  tt_status status;
  char text[512];
};
template <class... A>
static void refuse(Refusal* r, tt_status status, const char* format, const A&... a) {
  const FmtArg args[sizeof...(A) + 1] = {FmtArg(a)..., FmtArg(0)};
  r->status = status;
  format_to(r->text, sizeof r->text, format, {args, int64_t(sizeof...(A))});
}

static void use_library(const char* name, Refusal* r) {
  r->status = TT_OK;
  const char* names[] = {name, nullptr};
  void* library = os_dlopen(names);
  if (!library)
    return refuse(r, TT_IO, "cannot open the device library \"{}\": {}", name, os_dlerror());
  auto entry = reinterpret_cast<DeviceEntry>(os_dlsym(library, kCudaEntryName));
  if (!entry)
    return refuse(r, TT_ABI, "\"{}\" is not a device library: it does not export {}", name,
                  kCudaEntryName);
  const DeviceBackend* backend = nullptr;
  const int32_t status = entry(kBuildId, &kHost, &backend);
  if (backend && backend->build_id != kBuildId)
    return refuse(r, TT_ABI,
                  "\"{}\" is from build {}, this library from build {}: both must be from the "
                  "same build",
                  name, backend->build_id, kBuildId);
  if (status || !backend) {
    const char* text = backend && backend->error_text ? backend->error_text() : "";
    return refuse(r, status ? status : TT_DEVICE,
                  "the device library \"{}\" found no usable device{}{}", name, *text ? ": " : "",
                  text);
  }
  if (!set_cuda_backend(backend))
    return refuse(r, TT_DEVICE, "a device library other than \"{}\" is already in use", name);
  if (tls.ctx)
    log_line(ctx().rt, TT_LOG_INFO, "device library \"{}\": {} device(s)", name,
             backend->n_devices);
}

constexpr char kCudaLibrary[] = "libtt_cuda.so";

// Once per process: the loader looks in the directory of libtt first, by its run path.
static void open_default_library() {
  static Mutex mutex;
  static bool tried;
  static Refusal refusal;
  Lock lock(mutex);
  if (tried) return;
  tried = true;
  use_library(kCudaLibrary, &refusal);
  if (refusal.status) why_no_cuda = refusal.text;
}

tt_status tt_load_cuda(tt_ctx* h, const char* path) {
  return api_call(h, "load_cuda", [&](Ctx&) {
    Refusal r;
    use_library(path ? path : kCudaLibrary, &r);
    if (r.status) fail_arg(r.status, "path", "{}", r.text);
  });
}

tt_status tt_device_count(tt_ctx* h, tt_device_type type, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "device_count", [&](Ctx& c) {
    out_arg(out, "out", 2);
    if (type < TT_CPU || type > TT_EXT)
      fail_arg(TT_DEVICE, "type", "type is {}: there is no such device type", type);
    if (type == TT_CUDA && !cuda_backend()) open_default_library();
    const DeviceBackend* b = cuda_backend();
    *out = type != TT_EXT;
    if (type == TT_CUDA) *out = b ? b->n_devices : 0;
    for (int32_t i = 0; type == TT_EXT && find_ext(c.rt, i); i++) *out = i + 1;
  });
}

tt_status tt_synchronize(tt_ctx* h, const tt_device* device) {
  return api_call(h, "synchronize", [&](Ctx& c) {
    if (device) {
      Device d = device_arg(device, "device", 1);
      if (d.type == TT_CUDA) cuda_synchronize(runtime_cuda(c.rt, d.index));
      return;
    }
    for (CudaDevice*& place : c.rt->cuda)
      if (CudaDevice* d = atomic_load(&place, kAcquire)) cuda_synchronize(*d);
  });
}

tt_status tt_backend_register(tt_ctx* h, const tt_backend_def* def, tt_device* out) {
  if (out) *out = {0, 0};
  bool passed_on = false;
  tt_status status = api_call(h, "backend_register", [&](Ctx& c) {
    out_arg(out, "out", 2);
    if (!def) fail_arg(TT_INVALID_ARG, "def", "def is NULL");
    if (def->struct_size < sizeof(tt_backend_def))
      fail_arg(TT_ABI, "def", "def.struct_size is {}: must be at least {}", def->struct_size,
               sizeof(tt_backend_def));
    if (!def->name || !valid_ext_name(def->name))
      fail_arg(TT_INVALID_ARG, "name",
               "name is \"{}\": must be [a-z_][a-z0-9_]* of at most {} bytes, and not cpu, cuda, "
               "meta or ext",
               def->name ? def->name : "", kMaxExtName - 1);
    const char* missing = nullptr;
    if (!def->copy) missing = "copy";
    if (!def->free) missing = "free";
    if (!def->alloc) missing = "alloc";
    if (missing) fail_arg(TT_INVALID_ARG, "def", "{} is NULL: must be a function", missing);
    const ExtDef d{def->name, def->user, def->alloc, def->free, def->copy, def->compute, def->drop};
    passed_on = true;
    *out = {TT_EXT, register_ext(c.rt, d)};
  });
  if (!passed_on && def && def->struct_size >= sizeof(tt_backend_def))
    run_drop(def->drop, def->user);
  return status;
}

void TT_NS::find_cuda_library() {
  atomic_store(&cuda_calls, &kCudaCalls, kRelease);
  atomic_store(&open_cuda_library, &open_default_library, kRelease);
}
