#include "modes/event_ring.h"

#include <string.h>

namespace TT_NS {

static uint64_t hash_of(const void* data, int64_t bytes) {
  auto* p = static_cast<const unsigned char*>(data);
  uint64_t hash = 0xcbf29ce484222325u;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; bytes--) hash = (hash ^ *p++) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

static size_t entry_bytes(size_t header, int64_t bytes) { return header + size_t(bytes) + 1; }

const void* NameTable::find_or_add(const void* data, int64_t bytes, Heap* heap) noexcept {
  if (!buckets_) {
    buckets_ = static_cast<Entry**>(heap_alloc(heap, kBuckets * sizeof(Entry*)));
    if (!buckets_) return nullptr;
    memset(buckets_, 0, kBuckets * sizeof(Entry*));
  }
  const uint64_t hash = hash_of(data, bytes);
  Entry*& first = buckets_[hash % kBuckets];
  for (Entry* e = first; e; e = e->next)
    if (e->hash == hash && e->bytes == bytes && memcmp(e + 1, data, size_t(bytes)) == 0)
      return e + 1;
  auto* made = static_cast<Entry*>(heap_alloc(heap, entry_bytes(sizeof(Entry), bytes)));
  if (!made) return nullptr;
  *made = {first, hash, bytes};
  memcpy(made + 1, data, size_t(bytes));
  reinterpret_cast<char*>(made + 1)[bytes] = 0;
  first = made;
  return made + 1;
}

void NameTable::clear() noexcept {
  if (!buckets_) return;
  for (int64_t i = 0; i < kBuckets; i++) {
    for (Entry* e = buckets_[i]; e;) {
      Entry* next = e->next;
      mem_free(e, entry_bytes(sizeof(Entry), e->bytes));
      e = next;
    }
  }
  mem_free(buckets_, kBuckets * sizeof(Entry*));
  buckets_ = nullptr;
}

}  // namespace TT_NS
