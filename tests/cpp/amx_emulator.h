// Executes the instructions of AMX in a handler of SIGILL, after Intel's manual (volume 2), so that
// the machine code of the kernels is tested on processors without tiles. One thread at a time has
// one set of tiles; threads that block signals cannot use it.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && TT_HAVE_AVX512
#define TT_AMX_EMULATOR 1

#include "core/half.h"

#include <signal.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace TT_NS::amx_emulator {

struct Tile {
  int rows, row_bytes;
  alignas(64) uint8_t byte[16][64];
};
struct State {
  bool configured;
  Tile tile[8];
};
inline State& state() {
  static thread_local State s;
  return s;
}
inline int64_t& executed() {
  static thread_local int64_t n = 0;
  return n;
}

template <class T> T at(const Tile& t, int row, int column) {
  T x;
  memcpy(&x, &t.byte[row][size_t(column) * sizeof(T)], sizeof x);
  return x;
}
template <class T> void put(Tile& t, int row, int column, T x) {
  memcpy(&t.byte[row][size_t(column) * sizeof(T)], &x, sizeof x);
}

// A VEX-encoded instruction of opcode map 0F38.
struct Instruction {
  int pp, opcode, reg, rm, vvvv, length;
  bool memory;
  uint64_t base, index_bytes;  // of a tile's rows: start, and distance
};

inline uint64_t general(const ucontext_t& c, int n) {
  static const int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15};
  return uint64_t(c.uc_mcontext.gregs[kOrder[n]]);
}

inline bool decode(const ucontext_t& c, Instruction* out) {
  const uint8_t* at_ip = reinterpret_cast<const uint8_t*>(c.uc_mcontext.gregs[REG_RIP]);
  const uint8_t* p = at_ip;
  if (p[0] != 0xc4 || (p[1] & 31) != 2 || (p[2] & 0x84) != 0) return false;  // W0, L0
  const int high_index = p[1] & 0x40 ? 0 : 8;
  const int high_base = p[1] & 0x20 ? 0 : 8;
  if (!(p[1] & 0x80)) return false;  // there are eight tiles
  out->vvvv = ~(p[2] >> 3) & 15;
  out->pp = p[2] & 3;
  out->opcode = p[3];
  const uint8_t modrm = p[4];
  out->reg = modrm >> 3 & 7;
  out->rm = modrm & 7;
  out->memory = modrm >> 6 != 3;
  p += 5;
  out->base = out->index_bytes = 0;
  if (out->memory) {
    const int mod = modrm >> 6;
    int base = out->rm;
    int64_t displacement = 0;
    bool from_ip = mod == 0 && base == 5;
    bool absolute = false;
    if (base == 4) {
      const uint8_t sib = *p++;
      const int index = (sib >> 3 & 7) + high_index;
      if (index != 4) out->index_bytes = general(c, index) << (sib >> 6);
      base = sib & 7;
      absolute = mod == 0 && base == 5;
      from_ip = false;
    }
    if (mod == 1) displacement = int8_t(*p++);
    if (mod == 2 || from_ip || absolute) {
      int32_t d;
      memcpy(&d, p, 4);
      p += 4;
      displacement = d;
    }
    if (from_ip) out->base = uint64_t(p);
    else if (!absolute) out->base = general(c, base + high_base);
    out->base += uint64_t(displacement);
  }
  out->length = int(p - at_ip);
  return true;
}

inline bool configure(const uint8_t* config) {
  State& s = state();
  s = {};
  if (config[0] != 1 || config[1] != 0) return false;
  for (int t = 0; t < 8; t++) {
    uint16_t row_bytes;
    memcpy(&row_bytes, config + 16 + 2 * t, 2);
    const int rows = config[48 + t];
    if (row_bytes > 64 || rows > 16 || (rows == 0) != (row_bytes == 0)) return false;
    s.tile[t].rows = rows;
    s.tile[t].row_bytes = row_bytes;
  }
  s.configured = true;
  return true;
}

// The processor treats subnormal numbers as 0.
inline float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

inline bool multiply(const Instruction& i) {
  State& s = state();
  if (i.reg == i.rm || i.reg == i.vvvv || i.rm == i.vvvv || i.vvvv > 7) return false;
  Tile& sum = s.tile[i.reg];
  const Tile& a = s.tile[i.rm];
  const Tile& b = s.tile[i.vvvv];
  const int groups = a.row_bytes / 4;
  if (a.row_bytes % 4 || sum.row_bytes % 4 || sum.rows != a.rows || groups != b.rows ||
      b.row_bytes != sum.row_bytes)
    return false;
  for (int m = 0; m < sum.rows; m++)
    for (int n = 0; n < sum.row_bytes / 4; n++) {
      if (i.opcode == 0x5c) {
        float even = 0, odd = 0;
        for (int k = 0; k < groups; k++) {
          const auto factor = [&](int of) {
            return flushed(bf16_to_float(at<uint16_t>(a, m, 2 * k + of))) *
                   flushed(bf16_to_float(at<uint16_t>(b, k, 2 * n + of)));
          };
          even = flushed(even + factor(0));
          odd = flushed(odd + factor(1));
        }
        put(sum, m, n, flushed(flushed(at<float>(sum, m, n)) + flushed(even + odd)));
        continue;
      }
      const bool a_signed = i.pp >= 2, b_signed = i.pp == 3 || i.pp == 1;
      uint32_t total = at<uint32_t>(sum, m, n);
      for (int k = 0; k < groups; k++)
        for (int e = 0; e < 4; e++) {
          const uint8_t x = at<uint8_t>(a, m, 4 * k + e), y = at<uint8_t>(b, k, 4 * n + e);
          const int32_t factor = a_signed ? int8_t(x) : x;
          const int32_t other = b_signed ? int8_t(y) : y;
          total += uint32_t(factor * other);
        }
      put(sum, m, n, total);
    }
  return true;
}

inline bool move(const Instruction& i) {
  Tile& t = state().tile[i.reg];
  if (t.rows == 0) return false;
  for (int r = 0; r < t.rows; r++) {
    char* row = reinterpret_cast<char*>(i.base + uint64_t(r) * i.index_bytes);
    if (i.pp == 2) memcpy(row, t.byte[r], size_t(t.row_bytes));
    else memcpy(t.byte[r], row, size_t(t.row_bytes));
  }
  return true;
}

inline bool execute(const Instruction& i) {
  State& s = state();
  const bool no_prefix = i.pp == 0;
  if (i.opcode == 0x49 && no_prefix && i.memory)
    return configure(reinterpret_cast<const uint8_t*>(i.base));
  if (i.opcode == 0x49 && no_prefix) return s = {}, true;  // tilerelease
  if (!s.configured) return false;
  if (i.opcode == 0x49 && i.pp == 3 && !i.memory) {
    memset(s.tile[i.reg].byte, 0, sizeof s.tile[i.reg].byte);
    return s.tile[i.reg].rows != 0;
  }
  if (i.opcode == 0x4b && i.pp >= 1 && i.memory) return move(i);
  if (i.opcode == 0x5c && i.pp == 2 && !i.memory) return multiply(i);
  if (i.opcode == 0x5e && !i.memory) return multiply(i);
  return false;
}

inline void handle(int, siginfo_t*, void* context) {
  ucontext_t& c = *static_cast<ucontext_t*>(context);
  Instruction i;
  if (decode(c, &i) && execute(i)) {
    c.uc_mcontext.gregs[REG_RIP] += i.length;
    executed()++;
    return;
  }
  signal(SIGILL, SIG_DFL);  // executed again, the instruction ends the process
}

inline void install() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
}

}  // namespace TT_NS::amx_emulator

#else
#define TT_AMX_EMULATOR 0
#endif
