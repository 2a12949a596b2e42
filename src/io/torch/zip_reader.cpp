#include "base/os_file.h"
#include "io/torch/sort.h"
#include "io/torch/zip.h"

#include <string.h>

namespace TT_NS {

namespace {

// Bytes of the records of an archive, without names, extra fields and comments.
constexpr int64_t kEndBytes = 22;
constexpr int64_t kLocatorBytes = 20;
constexpr int64_t kEnd64Bytes = 56;
constexpr int64_t kRowBytes = 46;  // of an entry in the directory
constexpr int64_t kHeaderBytes = 30;
constexpr int64_t kMaxComment = 65535;
constexpr uint32_t kInZip64 = 0xffffffff;  // the value is in the zip64 field
constexpr int kDeflated = 8;               // the method of an entry; 0: stored

template <class T> T get(const char* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
bool signed_as(const char* p, char a, char b) {
  return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

int compare(Span<const char> a, Span<const char> b) {
  const int order = memcmp(a.ptr, b.ptr, size_t(min(a.n, b.n)));
  if (order) return order;
  return a.n < b.n ? -1 : a.n > b.n;
}

}  // namespace

ZipReader::Open::~Open() {
  if (file >= 0) os_file_close(file);
}
ZipReader::~ZipReader() = default;

void ZipReader::bad_at(int64_t at, const char* why) const {
  fail_arg(TT_FORMAT, "path", "\"{}\" is not {}: byte {}: {}", path_, what_, at, why);
}

ZipReader::ZipReader(const char* path, const char* what, bool deflated)
    : path_(path), what_(what), deflated_(deflated) {
  open_.file = os_file_open(path);
  if (open_.file < 0) fail_io(path, "cannot be opened", open_.file);
  file_bytes_ = os_file_size(open_.file);
  if (file_bytes_ < 0) fail_io(path, "cannot be measured", file_bytes_);
  find_directory();
  check_names();
  check_places();
}

// The end record is the last thing in the file, apart from a comment; its zip64 form precedes it.
void ZipReader::find_directory() {
  const int64_t n = min(file_bytes_, kEndBytes + kMaxComment);
  const int64_t from = file_bytes_ - n;
  SmallVec<char, 24> tail;
  tail.resize(n);
  read_all(open_.file, path_, tail.data(), n, from);
  int64_t i = n - kEndBytes;
  while (i >= 0 &&
         !(signed_as(&tail[i], 5, 6) && get<uint16_t>(&tail[i + 20]) == n - kEndBytes - i))
    i--;
  if (i < 0) bad(file_bytes_, "it does not end like a zip archive");
  const char* end = &tail[i];
  int64_t count = get<uint16_t>(end + 10);
  int64_t bytes = get<uint32_t>(end + 12);
  int64_t stop = from + i;
  bool disks = get<uint32_t>(end + 4) || get<uint16_t>(end + 8) != count;
  directory_at_ = get<uint32_t>(end + 16);
  if (i >= kLocatorBytes && signed_as(end - kLocatorBytes, 6, 7)) {
    char e[kEnd64Bytes];
    stop = get<int64_t>(end - kLocatorBytes + 8);
    if (stop < 0 || stop > from + i - kLocatorBytes - kEnd64Bytes)
      bad(from + i, "its zip64 end record is outside of the file");
    read_all(open_.file, path_, e, kEnd64Bytes, stop);
    if (!signed_as(e, 6, 6)) bad(stop, "expected a zip64 end record");
    count = get<int64_t>(e + 32);
    bytes = get<int64_t>(e + 40);
    directory_at_ = get<int64_t>(e + 48);
    disks = get<uint64_t>(e + 16) || get<int64_t>(e + 24) != count;
  }
  if (disks) bad(stop, "archives of several disks are not supported");
  if (directory_at_ < 0 || bytes < 0 || bytes > stop || directory_at_ != stop - bytes)
    bad(stop, "the directory is not at its position");
  directory_.resize(bytes);
  read_all(open_.file, path_, directory_.data(), bytes, directory_at_);
  read_entries(count);
}

void ZipReader::read_entries(int64_t count) {
  int64_t at = 0;
  while (at < directory_.size()) at += read_entry(directory_.data() + at, directory_.size() - at);
  if (entries_.size() != count || !count)
    bad(directory_at_, "the directory has {} entries, not {}", entries_.size(), count);
}

// Appends the entry at p; returns its length in the directory.
int64_t ZipReader::read_entry(const char* p, int64_t left) {
  const int64_t at = p - directory_.data();
  if (left < kRowBytes || !signed_as(p, 1, 2))
    bad(directory_at_ + at, "expected an entry of the directory");
  const int64_t name = get<uint16_t>(p + 28);
  const int64_t extra = get<uint16_t>(p + 30);
  const int64_t length = kRowBytes + name + extra + get<uint16_t>(p + 32);
  if (length > left) bad(directory_at_ + at, "an entry is longer than the directory");
  const int method = get<uint16_t>(p + 10);
  if ((method && !(deflated_ && method == kDeflated)) || get<uint16_t>(p + 8) & 0x2041)
    bad(directory_at_ + at, "an entry of the archive is compressed or encrypted");
  const uint32_t fields[3] = {get<uint32_t>(p + 24), get<uint32_t>(p + 20), get<uint32_t>(p + 42)};
  ZipEntry e{at + kRowBytes, name, 0, 0, 0, get<uint32_t>(p + 16)};
  e.deflated = method == kDeflated;
  read_zip64(e, p + kRowBytes + name, extra, fields, directory_at_ + at);
  if (e.bytes < 0 || e.header < 0 || e.stored < 0 || e.stored > directory_at_ ||
      e.header > directory_at_ - kHeaderBytes)
    bad(directory_at_ + at, "the entries are longer than the file");
  entries_.push_back(e);
  return length;
}

// fields: size, stored size and position of the header. Values that do not fit in them are in the
// extra field with number 1.
void ZipReader::read_zip64(ZipEntry& e, const char* p, int64_t bytes, const uint32_t* fields,
                           int64_t at) const {
  int64_t values[3], length = 0;
  while (bytes >= 4) {
    length = get<uint16_t>(p + 2);
    const bool found = get<uint16_t>(p) == 1;
    p += 4;
    bytes -= 4;
    if (length > bytes) bad(at, "an entry's extra field is too long");
    if (found) break;
    p += length;
    bytes -= length;
    length = 0;
  }
  for (int k = 0; k < 3; k++) {
    values[k] = fields[k];
    if (fields[k] != kInZip64) continue;
    if (length < 8) bad(at, "an entry lacks its zip64 sizes");
    values[k] = get<int64_t>(p);
    p += 8;
    length -= 8;
  }
  if (!e.deflated && values[0] != values[1])
    bad(at, "a stored entry has two sizes: {} and {}", values[0], values[1]);
  e.bytes = values[0];
  e.stored = values[1];
  e.header = values[2];
}

// Each entry must end before the next one's header, the last before the directory.
void ZipReader::check_places() {
  SmallVec<int64_t, 1> order;
  SmallVec<char, 24> h;
  for (int64_t i = 0; i < size(); i++) order.push_back(i);
  sort_indices(order.mut(),
               [&](int64_t a, int64_t b) { return entries_[a].header < entries_[b].header; });
  for (int64_t k = 0; k < size(); k++) {
    ZipEntry& e = entries_[order[k]];
    const int64_t stop = k + 1 < size() ? entries_[order[k + 1]].header : directory_at_;
    if (stop - e.header < kHeaderBytes + e.name_bytes)
      bad(e.header, "entries of the archive overlap");
    h.resize(kHeaderBytes + e.name_bytes);
    read_all(open_.file, path_, h.data(), h.size(), e.header);
    if (!signed_as(h.data(), 3, 4) || get<uint16_t>(&h[26]) != e.name_bytes ||
        get<uint16_t>(&h[8]) != (e.deflated ? kDeflated : 0) ||
        compare({h.data() + kHeaderBytes, e.name_bytes}, name(order[k])))
      bad(e.header, "an entry does not match the directory");
    e.begin = e.header + h.size() + get<uint16_t>(&h[28]);
    if (e.begin > stop || e.stored > stop - e.begin)
      bad(e.header, "entries of the archive overlap");
  }
}

void ZipReader::check_names() {
  for (int64_t i = 0; i < size(); i++) by_name_.push_back(i);
  sort_indices(by_name_.mut(), [&](int64_t a, int64_t b) { return compare(name(a), name(b)) < 0; });
  for (int64_t i = 1; i < size(); i++)
    if (compare(name(by_name_[i - 1]), name(by_name_[i])) == 0)
      bad(entries_[by_name_[i]].header, "two entries of the archive have the same name");
}

int64_t ZipReader::find(Span<const char> wanted) const {
  int64_t lo = 0;
  int64_t hi = size();
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    const int64_t order = compare(name(by_name_[mid]), wanted);
    if (order == 0) return by_name_[mid];
    if (order < 0) lo = mid + 1;
    else hi = mid;
  }
  return -1;
}

void ZipReader::read(int64_t i, char* out, int64_t bytes) const {
  const ZipEntry& e = entries_[i];
  char rest[4096];
  uint32_t crc = 0;
  // In pieces that are still cached when their checksum is computed.
  for (int64_t done = 0, n; done < e.bytes; done += n) {
    const bool wanted = done < bytes;
    const int64_t left = (wanted ? bytes : e.bytes) - done;
    const int64_t limit = wanted ? 256 * 1024 : int64_t(sizeof rest);
    n = min(left, limit);
    char* to = wanted ? out + done : rest;
    read_all(open_.file, path_, to, n, e.begin + done);
    crc = crc_(crc, to, n);
  }
  if (crc != e.crc) bad(e.begin, "the entry is damaged: its checksum is wrong");
}

void ZipReader::read_stored(int64_t i, char* out) const {
  read_all(open_.file, path_, out, entries_[i].stored, entries_[i].begin);
}
void ZipReader::verify(int64_t i, const char* data) const {
  const ZipEntry& e = entries_[i];
  if (crc_(0, data, e.bytes) != e.crc) bad(e.begin, "the entry is damaged: its checksum is wrong");
}

}  // namespace TT_NS
