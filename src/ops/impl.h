// Shared by hand-written and generated implementations: checks, allocation, views, results of
// in-place and _into variants.
#pragma once

#include "core/ctx.h"
#include "dispatch/call.h"
#include "plan/stages.h"

#include <initializer_list>

namespace TT_NS {

using Inputs = std::initializer_list<const Tensor*>;

void check_same_device(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name);
void check_dtype_float(const Tensor& t, const char* arg);
void check_ndim(const Tensor& t, int64_t ndim, const char* arg);
void check_index_dtype(const Tensor& t, const char* arg);        // int64 or int32
void check_fits(const Scalar& value, Dtype d, const char* arg);  // a number to be stored in dtype d
// Fails if two elements share an address or the storage is read-only.
void check_writable(const Tensor& t, const char* arg);
// Returns whether a gradient of t can be asked for.
bool needs_gradient(const Tensor& t);
// Returns whether two elements share an address.
bool shares_elements(const Tensor& t);
// Fails if the storage is read-only. Enough for writes of one value, which elements may share.
void check_not_read_only(const Tensor& t, const char* arg);

// Makes a view of src with this geometry; it is linked to its base if gradients are recorded.
TensorRef make_view(const Tensor& src, Ints sizes, Ints strides, char* data);
TensorRef make_view(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype);
// The same for one of the views that a call returns.
TensorRef make_one_of_views(const Tensor& src, Ints sizes, Ints strides, char* data);
// &op_as_strided once a view has been made, else NULL. Autograd rebuilds the nodes of stale views
// with it. A pointer, so that a program without views links neither as_strided nor its gradient.
extern Op<TensorRef(const Tensor&, Ints, Ints, Opt<int64_t>)>* op_of_views;
// The same of views of another dtype than their base's: &op_view_as_real and &op_view_as_complex.
struct ComplexViews {
  Op<TensorRef(const Tensor&)>* as_real;
  Op<TensorRef(const Tensor&)>* as_complex;
};
extern ComplexViews complex_views;

// Returns p + bytes, or NULL if p is NULL (META).
inline char* advance(char* p, int64_t bytes) {
  return reinterpret_cast<char*>(uintptr_t(p) + uintptr_t(bytes));
}

// Strides in bytes: of a tensor without elements, zeros (Tensor::byte_stride).
Shape byte_strides(const Tensor& t);

// For in-place and _into variants of operators that first compute the result: copies r to dst and
// increments its version.
void copy_result(Tensor& dst, const Tensor& r, bool inplace);
// For the in-place variant of a composite, which is recorded as copy_.
void replace_values(Tensor& self, const Tensor& r);
// The dst of an _into variant must have the shape and dtype of r, be writable and overlap no input.
void check_into(Tensor& dst, const Tensor& r, Inputs inputs);
// Fails if dst shares memory with them.
void check_no_overlap(const Tensor& dst, TensorSpan inputs);

// Returns t itself if it is row-major, else a row-major copy; not recorded by autograd.
TensorRef dense_input(const Tensor& t);
// The same, converted to dtype d.
TensorRef cast_input(const Tensor& t, Dtype d);
// t itself if it has dtype d, else converted; recorded by autograd.
TensorRef as_dtype(TensorRef t, Dtype d);

// Runs a plan whose first member is `Stages run`: stage by stage on the CPU, the whole plan at once
// on a device.
void launch_stages(const Kernel& k, Device device, Stages* run);

// Scratch memory of a plan, on the device of its tensors; NULL for 0 bytes, and on CUDA devices
// whose kernels have their own.
class Workspace {
 public:
  Workspace(int64_t bytes, Device device);
  char* data() const { return t_ ? t_->data : nullptr; }

 private:
  TensorRef t_;
};

// Whether calls on t go to the kernels of the device of `key`, unseen by any mode, stream or
// gradient: a composite may launch a kernel then in place of its operators.
inline bool is_alone(const Tensor& t, Key key) {
  const Ctx& c = ctx();
  return ((t.keys | c.include) & ~c.exclude) == bit(key);
}
inline bool is_alone_on_device(const Tensor& t) { return is_alone(t, kKeyCuda); }

// Reads one element of a tensor on any device. Implementations that branch on a value read it
// through this function, or call note_host_read.
Scalar read_scalar(const Tensor& t);
// The same for a value on which only the failure of the call depends.
Scalar load_element(const Tensor& t);
// Fails with `text` unless the one element of `holds`, a bool, is true. On a CUDA device the call
// continues, and the next synchronisation fails instead: work that relies on it must be harmless.
void require(const Tensor& holds, tt_status status, const char* arg, const char* text);
// Whether t stands for all samples of a vmap.
inline bool stands_for_samples(const Tensor& t) { return t.keys & bit(kKeyVmap); }
// Whether a check should be a call of `require`, so that neither a device nor a captured graph
// waits for the host, and that each sample of a vmap is checked.
inline bool checks_later(const Tensor& t) {
  return t.device.type == TT_CUDA || (ctx().watched & kWatchWork) || stands_for_samples(t);
}
// Fails for a sample inside vmap, whose elements have no place of their own.
void check_readable(const Tensor& t);

}  // namespace TT_NS
