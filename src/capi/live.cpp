// tt_runtime_live: lists the live objects of a runtime by walking its memory. A block counts as an
// object if its header is consistent; a pointer is followed only if it points to a block of the
// same runtime.
#include "autograd/node.h"
#include "base/memory/blocks.h"
#include "capi/api.h"
#include "io/safetensors.h"
#include "nn/module.h"
#include "optim/scheduler.h"
#include "tt.h"

#include <algorithm>
#include <string.h>

using namespace TT_NS;

namespace {

struct Header {  // of every object behind a handle
  uint32_t tag;
  RefCount refs;
};
struct Kind {
  uint32_t tag;
  const char* name;
  size_t bytes;  // of the object, without data that follows it in its block
};
constexpr Kind kKinds[] = {
    {kTagRuntime, "runtime", sizeof(Runtime)},
    {kTagCtx, "ctx", sizeof(Ctx)},
    {kTagGenerator, "generator", sizeof(Generator)},
    {kTagNode, "node", sizeof(Node)},
    {kTagCancel, "cancel", sizeof(CancelToken)},
    {kTagTensorFile, "file", sizeof(TensorFile)},
    {kTagOptimizer, "optimizer", sizeof(Optimizer)},
    {kTagScheduler, "scheduler", sizeof(Scheduler)},
    {kTagModule, "module", sizeof(Module)},
    {kTagStateDict, "state dict", sizeof(StateDict)},
};

bool is_valid_device(Device d) {
  if (d.type == TT_CPU || d.type == TT_META) return d.index == 0;
  return (d.type == TT_CUDA && d.index >= 0 && d.index < kMaxDevices) ||
         (d.type == TT_EXT && d.index >= 0 && d.index < kMaxExt);
}

// Returns the sizes of the tensor at t, NULL if it is not a tensor.
const int64_t* sizes_of(const BlockMap& map, const Tensor* t) {
  if (t->tag != kTagTensor || t->refs <= 0 || !valid_dtype(tt_dtype(t->dtype)) ||
      !is_valid_device(t->device))
    return nullptr;
  if (t->ndim > kMaxDims || (t->keys & kBackendKeys) != backend_key(t->device) || !t->storage ||
      uintptr_t(t->storage) % 32)
    return nullptr;
  if (t->ndim > kInlineDims && !map.has(t->heap_dims, size_t(t->ndim) * 16)) return nullptr;
  const int64_t* sizes = t->sizes_ptr();
  int64_t n = 1;
  for (int d = 0; d < t->ndim; d++)
    if (sizes[d] < 0 || mul_overflow(n, sizes[d], &n)) return nullptr;
  return n == t->numel ? sizes : nullptr;
}

bool wants_grad(const BlockMap& map, const Tensor* t) {
  if ((t->flags & kRequiresGrad) || t->grad_fn) return true;
  return t->base && map.has(t->base, sizeof(Tensor)) && sizes_of(map, t->base) &&
         ((t->base->flags & kRequiresGrad) || t->base->grad_fn);
}

// Rows by their key, in an open-addressing hash table. All memory is allocated at once: nothing may
// be allocated while a BlockMap exists.
class Rows {
 public:
  explicit Rows(int64_t cap) : cap_(cap) {  // a power of two
    rows_.reserve(cap);
    slots_.resize(2 * cap, 0);
  }
  // Returns false if the table is full.
  bool add(const tt_live_row& row, int64_t bytes) {
    int32_t& slot = slots_[find(row)];
    if (!slot) {
      if (rows_.size() == cap_) return false;
      rows_.push_back(row);
      slot = int32_t(rows_.size());
    }
    tt_live_row& found = rows_[slot - 1];
    found.count++;
    found.bytes += bytes;
    return true;
  }
  Span<const tt_live_row> sorted() {
    std::sort(rows_.begin(), rows_.end(), [](const tt_live_row& a, const tt_live_row& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.count != b.count ? a.count > b.count : compare(a, b) < 0;
    });
    return rows_.span();
  }

 private:
  // Keys are compared as bytes: from kind to pad, and the shape. Between them, targets of 32 bits
  // may have a gap, which a copy need not preserve.
  static constexpr size_t kHead = offsetof(tt_live_row, pad) + sizeof(int32_t);
  static constexpr size_t kShape = sizeof(tt_live_row::shape);
  static int compare(const tt_live_row& a, const tt_live_row& b) {
    const int order = memcmp(&a, &b, kHead);
    return order ? order : memcmp(a.shape, b.shape, kShape);
  }
  static uint64_t hash(uint64_t h, const void* bytes, size_t n) {
    uint32_t word;
    for (size_t i = 0; i < n; i += sizeof word) {
      memcpy(&word, static_cast<const char*>(bytes) + i, sizeof word);
      h = (h ^ word) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    }
    return h;
  }
  int64_t find(const tt_live_row& row) const {
    uint64_t h = hash(hash(0xcbf29ce484222325u, &row, kHead), row.shape, kShape);
    const uint64_t mask = uint64_t(slots_.size()) - 1;
    for (h &= mask; slots_[int64_t(h)] && compare(rows_[slots_[int64_t(h)] - 1], row);
         h = (h + 1) & mask) {}
    return int64_t(h);
  }

  const int64_t cap_;
  SmallVec<tt_live_row, 1> rows_;
  SmallVec<int32_t, 1> slots_;
};
static_assert(offsetof(tt_live_row, pad) == sizeof(void*) + 5 * 4);  // no gap in the head

bool add_tensor(Rows& rows, const BlockMap& map, const Tensor* t, const int64_t* sizes) {
  tt_live_row r;
  memset(&r, 0, sizeof r);
  r.kind = "tensor";
  r.dtype = tt_dtype(t->dtype);
  r.device = {t->device.type, t->device.index};
  r.ndim = t->ndim;
  r.requires_grad = wants_grad(map, t);
  for (int d = 0; d < t->ndim && d < 8; d++) r.shape[d] = sizes[d];
  return rows.add(r, t->numel * item_size(t->dtype));
}

// Returns false if rows is full.
bool add_block(Rows& rows, const BlockMap& map, const void* block, size_t bytes) {
  if (bytes < sizeof(Header)) return true;
  const auto* h = static_cast<const Header*>(block);
  if (h->tag == kTagTensor && bytes >= sizeof(Tensor)) {
    const auto* t = static_cast<const Tensor*>(block);
    const int64_t* sizes = sizes_of(map, t);
    return !sizes || add_tensor(rows, map, t, sizes);
  }
  for (const Kind& k : kKinds) {
    if (h->tag != k.tag || h->refs <= 0 || bytes < k.bytes) continue;
    tt_live_row r;
    memset(&r, 0, sizeof r);
    r.kind = k.name;
    return rows.add(r, int64_t(bytes));
  }
  return true;
}

bool list_live(Arena* arena, Rows& rows) {
  const BlockMap map(arena);
  return map.each(
      [&](const void* block, size_t bytes) { return add_block(rows, map, block, bytes); });
}

}  // namespace

tt_status tt_runtime_live(tt_ctx* h, tt_live_row* rows, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "runtime_live", [&](Ctx& c) {
    out_arg(n, "n", 3);
    for (int64_t room = 64;; room *= 4) {
      Rows found(room);
      if (!list_live(c.rt->arena, found)) continue;
      const Span<const tt_live_row> sorted = found.sorted();
      *n = sorted.n;
      if (sorted.n > cap || (sorted.n && !rows))
        fail_arg(TT_BUFFER_TOO_SMALL, "rows", "rows has room for {}, there are {}", rows ? cap : 0,
                 sorted.n);
      for (int64_t i = 0; i < sorted.n; i++) rows[i] = sorted[i];
      return;
    }
  });
}
