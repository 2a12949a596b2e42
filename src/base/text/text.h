// Text: a growable zero-terminated string; short ones are stored inline.
#pragma once

#include "base/text/format.h"
#include "base/small_vec.h"

#include <string.h>

namespace TT_NS {

class Text {
 public:
  Text() { chars_.push_back(0); }
  explicit Text(const char* s) : Text() { add(s); }
  const char* c_str() const { return chars_.data(); }
  int64_t size() const { return chars_.size() - 1; }
  bool empty() const { return size() == 0; }
  Span<const char> span() const { return {c_str(), size()}; }
  bool is(const char* s) const { return strcmp(c_str(), s) == 0; }
  Text& add(const char* s) { return add(Span<const char>(s, int64_t(strlen(s)))); }
  Text& add(Span<const char> s) {
    chars_.reserve(chars_.size() + s.n);
    chars_.pop_back();
    chars_.append(s);
    chars_.push_back(0);
    return *this;
  }
  Text& add(int64_t v) {
    char digits[24];
    return add({digits, format_int(digits, v)});
  }
  Text& add_double(double v) {
    char digits[32];
    return add({digits, format_double(digits, v, false)});
  }
  void cut(int64_t size) {
    chars_.resize(size);
    chars_.push_back(0);
  }

 private:
  SmallVec<char, 24> chars_;
};

}  // namespace TT_NS
