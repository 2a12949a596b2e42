// ONNX models as graphs.
#include "base/os_file.h"
#include "capi/graph/graph.h"
#include "graph/onnx/import.h"
#include "io/files.h"

#include <string.h>

using namespace TT_NS;

namespace {

struct ModelFile {
  const char* path;
  int file;
  explicit ModelFile(const char* p) : path(p), file(os_file_open(p)) {
    if (file < 0) fail_io(path, "cannot be opened", file);
  }
  ~ModelFile() { os_file_close(file); }
  ModelFile(const ModelFile&) = delete;
};

// Files of tensors, in the folder of the model.
struct TensorFiles : OnnxFiles {
  explicit TensorFiles(const char* model) {
    const char* end = strrchr(model, '/');
    if (end) folder.add({model, end + 1 - model});
    open = [](OnnxFiles& files, Name path) { return static_cast<TensorFiles&>(files).use(path); };
    read = [](OnnxFiles& files, int64_t offset, char* to, int64_t n) {
      auto& own = static_cast<TensorFiles&>(files);
      read_all(own.file, own.opened.c_str(), to, n, offset);
    };
  }
  ~TensorFiles() {
    if (file >= 0) os_file_close(file);
  }
  TensorFiles(const TensorFiles&) = delete;

  int64_t use(Name path) {
    Text name(folder.c_str());
    name.add(path);
    if (file < 0 || !opened.is(name.c_str())) {
      if (file >= 0) os_file_close(file);
      opened = std::move(name);
      file = os_file_open(opened.c_str());
      if (file < 0) fail_io(opened.c_str(), "cannot be opened", file);
    }
    const int64_t n = os_file_size(file);
    if (n < 0) fail_io(opened.c_str(), "cannot be read", n);
    return n;
  }

  Text folder, opened;
  int file = -1;
};

}  // namespace

tt_status tt_graph_load_onnx(tt_ctx* h, const char* path, const tt_graph_load_onnx_opts* opts,
                             tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_load_onnx", [&](Ctx&) {
    str_arg(path, "path", 1);
    check_opts(opts, 1);
    out_arg(out, "out", 3);
    const int64_t dynamic = opts_has(opts, 0) ? opts->dynamic : 1;
    if (dynamic < 0) fail_arg(TT_INVALID_ARG, "dynamic", "dynamic is {}: is negative", dynamic);
    const ModelFile model(path);
    const int64_t n = os_file_size(model.file);
    if (n < 0) fail_io(path, "cannot be read", n);
    SmallVec<char, 1> bytes;
    bytes.resize(n);
    read_all(model.file, path, bytes.data(), n, 0);
    TensorFiles files(path);
    *out = reinterpret_cast<tt_graph*>(import_onnx({bytes.data(), n}, dynamic, &files).leak());
  });
}
