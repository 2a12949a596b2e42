// Graphs as C source, and quantised ones.
#include "capi/graph/graph.h"
#include "graph/c/export.h"
#include "graph/quantize.h"
#include "io/files.h"

using namespace TT_NS;

static void write_file(const char* dir, const char* name, const char* suffix,
                       Span<const char> bytes) {
  Text path;
  path.add(dir).add("/").add(name).add(suffix);
  NewFile file(path.c_str());
  file.write(bytes.ptr, bytes.n);
  file.commit();
}

static void export_files(const tt_graph* handle, const char* dir, const char* name, bool blob) {
  const Graph& g = graph_arg(handle);
  const char* folder = str_arg(dir, "dir", 2).ptr;
  const char* base = str_arg(name, "name", 3).ptr;
  CFiles files;
  export_c(g, base, blob, files);
  if (blob) write_file(folder, base, ".bin", {files.blob.data(), files.blob.size()});
  write_file(folder, base, ".h", files.header.span());
  write_file(folder, base, ".c", files.source.span());
}

tt_status tt_graph_export_c(tt_ctx* h, const tt_graph* g, const char* dir, const char* name) {
  return api_call(h, "graph_export_c", [&](Ctx&) { export_files(g, dir, name, false); });
}

tt_status tt_graph_export_c_with(tt_ctx* h, const tt_graph* g, const char* dir, const char* name,
                                 const tt_graph_export_c_opts* opts) {
  return api_call(h, "graph_export_c_with", [&](Ctx&) {
    check_opts(opts, 1);
    export_files(g, dir, name, opts_has(opts, 0) && opts->blob);
  });
}

tt_status tt_graph_quantize(tt_ctx* h, const tt_graph* handle, const tt_tensor* const* samples,
                            int64_t n, const tt_graph_quantize_opts* opts, tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_quantize", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    const TensorSpan list = tensors_arg(samples, n, "samples", 2, false);
    check_opts(opts, 2);
    out_arg(out, "out", 5);
    QuantizeOptions o;
    o.histogram = opts_has(opts, 0) && opts->histogram;
    o.per_row = opts_has(opts, 1) && opts->per_row;
    *out = reinterpret_cast<tt_graph*>(quantized(g, list, o).leak());
  });
}
