// DLPack: exchanges tensors with other libraries without a copy. The structs are tt's own
// declarations of the ABI of DLPack 1.1 (dmlc/dlpack, include/dlpack/dlpack.h).
#pragma once

#include "core/tensor.h"

namespace TT_NS {

struct DlTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row-major
  uint64_t byte_offset;
};
// The struct of version 0.
struct DlManaged {
  DlTensor t;
  void* context;
  void (*deleter)(DlManaged*);
};
// The struct of version 1.
struct DlManagedVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor t;
};
constexpr uint64_t kDlReadOnly = 1;

// Returns a DlManaged (major 0) or a DlManagedVersioned (major 1) that keeps t's memory alive until
// its deleter runs.
void* to_dlpack(const Tensor& t, int32_t major);
// Takes ownership of the object; on failure the caller keeps it.
TensorRef from_dlpack(void* managed, int32_t major);

}  // namespace TT_NS
