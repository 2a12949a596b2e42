// The wire format of protobuf (protobuf.dev, "Encoding"): fields of a message, one after the other.
// Proto writes them, ProtoMessage reads them.
#pragma once

#include "base/error.h"
#include "base/name_map.h"
#include "base/small_vec.h"

#include <string.h>

namespace TT_NS {

class Proto {
 public:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_.push_back(char(v | 0x80));
    bytes_.push_back(char(v));
  }
  void integer(int field, int64_t v) {
    varint(uint64_t(field) << 3);
    varint(uint64_t(v));
  }
  void real(int field, float v) {
    varint(uint64_t(field) << 3 | 5);
    append(&v, 4);
  }
  void bytes(int field, const void* data, int64_t n) {
    varint(uint64_t(field) << 3 | 2);
    varint(uint64_t(n));
    append(data, n);
  }
  void text(int field, const char* s) { bytes(field, s, int64_t(strlen(s))); }
  void message(int field, const Proto& m) { bytes(field, m.bytes_.data(), m.bytes_.size()); }
  void append(const Proto& m) { append(m.bytes_.data(), m.bytes_.size()); }
  const SmallVec<char, 1>& all() const { return bytes_; }

 private:
  void append(const void* data, int64_t n) { bytes_.append({static_cast<const char*>(data), n}); }
  SmallVec<char, 1> bytes_;
};

inline bool is(Name name, const char* text) { return equal(name, name_of(text)); }

// FORMAT: not an ONNX model.
[[noreturn]] void fail_model(const char* what);

struct ProtoField {
  int64_t number = 0;
  uint64_t varint = 0;     // wire type 0; the bits of types 1 and 5
  Span<const char> bytes;  // wire type 2
  int wire = 0;
  int64_t integer() const { return int64_t(varint); }
  float real() const {
    const auto bits = uint32_t(varint);
    float v;
    memcpy(&v, &bits, 4);
    return v;
  }
};

// The fields of a message, one after the other.
class ProtoMessage {
 public:
  explicit ProtoMessage(Span<const char> bytes) : at_(bytes.ptr), end_(bytes.ptr + bytes.n) {}
  bool next(ProtoField& f) {
    if (at_ == end_) return false;
    const uint64_t tag = varint();
    f.number = int64_t(tag >> 3);
    f.wire = int(tag & 7);
    f.bytes = {};
    f.varint = 0;
    if (f.wire == 0) {
      f.varint = varint();
    } else if (f.wire == 1 || f.wire == 5) {
      memcpy(&f.varint, take(f.wire == 1 ? 8 : 4), f.wire == 1 ? 8 : 4);
    } else if (f.wire == 2) {
      const uint64_t n = varint();
      if (n > uint64_t(end_ - at_)) fail_model("a field is longer than its message");
      f.bytes = {take(int64_t(n)), int64_t(n)};
    } else {
      fail_model("a field has an unknown wire type");
    }
    return true;
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = uint8_t(*take(1));
      v |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    fail_model("a number has more than 10 bytes");
  }
  bool done() const { return at_ == end_; }

 private:
  const char* take(int64_t n) {
    if (n > end_ - at_) fail_model("it ends inside a field");
    const char* p = at_;
    at_ += n;
    return p;
  }
  const char *at_, *end_;
};

// A repeated number: one of the field, or several packed.
template <int N> void add_integers(SmallVec<int64_t, N>& list, const ProtoField& f) {
  if (f.wire != 2) {
    list.push_back(f.integer());
    return;
  }
  for (ProtoMessage m(f.bytes); !m.done();) list.push_back(int64_t(m.varint()));
}

// A repeated float: one of the field, or several packed.
template <int N> void add_reals(SmallVec<float, N>& list, const ProtoField& f) {
  if (f.wire != 2) {
    list.push_back(f.real());
    return;
  }
  for (int64_t at = 0; at + 4 <= f.bytes.n; at += 4) {
    float v;
    memcpy(&v, f.bytes.ptr + at, 4);
    list.push_back(v);
  }
}

}  // namespace TT_NS
