#include "io/gguf.h"

#include "base/arith.h"
#include "base/os_file.h"
#include "base/text/utf8.h"
#include "io/files.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/torch/sort.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxDims = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = uint64_t(1) << 30;
constexpr int64_t kFirstRead = 1 << 16;

// Types of metadata, by their number.
enum class Kind : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kCount
};
constexpr int64_t kKindBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};  // at least

// Types of tensors: blocks of `items` numbers in `bytes` bytes.
struct GgmlType {
  uint32_t code;
  const char* name;
  int64_t items, bytes;
  Dtype dtype;  // kU8: the bytes of packed rows
};
constexpr GgmlType kTypes[] = {
    {0, "f32", 1, 4, Dtype::kF32},        {1, "f16", 1, 2, Dtype::kF16},
    {2, "q4_0", 32, 18, Dtype::kU8},      {3, "q4_1", 32, 20, Dtype::kU8},
    {6, "q5_0", 32, 22, Dtype::kU8},      {7, "q5_1", 32, 24, Dtype::kU8},
    {8, "q8_0", 32, 34, Dtype::kU8},      {9, "q8_1", 32, 36, Dtype::kU8},
    {10, "q2_k", 256, 84, Dtype::kU8},    {11, "q3_k", 256, 110, Dtype::kU8},
    {12, "q4_k", 256, 144, Dtype::kU8},   {13, "q5_k", 256, 176, Dtype::kU8},
    {14, "q6_k", 256, 210, Dtype::kU8},   {15, "q8_k", 256, 292, Dtype::kU8},
    {16, "iq2_xxs", 256, 66, Dtype::kU8}, {17, "iq2_xs", 256, 74, Dtype::kU8},
    {18, "iq3_xxs", 256, 98, Dtype::kU8}, {19, "iq1_s", 256, 50, Dtype::kU8},
    {20, "iq4_nl", 32, 18, Dtype::kU8},   {21, "iq3_s", 256, 110, Dtype::kU8},
    {22, "iq2_s", 256, 82, Dtype::kU8},   {23, "iq4_xs", 256, 136, Dtype::kU8},
    {24, "i8", 1, 1, Dtype::kI8},         {25, "i16", 1, 2, Dtype::kI16},
    {26, "i32", 1, 4, Dtype::kI32},       {27, "i64", 1, 8, Dtype::kI64},
    {28, "f64", 1, 8, Dtype::kF64},       {29, "iq1_m", 256, 56, Dtype::kU8},
    {30, "bf16", 1, 2, Dtype::kBF16},     {34, "tq1_0", 256, 54, Dtype::kU8},
    {35, "tq2_0", 256, 66, Dtype::kU8},   {39, "mxfp4", 32, 17, Dtype::kU8},
    {40, "nvfp4", 64, 36, Dtype::kU8},    {41, "q1_0", 128, 18, Dtype::kU8},
};

// Reads the header of an open file, of which it loads more and more, and fills f: the tensors'
// names are offsets in `text` first.
class GgufReader {
 public:
  GgufReader(TensorFile& f, Text& structure) : f_(f), structure_(structure) {}
  void run();

 private:
  struct String {
    int64_t at;
    int64_t n;
  };

  [[noreturn]] TT_COLD void bad(int64_t at, const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\", byte {}: {}", f_.path, at, why);
  }
  const char* bytes(int64_t at) const { return text_.data() + at; }
  int64_t take(int64_t n);
  template <class T> T number() {
    T v;
    memcpy(&v, bytes(take(sizeof v)), sizeof v);
    return v;
  }
  int64_t count(const char* why, int64_t each);
  String string();
  void put_string(String s);
  void put_key(String s);
  void put_float(double v, bool as_f32);
  void put_integer(uint64_t v);
  void put_value(Kind kind);
  Kind kind();
  void pair(bool first);
  void tensor(bool first);
  void place(const GgmlType& type, const uint64_t* dims, uint32_t ndim, int64_t at);
  void check_unique(const char* why);
  void terminate_names();

  TensorFile& f_;
  Text& structure_;
  SmallVec<char, 24> text_;  // the bytes of the file that have been read
  SmallVec<String, 4> names_;
  int64_t size_ = 0;
  int64_t at_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  int64_t end_ = 0;  // of the tensors so far, behind the header
};

// Makes the next n bytes part of text_; returns their offset.
int64_t GgufReader::take(int64_t n) {
  const int64_t at = at_;
  if (n > size_ - at) bad(size_, "the file ends within its header");
  if (at + n > kMaxHeaderBytes) bad(at, "the header exceeds 100 MB");
  if (at + n > text_.size()) {
    const int64_t have = text_.size();
    const int64_t want = min(size_, max(max(at + n, 2 * have), kFirstRead));
    read_all(f_.file, f_.path, text_.room_for(want - have), want - have, have);
    text_.extended(want - have);
  }
  at_ += n;
  return at;
}

// A number of things of at least `each` bytes, as many as the file has room for.
int64_t GgufReader::count(const char* why, int64_t each) {
  const int64_t at = at_;
  const auto n = number<uint64_t>();
  if (n > uint64_t((size_ - at_) / each)) bad(at, why);
  return int64_t(n);
}

GgufReader::String GgufReader::string() {
  const int64_t n = count("the text is longer than the file", 1);
  return {take(n), n};
}

// ---- metadata, as JSON ----

// Bytes that are not UTF-8 become U+FFFD.
void GgufReader::put_string(String s) {
  add_json_string(structure_, {bytes(s.at), s.n}, "\xef\xbf\xbd");
}

// A key or a name: text that C can hold.
void GgufReader::put_key(String s) {
  if (!s.n) bad(s.at, "a name is empty");
  for (int64_t i = 0; i < s.n;) {
    const int n = utf8_bytes(bytes(s.at + i), bytes(s.at) + s.n);
    if (!n || !*bytes(s.at + i)) bad(s.at + i, "a name is not UTF-8 text");
    i += n;
  }
  put_string(s);
  structure_.add(":");
  names_.push_back(s);
}

void GgufReader::put_float(double v, bool as_f32) {
  char digits[32];
  const Span<const char> text{digits, format_double(digits, v, as_f32)};
  const bool finite = v - v == 0;
  structure_.add(finite ? "" : "{\"float\":\"").add(text).add(finite ? "" : "\"}");
}
void GgufReader::put_integer(uint64_t v) {
  char digits[24];
  structure_.add({digits, format_uint(digits, v)});
}

void GgufReader::put_value(Kind kind) {
  const int64_t at = at_;
  switch (kind) {
    case Kind::kU8: return put_integer(number<uint8_t>());
    case Kind::kU16: return put_integer(number<uint16_t>());
    case Kind::kU32: return put_integer(number<uint32_t>());
    case Kind::kU64: return put_integer(number<uint64_t>());
    case Kind::kI8: return void(structure_.add(int64_t(number<int8_t>())));
    case Kind::kI16: return void(structure_.add(int64_t(number<int16_t>())));
    case Kind::kI32: return void(structure_.add(int64_t(number<int32_t>())));
    case Kind::kI64: return void(structure_.add(number<int64_t>()));
    case Kind::kF32: return put_float(double(number<float>()), true);
    case Kind::kF64: return put_float(number<double>(), false);
    case Kind::kString: return put_string(string());
    case Kind::kBool: {
      const auto v = number<uint8_t>();
      if (v > 1) bad(at, "a truth value is neither 0 nor 1");
      return void(structure_.add(v ? "true" : "false"));
    }
    case Kind::kArray:
    case Kind::kCount: bad(at, "a list is an item of a list");
  }
}

Kind GgufReader::kind() {
  const int64_t at = at_;
  const auto v = number<uint32_t>();
  if (v >= uint32_t(Kind::kCount)) bad(at, "unknown type of metadata");
  return Kind(v);
}

void GgufReader::pair(bool first) {
  if (!first) structure_.add(",");
  const String key = string();
  put_key(key);
  const Kind k = kind();
  if (k == Kind::kU32 && key.n == 17 && !memcmp(bytes(key.at), "general.alignment", 17)) {
    const int64_t at = at_;
    alignment_ = number<uint32_t>();
    const bool power = alignment_ && (alignment_ & (alignment_ - 1)) == 0;
    if (!power || alignment_ > kMaxAlignment) bad(at, "the alignment is not a power of two");
    return put_integer(alignment_);
  }
  if (k != Kind::kArray) return put_value(k);
  const Kind item = kind();
  if (item == Kind::kArray) bad(at_ - 4, "a list is an item of a list");
  const int64_t n = count("the list is longer than the file", kKindBytes[uint32_t(item)]);
  structure_.add("[");
  for (int64_t i = 0; i < n; i++) {
    if (i) structure_.add(",");
    put_value(item);
  }
  structure_.add("]");
}

// ---- tensors ----

// Appends a tensor to the header: sizes from the last dim to the first, then its bytes, which must
// follow those of the tensor before.
void GgufReader::place(const GgmlType& type, const uint64_t* dims, uint32_t ndim, int64_t at) {
  FileTensor t{nullptr, type.dtype, uint8_t(ndim), f_.header.sizes.size(), 0, 0};
  const uint64_t first = ndim ? dims[0] : 1;
  if (first % uint64_t(type.items)) bad(at, "the rows of a tensor are not whole blocks");
  int64_t bytes = type.bytes;
  bool empty = false;
  for (uint32_t d = 0; d < ndim; d++) {
    const uint64_t blocks = d ? dims[d] : first / uint64_t(type.items);
    empty |= blocks == 0;
    if (blocks > uint64_t(INT64_MAX) ||
        mul_overflow(bytes, int64_t(max<uint64_t>(1, blocks)), &bytes))
      bad(at, "the sizes of a tensor overflow");
  }
  for (uint32_t d = ndim; d-- > 0;) {
    const bool packed_row = d == 0 && type.items > 1;
    const int64_t row = int64_t(first / uint64_t(type.items)) * type.bytes;
    f_.header.sizes.push_back(packed_row ? row : int64_t(dims[d]));
  }
  t.begin = end_;
  if (add_overflow(end_, empty ? 0 : bytes, &t.end)) bad(at, "the tensors overflow");
  if (t.end > size_) bad(at, "a tensor ends behind the file");
  end_ = round_up(t.end, int64_t(alignment_));
  f_.header.tensors.push_back(t);
}

void GgufReader::tensor(bool first) {
  if (!first) structure_.add(",");
  put_key(string());
  const int64_t at = at_;
  const auto ndim = number<uint32_t>();
  if (ndim > kMaxDims) bad(at, "a tensor has more than 4 dimensions");
  uint64_t dims[kMaxDims];
  for (uint32_t d = 0; d < ndim; d++) dims[d] = number<uint64_t>();
  const int64_t of_type = at_;
  const auto code = number<uint32_t>();
  const GgmlType* type = nullptr;
  for (const GgmlType& t : kTypes)
    if (t.code == code) type = &t;
  if (!type) bad(of_type, "unknown type of tensor");
  structure_.add("\"").add(type->name).add("\"");
  place(*type, dims, ndim, at);
  const int64_t of_offset = at_;
  const uint64_t offset = number<uint64_t>();
  if (offset != uint64_t(f_.header.tensors.back().begin))
    bad(of_offset, "a tensor does not follow the one before");
}

void GgufReader::check_unique(const char* why) {
  SmallVec<int64_t, 16> order;
  for (int64_t i = 0; i < names_.size(); i++) order.push_back(i);
  const auto compare = [&](int64_t a, int64_t b) {
    const String x = names_[a];
    const String y = names_[b];
    const int c = memcmp(bytes(x.at), bytes(y.at), size_t(min(x.n, y.n)));
    return c ? int64_t(c) : x.n - y.n;
  };
  sort_indices(order.mut(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  for (int64_t i = 1; i < order.size(); i++)
    if (!compare(order[i - 1], order[i])) bad(names_[order[i]].at, why);
}

// Moves each name over the length before it, so that there is room for the terminating zero.
void GgufReader::terminate_names() {
  f_.text_bytes = at_;
  f_.text = static_cast<char*>(mem_alloc_wide(at_));
  memcpy(f_.text, text_.data(), size_t(at_));
  for (int64_t i = 0; i < names_.size(); i++) {
    char* name = f_.text + names_[i].at - 1;
    memmove(name, name + 1, size_t(names_[i].n));
    name[names_[i].n] = 0;
    f_.header.tensors[i].name = name;
  }
}

void GgufReader::run() {
  size_ = os_file_size(f_.file);
  if (size_ < 0) fail_io(f_.path, "cannot be measured", size_);
  if (size_ < 24) bad(size_, "the file ends within its header");
  if (memcmp(bytes(take(4)), "GGUF", 4)) bad(0, "the file does not begin with GGUF");
  const auto version = number<uint32_t>();
  if (version >> 16) bad(4, "the file is big-endian");
  if (version < 2 || version > 3) bad(4, "the version is neither 2 nor 3");
  const int64_t tensors = count("there are more tensors than the file has room for", 24);
  const int64_t pairs = count("there is more metadata than the file has room for", 13);
  structure_.add("{\"version\":").add(int64_t(version)).add(",\"metadata\":{");
  for (int64_t i = 0; i < pairs; i++) pair(i == 0);
  check_unique("a key appears twice");
  names_.clear();
  structure_.add("},\"types\":{");
  for (int64_t i = 0; i < tensors; i++) tensor(i == 0);
  check_unique("a name appears twice");
  structure_.add("}}");
  f_.data = round_up(at_, int64_t(alignment_));
  if (tensors && f_.header.tensors.back().end > max<int64_t>(0, size_ - f_.data))
    bad(size_, "the file ends before its tensors do");
  terminate_names();
}

}  // namespace

StateDictRef load_gguf(const char* path, bool mapped) {
  const Ref<TensorFile> f = open_file(path);
  StateDictRef state = new_state_dict();
  GgufReader(*f, state->structure).run();
  if (mapped) map_file(*f);
  for (int64_t i = 0; i < f->header.tensors.size(); i++)
    state->append(f->header.tensors[i].name, read_tensor(*f, i));
  return state;
}

}  // namespace TT_NS
