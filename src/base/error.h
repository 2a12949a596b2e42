// fail() formats a message into the error record of the running call and throws an empty type,
// which is only caught by catch (...).
#pragma once

#include "base/span.h"
#include "tt_types.h"

#include <type_traits>

namespace TT_NS {

// The error record of a ctx. Preallocated, so that out-of-memory can be reported.
struct ErrorRecord {
  // what the application reads; its pointers point into this record or to static strings
  tt_error view;
  tt_error cause_view;  // the error of a tt call that a callback made, flattened to one level
  char message[1024];
  char cause_message[512];
};

// One formatted value. Shapes print as [2,3], dtypes by name, floats in the shortest form that
// reads back.
struct FmtArg {
  enum Kind : uint8_t { kInt, kUint, kFloat, kStr, kShape, kDtype, kDevice } kind;
  int64_t n;  // length of a shape or a string (-1: zero-terminated)
  union {
    int64_t i;
    uint64_t u;
    double f;
    const char* s;
    const int64_t* shape;
  };
  FmtArg(const char* v) : kind(kStr), n(-1), s(v) {}
  FmtArg(Span<const char> v) : kind(kStr), n(v.n), s(v.ptr) {}
  FmtArg(Ints v) : kind(kShape), n(v.n), shape(v.ptr) {}
  FmtArg(Span<int64_t> v) : kind(kShape), n(v.n), shape(v.ptr) {}
  FmtArg(double v) : kind(kFloat), n(0), f(v) {}
  FmtArg(bool v) : kind(kStr), n(-1), s(v ? "true" : "false") {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) FmtArg(T v)
      : kind(kInt), n(0), i(int64_t(v)) {
    if (!std::is_signed_v<T>) {
      kind = kUint;
      u = uint64_t(v);
    }
  }
  FmtArg(Kind k, int64_t v) : kind(k), n(0), i(v) {}
};
inline FmtArg fmt_dtype(int32_t dtype) { return {FmtArg::kDtype, dtype}; }
inline FmtArg fmt_device(int32_t type, int32_t index) {
  return {FmtArg::kDevice, (int64_t(type) << 32) | uint32_t(index)};
}

// Writes at most cap bytes, zero-terminated; a long text is cut in the middle. "{}" is replaced by
// the next argument. Returns the length of the uncut text.
int64_t format_to(char* out, int64_t cap, const char* fmt, Span<const FmtArg> args) noexcept;

[[noreturn]] TT_COLD void fail_args(tt_status code, const char* arg, const char* fmt,
                                    Span<const FmtArg> args);

// How an argument of fail reaches its body: the fewer types, the fewer bodies.
inline const char* fail_value(const char* v) { return v; }
inline Span<const char> fail_value(Span<const char> v) { return v; }
inline Ints fail_value(Ints v) { return v; }
inline double fail_value(double v) { return v; }
inline bool fail_value(bool v) { return v; }
inline const FmtArg& fail_value(const FmtArg& v) { return v; }
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) inline auto fail_value(T v) {
  return std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>(v);
}
template <class... A> [[noreturn]] TT_COLD TT_ONE_BODY void fail_values(tt_status code,
                                                                        const char* arg,
                                                                        const char* fmt, A... a) {
  const FmtArg args[sizeof...(A) + 1] = {FmtArg(a)..., FmtArg(0)};
  fail_args(code, arg, fmt, {args, int64_t(sizeof...(A))});
}
// fail(TT_SHAPE, "a is {}, b is {}: …", a_shape, b_shape): prefixes the name of the running
// operator.
template <class... A>
[[noreturn]] TT_INLINE void fail(tt_status code, const char* fmt, const A&... a) {
  fail_values<decltype(fail_value(a))...>(code, "", fmt, fail_value(a)...);
}
// The same, naming the offending argument.
template <class... A> [[noreturn]] TT_INLINE void fail_arg(tt_status code, const char* arg,
                                                           const char* fmt, const A&... a) {
  fail_values<decltype(fail_value(a))...>(code, arg, fmt, fail_value(a)...);
}
[[noreturn]] TT_COLD void fail_oom(int64_t bytes);  // 0: of unknown size; in memory/arena.cpp
// Rethrows with the record that a callee has filled.
[[noreturn]] TT_COLD void fail_again();

// Fills a record without throwing, for noexcept code. op and arg are static strings or NULL. The
// first two shapes and dtypes among the arguments are stored in the record, too.
void set_error(ErrorRecord* e, tt_status code, const char* op, const char* arg, const char* fmt,
               Span<const FmtArg> args) noexcept;
// Makes the recorded error, if any, the cause of the next error: for callbacks that failed in a tt
// call of their own.
void error_to_cause(ErrorRecord* e) noexcept;

}  // namespace TT_NS
