#include "autograd/node.h"
#include "ops/gen/ops.h"
#include "nn/layer.h"

#include <string.h>

namespace TT_NS {

bool is_layer(const Module& m, const char* name) {
  return m.type->destroy == destroy_layer && !strcmp(m.type->name, name);
}

void add_slot(Module& m, const char* name, const Tensor* t, bool is_buffer) {
  m.slots.push_back({Text(name), TensorRef::share(t), is_buffer, true});
}

void check_given(const Shape& list, const char* arg) {
  if (list.empty())
    fail_arg(TT_INVALID_ARG, arg, "{} is empty: must have one number, or one for each dimension",
             arg);
}
void expand(Shape& list, int64_t n, const char* arg) {
  if (list.size() == n) return;
  if (list.size() > 1)
    fail_arg(TT_INVALID_ARG, arg, "{} has {} numbers: must be 1 or {}", arg, list.size(), n);
  const int64_t v = list[0];
  list.resize(n);
  for (int64_t& x : list) x = v;
}

// ---- printing ----

void put_name(Text& t, const char* name) {
  if (t.c_str()[t.size() - 1] != '(') t.add(", ");
  if (name) t.add(name).add("=");
}
void put(Text& t, const char* name, int64_t v) {
  put_name(t, name);
  t.add(v);
}
void put(Text& t, const char* name, double v) {
  put_name(t, name);
  t.add_double(v);
}
void put(Text& t, const char* name, bool v) {
  put_name(t, name);
  t.add(v ? "True" : "False");
}
void put(Text& t, const char* name, const char* v) {
  put_name(t, name);
  t.add("'").add(v).add("'");
}
void put(Text& t, const char* name, Ints v, bool tuple) {
  put_name(t, name);
  if (v.n == 1 && !tuple) {
    t.add(v[0]);
    return;
  }
  t.add("(");
  for (int64_t i = 0; i < v.n; i++) t.add(i ? ", " : "").add(v[i]);
  t.add(v.n == 1 ? ",)" : ")");
}

// ---- parameters ----

Place::Place(Dtype d, Opt<Device> where)
    : dtype(d == Dtype::kNone ? default_float() : d), device(where) {
  if (!is_differentiable(dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: parameters must be floating or complex", fmt(dtype));
}

void check_positive(int64_t v, const char* arg) {
  if (v < 1) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be at least 1", arg, v);
}

void check_size(int64_t v, const char* arg) {
  if (v < 0) fail_arg(TT_SHAPE, arg, "{} is {}: must not be negative", arg, v);
}

static TensorRef leaf(TensorRef t) {
  set_requires_grad(*t, true);
  return t;
}

TensorRef parameter(Place p, Ints shape, double value, const char* arg) {
  checked_numel(shape, p.dtype, arg);
  MaskGuard no_grad(bit(kKeyAutograd));
  return leaf(op::full(shape, Scalar(value), p.dtype, p.device));
}

TensorRef uniform_parameter(Place p, Ints shape, double bound, const char* arg) {
  checked_numel(shape, p.dtype, arg);
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef t = op::rand(shape, p.dtype, p.device);
  op::mul_(*t, Scalar(2 * bound));
  op::sub_(*t, Scalar(bound));
  return leaf(std::move(t));
}

TensorRef normal_parameter(Place p, Ints shape, double std, const char* arg) {
  checked_numel(shape, p.dtype, arg);
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef t = op::randn(shape, p.dtype, p.device);
  if (std != 1) op::mul_(*t, Scalar(std));
  return leaf(std::move(t));
}

double fan_in_bound(Ints shape) {
  double fan_in = 1;
  for (int64_t i = 1; i < shape.n; i++) fan_in *= double(shape[i]);
  return fan_in > 0 ? 1 / libm::sqrt(fan_in) : 0;
}

}  // namespace TT_NS
