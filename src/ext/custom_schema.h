// Parses "name(x: Tensor, k: Int = 2) -> (a: Tensor, b: IndexTensor)" at run time.
#pragma once

#include "dispatch/op_info.h"

namespace TT_NS {

constexpr int32_t kMaxCustomOuts = 32;

// The parts of a schema, in memory provided by the caller.
struct ParsedSchema {
  char* names;  // strlen(text) + 1 bytes: the operator's and the arguments' names, zero-terminated
  ArgInfo* args;  // max_schema_args(text)
  const char* name;
  int32_t n_args;
  int32_t n_outs;
  // Bit i: output i may have a gradient. IndexTensor and BoolTensor never have one.
  uint32_t differentiable;
};

int64_t max_schema_args(const char* text) noexcept;
// Fails with INVALID_ARG, naming the position.
void parse_schema(const char* text, ParsedSchema& out);

}  // namespace TT_NS
