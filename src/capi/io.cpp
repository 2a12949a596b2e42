#include "capi/api.h"
#include "capi/module.h"
#include "io/arrays.h"
#include "io/dlpack.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "io/tensorboard.h"
#include "io/torch/file.h"

using namespace TT_NS;

static TensorFile* file_of(const tt_safetensors* h) {
  auto* f = reinterpret_cast<TensorFile*>(const_cast<tt_safetensors*>(h));
  return f && f->tag == kTagTensorFile ? f : nullptr;
}
static const TensorFile& file_arg(const tt_safetensors* h) {
  if (!file_of(h)) fail_handle(h, "f", 1, "safetensors");
  return *file_of(h);
}

tt_status tt_safetensors_save(tt_ctx* h, const char* path, const char* const* names,
                              tt_tensor* const* tensors, int64_t n,
                              const tt_safetensors_save_opts* opts) {
  return api_call(h, "safetensors_save", [&](Ctx&) {
    str_arg(path, "path", 1);
    if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
    if (n && !names) fail_null("names", 2);
    const TensorSpan list = tensors_arg(tensors, n, "tensors", 3, false);
    check_opts(opts, 1);
    Span<const char* const> metadata{nullptr, 0};
    if (opts_has(opts, 0) && opts->metadata) metadata = {opts->metadata, opts->n_metadata};
    if (metadata.n < 0 || metadata.n % 2)
      fail_arg(TT_INVALID_ARG, "metadata",
               "n_metadata is {}: must be the length of a list of keys and values", metadata.n);
    save_tensors(path, {names, n}, list, metadata);
  });
}

static tt_status open_file(tt_ctx* h, const char* call, const char* path, bool mapped,
                           tt_safetensors** out) {
  if (out) *out = nullptr;
  return api_call(h, call, [&](Ctx&) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_safetensors*>(open_tensors(path, mapped).leak());
  });
}
tt_status tt_safetensors_open(tt_ctx* h, const char* path, tt_safetensors** out) {
  return open_file(h, "safetensors_open", path, false, out);
}
tt_status tt_safetensors_map(tt_ctx* h, const char* path, tt_safetensors** out) {
  return open_file(h, "safetensors_map", path, true, out);
}
void tt_safetensors_retain(tt_safetensors* h) {
  if (TensorFile* f = file_of(h)) ref_inc_external(&f->refs);
}
void tt_safetensors_release(tt_safetensors* h) {
  if (TensorFile* f = file_of(h)) Ref<TensorFile>::adopt(f).reset();
}

int64_t tt_safetensors_size(const tt_safetensors* h) {
  return file_of(h) ? file_of(h)->header.tensors.size() : 0;
}
const char* tt_safetensors_name(const tt_safetensors* h, int64_t i) {
  return i >= 0 && i < tt_safetensors_size(h) ? file_of(h)->header.tensors[i].name : nullptr;
}
tt_status tt_safetensors_find(tt_ctx* h, const tt_safetensors* f, const char* name, int64_t* out) {
  if (out) *out = -1;
  return api_call(h, "safetensors_find", [&](Ctx&) {
    const TensorFile& file = file_arg(f);
    str_arg(name, "name", 2);
    out_arg(out, "out", 3);
    *out = find_tensor(file.header, name);
    if (*out < 0) fail_arg(TT_INDEX, "name", "\"{}\" has no tensor \"{}\"", file.path, name);
  });
}
tt_status tt_safetensors_get(tt_ctx* h, const tt_safetensors* f, int64_t i, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "safetensors_get", [&](Ctx& c) {
    const TensorFile& file = file_arg(f);
    out_arg(out, "out", 3);
    give(c, out, read_tensor(file, i));
  });
}
int64_t tt_safetensors_metadata_size(const tt_safetensors* h) {
  return file_of(h) ? file_of(h)->header.metadata.size() : 0;
}
const char* tt_safetensors_metadata_key(const tt_safetensors* h, int64_t i) {
  return i >= 0 && i < tt_safetensors_metadata_size(h) ? file_of(h)->header.metadata[i].key
                                                       : nullptr;
}
const char* tt_safetensors_metadata_value(const tt_safetensors* h, int64_t i) {
  return i >= 0 && i < tt_safetensors_metadata_size(h) ? file_of(h)->header.metadata[i].value
                                                       : nullptr;
}

tt_status tt_torch_load(tt_ctx* h, const char* path, tt_state_dict** out) {
  if (out) *out = nullptr;
  return api_call(h, "torch_load", [&](Ctx&) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_state_dict*>(load_torch(path).leak());
  });
}
tt_status tt_torch_save(tt_ctx* h, const char* path, const tt_state_dict* tensors,
                        const char* structure) {
  return api_call(h, "torch_save", [&](Ctx&) {
    str_arg(path, "path", 1);
    save_torch(path, state_dict_arg(tensors, "tensors", 2), structure);
  });
}

static tt_status gguf_file(tt_ctx* h, const char* call, const char* path, bool mapped,
                           tt_state_dict** out) {
  if (out) *out = nullptr;
  return api_call(h, call, [&](Ctx&) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_state_dict*>(load_gguf(path, mapped).leak());
  });
}
tt_status tt_gguf_load(tt_ctx* h, const char* path, tt_state_dict** out) {
  return gguf_file(h, "gguf_load", path, false, out);
}
tt_status tt_gguf_map(tt_ctx* h, const char* path, tt_state_dict** out) {
  return gguf_file(h, "gguf_map", path, true, out);
}

tt_status tt_npy_load(tt_ctx* h, const char* path, tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "npy_load", [&](Ctx& c) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    give(c, out, load_npy(path));
  });
}
tt_status tt_npz_load(tt_ctx* h, const char* path, tt_state_dict** out) {
  if (out) *out = nullptr;
  return api_call(h, "npz_load", [&](Ctx&) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_state_dict*>(load_npz(path).leak());
  });
}
tt_status tt_idx_load(tt_ctx* h, const char* path, tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "idx_load", [&](Ctx& c) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    give(c, out, load_idx(path));
  });
}
static CsvOptions csv_options(const char* delimiter, int64_t skip_rows, tt_dtype dtype) {
  CsvOptions o;
  if (delimiter) o.delimiter = delimiter[0];
  const bool one = !delimiter || (delimiter[0] && !delimiter[1]);
  if (!one || o.delimiter == '\n' || o.delimiter == '.')
    fail_arg(TT_INVALID_ARG, "delimiter", "delimiter is \"{}\": must be one character", delimiter);
  if (skip_rows < 0)
    fail_arg(TT_INVALID_ARG, "skip_rows", "skip_rows is {}: must not be negative", skip_rows);
  o.skip_rows = skip_rows;
  if (dtype) o.dtype = dtype_arg(dtype, "dtype", 4);
  if (is_complex(o.dtype) || is_wide_unsigned(o.dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be bool, a signed integer, uint8 or floating",
             fmt(o.dtype));
  return o;
}
tt_status tt_csv_load(tt_ctx* h, const char* path, const char* delimiter, int64_t skip_rows,
                      tt_dtype dtype, tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "csv_load", [&](Ctx& c) {
    str_arg(path, "path", 1);
    const CsvOptions o = csv_options(delimiter, skip_rows, dtype);
    out_arg(out, "out", 5);
    give(c, out, load_csv(path, o));
  });
}

tt_status tt_tensor_to_dlpack(tt_ctx* h, const tt_tensor* t, int32_t major, void** out) {
  if (out) *out = nullptr;
  return api_call(h, "tensor_to_dlpack", [&](Ctx&) {
    const Tensor& tensor = tensor_arg(t, "t", 1);
    out_arg(out, "out", 3);
    note_host_read(tensor);  // by others, whenever they want
    *out = to_dlpack(tensor, major);
  });
}
tt_status tt_tensor_from_dlpack(tt_ctx* h, void* managed, int32_t major, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "tensor_from_dlpack", [&](Ctx& c) {
    if (!managed) fail_null("managed", 1);
    out_arg(out, "out", 3);
    reserve_outs(c, 1);
    give(c, out, from_dlpack(managed, major));
  });
}

// ---- event files of TensorBoard ----

template <class F> static tt_status add_event(tt_ctx* h, const char* call, const char* path,
                                              const char* tag, int64_t step, const F& add) {
  return api_call(h, call, [&](Ctx&) {
    str_arg(path, "path", 1);
    str_arg(tag, "tag", 2);
    add(SummaryPlace{path, tag, step});
  });
}
tt_status tt_tensorboard_add_scalar(tt_ctx* h, const char* path, const char* tag,
                                    double scalar_value, int64_t global_step) {
  return add_event(h, "tensorboard_add_scalar", path, tag, global_step,
                   [&](const SummaryPlace& place) { add_scalar(place, scalar_value); });
}
tt_status tt_tensorboard_add_text(tt_ctx* h, const char* path, const char* tag,
                                  const char* text_string, int64_t global_step) {
  return add_event(h, "tensorboard_add_text", path, tag, global_step,
                   [&](const SummaryPlace& place) {
                     str_arg(text_string, "text_string", 3);
                     add_text(place, text_string);
                   });
}
tt_status tt_tensorboard_add_histogram(tt_ctx* h, const char* path, const char* tag,
                                       const tt_tensor* values, int64_t global_step) {
  return add_event(
      h, "tensorboard_add_histogram", path, tag, global_step,
      [&](const SummaryPlace& place) { add_histogram(place, tensor_arg(values, "values", 3)); });
}
tt_status tt_tensorboard_add_image(tt_ctx* h, const char* path, const char* tag,
                                   const tt_tensor* img_tensor, int64_t global_step) {
  return add_event(h, "tensorboard_add_image", path, tag, global_step,
                   [&](const SummaryPlace& place) {
                     add_image(place, tensor_arg(img_tensor, "img_tensor", 3));
                   });
}
