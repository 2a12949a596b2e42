// Arrays on a device of the host, while a kernel works on them on the CPU.
#pragma once

#include "core/ctx.h"
#include "core/tensor.h"

namespace TT_NS {

class HostArrays {
 public:
  // The array's copy on the CPU; a written one goes back by put_back. NULL stays NULL.
  char* fetch(Device device, char* there, int64_t bytes, bool written) {
    if (!there) return nullptr;
    TensorRef here = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
    ext_copy(ext_device(device.index), here->data, there, bytes, kDeviceToHost);
    char* data = here->data;
    arrays_.push_back({device, there, bytes, std::move(here), written});
    return data;
  }
  void put_back() {
    for (const Array& a : arrays_)
      if (a.written)
        ext_copy(ext_device(a.device.index), a.there, a.here->data, a.bytes, kHostToDevice);
    arrays_.clear();
  }

 private:
  struct Array {
    Device device;
    char* there;
    int64_t bytes;
    TensorRef here;
    bool written;
  };
  SmallVec<Array, 2> arrays_;
};

}  // namespace TT_NS
