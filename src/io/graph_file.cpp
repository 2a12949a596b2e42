#include "io/graph_file.h"

#include "core/shape.h"
#include "graph/dry_run.h"
#include "io/safetensors.h"

#include <string.h>

namespace TT_NS {

constexpr const char* kFormat = "ttg";
constexpr const char* kGraphKey = "graph";
constexpr const char* kObjectsKey = "objects";

namespace {

bool is_saved(const IrStorage& s) {
  return s.role == IrRole::kState || s.role == IrRole::kConstant;
}
Text name_of(int64_t storage) {
  Text name("w");
  name.add(storage);
  return name;
}

// The whole memory of a storage: with the geometry of a value that is all of it, so that other
// readers of the file see a tensor; else as bytes.
TensorRef contents(const Graph& g, int32_t storage) {
  const IrStorage& s = g.storages[storage];
  const Tensor& t = *s.tensor;
  for (int32_t i = s.last_value; i >= 0; i = g.values[i].previous) {
    const IrValue& v = g.values[i];
    if (v.offset == 0 && v.numel() * item_size(v.dtype) == s.bytes && file_dtype(v.dtype) &&
        is_contiguous(v.sizes, v.strides))
      return new_alias(t, v.sizes, v.strides, t.storage->data, v.dtype);
  }
  const int64_t one = 1;
  return new_alias(t, Ints(&s.bytes, 1), Ints(&one, 1), t.storage->data, Dtype::kU8);
}

char* find_text(TensorFile& f) {
  bool format = false;
  const char* text = nullptr;
  for (const FileText& m : f.header.metadata) {
    format |= strcmp(m.key, "format") == 0 && strcmp(m.value, kFormat) == 0;
    if (strcmp(m.key, kGraphKey) == 0) text = m.value;
  }
  if (!format || !text)
    fail_arg(TT_FORMAT, "path", "\"{}\" is no graph: its metadata has no format \"ttg\"", f.path);
  return const_cast<char*>(text);  // of the header, which belongs to f
}

// Gives each storage from outside its tensor.
void read_contents(const TensorFile& f, Graph& g) {
  int64_t n = 0;
  for (int64_t i = 0; i < g.storages.size(); i++) {
    IrStorage& s = g.storages[i];
    if (s.role == IrRole::kMade) continue;
    if (is_saved(s)) {
      const int64_t at = find_tensor(f.header, name_of(i).c_str());
      if (at < 0)
        fail_arg(TT_FORMAT, "path", "\"{}\": the contents of storage {} are missing", f.path, i);
      s.tensor = read_tensor(f, at);
      n++;
    } else {
      s.tensor = new_tensor(Ints(&s.bytes, 1), Dtype::kU8, kCpuDevice);
    }
    if (s.tensor->numel * s.tensor->item_size() != s.bytes)
      fail_arg(TT_FORMAT, "path", "\"{}\": storage {} has {} bytes, in the graph {}", f.path, i,
               s.tensor->numel * s.tensor->item_size(), s.bytes);
    s.tensor->storage->writable = s.writable;
  }
  if (n != f.header.tensors.size())
    fail_arg(TT_FORMAT, "path", "\"{}\" has tensors that are not of the graph", f.path);
}

void read_objects(const TensorFile& f, Graph& g, const ObjectForms* objects) {
  const char* text = nullptr;
  for (const FileText& m : f.header.metadata)
    if (strcmp(m.key, kObjectsKey) == 0) text = m.value;
  if (!text && !has_objects(g)) return;
  if (!text) fail_arg(TT_FORMAT, "path", "\"{}\": the steps of optimizers are missing", f.path);
  if (!objects)
    fail_arg(TT_NOT_IMPLEMENTED, "path",
             "\"{}\" has steps of an optimizer: only tt_graph_load reads them", f.path);
  objects->read(f.path, text, g);
}

}  // namespace

void save_graph(const char* path, const Graph& g, const ObjectForms& objects) {
  Text text, objects_text;
  write_graph(g, text);
  const bool with_objects = has_objects(g);
  if (with_objects) objects.write(g, objects_text);
  SmallVec<Text, 8> names;
  SmallVec<TensorRef, 8> tensors;
  names.reserve(g.storages.size());
  for (int64_t i = 0; i < g.storages.size(); i++) {
    if (!is_saved(g.storages[i])) continue;
    names.push_back(name_of(i));
    tensors.push_back(contents(g, int32_t(i)));
  }
  SmallVec<const char*, 8> name_list;
  SmallVec<const Tensor*, 8> tensor_list;
  for (int64_t i = 0; i < names.size(); i++) {
    name_list.push_back(names[i].c_str());
    tensor_list.push_back(tensors[i].get());
  }
  const char* const metadata[] = {"format",     kFormat,     kGraphKey,
                                  text.c_str(), kObjectsKey, objects_text.c_str()};
  save_tensors(path, name_list, tensor_list, {metadata, with_objects ? 6 : 4});
}

Ref<Graph> load_graph(const char* path, const OpFinder& ops, const ObjectForms* objects) {
  Ref<TensorFile> f = open_tensors(path, false);
  Ref<Graph> g = read_graph(f->path, find_text(*f), ops);
  read_contents(*f, *g);
  verify_graph(*g, TT_FORMAT);
  read_objects(*f, *g, objects);
  dry_run(*g, TT_FORMAT);
  verify_graph(*g, TT_FORMAT);
  return g;
}

}  // namespace TT_NS
