// Items of up to 64 bits in the order of their keys, sorted stably in a workspace.
#pragma once

#include "kernels/cuda/sort/radix.h"

namespace TT_NS {
namespace {

// The memory of the keys of items, and its contents once they are sorted.
struct SortedItems {
  char *keys, *places;
  bool wide_key, wide_at;

  __device__ __forceinline__ void put(int64_t i, uint64_t key) const {
    if (wide_key) reinterpret_cast<uint64_t*>(keys)[i] = key;
    else reinterpret_cast<uint32_t*>(keys)[i] = uint32_t(key);
  }
  __device__ __forceinline__ void put_place(int64_t i, int64_t place) const {
    if (wide_at) reinterpret_cast<int64_t*>(places)[i] = place;
    else reinterpret_cast<uint32_t*>(places)[i] = uint32_t(place);
  }
  __device__ __forceinline__ uint64_t key(int64_t i) const {
    return wide_key ? reinterpret_cast<const uint64_t*>(keys)[i]
                    : reinterpret_cast<const uint32_t*>(keys)[i];
  }
  // The item that is at place i.
  __device__ __forceinline__ int64_t at(int64_t i) const {
    return wide_at ? reinterpret_cast<const int64_t*>(places)[i]
                   : reinterpret_cast<const uint32_t*>(places)[i];
  }
};

// The same where keys and places have 32 bits.
struct NarrowItems {
  const uint32_t *keys, *places;
  explicit NarrowItems(const SortedItems& items)
      : keys(reinterpret_cast<const uint32_t*>(items.keys)),
        places(reinterpret_cast<const uint32_t*>(items.places)) {}
  __device__ __forceinline__ uint32_t key(int64_t i) const { return keys[i]; }
  __device__ __forceinline__ uint32_t at(int64_t i) const { return places[i]; }
};

struct PairRoom {
  RadixRows rows;
  int bits;

  static int64_t bytes(int64_t n, int key_bits) {
    RadixRows r;
    return cuda::radix_room(&r, n, 1, key_bits, nullptr);
  }
  PairRoom(char* workspace, int64_t n, int key_bits) : bits(max(key_bits, 1)) {
    cuda::radix_room(&rows, n, 1, bits, workspace);
  }
  SortedItems items() const { return {rows.key[0], rows.at[0], rows.wide_key, rows.wide_at}; }
  // The keys were put into items(); the sorted items() may be elsewhere.
  int32_t sort(void* stream) { return cuda::sort_pairs(&rows, bits, stream); }
};

}  // namespace
}  // namespace TT_NS
