// Splits into parts of equal size or at given indices: tensor_split, hsplit, vsplit, dsplit.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_sections(int64_t sections) {
  if (sections < 1 || sections > INT32_MAX)
    fail_arg(TT_INVALID_ARG, "sections", "sections is {}: must be in [1, {}]", sections, INT32_MAX);
}
static int64_t split_dim(const Tensor& self, int64_t dim) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  return wrap_dim(dim, self.ndim);
}

TensorList tensor_split(Call, const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = split_dim(self, dim);
  check_sections(sections);
  const int64_t n = self.size(d);
  Shape ends;
  ends.resize(sections - 1, 0);  // fails at once if there is no memory for as many
  for (int64_t i = 1; i < sections; i++)
    ends[i - 1] = n / sections * i + TT_NS::min<int64_t>(i, n % sections);
  return op::tensor_split_indices(self, ends, d);
}

TensorList tensor_split_indices(Call, const Tensor& self, Ints indices, int64_t dim) {
  const int64_t d = split_dim(self, dim);
  TensorList out;
  out.reserve(indices.n + 1);
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(op::slice(self, d, start, end));
    start = end;
  }
  out.push_back(op::slice(self, d, start, self.size(d)));
  return out;
}

TensorList tensor_split_tensor(Call, const Tensor& self, const Tensor& tensor_indices_or_sections,
                               int64_t dim) {
  const Tensor& t = tensor_indices_or_sections;
  const char* const arg = "tensor_indices_or_sections";
  if (t.dtype != Dtype::kI64) fail_arg(TT_DTYPE, arg, "{} is {}: must be int64", arg, fmt(t.dtype));
  if (t.device.type == TT_META)
    fail_arg(TT_DEVICE, arg, "{} is on meta: the number of results depends on it", arg);
  if (t.ndim > 1) fail_arg(TT_SHAPE, arg, "{} is {}: must be 0-dim or 1-D", arg, t.sizes());
  note_host_read(t);
  TensorRef dense = dense_input(t.is_cpu() ? t : *op::to_device(t, kCpuDevice));
  const Ints values(dense->as<int64_t>(), t.numel);
  return t.ndim ? op::tensor_split_indices(self, values, dim)
                : op::tensor_split(self, values[0], dim);
}

// ---- along a fixed dimension ----

static int64_t fixed_dim(const Tensor& self, int64_t dim) {
  if (self.ndim == 1 && dim == 1) return 0;  // hsplit of a vector
  const int64_t needed = dim == 1 ? 1 : TT_NS::max<int64_t>(dim + 1, 2);
  if (self.ndim < needed)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least {} dimension{}", self.sizes(),
             needed, needed == 1 ? "" : "s");
  return dim;
}
static TensorList split_evenly(const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = fixed_dim(self, dim);
  check_sections(sections);
  if (self.size(d) % sections)
    fail_arg(TT_INVALID_ARG, "sections",
             "sections is {}: must divide {}, the size of dimension {}; tensor_split need not",
             sections, self.size(d), d);
  return op::tensor_split(self, sections, d);
}
TensorList hsplit(Call, const Tensor& self, int64_t sections) {
  return split_evenly(self, sections, 1);
}
TensorList vsplit(Call, const Tensor& self, int64_t sections) {
  return split_evenly(self, sections, 0);
}
TensorList dsplit(Call, const Tensor& self, int64_t sections) {
  return split_evenly(self, sections, 2);
}
TensorList hsplit_indices(Call, const Tensor& self, Ints indices) {
  return op::tensor_split_indices(self, indices, fixed_dim(self, 1));
}
TensorList vsplit_indices(Call, const Tensor& self, Ints indices) {
  return op::tensor_split_indices(self, indices, fixed_dim(self, 0));
}
TensorList dsplit_indices(Call, const Tensor& self, Ints indices) {
  return op::tensor_split_indices(self, indices, fixed_dim(self, 2));
}

}  // namespace TT_NS::impl
