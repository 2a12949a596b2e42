// worker_limit.cpp THREADS: a worker whose workloads do only what the machine must do at least for
// tt's workload of the same name: read the bytes, read and write them (with or without non-temporal
// stores, whichever is faster), or issue the fused multiply-adds. The threads share it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {
typedef float Vec __attribute__((vector_size(64)));
constexpr int64_t kLane = 16;
constexpr int64_t kStep = 4 * kLane;
thread_local volatile float sink;

double now() {
  timespec t;
  clock_gettime(std::getenv("TT_BENCH_BATCH") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

float* buffer(int64_t n, int64_t skew) {
  const size_t bytes = size_t(n) * 4 + (4 << 20);
  char* p = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char* q = p + (-reinterpret_cast<uintptr_t>(p) & ((2 << 20) - 1));
  madvise(q, bytes - (2 << 20), MADV_HUGEPAGE);
  float* x = reinterpret_cast<float*>(q + skew);
  for (int64_t i = 0; i < n + 64; ++i) x[i] = float(i % 1021) * 1e-3F;
  return x;
}
Vec& at(float* p) { return *reinterpret_cast<Vec*>(p); }

void read(float* a, int64_t n) {
  Vec s[4] = {};
  for (int64_t i = 0; i < n; i += kStep)
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) s[k] += at(a + i + k * kLane);
  const Vec t = s[0] + s[1] + s[2] + s[3];
  sink = t[0] + t[7];
}
template <bool Stream> void put(float* p, Vec v) {
  if constexpr (Stream) {
    typedef double Bits __attribute__((vector_size(64)));
    asm volatile("vmovntps %1, %0" : "=m"(*reinterpret_cast<Bits*>(p)) : "v"(v));
  } else {
    at(p) = v;
  }
}
template <bool Stream> void add(float* a, float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; i += kStep)
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
        put<Stream>(c + i + k * kLane, at(a + i + k * kLane) + at(b + i + k * kLane));
}
template <bool Stream> void copy(float* a, float* b, int64_t n) {
  for (int64_t i = 0; i < n; i += kStep)
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
        put<Stream>(b + i + k * kLane, at(a + i + k * kLane));
}
template <bool Stream> void fill(float* a, int64_t n) {
  for (int64_t i = 0; i < n; i += kStep)
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
        put<Stream>(a + i + k * kLane, Vec{} + 1.0F);
}
// c = mask ? a : b, a byte of the mask for each float: 0 or -1, one term of which is 0.
template <bool Stream> void choose(const char* mask, float* a, float* b, float* c, int64_t n) {
  struct Bytes {
    char byte[16];
  };
  typedef int Words __attribute__((vector_size(64)));
  for (int64_t i = 0; i < n; i += kStep) _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
      const int64_t j = i + k * kLane;
      Words take;
      asm("vpmovsxbd %1, %0" : "=v"(take) : "m"(*reinterpret_cast<const Bytes*>(mask + j)));
      put<Stream>(c + j, Vec((Words(at(a + j)) & take) | (Words(at(b + j)) & ~take)));
    }
}
// What an optimizer with two moments must move: three arrays change by the gradient.
template <bool Stream> void update(float* p, float* g, float* m, float* v, int64_t n) {
  for (int64_t i = 0; i < n; i += kStep) _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
      const int64_t j = i + k * kLane;
      put<Stream>(p + j, at(p + j) + at(g + j));
      put<Stream>(m + j, at(m + j) + at(g + j));
      put<Stream>(v + j, at(v + j) + at(g + j));
    }
}
// Four vectors of b for each one of a.
template <bool Stream> void enlarge(float* a, float* b, int64_t n) {
  for (int64_t i = 0; i < n; i += kLane)
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
        put<Stream>(b + 4 * i + k * kLane, at(a + i));
}
// Multiply-adds in twelve chains: fused ones of floats, or of bf16 pairs where the processor has
// them.
template <bool Pairs> void multiply(int64_t count) {
#if defined(__AVX512BF16__)
  constexpr bool kPairs = Pairs;
#define TT_DOT "vdpbf16ps %1, %2, %0"
#else
  constexpr bool kPairs = false;
#define TT_DOT ""
#endif
  Vec a{};
  Vec b{};
  Vec c{};
  Vec d{};
  Vec e{};
  Vec f{};
  Vec g{};
  Vec h{};
  Vec i{};
  Vec j{};
  Vec k{};
  Vec l{};
  const Vec x = Vec{} + 1.0001F;
  const Vec y = Vec{} + 0.5F;
  const auto step = [&](Vec& v) {
    if constexpr (kPairs) asm volatile(TT_DOT : "+v"(v) : "v"(x), "v"(y));
    else asm volatile("vfmadd231ps %1, %2, %0" : "+v"(v) : "v"(x), "v"(y));
  };
  for (int64_t n = 0; n < count; n += 12 * kLane * (kPairs ? 2 : 1)) {
    step(a);
    step(b);
    step(c);
    step(d);
    step(e);
    step(f);
    step(g);
    step(h);
    step(i);
    step(j);
    step(k);
    step(l);
  }
  sink = (a + b + c + d + e + f + g + h + i + j + k + l)[0];
}

// Multiply-adds of bf16 by the tiles of AMX, 16 * 16 * 32 an instruction, in four chains.
#if defined(__AMX_BF16__)
constexpr bool kTiles = true;
void multiply_tiles(int64_t count) {
  struct {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } const whole = {1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  constexpr int kTileData = 18;         // the state that Linux saves for processes that ask for it
  constexpr int kAskForState = 0x1023;  // ARCH_REQ_XCOMP_PERM
  static const long asked = syscall(SYS_arch_prctl, kAskForState, kTileData);
  if (asked != 0) return;
  asm volatile("ldtilecfg %0" : : "m"(whole));
  for (int64_t n = 0; n < count; n += 4 * 16 * 16 * 32)
    asm volatile(
        "tdpbf16ps %tmm5, %tmm4, %tmm0\n\t"
        "tdpbf16ps %tmm5, %tmm4, %tmm1\n\t"
        "tdpbf16ps %tmm5, %tmm4, %tmm2\n\t"
        "tdpbf16ps %tmm5, %tmm4, %tmm3");
  asm volatile("tilerelease");
}
#else
constexpr bool kTiles = false;
void multiply_tiles(int64_t) {}
#endif

using Work = std::function<void()>;

// Threads that wait for the next call spinning, for a while, and take pieces of it as they come, as
// tt's own do.
struct Team {
  const int64_t threads, pieces;
  std::atomic<uint32_t> epoch{0};
  std::atomic<int64_t> next{INT64_C(1) << 32}, done{0};
  const std::function<void(int64_t)>* part = nullptr;
  explicit Team(int64_t n) : threads(n), pieces(8 * n) {
    for (int64_t i = 1; i < n; ++i) std::thread([this] { serve(); }).detach();
  }
  [[noreturn]] void serve() {
    for (uint32_t seen = 0;;) {
      for (int spins = 0; epoch.load() == seen && spins < 1000; ++spins) __builtin_ia32_pause();
      epoch.wait(seen);
      seen = epoch.load();
      take();
    }
  }
  void take() {
    for (int64_t i; (i = next.fetch_add(1)) < pieces; done.fetch_add(1)) (*part)(i);
  }
  void run() {
    done = 0;
    next = 0;
    epoch.fetch_add(1);
    epoch.notify_all();
    take();
    while (done.load() < pieces) __builtin_ia32_pause();
  }
  // f(from, count) for each piece of n.
  template <class F> Work split(int64_t n, F f) {
    if (threads == 1) return [=] { f(0, n); };
    const std::function<void(int64_t)> body = [this, n, f](int64_t i) {
      const int64_t from = n * i / pieces / kStep * kStep;
      const int64_t to = i + 1 == pieces ? n : n * (i + 1) / pieces / kStep * kStep;
      f(from, to - from);
    };
    return [this, body] {
      part = &body;
      run();
    };
  }
};

double batch(const Work& f) {  // nanoseconds a call
  static const char* text = std::getenv("TT_BENCH_BATCH");
  const double length = 1e9 * (text ? std::atof(text) : 0.03);
  double start = now();
  f();
  const int64_t calls = std::max<int64_t>(1, int64_t(length / std::max(now() - start, 50.0)));
  start = now();
  for (int64_t i = 0; i < calls; ++i) f();
  return (now() - start) / double(calls);
}
Work faster(Work a, Work b) {
  a();
  b();
  return std::min(batch(a), batch(a)) < std::min(batch(b), batch(b)) ? a : b;
}

struct Entry {
  const char* name;
  char kind;  // r: read n floats; a: c = a + b; c: b = a; w: choose(); o: update(); e: enlarge();
              // f: fill; m: n fused multiply-adds; b: n of bf16
  int64_t n;
};
constexpr Entry kEntries[] = {{"sum1e6", 'r', 1000000},
                              {"max1e6", 'r', 1000000},
                              {"linear1x1024", 'r', 1024 * 1024},
                              {"sumdim0_8192x1024", 'r', 8192 * 1024},
                              {"gemv_dram", 'r', INT64_C(50331648)},
                              {"argmax128x50257", 'r', 128 * 50257},
                              {"xent128x50257", 'r', 128 * 50257},
                              {"addout1e6", 'a', 1000000},
                              {"addout1e7", 'a', 10000000},
                              {"softmax1024x1024", 'c', 1024 * 1024},
                              {"layernorm1024x1024", 'c', 1024 * 1024},
                              {"transpose1024x1024", 'c', 1024 * 1024},
                              {"exp1e6", 'c', 1000000},
                              {"tanh1e6", 'c', 1000000},
                              {"where1e6", 'w', 1000000},
                              {"adam1e6", 'o', 1000000},
                              {"adam1e7", 'o', 10000000},
                              {"adam100x1e4", 'o', 1000000},
                              {"bilinear", 'e', 64 * 32 * 32 * 32},
                              {"rand1e6", 'f', 1000000},
                              {"mm32x32x32", 'm', 32 * 32 * 32},
                              {"mm64x64x64", 'm', 64 * 64 * 64},
                              {"mm128x128x128", 'm', 128 * 128 * 128},
                              {"mm256x256x256", 'm', 256 * 256 * 256},
                              {"mm512x512x512", 'm', 512 * 512 * 512},
                              {"mm1024x1024x1024", 'm', int64_t(1) << 30},
                              {"mm2048x2048x2048", 'm', int64_t(1) << 33},
                              {"mmbf16_128", 'b', int64_t(1) << 21},
                              {"mmbf16_256", 'b', int64_t(1) << 24},
                              {"mmbf16_512", 'b', int64_t(1) << 27},
                              {"mmbf16_1024", 'b', int64_t(1) << 30},
                              {"mmbf16_2048", 'b', int64_t(1) << 33},
                              {"mmbf16_4096", 'b', int64_t(1) << 36},
                              {"convNHWC_c2", 'm', INT64_C(924844032)},
                              {"convNHWC_c2_fb", 'm', INT64_C(2774532096)},
                              {"convNCHW_c2", 'm', INT64_C(924844032)},
                              {"convNHWC_c3", 'm', INT64_C(924844032)},
                              {"convNHWC_c3_fb", 'm', INT64_C(2774532096)},
                              {"convNCHW_c3", 'm', INT64_C(924844032)},
                              {"convNHWC_c4", 'm', INT64_C(924844032)},
                              {"convNHWC_c4_fb", 'm', INT64_C(2774532096)},
                              {"convNCHW_c4", 'm', INT64_C(924844032)},
                              {"convNHWC_c5", 'm', INT64_C(924844032)},
                              {"convNHWC_c5_fb", 'm', INT64_C(2774532096)},
                              {"convNCHW_c5", 'm', INT64_C(924844032)},
                              {"convNHWC_p1", 'm', INT64_C(411041792)},
                              {"convNHWC_p1_fb", 'm', INT64_C(1233125376)},
                              {"convNCHW_p1", 'm', INT64_C(411041792)}};

Work build(const Entry& e, Team& team) {
  const int64_t n = e.n;
  if (e.kind == 'm') return team.split(n, [](int64_t, int64_t count) { multiply<false>(count); });
  if (e.kind == 'b' && kTiles)
    return team.split(n, [](int64_t, int64_t count) { multiply_tiles(count); });
  if (e.kind == 'b')  // some processors issue pairs at a quarter of the rate
    return faster(team.split(n, [](int64_t, int64_t count) { multiply<true>(count); }),
                  team.split(n, [](int64_t, int64_t count) { multiply<false>(count); }));
  float* a = buffer(n, 0);
  if (e.kind == 'r') return team.split(n, [=](int64_t i, int64_t count) { read(a + i, count); });
  if (e.kind == 'f')
    return faster(team.split(n, [=](int64_t i, int64_t count) { fill<false>(a + i, count); }),
                  team.split(n, [=](int64_t i, int64_t count) { fill<true>(a + i, count); }));
  float* b = buffer(e.kind == 'e' ? 4 * n : n, 5120);
  if (e.kind == 'e')
    return faster(
        team.split(n, [=](int64_t i, int64_t count) { enlarge<false>(a + i, b + 4 * i, count); }),
        team.split(n, [=](int64_t i, int64_t count) { enlarge<true>(a + i, b + 4 * i, count); }));
  if (e.kind == 'c')
    return faster(
        team.split(n, [=](int64_t i, int64_t count) { copy<false>(a + i, b + i, count); }),
        team.split(n, [=](int64_t i, int64_t count) { copy<true>(a + i, b + i, count); }));
  float* c = buffer(n, 10752);
  if (e.kind == 'o') {
    float* d = buffer(n, 15872);
    const auto run = [=](auto f) {
      return [=](int64_t i, int64_t count) { f(a + i, b + i, c + i, d + i, count); };
    };
    return faster(team.split(n, run(update<false>)), team.split(n, run(update<true>)));
  }
  if (e.kind == 'w') {
    char* mask = reinterpret_cast<char*>(buffer(n / 4 + 1, 15872));
    for (int64_t i = 0; i < n; ++i) mask[i] = char(-(i % 3 & 1));
    const auto run = [=](auto f) {
      return [=](int64_t i, int64_t count) { f(mask + i, a + i, b + i, c + i, count); };
    };
    return faster(team.split(n, run(choose<false>)), team.split(n, run(choose<true>)));
  }
  return faster(
      team.split(n, [=](int64_t i, int64_t count) { add<false>(a + i, b + i, c + i, count); }),
      team.split(n, [=](int64_t i, int64_t count) { add<true>(a + i, b + i, c + i, count); }));
}
}  // namespace

int main(int argc, char** argv) {
  Team team(argc > 1 ? std::atoi(argv[1]) : 1);
  std::map<std::string, Work> built;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "?") {
      for (const Entry& e : kEntries) std::printf("%s ", e.name);
      std::puts("");
    } else {
      const Entry* e = std::find_if(std::begin(kEntries), std::end(kEntries),
                                    [&](const Entry& x) { return line == x.name; });
      if (e == std::end(kEntries)) {
        std::fprintf(stderr, "no workload %s\n", line.c_str());
        return 1;
      }
      if (!built.count(line)) built[line] = build(*e, team);
      std::printf("%.3f\n", batch(built[line]));
    }
    std::fflush(stdout);
  }
  std::_Exit(0);  // the threads wait for ever
}
