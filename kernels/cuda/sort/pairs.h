// Items of up to 64 bits in the order of their keys, sorted stably in a workspace.
#pragma once

#include "kernels/cuda/sort/radix.h"

namespace TT_NS {
namespace {

// Where the keys of items go, and what is there once they are sorted.
struct SortedItems {
  char *keys, *places;
  bool wide_key, wide_at;

  __device__ __forceinline__ void put(int64_t i, uint64_t key) const {
    if (wide_key) reinterpret_cast<uint64_t*>(keys)[i] = key;
    else reinterpret_cast<uint32_t*>(keys)[i] = uint32_t(key);
  }
  __device__ __forceinline__ uint64_t key(int64_t i) const {
    return wide_key ? reinterpret_cast<const uint64_t*>(keys)[i]
                    : reinterpret_cast<const uint32_t*>(keys)[i];
  }
  // Whether a run of equal keys begins at i < n, and whether that at i goes on.
  __device__ __forceinline__ void neighbours(int64_t i, int64_t n, uint64_t* own, bool* begins,
                                             bool* goes_on) const {
    const int64_t before = i > 0 ? i - 1 : 0;
    const int64_t after = i + 1 < n ? i + 1 : i;
    uint64_t k[3];
    if (wide_key) {
      const uint64_t* const key = reinterpret_cast<const uint64_t*>(keys);
      k[0] = key[before];
      k[1] = key[i];
      k[2] = key[after];
    } else {
      const uint32_t* const key = reinterpret_cast<const uint32_t*>(keys);
      k[0] = key[before];
      k[1] = key[i];
      k[2] = key[after];
    }
    *own = k[1];
    *begins = i == 0 || k[0] != k[1];
    *goes_on = i + 1 < n && k[1] == k[2];
  }
  // The item that is at place i.
  __device__ __forceinline__ int64_t at(int64_t i) const {
    return wide_at ? reinterpret_cast<const int64_t*>(places)[i]
                   : reinterpret_cast<const uint32_t*>(places)[i];
  }
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
