// PyTorch's files: a zip archive of a pickle and of storages, as torch.save writes them.
#pragma once

#include "core/state_dict.h"

namespace TT_NS {

// The tensors of a file, by their paths, and their structure. Fails with IO or FORMAT.
StateDictRef load_torch(const char* path);

// Writes tensors as a structure (io/structure_text.h) has them; NULL: as an OrderedDict of detached
// tensors. Into a new file beside path, which then takes path's place in one step.
void save_torch(const char* path, const StateDict& tensors, const char* structure);

}  // namespace TT_NS
