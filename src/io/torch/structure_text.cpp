#include "io/torch/structure_text.h"

#include "base/pointer_map.h"
#include "base/text/utf8.h"
#include "io/json.h"

#include <string.h>

namespace TT_NS {

namespace {

// Returns the decimal digits of an n-byte int in two's complement, little-endian; modifies b.
Text decimal(uint8_t* b, int n) {
  const bool negative = b[n - 1] & 0x80;
  for (int i = 0, carry = 1; negative && i < n; i++) {
    b[i] = uint8_t(carry += uint8_t(~b[i]));
    carry >>= 8;
  }
  char digits[3 * kMaxIntBytes];
  int at = sizeof digits;
  do {
    uint32_t rest = 0;
    for (int i = n; i-- > 0;) {
      rest = rest << 8 | b[i];
      b[i] = uint8_t(rest / 10);
      rest %= 10;
    }
    digits[--at] = char('0' + rest);
    while (n && b[n - 1] == 0) n--;
  } while (n);
  if (negative) digits[--at] = '-';
  Text out;
  return out.add({digits + at, int64_t(sizeof digits) - at});
}

class Writer {
 public:
  Writer(const Unpickler& p, const TorchStorages& s, int64_t max_bytes, StateDict& state)
      : p_(p), storages_(s), out_(state.structure), max_bytes_(max_bytes), state_(state) {}

  void run(PickleValue root) {
    value(root);
    while (!frames_.empty()) {
      Frame& f = frames_.back();
      const int64_t i = f.next++;
      if (f.pairs && i && i % 2 == 0) put("]");
      path_.cut(f.path);
      if (f.cell < 0) {
        put("]}");
        frames_.pop_back();
        continue;
      }
      const PickleCell cell = p_.cell(f.cell);
      f.cell = cell.next;
      if (i) put(",");
      if (!f.pairs) step(i);
      else if (i % 2 == 0) {
        f.key = cell.value;
        put("[");
        key_step(f.key, i / 2);
      } else key_step(f.key, i / 2);
      value(cell.value);
    }
  }

 private:
  struct Frame {
    int32_t cell;
    PickleValue key;
    int64_t next, path;  // index of the item; length of the container's own path
    bool pairs;
  };

  void put(const char* s) { put({s, int64_t(strlen(s))}); }
  void put(Span<const char> s) {
    if (out_.size() + s.n > max_bytes_)
      p_.bad(0, "the structure of the file is longer than {} bytes of text", max_bytes_);
    out_.add(s);
  }
  void put_escape(uint32_t c) {
    char text[] = "\\u....";
    for (int k = 0; k < 4; k++) text[2 + k] = "0123456789abcdef"[c >> (12 - 4 * k) & 15];
    put(text);
  }
  // Unpaired surrogates, which Python strings may contain, are escaped.
  void put_string(Span<const char> s, int64_t at) {
    put("\"");
    for (const char* c = s.ptr; c < s.end();) {
      const auto* u = reinterpret_cast<const uint8_t*>(c);
      const int n = utf8_bytes(c, s.end());
      if (n == 0 && s.end() - c >= 3 && u[0] == 0xed && u[1] > 0x9f && u[1] < 0xc0 && u[2] > 0x7f &&
          u[2] < 0xc0) {
        put_escape(0xd000u | uint32_t(u[1] & 63) << 6 | (u[2] & 63));
        c += 3;
        continue;
      }
      if (n == 0) p_.bad(at, "text is not UTF-8");
      if (*u < 0x20) put_escape(*u);
      else if (*c == '"' || *c == '\\') {
        put("\\");
        put({c, 1});
      } else put({c, n});
      c += n;
    }
    put("\"");
  }
  void put_one(const char* kind, Span<const char> text) {
    put("{\"");
    put(kind);
    put("\":");
    put_string(text, 0);
    put("}");
  }

  // ---- paths ----
  Text& next_step() { return path_.empty() ? path_ : path_.add("."); }
  void step(int64_t i) { next_step().add(i); }
  // Appends a text or an int as such, and for other keys their index. Characters that C strings or
  // UTF-8 cannot represent become "?".
  void key_step(PickleValue key, int64_t i) {
    uint8_t bytes[kMaxIntBytes + 1];
    if (const int n = p_.int_bytes(key, bytes))
      return void(next_step().add(decimal(bytes, n).c_str()));
    if (key < 0 || p_.op(key) != PickleOp::kText) return step(i);
    const Span<const char> s = p_.text(key);
    next_step();
    for (const char* c = s.ptr; c < s.end();) {
      const int n = utf8_bytes(c, s.end());
      path_.add(n && *c ? Span<const char>(c, n) : Span<const char>("?", 1));
      c += n ? n : 1;
    }
  }
  // Returns a path that no other tensor has; names with equal hashes count as equal.
  Text name() {
    if (path_.empty()) path_.add("tensor");
    Text made(path_.c_str());
    while (!taken_.add(reinterpret_cast<const void*>(hash(made)))) {
      made.cut(path_.size());
      made.add("#").add(++clashes_);
    }
    return made;
  }
  static uintptr_t hash(const Text& t) {  // FNV-1a
    uint64_t h = 0xcbf29ce484222325;
    for (const char* c = t.c_str(); *c; c++) h = (h ^ uint8_t(*c)) * 0x100000001b3;
    return h | 1;
  }

  // ---- values ----
  void plain(PickleValue v) {
    uint8_t bytes[kMaxIntBytes + 1];
    char digits[32];
    Dtype dtype = Dtype::kNone;
    switch (p_.op(v)) {
      case PickleOp::kNone: return put("null");
      case PickleOp::kTrue: return put("true");
      case PickleOp::kFalse: return put("false");
      case PickleOp::kText: return put_string(p_.text(v), v);
      case PickleOp::kDouble: return put_one("float", {digits, format_hex(digits, p_.real(v))});
      case PickleOp::kGlobal:
        if (p_.name(v, &dtype) != PickleName::kDtype) p_.bad(v, "unexpected class as a value");
        return put_one("dtype",
                       {kDtypeNames[int(dtype)], int64_t(strlen(kDtypeNames[int(dtype)]))});
      default: return put(decimal(bytes, p_.int_bytes(v, bytes)).c_str());
    }
  }
  void tensor(const char* kind, int32_t number) {
    if (number >= names_.size()) names_.resize(number + 1, -1);
    if (names_[number] < 0) {
      const Text made = name();
      if (out_.size() + made.size() > max_bytes_) put(made.c_str());  // fails
      names_[number] = int32_t(state_.entries.size());
      state_.append(made.c_str(), TensorRef::share(&storages_.tensor_at(number)));
    }
    const Text& n = state_.entries[names_[number]].name;
    put_one(kind, {n.c_str(), n.size()});
  }
  void device(const PickleObject& o) {
    const PickleCell& first = p_.cell(o.first);
    Text text;
    text.add(p_.text(first.value));
    int64_t index;
    if (first.next >= 0 && p_.number(p_.cell(first.next).value, &index)) text.add(":").add(index);
    put_one("device", {text.c_str(), text.size()});
  }
  void value(PickleValue v) {
    if (v >= 0) return plain(v);
    const PickleObject& o = p_.object(v);
    switch (o.kind) {
      case PickleKind::kTensor: return tensor("tensor", o.first);
      case PickleKind::kParameter: return tensor("parameter", o.first);
      case PickleKind::kDevice: return device(o);
      case PickleKind::kStorage: p_.bad(0, "unexpected storage as a value");
      default: break;
    }
    put("{\"");
    put(kContainerNames[int(o.kind)]);
    put("\":[");
    frames_.push_back({o.first, 0, 0, path_.size(), has_pairs(o.kind)});
  }

  const Unpickler& p_;
  const TorchStorages& storages_;
  Text& out_;
  int64_t max_bytes_;
  StateDict& state_;
  Text path_;
  SmallVec<Frame, 8> frames_;
  SmallVec<int32_t, 8> names_;  // of the tensors: index of their entry in state_, -1: none yet
  PointerMap taken_;            // hashes of names
  int64_t clashes_ = 0;
};

}  // namespace

void write_structure(const Unpickler& pickle, const TorchStorages& storages, PickleValue root,
                     int64_t max_bytes, StateDict* state) {
  Writer(pickle, storages, max_bytes, *state).run(root);
}

}  // namespace TT_NS
