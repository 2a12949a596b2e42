#include "io/torch/layout.h"

#include "core/ctx.h"
#include "ops/gen/ops.h"
#include "io/torch/sort.h"
#include "ops/impl.h"

namespace TT_NS {

TorchLayout::TorchLayout(const StateDict& state) : state_(state) {
  SmallVec<int64_t, 16> order;
  for (int64_t i = 0; i < state.entries.size(); i++) {
    if (at(i).device.type == TT_META)
      fail_arg(TT_DEVICE, "tensors", "\"{}\" is a meta tensor, which has no data",
               state.entries[i].name.c_str());
    order.push_back(i);
    key_.push_back(i);
  }
  sort_indices(order.mut(), [&](int64_t a, int64_t b) {
    const void* p = memory(a);
    const void* q = memory(b);
    if (p != q) return p < q;
    return at(a).dtype != at(b).dtype ? at(a).dtype < at(b).dtype : a < b;
  });
  for (int64_t k = 1; k < order.size(); k++)
    if (same_storage(order[k], order[k - 1])) key_[order[k]] = key_[order[k - 1]];
}

const void* TorchLayout::memory(int64_t i) const {
  return whole(i) ? static_cast<const void*>(at(i).storage) : &at(i);
}
int64_t TorchLayout::numel(int64_t i) const {
  return whole(i) ? at(i).storage->bytes / at(i).item_size() : at(i).numel;
}

void TorchLayout::write(ZipWriter& zip, const char* name, int64_t i) const {
  const Tensor& t = at(i);
  note_host_read(t);
  if (whole(i)) return zip.add(name, t.storage->data, numel(i) * t.item_size());
  TensorRef rows = dense_input(op::to_device(t, kCpuDevice));
  zip.add(name, rows->data, rows->numel * rows->item_size());
}

}  // namespace TT_NS
