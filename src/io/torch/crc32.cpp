#include "io/torch/zip.h"

#include <string.h>

namespace TT_NS {

// table_[256 * k + b]: the remainder of b followed by k zero bytes ("slicing by 8", M. Kounavis and
// F. Berry, 2005).
Crc32::Crc32() {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t c = b;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
    table_[b] = c;
  }
  for (int64_t i = 256; i < 8 * 256; i++)
    table_[i] = table_[i - 256] >> 8 ^ table_[table_[i - 256] & 255];
}

uint32_t Crc32::operator()(uint32_t crc, const void* data, int64_t bytes) const {
  const uint32_t* t = table_;
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t c = ~crc;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint32_t lo, hi;
    memcpy(&lo, p, 4);
    memcpy(&hi, p + 4, 4);
    lo ^= c;
    c = t[7 * 256 + (lo & 255)] ^ t[6 * 256 + (lo >> 8 & 255)] ^ t[5 * 256 + (lo >> 16 & 255)] ^
        t[4 * 256 + (lo >> 24)] ^ t[3 * 256 + (hi & 255)] ^ t[2 * 256 + (hi >> 8 & 255)] ^
        t[256 + (hi >> 16 & 255)] ^ t[hi >> 24];
  }
  for (; bytes > 0; bytes--) c = c >> 8 ^ t[(c ^ *p++) & 255];
  return ~c;
}

}  // namespace TT_NS
