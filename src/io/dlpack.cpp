#include "io/dlpack.h"

#include "core/ctx.h"

#include <new>

namespace TT_NS {

namespace {

enum DlCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };
enum DlDevice : int32_t { kDlCpu = 1, kDlCuda = 2 };
constexpr uint8_t kCodes[kNumDtypes] = {0,        kBool,  kUint,   kInt,   kInt,   kInt,
                                        kInt,     kFloat, kBfloat, kFloat, kFloat, kComplex,
                                        kComplex, kUint,  kUint,   kUint};

// An export owns the memory, not the tensor, which may get other memory (set_data).
template <class M> struct Export {
  M managed;
  Ref<Storage> storage;
  int64_t dims[2 * kMaxDims];
  static void release(M* m) {
    auto* e = static_cast<Export*>(m->context);
    e->~Export();
    mem_free(e, sizeof(Export));
  }
};

void describe(const Tensor& t, DlTensor& d, int64_t* dims) {
  for (int64_t i = 0; i < t.ndim; i++) {
    dims[i] = t.size(i);
    dims[t.ndim + i] = t.stride(i);
  }
  d.data = t.data;
  d.device = {t.is_cpu() ? kDlCpu : kDlCuda, t.device.index};
  d.ndim = t.ndim;
  d.dtype = {kCodes[int(t.dtype)], uint8_t(8 * t.item_size()), 1};
  d.shape = dims;
  d.strides = dims + t.ndim;
  d.byte_offset = 0;
}

template <class M> M* new_export(const Tensor& t) {
  auto* e = new (mem_alloc(sizeof(Export<M>))) Export<M>{};
  e->storage = Ref<Storage>::share(t.storage);
  e->managed.context = e;
  e->managed.deleter = Export<M>::release;
  describe(t, e->managed.t, e->dims);
  return &e->managed;
}

Dtype dtype_of(const DlTensor& d) {
  for (int32_t i = 1; i < kNumDtypes && d.dtype.lanes == 1; i++)
    if (kCodes[i] == d.dtype.code && kItemSize[i] * 8 == d.dtype.bits) return Dtype(i);
  fail_arg(TT_DTYPE, "managed",
           "the DLPack type with code {}, {} bits and {} lanes is not supported",
           int64_t(d.dtype.code), int64_t(d.dtype.bits), int64_t(d.dtype.lanes));
}

Device device_of(const DlTensor& d) {
  if (d.device.type == kDlCpu) return kCpuDevice;
  if (d.device.type != kDlCuda || d.device.id < 0 || d.device.id >= kMaxDevices)
    fail_arg(TT_DEVICE, "managed", "the DLPack device of type {}, index {} is not supported",
             int64_t(d.device.type), int64_t(d.device.id));
  runtime_cuda(ctx().rt, d.device.id);  // fails if the device does not exist
  return {TT_CUDA, int8_t(d.device.id)};
}

TensorRef import(const DlTensor& d, void (*deleter)(void*), void* managed, bool writable) {
  if (d.ndim < 0 || d.ndim > kMaxDims)
    fail_arg(TT_SHAPE, "managed", "ndim is {}: must be 0 to {}", int64_t(d.ndim),
             int64_t(kMaxDims));
  if (d.ndim && !d.shape) fail_arg(TT_INVALID_ARG, "managed", "the shape is NULL");
  const Dtype dtype = dtype_of(d);
  const Device device = device_of(d);
  const Ints sizes(d.shape, d.ndim);
  const Ints strides = d.strides ? Ints(d.strides, d.ndim) : Ints();
  const int64_t n = checked_numel(sizes, dtype, "managed");
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  check_import(data, sizes, strides, dtype);
  if (n && device.type == TT_CUDA && uintptr_t(data) % uintptr_t(item_size(dtype)))
    fail_arg(TT_INVALID_ARG, "managed",
             "data is not aligned to the {} bytes of a {}, as devices read it", item_size(dtype),
             fmt(dtype));
  // Sizes and strides are copied first: every failure precedes the transfer of ownership.
  TensorRef t = new_import(n ? data : nullptr, sizes, strides, dtype, device, nullptr, nullptr);
  t->storage->deleter = deleter;
  t->storage->release_ctx = managed;
  t->storage->writable = writable;
  return t;
}

}  // namespace

void* to_dlpack(const Tensor& t, int32_t major) {
  if (t.flags & kRequiresGrad || t.grad_fn)
    fail_arg(TT_AUTOGRAD, "t", "t requires a gradient, which DLPack cannot carry: detach it first");
  if (t.device.type != TT_CPU && t.device.type != TT_CUDA)
    fail_arg(TT_DEVICE, "t", "t is on {}: only CPU and CUDA memory can be shared", fmt(t.device));
  if (major == 1) {
    DlManagedVersioned* m = new_export<DlManagedVersioned>(t);
    m->version = {1, 1};
    m->flags = t.storage->writable ? 0 : kDlReadOnly;
    return m;
  }
  if (major != 0) fail_arg(TT_INVALID_ARG, "major", "major is {}: must be 0 or 1", major);
  if (!t.storage->writable)
    fail_arg(TT_INVALID_ARG, "t", "t is read-only, which version 0 cannot express: use major 1");
  return new_export<DlManaged>(t);
}

TensorRef from_dlpack(void* managed, int32_t major) {
  if (major == 0) {
    auto* m = static_cast<DlManaged*>(managed);
    return import(
        m->t,
        [](void* p) {
          if (auto* d = static_cast<DlManaged*>(p); d->deleter) d->deleter(d);
        },
        m, true);
  }
  if (major != 1) fail_arg(TT_INVALID_ARG, "major", "major is {}: must be 0 or 1", major);
  auto* m = static_cast<DlManagedVersioned*>(managed);
  if (m->version.major != 1)
    fail_arg(TT_ABI, "managed", "the object is DLPack {}.{}: must be 1.x",
             int64_t(m->version.major), int64_t(m->version.minor));
  return import(
      m->t,
      [](void* p) {
        if (auto* d = static_cast<DlManagedVersioned*>(p); d->deleter) d->deleter(d);
      },
      m, !(m->flags & kDlReadOnly));
}

}  // namespace TT_NS
