#include "autograd/dual.h"
#include "autograd/node.h"
#include "base/finalizer.h"
#include "capi/api.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

// ---- from and to memory of the application ----

static Dtype checked_dtype(tt_dtype d) { return dtype_arg(d, "dtype", 2); }

tt_status tt_tensor_from_data(tt_ctx* h, const void* data, tt_dtype dtype, const int64_t* shape,
                              int64_t ndim, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "tensor_from_data", [&](Ctx& c) {
    out_arg(out, "out", 5);
    Ints sizes = ints_arg(shape, ndim, "shape", 3);
    Dtype d = checked_dtype(dtype);
    int64_t n = checked_numel(sizes, d, "shape");
    if (n && !data) fail_null("data", 1);
    TensorRef t = new_tensor(sizes, d, kCpuDevice);
    if (n) memcpy(t->data, data, size_t(n * item_size(d)));
    give(c, out, std::move(t));
  });
}

tt_status tt_tensor_import(tt_ctx* h, void* data, tt_dtype dtype, const int64_t* shape,
                           int64_t ndim, const int64_t* strides, int32_t writable,
                           void (*deleter)(void*), void* user, tt_tensor** out) {
  clear_out(out);
  bool passed_on = false;  // new_import is now responsible for the deleter
  tt_status status = api_call(h, "tensor_import", [&](Ctx& c) {
    out_arg(out, "out", 9);
    Ints sizes = ints_arg(shape, ndim, "shape", 3);
    Dtype d = checked_dtype(dtype);
    int64_t n = checked_numel(sizes, d, "shape");
    if (n && !data) fail_null("data", 1);
    check_import(data, sizes, strides ? Ints(strides, ndim) : Ints(), d);
    passed_on = true;
    TensorRef t = new_import(data, sizes, strides ? Ints(strides, ndim) : Ints(), d, kCpuDevice,
                             deleter, user);
    t->storage->writable = writable != 0;
    give(c, out, std::move(t));
  });
  if (!passed_on) run_drop(deleter, user);
  return status;
}

tt_status tt_scalar_tensor(tt_ctx* h, const tt_scalar* value, tt_dtype dtype, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "scalar_tensor", [&](Ctx& c) {
    out_arg(out, "out", 3);
    const Scalar& s = scalar_arg(value, "value", 1);
    const Dtype d = dtype ? checked_dtype(dtype) : s.natural_dtype();
    check_fits(s, d, "value");
    give(c, out, new_scalar(s, d));
  });
}

tt_status tt_tensor_read(tt_ctx* h, const tt_tensor* handle, void* dst, int64_t bytes) {
  return api_call(h, "tensor_read", [&](Ctx&) {
    const Tensor& t = tensor_arg(handle, "t", 1);
    check_readable(t);
    int64_t want = t.numel * t.item_size();
    if (bytes != want)
      fail_arg(TT_INVALID_ARG, "bytes", "bytes is {}: a {} tensor of shape {} has {}", bytes,
               fmt(t.dtype), t.sizes(), want);
    if (!want) return;
    if (!dst) fail_null("dst", 2);
    if (t.device.type == TT_META) fail_arg(TT_NOT_IMPLEMENTED, "t", "a meta tensor has no data");
    note_host_read(t);
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef on_cpu = t.is_cpu() ? TensorRef::share(&t) : op::to_device(t, kCpuDevice);
    TensorRef rows = dense_input(on_cpu);
    memcpy(dst, rows->data, size_t(want));
  });
}

static Scalar item_of(const tt_tensor* handle) {
  const Tensor& t = tensor_arg(handle, "t", 1);
  if (t.numel != 1)
    fail_arg(TT_INVALID_ARG, "t", "t has shape {}: only tensors of one element have a value",
             t.sizes());
  return read_scalar(t);
}
tt_status tt_item(tt_ctx* h, const tt_tensor* t, tt_scalar* out) {
  return api_call(h, "item", [&](Ctx&) {
    out_arg(out, "out", 2);
    new (out) Scalar(item_of(t));  // in place: a copy would wait for the stores of its parts
  });
}
tt_status tt_item_f64(tt_ctx* h, const tt_tensor* t, double* out) {
  return api_call(h, "item", [&](Ctx&) {
    out_arg(out, "out", 2);
    Scalar s = item_of(t);
    if (s.is_complex() && s.im != 0)
      fail_arg(TT_DTYPE, "t", "t is complex with an imaginary part: use tt_item");
    *out = s.real();
  });
}
tt_status tt_item_i64(tt_ctx* h, const tt_tensor* t, int64_t* out) {
  return api_call(h, "item", [&](Ctx&) {
    out_arg(out, "out", 2);
    Scalar s = item_of(t);
    if (s.is_complex() && s.im != 0)
      fail_arg(TT_DTYPE, "t", "t is complex with an imaginary part: use tt_item");
    if (s.category() >= 2 && !(s.real() >= -0x1p63 && s.real() < 0x1p63))
      fail_arg(TT_INVALID_ARG, "t", "t is {}: int64 cannot represent this value", s.real());
    *out = s.to_int();
  });
}

/* Whether all elements of a tensor of bools are true. */
static bool holds(const TensorRef& bools) { return read_scalar(*op::all(*bools)).to_int() != 0; }
tt_status tt_equal(tt_ctx* h, const tt_tensor* handle, const tt_tensor* other_handle,
                   int32_t* out) {
  return api_call(h, "equal", [&](Ctx&) {
    out_arg(out, "out", 3);
    const Tensor& t = tensor_arg(handle, "t", 1);
    const Tensor& other = tensor_arg(other_handle, "other", 2);
    *out = same(t.sizes(), other.sizes()) && holds(op::eq(t, other));
  });
}
tt_status tt_allclose(tt_ctx* h, const tt_tensor* handle, const tt_tensor* other_handle,
                      double rtol, double atol, int32_t equal_nan, int32_t* out) {
  return api_call(h, "allclose", [&](Ctx&) {
    out_arg(out, "out", 6);
    const Tensor& t = tensor_arg(handle, "t", 1);
    const Tensor& other = tensor_arg(other_handle, "other", 2);
    *out = holds(op::isclose(t, other, rtol, atol, equal_nan != 0));
  });
}

// ---- facts ----

static const Tensor* live(const tt_tensor* h) {
  const Tensor* t = tensor_of(h);
  return t && t->tag == kTagTensor ? t : nullptr;
}
void tt_tensor_retain(tt_tensor* h) {
  if (const Tensor* t = live(h)) {
    count_handle(t, 1);
    ref_inc_external(&const_cast<Tensor*>(t)->refs);
  }
}
void tt_tensor_release(tt_tensor* h) {
  if (const Tensor* t = live(h)) {
    if (TT_CHECKED && !t->external_refs)
      return;  // already released: the remaining references are not the application's
    count_handle(t, -1);
    TensorRef::adopt(const_cast<Tensor*>(t)).reset();
  }
}
static bool is_leaf(const Tensor& t) { return !requires_grad(t) || (t.flags & kRequiresGrad); }

#define TT_FACT(type, name, expression)       \
  type tt_tensor_##name(const tt_tensor* h) { \
    const Tensor* t = live(h);                \
    return t ? type(expression) : type(0);    \
  }
using ConstInts = const int64_t*;
using VoidPtr = void*;
TT_FACT(tt_dtype, dtype, t->dtype)
TT_FACT(tt_device_type, device_type, t->device.type)
TT_FACT(int32_t, device_index, t->device.index)
TT_FACT(int64_t, ndim, t->ndim)
TT_FACT(int64_t, numel, t->numel)
TT_FACT(ConstInts, shape, t->sizes_ptr())
TT_FACT(ConstInts, strides, t->strides_ptr())
TT_FACT(int64_t, offset, t->offset())
TT_FACT(VoidPtr, data, t->device.type == TT_META ? nullptr : t->data)
TT_FACT(int64_t, storage_bytes, t->storage->bytes)
TT_FACT(VoidPtr, storage_data, t->storage->data)
TT_FACT(uint32_t, version, t->tracked_version())
TT_FACT(int32_t, is_contiguous, t->contiguous())
TT_FACT(int32_t, is_writable, t->storage->writable)
TT_FACT(int32_t, is_view, t->base != nullptr)
TT_FACT(int32_t, requires_grad, requires_grad(with_history_of(*t)))
TT_FACT(int32_t, is_leaf, is_leaf(with_history_of(*t)))
int64_t tt_tensor_size(const tt_tensor* h, int64_t dim) {
  const Tensor* t = live(h);
  if (!t || dim < -int64_t(t->ndim) || dim >= t->ndim) return 0;
  return t->size(dim);
}

void tt_tensor_get_info(const tt_tensor* h, tt_tensor_info* out) {
  if (!out) return;
  *out = {};
  const Tensor* t = live(h);
  if (!t) return;
  out->data = t->device.type == TT_META ? nullptr : t->data;
  out->numel = t->numel;
  out->dtype = tt_dtype(t->dtype);
  out->ndim = t->ndim;
  out->device = {t->device.type, t->device.index};
  out->is_contiguous = t->contiguous();
  out->is_writable = t->storage->writable;
  out->requires_grad = requires_grad(with_history_of(*t));
  for (int k = 0; k < t->ndim && k < 8; k++) {
    out->shape[k] = t->sizes()[k];
    out->strides[k] = t->strides()[k];
  }
}

tt_status tt_tensor_base(tt_ctx* h, const tt_tensor* self, tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "tensor_base", [&](Ctx& c) {
    out_arg(out, "out", 2);
    const Tensor* base = tensor_arg(self, "self", 1).base;
    if (base) give(c, out, TensorRef::share(base));
  });
}

tt_status tt_tensor_variable_data(tt_ctx* h, const tt_tensor* self, tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "tensor_variable_data", [&](Ctx& c) {
    out_arg(out, "out", 2);
    TensorRef data = op::detach(tensor_arg(self, "self", 1));
    data->flags |= kOwnVersion;
    give(c, out, std::move(data));
  });
}

tt_status tt_tensor_set_data(tt_ctx* h, tt_tensor* leaf, const tt_tensor* src) {
  return api_call(h, "tensor_set_data", [&](Ctx&) {
    Tensor& t = mutable_arg(leaf, "leaf", 1);
    const Tensor& s = tensor_arg(src, "src", 2);
    if ((t.keys | s.keys) & (bit(kKeyVmap) | bit(kKeyForward)))
      fail_arg(TT_NOT_IMPLEMENTED, "leaf",
               "a tensor of vmap or with a tangent neither gets nor gives data: write it in place");
    const bool fits = t.dtype == s.dtype && t.device == s.device && same(t.sizes(), s.sizes());
    if ((t.grad_fn && !fits) || (t.base && t.base->keys & bit(kKeyAutograd)))
      fail_arg(TT_AUTOGRAD, "leaf",
               "leaf is the result of an operator: it must be no view, and src have its shape, "
               "dtype and device");
    if ((t.flags & kRequiresGrad) && !is_differentiable(s.dtype))
      fail_arg(TT_DTYPE, "src", "src is {}, leaf requires a gradient: must be floating or complex",
               fmt(s.dtype));
    const TensorRef base = leave_base(t);  // the storage may be in its block
    replace_data(t, s);
  });
}
