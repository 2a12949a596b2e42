// DLPack: tensors to and from other libraries without a copy. The structs are tt's own declarations
// of DLPack 1.1's ABI (dmlc/dlpack, include/dlpack/dlpack.h).
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
// What version 0 exchanges.
struct DlManaged {
  DlTensor t;
  void* context;
  void (*deleter)(DlManaged*);
};
// What version 1 exchanges.
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

// A DlManaged (major 0) or a DlManagedVersioned (major 1) that keeps t's memory alive until its
// deleter runs.
void* to_dlpack(const Tensor& t, int32_t major);
// Takes the object over; if it fails, the object stays the caller's.
TensorRef from_dlpack(void* managed, int32_t major);

}  // namespace TT_NS
