// Shared code of layers: arguments, printing, parameters.
#pragma once

#include "nn/module.h"

namespace TT_NS {

inline TensorList one(TensorRef t) {
  TensorList l;
  l.push_back(std::move(t));
  return l;
}
inline const Tensor* in_opt(TensorSpan in, int64_t i) { return i < in.n ? in[i] : nullptr; }

// During its lifetime, errors name the layer instead of the function that calls it.
class LayerName {
 public:
  explicit LayerName(const char* name) { tls.op = name; }
  ~LayerName() { tls.op = outer_; }
  LayerName(const LayerName&) = delete;

 private:
  const char* const outer_ = tls.op;
};

void check_given(const Shape& list, const char* arg);  // not empty
// Expands a list of one number to n; any other length fails.
void expand(Shape& list, int64_t n, const char* arg);

// ---- printing: "name=value", or the value alone without a name; put inserts commas ----
void put(Text& t, const char* name, int64_t v);
void put(Text& t, const char* name, double v);
void put(Text& t, const char* name, bool v);
void put(Text& t, const char* name, const char* v);  // quoted
// A single number is printed as such, unless it is a tuple.
void put(Text& t, const char* name, Ints v, bool tuple = false);
template <class T> void put(Text& t, const char* name, const Opt<T>& v);
inline void put(Text& t, const char* name, const Shape& v, bool tuple = false) {
  put(t, name, Ints(v), tuple);
}

template <class T, class D> bool differs(const T& v, const D& standard) { return v != standard; }
template <class D> bool differs(const Shape& v, const D& standard) {
  for (int64_t x : v)
    if (x != standard) return true;
  return false;
}
void put_name(Text& t, const char* name);
template <class T> void put(Text& t, const char* name, const Opt<T>& v) {
  if (v) return put(t, name, *v);
  put_name(t, name);
  t.add("None");
}

// Whether m is tt's layer of this class; a module of the application may have any name.
bool is_layer(const Module& m, const char* name);

// ---- parameters ----
// Appends a slot; t may be NULL.
void add_slot(Module& m, const char* name, const Tensor* t, bool is_buffer);
// Device and dtype of a layer's parameters; by default float32 on the CPU.
struct Place {
  Dtype dtype;
  Opt<Device> device;
  Place(Dtype d, Opt<Device> where);  // fails if d is not floating
};
void check_positive(int64_t v, const char* arg);
void check_size(int64_t v, const char* arg);  // not negative
// Makes leaves that require a gradient; random ones are drawn from the ctx's generator. arg: the
// argument to blame for an impossible shape.
TensorRef parameter(Place p, Ints shape, double value, const char* arg);
TensorRef uniform_parameter(Place p, Ints shape, double bound, const char* arg);
TensorRef normal_parameter(Place p, Ints shape, double std, const char* arg);
// The bound of PyTorch's Linear and convolutions: kaiming_uniform with a = sqrt(5) is uniform in
// [-1/sqrt(fan_in), 1/sqrt(fan_in)] (He et al. 2015, eq. 10).
double fan_in_bound(Ints weight_shape);

}  // namespace TT_NS
