// A room of a plan's Rooms, for as long as the object lives.
#pragma once

#include "base/os.h"
#include "kernels/cpu/simd/isa.h"
#include "plan/rooms.h"

TT_ISA_BEGIN

class Room {
 public:
  // The plan is const to kernels, but for which rooms are taken.
  explicit Room(const Rooms& rooms) : rooms_(const_cast<Rooms&>(rooms)) {
    while (!take()) cpu_pause();
  }
  ~Room() { atomic_fetch_and(word(), ~bit(), kRelease); }
  Room(const Room&) = delete;

  template <class T> T* as() const {
    return reinterpret_cast<T*>(rooms_.memory + number_ * rooms_.bytes);
  }

 private:
  uint64_t* word() const { return &rooms_.taken[number_ / 64]; }
  uint64_t bit() const { return uint64_t(1) << number_ % 64; }
  bool take() {
    for (number_ = 0; number_ < rooms_.n; number_++) {
      if (atomic_load(word(), kRelaxed) & bit()) continue;
      if (!(atomic_fetch_or(word(), bit(), kAcquire) & bit())) return true;
    }
    return false;
  }

  Rooms& rooms_;
  int64_t number_ = 0;
};

TT_ISA_END
