// Shared by the unit tests of kernels: arrays of any floating dtype, comparison with expected
// values, and runs in three orders of threads, whose bits must be equal.
#pragma once

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "check.h"
#include "kernels/cuda/convert.h"

namespace TT_NS::test {

#if EMU_TSAN
// Each thread is a fiber that ThreadSanitizer knows, which takes a millisecond: small shapes, one
// dtype, one order, in which races are found as well, and kernels with shared memory only.
constexpr int64_t kMostElements = 1200;
constexpr bool kOnlyShared = true;
constexpr uint64_t kOrders[] = {0};
constexpr int32_t kDtypes[] = {TT_F32};
#else
constexpr int64_t kMostElements = INT64_MAX;
constexpr bool kOnlyShared = false;
constexpr uint64_t kOrders[] = {0, 1, 7};
constexpr int32_t kDtypes[] = {TT_F32, TT_BF16, TT_F64};
#endif

// The unit in the last place of 1.
inline double epsilon(int32_t dtype) {
  if (dtype == TT_F64) return DBL_EPSILON;
  if (dtype == TT_F32) return FLT_EPSILON;
  return dtype == TT_F16 ? 0x1p-10 : 0x1p-7;
}

// An array that begins `offset` elements behind a multiple of 16 bytes.
class Floats {
 public:
  Floats(int32_t dtype, int64_t n, int64_t offset = 0)
      : dtype_(dtype), n_(n), item_(item_size(dtype)), offset_(offset) {
    memory_.resize(size_t((n + offset) * item_ / 16 + 1));
    memset(static_cast<void*>(memory_.data()), 0xff, memory_.size() * 16);
  }
  char* data() { return reinterpret_cast<char*>(memory_.data()) + offset_ * item_; }
  int64_t size() const { return n_; }
  int32_t dtype() const { return dtype_; }
  size_t bytes() const { return size_t(n_ * item_); }
  double operator[](int64_t i) { return load_element<double>(data() + i * item_, dtype_); }
  void set(int64_t i, double v) { store_element(data() + i * item_, dtype_, v); }
  // Floats in [low, high), the same for a seed.
  Floats& fill(uint32_t seed, double low, double high) {
    for (int64_t i = 0; i < n_; i++) {
      seed = seed * 1664525u + 1013904223u;
      set(i, low + (high - low) * double(seed >> 8) * 0x1p-24);
    }
    return *this;
  }

 private:
  struct alignas(16) Unit {
    char bytes[16];
  };
  std::vector<Unit> memory_;
  int32_t dtype_;
  int64_t n_, item_, offset_;
};

// Each value is within `ulps` units of the expected one or of `scale`.
inline void expect(const char* what, Floats& got, const std::vector<double>& want, double ulps,
                   double scale = 0) {
  for (int64_t i = 0; i < got.size(); i++) {
    const double w = want[size_t(i)];
    const double allowed = ulps * epsilon(got.dtype()) * (fabs(w) + scale);
    if (got[i] == w || (isnan(got[i]) && isnan(w)) || fabs(got[i] - w) <= allowed) continue;
    printf("%s, dtype %d: element %lld of %lld is %.17g, not %.17g\n", what, got.dtype(),
           static_cast<long long>(i), static_cast<long long>(got.size()), got[i], w);
    g_failed = 1;
    return;
  }
}

// Runs a row in three orders of threads; `outs` are its results.
inline void run_in_orders(const char* what, Row row, Bytes bytes, const void* plan,
                          std::initializer_list<Floats*> outs) {
  std::vector<std::vector<char>> first;
  for (uint64_t order : kOrders) {
    emu::set_order(order);
    std::vector<WorkspaceUnit> workspace = workspace_of(bytes, plan);
    for (Floats* out : outs) memset(out->data(), 0xff, out->bytes());
    if (row(plan, nullptr, workspace.data()) != TT_OK) {
      printf("%s: %s\n", what, emu::last_fault());
      g_failed = 1;
      return;
    }
    size_t k = 0;
    for (Floats* out : outs) {
      const std::vector<char> now(out->data(), out->data() + out->bytes());
      if (order == 0) first.push_back(now);
      else if (first[k] != now) {
        printf("%s: other bits in order %d\n", what, int(order));
        g_failed = 1;
      }
      k++;
    }
  }
  emu::set_order(0);
}

}  // namespace TT_NS::test
