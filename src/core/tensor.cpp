#include "core/tensor.h"

#include "base/finalizer.h"
#include "core/ctx.h"
#include "core/graph_hooks.h"

#include <string.h>

namespace TT_NS {

// 256 bytes: data after it is aligned to 64.
constexpr size_t kHeader = sizeof(Tensor) + sizeof(Storage);

static void release_heap(Storage* s) noexcept { mem_free(s->data, size_t(s->bytes)); }
static void release_device(Storage* s) noexcept {
  cuda_calls->put(static_cast<DeviceBlock*>(s->release_ctx), uint32_t(s->users));
}
static void release_ext(Storage* s) noexcept {
  auto* d = static_cast<ExtDevice*>(s->release_ctx);
  if (s->data) ext_put(*d, s->data, s->bytes);
  Ref<ExtDevice>::adopt(d).reset();
}

void Storage::destroy(Storage* s) noexcept {
  if (s->packed) mem_free(s->packed, s->packed_bytes);
  if (s->deleter) return drop_and_free(s, sizeof *s, s->deleter, s->release_ctx);
  if (s->release) s->release(s);
  if (s->embedded) {
    mem_retire(reinterpret_cast<char*>(s) - sizeof(Tensor), kHeader + size_t(s->bytes));
  } else {
    mem_free(s, sizeof *s);
  }
}

// Returns true if s is embedded in the block of t's header: then t's only reference to s is the
// header's own, which keeps the block alive.
static TT_INLINE bool is_embedded_in(const Tensor& t, const Storage* s) {
  return (t.flags & kOwnsBlock) && s == reinterpret_cast<const Storage*>(&t + 1);
}

// Tensor headers are always in small blocks.
static TT_INLINE void count_tensor(const Tensor* t, int64_t change) noexcept {
  count_live(t, sizeof(Tensor), kLiveTensors, change);
}

void Tensor::destroy(Tensor* t) noexcept {
  count_tensor(t, -1);
  if (t->meta) t->meta->destroy_fn(t->meta);
  if (t->grad_fn && ref_dec(&t->grad_fn->refs)) GraphNode::destroy(t->grad_fn);
  if (t->base && ref_dec(&t->base->refs)) Tensor::destroy(t->base);
  if (t->ndim > kInlineDims) mem_free(t->heap_dims, size_t(t->ndim) * 16);
  t->tag = 0;
  if (t->flags & kBorrowedStorage) return mem_retire(t, sizeof *t);
  Storage* s = t->storage;
  if (t->flags & kOwnsBlock) {
    // The header counts as one reference to the embedded storage, which frees the block.
    auto* embedded = reinterpret_cast<Storage*>(t + 1);
    if (s != embedded && ref_dec(&s->refs)) Storage::destroy(s);
    if (ref_dec(&embedded->refs)) Storage::destroy(embedded);
    return;
  }
  if (ref_dec(&s->refs)) Storage::destroy(s);
  mem_retire(t, sizeof *t);
}

static void init_header(Tensor* t, Dtype dtype, Device device, Storage* s, char* data) {
  t->tag = kTagTensor;
  t->refs = 1;
  t->dtype = dtype;
  t->device = device;
  t->external_refs = 0;
  t->keys = backend_key(device) | dtype_key(dtype);
  t->storage = s;
  t->data = data;
  t->base = nullptr;
  t->grad_fn = nullptr;
  t->output_nr = 0;
  t->view_version = 0;
  t->meta = nullptr;
  count_tensor(t, 1);
}

static void init_storage(Storage* s, char* data, int64_t bytes, Device device, bool embedded) {
  *s = Storage{.refs = 1,
               .version = 0,
               .data = data,
               .bytes = bytes,
               .device = device,
               .embedded = embedded,
               .writable = true,
               .release = nullptr,
               .release_ctx = nullptr,
               .deleter = nullptr,
               .packed = nullptr,
               .packed_bytes = 0,
               .packed_version = 0,
               .data_writes = 0,
               .reserved_ = {}};
}

// Allocates a header, with out-of-line dims if ndim needs them; storage and geometry are not set
// yet.
static Tensor* alloc_header(int64_t ndim) {
  auto* t = static_cast<Tensor*>(mem_alloc(sizeof(Tensor)));
  t->ndim = uint8_t(ndim);
  if (ndim > kInlineDims) {
    t->heap_dims = static_cast<int64_t*>(heap_alloc(tls.heap, size_t(ndim) * 16));
    if (!t->heap_dims) {
      mem_free(t, sizeof *t);
      fail_oom(ndim * 16);
    }
  }
  return t;
}
static void free_header(Tensor* t) {
  if (t->ndim > kInlineDims) mem_free(t->heap_dims, size_t(t->ndim) * 16);
  mem_free(t, sizeof *t);
}

static void set_geometry(Tensor* t, Ints sizes, Ints strides) {
  auto* s = const_cast<int64_t*>(t->sizes_ptr());
  auto* st = const_cast<int64_t*>(t->strides_ptr());
  int64_t n = 1;
  for (int64_t d = 0; d < sizes.n; d++) {
    s[d] = sizes[d];
    n *= sizes[d];
  }
  if (strides.n) {
    for (int64_t d = 0; d < sizes.n; d++) st[d] = strides[d];
    t->flags = 0;
    if (is_contiguous(sizes, strides)) t->flags = kContiguous | kDense;
    else if (is_dense(sizes, strides)) t->flags = kDense;
  } else {
    contiguous_strides(sizes, st);
    t->flags = kContiguous | kDense;
  }
  t->numel = n;
}

static TT_COLD Storage* alloc_ext(int64_t bytes, Device device) {
  ExtDevice& d = ext_device(device.index);
  auto* s = static_cast<Storage*>(mem_alloc(sizeof(Storage)));
  init_storage(s, nullptr, bytes, device, false);
  if (bytes) s->data = ext_get(d, bytes);
  if (bytes && !s->data) {
    mem_free(s, sizeof *s);
    fail_oom(bytes);
  }
  s->release = release_ext;
  s->release_ctx = Ref<ExtDevice>::share(&d).leak();
  return s;
}

// Allocates the storage of a new tensor that is not embedded; fails with OOM and leaks nothing.
static Storage* alloc_storage(int64_t bytes, Device device) {
  if (device.type == TT_EXT) return alloc_ext(bytes, device);
  if (TT_UNLIKELY(bytes > TT_MAX_BYTES) && device.type != TT_META) fail_oom(bytes);
  auto* s = static_cast<Storage*>(mem_alloc(sizeof(Storage)));
  init_storage(s, nullptr, bytes, device, false);
  if (device.type == TT_META || bytes == 0) return s;
  GraphHooks* graph = ctx().graph;
  const auto place = device.type == TT_CPU ? &GraphHooks::place : &GraphHooks::place_on_device;
  if (TT_UNLIKELY(graph && graph->*place)) {
    try {
      (graph->*place)(*graph, *s);
    } catch (...) {
      mem_free(s, sizeof *s);
      throw;
    }
  } else if (device.type == TT_CPU) {
    s->data = static_cast<char*>(heap_alloc(tls.heap, size_t(bytes)));
    s->release = release_heap;
  } else {
    DeviceBlock* b = nullptr;
    try {
      CudaDevice& d = runtime_cuda(ctx().rt, device.index);
      if (!is_usable(d)) cuda_calls->fail_unusable(d);
      b = cuda_calls->block(d, bytes);
      if (!b) cuda_calls->fail_memory(d, bytes);
    } catch (...) {
      mem_free(s, sizeof *s);
      throw;
    }
    s->data = b->p;
    s->release = release_device;
    s->release_ctx = b;
  }
  if (!s->data) {
    mem_free(s, sizeof *s);
    fail_oom(bytes);
  }
  return s;
}

[[noreturn]] static TT_COLD void fail_wide(Ints sizes) {
  fail(TT_SHAPE, "the result is {}: the number of bytes overflows", sizes);
}

[[noreturn]] static TT_COLD void fail_not_built(Dtype dtype) {
  fail_arg(TT_NOT_IMPLEMENTED, "dtype", "dtype is {}: this build of tt was made without it",
           fmt(dtype));
}
static void check_built(Dtype dtype) {
  if (!is_built(int32_t(dtype))) fail_not_built(dtype);
}

// Byte count of a new tensor, whose sizes broadcasting may have made too large. Zeros are skipped:
// strides must not overflow either.
static int64_t checked_bytes(Ints sizes, Dtype dtype) {
  check_built(dtype);
  int64_t bytes = 1;
  bool zero = false;
  bool wide = false;
  for (int64_t s : sizes) {
    zero |= s == 0;
    wide |= mul_overflow(bytes, s ? s : 1, &bytes);
  }
  if (!zero) wide |= mul_overflow(bytes, item_size(dtype), &bytes);
  if (TT_UNLIKELY(wide)) fail_wide(sizes);
  return zero ? 0 : bytes;
}

TensorRef new_ordered_like(const Tensor& t, Dtype dtype, Device device) {
  if (t.contiguous()) return new_tensor(t.sizes(), dtype, device);
  if (t.dense()) return new_strided(t.sizes(), t.strides(), dtype, device);
  return new_strided(t.sizes(), strides_like(t.sizes(), t.strides()), dtype, device);
}

TensorRef new_strided(Ints sizes, Ints strides, Dtype dtype, Device device) {
  int64_t bytes = checked_bytes(sizes, dtype);
  if (device.type == TT_CPU && sizes.n <= kInlineDims && bytes <= ctx().embedded_max) {
    auto* t = static_cast<Tensor*>(mem_alloc(kHeader + size_t(bytes)));
    auto* s = reinterpret_cast<Storage*>(t + 1);
    init_storage(s, reinterpret_cast<char*>(s + 1), bytes, device, true);
    init_header(t, dtype, device, s, s->data);
    t->ndim = uint8_t(sizes.n);
    set_geometry(t, sizes, strides);
    t->flags |= kOwnsBlock;
    return TensorRef::adopt(t);
  }
  Tensor* t = alloc_header(sizes.n);
  Storage* s;
  try {
    s = alloc_storage(bytes, device);
  } catch (...) {
    free_header(t);
    throw;
  }
  init_header(t, dtype, device, s, s->data);
  set_geometry(t, sizes, strides);
  return TensorRef::adopt(t);
}

TensorRef new_tensor(Ints sizes, Dtype dtype, Device device) {
  return new_strided(sizes, {}, dtype, device);
}

TensorRef new_like(const Tensor& o, Dtype dtype) {
  check_built(dtype);
  int64_t bytes;
  if (TT_UNLIKELY(mul_overflow(o.numel, item_size(dtype), &bytes))) fail_wide(o.sizes());
  if (o.device.type != TT_CPU || o.ndim > kInlineDims || bytes > ctx().embedded_max)
    return new_strided(o.sizes(), o.dense() ? o.strides() : Ints{}, dtype, o.device);
  auto* t = static_cast<Tensor*>(mem_alloc(kHeader + size_t(bytes)));
  auto* s = reinterpret_cast<Storage*>(t + 1);
  init_storage(s, reinterpret_cast<char*>(s + 1), bytes, o.device, true);
  init_header(t, dtype, o.device, s, s->data);
  t->ndim = o.ndim;
  t->flags = kOwnsBlock | kDense | (o.flags & kContiguous);
  t->numel = o.numel;
  memcpy(t->dims, o.dims, sizeof t->dims);
  if (!o.dense()) {
    set_geometry(t, o.sizes(), {});
    t->flags |= kOwnsBlock;
  }
  return TensorRef::adopt(t);
}

TensorRef new_alias(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype) {
  Tensor* t = alloc_header(sizes.n);
  init_header(t, dtype, src.device, src.storage, data);
  set_geometry(t, sizes, strides);
  t->flags |= src.flags & kOwnVersion;
  ref_inc(&src.storage->refs);
  return TensorRef::adopt(t);
}

TensorRef new_view(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype,
                   const Tensor& base) {
  Tensor* t = alloc_header(sizes.n);
  init_header(t, dtype, src.device, src.storage, data);
  set_geometry(t, sizes, strides);
  t->flags |= src.flags & (kNoInplaceViews | kOwnVersion);
  if (is_embedded_in(base, src.storage)) t->flags |= kBorrowedStorage;
  else ref_inc(&src.storage->refs);
  t->base = TensorRef::share(&base).leak();
  return TensorRef::adopt(t);
}

TensorRef leave_base(Tensor& t) noexcept {
  if (!t.base) return {};
  if (t.flags & kBorrowedStorage) {
    ref_inc(&t.storage->refs);
    t.flags = uint16_t(t.flags & ~kBorrowedStorage);
  }
  t.flags = uint16_t(t.flags & ~kNoInplaceViews);
  TensorRef base = TensorRef::adopt(t.base);
  atomic_store(&t.base, nullptr, kRelaxed);
  return base;
}

TensorRef new_alias(const Tensor& src) {
  Tensor* t = alloc_header(src.ndim);
  init_header(t, src.dtype, src.device, src.storage, src.data);
  if (src.ndim > kInlineDims) {
    memcpy(t->heap_dims, src.heap_dims, size_t(src.ndim) * 16);
  } else {
    memcpy(t->dims, src.dims, sizeof t->dims);
  }
  t->flags = src.flags & (kContiguous | kDense | kOwnVersion);
  t->numel = src.numel;
  ref_inc(&src.storage->refs);
  return TensorRef::adopt(t);
}

void check_import(const void* data, Ints sizes, Ints strides, Dtype dtype) {
  check_built(dtype);
  const int64_t n = numel_of(sizes);
  if (n && !data) fail_arg(TT_INVALID_ARG, "data", "data is NULL");
  if (uintptr_t(data) % uintptr_t(item_size(real_of(dtype))))
    fail_arg(TT_INVALID_ARG, "data", "data is not aligned to the {} bytes of a {}",
             item_size(real_of(dtype)), fmt(dtype));
  int64_t reach = 0;
  int64_t step;
  for (int64_t i = 0; i < strides.n; i++) {
    if (strides[i] < 0)
      fail_arg(TT_INVALID_ARG, "strides", "strides is {}: must not be negative", strides);
    if (n && (mul_overflow(sizes[i] - 1, strides[i], &step) || add_overflow(reach, step, &reach) ||
              reach > (int64_t(1) << 58)))
      fail_arg(TT_INVALID_ARG, "strides", "strides is {}: the span of memory overflows", strides);
  }
}

TensorRef new_import(void* data, Ints sizes, Ints strides, Dtype dtype, Device device,
                     void (*deleter)(void*), void* user) {
  Tensor* t = nullptr;
  Storage* s = nullptr;
  try {
    t = alloc_header(sizes.n);
    s = static_cast<Storage*>(mem_alloc(sizeof(Storage)));
  } catch (...) {
    if (t) free_header(t);
    run_drop(deleter, user);
    throw;
  }
  int64_t reach = numel_of(sizes) ? 1 : 0;
  for (int64_t d = 0; d < sizes.n && strides.ptr; d++)
    reach += (sizes[d] - 1) * strides[d] * (reach != 0);
  if (!strides.ptr) reach = numel_of(sizes);
  init_storage(s, static_cast<char*>(data), reach * item_size(dtype), device, false);
  s->release_ctx = user;
  s->deleter = deleter;
  init_header(t, dtype, device, s, s->data);
  if (strides.ptr) set_geometry(t, sizes, usable_strides(sizes, strides));
  else set_geometry(t, sizes, {});
  return TensorRef::adopt(t);
}

TensorRef new_scalar(const Scalar& v, Dtype dtype) {
  TensorRef t = new_tensor({}, dtype, kCpuDevice);
  store_scalar(t->data, dtype, v);
  note_host_write(*t);
  return t;
}

void set_data(Tensor& t, const Tensor& src) {
  const bool reuse = src.ndim == t.ndim;  // then tensors of equal rank cannot fail
  int64_t* heap_dims = nullptr;
  if (src.ndim > kInlineDims)
    heap_dims = reuse ? t.heap_dims : static_cast<int64_t*>(mem_alloc(size_t(src.ndim) * 16));
  if (t.ndim > kInlineDims && !reuse) mem_free(t.heap_dims, size_t(t.ndim) * 16);
  if (!is_embedded_in(t, src.storage)) ref_inc(&src.storage->refs);
  Storage* old = t.storage;
  const bool counted = !(t.flags & kBorrowedStorage) && !is_embedded_in(t, old);
  uint16_t kept = t.flags & (kOwnsBlock | kRequiresGrad);
  t.dtype = src.dtype;
  t.device = src.device;
  t.ndim = src.ndim;
  t.numel = src.numel;
  t.keys = (t.keys & ~(kBackendKeys | kWideUnsignedKey)) | backend_key(src.device) |
           dtype_key(src.dtype);
  t.storage = src.storage;
  t.data = src.data;
  if (heap_dims) {
    t.heap_dims = heap_dims;
    memmove(heap_dims, src.heap_dims, size_t(src.ndim) * 16);
  } else {
    memmove(t.dims, src.dims, sizeof t.dims);
  }
  t.flags = uint16_t((src.flags & (kContiguous | kDense)) | kept);
  if (counted && ref_dec(&old->refs)) Storage::destroy(old);
}

ExtDevice& ext_of(const Tensor& t) {
  auto* d = static_cast<ExtDevice*>(t.storage->release_ctx);
  if (find_ext(ctx().rt, t.device.index) != d)
    fail(TT_DEVICE, "a tensor on {} ({}) belongs to another runtime", fmt(t.device), d->name);
  return *d;
}

bool same_geometry(const Tensor& a, const Tensor& b) {
  if (a.ndim != b.ndim) return false;
  return same(a.sizes(), b.sizes()) && same(a.strides(), b.strides());
}

void byte_range(const Tensor& t, const char** lo, const char** hi) {
  int64_t down = 0;
  int64_t up = t.numel ? t.item_size() : 0;
  for (int64_t d = 0; d < t.ndim && t.numel; d++) {
    int64_t reach = (t.size(d) - 1) * t.stride(d) * t.item_size();
    (reach < 0 ? down : up) += reach;
  }
  *lo = t.data + down;
  *hi = t.data + up;
}

// Returns whether a and b occupy disjoint columns of a table whose rows are `row` bytes, such as
// x[:, 0] and x[:, 1].
static bool in_disjoint_columns(const Tensor& a, const char* al, const Tensor& b, const char* bl,
                                int64_t row) {
  int64_t reach[2] = {a.item_size(), b.item_size()};
  for (int64_t i = 0; i < 2; i++) {
    const Tensor& t = i ? b : a;
    for (int64_t d = 0; d < t.ndim; d++) {
      const int64_t step = t.stride(d) * t.item_size();
      if (step % row) reach[i] += (t.size(d) - 1) * (step < 0 ? -step : step);
    }
  }
  const int64_t between = (bl - al) % row;
  const int64_t ahead = between < 0 ? between + row : between;
  return reach[0] <= ahead && reach[1] <= row - ahead;
}

bool may_share_memory(const Tensor& a, const Tensor& b) {
  if (a.storage->data == nullptr || b.storage->data == nullptr)
    return a.storage == b.storage && a.numel && b.numel;
  const char *al, *ah, *bl, *bh;
  byte_range(a, &al, &ah);
  byte_range(b, &bl, &bh);
  if (!(al < bh && bl < ah)) return false;
  for (const Tensor* t : {&a, &b})
    for (int64_t d = 0; d < t->ndim; d++) {
      const int64_t step = t->stride(d) * t->item_size();
      if (step > t->item_size() && in_disjoint_columns(a, al, b, bl, step)) return false;
    }
  return true;
}

}  // namespace TT_NS
