// Zip archives (PKWARE's APPNOTE 6.3), as PyTorch and NumPy write them. Entries are stored, or
// deflated where the caller accepts that; encrypted and split archives are refused.
#pragma once

#include "io/files.h"

namespace TT_NS {

// CRC-32 of zip and gzip, eight bytes at a time.
class Crc32 {
 public:
  Crc32();
  uint32_t operator()(uint32_t crc, const void* data, int64_t bytes) const;

 private:
  uint32_t table_[8 * 256];
};

struct ZipEntry {
  int64_t name, name_bytes;  // in the directory's text
  int64_t header;            // position of its local header
  int64_t begin, bytes;      // its data
  uint32_t crc;
  int64_t stored = 0;  // bytes in the file
  bool deflated = false;
};

// An archive whose directory has been checked as a whole: entries have different names, precede the
// directory, do not overlap, and match their local headers. Fails with IO or FORMAT.
class ZipReader {
 public:
  // what: of the archive, for messages. deflated: whether entries may be.
  explicit ZipReader(const char* path, const char* what = "a torch.save file",
                     bool deflated = false);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  int64_t size() const { return entries_.size(); }
  int64_t file_bytes() const { return file_bytes_; }
  const ZipEntry& entry(int64_t i) const { return entries_[i]; }
  Span<const char> name(int64_t i) const {
    return {directory_.data() + entries_[i].name, entries_[i].name_bytes};
  }
  int64_t find(Span<const char> name) const;  // returns the index, or -1
  // Reads the first `bytes` bytes of a stored entry; verifies the checksum of the whole entry.
  void read(int64_t i, char* out, int64_t bytes) const;
  // Reads the packed bytes of an entry, which its checksum does not cover. Then verify() checks the
  // unpacked data.
  void read_stored(int64_t i, char* out) const;
  void verify(int64_t i, const char* data) const;
  // Fails with FORMAT: byte `at` of the file is wrong.
  template <class... A>
  [[noreturn]] TT_COLD void bad(int64_t at, const char* why, const A&... a) const {
    char text[256];
    const FmtArg args[sizeof...(A) + 1] = {FmtArg(a)..., FmtArg(0)};
    format_to(text, sizeof text, why, {args, int64_t(sizeof...(A))});
    bad_at(at, text);
  }

 private:
  struct Open {  // closes the file even if the constructor fails
    int file = -1;
    ~Open();
  };
  [[noreturn]] TT_COLD void bad_at(int64_t at, const char* why) const;
  void find_directory();
  void read_entries(int64_t count);
  int64_t read_entry(const char* p, int64_t left);
  void read_zip64(ZipEntry& e, const char* p, int64_t bytes, const uint32_t* fields,
                  int64_t at) const;
  void check_places();
  void check_names();

  const char* path_;
  const char* what_;
  const bool deflated_;  // entries may be
  Open open_;
  int64_t file_bytes_ = 0, directory_at_ = 0;
  SmallVec<char, 24> directory_;
  SmallVec<ZipEntry, 1> entries_;
  SmallVec<int64_t, 1> by_name_;
  Crc32 crc_;
};

// Writes entries one by one; their data start at multiples of 64 bytes.
class ZipWriter {
 public:
  explicit ZipWriter(NewFile& file) : file_(file) {}
  void add(const char* name, const void* data, int64_t bytes);
  void finish();

 private:
  void put(SmallVec<char, 24>& to, uint64_t value, int bytes);
  NewFile& file_;
  int64_t at_ = 0, count_ = 0;
  SmallVec<char, 24> directory_;
  Crc32 crc_;
};

}  // namespace TT_NS
