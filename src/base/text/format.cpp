// format_to(): "{}" templates over FmtArg values.
#include "base/error.h"
#include "base/text/format.h"
#include "base/arith.h"

#include <string.h>

namespace TT_NS {

namespace {

// Counts all bytes and stores those that fit.
struct Sink {
  char* out;
  int64_t cap, n = 0;
  void put(const char* s, int64_t len) {
    const int64_t room = cap - 1 - n;
    const int64_t fits = min(len, room);
    if (fits > 0) memcpy(out + n, s, size_t(fits));
    n += len;
  }
  void put(const char* s) { put(s, int64_t(strlen(s))); }
  void put_int(int64_t v) {
    char t[20];
    put(t, format_int(t, v));
  }
};

const char* dtype_text(int64_t dtype) {
  static const char* const names[] = {
      "no dtype", "bool",    "uint8",   "int8",      "int16",      "int32",  "int64",  "float16",
      "bfloat16", "float32", "float64", "complex64", "complex128", "uint16", "uint32", "uint64"};
  return dtype >= 0 && dtype <= TT_U64 ? names[dtype] : "unknown dtype";
}

void put_device(Sink* s, int64_t device) {
  static const char* const names[] = {"no device", "cpu", "cuda", "meta", "ext"};
  const int32_t type = int32_t(device >> 32);
  const int32_t index = int32_t(device);
  s->put(type >= 0 && type <= TT_EXT ? names[type] : "unknown device");
  if (type != TT_CUDA && type != TT_EXT) return;
  s->put(":");
  s->put_int(index);
}

void put_shape(Sink* s, const int64_t* shape, int64_t n) {
  s->put("[");
  for (int64_t i = 0; i < n; i++) {
    if (i) s->put(",");
    s->put_int(shape[i]);
  }
  s->put("]");
}

void put_arg(Sink* s, const FmtArg& a) {
  char t[32];
  switch (a.kind) {
    case FmtArg::kInt: s->put_int(a.i); break;
    case FmtArg::kUint: s->put(t, format_uint(t, a.u)); break;
    case FmtArg::kFloat: s->put(t, format_double(t, a.f, false)); break;
    case FmtArg::kStr: {
      const char* text = a.s ? a.s : "NULL";
      s->put(text, a.s && a.n >= 0 ? a.n : int64_t(strlen(text)));
      break;
    }
    case FmtArg::kShape: put_shape(s, a.shape, a.n); break;
    case FmtArg::kDtype: s->put(dtype_text(a.i)); break;
    case FmtArg::kDevice: put_device(s, a.i); break;
  }
}

}  // namespace

int64_t format_to(char* out, int64_t cap, const char* fmt, Span<const FmtArg> args) noexcept {
  Sink s{out, cap};
  int64_t next = 0;
  while (*fmt) {
    const char* brace = strstr(fmt, "{}");
    if (!brace || next == args.n) {
      s.put(fmt);
      break;
    }
    s.put(fmt, brace - fmt);
    put_arg(&s, args[next++]);
    fmt = brace + 2;
  }
  if (cap > 0) out[s.n < cap ? s.n : cap - 1] = 0;
  return s.n;
}

}  // namespace TT_NS
