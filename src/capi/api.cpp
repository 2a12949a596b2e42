#include "capi/api.h"

#include "base/os.h"
#include "base/pointer_map.h"
#include "capi/op_call.h"
#include "dispatch/key.h"
#include "ops/undo.h"
#include "tt.h"

#include <string.h>

namespace TT_NS {

// fail() has filled the record; any other exception that arrives here has left it empty.
tt_status caught(Ctx* c) noexcept {
  if (c->error.view.code == TT_OK) {
    const FmtArg args[] = {0};
    set_error(&c->error, TT_INTERNAL, tls.op, "", "an unknown exception reached the C boundary",
              {args, 0});
  }
  const tt_status code = c->error.view.code;
  log_line(c->rt, code == TT_OOM ? TT_LOG_WARNING : TT_LOG_DEBUG, "{}", c->error.view.message);
  return code;
}

tt_status api_run(tt_ctx* handle, const char* name, void (*f)(const void* what, Ctx& c),
                  const void* what) noexcept {
  return api_call_inline(handle, name, [=](Ctx& c) {
    UndoLog log(c);
    f(what, c);
    log.keep();
  });
}

void rebind_call(Ctx* c) {
  ctx_rebind(c);
  tls.heap = c->heap;
}

// A small number that identifies this thread: the address of its TLS object, unique among live
// threads.
static uint32_t thread_mark() { return uint32_t(uintptr_t(&tls) >> 4) | 1; }

bool enter_checked(Ctx* c) noexcept {
  uint32_t none = 0;
  uint32_t mine = thread_mark();
  if (!atomic_compare_exchange(&c->busy_thread, &none, mine, kAcquire, kRelaxed) && none != mine)
    return false;
  c->depth++;
  return true;
}
void leave_checked(Ctx* c) noexcept {
  if (--c->depth == 0) atomic_store(&c->busy_thread, 0, kRelease);
}

// ---- arguments ----

static void mark_index(int32_t index) { tls.error->view.arg_index = index; }

void fail_handle(const void* h, const char* arg, int32_t index, const char* want) {
  const FmtArg args[] = {arg, want};
  const char* text = h ? "{} is not a live {} handle" : "{} is NULL: must be a live {} handle";
  set_error(tls.error, TT_BAD_HANDLE, tls.op, arg, text, args);
  mark_index(index);
  fail_again();
}
const Tensor& tensor_arg(const tt_tensor* h, const char* arg, int32_t index) {
  return tensor_arg_inline(h, arg, index);
}
void fail_null(const char* arg, int32_t index) {
  const FmtArg args[] = {arg};
  set_error(tls.error, TT_INVALID_ARG, tls.op, arg, "{} is NULL: must not be", args);
  mark_index(index);
  fail_again();
}

void fail_operand(const OpInfo& op, int32_t i, const void* h) {
  fail_handle(h, op.schema->args[i].name, i, "tensor");
}

void fail_opts(uint64_t set, int n) {
  fail(TT_UNSUPPORTED_OPTION, "opts.set has unknown bit {}: known are bits 0 to {}",
       int64_t(63 - leading_zeros(set)), n - 1);
}

static void check_list(const void* p, int64_t n, const char* arg) {
  if (n < 0) fail_arg(TT_INVALID_ARG, arg, "{} has length {}: must not be negative", arg, n);
  if (n && !p)
    fail_arg(TT_INVALID_ARG, arg, "{} is NULL, its length is {}: must be a list", arg, n);
}

[[noreturn]] TT_COLD static void fail_item(const tt_tensor* h, int64_t i, const char* arg,
                                           int32_t index) {
  const FmtArg args[] = {arg, i};
  const char* text =
      h ? "{}[{}] is not a live tensor handle" : "{}[{}] is NULL: must be a live tensor handle";
  set_error(tls.error, TT_BAD_HANDLE, tls.op, arg, text, args);
  mark_index(index);
  fail_again();
}
TensorSpan tensors_arg(const tt_tensor* const* list, int64_t n, const char* arg, int32_t index,
                       bool optional_items) {
  check_list(list, n, arg);
  for (int64_t i = 0; i < n; i++) {
    if (!list[i] && optional_items) continue;
    const Tensor* t = tensor_of(list[i]);
    if (!t || t->tag != kTagTensor) fail_item(list[i], i, arg, index);
  }
  return {reinterpret_cast<const Tensor* const*>(list), n};
}
TensorSpan mutables_arg(tt_tensor* const* list, int64_t n, const char* arg, int32_t index) {
  return tensors_arg(list, n, arg, index, false);
}
Span<const double> doubles_arg(const double* p, int64_t n, const char* arg, int32_t) {
  check_list(p, n, arg);
  return {p, n};
}
Ints ints_arg(const int64_t* p, int64_t n, const char* arg, int32_t) {
  check_list(p, n, arg);
  if (n > kMaxDims)
    fail_arg(TT_SHAPE, arg, "{} has {} entries, at most {} are supported", arg, n, kMaxDims);
  return {p, n};
}
void fail_ints(const OpInfo& op, int32_t i, IntsArg list) {
  ints_arg(list.ptr, list.n, op.schema->args[i].name, i);
  fail_again();
}
Ints int_list_arg(const int64_t* p, int64_t n, const char* arg, int32_t) {
  check_list(p, n, arg);
  return {p, n};
}
Indices indices_arg(const tt_index* p, int64_t n, const char* arg, int32_t index) {
  check_list(p, n, arg);
  if (n > 4 * kMaxDims)
    fail_arg(TT_INVALID_ARG, arg, "{} has {} items, at most {} are supported", arg, n,
             4 * kMaxDims);
  for (int64_t i = 0; i < n; i++) {
    if (p[i].kind < TT_IDX_INT || p[i].kind > TT_IDX_TENSOR)
      fail_arg(TT_INVALID_ARG, arg, "{}[{}].kind is {}: must be a TT_IDX_ value", arg, i,
               p[i].kind);
    if (p[i].kind == TT_IDX_TENSOR) tensor_arg(p[i].tensor, arg, index);
  }
  return {p, n};
}
const Scalar& scalar_arg(const tt_scalar* s, const char* arg, int32_t index) {
  if (!s) fail_null(arg, index);
  if (!valid_scalar(s))
    fail_arg(TT_INVALID_ARG, arg, "{}.kind is {}: must be a TT_SCALAR_ value", arg, s->kind);
  return *static_cast<const Scalar*>(s);
}
Dtype dtype_arg(tt_dtype d, const char* arg, int32_t) {
  if (!valid_dtype(d)) fail_arg(TT_DTYPE, arg, "{} is {}: there is no such dtype", arg, d);
  return Dtype(d);
}
Device device_arg(const tt_device* d, const char* arg, int32_t index) {
  if (!d) fail_null(arg, index);
  if (d->type < TT_CPU || d->type > TT_EXT)
    fail_arg(TT_DEVICE, arg, "{}.type is {}: must be TT_CPU, TT_CUDA, TT_META or TT_EXT", arg,
             d->type);
  int32_t limit = 1;
  if (d->type == TT_CUDA) limit = kMaxDevices;
  else if (d->type == TT_EXT) limit = kMaxExt;
  if (d->index < 0 || d->index >= limit)
    fail_arg(TT_DEVICE, arg, "{}.index is {}: there is no such device", arg, d->index);
  Device out{int8_t(d->type), int8_t(d->index)};
  if (d->type == TT_EXT) ext_device(d->index, arg);
  if (d->type == TT_CUDA) runtime_cuda(ctx().rt, d->index, arg);
  return out;
}
Generator* generator_arg(const tt_generator* h, const char* arg, int32_t index) {
  auto* g = reinterpret_cast<Generator*>(const_cast<tt_generator*>(h));
  if (g && g->tag != kTagGenerator) fail_handle(h, arg, index, "generator");
  return g;
}
Str str_arg(const char* s, const char* arg, int32_t index) {
  if (!s) fail_null(arg, index);
  return {s, int64_t(strlen(s))};
}

void fail_enum(int64_t v, const char* arg, int32_t index, const Enumeration& values) {
  char list[256];
  int64_t n = 0;
  const char* name = values.names;
  for (int32_t i = 0; i < values.n; i++) {
    const char* separator = i + 1 < values.n ? ", " : " or ";
    const FmtArg args[] = {i == 0 ? "" : separator, name, i};
    n += format_to(list + n, int64_t(sizeof list) - n, "{}{} ({})", args);
    name += strlen(name) + 1;
  }
  const FmtArg args[] = {arg, v, static_cast<const char*>(list)};
  set_error(tls.error, TT_INVALID_ARG, tls.op, arg, "{} is {}: must be {}", args);
  mark_index(index);
  fail_again();
}

// ---- results ----

template <class T> static void grow(T*& items, int64_t& cap, int64_t need) {
  if (need <= cap) return;
  int64_t more = cap ? cap * 2 : 32;
  while (more < need) more *= 2;
  auto* p = static_cast<T*>(mem_alloc(size_t(more) * sizeof(T)));
  if (items) {
    memcpy(static_cast<void*>(p), items, size_t(cap) * sizeof(T));
    mem_free(items, size_t(cap) * sizeof(T));
  }
  items = p;
  cap = more;
}

void reserve_outs(Ctx& c, int64_t n) {
  if (c.scopes.n_frames) grow(c.scopes.items, c.scopes.cap, c.scopes.n + n);
}
tt_tensor* scope_own(Ctx& c, TensorRef&& t) {
  ScopeStack& s = c.scopes;
  grow(s.items, s.cap, s.n + 1);
  Tensor* p = t.leak();
  s.items[s.n++] = p;
  return handle_of(p);
}

void give_owned(Ctx& c, tt_tensor** out, Tensor* t) { give_inline(c, out, TensorRef::adopt(t)); }
void give(Ctx& c, tt_tensor** a, tt_tensor** b, TensorPair&& p) {
  reserve_outs(c, 2);
  tt_tensor* first = to_handle(c, std::move(p.first));
  *b = to_handle(c, std::move(p.second));
  *a = first;
}
void give(Ctx& c, tt_tensor** a, tt_tensor** b, tt_tensor** d, TensorTriple&& p) {
  reserve_outs(c, 3);
  *a = to_handle(c, std::move(p.first));
  *b = to_handle(c, std::move(p.second));
  *d = to_handle(c, std::move(p.third));
}

void give(Ctx& c, tt_tensor** a, tt_tensor** b, tt_tensor** d, tt_tensor** e, TensorQuad&& p) {
  reserve_outs(c, 4);
  *a = to_handle(c, std::move(p.first));
  *b = to_handle(c, std::move(p.second));
  *d = to_handle(c, std::move(p.third));
  *e = to_handle(c, std::move(p.fourth));
}

void clear_list(tt_tensor** outs, int64_t cap, int64_t* n_outs) noexcept {
  if (n_outs) *n_outs = 0;
  for (int64_t i = 0; outs && i < cap; i++) outs[i] = nullptr;
}
void check_list(tt_tensor** outs, int64_t cap, const int64_t* n_outs) {
  if (!n_outs) fail_null("n_outs", -1);
  if (!outs && cap > 0) fail_null("outs", -1);
}
void give_text(const Text& text, char* buffer, int64_t cap, int64_t* n) {
  *n = text.size();
  const int64_t room = buffer && cap > 0 ? cap : 0;
  if (*n >= room)
    fail_arg(TT_BUFFER_TOO_SMALL, "buffer",
             "buffer has room for {} bytes, the text with its terminating zero needs {}", room,
             *n + 1);
  memcpy(buffer, text.c_str(), size_t(*n) + 1);
}

// Sets *n_outs even if the array is too small.
void give_list(Ctx& c, tt_tensor** outs, int64_t cap, int64_t* n_outs, TensorList&& l) {
  if (!n_outs) fail_null("n_outs", -1);
  *n_outs = l.size();
  if (l.size() > cap || (l.size() && !outs))
    fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {} tensors, the result has {}",
             outs ? cap : 0, l.size());
  reserve_outs(c, l.size());
  for (int64_t i = 0; i < l.size(); i++) outs[i] = to_handle(c, std::move(l[i]));
}

}  // namespace TT_NS

using namespace TT_NS;

// ---- scopes ----

tt_status tt_scope_push(tt_ctx* h) {
  return api_call(h, "scope_push", [&](Ctx& c) {
    grow(c.scopes.frames, c.scopes.cap_frames, c.scopes.n_frames + 1);
    c.scopes.frames[c.scopes.n_frames++] = c.scopes.n;
  });
}

tt_status tt_scope_pop(tt_ctx* h, tt_tensor* const* keep, int64_t n) {
  return api_call(h, "scope_pop", [&](Ctx& c) {
    ScopeStack& s = c.scopes;
    if (!s.n_frames) fail(TT_INVALID_ARG, "there is no open scope");
    const TensorSpan kept = tensors_arg(keep, n, "keep", 0, false);
    PointerMap place;
    SmallVec<int64_t, 8>
        wanted;  // by position: how many of the scope's references to that tensor are kept
    for (const Tensor* t : kept) {
      const int64_t i = place.find_or_add(t, wanted.size());
      if (i == wanted.size()) wanted.push_back(0);
      wanted[i]++;
    }
    const int64_t begin = s.frames[s.n_frames - 1];
    const int64_t end = s.n;
    const bool outer = s.n_frames > 1;
    s.n_frames--;  // nothing fails from here on
    for (int64_t i = end; i-- > begin;) {
      const int64_t at = place.find(s.items[i]);
      if (at >= 0 && wanted[at] > 0) {
        wanted[at]--;
      } else {
        TensorRef::adopt(std::exchange(s.items[i], nullptr)).reset();
      }
    }
    s.n = begin;
    for (int64_t i = begin; i < end; i++) {
      Tensor* t = s.items[i];
      if (!t) continue;
      if (outer) {
        s.items[s.n++] = t;
      } else {
        to_handle(c, TensorRef::adopt(t));
      }
    }
  });
}
