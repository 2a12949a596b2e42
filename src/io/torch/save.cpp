#include "core/ctx.h"
#include "dispatch/key.h"
#include "io/json.h"
#include "io/torch/pickler.h"
#include "io/torch/structure_text.h"
#include "io/torch/file.h"

#include <string.h>

namespace TT_NS {

namespace {

// Converts a structure to a pickle.
class StructureReader : JsonReader {
 public:
  StructureReader(char* text, int64_t bytes, const StateDict& state, Pickler& out)
      : JsonReader({TT_INVALID_ARG, "structure", "structure", 0, true}, text, bytes),
        state_(state),
        out_(out) {}

  void run() {
    for (bool more = true; more;) {
      value();
      while ((more = !frames_.empty()) && !next()) {}
    }
    if (peek(), p_ != end_) bad(p_, "text after the structure");
  }

 private:
  struct Frame {
    PickleKind kind;
    bool key, keys_below;  // the next value is a key; this frame is part of a key itself
  };

  // Called after a value, or at the start of a container. Returns whether another value follows,
  // else closes the container.
  bool next() {
    Frame& f = frames_.back();
    const bool first = begun_;
    begun_ = false;
    if (has_pairs(f.kind) && f.key && !first) {
      f.key = false;
      expect(',', "expected , after the key");
      return true;
    }
    if (has_pairs(f.kind) && !first) expect(']', "expected ] after the value");
    if (peek() == ']') {
      p_++;
      close(f.kind);
      frames_.pop_back();
      return false;
    }
    if (!first) expect(',', "expected , or ]");
    if (has_pairs(f.kind)) expect('[', "expected a pair of key and value");
    f.key = has_pairs(f.kind);
    return true;
  }

  void open(PickleKind kind, const char* at) {
    const bool in_key = !frames_.empty() && (frames_.back().key || frames_.back().keys_below);
    if (in_key && kind != PickleKind::kTuple && kind != PickleKind::kSize)
      bad(at, "a dict key is a mutable container");
    if (frames_.size() == kMaxNesting) bad(at, "the structure is nested too deeply");
    expect('[', "expected a list");
    if (kind == PickleKind::kList) out_.op(PickleOp::kEmptyList);
    if (kind == PickleKind::kDict) out_.op(PickleOp::kEmptyDict);
    if (kind == PickleKind::kOrdered) out_.ordered();
    if (kind == PickleKind::kCounter) {
      out_.name(PickleName::kCounter);
      out_.op(PickleOp::kEmptyDict);
    }
    if (kind == PickleKind::kSize) out_.name(PickleName::kSize);
    out_.op(PickleOp::kMark);
    frames_.push_back({kind, false, in_key});
    begun_ = true;
  }
  void close(PickleKind kind) {
    expect('}', "expected } after the container");
    const bool tuple = kind == PickleKind::kTuple || kind == PickleKind::kSize;
    if (tuple) out_.op(PickleOp::kTuple);
    else out_.op(kind == PickleKind::kList ? PickleOp::kAppends : PickleOp::kSetItems);
    if (kind == PickleKind::kCounter || kind == PickleKind::kSize) out_.call(PickleOp::kTuple1);
  }

  // Reads a value, or the start of a container.
  void value() {
    switch (peek()) {
      case '{': return object();
      case '"': return out_.text(string());
      case 'n': return word("null", PickleOp::kNone);
      case 't': return word("true", PickleOp::kTrue);
      case 'f': return word("false", PickleOp::kFalse);
      default: return integer();
    }
  }
  void word(const char* want, PickleOp o) {
    const int64_t n = int64_t(strlen(want));
    if (end_ - p_ < n || memcmp(p_, want, size_t(n)) != 0) bad(p_, "expected a value");
    p_ += n;
    out_.op(o);
  }
  void integer() {
    const char* at = p_;
    uint8_t b[kMaxIntBytes + 1] = {};
    int n = 1;
    const bool negative = p_ < end_ && *p_ == '-';
    p_ += negative;
    const char* digits = p_;
    for (; p_ < end_ && *p_ >= '0' && *p_ <= '9'; p_++) {
      int carry = *p_ - '0';
      for (int i = 0; i < n; i++) {
        b[i] = uint8_t(carry += 10 * b[i]);
        carry >>= 8;
      }
      if (carry) b[n++] = uint8_t(carry);
      if (n == kMaxIntBytes) bad(at, "int of more than 254 bytes");
    }
    if (p_ == digits) bad(at, p_ == end_ ? "the text ends too early" : "expected a value");
    if (p_ < end_ && (*p_ == '.' || *p_ == 'e' || *p_ == 'E'))
      bad(at, "a float must be written as {\"float\": \"0x1.8p+1\"}");
    if (n < 4) n = 3;
    for (int i = 0, carry = 1; negative && i <= n; i++) {
      b[i] = uint8_t(carry += uint8_t(~b[i]));
      carry >>= 8;
    }
    int32_t small;
    memcpy(&small, b, 4);
    if (n == 3) out_.integer(small);
    else out_.integer(b, n + 1);
  }
  void object() {
    p_++;
    peek();
    const char* at = p_;
    const char* kind = string().ptr;
    expect(':', "expected : after the kind");
    for (int k = 0; k <= int(PickleKind::kSize); k++)
      if (strcmp(kind, kContainerNames[k]) == 0) return open(PickleKind(k), at);
    peek();
    const char* where = p_;
    scalar(kind, at, string(), where);
    expect('}', "expected } after the value");
  }
  void scalar(const char* kind, const char* at, Span<const char> s, const char* where) {
    const bool parameter = strcmp(kind, "parameter") == 0;
    if (parameter || strcmp(kind, "tensor") == 0) {
      hint_ = state_.find(s.ptr, hint_);
      if (hint_ < 0)
        fail_arg(TT_INVALID_ARG, "structure",
                 "structure names \"{}\", which is not one of the tensors", s);
      const Tensor& t = state_.entries[hint_].tensor;
      out_.tensor(hint_, parameter, t.flags & kRequiresGrad || t.grad_fn);
      return void(hint_++);
    }
    if (strcmp(kind, "float") == 0) {
      double v;
      if (!parse_hex(s, &v)) bad(where, "expected a hexadecimal float such as 0x1.8p+1");
      return out_.real(v);
    }
    if (strcmp(kind, "dtype") == 0) {
      if (dtype_named(s) == Dtype::kNone) bad(where, "unknown dtype");
      return out_.name("torch\n", s.ptr, "\n");
    }
    if (strcmp(kind, "device") != 0) bad(at, "unknown kind of value");
    out_.name(PickleName::kDevice);
    out_.text(s);
    out_.call(PickleOp::kTuple1);
  }

  const StateDict& state_;
  Pickler& out_;
  SmallVec<Frame, 8> frames_;
  bool begun_ = false;  // the innermost frame has no items yet
  int64_t hint_ = 0;    // likely position of the next name
};

void put_state_dict(const StateDict& state, Pickler& out) {
  out.ordered();
  out.op(PickleOp::kMark);
  for (int64_t i = 0; i < state.entries.size(); i++) {
    const Text& n = state.entries[i].name;
    check_utf8({n.c_str(), n.size()}, "tensors", i);
    out.text({n.c_str(), n.size()});
    out.tensor(i, false, false);
  }
  out.op(PickleOp::kSetItems);
}

void put_structure(const StateDict& state, const char* structure, Pickler& out) {
  const int64_t n = int64_t(strlen(structure));
  SmallVec<char, 24> copy;
  copy.reserve(n + 1);
  copy.append({structure, n + 1});
  StructureReader(copy.data(), n, state, out).run();
  for (int64_t i = 0; i < state.entries.size(); i++)
    if (!out.has(i))
      fail_arg(TT_INVALID_ARG, "structure", "structure does not name \"{}\" of tensors",
               state.entries[i].name.c_str());
}

}  // namespace

void save_torch(const char* path, const StateDict& state, const char* structure) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const TorchLayout layout(state);
  Pickler pickler(layout);
  if (structure) put_structure(state, structure, pickler);
  else put_state_dict(state, pickler);
  const Span<const char> pickle = pickler.finish();
  if (pickle.n > INT32_MAX)
    fail_arg(TT_INVALID_ARG, "structure", "structure is too long: its pickle exceeds 2 GB");
  NewFile file(path);
  ZipWriter zip(file);
  zip.add("archive/data.pkl", pickle.ptr, pickle.n);
  zip.add("archive/byteorder", "little", 6);
  for (int64_t i = 0; i < layout.size(); i++)
    if (layout.key(i) == i) layout.write(zip, Text("archive/data/").add(i).c_str(), i);
  zip.add("archive/version", "3\n", 2);
  zip.finish();
  file.commit();
}

}  // namespace TT_NS
