#include "core/print.h"

#include "base/text/format.h"
#include "core/ctx.h"

#include <math.h>
#include <string.h>

namespace TT_NS {

namespace {

constexpr int kMaxText = 352;  // bytes of one number

// Text in a buffer that may be too small: counts past the end.
struct Writer {
  char* out;
  int64_t cap;
  int64_t n = 0;
  int64_t line = 0;  // characters since the last line break
  void put(const char* s, int64_t len) {
    for (int64_t i = 0; i < len; i++, n++) {
      if (n < cap - 1) out[n] = s[i];
      line = s[i] == '\n' ? 0 : line + 1;
    }
  }
  void put(const char* s) { put(s, int64_t(strlen(s))); }
  void put_int(int64_t v) {
    char digits[24];
    put(digits, format_int(digits, v));
  }
  void space(int64_t count) {
    while (count-- > 0) put(" ", 1);
  }
  // Writes (2, 3), (4,) or ().
  void put_shape(Ints sizes) {
    put("(");
    for (int64_t i = 0; i < sizes.n; i++) {
      if (i) put(", ");
      put_int(sizes[i]);
    }
    put(sizes.n == 1 ? ",)" : ")");
  }
};

// The common format of all numbers of a tensor, or of all real or imaginary parts.
struct Column {
  bool real = false;     // floating point
  bool integers = true;  // (real) every finite value is an integer: written "1."
  bool scientific = false;
  bool is_unsigned = false;
  int digits = 4;  // after the point
  int64_t width = 1;
  // magnitudes of the finite nonzero values
  double low = 0;
  double high = 0;

  int write(char* out, double v, int64_t i, bool boolean) const;
  void look(double v);
  void measure(double v, int64_t i, bool boolean);
};

int Column::write(char* out, double v, int64_t i, bool boolean) const {
  if (boolean) return int(strlen(strcpy(out, i ? "True" : "False")));
  if (!real) return int(is_unsigned ? format_uint(out, uint64_t(i)) : format_int(out, i));
  if (scientific) return format_sci(out, v, digits);
  if (!integers) return format_fixed(out, v, digits);
  int n = format_fixed(out, v, 0);
  if (isfinite(v) && (n == 0 || out[n - 1] != '.')) out[n++] = '.';
  return n;
}

void Column::look(double v) {
  if (!isfinite(v) || v == 0) return;
  const double a = fabs(v);
  if (low == 0 || a < low) low = a;
  if (a > high) high = a;
  if (a < 0x1p53 && v != double(int64_t(v))) integers = false;
}

// Skips zeros, infinities and nan: they are padded to the width of the others.
void Column::measure(double v, int64_t i, bool boolean) {
  if (real && (!isfinite(v) || v == 0)) return;
  char text[kMaxText];
  const int64_t n = write(text, v, i, boolean);
  if (n > width) width = n;
}

class Printer {
 public:
  Printer(const Tensor& t, Writer& w)
      : t_(t),
        w_(w),
        opts_(ctx().print),
        complex_(is_complex(t.dtype)),
        summarize_(t.numel > opts_.threshold) {}
  void print();

 private:
  template <class F> void each(int64_t dim, const char* at, F f) const;
  void format_columns();
  void put_dim(int64_t dim, const char* at, int64_t indent);
  void put_row(const char* at, int64_t indent);
  void put_element(const char* at);
  int64_t pad(const Column& c, char* text, double v, int64_t i) const;

  int64_t step(int64_t dim) const { return t_.size(dim) > 1 ? t_.byte_stride(dim) : 0; }
  bool cut(int64_t dim) const { return summarize_ && t_.size(dim) > 2 * opts_.edgeitems; }

  const Tensor& t_;
  Writer& w_;
  const PrintOptions opts_;
  bool complex_, summarize_;
  Column re_, im_;
};

// Calls f for every element that is shown.
template <class F> void Printer::each(int64_t dim, const char* at, F f) const {
  if (dim == t_.ndim) return f(load_scalar(at, t_.dtype));
  const int64_t n = t_.size(dim);
  for (int64_t i = 0; i < n; i++) {
    if (cut(dim) && i == opts_.edgeitems) i = n - opts_.edgeitems;
    each(dim + 1, at + i * step(dim), f);
  }
}

void Printer::format_columns() {
  re_.real = im_.real = complex_ || is_float(t_.dtype);
  re_.is_unsigned = t_.dtype == Dtype::kU64;
  re_.digits = im_.digits = int(opts_.precision);
  auto parts = [&](auto visit) {
    each(0, t_.data, [&](const Scalar& s) {
      visit(re_, s.real(), s.i);
      if (complex_) visit(im_, s.imag(), 0);
    });
  };
  if (re_.real) {
    parts([](Column& c, double v, int64_t) { c.look(v); });
    for (Column* c : {&re_, &im_}) {
      const bool has_nonzero = c->low != 0;
      c->scientific = has_nonzero && opts_.is_scientific(c->low, c->high);
    }
  }
  const bool boolean = t_.dtype == Dtype::kBool;
  parts([&](Column& c, double v, int64_t i) { c.measure(v, i, boolean); });
}

// Writes the number right-aligned in its column. Returns the length.
int64_t Printer::pad(const Column& c, char* text, double v, int64_t i) const {
  char number[kMaxText];
  const int64_t n = c.write(number, v, i, t_.dtype == Dtype::kBool);
  const int64_t before = n < c.width ? c.width - n : 0;
  memset(text, ' ', size_t(before));
  memcpy(text + before, number, size_t(n));
  return before + n;
}

void Printer::put_element(const char* at) {
  const Scalar s = load_scalar(at, t_.dtype);
  char text[2 * kMaxText];
  w_.put(text, pad(re_, text, s.real(), s.i));
  if (!complex_) return;
  const int64_t n = pad(im_, text, s.imag(), 0);
  int64_t begin = 0;
  while (begin < n && text[begin] == ' ') begin++;
  if (text[begin] != '-') w_.put("+");
  w_.put(text + begin, n - begin);
  w_.put("j");
}

// Breaks the line when the width is full; "..." counts as one element.
void Printer::put_row(const char* at, int64_t indent) {
  const int64_t dim = t_.ndim - 1;
  const int64_t n = t_.size(dim);
  const int64_t length = re_.width + 2 + (complex_ ? im_.width + 1 : 0);
  const int64_t fit = (opts_.linewidth - indent) / length;
  const int64_t per_line = max<int64_t>(fit, 1);
  w_.put("[");
  for (int64_t i = 0, shown = 0; i < n; i++, shown++) {
    if (shown) w_.put(",");
    if (shown && shown % per_line == 0) {
      w_.put("\n");
      w_.space(indent + 1);
    } else if (shown) {
      w_.put(" ");
    }
    if (cut(dim) && i == opts_.edgeitems) {
      w_.put(" ...");
      i = n - opts_.edgeitems - 1;
    } else {
      put_element(at + i * step(dim));
    }
  }
  w_.put("]");
}

void Printer::put_dim(int64_t dim, const char* at, int64_t indent) {
  if (dim == t_.ndim) return put_element(at);
  if (dim == t_.ndim - 1) return put_row(at, indent);
  const int64_t n = t_.size(dim);
  w_.put("[");
  for (int64_t i = 0, shown = 0; i < n; i++, shown++) {
    if (shown) {
      w_.put(",");
      for (int64_t d = dim + 1; d < t_.ndim; d++) w_.put("\n");
      w_.space(indent + 1);
    }
    if (cut(dim) && i == opts_.edgeitems) {
      w_.put("...");
      i = n - opts_.edgeitems - 1;
    } else {
      put_dim(dim + 1, at + i * step(dim), indent + 1);
    }
  }
  w_.put("]");
}

void Printer::print() {
  format_columns();
  put_dim(0, t_.data, w_.line);
}

// "key=value" after the values, on the same line if it fits.
class Suffixes {
 public:
  Suffixes(Writer& w, int64_t indent) : w_(w), indent_(indent), line_(w.line + 2) {}
  // extra: additional characters that PyTorch writes.
  template <class F> void add(F write, int64_t extra = 0) {
    Writer probe{nullptr, 0};
    write(probe);
    const int64_t n = probe.n + extra;
    if (line_ + n + 2 > ctx().print.linewidth) {
      w_.put(",\n");
      w_.space(indent_);
      line_ = indent_ + n;
    } else {
      w_.put(", ");
      line_ += n + 2;
    }
    write(w_);
  }

 private:
  Writer& w_;
  int64_t indent_, line_;
};

// Writes PyTorch's name of a node: MulBackward0 for mul, ScaleBackward for a function Scale.
void put_node(Writer& w, const char* op) {
  const bool function = *op >= 'A' && *op <= 'Z';
  for (bool first = true; *op; op++) {
    const bool skip = *op == '_' && !function;
    const char letter = first && *op >= 'a' && *op <= 'z' ? char(*op - 'a' + 'A') : *op;
    if (!skip) w.put(&letter, 1);
    first = skip;
  }
  w.put(function ? "Backward" : "Backward0");
}

void put_name(Writer& w, FmtArg what) {
  char text[40];
  w.put(text, format_to(text, sizeof text, "{}", {&what, 1}));
}

}  // namespace

int64_t print_tensor(char* out, int64_t cap, const Tensor& t, const PrintFacts& facts) noexcept {
  Writer w{out, cap};
  w.put("tensor(");
  const int64_t indent = w.line;
  const bool meta = t.device.type == TT_META;
  const bool empty = t.numel == 0;
  if (meta) {
    w.put("...");
  } else if (empty) {
    w.put("[]");
  } else {
    Printer(t, w).print();
  }
  Suffixes more(w, indent);
  if (facts.device.type != TT_CPU)
    more.add([&](Writer& x) {
      x.put("device='");
      put_name(x, fmt(facts.device));
      x.put("'");
    });
  if (meta || (empty && t.ndim != 1))
    more.add([&](Writer& x) {
      x.put("size=");
      x.put_shape(t.sizes());
    });
  const bool natural =
      t.dtype == default_float() ||
      (!meta && !empty &&
       (t.dtype == Dtype::kI64 || t.dtype == Dtype::kBool || t.dtype == default_complex()));
  constexpr int64_t kPrefix = 6;  // "torch."
  if (!natural)
    more.add(
        [&](Writer& x) {
          x.put("dtype=");
          put_name(x, fmt(t.dtype));
        },
        kPrefix);
  if (facts.grad_fn) {
    more.add([&](Writer& x) {
      x.put("grad_fn=<");
      put_node(x, facts.grad_fn);
      x.put(">");
    });
  } else if (facts.requires_grad) {
    more.add([](Writer& x) { x.put("requires_grad=True"); });
  }
  w.put(")");
  if (cap > 0) out[w.n < cap ? w.n : cap - 1] = 0;
  return w.n;
}

}  // namespace TT_NS
