// Files of tensors in the GGUF format of GGML (ggml-org/ggml, docs/gguf.md), versions 2 and 3.
#pragma once

#include "core/state_dict.h"

namespace TT_NS {

// Loads all tensors, mapped or copied, and the metadata as JSON (include/tt.h, tt_gguf_load). Fails
// with IO or FORMAT.
StateDictRef load_gguf(const char* path, bool mapped);

}  // namespace TT_NS
