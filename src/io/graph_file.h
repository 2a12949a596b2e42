// Graphs in files: safetensors files with the memory from outside as tensors w0, w1, … and the form
// of the graph as text in the metadata.
#pragma once

#include "graph/text_form.h"

namespace TT_NS {

// Writes a file that replaces path. Inputs have no contents in it.
void save_graph(const char* path, const Graph& g, const ObjectForms& objects);
// Fails with IO, FORMAT, or with the error of an operator whose arguments the file gets wrong.
// objects: NULL if there may be none.
Ref<Graph> load_graph(const char* path, const OpFinder& ops, const ObjectForms* objects);

}  // namespace TT_NS
