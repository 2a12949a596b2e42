// JsonReader: a cursor over JSON text, which it modifies: strings are unescaped in place.
#pragma once

#include "base/error.h"

namespace TT_NS {

// Origin of a text, for messages: byte `at` of the text is byte `begin + at` of `name`.
struct JsonSource {
  tt_status code;
  const char* arg;
  const char* name;
  int64_t begin;
  bool any_text;  // strings may contain zero characters and unpaired surrogates (as three bytes)
};

class JsonReader {
 public:
  // text[bytes] must be writable, too.
  JsonReader(const JsonSource& from, char* text, int64_t bytes)
      : from_(from), text_(text), p_(text), end_(text + bytes) {}

 protected:
  [[noreturn]] TT_COLD void bad(const char* at, const char* why) const;
  char peek();  // the next character that is not white space; 0 at the end
  void expect(char c, const char* why);
  Span<const char> string();  // zero-terminated
  // Calls member(key, position) for each member of the object that begins here; it reads the value.
  template <class F> void each_member(const F& member) {
    expect('{', "expected an object");
    if (peek() == '}') return void(p_++);
    for (;;) {
      peek();
      const char* at = p_;
      const char* key = string().ptr;
      expect(':', "expected : after the key");
      member(key, at);
      if (peek() == '}') return void(p_++);
      expect(',', "expected , or }");
    }
  }

  JsonSource from_;
  char *text_, *p_, *end_;

 private:
  uint32_t hex4();
  uint32_t escaped();
};

int hex_digit(char c);  // -1: not a hexadecimal digit

}  // namespace TT_NS
