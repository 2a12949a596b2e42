#include "io/arrays.h"

#include "base/os_file.h"
#include "core/ctx.h"
#include "core/shape.h"
#include "io/files.h"
#include "io/inflate.h"
#include "io/torch/zip.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <stdlib.h>
#include <string.h>

namespace TT_NS {

namespace {

// The content of a file, or an entry of an archive.
struct Bytes {
  const char* path;
  const char* entry;  // "": the file itself
  Span<const char> data;

  [[noreturn]] TT_COLD void bad(int64_t at, const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\"{}{}, byte {}: {}", path, *entry ? ": " : "", entry, at,
             why);
  }
};

SmallVec<char, 24> whole_file(const char* path) {
  struct Open {
    int file;
    ~Open() {
      if (file >= 0) os_file_close(file);
    }
  } open{os_file_open(path)};
  if (open.file < 0) fail_io(path, "cannot be opened", open.file);
  const int64_t bytes = os_file_size(open.file);
  if (bytes < 0) fail_io(path, "cannot be measured", bytes);
  SmallVec<char, 24> out;
  out.resize(bytes);
  read_all(open.file, path, out.data(), bytes, 0);
  return out;
}

// Reverses the bytes of each item of `width` bytes.
void swap_bytes(char* p, int64_t bytes, int64_t width) {
  for (int64_t i = 0; i < bytes; i += width)
    for (int64_t k = 0; k < width / 2; k++) std::swap(p[i + k], p[i + width - 1 - k]);
}

// The number of bytes of an array; fails if the sizes overflow or exceed what is left at `at`.
int64_t array_bytes(const Bytes& b, Ints sizes, Dtype dtype, int64_t at) {
  int64_t bytes = item_size(dtype);
  bool fits = true;
  bool empty = false;
  for (int64_t s : sizes) {
    fits = fits && s >= 0 && !mul_overflow(bytes, s ? s : 1, &bytes);
    empty |= s == 0;
  }
  if (!fits || bytes > (int64_t(1) << 58)) b.bad(at, "the sizes of the array overflow");
  if (empty) return 0;
  if (bytes > b.data.n - at) b.bad(b.data.n, "the file ends before the array does");
  return bytes;
}

// ---- .npy: magic, version, length of the header, a Python dict as text, elements ----

constexpr int64_t kNpyMagic = 6;

class NpyHeader {
 public:
  explicit NpyHeader(const Bytes& b) : b_(b) {}
  void parse();

  Dtype dtype = Dtype::kNone;
  bool swapped = false;
  bool fortran = false;
  Shape sizes;
  int64_t data = 0;  // position of the elements

 private:
  [[noreturn]] void bad(const char* why) const { b_.bad(at_, why); }
  char peek() {
    while (at_ < data && (b_.data[at_] == ' ' || b_.data[at_] == '\n')) at_++;
    return at_ < data ? b_.data[at_] : '\0';
  }
  void expect(char c, const char* why) {
    if (peek() != c) bad(why);
    at_++;
  }
  bool accept(char c) {
    if (peek() != c) return false;
    at_++;
    return true;
  }
  Span<const char> string();
  bool truth();
  int64_t integer();
  void shape();
  void type(Span<const char> text);

  const Bytes& b_;
  int64_t at_ = 0;
};

bool equal(Span<const char> a, const char* b) {
  return a.n == int64_t(strlen(b)) && memcmp(a.ptr, b, size_t(a.n)) == 0;
}

Span<const char> NpyHeader::string() {
  const char quote = peek();
  if (quote != '\'' && quote != '"') bad("expected a string");
  const int64_t begin = ++at_;
  while (at_ < data && b_.data[at_] != quote) at_++;
  if (at_ == data) bad("the string does not end");
  return b_.data.slice(begin, at_++);
}

bool NpyHeader::truth() {
  for (bool value : {false, true}) {
    const char* word = value ? "True" : "False";
    const int64_t n = int64_t(strlen(word));
    peek();
    if (n > data - at_ || memcmp(&b_.data[at_], word, size_t(n)) != 0) continue;
    at_ += n;
    return value;
  }
  bad("expected True or False");
}

int64_t NpyHeader::integer() {
  int64_t v = 0;
  if (peek() < '0' || peek() > '9') bad("expected a size");
  for (; at_ < data && b_.data[at_] >= '0' && b_.data[at_] <= '9'; at_++)
    if (mul_overflow(v, 10, &v) || add_overflow(v, b_.data[at_] - '0', &v))
      bad("the sizes of the array overflow");
  return v;
}

void NpyHeader::shape() {
  expect('(', "expected the shape as a tuple");
  while (!accept(')')) {
    if (sizes.size() == kMaxDims) bad("the array has more than 64 dimensions");
    sizes.push_back(integer());
    if (!accept(',') && peek() != ')') bad("expected , or )");
  }
}

struct NpyType {
  const char* name;
  Dtype dtype;
};
constexpr NpyType kNpyTypes[] = {{"b1", Dtype::kBool}, {"u1", Dtype::kU8},   {"i1", Dtype::kI8},
                                 {"i2", Dtype::kI16},  {"i4", Dtype::kI32},  {"i8", Dtype::kI64},
                                 {"u2", Dtype::kU16},  {"u4", Dtype::kU32},  {"u8", Dtype::kU64},
                                 {"f2", Dtype::kF16},  {"f4", Dtype::kF32},  {"f8", Dtype::kF64},
                                 {"c8", Dtype::kC64},  {"c16", Dtype::kC128}};

void NpyHeader::type(Span<const char> text) {
  if (text.n < 2 || !memchr("<>|=", text[0], 4)) bad("the type of the elements is unknown");
  if (text[1] == 'O') bad("the array holds Python objects, which are not read");
  for (const NpyType& t : kNpyTypes)
    if (equal(text.slice(1, text.n), t.name)) dtype = t.dtype;
  if (dtype == Dtype::kNone) bad("no dtype has elements of this type");
  swapped = text[0] == '>';
}

void NpyHeader::parse() {
  const auto* u = reinterpret_cast<const uint8_t*>(b_.data.ptr);
  const int64_t n = b_.data.n;
  if (n < kNpyMagic + 4 || memcmp(u, "\x93NUMPY", kNpyMagic) != 0)
    b_.bad(0, "it does not begin like a .npy file");
  const int version = u[kNpyMagic];
  if (version < 1 || version > 3) b_.bad(kNpyMagic, "the version of the format is unknown");
  const int digits = version == 1 ? 2 : 4;
  at_ = kNpyMagic + 2 + digits;
  if (at_ > n) b_.bad(n, "the file ends within its header");
  int64_t length = 0;
  for (int k = digits - 1; k >= 0; k--) length = length << 8 | u[kNpyMagic + 2 + k];
  if (length > n - at_) b_.bad(kNpyMagic + 2, "the length of the header exceeds the file");
  data = at_ + length;
  int seen = 0;
  expect('{', "expected a dict");
  while (!accept('}')) {
    const Span<const char> key = string();
    expect(':', "expected : after the key");
    if (equal(key, "descr")) {
      if (peek() == '[') bad("arrays of records are not read");
      type(string());
      seen |= 1;
    } else if (equal(key, "fortran_order")) {
      fortran = truth();
      seen |= 2;
    } else if (equal(key, "shape") && !(seen & 4)) {
      shape();
      seen |= 4;
    } else {
      bad("unexpected key of the header");
    }
    if (!accept(',') && peek() != '}') bad("expected , or }");
  }
  if (seen != 7) bad("the header lacks descr, fortran_order or shape");
}

TensorRef npy_array(const Bytes& b) {
  NpyHeader h(b);
  h.parse();
  const int64_t bytes = array_bytes(b, h.sizes, h.dtype, h.data);
  Shape strides(h.sizes);
  int64_t step = 1;
  for (int64_t d = 0; d < h.sizes.size(); d++) {
    strides[d] = step;
    step *= h.sizes[d] ? h.sizes[d] : 1;
  }
  TensorRef out = h.fortran && bytes ? new_strided(h.sizes, strides, h.dtype, kCpuDevice)
                                     : new_tensor(h.sizes, h.dtype, kCpuDevice);
  if (!bytes) return out;
  memcpy(out->data, &b.data[h.data], size_t(bytes));
  if (h.swapped) swap_bytes(out->data, bytes, item_size(real_of(h.dtype)));
  for (int64_t i = 0; h.dtype == Dtype::kBool && i < bytes; i++) out->data[i] = out->data[i] != 0;
  note_host_write(*out);
  return out;
}

// ---- IDX: two zeros, type, number of dimensions, sizes of four bytes, elements; big-endian ----

Dtype idx_dtype(int code) {
  switch (code) {
    case 8: return Dtype::kU8;
    case 9: return Dtype::kI8;
    case 11: return Dtype::kI16;
    case 12: return Dtype::kI32;
    case 13: return Dtype::kF32;
    case 14: return Dtype::kF64;
    default: return Dtype::kNone;
  }
}

// ---- CSV ----

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Csv {
 public:
  Csv(const char* path, Span<const char> text, const CsvOptions& o)
      : path_(path), text_(text), o_(o) {
    if (o_.dtype == Dtype::kNone) o_.dtype = default_float();
    whole_ = category(o_.dtype) < 2;
    point_ = parse_double("1.5", nullptr) == 1.5 ? '.' : ',';
  }
  TensorRef load();

 private:
  [[noreturn]] TT_COLD void bad(const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\", line {}, field {}: {}", path_, line_, field_, why);
  }
  static double parse_double(const char* text, const char** end);
  Span<const char> next_field(bool* last);
  int64_t integer(Span<const char> field) const;
  void add(Span<const char> field);
  void row();

  const char* path_;
  const Span<const char> text_;
  CsvOptions o_;
  bool whole_;
  char point_;  // that the C library reads in numbers
  int64_t at_ = 0;
  int64_t line_ = 1;
  int64_t field_ = 0;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  SmallVec<int64_t, 16> values_;  // bits of doubles, or integers
};

double Csv::parse_double(const char* text, const char** end) {
  char* stop = nullptr;
  const double v = strtod(text, &stop);
  if (end) *end = stop;
  return v;
}

// The next field of a line, without white space around it.
Span<const char> Csv::next_field(bool* last) {
  int64_t begin = at_;
  while (at_ < text_.n && text_[at_] != o_.delimiter && text_[at_] != '\n') at_++;
  int64_t end = at_;
  *last = at_ == text_.n || text_[at_] == '\n';
  if (at_ < text_.n) at_++;
  while (begin < end && is_space(text_[begin])) begin++;
  while (end > begin && is_space(text_[end - 1])) end--;
  return text_.slice(begin, end);
}

int64_t Csv::integer(Span<const char> field) const {
  const bool negative = field[0] == '-';
  int64_t i = negative || field[0] == '+';
  int64_t v = 0;
  if (i == field.n) bad("it is no integer");
  for (; i < field.n; i++) {
    if (field[i] < '0' || field[i] > '9') bad("it is no integer");
    const int64_t digit = negative ? '0' - field[i] : field[i] - '0';
    if (mul_overflow(v, 10, &v) || add_overflow(v, digit, &v)) bad("it is no integer of 64 bits");
  }
  const bool wraps = negative && o_.dtype == Dtype::kU8;
  if (wraps || !fits(Scalar(v), o_.dtype)) bad("it does not fit the dtype");
  return v;
}

void Csv::add(Span<const char> field) {
  constexpr int64_t kLongest = 1100;  // characters of a double written in full
  char text[kLongest + 1];
  if (!field.n) bad("it is empty");
  if (field.n > kLongest) bad("it is no number");
  for (int64_t i = 0; i < field.n; i++) {
    const char c = field[i];  // strtod reads hexadecimal numbers, too
    if (c == ',' || c == '\0' || c == 'x' || c == 'X') bad("it is no number");
    text[i] = c == '.' ? point_ : c;
  }
  text[field.n] = '\0';
  int64_t bits;
  if (whole_) {
    bits = integer(field);
  } else {
    const char* end = nullptr;
    const double v = parse_double(text, &end);
    if (end != text + field.n) bad("it is no number");
    memcpy(&bits, &v, 8);
  }
  values_.push_back(bits);
}

void Csv::row() {
  bool last = false;
  for (field_ = 1; !last; field_++) {
    const Span<const char> field = next_field(&last);
    if (last && field_ == 1 && !field.n) {
      field_ = 0;
      break;  // an empty line
    }
    add(field);
  }
  line_++;
  if (!field_) return;
  if (rows_++ == 0) columns_ = field_ - 1;
  if (columns_ == field_ - 1) return;
  line_--;
  fail_arg(TT_FORMAT, "path", "\"{}\", line {}: the line has {} fields, the first row {}", path_,
           line_, field_ - 1, columns_);
}

TensorRef Csv::load() {
  if (text_.n >= 3 && memcmp(text_.ptr, "\xef\xbb\xbf", 3) == 0) at_ = 3;  // a byte order mark
  for (int64_t k = 0; k < o_.skip_rows && at_ < text_.n; k++, line_++) {
    while (at_ < text_.n && text_[at_] != '\n') at_++;
    if (at_ < text_.n) at_++;
  }
  while (at_ < text_.n) row();
  const int64_t sizes[2] = {rows_, columns_};
  TensorRef read = new_tensor(sizes, whole_ ? Dtype::kI64 : Dtype::kF64, kCpuDevice);
  if (read->numel) memcpy(read->data, values_.data(), size_t(read->numel) * 8);
  note_host_write(*read);
  if (read->dtype == o_.dtype) return read;
  TensorRef out = new_tensor(sizes, o_.dtype, kCpuDevice);
  copy_elements(*out, *read);
  return out;
}

// ---- compressed files ----

SmallVec<char, 24> stored_entry(const ZipReader& archive, int64_t i) {
  SmallVec<char, 24> data;
  data.resize(archive.entry(i).bytes);
  archive.read(i, data.data(), data.size());
  return data;
}

SmallVec<char, 24> inflated_entry(const ZipReader& archive, int64_t i) {
  const ZipEntry& e = archive.entry(i);
  if (e.bytes / kMaxInflation > e.stored)
    archive.bad(e.header, "an entry of {} bytes cannot have {}", e.stored, e.bytes);
  SmallVec<char, 24> packed;
  SmallVec<char, 24> data;
  packed.resize(e.stored);
  archive.read_stored(i, packed.data());
  data.resize(e.bytes);
  const Inflated done = inflate({packed.data(), packed.size()}, {data.data(), data.size()});
  if (done.error) archive.bad(e.begin + done.used, done.error);
  if (done.used != e.stored) archive.bad(e.begin + done.used, "data follow the compressed ones");
  archive.verify(i, data.data());
  return data;
}

// The content of a file of gzip (RFC 1952), which has one member.
SmallVec<char, 24> gunzip(const Bytes& b) {
  constexpr int64_t kHead = 10;
  constexpr int64_t kTail = 8;
  enum Flag { kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 224 };
  const auto* u = reinterpret_cast<const uint8_t*>(b.data.ptr);
  const int64_t end = b.data.n - kTail;  // of the compressed data
  const auto get32 = [&](int64_t at) {
    return uint32_t(u[at]) | uint32_t(u[at + 1]) << 8 | uint32_t(u[at + 2]) << 16 |
           uint32_t(u[at + 3]) << 24;
  };
  if (end < kHead + 2) b.bad(b.data.n, "the compressed file ends early");
  if (u[2] != 8 || u[3] & kReserved) b.bad(2, "the kind of the compression is unknown");
  int64_t at = kHead;
  if (u[3] & kExtra) at += 2 + (u[at] | u[at + 1] << 8);
  for (int flag : {kName, kComment}) {
    if (!(u[3] & flag)) continue;
    while (at < end && u[at]) at++;
    at++;
  }
  if (u[3] & kHeaderCrc) at += 2;
  if (at > end) b.bad(b.data.n, "the compressed file ends early");
  const int64_t bytes = get32(end + 4);
  if (bytes / kMaxInflation > end - at) b.bad(end + 4, "the size is larger than it can be");
  SmallVec<char, 24> data;
  data.resize(bytes);
  const Inflated done = inflate(b.data.slice(at, end), {data.data(), data.size()});
  if (done.error) b.bad(at + done.used, done.error);
  if (done.used != end - at) b.bad(at + done.used, "data follow the compressed ones");
  if (Crc32()(0, data.data(), bytes) != get32(end)) b.bad(end, "the checksum is wrong");
  return data;
}

bool is_gzip(Span<const char> data) {
  return data.n >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

}  // namespace

TensorRef load_npy(const char* path) {
  const SmallVec<char, 24> data = whole_file(path);
  return npy_array({path, "", {data.data(), data.size()}});
}

StateDictRef load_npz(const char* path) {
  const ZipReader archive(path, "an archive of np.savez", true);
  StateDictRef out = new_state_dict();
  for (int64_t i = 0; i < archive.size(); i++) {
    const ZipEntry& e = archive.entry(i);
    Text name;
    Span<const char> full = archive.name(i);
    if (full.n < 5 || memcmp(full.end() - 4, ".npy", 4) != 0)
      archive.bad(e.header, "an entry is no .npy file");
    name.add(full.slice(0, full.n - 4));
    const SmallVec<char, 24> data =
        e.deflated ? inflated_entry(archive, i) : stored_entry(archive, i);
    out->append(name.c_str(), npy_array({path, name.c_str(), {data.data(), data.size()}}));
  }
  return out;
}

TensorRef load_idx(const char* path) {
  SmallVec<char, 24> data = whole_file(path);
  if (is_gzip({data.data(), data.size()})) data = gunzip({path, "", {data.data(), data.size()}});
  const Bytes b{path, "", {data.data(), data.size()}};
  const auto* u = reinterpret_cast<const uint8_t*>(data.data());
  if (data.size() < 4 || u[0] || u[1]) b.bad(0, "it does not begin like an IDX file");
  const Dtype dtype = idx_dtype(u[2]);
  if (dtype == Dtype::kNone) b.bad(2, "the type of the elements is unknown");
  const int64_t ndim = u[3];
  if (ndim > kMaxDims) b.bad(3, "the array has more than 64 dimensions");
  const int64_t begin = 4 + 4 * ndim;
  if (begin > data.size()) b.bad(data.size(), "the file ends within its sizes");
  Shape sizes;
  for (int64_t at = 4; at < begin; at += 4)
    sizes.push_back(int64_t(u[at]) << 24 | int64_t(u[at + 1]) << 16 | int64_t(u[at + 2]) << 8 |
                    u[at + 3]);
  const int64_t bytes = array_bytes(b, sizes, dtype, begin);
  if (begin + bytes != data.size()) b.bad(begin + bytes, "the file goes on behind the array");
  TensorRef out = new_tensor(sizes, dtype, kCpuDevice);
  if (bytes) memcpy(out->data, data.data() + begin, size_t(bytes));
  swap_bytes(out->data, bytes, item_size(dtype));
  note_host_write(*out);
  return out;
}

TensorRef load_csv(const char* path, const CsvOptions& o) {
  const SmallVec<char, 24> text = whole_file(path);
  return Csv(path, {text.data(), text.size()}, o).load();
}

}  // namespace TT_NS
