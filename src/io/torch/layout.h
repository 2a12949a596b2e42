// TorchLayout: assigns tensors to the storages of the PyTorch file to be written.
#pragma once

#include "core/state_dict.h"
#include "io/torch/zip.h"

namespace TT_NS {

// Tensors of the same dtype over the same memory share a storage, which is written whole. Tensors
// on a device are written separately, row-major.
class TorchLayout {
 public:
  explicit TorchLayout(const StateDict& state);  // fails with DEVICE for meta tensors
  int64_t size() const { return key_.size(); }
  const Tensor& at(int64_t i) const { return state_.entries[i].tensor; }
  bool whole(int64_t i) const { return at(i).is_cpu(); }
  int64_t key(int64_t i) const {
    return key_[i];
  }                                // of its storage: index of the first tensor in it
  int64_t numel(int64_t i) const;  // of the storage
  void write(ZipWriter& zip, const char* name, int64_t i) const;

 private:
  const void* memory(int64_t i) const;
  bool same_storage(int64_t i, int64_t k) const {
    return memory(i) == memory(k) && at(i).dtype == at(k).dtype;
  }
  const StateDict& state_;
  SmallVec<int64_t, 16> key_;
};

}  // namespace TT_NS
