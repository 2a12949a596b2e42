// JsonReader: a cursor over JSON text, which it changes: strings are unescaped where they stand.
#pragma once

#include "base/error.h"

namespace TT_NS {

// Where a text comes from, for messages: byte `at` of it is byte `begin + at` of `name`.
struct JsonSource {
  tt_status code;
  const char* arg;
  const char* name;
  int64_t begin;
  bool any_text;  // strings may hold zero characters and halves of surrogate pairs (as three bytes)
};

class JsonReader {
 public:
  // text[bytes] is the reader's, too.
  JsonReader(const JsonSource& from, char* text, int64_t bytes)
      : from_(from), text_(text), p_(text), end_(text + bytes) {}

 protected:
  [[noreturn]] TT_COLD void bad(const char* at, const char* why) const;
  char peek();  // the next character that is no white space; 0 at the end
  void expect(char c, const char* why);
  Span<const char> string();  // zero-terminated
  // member(key, where it stands) reads the value of each member of the object that begins here.
  template <class F> void each_member(const F& member) {
    expect('{', "an object must stand here");
    if (peek() == '}') return void(p_++);
    for (;;) {
      peek();
      const char* at = p_;
      const char* key = string().ptr;
      expect(':', "a : must follow the key");
      member(key, at);
      if (peek() == '}') return void(p_++);
      expect(',', "a , or } must stand here");
    }
  }

  JsonSource from_;
  char *text_, *p_, *end_;

 private:
  uint32_t hex4();
  uint32_t escaped();
};

int hex_digit(char c);  // -1: none
// The bytes of the first character are valid UTF-8: their number, else 0.
int utf8_bytes(const char* p, const char* end);

}  // namespace TT_NS
