// PyTorch's files: a zip archive of a pickle and of storages, as torch.save writes them.
#pragma once

#include "core/state_dict.h"

namespace TT_NS {

// Loads the tensors of a file, named by their paths, and their structure. Fails with IO or FORMAT.
StateDictRef load_torch(const char* path);

// Writes tensors in a structure (io/structure_text.h); NULL: an OrderedDict of detached tensors. A
// new file is written beside path and then atomically replaces it.
void save_torch(const char* path, const StateDict& tensors, const char* structure);

}  // namespace TT_NS
