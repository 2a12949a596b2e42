#include "base/memory/heap.h"

#include "base/os.h"
#include "base/small_vec.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tt {
namespace {

// An allocator that checks sizes and alignments, counts, and fails on request.
struct Host {
  std::mutex lock;
  std::unordered_map<void*, std::pair<size_t, size_t>> live;
  std::atomic<int64_t> fail_at{-1};  // allocations until the failing one; -1: never
  std::atomic<bool> fail_all{false};
  std::atomic<int64_t> calls{0};
  tt_allocator table = {sizeof(tt_allocator), this, alloc, free};

  static void* alloc(void* user, size_t size, size_t align) {
    Host* h = static_cast<Host*>(user);
    h->calls++;
    if (h->fail_all || (h->fail_at >= 0 && h->fail_at-- == 0)) return nullptr;
    void* p = os_alloc(size, align);
    memset(p, 0xa5, size);
    std::lock_guard l(h->lock);
    h->live[p] = {size, align};
    return p;
  }
  static void free(void* user, void* p, size_t size, size_t align) {
    Host* h = static_cast<Host*>(user);
    {
      std::lock_guard l(h->lock);
      auto it = h->live.find(p);
      ASSERT_NE(it, h->live.end());
      ASSERT_EQ(it->second, std::make_pair(size, align));
      h->live.erase(it);
    }
    memset(p, 0x5a, size);
    os_free(p);
  }
  size_t count() {
    std::lock_guard l(lock);
    return live.size();
  }
  ~Host() { EXPECT_EQ(live.size(), 0u); }
};

tt_memory_stats stats(Arena* a) {
  tt_memory_stats s = {};
  arena_stats(a, &s);
  return s;
}

struct Block {
  unsigned char* p;
  size_t bytes;
  unsigned char fill;
};

Block make(Heap* h, size_t bytes, unsigned char fill) {
  Block b = {static_cast<unsigned char*>(heap_alloc(h, bytes)), bytes, fill};
  EXPECT_NE(b.p, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b.p) % 64, 0u);
  memset(b.p, fill, bytes);
  return b;
}

void check_and_free(const Block& b) {
  for (size_t i = 0; i<b.bytes; i += b.bytes> 65536 ? 997 : 1) ASSERT_EQ(b.p[i], b.fill);
  mem_free(b.p, b.bytes);
}

TEST(Heap, ClassesWasteAtMostAFifth) {
  for (size_t n = 1; n <= kSmallMax; n++) {
    const size_t got = kSmallClass.block_bytes[kSmallClass.of[(n + 63) / 64]];
    ASSERT_GE(got, n);
    ASSERT_EQ(got % 64, 0u);
    ASSERT_LE(got, (n + 63) / 64 * 64 * 5 / 4);
  }
}

TEST(Heap, EverySizeIsAlignedAndDisjoint) {
  Host host;
  Arena* a = arena_new(&host.table);
  Heap* h = arena_heap(a);
  EXPECT_EQ(heap_arena(h), a);
  EXPECT_TRUE(heap_is_mine(h));
  std::vector<Block> blocks;
  int64_t expected = 0;
  for (size_t n = 0; n <= 20000; n = n < 300 ? n + 1 : n + n / 7) {
    for (int k = 0; k < 3; k++) {
      blocks.push_back(make(h, n, (unsigned char)(blocks.size())));
      expected += counted_bytes(n);
    }
  }
  EXPECT_EQ(stats(a).in_use, expected);
  for (const Block& b : blocks) check_and_free(b);
  EXPECT_EQ(stats(a).in_use, 0);
  arena_release(a);
}

TEST(Heap, RandomTrafficOnTheSystemAllocator) {
  Arena* a = arena_new(nullptr);
  Heap* h = arena_heap(a);
  std::mt19937_64 rng(7);
  std::vector<Block> blocks;
  for (int i = 0; i < 40000; i++) {
    if (blocks.size() < 300 || rng() % 2) {
      size_t limit = i % 10 == 0 ? 100000 : 3000;
      if (i % 100 == 0) limit = 8000000;
      const size_t n = rng() % limit;
      blocks.push_back(make(h, n, (unsigned char)rng()));
    } else {
      const size_t k = rng() % blocks.size();
      check_and_free(blocks[k]);
      blocks[k] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& b : blocks) check_and_free(b);
  EXPECT_EQ(stats(a).in_use, 0);
  arena_trim(a);
  EXPECT_LT(stats(a).reserved, 16384);
  EXPECT_GT(stats(a).peak, 16384);
  arena_release(a);
}

TEST(Heap, HugeRequestsFail) {
  Arena* a = arena_new(nullptr);
  Heap* h = arena_heap(a);
  EXPECT_EQ(heap_alloc(h, SIZE_MAX), nullptr);
  EXPECT_EQ(heap_alloc(h, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(heap_alloc(h, size_t(1) << 47), nullptr);
  EXPECT_EQ(stats(a).in_use, 0);
  arena_release(a);
}

TEST(Heap, LargeBlocksAreReused) {
  if (TT_HEAP_DIRECT) GTEST_SKIP() << "no cache in this build";
  Host host;
  Arena* a = arena_new(&host.table);
  Heap* h = arena_heap(a);
  void* p = heap_alloc(h, 100000);
  mem_free(p, 100000);
  const int64_t calls = host.calls;
  void* q = heap_alloc(h, 95000);  // a little less fits, too
  EXPECT_EQ(q, p);
  EXPECT_EQ(host.calls, calls);
  void* r = heap_alloc(h, 50000);
  EXPECT_EQ(host.calls, calls + 1);
  mem_free(q, 95000);
  void* s = heap_alloc(h, 50000);  // half of the block would be wasted
  EXPECT_NE(s, p);
  mem_free(r, 50000);
  mem_free(s, 50000);
  arena_trim(a);
  EXPECT_EQ(host.count(), 2u);  // the arena and the heap
  arena_release(a);
}

TEST(Heap, MappedBlocksEndAtHugePages) {
  if (TT_HEAP_DIRECT || !os_maps_pages()) GTEST_SKIP() << "no mapped blocks in this build";
  constexpr int64_t kHugePage = 2 << 20;
  Arena* a = arena_new(nullptr);
  Heap* h = arena_heap(a);
  const auto taken_for = [&](size_t bytes) {
    const int64_t before = stats(a).reserved;
    void* p = heap_alloc(h, bytes);
    const int64_t taken = stats(a).reserved - before;
    EXPECT_NE(p, nullptr);
    mem_free(p, bytes);
    arena_trim(a);
    EXPECT_EQ(stats(a).reserved, before);
    return taken;
  };
  EXPECT_EQ(taken_for(4000000), 2 * kHugePage);
  EXPECT_EQ(taken_for(40000000) % kHugePage, 0);
  EXPECT_LT(taken_for(2200000), 2400000);  // half of a second page would be empty
  arena_release(a);
}

TEST(Heap, SlabsChangeTheirClass) {
  if (TT_HEAP_DIRECT) GTEST_SKIP() << "no slabs in this build";
  Arena* a = arena_new(nullptr);
  Heap* h = arena_heap(a);
  std::vector<void*> v(200000);
  auto cycle = [&](size_t bytes) {
    for (void*& p : v) p = heap_alloc(h, bytes);
    for (void* p : v) mem_free(p, bytes);
  };
  cycle(64);
  const int64_t once = stats(a).peak;
  for (size_t bytes : {50, 30, 64, 10}) cycle(bytes);
  EXPECT_LT(stats(a).peak, once + once / 4);
  cycle(128);
  cycle(64);
  cycle(128);
  EXPECT_LT(stats(a).peak, 4 * once);
  arena_trim(a);
  EXPECT_LT(stats(a).reserved, 16384);
  arena_release(a);
}

TEST(Heap, OtherThreadsFree) {
  Host host;
  Arena* a = arena_new(&host.table);
  Heap* h = arena_heap(a);
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; i++) blocks.push_back(make(h, size_t(i), (unsigned char)i));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < blocks.size(); i += 4) check_and_free(blocks[i]);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(stats(a).in_use, 0);
  const int64_t calls = host.calls;
  if (!TT_HEAP_DIRECT) {
    for (int i = 0; i < 5000; i++) blocks[size_t(i)] = make(h, size_t(i), (unsigned char)i);
    EXPECT_EQ(host.calls, calls);  // freed blocks were reused
    for (const Block& b : blocks) check_and_free(b);
  }
  arena_release(a);
}

// One thread allocates, the other frees; memory must not grow.
TEST(Heap, ProducerAndConsumer) {
  Arena* a = arena_new(nullptr);
  Heap* h = arena_heap(a);
  constexpr int kSlots = 64;
  std::atomic<void*> slots[kSlots] = {};
  std::thread consumer([&] {
    for (int i = 0; i < 200000; i++) {
      void* p;
      while (!(p = slots[i % kSlots].exchange(nullptr))) std::this_thread::yield();
      mem_free(p, 200);
    }
  });
  for (int i = 0; i < 200000; i++) {
    void* p = heap_alloc(h, 200);
    memset(p, i, 200);
    while (slots[i % kSlots].load()) std::this_thread::yield();
    slots[i % kSlots] = p;
  }
  consumer.join();
  EXPECT_EQ(stats(a).in_use, 0);
  EXPECT_LT(stats(a).peak, 1 << 20);
  arena_release(a);
}

TEST(Heap, HeapsOfEndedThreadsAreAdopted) {
  Host host;
  Arena* a = arena_new(&host.table);
  Heap* first = nullptr;
  Block kept = {};
  std::thread([&] {
    first = arena_heap(a);
    kept = make(first, 500, 1);
    check_and_free(make(first, 600, 2));
    EXPECT_EQ(arena_heap(a), first);
  }).join();
  EXPECT_FALSE(heap_is_mine(first));
  EXPECT_EQ(stats(a).in_use, 512);
  std::thread([&] {
    EXPECT_EQ(arena_heap(a), first);
    EXPECT_TRUE(heap_is_mine(first));
    check_and_free(kept);
  }).join();
  EXPECT_EQ(stats(a).in_use, 0);
  arena_trim(a);
  EXPECT_EQ(host.count(), 2u);
  arena_release(a);
}

// A new thread may get the TLS address of an ended one: that does not make it the owner of the old
// one's heap.
TEST(Heap, ReusedTlsAddressesOwnNothing) {
  Arena* a = arena_new(nullptr);
  Heap* h = nullptr;
  const Tls* address = nullptr;
  std::thread([&] {
    h = arena_heap(a);
    address = &tls;
  }).join();
  ASSERT_EQ(arena_heap(a), h);  // adopted by this thread
  int reused = 0;
  for (int i = 0; i < 10; i++)
    std::thread([&] {
      reused += &tls == address;
      EXPECT_FALSE(heap_is_mine(h));
      EXPECT_NE(arena_heap(a), h);
    }).join();
  EXPECT_TRUE(heap_is_mine(h));
  RecordProperty("reused", reused);
  arena_release(a);
}

TEST(Heap, LimitHoldsAndCachesGiveWay) {
  Host host;
  Arena* a = arena_new(&host.table);
  Heap* h = arena_heap(a);
  arena_set_limit(a, 4 << 20);
  EXPECT_EQ(heap_alloc(h, 5 << 20), nullptr);
  void* p = heap_alloc(h, 2 << 20);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(heap_alloc(h, 3 << 20), nullptr);
  mem_free(p, 2 << 20);
  void* q = heap_alloc(h, 3 << 20);  // the cached 2 MB make room
  ASSERT_NE(q, nullptr);
  EXPECT_LE(stats(a).reserved, 4 << 20);
  EXPECT_LE(stats(a).peak, 4 << 20);
  std::vector<void*> small;
  for (void* s; small.size() < 10000 && (s = heap_alloc(h, 1000));) small.push_back(s);
  EXPECT_GT(small.size(), 300u);
  EXPECT_LT(small.size(), 1100u);
  for (void* s : small) mem_free(s, 1000);
  void* r = heap_alloc(h, 300000);  // empty slabs make room
  EXPECT_NE(r, nullptr);
  mem_free(q, 3 << 20);
  mem_free(r, 300000);
  arena_set_limit(a, 0);
  void* s = heap_alloc(h, 10 << 20);
  EXPECT_NE(s, nullptr);
  mem_free(s, 10 << 20);
  EXPECT_EQ(stats(a).limit, 0);
  arena_release(a);
}

TEST(Heap, EachHostAllocationMayFail) {
  for (int64_t at = 0;; at++) {
    Host host;
    host.fail_at = at;
    Arena* a = arena_new(&host.table);
    int failures = 0;
    if (a) {
      Heap* h = arena_heap(a);
      if (!h) h = (failures++, arena_heap(a));
      ASSERT_NE(h, nullptr);
      for (size_t bytes : {64, 64, 5000, 9000, 100000}) {
        void* p = heap_alloc(h, bytes);
        if (!p) p = (failures++, heap_alloc(h, bytes));
        ASSERT_NE(p, nullptr);
        memset(p, 1, bytes);
        mem_free(p, bytes);
      }
      arena_release(a);
    } else {
      failures++;
    }
    if (host.fail_at >= 0) break;  // nothing was left to fail
    EXPECT_LE(failures, 1);        // an allocation may also succeed after a cache is freed
  }
}

TEST(Heap, MemAllocFailsWithOom) {
  Host host;
  Arena* a = arena_new(&host.table);
  ErrorRecord e = {};
  tls.heap = arena_heap(a);
  tls.error = &e;
  tls.op = "zeros";
  host.fail_all = true;
  EXPECT_ANY_THROW(mem_alloc(123456));
  EXPECT_EQ(e.view.code, TT_OOM);
  EXPECT_NE(strstr(e.view.message, "123456"), nullptr);
  host.fail_all = false;
  {
    SmallVec<int64_t, 2> v;
    for (int64_t i = 0; i < 5000; i++) v.push_back(i);
    for (int64_t i = 0; i < 5000; i++) ASSERT_EQ(v[i], i);
  }
  EXPECT_EQ(stats(a).in_use, 0);
  tls.heap = nullptr;
  tls.error = nullptr;
  tls.op = nullptr;
  arena_release(a);
}

TEST(Arena, IsFreedWithItsLastBlock) {
  for (size_t bytes : {100, 100000}) {
    Host host;
    Arena* a = arena_new(&host.table);
    Block b = make(arena_heap(a), bytes, 3);
    Block c = make(arena_heap(a), bytes, 4);
    arena_release(a);
    EXPECT_GT(host.count(), 0u);
    check_and_free(b);
    std::thread([&] { check_and_free(c); }).join();
    EXPECT_EQ(host.count(), 0u);
  }
}

TEST(Arena, IsFreedWhileAnotherThreadLives) {
  Host host;
  Arena* a = arena_new(&host.table);
  std::atomic<int> step{0};
  Block b = {};
  Block c = {};
  std::thread other([&] {
    b = make(arena_heap(a), 100, 3);
    c = make(arena_heap(a), 100, 4);
    step = 1;
    while (step != 2) std::this_thread::yield();
    check_and_free(b);  // this thread's own block, after the arena's last reference
    step = 3;
    while (step != 4) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  arena_release(a);
  step = 2;
  while (step != 3) std::this_thread::yield();
  EXPECT_GT(host.count(), 0u);
  check_and_free(c);
  EXPECT_EQ(host.count(),
            0u);  // the application may now destroy its allocator, although the thread still runs
  step = 4;
  other.join();
}

TEST(Arena, ReleaseRacesWithFrees) {
  for (int round = 0; round < 300; round++) {
    Host host;
    Arena* a = arena_new(&host.table);
    std::atomic<int> ready{0};
    std::vector<Block> given[3];
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
      threads.emplace_back([&, t] {
        Heap* h = arena_heap(a);
        std::vector<Block> own;
        for (int i = 0; i < 40; i++) {
          own.push_back(make(h, size_t(i) * 50, (unsigned char)t));
          given[t].push_back(make(h, i == 7 ? 20000 : size_t(i) * 30, (unsigned char)i));
        }
        ready++;
        while (ready < 4) {}
        for (size_t i = 0; i < own.size(); i++) {
          check_and_free(own[i]);
          check_and_free(given[(t + 1) % 3][i]);
        }
      });
    while (ready < 3) std::this_thread::yield();
    ready++;
    arena_release(a);
    for (auto& t : threads) t.join();
    ASSERT_EQ(host.count(), 0u) << round;
  }
}

TEST(Arena, ManyThreadsStartAndEnd) {
  Host host;
  Arena* a = arena_new(&host.table);
  std::mutex lock;
  std::vector<Block> shared;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      std::mt19937_64 rng{uint64_t(t)};
      for (int k = 0; k < 20; k++)
        std::thread([&] {
          Heap* h = arena_heap(a);
          for (int i = 0; i < 200; i++) {
            Block b = make(h, rng() % 12000, (unsigned char)rng());
            std::lock_guard l(lock);
            shared.push_back(b);
            if (shared.size() < 100) continue;
            std::swap(shared[rng() % shared.size()], shared.back());
            check_and_free(shared.back());
            shared.pop_back();
          }
          if (k % 5 == 0) arena_trim(a);
          (void)stats(a);
        }).join();
    });
  for (auto& t : threads) t.join();
  for (const Block& b : shared) check_and_free(b);
  EXPECT_EQ(stats(a).in_use, 0);
  arena_release(a);
}

TEST(Arena, ReleaseReturnsAllMemory) {
  Host host;
  Arena* a = arena_new(&host.table);
  EXPECT_EQ(host.count(), 1u);
  arena_release(a);
  EXPECT_EQ(host.count(), 0u);
  arena_release(nullptr);
}

}  // namespace
}  // namespace tt
