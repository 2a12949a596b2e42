#include "ops/index/nest.h"

#include "core/device_checks.h"
#include "core/graph_hooks.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"

#include <string.h>

namespace TT_NS {

// The smallest bad position, on the device of the indices. A tensor, unless a kernel of the CPU
// writes it that nobody records.
class FirstBad {
 public:
  explicit FirstBad(Device device) {
    const bool observed = ctx().watched & kWatchWork;
    if ((device.type == TT_CPU && !observed) || device.type == TT_META) return;
    t_ = new_tensor({}, Dtype::kI64, device);
    fill_elements(*t_, Scalar(INT64_MAX));
  }
  int64_t* data() { return t_ ? t_->as<int64_t>() : &local_; }
  int64_t read() const { return t_ ? load_element(*t_).i : local_; }
  // Tells the observer of the check. Returns false if there is nothing to read.
  bool is_found(const DeviceCheck& check) const {
    return !t_ || ctx().work->check(*ctx().work, *t_, check);
  }

 private:
  int64_t local_ = INT64_MAX;
  TensorRef t_;
};

// What a check reads, and what it says of an element that fails.
struct Subject {
  const Tensor& values;  // whose elements are named; of `shape`
  Ints shape, strides;
  const char* arg;
  const char* text = nullptr;  // NULL: the values are indices, with the range of the plan
};

static Scalar element_at(const Tensor& t, Ints strides, Ints at) {
  char* p = t.data;
  for (int64_t d = 0; d < at.n; d++) p += at[d] * strides[d] * t.item_size();
  return load_element(*new_alias(t, {}, {}, p, t.dtype));
}

[[noreturn]] static TT_COLD void fail_position(const Subject& s, int64_t position, int64_t low,
                                               int64_t size) {
  Shape at(s.shape);
  for (int64_t d = s.shape.n - 1; d >= 0; d--) {
    at[d] = position % s.shape[d];
    position /= s.shape[d];
  }
  const Scalar value = element_at(s.values, s.strides, at);
  if (!s.text)
    fail_arg(TT_INDEX, s.arg, "{} holds {} at {}: must be in [{}, {})", s.arg, value.i, Ints(at),
             low, size);
  if (value.category() < 2)
    fail_arg(TT_INVALID_ARG, s.arg, "{}: {} holds {} at {}", s.text, s.arg, value.i, Ints(at));
  fail_arg(TT_INVALID_ARG, s.arg, "{}: {} holds {} at {}", s.text, s.arg, value.re, Ints(at));
}

[[noreturn]] static void report_position(const DeviceCheck& c, int64_t position) {
  const char* text = c.text.empty() ? nullptr : c.text.c_str();
  fail_position({*c.values, c.sizes, c.strides, c.arg, text}, position, c.low, c.size);
}

static DeviceCheck check_of(const IndexCheckPlan& plan, const Subject& s) {
  DeviceCheck check{.op = tls.op, .arg = s.arg, .report = report_position};
  if (s.text) check.text.add(s.text);
  check.values = new_alias(s.values);
  check.sizes = Shape(s.shape);
  check.strides = Shape(s.strides);
  check.low = plan.low;
  check.size = plan.size;
  return check;
}

// Starts a check on a CUDA device whose result is read at the next synchronisation: kernels that
// get its indices never access memory by one that is out of range. Returns false if the caller has
// to wait for it.
static TT_COLD bool check_later(IndexCheckPlan& plan, const Kernel& k, const Tensor& index,
                                const Subject& s) {
  CudaDevice& d = runtime_cuda(ctx().rt, index.device.index);
  DeviceChecks* checks = cuda_calls->checks(d);
  if (!checks || (TT_UNLIKELY(ctx().watched & kWatchWork) && !device_hooks())) return false;
  DeviceCheck check = check_of(plan, s);
  int64_t* place = check_place(*checks, d);
  plan.index = index.data;
  plan.first_bad = place;
  launch_stages(k, index.device, &plan.run);
  start_check(*checks, d, place, std::move(check));
  return true;
}

static void check(IndexCheckPlan& plan, const Kernel& k, const Tensor& index, const Subject& s) {
  if (plan.n == 0) return;
  if (index.device.type == TT_CUDA && check_later(plan, k, index, s)) return;
  FirstBad bad(index.device);
  plan.index = index.data;
  plan.first_bad = bad.data();
  launch_stages(k, index.device, &plan.run);
  if (TT_UNLIKELY(ctx().watched & kWatchWork) && !bad.is_found(check_of(plan, s))) return;
  const int64_t position = bad.read();
  if (TT_UNLIKELY(position != kCheckPassed)) fail_position(s, position, plan.low, plan.size);
}

void check_indices(const Tensor& index, const char* arg, int64_t low, int64_t size,
                   int64_t allowed) {
  if (TT_UNLIKELY(stands_for_samples(index)))
    return op::check_indices(index, low, size, allowed, {arg, int64_t(strlen(arg))}, {"", 0});
  if (index.device.type == TT_EXT)
    return check_indices(*op::to_device(index, kCpuDevice), arg, low, size, allowed);
  if (index.numel && recorded_check({CheckCall::kIndices, index, arg, low, size, allowed})) return;
  IndexCheckPlan plan;
  const Shape strides = byte_strides(index);
  Shape sizes(index.sizes());  // an expanded dimension repeats its first position
  for (int64_t d = 0; d < index.ndim; d++)
    if (strides[d] == 0) sizes[d] = TT_NS::min<int64_t>(sizes[d], 1);
  build_index_check(&plan, index.ndim, sizes.data(), strides.data(), int32_t(index.dtype), size);
  plan.low = low;
  plan.allowed = allowed;
  check(plan, kernel_index_check, index, {index, sizes, index.strides(), arg});
}

void require_each(const Tensor& holds, const Tensor& values, const char* arg, const char* text) {
  check_readable(holds);
  if (ctx().graph || holds.device.type == TT_EXT)
    return require(*op::all(holds), TT_INVALID_ARG, arg, text);
  IndexCheckPlan plan;
  const Shape strides = byte_strides(holds);
  build_index_check(&plan, holds.ndim, holds.sizes().ptr, strides.data(), int32_t(holds.dtype), 2);
  plan.low = 1;
  check(plan, kernel_index_check, holds, {values, values.sizes(), values.strides(), arg, text});
}

void index_offsets(Tensor& offsets, const Tensor& index, const char* arg, const IndexedDim& dim,
                   bool add) {
  const Ints shape = offsets.sizes();
  Shape strides, bytes;
  strides.resize(shape.n, 0);
  bytes.resize(shape.n, 0);
  for (int64_t d = 1; d <= index.ndim; d++) {
    if (index.size(-d) == 1) continue;
    strides[shape.n - d] = index.stride(-d);
    bytes[shape.n - d] = index.byte_stride(-d);
  }
  IndexCheckPlan plan;
  build_index_check(&plan, int32_t(shape.n), shape.ptr, bytes.data(), int32_t(index.dtype),
                    dim.size);
  plan.offsets = offsets.as<int64_t>();
  plan.step = dim.step;
  plan.add = add;
  check(plan, kernel_index_offsets, index, {index, shape, strides, arg});
}

// Returns the number of bytes from the first element to the end of the last one.
static int64_t span_of(const Tensor& t) {
  int64_t last = 0;
  for (int64_t d = 0; d < t.ndim; d++) last += (t.size(d) - 1) * t.stride(d);
  return (last + 1) * t.item_size();
}

void run_index(const Kernel& k, const IndexNest& nest, const Tensor& a, char* a_data,
               const Tensor& b, const Tensor& index, const IndexedDim& dim, IndexCombine combine,
               const char* unchecked) {
  IndexPlan plan;
  IndexArgs args{.ndim = int32_t(nest.size.size()),
                 .size = nest.size.data(),
                 .a_stride = nest.a_stride.data(),
                 .b_stride = nest.b_stride.data(),
                 .index_stride = nest.index_stride.data(),
                 .a_step = dim.step,
                 .index_size = dim.size,
                 .dtype = int32_t(a.dtype),
                 .index_dtype = int32_t(index.dtype),
                 .put = &k != &kernel_index_get,
                 .combine = combine};
  // pool_threads takes a lock, which a single unit does not need
  if (args.put && numel_of(nest.size) >= kIndexTask) {
    args.threads = pool_threads(ctx().rt->pool);
    args.extent = dim.size ? dim.size : span_of(a);
    args.large = &k == &kernel_index_put ? kIndexRangeOfPuts : kIndexRangeOfSums;
  }
  build_index(&plan, args);
  plan.a = a_data;
  plan.b = b.data;
  plan.index = index.data;
  int32_t outside = 0;
  const Ctx& c = ctx();
  const bool on_the_way =
      a.is_cpu() && dim.size && !plan.range && !c.graph && !(c.watched & kWatchWork);
  if (unchecked && on_the_way) plan.outside = &outside;
  else if (unchecked) check_indices(index, unchecked, 0, dim.size);
  launch_stages(k, a.device, &plan.run);
  if (TT_UNLIKELY(outside)) check_indices(index, unchecked, 0, dim.size);
}

TensorRef nonzero_positions(const Tensor& t, bool flat) {
  if (t.device.type == TT_META)
    fail_arg(TT_NOT_IMPLEMENTED, "self",
             "self is on meta: the shape of the result depends on its data");
  TensorRef x = dense_input(t);
  TensorRef total = new_tensor({}, Dtype::kI64, t.device);
  fill_elements(*total, 0);
  NonzeroPlan plan;
  build_nonzero(&plan, int32_t(t.dtype), t.ndim, t.sizes_ptr());
  const int64_t chunks[1] = {nonzero_chunks(plan.n)};
  TensorRef starts = new_tensor(chunks, Dtype::kI64, t.device);
  plan.x = x->data;
  plan.starts = starts->as<int64_t>();
  plan.total = total->as<int64_t>();
  if (plan.n) launch_stages(kernel_nonzero_count, t.device, &plan.run);
  const int64_t shape[2] = {flat ? 1 : t.ndim, read_scalar(total).i};
  TensorRef out = new_tensor(shape, Dtype::kI64, t.device);
  if (out->numel == 0) return out;
  build_nonzero_write(&plan);
  plan.out = out->as<int64_t>();
  plan.row_stride = 1;
  plan.dim_stride = shape[1];
  if (flat) plan.ndim = 0;
  launch_stages(kernel_nonzero_write, t.device, &plan.run);
  return out;
}

}  // namespace TT_NS
