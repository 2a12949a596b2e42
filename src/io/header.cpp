#include "io/header.h"

#include "core/shape.h"
#include "io/json.h"
#include "io/torch/sort.h"

#include <string.h>

namespace TT_NS {

namespace {

struct FileDtype {
  const char* name;
  Dtype dtype;
};
constexpr FileDtype kFileDtypes[] = {
    {"BOOL", Dtype::kBool}, {"U8", Dtype::kU8},   {"I8", Dtype::kI8},   {"I16", Dtype::kI16},
    {"I32", Dtype::kI32},   {"I64", Dtype::kI64}, {"F16", Dtype::kF16}, {"BF16", Dtype::kBF16},
    {"F32", Dtype::kF32},   {"F64", Dtype::kF64}, {"C64", Dtype::kC64}, {"U16", Dtype::kU16},
    {"U32", Dtype::kU32},   {"U64", Dtype::kU64}};

class Parser : JsonReader {
 public:
  Parser(const char* path, char* text, int64_t bytes, int64_t data_bytes, FileHeader* out)
      : JsonReader({TT_FORMAT, "path", path, 8, false}, text, bytes),
        data_bytes_(data_bytes),
        out_(*out) {}

  void run() {
    if (p_ == end_ || *p_ != '{') bad(p_, "the header must begin with {");
    each_member([&](const char* key, const char* at) {
      if (strcmp(key, "__metadata__") == 0) {
        if (metadata_seen_) bad(at, "\"__metadata__\" appears twice");
        metadata_seen_ = true;
        each_member([&](const char* name, const char*) {
          out_.metadata.push_back({name, string().ptr});
        });
      } else {
        tensor(key, at);
      }
    });
    if (peek(), p_ != end_) bad(p_, "text after the header's closing }");
    check_names();
    check_places();
  }

 private:
  [[noreturn]] TT_COLD void bad_tensor(const FileTensor& t, const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\", byte {}: tensor \"{}\": {}", from_.name,
             int64_t(t.name - text_) + 7, t.name, why);
  }

  int64_t integer() {
    if (peek() < '0' || *p_ > '9')
      bad(p_, p_ == end_ ? "the text ends too early" : "expected a non-negative integer");
    const char* at = p_;
    int64_t v = 0;
    for (; p_ < end_ && *p_ >= '0' && *p_ <= '9'; p_++)
      if (mul_overflow(v, 10, &v) || add_overflow(v, *p_ - '0', &v))
        bad(at, "the integer is too large");
    if (*at == '0' && p_ - at > 1) bad(at, "integer with a leading 0");
    return v;
  }
  // Appends the integers of the list that begins here to sizes; returns their number.
  int64_t integers(int64_t max_count, const char* too_many) {
    const char* at = p_;
    int64_t n = 0;
    expect('[', "expected a list");
    if (peek() == ']') {
      p_++;
      return 0;
    }
    for (;;) {
      if (n++ == max_count) bad(at, too_many);
      out_.sizes.push_back(integer());
      if (peek() == ']') {
        p_++;
        return n;
      }
      expect(',', "expected , or ]");
    }
  }

  void tensor(const char* name, const char* at) {
    FileTensor t = {name, Dtype::kNone, 0, 0, 0, 0};
    bool shape = false;
    bool offsets = false;
    each_member([&](const char* key, const char* where) {
      if (strcmp(key, "dtype") == 0 && t.dtype == Dtype::kNone) {
        const char* text = string().ptr;
        for (const FileDtype& d : kFileDtypes)
          if (strcmp(d.name, text) == 0) t.dtype = d.dtype;
        if (t.dtype == Dtype::kNone) bad(where, "unsupported dtype");
      } else if (strcmp(key, "shape") == 0 && !shape) {
        t.shape = out_.sizes.size();
        shape = true;
        t.ndim = uint8_t(integers(kMaxDims, "shape of more than 64 dimensions"));
      } else if (strcmp(key, "data_offsets") == 0 && !offsets) {
        if (integers(2, "data_offsets has more than two entries") != 2)
          bad(where, "data_offsets has fewer than two entries");
        t.end = out_.sizes.back();
        out_.sizes.pop_back();
        t.begin = out_.sizes.back();
        out_.sizes.pop_back();
        offsets = true;
      } else {
        bad(where, "unknown or repeated key");
      }
    });
    if (t.dtype == Dtype::kNone || !shape || !offsets)
      bad(at, "a tensor needs dtype, shape and data_offsets");
    check_bytes(t);
    out_.tensors.push_back(t);
  }
  void check_bytes(const FileTensor& t) {
    int64_t bytes = item_size(t.dtype);
    for (int64_t d = 0; d < t.ndim; d++)
      if (mul_overflow(bytes, out_.sizes[t.shape + d], &bytes))
        bad_tensor(t, "its shape overflows");
    if (t.begin > t.end) bad_tensor(t, "data_offsets run backwards");
    if (t.end > data_bytes_) bad_tensor(t, "data_offsets are past the end of the file");
    if (t.end - t.begin != bytes) bad_tensor(t, "data_offsets do not match its dtype and shape");
  }

  void check_names() {
    const SmallVec<FileTensor, 1>& t = out_.tensors;
    for (int64_t i = 0; i < t.size(); i++) out_.by_name.push_back(i);
    sort_indices(out_.by_name.mut(),
                 [&](int64_t a, int64_t b) { return strcmp(t[a].name, t[b].name) < 0; });
    for (int64_t i = 1; i < t.size(); i++)
      if (strcmp(t[out_.by_name[i - 1]].name, t[out_.by_name[i]].name) == 0)
        bad_tensor(t[out_.by_name[i]], "its name appears twice");
  }
  void check_places() {
    const SmallVec<FileTensor, 1>& t = out_.tensors;
    SmallVec<int64_t, 1> order(out_.by_name);
    sort_indices(order.mut(), [&](int64_t a, int64_t b) {
      return t[a].begin != t[b].begin ? t[a].begin < t[b].begin : t[a].end < t[b].end;
    });
    int64_t at = 0;
    for (int64_t i : order) {
      if (t[i].begin != at)
        bad_tensor(t[i], t[i].begin < at ? "it overlaps another tensor"
                                         : "there is a gap before its data");
      at = t[i].end;
    }
    if (at != data_bytes_) bad(end_ + at, "the rest of the file does not belong to a tensor");
  }

  int64_t data_bytes_;
  FileHeader& out_;
  bool metadata_seen_ = false;
};

}  // namespace

void parse_header(const char* path, char* text, int64_t bytes, int64_t data_bytes,
                  FileHeader* out) {
  Parser(path, text, bytes, data_bytes, out).run();
}

int64_t find_tensor(const FileHeader& h, const char* name) {
  int64_t lo = 0;
  int64_t hi = h.by_name.size();
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    const int64_t order = strcmp(h.tensors[h.by_name[mid]].name, name);
    if (order == 0) return h.by_name[mid];
    if (order < 0) lo = mid + 1;
    else hi = mid;
  }
  return -1;
}

const char* file_dtype(Dtype d) {
  for (const FileDtype& f : kFileDtypes)
    if (f.dtype == d) return f.name;
  return nullptr;
}

}  // namespace TT_NS
