// Clock: nanoseconds from the processor's counter, for times that are taken often.
#pragma once

#include "base/os.h"

namespace TT_NS {

class Clock {
 public:
  // Relates the counter to os_now_ns; waits up to a millisecond the first time in a process.
  void start() noexcept;
  // Nanoseconds on the scale of os_now_ns.
  TT_INLINE int64_t now() const noexcept {
    if (TT_UNLIKELY(!fast_)) return os_now_ns();
    return ns_ + int64_t(double(os_ticks() - ticks_) * ns_per_tick_);
  }

 private:
  bool fast_ = false;
  int64_t ticks_ = 0, ns_ = 0;
  double ns_per_tick_ = 0;
};

}  // namespace TT_NS
