#include "io/torch/structure_text.h"
#include "io/torch/file.h"

#include <string.h>

namespace TT_NS {

namespace {

// A file may have this many bytes of text and objects, and 8 times its own size.
constexpr int64_t kMaxStructure = 1 << 20;
constexpr int64_t kMaxWord = 16;  // bytes of an entry that is a single word

class TorchFile {
 public:
  explicit TorchFile(const char* path) : archive_(path) {
    const Span<const char> first = archive_.name(0);
    while (root_ < first.n && first[root_] != '/') root_++;
  }

  StateDictRef load() {
    check_version();
    const int64_t p = found("data.pkl");
    const int64_t max_bytes = kMaxStructure + 8 * archive_.file_bytes();
    const ZipEntry& e = archive_.entry(p);
    if (e.bytes > INT32_MAX) archive_.bad(e.begin, "the pickle is larger than 2 GB");
    SmallVec<char, 24> pickle;
    pickle.resize(e.bytes);
    archive_.read(p, pickle.data(), e.bytes);
    TorchStorages storages(archive_, root(), big_endian());
    Unpickler machine(pickle, e.begin, max_bytes, storages);
    const PickleValue value = machine.run();
    StateDictRef state = new_state_dict();
    write_structure(machine, storages, value, max_bytes, state.get());
    return state;
  }

 private:
  Span<const char> root() const { return archive_.name(0).slice(0, root_); }
  int64_t find(const char* name) const {
    Text full;
    full.add(root()).add("/").add(name);
    return archive_.find({full.c_str(), full.size()});
  }
  int64_t found(const char* name) const {
    const int64_t i = find(name);
    if (i < 0) archive_.bad(archive_.file_bytes(), "the archive has no entry {}", name);
    return i;
  }
  // Returns the text of a small entry.
  Text word(int64_t i) const {
    char text[kMaxWord];
    const ZipEntry& e = archive_.entry(i);
    if (e.bytes > kMaxWord) archive_.bad(e.begin, "the entry is too long");
    archive_.read(i, text, e.bytes);
    Text out;
    return out.add({text, e.bytes});
  }
  void check_version() const {
    const int64_t i = found("version");
    const Text text = word(i);
    const char* p = text.c_str();
    int version = 0;
    while (*p >= '0' && *p <= '9' && version < 100) version = 10 * version + (*p++ - '0');
    while (*p == '\n' || *p == '\r' || *p == ' ') p++;
    if (version < 1 || version > 10 || *p)
      archive_.bad(archive_.entry(i).begin, "the archive has an unknown version");
  }
  bool big_endian() const {
    const int64_t i = find("byteorder");
    if (i < 0) return false;
    const Text order = word(i);
    if (order.is("big")) return true;
    if (!order.is("little"))
      archive_.bad(archive_.entry(i).begin, "the byteorder must be little or big");
    return false;
  }

  ZipReader archive_;
  int64_t root_ = 0;
};

}  // namespace

StateDictRef load_torch(const char* path) { return TorchFile(path).load(); }

}  // namespace TT_NS
