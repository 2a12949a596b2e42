// The caching allocator of devices, over a table whose events happen when the test says so.
#include "core/device_alloc.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <map>
#include <random>
#include <vector>

namespace TT_NS {
namespace {

constexpr size_t kMiB = size_t(1) << 20;

// ---- a device of 64 MiB ----

size_t capacity, taken;
int raw_allocs, raw_frees, syncs, ends;
bool streams_done;
std::map<void*, size_t> raw_blocks;

int32_t raw_alloc(int32_t, size_t bytes, void** out) {
  if (taken + bytes > capacity) return TT_OOM;
  *out = reinterpret_cast<void*>(uintptr_t(++raw_allocs) << 32);
  raw_blocks[*out] = bytes;
  taken += bytes;
  return TT_OK;
}
void raw_free(int32_t, void* p) {
  raw_frees++;
  ASSERT_TRUE(raw_blocks.count(p));
  taken -= raw_blocks[p];
  raw_blocks.erase(p);
}
int32_t event_new(int32_t, void** out) {
  *out = malloc(1);
  return TT_OK;
}
void event_free(int32_t, void* e) { free(e); }
int32_t event_record(int32_t, void*, void*) { return TT_OK; }
int32_t event_done(int32_t, void*) { return streams_done; }
int32_t stream_sync(int32_t, void*) {
  syncs++;
  streams_done = true;
  return TT_OK;
}
int32_t stream_wait(int32_t, void*, void*) { return TT_OK; }
void count_end(void*) { ends++; }

DeviceBackend* table(int32_t rule) {
  static DeviceBackend b;
  b = {};
  b.raw_alloc = raw_alloc;
  b.raw_free = raw_free;
  b.event_new = event_new;
  b.event_free = event_free;
  b.event_record = event_record;
  b.event_done = event_done;
  b.stream_sync = stream_sync;
  b.stream_wait = stream_wait;
  b.block_rule = rule;
  return &b;
}

class DeviceAllocTest : public testing::Test {
 protected:
  void SetUp() override { start(kCutBlocks); }
  void TearDown() override {
    device_alloc_release(alloc);
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(taken, 0u);
  }
  void start(int32_t rule) {
    capacity = 64 * kMiB;
    taken = 0;
    raw_allocs = raw_frees = syncs = ends = 0;
    streams_done = false;
    raw_blocks.clear();
    alloc = device_alloc_new(table(rule), 0, count_end, nullptr);
    ASSERT_TRUE(alloc);
    for (int k = 0; k < 3; k++) pool[k] = device_alloc_stream(alloc, k, &pool[k]);
  }
  DeviceAllocStats stats() {
    DeviceAllocStats s;
    device_alloc_stats(alloc, &s);
    return s;
  }
  DeviceAlloc* alloc = nullptr;
  DevicePool* pool[3];
};

TEST_F(DeviceAllocTest, SmallBlocksShareASlab) {
  std::vector<DeviceBlock*> blocks;
  for (int i = 0; i < 100; i++) blocks.push_back(device_alloc_get(pool[0], 1000));
  EXPECT_EQ(raw_allocs, 1);
  EXPECT_EQ(stats().reserved, int64_t(2 * kMiB));
  EXPECT_EQ(stats().in_use, 100 * 1024);
  for (int i = 1; i < 100; i++) EXPECT_EQ(blocks[i]->p, blocks[i - 1]->p + 1024);
  for (DeviceBlock* b : blocks) device_alloc_put(b, 0);
  EXPECT_EQ(stats().in_use, 0);
  // All were merged: two halves of the slab fit again.
  DeviceBlock* a = device_alloc_get(pool[0], kMiB);
  DeviceBlock* b = device_alloc_get(pool[0], kMiB);
  EXPECT_EQ(raw_allocs, 1);
  device_alloc_put(a, 0);
  device_alloc_put(b, 0);
}

TEST_F(DeviceAllocTest, LargeBlocksAreCutByBestFit) {
  DeviceBlock* a = device_alloc_get(pool[0], 8 * kMiB);  // from a segment of 20 MiB
  DeviceBlock* b = device_alloc_get(pool[0], 3 * kMiB);
  DeviceBlock* c = device_alloc_get(pool[0], 4 * kMiB);
  EXPECT_EQ(raw_allocs, 1);
  DeviceBlock* big = device_alloc_get(pool[0], 11 * kMiB);  // a segment of its own, 12 MiB
  EXPECT_EQ(raw_allocs, 2);
  EXPECT_EQ(stats().reserved, int64_t(32 * kMiB));
  char* at = b->p;
  device_alloc_put(a, 0);
  device_alloc_put(b, 0);
  device_alloc_put(c, 0);  // merges all three with the rest of the segment
  DeviceBlock* d = device_alloc_get(pool[0], 3 * kMiB);
  EXPECT_LT(d->p, at + 4 * kMiB);
  EXPECT_EQ(raw_allocs, 2);
  device_alloc_put(d, 0);
  device_alloc_put(big, 0);
  DeviceBlock* whole = device_alloc_get(pool[0], 20 * kMiB);
  EXPECT_EQ(raw_allocs, 2);
  device_alloc_put(whole, 0);
}

TEST_F(DeviceAllocTest, AStreamReusesOnlyItsOwnBlocks) {
  DeviceBlock* a = device_alloc_get(pool[0], 4096);
  char* at = a->p;
  device_alloc_put(a, 0);
  DeviceBlock* b = device_alloc_get(pool[1], 4096);
  EXPECT_NE(b->p, at);
  DeviceBlock* c = device_alloc_get(pool[0], 4096);
  EXPECT_EQ(c->p, at);
  device_alloc_put(b, 0);
  device_alloc_put(c, 0);
}

TEST_F(DeviceAllocTest, BlocksOfForeignUsersWait) {
  DeviceBlock* a = device_alloc_get(pool[0], kMiB);
  char* at = a->p;
  device_alloc_put(a, 1 << 0 | 1 << 1 | 1 << 2);
  EXPECT_EQ(stats().in_use, 0);
  DeviceBlock* b = device_alloc_get(pool[0], 2 * kMiB - 512);  // large: another segment
  DeviceBlock* c = device_alloc_get(pool[0], kMiB);
  DeviceBlock* d = device_alloc_get(pool[0], kMiB);
  EXPECT_NE(c->p, at);
  EXPECT_NE(d->p, at);
  streams_done = true;
  DeviceBlock* e = device_alloc_get(pool[0], kMiB);
  DeviceBlock* f = device_alloc_get(pool[0], kMiB);
  EXPECT_TRUE(e->p == at || f->p == at);
  EXPECT_EQ(syncs, 0);
  for (DeviceBlock* x : {b, c, d, e, f}) device_alloc_put(x, 0);
}

TEST_F(DeviceAllocTest, OutOfMemory) {
  DeviceBlock* a = device_alloc_get(pool[0], 40 * kMiB);
  EXPECT_FALSE(device_alloc_get(pool[0], 40 * kMiB));
  EXPECT_EQ(stats().failures, 1);
  device_alloc_put(a, 0);
  DeviceBlock* b = device_alloc_get(pool[1], 60 * kMiB);  // after pool 0 has given back
  ASSERT_TRUE(b);
  EXPECT_EQ(raw_frees, 1);
  EXPECT_GE(stats().retries, 1);
  device_alloc_put(b, 1 << 0);  // waits for an event
  EXPECT_EQ(syncs, 0);
  DeviceBlock* c = device_alloc_get(pool[0], 50 * kMiB);  // waits for all work
  ASSERT_TRUE(c);
  EXPECT_GT(syncs, 0);
  device_alloc_put(c, 0);
  EXPECT_FALSE(device_alloc_get(pool[0], SIZE_MAX));
  EXPECT_FALSE(device_alloc_get(pool[0], SIZE_MAX / 2));
}

// A nearly full device has no room for a segment, but for the block.
TEST_F(DeviceAllocTest, TakesNoMoreThanNeededWhenMemoryIsShort) {
  capacity = kMiB;
  DeviceBlock* a = device_alloc_get(pool[0], 1000);
  ASSERT_TRUE(a);
  EXPECT_EQ(taken, 1024u);
  capacity = 16 * kMiB;
  DeviceBlock* b = device_alloc_get(pool[0], 3 * kMiB);
  ASSERT_TRUE(b);
  device_alloc_put(a, 0);
  device_alloc_put(b, 0);
}

TEST_F(DeviceAllocTest, LimitTrimAndPeak) {
  device_alloc_limit(alloc, int64_t(8 * kMiB));
  DeviceBlock* a = device_alloc_get(pool[0], 6 * kMiB);
  ASSERT_TRUE(a);
  EXPECT_FALSE(device_alloc_get(pool[0], 3 * kMiB));
  device_alloc_put(a, 0);
  EXPECT_EQ(stats().peak_in_use, int64_t(6 * kMiB));
  device_alloc_trim(alloc);
  EXPECT_EQ(stats().reserved, 0);
  EXPECT_EQ(stats().peak_reserved, int64_t(6 * kMiB));
  device_alloc_reset_peak(alloc);
  EXPECT_EQ(stats().peak_reserved, 0);
  EXPECT_EQ(stats().peak_in_use, 0);
}

TEST_F(DeviceAllocTest, BlocksOutliveTheAllocator) {
  DeviceBlock* a = device_alloc_get(pool[0], 100);
  device_alloc_release(alloc);
  EXPECT_EQ(ends, 0);
  device_alloc_put(a, 1 << 1);
  EXPECT_EQ(ends, 1);
  start(kCutBlocks);
}

TEST_F(DeviceAllocTest, ALostDeviceIsNotCalled) {
  DeviceBlock* a = device_alloc_get(pool[0], 100);
  device_alloc_lose(alloc);
  device_alloc_put(a, 1 << 1);
  EXPECT_FALSE(device_alloc_get(pool[0], 5 * kMiB));
  device_alloc_trim(alloc);
  EXPECT_EQ(raw_frees, 0);
  device_alloc_release(alloc);
  start(kCutBlocks);
}

TEST_F(DeviceAllocTest, WholeBlocks) {
  device_alloc_release(alloc);
  start(kWholeBlocks);
  DeviceBlock* a = device_alloc_get(pool[0], 100);
  DeviceBlock* b = device_alloc_get(pool[0], 5000);
  EXPECT_EQ(raw_allocs, 2);
  EXPECT_EQ(taken, 512u + 5120u);
  device_alloc_put(b, 0);
  DeviceBlock* c = device_alloc_get(pool[0], 100);  // not in the larger one
  EXPECT_EQ(raw_allocs, 3);
  DeviceBlock* d = device_alloc_get(pool[0], 5001);
  EXPECT_EQ(raw_allocs, 3);
  for (DeviceBlock* x : {a, c, d}) device_alloc_put(x, 0);
}

// Live blocks never overlap, neighbours are merged, and in the end everything can be given back.
TEST_F(DeviceAllocTest, RandomCalls) {
  std::mt19937 random(1);
  std::map<char*, DeviceBlock*> live;
  for (int i = 0; i < 30000; i++) {
    streams_done = random() % 4 == 0;
    if (random() % 2 && !live.empty()) {
      auto it = live.lower_bound(
          reinterpret_cast<char*>((uint64_t(random()) << 32) % (uint64_t(raw_allocs + 1) << 32)));
      if (it == live.end()) it = live.begin();
      device_alloc_put(it->second, random() % 8);
      live.erase(it);
      continue;
    }
    const size_t bytes = random() % 8 ? random() % 20000 : random() % (4 * kMiB);
    DeviceBlock* b = device_alloc_get(pool[random() % 3], bytes);
    if (!b) continue;
    ASSERT_GE(b->bytes, bytes);
    ASSERT_EQ(uintptr_t(b->p) % 256, 0u);
    const auto next = live.lower_bound(b->p);
    if (next != live.end()) {
      ASSERT_LE(b->p + b->bytes, next->first);
    }
    if (next != live.begin()) {
      const auto before = std::prev(next);
      ASSERT_LE(before->first + before->second->bytes, b->p);
    }
    live[b->p] = b;
  }
  for (auto& [p, b] : live) device_alloc_put(b, 0);
  streams_done = true;
  EXPECT_EQ(stats().in_use, 0);
  device_alloc_trim(alloc);
  EXPECT_EQ(stats().reserved, 0);
  EXPECT_EQ(taken, 0u);
}

}  // namespace
}  // namespace TT_NS
