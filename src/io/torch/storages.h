// The storages of a PyTorch file, read when first needed, and the tensors over them.
#pragma once

#include "core/tensor.h"
#include "io/torch/zip.h"

namespace TT_NS {

class TorchStorages {
 public:
  TorchStorages(const ZipReader& archive, Span<const char> root, bool big_endian);
  // `at`: the position in the file that errors report. All return indices of storages or tensors.
  int32_t storage(int64_t at, Dtype dtype, Span<const char> key, int64_t numel);
  int32_t tensor(int64_t at, int32_t storage, int64_t offset, Ints sizes, Ints strides,
                 bool requires_grad);
  // The same over a storage of bytes.
  int32_t typed_tensor(int64_t at, int32_t storage, Dtype dtype, int64_t offset, Ints sizes,
                       Ints strides, bool requires_grad);
  // Another tensor over the same memory.
  int32_t parameter(int64_t at, int32_t tensor, bool requires_grad);
  const Tensor& tensor_at(int32_t i) const { return tensors_[i]; }
  const ZipReader& archive() const { return archive_; }

 private:
  void check_view(int64_t at, const Tensor& flat, int64_t offset, Ints sizes, Ints strides) const;
  int32_t view(int64_t at, const Tensor& flat, int64_t offset, Ints sizes, Ints strides,
               bool requires_grad);
  int32_t keep(int64_t at, TensorRef t, bool requires_grad);
  void read(int64_t entry, Tensor& flat) const;

  const ZipReader& archive_;
  Text root_;
  bool big_endian_;
  TensorList storages_, tensors_;  // storages as 1-D tensors
  SmallVec<int32_t, 8> of_entry_;  // entry of the archive -> its storage, -1: not read yet
};

}  // namespace TT_NS
