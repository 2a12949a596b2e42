// The wire format of protobuf (protobuf.dev, "Encoding"): fields of a message, one after the other.
#pragma once

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

}  // namespace TT_NS
