#include "io/torch/storages.h"

#include "autograd/node.h"

namespace TT_NS {

TorchStorages::TorchStorages(const ZipReader& archive, Span<const char> root, bool big_endian)
    : archive_(archive), big_endian_(big_endian) {
  root_.add(root).add("/data/");
  of_entry_.resize(archive.size(), -1);
}

int32_t TorchStorages::storage(int64_t at, Dtype dtype, Span<const char> key, int64_t numel) {
  Text name(root_.c_str());
  name.add(key);
  const int64_t entry = archive_.find({name.c_str(), name.size()});
  if (entry < 0)
    archive_.bad(at, "there is no item named {} in the archive",
                 Span<const char>(name.c_str(), name.size()));
  if (of_entry_[entry] < 0) {
    const int64_t bytes = archive_.entry(entry).bytes;
    if (numel < 0 || numel > bytes / item_size(dtype))
      archive_.bad(at, "storage {} must have {} elements, its entry has {} bytes", key, numel,
                   bytes);
    const int64_t sizes[1] = {numel};
    TensorRef flat = new_tensor(sizes, dtype, kCpuDevice);
    read(entry, *flat);
    storages_.push_back(std::move(flat));
    of_entry_[entry] = int32_t(storages_.size() - 1);
  }
  if (storages_[of_entry_[entry]]->dtype != dtype)
    archive_.bad(at, "storage {} has two dtypes", key);
  return of_entry_[entry];
}

void TorchStorages::read(int64_t entry, Tensor& flat) const {
  const int64_t bytes = flat.numel * flat.item_size();
  const int64_t width = item_size(real_of(flat.dtype));
  archive_.read(entry, flat.data, bytes);
  for (int64_t i = 0; big_endian_ && i < bytes; i += width)
    for (int64_t k = 0; k < width / 2; k++)
      std::swap(flat.data[i + k], flat.data[i + width - 1 - k]);
  for (int64_t i = 0; flat.dtype == Dtype::kBool && i < bytes; i++)
    flat.data[i] = flat.data[i] != 0;
}

void TorchStorages::check_view(int64_t at, const Tensor& flat, int64_t offset, Ints sizes,
                               Ints strides) const {
  int64_t numel = 1;
  int64_t reach = offset;
  int64_t step;
  bool fits = sizes.n == strides.n && sizes.n <= kMaxDims && offset >= 0;
  bool empty = false;
  for (int64_t d = 0; fits && d < sizes.n; d++) {
    fits = sizes[d] >= 0 && strides[d] >= 0;
    empty |= sizes[d] == 0;
  }
  for (int64_t d = 0; fits && d < sizes.n;
       d++)  // for checked_numel, also of tensors without elements
    fits = !mul_overflow(numel, sizes[d] ? sizes[d] : 1, &numel) && numel <= (int64_t(1) << 58);
  if (!fits) archive_.bad(at, "invalid sizes, strides or offset of a tensor");
  for (int64_t d = 0; fits && !empty && d < sizes.n; d++)
    fits = !mul_overflow(sizes[d] - 1, strides[d], &step) && !add_overflow(reach, step, &reach);
  if (!fits || reach > flat.numel - (empty ? 0 : 1))
    archive_.bad(at, "a tensor is larger than its storage");
}

int32_t TorchStorages::tensor(int64_t at, int32_t storage, int64_t offset, Ints sizes, Ints strides,
                              bool requires_grad) {
  return view(at, *storages_[storage], offset, sizes, strides, requires_grad);
}

int32_t TorchStorages::typed_tensor(int64_t at, int32_t storage, Dtype dtype, int64_t offset,
                                    Ints sizes, Ints strides, bool requires_grad) {
  const Tensor& bytes = *storages_[storage];
  if (big_endian_ || bytes.dtype != Dtype::kU8 || dtype == Dtype::kBool)
    archive_.bad(at, "a tensor of {} over a storage of {} is not supported", fmt(dtype),
                 fmt(bytes.dtype));
  const int64_t n = bytes.numel / item_size(dtype);
  const TensorRef flat = new_alias(bytes, Ints(&n, 1), {}, bytes.data, dtype);
  return view(at, *flat, offset, sizes, strides, requires_grad);
}

int32_t TorchStorages::view(int64_t at, const Tensor& flat, int64_t offset, Ints sizes,
                            Ints strides, bool requires_grad) {
  check_view(at, flat, offset, sizes, strides);
  return keep(at,
              new_alias(flat, sizes, strides, flat.data + offset * flat.item_size(), flat.dtype),
              requires_grad);
}

int32_t TorchStorages::parameter(int64_t at, int32_t tensor, bool requires_grad) {
  return keep(at, new_alias(tensors_[tensor]), requires_grad);
}

int32_t TorchStorages::keep(int64_t at, TensorRef t, bool requires_grad) {
  if (requires_grad && !is_differentiable(t->dtype))
    archive_.bad(at, "a tensor of {} requires a gradient", fmt(t->dtype));
  if (requires_grad) set_requires_grad(*t, true);
  tensors_.push_back(std::move(t));
  return int32_t(tensors_.size() - 1);
}

}  // namespace TT_NS
