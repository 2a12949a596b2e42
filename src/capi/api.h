// The C boundary: every exported function is one api_call around typed internal calls.
#pragma once

#include "base/platform.h"

TT_EXPORTS_BEGIN  // the functions of the header, and nothing else
#include "tt.h"
TT_EXPORTS_END

#include "base/linked.h"
#include "base/text/text.h"
#include "core/ctx.h"
#include "dispatch/value.h"

namespace TT_NS {

// Replaces the running call of this thread; restores it on exit.
class ApiScope {
 public:
  TT_INLINE ApiScope(Ctx* c, const char* name)
      : ctx_(tls.ctx), heap_(tls.heap), error_(tls.error), op_(tls.op) {
    tls.ctx = c;
    tls.heap = c->heap;
    tls.error = &c->error;
    tls.op = name;
  }
  TT_INLINE ~ApiScope() {
    tls.ctx = ctx_;
    tls.heap = heap_;
    tls.error = error_;
    tls.op = op_;
  }
  ApiScope(const ApiScope&) = delete;

 private:
  Ctx* ctx_;
  Heap* heap_;
  ErrorRecord* error_;
  const char* op_;
};

TT_COLD tt_status caught(Ctx* c) noexcept;  // after an exception: returns the code in the record
TT_COLD void rebind_call(Ctx* c);           // the ctx has moved to this thread
// (TT_CHECKED) false if another thread is inside a call on c.
TT_COLD bool enter_checked(Ctx* c) noexcept;
void leave_checked(Ctx* c) noexcept;

// For hot functions. All others use api_call, a third of the code and about 2 ns slower.
template <class F>
TT_INLINE tt_status api_call_inline(tt_ctx* handle, const char* name, F&& f) noexcept {
  auto* c = reinterpret_cast<Ctx*>(handle);
  if (TT_UNLIKELY(!c || c->tag != kTagCtx)) return TT_BAD_HANDLE;
#if TT_CHECKED
  if (!enter_checked(c)) return TT_BAD_HANDLE;  // the record belongs to the call of another thread
  struct Leave {
    Ctx* c;
    ~Leave() { leave_checked(c); }
  } leave{c};
#endif
  ApiScope scope(c, name);
  try {
    if (TT_UNLIKELY(!heap_is_mine(c->heap))) rebind_call(c);
    f(*c);
    return TT_OK;
  } catch (...) {
    return caught(c);
  }
}

tt_status api_run(tt_ctx* handle, const char* name, void (*f)(const void* what, Ctx& c),
                  const void* what) noexcept;
template <class F>
TT_INLINE tt_status api_call(tt_ctx* handle, const char* name, const F& f) noexcept {
  return api_run(
      handle, name, [](const void* what, Ctx& c) { (*static_cast<const F*>(what))(c); }, &f);
}

// ---- arguments: NULL or a handle of another type fails with BAD_HANDLE ----
[[noreturn]] TT_COLD void fail_handle(const void* h, const char* arg, int32_t index,
                                      const char* want);
[[noreturn]] TT_COLD void fail_null(const char* arg, int32_t index);

const Tensor& tensor_arg(const tt_tensor* h, const char* arg, int32_t index);
inline Tensor& mutable_arg(const tt_tensor* h, const char* arg, int32_t index) {
  return const_cast<Tensor&>(tensor_arg(h, arg, index));
}
// The same in calls of api_call_inline.
TT_INLINE const Tensor& tensor_arg_inline(const tt_tensor* h, const char* arg, int32_t index) {
  auto* t = reinterpret_cast<const Tensor*>(h);
  if (TT_UNLIKELY(!t || t->tag != kTagTensor)) fail_handle(h, arg, index, "tensor");
  return *t;
}
TT_INLINE Tensor& mutable_arg_inline(const tt_tensor* h, const char* arg, int32_t index) {
  return const_cast<Tensor&>(tensor_arg_inline(h, arg, index));
}
TT_INLINE const Tensor* optional_arg(const tt_tensor* h, const char* arg, int32_t index) {
  return h ? &tensor_arg(h, arg, index) : nullptr;
}
TT_INLINE Tensor* optional_mutable_arg(const tt_tensor* h, const char* arg, int32_t index) {
  return h ? &mutable_arg(h, arg, index) : nullptr;
}
TensorSpan tensors_arg(const tt_tensor* const* list, int64_t n, const char* arg, int32_t index,
                       bool optional_items);
TensorSpan mutables_arg(tt_tensor* const* list, int64_t n, const char* arg, int32_t index);
Span<const double> doubles_arg(const double* p, int64_t n, const char* arg, int32_t index);
Ints ints_arg(const int64_t* p, int64_t n, const char* arg, int32_t index);
Ints int_list_arg(const int64_t* p, int64_t n, const char* arg, int32_t index);  // of any length
Indices indices_arg(const tt_index* p, int64_t n, const char* arg, int32_t index);
const Scalar& scalar_arg(const tt_scalar* s, const char* arg, int32_t index);
inline const Scalar* optional_scalar_arg(const tt_scalar* s, const char* arg, int32_t index) {
  return s ? &scalar_arg(s, arg, index) : nullptr;
}
inline Scalar scalar_arg(double v, const char*, int32_t) { return Scalar(v); }
inline Scalar scalar_arg(int64_t v, const char*, int32_t) { return Scalar(v); }
Dtype dtype_arg(tt_dtype d, const char* arg, int32_t index);
Device device_arg(const tt_device* d, const char* arg, int32_t index);
// NULL: the generator of the ctx.
Generator* generator_arg(const tt_generator* g, const char* arg, int32_t index);
Str str_arg(const char* s, const char* arg, int32_t index);

// The values 0 to n - 1 of an enum argument; their names are stored consecutively.
struct Enumeration {
  int32_t n;
  const char* names;
};
// The schema of an operator (manifest.cpp); of the application's it lives as long as they.
const char* schema_text(const OpInfo& op);

extern const Enumeration enumerations[];  // by ArgInfo::enumeration
[[noreturn]] TT_COLD void fail_enum(int64_t v, const char* arg, int32_t index,
                                    const Enumeration& values);
inline int64_t enum_arg(int64_t v, const char* arg, int32_t index, uint8_t enumeration) {
  const Enumeration& values = enumerations[enumeration];
  if (TT_UNLIKELY(uint64_t(v) >= uint64_t(values.n))) fail_enum(v, arg, index, values);
  return v;
}

// From now on the first use of a CUDA device opens the device library (device.cpp).
TT_OPTIONAL void find_cuda_library();

// ---- options ----
[[noreturn]] TT_COLD void fail_opts(uint64_t set, int n);
// Checks `set`, the first member of every struct of options; NULL where the struct is.
inline void check_set(const uint64_t* set, int n) {
  if (set && *set >> n) fail_opts(*set, n);
}
inline bool set_has(const uint64_t* set, int k) { return set && (*set >> k & 1); }
template <class O> TT_INLINE const uint64_t* set_of(const O* o) {
  static_assert(offsetof(O, set) == 0);
  return reinterpret_cast<const uint64_t*>(o);
}
template <class O> TT_INLINE void check_opts(const O* o, int n) { check_set(set_of(o), n); }
template <class O> TT_INLINE bool opts_has(const O* o, int k) { return set_has(set_of(o), k); }

// ---- results ----
TT_INLINE void clear_out(tt_tensor** out) {
  if (out) *out = nullptr;
}
template <class T> TT_INLINE void out_arg(T* out, const char* arg, int32_t index) {
  if (TT_UNLIKELY(!out)) fail_null(arg, index);
}
// Reserves room for n more tensors in the open scope: for calls that make changes which a later
// failure could not undo.
void reserve_outs(Ctx& c, int64_t n);
// The open scope owns it, the application borrows it.
TT_COLD tt_tensor* scope_own(Ctx& c, TensorRef&& t);
TT_INLINE tt_tensor* to_handle(Ctx& c, TensorRef&& t) {
  if (TT_UNLIKELY(c.scopes.n_frames != 0) && t) return scope_own(c, std::move(t));
  if (!t) return nullptr;
  count_handle(t.get(), 1);
  return reinterpret_cast<tt_tensor*>(t.leak());
}
// Hands a result to the application; give_inline in calls of api_call_inline.
TT_INLINE void give_inline(Ctx& c, tt_tensor** out, TensorRef&& t) {
  *out = to_handle(c, std::move(t));
}
void give_owned(Ctx& c, tt_tensor** out, Tensor* t);
TT_INLINE void give(Ctx& c, tt_tensor** out, TensorRef&& t) { give_owned(c, out, t.leak()); }
// Copies a text and its terminating zero. *n gets its length, also on TT_BUFFER_TOO_SMALL.
void give_text(const Text& text, char* buffer, int64_t cap, int64_t* n);
// A call that writes a text, which f makes: void f(Text&), and gives it as give_text.
template <class F>
tt_status text_call(tt_ctx* h, const char* name, char* buffer, int64_t cap, int64_t* n, F f) {
  if (n) *n = 0;
  if (buffer && cap > 0) *buffer = 0;
  return api_call(h, name, [&](Ctx&) {
    out_arg(n, "n", 4);
    Text text;
    f(text);
    give_text(text, buffer, cap, n);
  });
}
void give(Ctx& c, tt_tensor** a, tt_tensor** b, TensorPair&& p);
void give(Ctx& c, tt_tensor** a, tt_tensor** b, tt_tensor** d, TensorTriple&& p);
void give(Ctx& c, tt_tensor** a, tt_tensor** b, tt_tensor** d, tt_tensor** e, TensorQuad&& p);
void clear_list(tt_tensor** outs, int64_t cap, int64_t* n_outs) noexcept;
// Fails for missing pointers, before anything is computed.
void check_list(tt_tensor** outs, int64_t cap, const int64_t* n_outs);
void give_list(Ctx& c, tt_tensor** outs, int64_t cap, int64_t* n_outs, TensorList&& l);

inline tt_tensor* handle_of(const Tensor* t) {
  return reinterpret_cast<tt_tensor*>(const_cast<Tensor*>(t));
}
inline Tensor* tensor_of(const tt_tensor* t) {
  return reinterpret_cast<Tensor*>(const_cast<tt_tensor*>(t));
}

}  // namespace TT_NS
