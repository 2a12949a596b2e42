// Products of a warpgroup (matmul/wgmma.h) for g++. A product reads its operands when its thread
// waits for it, and not before; until then its sums are nans. Words of shared memory are read if
// the threads that wrote them, by store_operand or copies, have called fence_operands since.
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/emu/async.h"

#define TT_HAS_WGMMA 1

namespace TT_NS::emu {

constexpr int kMostSums = 64;  // of a thread
constexpr int kProductDepth = 16;

struct Product {
  float* to;
  float (*widen)(uint16_t);
  uint64_t a, b;
  uint32_t words[2][8];  // the left operand, if registers have it: the thread's two rows
  int columns, group;
  bool in_registers, a_across, b_across, adds;
};

void begin_product(const Product& product, Where where) noexcept;
void fence_products() noexcept;
void end_product_group() noexcept;
// As next_copy, with a copy of the sums to add to, which end_product takes back.
bool next_product(int pending, Product* product, float* sums) noexcept;
void end_product(const Product& product, const float* sums) noexcept;
void publish_operands() noexcept;
// Where an operand's element is; faults if it may not be read.
const void* operand_place(uint32_t address) noexcept;
uint32_t shared_address(const void* p) noexcept;
float widen_f16(uint16_t h) noexcept;
float widen_bf16(uint16_t h) noexcept;

// Two neighbouring halves of a row: along k, i and k are its row and column, else column and row.
inline uint32_t operand_word(uint64_t operand, bool across, int i, int k) {
  const uint32_t first = uint32_t(operand & 0x3fff) << 4;
  const uint32_t panel = uint32_t(operand >> 16 & 0x3fff) << 4;
  const uint32_t eight = uint32_t(operand >> 32 & 0x3fff) << 4;
  uint32_t at = first;
  if (across) at += uint32_t(i / 64) * panel + uint32_t(i % 64 * 2 + k % 8 * 128) + k / 8 * eight;
  else at += uint32_t(i / 8) * eight + uint32_t(i % 8 * 128 + k * 2);
  at ^= (at >> 7 & 7) << 4;
  return *static_cast<const HalfWord*>(operand_place(at));
}

// The thread's sums: rows lane / 4 and 8 more of its warp's 16.
inline void multiply_now(const Product& p, float* sums) {
  const int row = self().linear / 32 % 4 * 16 + lane() / 4;
  float left[2][kProductDepth];
  for (int half = 0; half < 2; half++) {
    for (int k = 0; k < kProductDepth; k += 2) {
      uint32_t word = p.words[half][k / 2];
      if (!p.in_registers && !p.a_across) word = operand_word(p.a, false, row + 8 * half, k);
      left[half][k] = p.widen(uint16_t(word));
      left[half][k + 1] = p.widen(uint16_t(word >> 16));
      if (p.in_registers || !p.a_across) continue;
      for (int e = 0; e < 2; e++) {
        const int i = row + 8 * half;
        const uint32_t both = operand_word(p.a, true, i / 2 * 2, k + e);
        left[half][k + e] = p.widen(uint16_t(i % 2 ? both >> 16 : both));
      }
    }
  }
  for (int j = 0; j < p.columns / 8; j++) {
    const int column = 8 * j + lane() % 4 * 2;
    float right[2][kProductDepth];
    for (int k = 0; k < kProductDepth; k++) {
      if (p.b_across) {
        const uint32_t both = operand_word(p.b, true, column, k);
        right[0][k] = p.widen(uint16_t(both));
        right[1][k] = p.widen(uint16_t(both >> 16));
        continue;
      }
      for (int e = 0; e < 2 && k % 2 == 0; e++) {
        const uint32_t both = operand_word(p.b, false, column + e, k);
        right[e][k] = p.widen(uint16_t(both));
        right[e][k + 1] = p.widen(uint16_t(both >> 16));
      }
    }
    for (int r = 0; r < 4; r++) {
      float sum = p.adds ? sums[4 * j + r] : 0;
      for (int k = 0; k < kProductDepth; k++) sum += left[r >> 1][k] * right[r & 1][k];
      sums[4 * j + r] = sum;
    }
  }
}

}  // namespace TT_NS::emu

namespace TT_NS::device {

inline bool has_wgmma(const void*) { return true; }
using emu::shared_address;
inline char* aligned_shared(char* p) { return p + (-shared_address(p) & (kOperandAlignment - 1)); }
inline uint64_t operand(const void* p, int panel) {
  return uint64_t(1) << 62 | uint64_t(8 * kPanelBytes / 16) << 32 | uint64_t(panel / 16) << 16 |
         (shared_address(p) & 0x3ffff) >> 4;
}
inline uint64_t operand_along(const void* p) { return operand(p, 16); }
inline uint64_t operand_across(const void* p, int panel) { return operand(p, panel); }
inline void fence_registers() { emu::fence_products(); }
inline void commit_products() { emu::end_product_group(); }
template <class T, int n> void pin(T (&)[n]) {}
inline void fence_operands() { emu::publish_operands(); }
inline void store_operand(void* p, uint32_t word) {
  *static_cast<emu::HalfWord*>(p) = word;
  emu::mark_written(p, sizeof word);
}
template <int kPending> void wait_for_products() {
  emu::Product product;
  float sums[emu::kMostSums];
  while (emu::next_product(kPending, &product, sums)) {
    emu::multiply_now(product, sums);
    emu::end_product(product, sums);
  }
}

template <class S, int kColumns, bool kLeftAcross, bool kRightAcross> struct Wgmma {
  static_assert(kColumns == 64 || kColumns == 128);
  static emu::Product product(float* d, uint64_t b, bool adds) {
    emu::Product p = {};
    p.to = d;
    p.widen = __is_same(S, F16) ? emu::widen_f16 : emu::widen_bf16;
    p.b = b;
    p.columns = kColumns;
    p.a_across = kLeftAcross;
    p.b_across = kRightAcross;
    p.adds = adds;
    return p;
  }
  static void multiply(float (&d)[kColumns / 2], uint64_t a, uint64_t b, bool adds,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    emu::Product p = product(d, b, adds);
    p.a = a;
    emu::begin_product(p, {file, line});
  }
  static void multiply(float (&d)[kColumns / 2], const uint32_t (&a)[4], uint64_t b, bool adds,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    static_assert(!kLeftAcross);
    emu::Product p = product(d, b, adds);
    p.in_registers = true;
    for (int r = 0; r < 4; r++) {
      uint64_t all[32];
      if (emu::exchange(0xffffffffu, a[r], "wgmma", {file, line}, all) != 0xffffffffu)
        emu::fault("wgmma needs all lanes of the warp");
      for (int pair = 0; pair < 4; pair++)
        p.words[r & 1][pair + 4 * (r >> 1)] = uint32_t(all[emu::lane() / 4 * 4 + pair]);
    }
    emu::begin_product(p, {file, line});
  }
};

}  // namespace TT_NS::device
