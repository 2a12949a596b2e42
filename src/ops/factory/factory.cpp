// Creation.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "core/half.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/factory_build.h"

#include <math.h>

namespace TT_NS {

void fill_arange(Tensor& dst, const Scalar& start, const Scalar& step) {
  if (dst.numel == 0) return;
  const bool ints = category(dst.dtype) < 2 && !start.is_float() && !step.is_float();
  const double from = start.real();
  const double by = step.real();
  ArangePlan plan;
  build_arange(&plan, int32_t(dst.dtype), dst.numel, dst.data, ints ? start.i : start.to_int(),
               ints ? step.i : step.to_int(), from, by);
  launch_stages(kernel_fill_arange, dst.device, &plan.run);
}

}  // namespace TT_NS

namespace TT_NS::impl {

static Dtype or_default(Dtype d) { return d == Dtype::kNone ? default_float() : d; }
static Device or_cpu(const Opt<Device>& d) { return d.or_else(kCpuDevice); }

static TensorRef make(Ints size, Dtype dtype, Device device) {
  checked_numel(size, dtype, "size");
  return new_tensor(size, dtype, device);
}
static TensorRef on(TensorRef t, const Opt<Device>& device) {
  const Device to = or_cpu(device);
  return to == kCpuDevice ? std::move(t) : op::to_device(*t, to);
}
static TensorRef filled(TensorRef t, const Scalar& value) {
  check_fits(value, t->dtype, "fill_value");
  fill_elements(*t, value);
  return t;
}

TensorRef empty(Call, Ints size, Dtype dtype, Opt<Device> device) {
  return make(size, or_default(dtype), or_cpu(device));
}
TensorRef empty_strided(Call, Ints size, Ints stride, Dtype dtype, Opt<Device> device) {
  dtype = or_default(dtype);
  if (size.n != stride.n)
    fail_arg(TT_INVALID_ARG, "stride", "stride is {}, size is {}: must have as many entries",
             stride, size);
  const bool some = checked_numel(size, dtype, "size") > 0;
  int64_t span = some;  // elements of the memory
  bool fits = true;
  for (int64_t d = 0; d < size.n; d++) {
    if (stride[d] < 0)
      fail_arg(TT_INVALID_ARG, "stride", "stride is {}: must not be negative", stride);
    int64_t length;
    if (!some || size[d] == 1) continue;
    fits = fits && !mul_overflow(size[d] - 1, stride[d], &length) &&
           !add_overflow(span, length, &span);
  }
  if (!fits) fail_arg(TT_OOM, "stride", "size is {}, stride is {}: too large", size, stride);
  TensorRef memory = make(Ints(&span, 1), dtype, or_cpu(device));
  return new_alias(*memory, size, usable_strides(size, stride));
}
TensorRef zeros(Call, Ints size, Dtype dtype, Opt<Device> device) {
  return filled(make(size, or_default(dtype), or_cpu(device)), 0);
}
TensorRef ones(Call, Ints size, Dtype dtype, Opt<Device> device) {
  return filled(make(size, or_default(dtype), or_cpu(device)), 1);
}
TensorRef full(Call, Ints size, const Scalar& value, Dtype dtype, Opt<Device> device) {
  return filled(make(size, dtype == Dtype::kNone ? value.natural_dtype() : dtype, or_cpu(device)),
                value);
}

static TensorRef like(const Tensor& t, Dtype dtype, const Opt<Device>& device) {
  if (dtype == Dtype::kNone) dtype = t.dtype;
  return new_ordered_like(t, dtype, device.or_else(t.device));
}
TensorRef empty_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device) {
  return like(self, dtype, device);
}
TensorRef zeros_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device) {
  return filled(like(self, dtype, device), 0);
}
TensorRef ones_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device) {
  return filled(like(self, dtype, device), 1);
}
TensorRef full_like(Call, const Tensor& self, const Scalar& value, Dtype dtype,
                    Opt<Device> device) {
  return filled(like(self, dtype, device), value);
}

// Returns the number of elements of arange; exact for integers.
static int64_t arange_size(const Scalar& start, const Scalar& end, const Scalar& step) {
  const char* complex = nullptr;
  if (step.is_complex()) complex = "step";
  if (end.is_complex()) complex = "end";
  if (start.is_complex()) complex = "start";
  if (complex) fail_arg(TT_DTYPE, complex, "{} is complex: must be real", complex);
  if (step.is_zero() || step.real() != step.real())
    fail_arg(TT_INVALID_ARG, "step", "step is {}: must not be 0", step.real());
  if (!isfinite(start.real()) || !isfinite(end.real()))
    fail_arg(TT_INVALID_ARG, isfinite(start.real()) ? "end" : "start",
             "start is {}, end is {}: must be finite", start.real(), end.real());
  if ((step.real() > 0) != (end.real() >= start.real()) && end.real() != start.real())
    fail_arg(TT_INVALID_ARG, "step",
             "start is {}, end is {}, step is {}: the sign of step leads away from end",
             start.real(), end.real(), step.real());
  if (start.is_float() || end.is_float() || step.is_float()) {
    double n = ceil((end.real() - start.real()) / step.real());
    if (!(n < 0x1p62))
      fail_arg(TT_SHAPE, "end", "start is {}, end is {}, step is {}: {} elements are too many",
               start.real(), end.real(), step.real(), n);
    return int64_t(n);
  }
  const bool up = step.i > 0;
  if (up ? end.i <= start.i : end.i >= start.i) return 0;
  const uint64_t difference = uint64_t(end.i) - uint64_t(start.i);
  const uint64_t span = up ? difference : 0 - difference;
  const uint64_t by = up ? uint64_t(step.i) : 0 - uint64_t(step.i);
  return int64_t((span - 1) / by + 1);
}

TensorRef arange(Call, const Scalar& start, const Scalar& end, const Scalar& step, Dtype dtype,
                 Opt<Device> device) {
  int64_t n = arange_size(start, end, step);
  if (dtype == Dtype::kNone)
    dtype = start.is_float() || end.is_float() || step.is_float() ? default_float() : Dtype::kI64;
  TensorRef out = make(Ints(&n, 1), dtype, kCpuDevice);
  fill_arange(*out, start, step);
  return on(std::move(out), device);
}

TensorRef eye(Call, int64_t n, Opt<int64_t> m, Dtype dtype, Opt<Device> device) {
  const int64_t size[2] = {n, m.or_else(n)};
  const int64_t diagonal = TT_NS::min(size[0], size[1]);
  if (diagonal < 0)
    fail_arg(TT_INVALID_ARG, n < 0 ? "n" : "m", "n is {}, m is {}: must not be negative", n,
             size[1]);
  TensorRef out = filled(make(size, or_default(dtype), or_cpu(device)), 0);
  if (!diagonal) return out;
  const int64_t step = size[1] + 1;
  fill_elements(*new_alias(out, Ints(&diagonal, 1), Ints(&step, 1)), 1);
  return out;
}

// The number of elements of an m x n matrix with column - row <= offset, which is in [-m, n];
// INT64_MAX if there are more than 2^60.
static int64_t lower_elements(int64_t m, int64_t n, int64_t offset) {
  if (n == 0) return 0;
  const int64_t first = TT_NS::max<int64_t>(0, -offset);  // row that is not empty
  int64_t whole = m;                                      // first row of n elements
  if (offset >= 0 || n - 1 < m + offset) whole = clamp(n - offset - 1, first, m);
  const int64_t partial = whole - first;  // rows in between: of `from` elements, then one more each
  const double from = double(TT_NS::max<int64_t>(0, offset)) + 1;
  const double in_partial = double(partial) * (2 * from + double(partial) - 1) / 2;
  if (in_partial + double(m - whole) * double(n) > 0x1p60) return INT64_MAX;
  const int64_t rest = (m - whole) * n;
  return partial ? partial * (2 * int64_t(from) + partial - 1) / 2 + rest : rest;
}

// The elements of row r are the columns [lower ? 0 : r + offset, lower ? r + offset + 1 : n).
static TensorRef triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower, Dtype dtype,
                                  const Opt<Device>& device) {
  if (row < 0 || col < 0)
    fail_arg(TT_INVALID_ARG, row < 0 ? "row" : "col", "row is {}, col is {}: must not be negative",
             row, col);
  if (dtype == Dtype::kNone) dtype = Dtype::kI64;
  if (dtype != Dtype::kI64 && dtype != Dtype::kI32)
    fail_arg(TT_NOT_IMPLEMENTED, "dtype", "dtype is {}: must be int64 or int32", fmt(dtype));
  const int64_t o = clamp(offset, -row, col);
  // The upper triangle is the lower one of the transposed matrix.
  const int64_t count = lower ? lower_elements(row, col, o) : lower_elements(col, row, -o);
  if (count > INT64_MAX / 16)
    fail_arg(TT_SHAPE, "row", "row is {}, col is {}, offset is {}: too many elements", row, col,
             offset);
  const int64_t size[2] = {2, count};
  TensorRef out = make(size, Dtype::kI64, kCpuDevice);
  int64_t* rows = out->as<int64_t>();
  int64_t* columns = rows + size[1];
  const int64_t begin = lower ? TT_NS::max<int64_t>(0, -o) : 0;
  for (int64_t r = begin, left = size[1]; left > 0; r++) {
    const int64_t from = lower ? 0 : TT_NS::max<int64_t>(0, r + o);
    const int64_t to = lower ? TT_NS::min(r + o + 1, col) : col;
    for (int64_t k = from; k < to; k++) {
      *rows++ = r;
      *columns++ = k;
    }
    left -= to - from;
  }
  note_host_write(*out);
  return on(dtype == Dtype::kI64 ? std::move(out) : op::to_dtype(*out, dtype), device);
}
TensorRef tril_indices(Call, int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Opt<Device> device) {
  return triangle_indices(row, col, offset, true, dtype, device);
}
TensorRef triu_indices(Call, int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Opt<Device> device) {
  return triangle_indices(row, col, offset, false, dtype, device);
}

// Returns the n numbers from, from + step, … in float64 or complex128.
static TensorRef ramp(const Scalar& from, const Scalar& step, int64_t n) {
  return op::add(*op::mul(*op::arange(0, n, 1, Dtype::kF64), step), from);
}

struct Range {
  Scalar start, end;
  Dtype dtype;
  bool is_complex;
};
// The number as one of dtype, if that is of half precision.
static Scalar half_of(const Scalar& s, Dtype dtype) {
  const float x = float(s.real());
  if (dtype == Dtype::kF16) return Scalar(double(f16_to_float(float_to_f16(x))));
  if (dtype == Dtype::kBF16) return Scalar(double(bf16_to_float(float_to_bf16(x))));
  return s;
}
// The range of linspace and logspace; bounds of integers are truncated first. Those of halves are
// rounded first where there are several steps, as in PyTorch: 10 to the power of 4.3 and of the
// half nearest to it differ by more than a rounding.
static Range range_of(const Scalar& start, const Scalar& end, int64_t steps, Dtype dtype) {
  const bool has_complex = start.is_complex() || end.is_complex();
  if (dtype == Dtype::kNone) dtype = has_complex ? default_complex() : default_float();
  if (has_complex && !is_complex(dtype))
    fail_arg(TT_DTYPE, "dtype", "start or end is complex, dtype is {}: must be complex",
             fmt(dtype));
  check_fits(start, dtype, "start");
  check_fits(end, dtype, "end");
  const bool whole = category(dtype) < 2;
  const auto bound = [&](const Scalar& s) {
    if (whole) return Scalar(s.to_int());
    return steps > 1 ? half_of(s, dtype) : s;
  };
  return {bound(start), bound(end), dtype, has_complex};
}

// One half is computed from start, the other from end, so that both are exact.
TensorRef linspace(Call, const Scalar& start, const Scalar& end, int64_t steps, Dtype dtype,
                   Opt<Device> device) {
  if (steps < 0) fail_arg(TT_INVALID_ARG, "steps", "steps is {}: must not be negative", steps);
  const Range range = range_of(start, end, steps, dtype);
  const Scalar &a = range.start, &b = range.end;
  MaskGuard no_grad(bit(kKeyAutograd));
  checked_numel(Ints(&steps, 1), Dtype::kC128, "steps");
  const double gap = steps > 1 ? double(steps - 1) : 1;
  const double by = (b.real() - a.real()) / gap;
  const Scalar step =
      range.is_complex ? Scalar::complex(by, (b.imag() - a.imag()) / gap) : Scalar(by);
  const int64_t half = steps > 1 ? steps / 2 : steps;
  const int64_t only[1] = {0};
  TensorRef low = ramp(a, step, half);
  TensorRef high = op::flip(*ramp(b, -step, steps - half), only);
  const Tensor* const parts[2] = {low.get(), high.get()};
  return on(op::to_dtype(*op::cat(parts, 0), range.dtype), device);
}

// base to the power of the values of linspace.
TensorRef logspace(Call, const Scalar& start, const Scalar& end, int64_t steps, double base,
                   Dtype dtype, Opt<Device> device) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Range range = range_of(start, end, steps, dtype);
  TensorRef exponents =
      op::linspace(range.start, range.end, steps, range.is_complex ? Dtype::kC128 : Dtype::kF64);
  TensorRef bases = op::full({}, base, Dtype::kF64);
  return on(op::to_dtype(*op::pow(*bases, *exponents), range.dtype), device);
}

}  // namespace TT_NS::impl
