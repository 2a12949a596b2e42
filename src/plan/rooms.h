// Scratch memory that the threads of a stage take in turns: buffers too large for the stack of the
// calling thread, of which a call may use 64 kB (tt.h).
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

constexpr int32_t kMaxRooms = 256;

struct Rooms {
  char* memory;   // [n][bytes]
  int64_t bytes;  // of a room
  int64_t n;
  uint64_t taken[kMaxRooms / 64];  // bit i of word k: room 64 k + i is in use
};

// Sets all fields but memory, for up to `threads` threads; those that find no room wait for one.
// Returns the size of memory.
inline int64_t build_rooms(Rooms* r, int64_t bytes, int64_t threads) {
  r->memory = nullptr;
  r->bytes = round_up(bytes, 64);
  r->n = clamp<int64_t>(threads, 1, kMaxRooms);
  for (uint64_t& word : r->taken) word = 0;
  return r->n * r->bytes;
}

}  // namespace TT_NS
