#include "io/safetensors.h"

#include "base/text/format.h"
#include "base/os_file.h"
#include "core/ctx.h"
#include "ops/gen/ops.h"
#include "io/files.h"
#include "io/torch/sort.h"
#include "ops/impl.h"

#include <new>
#include <string.h>

namespace TT_NS {

namespace {

[[noreturn]] TT_COLD void fail_format(const char* path, int64_t at, const char* why) {
  fail_arg(TT_FORMAT, "path", "\"{}\", byte {}: {}", path, at, why);
}

void read_header(TensorFile& f) {
  const int64_t size = os_file_size(f.file);
  if (size < 0) fail_io(f.path, "cannot be measured", size);
  if (size < 8)
    fail_format(f.path, size, "the file ends within the 8 bytes of the header's length");
  uint64_t length;
  read_all(f.file, f.path, &length, 8, 0);
  if (length > uint64_t(kMaxHeaderBytes))
    fail_format(f.path, 0, "the header's length is above 100 MB: this is no safetensors file");
  if (int64_t(length) > size - 8) fail_format(f.path, 0, "the header's length exceeds the file");
  f.text = static_cast<char*>(mem_alloc_wide(length + 1));
  f.text_bytes = int64_t(length) + 1;
  read_all(f.file, f.path, f.text, int64_t(length), 8);
  f.data = 8 + int64_t(length);
  parse_header(f.path, f.text, int64_t(length), size - f.data, &f.header);
}

}  // namespace

void FileMap::destroy(FileMap* m) noexcept {
  os_file_unmap(m->bytes, m->size);
  mem_free(m, sizeof *m);
}

void map_file(TensorFile& f) {
  const int64_t size = os_file_size(f.file);
  auto* m = static_cast<FileMap*>(mem_alloc(sizeof(FileMap)));
  *m = {1, static_cast<char*>(os_file_map(f.file, size)), size};
  if (m->bytes) return void(f.map = Ref<FileMap>::adopt(m));
  mem_free(m, sizeof *m);
  fail_arg(TT_IO, "path", "\"{}\" cannot be mapped into memory", f.path);
}

void TensorFile::destroy(TensorFile* f) noexcept {
  if (f->file >= 0) os_file_close(f->file);
  if (f->text) mem_free(f->text, size_t(f->text_bytes));
  if (f->path) mem_free(f->path, size_t(f->path_bytes));
  f->tag = 0;
  f->~TensorFile();
  mem_free(f, sizeof *f);
}

Ref<TensorFile> open_file(const char* path) {
  auto f = Ref<TensorFile>::adopt(new (mem_alloc(sizeof(TensorFile))) TensorFile{
      kTagTensorFile, 1, -1, 0, nullptr, 0, nullptr, 0, {}, {}});
  const int64_t n = int64_t(strlen(path)) + 1;
  f->path = static_cast<char*>(mem_alloc_wide(n));
  f->path_bytes = n;
  memcpy(f->path, path, size_t(n));
  f->file = os_file_open(path);
  if (f->file < 0) fail_io(path, "cannot be opened", f->file);
  return f;
}

Ref<TensorFile> open_tensors(const char* path, bool mapped) {
  Ref<TensorFile> f = open_file(path);
  read_header(*f);
  if (mapped) map_file(*f);
  return f;
}

static TensorRef map_tensor(const TensorFile& f, Ints sizes, const FileTensor& t) {
  auto unmap = [](void* m) { Ref<FileMap>::adopt(static_cast<FileMap*>(m)).reset(); };
  TensorRef out = new_import(f.map->bytes + f.data + t.begin, sizes, {}, t.dtype, kCpuDevice, unmap,
                             Ref<FileMap>(f.map).leak());
  out->storage->writable = false;
  return out;
}

TensorRef read_tensor(const TensorFile& f, int64_t i) {
  if (i < 0 || i >= f.header.tensors.size())
    fail_arg(TT_INDEX, "i", "i is {}: \"{}\" has {} tensors", i, f.path, f.header.tensors.size());
  const FileTensor& t = f.header.tensors[i];
  const Ints sizes(f.header.sizes.data() + t.shape, t.ndim);
  const int64_t bytes = t.end - t.begin;
  const bool over_map = f.map && bytes && (f.data + t.begin) % item_size(real_of(t.dtype)) == 0;
  if (over_map && f.data + t.end > f.map->size)
    fail_arg(TT_IO, "path", "\"{}\" has been truncated since its header was read", f.path);
  TensorRef out = over_map ? map_tensor(f, sizes, t) : new_tensor(sizes, t.dtype, kCpuDevice);
  if (bytes && !over_map) read_all(f.file, f.path, out->data, bytes, f.data + t.begin);
  for (int64_t k = 0; t.dtype == Dtype::kBool && k < bytes; k++)
    if (uint8_t(out->data[k]) > 1)
      fail_format(f.path, f.data + t.begin + k, "bool value is neither 0 nor 1");
  return out;
}

// ---- saving ----

namespace {

using Chars = SmallVec<char, 64>;

void put(Chars& to, const char* s) { to.append({s, int64_t(strlen(s))}); }
void put(Chars& to, int64_t v) {
  char digits[24];
  to.append({digits, format_int(digits, v)});
}
void put_string(Chars& to, const char* s) {
  to.push_back('"');
  for (; *s; s++) {
    const uint8_t c = uint8_t(*s);
    if (c == '"' || c == '\\') {
      to.push_back('\\');
      to.push_back(*s);
    } else if (c < 0x20) {
      put(to, "\\u00");
      to.push_back(char('0' + (c >> 4)));
      to.push_back("0123456789abcdef"[c & 15]);
    } else {
      to.push_back(*s);
    }
  }
  to.push_back('"');
}

void check_text(const char* s, const char* arg, int64_t i) {
  if (!s) fail_arg(TT_INVALID_ARG, arg, "{}[{}] is NULL: must be a string", arg, i);
  check_utf8({s, int64_t(strlen(s))}, arg, i);
}
void check_unique(Span<const char* const> names, const char* arg, int64_t step) {
  SmallVec<int64_t, 16> order;
  for (int64_t i = 0; i < names.n; i += step) order.push_back(i);
  sort_indices(order.mut(),
               [&](int64_t a, int64_t b) { return strcmp(names.ptr[a], names.ptr[b]) < 0; });
  for (int64_t i = 1; i < order.size(); i++)
    if (strcmp(names.ptr[order[i - 1]], names.ptr[order[i]]) == 0)
      fail_arg(TT_INVALID_ARG, arg, "{}[{}] and {}[{}] are both \"{}\": names must differ", arg,
               order[i - 1], arg, order[i], names.ptr[order[i]]);
}
void check_to_save(Span<const char* const> names, Span<const Tensor* const> tensors,
                   Span<const char* const> metadata) {
  for (int64_t i = 0; i < names.n; i++) {
    check_text(names.ptr[i], "names", i);
    if (strcmp(names.ptr[i], "__metadata__") == 0)
      fail_arg(TT_INVALID_ARG, "names", "names[{}] is \"__metadata__\", which the format reserves",
               i);
    const Tensor& t = *tensors.ptr[i];
    if (!file_dtype(t.dtype))
      fail_arg(TT_NOT_IMPLEMENTED, "tensors", "\"{}\" is {}: safetensors has no such dtype",
               names.ptr[i], fmt(t.dtype));
    if (t.device.type == TT_META)
      fail_arg(TT_DEVICE, "tensors", "\"{}\" is a meta tensor, which has no data", names.ptr[i]);
  }
  for (int64_t i = 0; i < metadata.n; i++) check_text(metadata.ptr[i], "metadata", i);
  check_unique(names, "names", 1);
  check_unique(metadata, "metadata", 2);
}

Chars header_of(Span<const char* const> names, Span<const Tensor* const> tensors,
                Span<const char* const> metadata) {
  Chars h;
  int64_t at = 0;
  h.resize(8);
  h.push_back('{');
  if (metadata.n) {
    put(h, "\"__metadata__\":");
    for (int64_t i = 0; i < metadata.n; i += 2) {
      h.push_back(i ? ',' : '{');
      put_string(h, metadata.ptr[i]);
      h.push_back(':');
      put_string(h, metadata.ptr[i + 1]);
    }
    h.push_back('}');
  }
  for (int64_t i = 0; i < names.n; i++) {
    const Tensor& t = *tensors.ptr[i];
    if (h.back() != '{') h.push_back(',');
    put_string(h, names.ptr[i]);
    put(h, ":{\"dtype\":\"");
    put(h, file_dtype(t.dtype));
    put(h, "\",\"shape\":[");
    for (int64_t d = 0; d < t.ndim; d++) {
      put(h, d ? "," : "");
      put(h, t.size(d));
    }
    put(h, "],\"data_offsets\":[");
    put(h, at);
    h.push_back(',');
    if (add_overflow(at, t.numel * t.item_size(), &at))
      fail_arg(TT_INVALID_ARG, "tensors", "the tensors exceed the maximum size of a file");
    put(h, at);
    put(h, "]}");
  }
  h.push_back('}');
  while (h.size() % 8) h.push_back(' ');
  const int64_t length = h.size() - 8;
  if (length > kMaxHeaderBytes)
    fail_arg(TT_INVALID_ARG, "names", "the header has {} bytes: at most {} are allowed", length,
             kMaxHeaderBytes);
  memcpy(h.data(), &length, 8);
  return h;
}

}  // namespace

void save_tensors(const char* path, Span<const char* const> names,
                  Span<const Tensor* const> tensors, Span<const char* const> metadata) {
  check_to_save(names, tensors, metadata);
  const Chars header = header_of(names, tensors, metadata);
  MaskGuard no_grad(bit(kKeyAutograd));
  NewFile file(path);
  file.write(header.data(), header.size());
  for (const Tensor* t : tensors) {
    if (t->numel == 0) continue;
    note_host_read(*t);
    TensorRef on_cpu = t->is_cpu() ? TensorRef::share(t) : op::to_device(*t, kCpuDevice);
    TensorRef rows = dense_input(on_cpu);
    file.write(rows->data, rows->numel * rows->item_size());
  }
  file.commit();
}

}  // namespace TT_NS
