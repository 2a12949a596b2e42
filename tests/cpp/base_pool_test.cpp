#include "base/pool.h"

#include "base/cpuid.h"
#include "base/os.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace tt {
namespace {

class Pools : public testing::Test {
 protected:
  Pools() : arena(arena_new(nullptr)), pool(pool_new(arena)) {}
  ~Pools() override {
    pool_delete(pool);
    tt_memory_stats s = {};
    arena_stats(arena, &s);
    EXPECT_LT(s.reserved, 16384);
    arena_release(arena);
  }
  Arena* arena;
  Pool* pool;
};

struct Cover {
  std::vector<std::atomic<int>> hits;
  int64_t grain;
  std::atomic<int> bad{0};
  Cover(int64_t n, int64_t g) : hits(size_t(n)), grain(g) {}
  static void body(void* ctx, int64_t begin, int64_t end) {
    Cover* c = static_cast<Cover*>(ctx);
    const int64_t n = int64_t(c->hits.size());
    if (begin % c->grain != 0 || end != std::min(n, begin + c->grain)) c->bad++;
    for (int64_t i = begin; i < end; i++) c->hits[size_t(i)]++;
  }
  void check() {
    EXPECT_EQ(bad, 0);
    for (auto& h : hits) ASSERT_EQ(h, 1);
  }
};

void spin_for(int64_t ns) {
  const int64_t until = os_now_ns() + ns;
  while (os_now_ns() < until) {}
}

void slow_body(void*, int64_t begin, int64_t end) { spin_for(20000 * (end - begin)); }

TEST_F(Pools, CoversEveryIndexOnceInFixedRanges) {
  for (int threads : {1, 2, 3, 8}) {
    ASSERT_EQ(pool_set_threads(pool, threads), TT_OK);
    EXPECT_EQ(pool_threads(pool), threads);
    for (int64_t n : {0, 1, 2, 7, 100, 4096, 100003})
      for (int64_t grain : {1, 3, 64, 5000, 1000000}) {
        if (n / grain > 20000) continue;
        Cover c(n, grain);
        ASSERT_EQ(parallel_for(pool, n, grain, Cover::body, &c), TT_OK);
        c.check();
      }
  }
}

TEST_F(Pools, BadThreadCounts) {
  EXPECT_EQ(pool_set_threads(pool, 0), TT_INVALID_ARG);
  EXPECT_EQ(pool_set_threads(pool, -3), TT_INVALID_ARG);
  EXPECT_EQ(pool_set_threads(pool, kMaxThreads + 1), TT_INVALID_ARG);
  EXPECT_EQ(pool_threads(pool), 1);
}

// Sums of floats in ranges: equal bits for every thread count.
TEST_F(Pools, ResultsDoNotDependOnThreads) {
  constexpr int64_t kN = 100000, kGrain = 777;
  struct Sum {
    float parts[kN / kGrain + 1];
    static void body(void* ctx, int64_t begin, int64_t end) {
      float s = 0;
      for (int64_t i = begin; i < end; i++) s += std::sin(float(i));
      static_cast<Sum*>(ctx)->parts[begin / kGrain] = s;
    }
  };
  Sum one = {};
  parallel_for(pool, kN, kGrain, Sum::body, &one);
  for (int threads : {2, 5}) {
    pool_set_threads(pool, threads);
    Sum many = {};
    parallel_for(pool, kN, kGrain, Sum::body, &many);
    EXPECT_EQ(memcmp(&one, &many, sizeof one), 0);
  }
}

int threads_now() {
  int n = 0;
  FILE* f = fopen("/proc/self/status", "r");
  char line[256];
  while (fgets(line, sizeof line, f)) sscanf(line, "Threads: %d", &n);
  fclose(f);
  return n;
}
// A joined thread is listed until the system has ended it: returns the smallest count within 100
// ms.
int count_threads() {
  int n = threads_now();
  for (int i = 0; i < 100; i++) {
    usleep(1000);
    const int again = threads_now();
    n = again < n ? again : n;
  }
  return n;
}
// Waits until the count is `want`, at most a minute, and returns it.
int settled(int want) {
  for (int i = 0; i < 60000 && threads_now() != want; i++) usleep(1000);
  return threads_now();
}

TEST_F(Pools, ThreadsStartOnDemandAndEnd) {
  const int before = count_threads();
  pool_set_threads(pool, 4);
  EXPECT_EQ(settled(before), before);
  // Too little work to start a thread; but a thread that is interrupted in its first range, as some
  // are on a busy machine, overestimates it.
  int starts = 0;
  for (int i = 0; i < 20; i++) {
    pool_set_threads(pool, 1);
    ASSERT_EQ(settled(before), before);
    pool_set_threads(pool, 4);
    Cover small(64, 8);
    parallel_for(pool, 64, 8, Cover::body, &small);
    starts += count_threads() != before;
  }
  EXPECT_LT(starts, 10);
  pool_set_threads(pool, 1);
  pool_set_threads(pool, 4);
  EXPECT_EQ(settled(before), before);
  parallel_for(pool, 64, 1, slow_body, nullptr);
  EXPECT_EQ(settled(before + 3), before + 3);
  pool_set_threads(pool, 2);
  EXPECT_EQ(settled(before), before);
  parallel_for(pool, 64, 1, slow_body, nullptr);
  EXPECT_EQ(settled(before + 1), before + 1);
  pool_set_threads(pool, 1);
  EXPECT_EQ(settled(before), before);
}

TEST_F(Pools, SeveralThreadsTakePart) {
  pool_set_threads(pool, 2);
  struct Ids {
    std::mutex lock;
    std::set<std::thread::id> ids;
    static void body(void* ctx, int64_t, int64_t) {
      spin_for(200000);
      Ids* s = static_cast<Ids*>(ctx);
      std::lock_guard l(s->lock);
      s->ids.insert(std::this_thread::get_id());
    }
  } s;
  for (int i = 0; i < 50 && s.ids.size() < 2; i++) parallel_for(pool, 100, 1, Ids::body, &s);
  EXPECT_EQ(s.ids.size(), 2u);
}

TEST_F(Pools, NestedRegionsAreSerial) {
  pool_set_threads(pool, 4);
  struct Nested {
    Pool* pool;
    std::atomic<int> foreign{0}, inner{0};
    static void body(void* ctx, int64_t, int64_t) {
      Nested* s = static_cast<Nested*>(ctx);
      EXPECT_EQ(pool_set_threads(s->pool, 2), TT_INVALID_ARG);
      struct Inner {
        Nested* s;
        std::thread::id id = std::this_thread::get_id();
      } inner{s};
      auto count = [](void* c, int64_t, int64_t) {
        Inner* i = static_cast<Inner*>(c);
        i->s->inner++;
        if (i->id != std::this_thread::get_id()) i->s->foreign++;
      };
      parallel_for(s->pool, 10, 1, count, &inner);
    }
  } s{pool};
  for (int i = 0; i < 20; i++) parallel_for(pool, 50, 1, Nested::body, &s);
  EXPECT_EQ(s.inner, 20 * 50 * 10);
  EXPECT_EQ(s.foreign, 0);
  EXPECT_EQ(tls.in_parallel, 0);
}

TEST_F(Pools, RegionsFromManyThreads) {
  pool_set_threads(pool, 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; i++) {
        Cover c(500, 7);
        parallel_for(pool, 500, 7, Cover::body, &c);
        c.check();
        if (t == 0 && i % 50 == 0) {
          EXPECT_EQ(pool_set_threads(pool, 2 + i % 3), TT_OK);
        }
      }
    });
  for (auto& t : threads) t.join();
}

TEST_F(Pools, ManySmallHotRegions) {
  pool_set_threads(pool, 3);
  for (int k = 0; k < 5; k++) {
    parallel_for(pool, 100, 1, slow_body, nullptr);
    for (int i = 0; i < 5000; i++) {
      Cover c(8, 1);
      parallel_for(pool, 8, 1, Cover::body, &c);
      c.check();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // they are asleep again
  }
}

// Regions of 60 µs: one alone would not wake a worker, a stream of them does.
TEST_F(Pools, AStreamOfShortRegionsWakesWorkers) {
  struct Seen {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> elsewhere{0};
    static void body(void* ctx, int64_t begin, int64_t end) {
      auto* s = static_cast<Seen*>(ctx);
      if (std::this_thread::get_id() != s->caller) s->elsewhere += int(end - begin);
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(15);
      while (std::chrono::steady_clock::now() < until) {}
    }
  } seen;
  pool_set_threads(pool, 2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (seen.elsewhere == 0 && std::chrono::steady_clock::now() < end)
    parallel_for(pool, 4, 1, Seen::body, &seen);
  EXPECT_GT(seen.elsewhere.load(), 0);
}

// Whether the process did next to nothing for 100 ms.
bool is_quiet() {
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  getrusage(RUSAGE_SELF, &after);
  auto us = [](const timeval& t) { return t.tv_sec * 1000000 + t.tv_usec; };
  return us(after.ru_utime) - us(before.ru_utime) < 10000 && after.ru_nvcsw - before.ru_nvcsw <= 20;
}

TEST_F(Pools, IdleWorkersUseNoCpu) {
  pool_set_threads(pool, 4);
  parallel_for(pool, 100, 1, slow_body, nullptr);
  int quiet = 0;  // intervals in a row: a worker that woke now and then would break them
  // On a busy machine, workers look for work a little longer.
  for (int i = 0; i < 300 && quiet < 3; i++) quiet = is_quiet() ? quiet + 1 : 0;
  EXPECT_EQ(quiet, 3);
}

TEST_F(Pools, ForkedChildIsSerialUntilItSetsThreads) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads in a forked child are not for this sanitizer";
#endif
  pool_set_threads(pool, 3);
  parallel_for(pool, 64, 1, slow_body, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    Cover c(64, 1);
    parallel_for(pool, 64, 1, Cover::body, &c);
    parallel_for(pool, 64, 1, slow_body, nullptr);
    for (auto& h : c.hits)
      if (h != 1) _exit(1);
    if (settled(1) != 1) _exit(2);
    if (pool_set_threads(pool, 3) != TT_OK) _exit(3);
    parallel_for(pool, 64, 1, slow_body, nullptr);
    if (settled(3) != 3) _exit(4);
    pool_delete(pool);
    if (settled(1) != 1) _exit(5);
    arena_release(arena);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

struct HostPool {
  int threads = 2;
  int32_t status = 0;
  int calls = 0;
  tt_executor table = {sizeof(tt_executor), this, num_threads, run};
  static int32_t num_threads(void* user) { return static_cast<HostPool*>(user)->threads; }
  // From the end, two ranges per call: allowed, although tt's own order is another.
  static int32_t run(void* user, int64_t n, int64_t grain, tt_range_fn body, void* ctx) {
    HostPool* h = static_cast<HostPool*>(user);
    h->calls++;
    if (h->status) return h->status;
    std::thread([&] {
      for (int64_t end = n; end > 0; end = std::max<int64_t>(0, end - grain))
        body(ctx, std::max<int64_t>(0, end - grain), end);
    }).join();
    return 0;
  }
};

TEST_F(Pools, HostExecutor) {
  HostPool host;
  pool_set_executor(pool, &host.table);
  EXPECT_EQ(pool_threads(pool), 2);
  const int before = count_threads();
  Cover c(1000, 7);
  EXPECT_EQ(parallel_for(pool, 1000, 7, Cover::body, &c), TT_OK);
  c.check();
  EXPECT_EQ(host.calls, 1);
  EXPECT_EQ(settled(before), before);
  host.status = TT_CANCELLED;
  EXPECT_EQ(parallel_for(pool, 1000, 7, Cover::body, &c), -1);
  host.status = -5;
  EXPECT_EQ(parallel_for(pool, 1000, 7, Cover::body, &c), -1);
  host.threads = 1;
  Cover d(1000, 7);
  EXPECT_EQ(parallel_for(pool, 1000, 7, Cover::body, &d), TT_OK);
  d.check();
  pool_set_executor(pool, nullptr);
  EXPECT_EQ(pool_threads(pool), 1);
  EXPECT_EQ(host.calls, 3);
}

TEST(Os, MutexExcludes) {
  Mutex m;
  int64_t n = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 50000; i++) {
        Lock l(m);
        n++;
        if (i % 1000 == 0) std::this_thread::yield();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(n, 200000);
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock());
  m.unlock();
}

TEST(Os, ThreadsBlockSignals) {
  OsThread t;
  sigset_t seen;
  ASSERT_EQ(
      os_thread_start(
          &t, [](void* p) { pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t*>(p)); },
          &seen),
      0);
  os_thread_join(&t);
  EXPECT_EQ(sigismember(&seen, SIGINT), 1);
  EXPECT_EQ(sigismember(&seen, SIGTERM), 1);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

TEST(Os, Random) {
  unsigned char a[64] = {};
  unsigned char b[64] = {};
  ASSERT_TRUE(os_random(a, sizeof a));
  ASSERT_TRUE(os_random(b, sizeof b));
  EXPECT_NE(memcmp(a, b, sizeof a), 0);
}

TEST(Os, MapIsAlignedAndUnmapsInParts) {
  const size_t two_mb = size_t(2) << 20;
  char* p = static_cast<char*>(os_map(two_mb + 4096, two_mb));
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % two_mb, 0u);
  EXPECT_EQ(p[0] | p[two_mb + 4095], 0);
  os_unmap(p, 65536);
  p[65536] = 1;
  os_unmap(p + 65536, two_mb + 4096 - 65536);
  EXPECT_EQ(os_map(SIZE_MAX - 4096, two_mb), nullptr);
}

TEST(Cpu, IsaAgreesWithTheCompiler) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (best_isa() == kIsaAvx512) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
  }
  EXPECT_EQ(best_isa() >= kIsaAvx2,
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
  EXPECT_STREQ(isa_name(kIsaAvx512), "avx512");
  EXPECT_GE(l3_bytes(), 0);
}

}  // namespace
}  // namespace tt
