#include "ops/impl.h"

#include "core/device_checks.h"
#include "core/graph_hooks.h"
#include "dispatch/key.h"
#include "ops/gen/ops.h"
#include "ops/device_kernels.h"
#include "ops/elementwise.h"

#include <string.h>

namespace TT_NS {

void check_same_device(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name) {
  if (!(a.device == b.device))
    fail_arg(TT_DEVICE, b_name, "{} is on {}, {} on {}: must be on one device", a_name,
             fmt(a.device), b_name, fmt(b.device));
}

void check_dtype_float(const Tensor& t, const char* arg) {
  if (!is_differentiable(t.dtype))
    fail_arg(TT_DTYPE, arg, "{} is {}: must be floating or complex", arg, fmt(t.dtype));
}
void check_ndim(const Tensor& t, int64_t ndim, const char* arg) {
  if (t.ndim != ndim)
    fail_arg(TT_SHAPE, arg, "{} is {}: must have {} dimension{}", arg, t.sizes(), ndim,
             ndim == 1 ? "" : "s");
}
void check_index_dtype(const Tensor& t, const char* arg) {
  if (t.dtype != Dtype::kI64 && t.dtype != Dtype::kI32)
    fail_arg(TT_DTYPE, arg, "{} is {}: must be int64 or int32", arg, fmt(t.dtype));
}

void check_fits(const Scalar& value, Dtype d, const char* arg) {
  if (!fits(value, d))
    fail_arg(TT_INVALID_ARG, arg, "{} is {}{}: {} cannot represent this value", arg, value.real(),
             value.imag() ? " and has an imaginary part" : "", fmt(d));
}

bool needs_gradient(const Tensor& t) {
  const bool is_dual = t.keys & bit(kKeyForward);
  return is_dual || (t.flags & kRequiresGrad) || atomic_load(&t.grad_fn, kRelaxed);
}
bool shares_elements(const Tensor& t) {
  return !t.dense() && may_overlap_self(t.sizes(), t.strides());
}
void check_not_read_only(const Tensor& t, const char* arg) {
  if (!t.storage->writable) fail_arg(TT_INVALID_ARG, arg, "{} is in read-only memory", arg);
}

void check_writable(const Tensor& t, const char* arg) {
  check_not_read_only(t, arg);
  if (shares_elements(t))
    fail_arg(TT_INVALID_ARG, arg,
             "{} has shape {} and strides {}: some elements share an address: clone it first", arg,
             t.sizes(), t.strides());
}

constinit Op<TensorRef(const Tensor&, Ints, Ints, Opt<int64_t>)>* op_of_views = nullptr;
constinit ComplexViews complex_views = {};

static bool has_history(const Tensor* t) { return t && needs_gradient(*t); }

// Makes a view that autograd does not know.
static TT_NOINLINE TensorRef make_untracked(const Tensor& src, Ints sizes, Ints strides, char* data,
                                            Dtype dtype) {
  TensorRef v = new_alias(src, sizes, strides, data, dtype);
  if (!(src.keys & bit(kKeyAutograd))) return v;
  const Tensor* base = atomic_load(&src.base, kRelaxed);
  if ((src.flags & kUntrackedView) || has_history(&src) || has_history(base)) {
    v->flags |= kUntrackedView;
    v->keys |= bit(kKeyAutograd);
  }
  return v;
}

TensorRef make_view(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype) {
  if (ctx().exclude & bit(kKeyAutograd)) return make_untracked(src, sizes, strides, data, dtype);
  if (TT_UNLIKELY(!atomic_load(&op_of_views, kRelaxed)))
    atomic_store(&op_of_views, &op_as_strided, kRelaxed);
  TensorRef v = new_view(src, sizes, strides, data, dtype, src.base ? *src.base : src);
  v->keys |= bit(kKeyAutograd);
  v->view_version = v->tracked_version();
  return v;
}
TensorRef make_one_of_views(const Tensor& src, Ints sizes, Ints strides, char* data) {
  TensorRef v = make_view(src, sizes, strides, data);
  v->flags |= kOneOfViews;
  return v;
}
TensorRef make_view(const Tensor& src, Ints sizes, Ints strides, char* data) {
  return make_view(src, sizes, strides, data, src.dtype);
}

static void check_inplace_result(const Tensor& self, const Tensor& r) {
  if (!same(self.sizes(), r.sizes()))
    fail_arg(TT_SHAPE, "self", "self is {}, the result is {}: must be equal in place", self.sizes(),
             r.sizes());
  if (!can_cast(r.dtype, self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: the result's dtype {} cannot be cast to it in place",
             fmt(self.dtype), fmt(r.dtype));
  if (!(self.device == r.device))
    fail_arg(TT_DEVICE, "self", "self is on {}, the result on {}: must be on one device",
             fmt(self.device), fmt(r.device));
  check_writable(self, "self");
}

void replace_values(Tensor& self, const Tensor& r) {
  check_inplace_result(self, r);
  op::copy_(self, r);
}

void copy_result(Tensor& dst, const Tensor& r, bool inplace) {
  if (inplace) check_inplace_result(dst, r);
  copy_elements(dst, r);
  dst.bump_version();
}

void check_into(Tensor& dst, const Tensor& r, Inputs inputs) {
  if (!same(dst.sizes(), r.sizes()))
    fail_arg(TT_SHAPE, "dst", "dst is {}, the result is {}: must be equal", dst.sizes(), r.sizes());
  if (dst.dtype != r.dtype)
    fail_arg(TT_DTYPE, "dst", "dst is {}, the result is {}: must be equal", fmt(dst.dtype),
             fmt(r.dtype));
  if (!(dst.device == r.device))
    fail_arg(TT_DEVICE, "dst", "dst is on {}, the result on {}: must be on one device",
             fmt(dst.device), fmt(r.device));
  check_writable(dst, "dst");
  check_no_overlap(dst, {inputs.begin(), int64_t(inputs.size())});
}

void check_no_overlap(const Tensor& dst, TensorSpan inputs) {
  for (const Tensor* t : inputs)
    if (t && may_share_memory(dst, *t))
      fail_arg(TT_INVALID_ARG, "dst", "dst shares memory with an input: clone it first");
}

TensorRef dense_input(const Tensor& t) {
  if (t.contiguous()) return TensorRef::share(&t);
  TensorRef out = new_tensor(t.sizes(), t.dtype, t.device);
  copy_elements(*out, t);
  return out;
}
TensorRef as_dtype(TensorRef t, Dtype d) {
  return t->dtype == d ? std::move(t) : op::to_dtype(*t, d);
}
TensorRef cast_input(const Tensor& t, Dtype d) {
  if (t.dtype == d) return dense_input(t);
  TensorRef out = new_tensor(t.sizes(), d, t.device);
  copy_elements(*out, t);
  return out;
}

Shape byte_strides(const Tensor& t) {
  Shape out;
  for (int64_t d = 0; d < t.ndim; d++) out.push_back(t.byte_stride(d));
  return out;
}

void launch_stages(const Kernel& k, Device device, Stages* run) {
  if (device.type != TT_CPU) return launch(k, device, run, 1);
  for (int32_t s = 0; s < run->n; s++) {
    run->stage = s;
    if (run->units[s]) launch(k, device, run, run->units[s], run->grain[s]);
  }
}

bool has_device_kernels(Device device) {
  return device.type == TT_CUDA && !runtime_cuda(ctx().rt, device.index).backend->cpu_scratch;
}

Workspace::Workspace(int64_t bytes, Device device) {
  if (bytes && !has_device_kernels(device)) t_ = new_tensor(Ints(&bytes, 1), Dtype::kU8, device);
}

void check_readable(const Tensor& t) {
  if (stands_for_samples(t))
    fail_arg(TT_NOT_IMPLEMENTED, "self",
             "in vmap, a tensor stands for all samples: the elements of one cannot be read");
}

Scalar read_scalar(const Tensor& t) {
  note_host_read(t);
  return load_element(t);
}

[[noreturn]] static void report_requirement(const DeviceCheck& c, int64_t) {
  fail_arg(c.status, c.arg, "{}", c.text.c_str());
}

// Returns false if the caller has to wait for the value itself.
static TT_COLD bool require_later(const Tensor& holds, tt_status status, const char* arg,
                                  const char* text) {
  CudaDevice& d = runtime_cuda(ctx().rt, holds.device.index);
  DeviceChecks* checks = cuda_calls->checks(d);
  if (!checks || (TT_UNLIKELY(ctx().watched & kWatchWork) && !device_hooks())) return false;
  DeviceStream& stream = current_stream(d);
  cuda_calls->wait_for_writer(stream, *holds.storage);
  int64_t* place = check_place(*checks, d);
  if (const DeviceHooks* hooks = device_hooks()) {
    hooks->copy(*ctx().graph, reinterpret_cast<char*>(place), kCpuDevice, holds.data, holds.device,
                1);
  } else if (const int32_t copied = d.backend->copy_pinned(d.index, place, holds.data, 1,
                                                           kDeviceToHost, stream.handle)) {
    cuda_calls->fail(d, copied, "copying a condition");
  }
  DeviceCheck check{.op = tls.op, .arg = arg, .report = report_requirement};
  check.is_flag = true;
  check.status = status;
  check.text.add(text);
  start_check(*checks, d, place, std::move(check));
  return true;
}

static Str text_of(const char* s) { return {s, int64_t(strlen(s))}; }

void require(const Tensor& holds, tt_status status, const char* arg, const char* text) {
  if (TT_UNLIKELY(stands_for_samples(holds)))
    return op::check_holds(holds, status, text_of(arg), text_of(text), {"", 0});
  if (recorded_check({CheckCall::kHolds, holds, arg, 0, 0, 0, status, text})) return;
  if (holds.device.type == TT_CUDA && require_later(holds, status, arg, text)) return;
  if (TT_UNLIKELY(ctx().watched & kWatchWork)) {
    DeviceCheck check{.op = tls.op, .arg = arg, .report = report_requirement};
    check.is_flag = true;
    check.status = status;
    check.text.add(text);
    if (!ctx().work->check(*ctx().work, holds, check)) return;
  }
  if (!load_element(holds).i) fail_arg(status, arg, "{}", text);
}

Scalar load_element(const Tensor& t) {
  check_readable(t);
  if (t.device.type == TT_META) fail(TT_DEVICE, "a meta tensor has no data");
  if (t.is_cpu()) return load_scalar(t.data, t.dtype);
  alignas(16) char bytes[16];
  if (t.device.type == TT_EXT) {
    ext_copy(ext_of(t), bytes, t.data, t.item_size(), kDeviceToHost);
    return load_scalar(bytes, t.dtype);
  }
  if (device_hooks()) note_host_read(t);  // which fails
  DeviceStream& stream = current_stream(runtime_cuda(ctx().rt, t.device.index));
  cuda_calls->wait_for_writer(stream, *t.storage);
  cuda_calls->copy(ctx(), bytes, kCpuDevice, t.data, t.device, t.item_size());
  return load_scalar(bytes, t.dtype);
}

}  // namespace TT_NS
