#include "base/text/utf8.h"

namespace TT_NS {

// RFC 3629, section 4.
int utf8_bytes(const char* p, const char* end) {
  const auto* u = reinterpret_cast<const uint8_t*>(p);
  if (u[0] < 0x80) return 1;
  int n = 0;
  if (u[0] >= 0xc2 && u[0] < 0xe0) n = 2;
  else if (u[0] >= 0xe0 && u[0] < 0xf0) n = 3;
  else if (u[0] >= 0xf0 && u[0] < 0xf5) n = 4;
  if (!n || end - p < n) return 0;
  for (int i = 1; i < n; i++)
    if ((u[i] & 0xc0) != 0x80) return 0;
  const bool bad = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
                   (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f);
  return bad ? 0 : n;
}

void add_json_string(Text& out, Span<const char> text, const char* for_bad) {
  const char* s = text.ptr;
  const char* const end = s + text.n;
  out.add("\"");
  while (s < end) {
    const int n = utf8_bytes(s, end);
    const auto c = uint8_t(*s);
    if (c < 0x20) {
      const char escaped[] = {'\\', 'u', '0', '0', "01"[c >> 4], "0123456789abcdef"[c & 15]};
      out.add({escaped, 6});
    } else {
      if (c == '"' || c == '\\') out.add("\\");
      if (n) out.add({s, n});
      else out.add(for_bad);
    }
    s += n ? n : 1;
  }
  out.add("\"");
}

}  // namespace TT_NS
