// A file is a sequence of records: the length, its checksum, an Event message, its checksum.
// Messages are Protocol Buffers with the field numbers of TensorFlow's event.proto and
// summary.proto; tt.utils.tensorboard writes the same.
#include "io/tensorboard.h"

#include "base/os_file.h"
#include "io/files.h"
#include "io/torch/zip.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <errno.h>
#include <time.h>

namespace TT_NS {

namespace {

using Bytes = Span<const char>;

Bytes bytes_of(const char* text) { return {text, int64_t(strlen(text))}; }

// ---- messages ----

class Message {
 public:
  Message& integer(int number, uint64_t value) {
    varint(uint64_t(number) << 3);
    return varint(value);
  }
  Message& real(int number, double value) {
    varint(uint64_t(number) << 3 | 1);
    return raw(value);
  }
  Message& single(int number, float value) {
    varint(uint64_t(number) << 3 | 5);
    return raw(value);
  }
  // A text or a message.
  Message& part(int number, Bytes value) {
    varint(uint64_t(number) << 3 | 2);
    varint(uint64_t(value.n));
    text_.add(value);
    return *this;
  }
  Message& part(int number, const Message& value) { return part(number, value.bytes()); }
  // Little-endian, as the format wants it and as all targets of tt have it.
  template <class T> Message& raw(T value) {
    text_.add({reinterpret_cast<const char*>(&value), int64_t(sizeof value)});
    return *this;
  }
  Message& raw_big_endian(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) raw(uint8_t(value >> shift));
    return *this;
  }
  Message& raw(Bytes value) {
    text_.add(value);
    return *this;
  }
  Bytes bytes() const { return text_.span(); }

 private:
  // Groups of 7 bits, the lowest first.
  Message& varint(uint64_t n) {
    for (; n > 127; n >>= 7) raw(uint8_t((n & 127) | 128));
    return raw(uint8_t(n));
  }
  Text text_;
};

// ---- records ----

// CRC-32C, rotated and offset as the format requires.
uint32_t masked_crc(Bytes bytes) {
  uint32_t crc = ~uint32_t(0);
  for (const char byte : bytes) {
    crc ^= uint8_t(byte);
    for (int k = 0; k < 8; k++) crc = (crc >> 1) ^ (0x82F63B78 & (0 - (crc & 1)));
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

void add_record(Message& file, const Message& event) {
  const auto length = uint64_t(event.bytes().n);
  file.raw(length);
  file.raw(masked_crc({reinterpret_cast<const char*>(&length), 8}));
  file.raw(event.bytes());
  file.raw(masked_crc(event.bytes()));
}

class AppendedFile {
 public:
  explicit AppendedFile(const char* path) : path_(path), file_(os_file_append(path)) {
    if (file_ == -ENOENT) fail_io(path, "its folder does not exist", file_);
    if (file_ < 0) fail_io(path, "cannot be opened for writing", file_);
  }
  ~AppendedFile() { os_file_close(file_); }
  AppendedFile(const AppendedFile&) = delete;
  bool is_new() const { return os_file_size(file_) == 0; }
  void write(Bytes bytes) {
    if (int status = os_file_write(file_, bytes.ptr, bytes.n))
      fail_io(path_, "cannot be written", status);
  }

 private:
  const char* path_;
  int file_;
};

// Appends a Summary with one value, whose fields but the tag are given.
void add_summary(const SummaryPlace& place, const Message& fields) {
  const auto now = double(time(nullptr));
  Message value;
  value.part(1, bytes_of(place.tag)).raw(fields.bytes());
  Message summary;
  summary.part(1, value);
  Message event;
  event.real(1, now);
  if (place.step >= 0) event.integer(2, uint64_t(place.step));
  event.part(5, summary);
  AppendedFile file(place.path);
  Message records;
  if (file.is_new()) {
    Message version;
    version.real(1, now).part(3, bytes_of("brain.Event:2"));
    add_record(records, version);
  }
  add_record(records, event);
  file.write(records.bytes());
}

// Dense elements on the CPU.
TensorRef dense(const Tensor& t, Dtype dtype) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef x = op::contiguous(*op::to(t, dtype, kCpuDevice));
  note_host_read(*x);
  return x;
}

// ---- histograms ----

// Edges of bins: powers of 1.1 from 1e-12 to 1e20, their negatives and 0, in ascending order.
class HistogramEdges {
 public:
  HistogramEdges() {
    for (double edge = 1e-12; edge < 1e20; edge *= 1.1) positive_.push_back(edge);
  }
  int64_t size() const { return 2 * positive_.size() + 1; }
  double operator[](int64_t i) const {
    const int64_t half = positive_.size();
    if (i < half) return -positive_[half - 1 - i];
    return i == half ? 0.0 : positive_[i - half - 1];
  }

 private:
  SmallVec<double, 1> positive_;
};

// Appends the limits and the counts of the bins, without empty ones at both ends. Bin i has the
// values in [edge i, edge i + 1), the last one its upper edge, too. values: in ascending order.
void add_bins(Message& histogram, Span<const double> values) {
  const HistogramEdges edges;
  const int64_t bins = edges.size() - 1;
  SmallVec<int64_t, 1> counts;
  int64_t first = -1;
  int64_t last = -1;
  int64_t at = 0;
  while (at < values.n && values[at] < edges[0]) at++;
  for (int64_t i = 0; i < bins; i++) {
    const double upper = edges[i + 1];
    const bool closed = i + 1 == bins;
    const int64_t begin = at;
    while (at < values.n && (values[at] < upper || (closed && values[at] == upper))) at++;
    counts.push_back(at - begin);
    if (at == begin) continue;
    if (first < 0) first = i;
    last = i;
  }
  if (first < 0)
    fail_arg(TT_INVALID_ARG, "values", "no value is within the bins of a histogram, up to 1e20");
  Message limits;
  Message numbers;
  limits.raw(edges[first]);
  numbers.raw(0.0);
  for (int64_t i = first; i <= last; i++) {
    limits.raw(edges[i + 1]);
    numbers.raw(double(counts[i]));
  }
  histogram.part(6, limits).part(7, numbers);
}

// ---- images: PNG files whose data is stored, not compressed ----

constexpr int64_t kMaxImageBytes = 2'000'000'000;  // of a chunk's 2^31 - 1

void add_chunk(Message& png, const char* kind, const Message& data) {
  Message named;
  named.raw(bytes_of(kind)).raw(data.bytes());
  png.raw_big_endian(uint32_t(data.bytes().n)).raw(named.bytes());
  png.raw_big_endian(Crc32()(0, named.bytes().ptr, named.bytes().n));
}

// A zlib stream of stored blocks (RFC 1950, 1951).
Message stored(Bytes data) {
  constexpr int64_t kBlock = 65535;
  Message out;
  out.raw(uint8_t(0x78)).raw(uint8_t(0x01));
  for (int64_t at = 0; at < data.n || !at; at += kBlock) {
    const int64_t n = min(kBlock, data.n - at);
    out.raw(uint8_t(at + n >= data.n)).raw(uint16_t(n)).raw(uint16_t(~n));
    out.raw({data.ptr + at, n});
  }
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char byte : data) {
    a = (a + uint8_t(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return std::move(out.raw_big_endian((b << 16) | a));
}

// pixels: (H, W, C)
Message png_of(const Tensor& pixels) {
  const int64_t height = pixels.size(0);
  const int64_t row = pixels.size(1) * pixels.size(2);
  constexpr uint8_t kColors[] = {0, 0, 0, 2, 6};  // by the number of channels
  Message head;
  head.raw_big_endian(uint32_t(pixels.size(1))).raw_big_endian(uint32_t(height));
  head.raw(uint8_t(8)).raw(kColors[pixels.size(2)]);
  head.raw(uint8_t(0)).raw(uint8_t(0)).raw(uint8_t(0));
  Message rows;
  for (int64_t y = 0; y < height; y++)
    rows.raw(uint8_t(0)).raw({pixels.data + y * row, row});  // 0: no filter
  Message png;
  png.raw({"\x89PNG\r\n\x1a\n", 8});
  add_chunk(png, "IHDR", head);
  add_chunk(png, "IDAT", stored(rows.bytes()));
  add_chunk(png, "IEND", Message());
  return png;
}

}  // namespace

void add_scalar(const SummaryPlace& place, double value) {
  add_summary(place, Message().single(2, float(value)));
}

void add_text(const SummaryPlace& place, const char* text) {
  constexpr int kString = 7;  // DT_STRING of types.proto
  Message plugin;
  plugin.part(1, Message().part(1, bytes_of("text")));
  Message shape;
  shape.part(2, Message().integer(1, 1));
  Message tensor;
  tensor.integer(1, kString).part(2, shape).part(8, bytes_of(text));
  Text tag(place.tag);
  tag.add("/text_summary");
  Message fields;
  fields.part(9, plugin).part(8, tensor);
  add_summary({place.path, tag.c_str(), place.step}, fields);
}

void add_histogram(const SummaryPlace& place, const Tensor& values) {
  const int64_t flat[1] = {-1};
  const TensorRef x = dense(*op::reshape(*op::detach(values), flat), Dtype::kF64);
  const int64_t n = x->numel;
  if (!n) fail_arg(TT_INVALID_ARG, "values", "values is empty: a histogram needs values");
  const MaskGuard no_grad(bit(kKeyAutograd));
  const TensorRef ordered = op::contiguous(*op::sort(*x).first);
  const auto* v = reinterpret_cast<const double*>(ordered->data);
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += v[i];
    squares += v[i] * v[i];
  }
  Message histogram;
  histogram.real(1, v[0]).real(2, v[n - 1]).real(3, double(n)).real(4, sum).real(5, squares);
  add_bins(histogram, {v, n});
  add_summary(place, Message().part(5, histogram));
}

void add_image(const SummaryPlace& place, const Tensor& image) {
  const int64_t channels = image.ndim == 3 ? image.size(0) : 0;
  if (channels != 1 && channels != 3 && channels != 4)
    fail_arg(TT_SHAPE, "img_tensor", "img_tensor is {}: must be (C, H, W) with 1, 3 or 4 channels",
             image.sizes());
  if (!image.numel)
    fail_arg(TT_SHAPE, "img_tensor", "img_tensor is {}: has no pixels", image.sizes());
  if (image.numel > kMaxImageBytes - image.size(1))
    fail_arg(TT_SHAPE, "img_tensor", "img_tensor is {}: must have fewer than {} elements",
             image.sizes(), kMaxImageBytes);
  const MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef given = op::detach(image);
  if (is_float(image.dtype)) {
    const Scalar low(0.0);
    const Scalar high(255.0);
    given = op::clamp(*op::mul(*given, Scalar(255.0)), &low, &high);
  }
  const int64_t last[3] = {1, 2, 0};
  const TensorRef pixels = dense(*op::permute(*given, last), Dtype::kU8);
  Message fields;
  fields.integer(1, uint64_t(pixels->size(0))).integer(2, uint64_t(pixels->size(1)));
  fields.integer(3, uint64_t(channels)).part(4, png_of(*pixels));
  add_summary(place, Message().part(4, fields));
}

}  // namespace TT_NS
