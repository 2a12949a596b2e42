#include "modes/clock.h"

#include "base/cpuid.h"

namespace TT_NS {

namespace {

struct Reading {
  int64_t ticks, ns;
};

// Reads both clocks several times and returns the reading that took the least time.
Reading read_both() noexcept {
  Reading best = {};
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < 8; i++) {
    const int64_t before = os_ticks();
    const int64_t ns = os_now_ns();
    const int64_t after = os_ticks();
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {before + shortest / 2, ns};
  }
  return best;
}

constexpr int64_t kLeastBaseline = 1000000;  // ns
constinit Mutex first_lock;
constinit Reading first = {};

}  // namespace

void Clock::start() noexcept {
  fast_ = false;
  if (!steady_ticks()) return;
  Lock lock(first_lock);
  Reading now = read_both();
  if (!first.ns) first = now;
  while (now.ns - first.ns < kLeastBaseline) now = read_both();
  if (now.ticks <= first.ticks) return;
  ns_per_tick_ = double(now.ns - first.ns) / double(now.ticks - first.ticks);
  ticks_ = now.ticks;
  ns_ = now.ns;
  fast_ = true;
}

}  // namespace TT_NS
