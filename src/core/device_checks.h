// DeviceChecks: conditions on values of a device that a call relies on, such as indices
// within bounds. The call does not wait for them: what they found is reported at the next
// synchronisation, the first one only. Kernels must not access memory by a value that fails.
#pragma once

#include "base/text/text.h"
#include "core/cuda_device.h"
#include "core/tensor.h"

namespace TT_NS {

constexpr int64_t kCheckPassed = INT64_MAX;

struct DeviceCheck {
  const char* op = "";   // of the call; static
  const char* arg = "";  // static
  // Fails with the message. found: what the kernel has stored instead of kCheckPassed.
  void (*report)(const DeviceCheck&, int64_t found) = nullptr;
  bool is_flag = false;  // the first byte of the place is a bool, true if the check passed
  bool is_info = false;  // the place holds int32s, as many as `values` has: all 0 if it passed
  // what report needs
  tt_status status = TT_OK;
  Text text = {};         // of the message; may be empty
  TensorRef values = {};  // what was checked
  Shape sizes = {}, strides = {};
  int64_t low = 0, size = 0;
};

class DeviceChecks {
 public:
  // NULL if the device cannot defer a check: the caller reads the result itself.
  static DeviceChecks* of(CudaDevice&);
  static void destroy(CudaDevice&) noexcept;
  // Returns memory that the device and the host reach, which holds kCheckPassed. The check's kernel
  // follows on the current stream; then the caller calls start. May wait for all checks.
  int64_t* place(CudaDevice&);
  void start(CudaDevice&, int64_t* place, DeviceCheck&& check) noexcept;
  // Fails as the first check that found something. Requires that the streams were waited for: all
  // of them, or (all false) the current one.
  void report(CudaDevice&, bool all);

 private:
  static constexpr int64_t kPlaces = 256;
  static constexpr int32_t kAllStreams = -1;
  struct Started {
    DeviceCheck check;
    int32_t stream;
    bool passed;  // or not started
  };
  void end_passed(int32_t stream) noexcept;
  Mutex mutex_;
  int64_t* places_;
  int64_t first_, n_;  // started checks, in a ring
  Started started_[kPlaces];
};

}  // namespace TT_NS
