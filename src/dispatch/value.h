// Value: one boxed argument. Borrowed: valid during the typed call it comes from.
#pragma once

#include "core/ctx.h"
#include "dispatch/op_info.h"

namespace TT_NS {

template <class T> struct Opt {
  bool has = false;
  T value{};
  Opt() = default;
  Opt(T v) : has(true), value(v) {}
  T or_else(T other) const { return has ? value : other; }
  explicit operator bool() const { return has; }
  T operator*() const { return value; }
};
struct Pair {
  double first, second;
};
using Str = Span<const char>;
using Indices = Span<const tt_index>;

struct Value {
  enum Kind : uint8_t {
    kNone,
    kTensor,
    kTensorList,
    kScalar,
    kInt,
    kFloat,
    kBool,
    kInts,
    kStr,
    kGenerator,
    kDevice,
    kIndices,
    kRng,
    kObject
  } kind = kNone;
  int64_t n = 0;
  union {
    const Tensor* tensor;
    const Tensor* const* tensors;
    const Scalar* scalar;
    int64_t i;
    double f;
    const int64_t* ints;
    const char* str;
    Generator* generator;
    const tt_index* indices;
    const Rng* rng;
    Object* object;
  };
  Value() : i(0) {}
};

// ---- boxing: one overload per argument type of the internal API ----
inline Value to_value(const Tensor& t) {
  Value v;
  v.kind = Value::kTensor;
  v.tensor = &t;
  return v;
}
inline Value to_value(const Tensor* t) {
  Value v;
  v.kind = t ? Value::kTensor : Value::kNone;
  v.tensor = t;
  return v;
}
inline Value to_value(Tensor* t) { return to_value(static_cast<const Tensor*>(t)); }
inline Value to_value(TensorSpan s) {
  Value v;
  v.kind = Value::kTensorList;
  v.n = s.n;
  v.tensors = s.ptr;
  return v;
}
inline Value to_value(const Scalar& s) {
  Value v;
  v.kind = Value::kScalar;
  v.scalar = &s;
  return v;
}
inline Value to_value(const Scalar* s) {
  Value v;
  v.kind = s ? Value::kScalar : Value::kNone;
  v.scalar = s;
  return v;
}
inline Value to_value(double f) {
  Value v;
  v.kind = Value::kFloat;
  v.f = f;
  return v;
}
inline Value to_value(int64_t i) {
  Value v;
  v.kind = Value::kInt;
  v.i = i;
  return v;
}
inline Value to_value(int32_t i) { return to_value(int64_t(i)); }
inline Value to_value(bool b) {
  Value v;
  v.kind = Value::kBool;
  v.i = b;
  return v;
}
inline Value to_value(Ints s) {
  Value v;
  v.kind = Value::kInts;
  v.n = s.n;
  v.ints = s.ptr;
  return v;
}
inline Value to_value(Str s) {
  Value v;
  v.kind = Value::kStr;
  v.n = s.n;
  v.str = s.ptr;
  return v;
}
inline Value to_value(Generator* g) {
  Value v;
  v.kind = g ? Value::kGenerator : Value::kNone;
  v.generator = g;
  return v;
}
inline Value to_value(Dtype d) {
  Value v;
  v.kind = d == Dtype::kNone ? Value::kNone : Value::kInt;
  v.i = int64_t(d);
  return v;
}
inline Value to_value(Device d) {
  Value v;
  v.kind = Value::kDevice;
  v.i = (int64_t(d.type) << 8) | uint8_t(d.index);
  return v;
}
inline Value to_value(Indices s) {
  Value v;
  v.kind = Value::kIndices;
  v.n = s.n;
  v.indices = s.ptr;
  return v;
}
inline Value to_value(const Rng& r) {
  Value v;
  v.kind = Value::kRng;
  v.rng = &r;
  return v;
}
inline Value to_value(Object& o) {
  Value v;
  v.kind = Value::kObject;
  v.object = &o;
  return v;
}
template <class T> Value to_value(const Opt<T>& o) { return o.has ? to_value(o.value) : Value(); }

// ---- unboxing: the caller has checked the kinds against the schema ----
template <class T> struct Unbox;
template <> struct Unbox<const Tensor&> {
  static const Tensor& get(const Value& v) { return *v.tensor; }
};
template <> struct Unbox<Tensor&> {
  static Tensor& get(const Value& v) { return *const_cast<Tensor*>(v.tensor); }
};
template <> struct Unbox<const Tensor*> {
  static const Tensor* get(const Value& v) { return v.kind ? v.tensor : nullptr; }
};
template <> struct Unbox<Tensor*> {
  static Tensor* get(const Value& v) { return v.kind ? const_cast<Tensor*>(v.tensor) : nullptr; }
};
template <> struct Unbox<TensorSpan> {
  static TensorSpan get(const Value& v) { return {v.tensors, v.n}; }
};
template <> struct Unbox<const Scalar&> {
  static const Scalar& get(const Value& v) { return *v.scalar; }
};
template <> struct Unbox<const Scalar*> {
  static const Scalar* get(const Value& v) { return v.kind ? v.scalar : nullptr; }
};
template <> struct Unbox<double> {
  static double get(const Value& v) { return v.kind == Value::kInt ? double(v.i) : v.f; }
};
template <> struct Unbox<int64_t> {
  static int64_t get(const Value& v) { return v.i; }
};
template <> struct Unbox<int32_t> {
  static int32_t get(const Value& v) { return int32_t(v.i); }
};
template <> struct Unbox<bool> {
  static bool get(const Value& v) { return v.i != 0; }
};
template <> struct Unbox<Ints> {
  static Ints get(const Value& v) { return {v.ints, v.n}; }
};
template <> struct Unbox<Str> {
  static Str get(const Value& v) { return {v.str, v.n}; }
};
template <> struct Unbox<Generator*> {
  static Generator* get(const Value& v) { return v.kind ? v.generator : nullptr; }
};
template <> struct Unbox<Dtype> {
  static Dtype get(const Value& v) { return Dtype(v.i); }
};
template <> struct Unbox<Device> {
  static Device get(const Value& v) { return {int8_t(v.i >> 8), int8_t(v.i & 0xff)}; }
};
template <> struct Unbox<Indices> {
  static Indices get(const Value& v) { return {v.indices, v.n}; }
};
template <> struct Unbox<const Rng&> {
  static const Rng& get(const Value& v) { return *v.rng; }
};
template <> struct Unbox<Object&> {
  static Object& get(const Value& v) { return *v.object; }
};
template <class T> struct Unbox<Opt<T>> {
  static Opt<T> get(const Value& v) { return v.kind ? Opt<T>(Unbox<T>::get(v)) : Opt<T>(); }
};

// ---- results ----
// Number of tensors in an R, stored consecutively; -1: a list.
template <class R> constexpr int kTensorsIn = -1;
template <> inline constexpr int kTensorsIn<TensorRef> = 1;
template <> inline constexpr int kTensorsIn<TensorPair> = 2;
template <> inline constexpr int kTensorsIn<TensorTriple> = 3;
template <> inline constexpr int kTensorsIn<TensorQuad> = 4;
static_assert(sizeof(TensorTriple) == 3 * sizeof(TensorRef));
static_assert(sizeof(TensorQuad) == 4 * sizeof(TensorRef));

template <class R> struct TakeResults;
template <> struct TakeResults<void> {
  static void get(TensorList&) {}
};
template <> struct TakeResults<TensorRef> {
  static TensorRef get(TensorList& l) { return std::move(l[0]); }
};
template <> struct TakeResults<TensorPair> {
  static TensorPair get(TensorList& l) { return {std::move(l[0]), std::move(l[1])}; }
};
template <> struct TakeResults<TensorTriple> {
  static TensorTriple get(TensorList& l) {
    return {std::move(l[0]), std::move(l[1]), std::move(l[2])};
  }
};
template <> struct TakeResults<TensorQuad> {
  static TensorQuad get(TensorList& l) {
    return {std::move(l[0]), std::move(l[1]), std::move(l[2]), std::move(l[3])};
  }
};
template <> struct TakeResults<TensorList> {
  static TensorList get(TensorList& l) { return std::move(l); }
};

}  // namespace TT_NS
