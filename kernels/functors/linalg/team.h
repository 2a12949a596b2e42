// The threads that decompose a matrix together: one on the CPU, a block on a device. Algorithms are
// written once, over a Team: every thread runs the same statements with the same scalars, and the
// loops over rows and columns are shared.
//
//   Along all       a loop shared by all threads: for (i = a.from(); i < n; i += a.step())
//   Along lanes     by the threads of a warp, where warps take rows: Along rows
//   sync()          what any thread wrote before is read by all after
//   sync_warp()     the same within a warp
//   sum, largest …  combine a value of each thread; every thread gets the result, after a sync()
#pragma once

#include "kernels/functors/functor.h"
#if TT_ON_DEVICE
#include "kernels/cuda/math.h"
#include "kernels/cuda/warp.h"
#endif

#if defined(__CUDACC__)
#define TT_TEAM __device__
#else
#define TT_TEAM
#endif

TT_FUNCTORS_BEGIN

// The larger one; nan if one is.
TT_TEAM TT_INLINE double larger_or_nan(double x, double y) { return y > x || y != y ? y : x; }
// The larger one, or the one that is not nan.
TT_TEAM TT_INLINE double larger(double x, double y) { return y > x || x != x ? y : x; }

// A candidate for the largest value of a sequence.
struct Candidate {
  double value;
  int64_t at;
};

#if TT_ON_DEVICE

TT_TEAM TT_INLINE double square_root_of(double x) { return math::sqrt(x); }
TT_TEAM TT_INLINE double log_of(double x) { return math::log(x); }
TT_TEAM TT_INLINE double magnitude(double x) { return math::fabs(x); }

class Along {
 public:
  TT_TEAM TT_INLINE Along(int from, int step) : from_(from), step_(step) {}
  TT_TEAM TT_INLINE int64_t from() const { return from_; }
  TT_TEAM TT_INLINE int64_t step() const { return step_; }

 private:
  int from_, step_;
};

constexpr int kTeamWarps = 8;
struct alignas(16) TeamSlot {
  char bytes[16];
};

class Team {
 public:
  // slots: kTeamWarps, shared by the block.
  TT_TEAM TT_INLINE explicit Team(TeamSlot* slots) : slots_(slots) {}

  TT_TEAM TT_INLINE bool is_leader() const { return threadIdx.x == 0; }
  TT_TEAM TT_INLINE Along all() const { return {int(threadIdx.x), int(blockDim.x)}; }
  TT_TEAM TT_INLINE Along lanes() const { return {int(threadIdx.x) % kWarp, kWarp}; }
  TT_TEAM TT_INLINE Along rows() const {
    return {int(threadIdx.x) / kWarp, int(blockDim.x) / kWarp};
  }
  TT_TEAM TT_INLINE void sync() const { __syncthreads(); }
  TT_TEAM TT_INLINE void sync_warp() const { __syncwarp(); }

  template <class P, class F> TT_TEAM TT_INLINE P combine(P value, const F& f) const {
    static_assert(sizeof(P) <= sizeof(TeamSlot));
    value = combine_warp(value, f);
    if (threadIdx.x % kWarp == 0) *slot<P>(int(threadIdx.x) / kWarp) = value;
    __syncthreads();
    value = *slot<P>(0);
    for (int i = 1; i < int(blockDim.x) / kWarp; i++) value = f(value, *slot<P>(i));
    __syncthreads();
    return value;
  }
  template <class T> TT_TEAM TT_INLINE T sum(T value) const {
    return combine(value, [](const T& x, const T& y) { return x + y; });
  }
  // The sum over the threads of a warp.
  template <class T> TT_TEAM TT_INLINE T warp_sum(T value) const {
    return shuffle_from(combine_warp(value, [](const T& x, const T& y) { return x + y; }), 0);
  }
  TT_TEAM TT_INLINE double largest_or_nan(double value) const {
    return combine(value, [](double x, double y) { return larger_or_nan(x, y); });
  }
  TT_TEAM TT_INLINE double largest(double value) const {
    return combine(value, [](double x, double y) { return larger(x, y); });
  }
  // The position of the first of the largest value(i); nan counts only if value(0) is.
  template <class F> TT_TEAM TT_INLINE int64_t first_largest(int64_t n, const F& value) const {
    Candidate best = {-1, n};
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const double v = value(i);
      if (v > best.value) best = {v, i};
    }
    best = combine(best, [](const Candidate& x, const Candidate& y) {
      return y.value > x.value || (y.value == x.value && y.at < x.at) ? y : x;
    });
    const double first = value(0);
    const bool none = first != first || best.at == n;
    __syncthreads();
    return none ? 0 : best.at;
  }
  // The value of the leader.
  TT_TEAM TT_INLINE int64_t share(int64_t value) const {
    if (threadIdx.x == 0) *slot<int64_t>(0) = value;
    __syncthreads();
    value = *slot<int64_t>(0);
    __syncthreads();
    return value;
  }

 private:
  template <class P> TT_TEAM TT_INLINE P* slot(int i) const {
    return reinterpret_cast<P*>(slots_ + i);
  }
  TeamSlot* slots_;
};

#else

TT_INLINE double square_root_of(double x) { return libm::sqrt(x); }
TT_INLINE double log_of(double x) { return libm::log(x); }
TT_INLINE double magnitude(double x) { return libm::fabs(x); }

struct Along {
  static constexpr int64_t from() { return 0; }
  static constexpr int64_t step() { return 1; }
};

struct Team {
  TT_INLINE bool is_leader() const { return true; }
  TT_INLINE Along all() const { return {}; }
  TT_INLINE Along lanes() const { return {}; }
  TT_INLINE Along rows() const { return {}; }
  TT_INLINE void sync() const {}
  TT_INLINE void sync_warp() const {}
  template <class T> TT_INLINE T sum(T value) const { return value; }
  template <class T> TT_INLINE T warp_sum(T value) const { return value; }
  TT_INLINE double largest_or_nan(double value) const { return value; }
  TT_INLINE double largest(double value) const { return value; }
  template <class F> TT_INLINE int64_t first_largest(int64_t n, const F& value) const {
    Candidate best = {value(0), 0};
    if (best.value != best.value) return 0;
    for (int64_t i = 1; i < n; i++) {
      const double v = value(i);
      if (v > best.value) best = {v, i};
    }
    return best.at;
  }
  TT_INLINE int64_t share(int64_t value) const { return value; }
};

#endif

TT_FUNCTORS_END
