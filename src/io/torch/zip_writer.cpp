#include "io/torch/zip.h"

#include <string.h>

namespace TT_NS {

void ZipWriter::put(SmallVec<char, 24>& to, uint64_t value, int bytes) {
  to.append({reinterpret_cast<const char*>(&value), bytes});
}

// Sizes and positions are always zip64 fields: the same format for small and large files, which
// PyTorch also writes.
void ZipWriter::add(const char* name, const void* data, int64_t bytes) {
  const int64_t n = int64_t(strlen(name));
  const int64_t begin = (at_ + 30 + n + 20 + 4 + 63) & -64;
  const int64_t pad = begin - at_ - 30 - n - 20 - 4;
  const uint32_t crc = crc_(0, data, bytes);
  const auto facts = [&](SmallVec<char, 24>& to, int64_t extra) {
    put(to, 45, 2);
    put(to, 0x800, 2);
    put(to, 0, 2);
    put(to, 0x00210000, 4);  // version, UTF-8, stored, 1980-01-01
    put(to, crc, 4);
    put(to, 0xffffffffffffffff, 8);
    put(to, uint64_t(n), 2);
    put(to, uint64_t(extra), 2);
  };
  SmallVec<char, 24> header;
  header.reserve(begin - at_);
  put(header, 0x04034b50, 4);
  facts(header, 20 + 4 + pad);
  header.append({name, n});
  put(header, 1 | 16 << 16, 4);
  put(header, uint64_t(bytes), 8);
  put(header, uint64_t(bytes), 8);
  put(header, uint64_t('F' | 'B' << 8 | pad << 16), 4);
  header.resize(begin - at_);  // aligned like PyTorch's data
  SmallVec<char, 24>& d = directory_;
  put(d, 0x02014b50, 4);
  put(d, 45, 2);
  facts(d, 28);
  put(d, 0, 8);
  put(d, 0, 2);
  put(d, 0xffffffff, 4);
  d.append({name, n});
  put(d, 1 | 24 << 16, 4);
  put(d, uint64_t(bytes), 8);
  put(d, uint64_t(bytes), 8);
  put(d, uint64_t(at_), 8);
  file_.write(header.data(), header.size());
  file_.write(data, bytes);
  at_ = begin + bytes;
  count_++;
}

void ZipWriter::finish() {
  const int64_t bytes = directory_.size();
  const int64_t end = at_ + bytes;
  SmallVec<char, 24>& d = directory_;
  put(d, 0x06064b50, 4);
  put(d, 44, 8);
  put(d, 45 | 45 << 16, 4);
  put(d, 0, 8);
  put(d, uint64_t(count_), 8);
  put(d, uint64_t(count_), 8);
  put(d, uint64_t(bytes), 8);
  put(d, uint64_t(at_), 8);
  put(d, 0x07064b50, 4);
  put(d, 0, 4);
  put(d, uint64_t(end), 8);
  put(d, 1, 4);
  put(d, 0x06054b50, 4);
  put(d, 0, 4);
  put(d, 0xffffffffffffffff, 8);
  put(d, 0xffffffff, 4);
  put(d, 0, 2);
  file_.write(directory_.data(), directory_.size());
}

}  // namespace TT_NS
