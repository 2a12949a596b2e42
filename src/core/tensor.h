// Storage and Tensor. A tiny tensor is one block: Tensor, Storage and data.
#pragma once

#include "base/ref.h"
#include "core/ext_device.h"
#include "core/scalar.h"
#include "core/shape.h"

namespace TT_NS {

// First word of every object behind a handle; zeroed on release.
enum Tag : uint32_t {
  kTagTensor = 0x74740001,
  kTagRuntime,
  kTagCtx,
  kTagGenerator,
  kTagNode,
  kTagOp,
  kTagCancel,
  kTagFunction,
  kTagTensorFile,
  kTagOptimizer,
  kTagScheduler,
  kTagModule,
  kTagStateDict,
  kTagPoll,
  kTagDataset,
  kTagSampler,
  kTagLoader,
  kTagGraph,
  kTagPlan,
  kTagGroup,
  kTagWork,
  kTagDdp,
  kTagStream,
  kTagEvent,
  kTagCompiled
};

struct Tensor;

// Equal sizes on every target: elements that follow a tensor and its storage in one block stay
// aligned to 64 bytes.
constexpr size_t kHeaderAlign = sizeof(void*) == 8 ? 8 : 32;

struct alignas(kHeaderAlign) Storage {
  RefCount refs;
  uint32_t version;  // incremented by every write through an in-place or _into operator
  char* data;        // NULL on META
  int64_t bytes;
  Device device;
  bool embedded;  // placed after its tensor's header, in the same block
  bool writable;
  void (*release)(Storage*) noexcept;  // frees data; NULL: nothing to free, or deleter frees it
  void* release_ctx;                   // deleter context, or the device's block
  void (*deleter)(void*);              // of imported memory, may be NULL
  void* packed;  // a packed copy of the data (GEMM weights), valid while packed_version == version
  union {
    uint64_t packed_bytes;
    uint64_t users;  // (TT_CUDA) streams that work on the data (core/cuda_device.h); atomic
  };
  uint32_t packed_version;
  uint32_t data_writes;  // those of version that came through tensors with kOwnVersion
  int64_t reserved_[2];
  static void destroy(Storage*) noexcept;
};
static_assert(sizeof(Storage) == 96);

// Base of autograd's node (src/autograd/node.h): core only counts and destroys nodes.
struct GraphNode {
  uint32_t tag;
  RefCount refs;
  void (*destroy_fn)(GraphNode*) noexcept;
  static void destroy(GraphNode* n) noexcept { n->destroy_fn(n); }
};
// Base of autograd's per-tensor data.
struct TensorMeta {
  void (*destroy_fn)(TensorMeta*) noexcept;
};

constexpr int kInlineDims = 5;

enum TensorFlags : uint16_t {
  kContiguous = 1,    // row-major without gaps
  kDense = 2,         // a permutation of its dims is contiguous
  kRequiresGrad = 4,  // a leaf that requires its gradient
  kOwnsBlock = 8,     // an embedded storage follows the header, in the same block
  // The storage is embedded in the block of base, which keeps it alive; the view has no reference
  // of its own.
  kBorrowedStorage = 16,
  kUntrackedView = 32,  // made without recording, of a tensor that requires a gradient
  kOneOfViews = 64,     // one of the views that a single call returned
  kPackedTensor = 128,  // stands for a saved tensor that hooks of the application have packed
  kOwnVersion = 256,    // writes through this one and its views do not invalidate what graphs of
                        // other tensors saved, nor writes through others what its graphs saved
  kForeignView = 512,   // a view that a function of the application returned
};
// Views that must not be written in place while gradients are recorded; their views neither.
constexpr uint16_t kNoInplaceViews = kUntrackedView | kOneOfViews | kForeignView;

struct alignas(kHeaderAlign) Tensor {
  uint32_t tag;
  RefCount refs;
  Dtype dtype;
  Device device;
  uint8_t ndim;
  uint16_t flags;
  uint16_t external_refs;  // (TT_CHECKED) how many of the references the application owns
  KeySet keys;             // backend bit of the device | functionality bits (dispatch/key.h)
  Storage* storage;        // owned, unless kBorrowedStorage
  char* data;              // storage->data + offset
  int64_t numel;
  // owned; if not NULL, this is a differentiable view of base, which is never itself a view
  Tensor* base;
  GraphNode* grad_fn;     // owned
  uint32_t output_nr;     // index of this output of grad_fn
  uint32_t view_version;  // (views) storage version for which grad_fn is valid
  TensorMeta* meta;       // owned; gradient, hooks …
  union {
    int64_t dims[2 * kInlineDims];  // sizes, then strides
    int64_t* heap_dims;             // ndim > kInlineDims: the same in a block of its own
  };

  const int64_t* sizes_ptr() const { return ndim <= kInlineDims ? dims : heap_dims; }
  const int64_t* strides_ptr() const {
    return ndim <= kInlineDims ? dims + kInlineDims : heap_dims + ndim;
  }
  Ints sizes() const { return {sizes_ptr(), ndim}; }
  Ints strides() const { return {strides_ptr(), ndim}; }
  int64_t size(int64_t d) const { return sizes_ptr()[d < 0 ? d + ndim : d]; }
  int64_t stride(int64_t d) const { return strides_ptr()[d < 0 ? d + ndim : d]; }
  bool contiguous() const { return flags & kContiguous; }
  bool dense() const { return flags & kDense; }
  int64_t item_size() const { return TT_NS::item_size(dtype); }
  // Bytes between neighbours along d; 0 in a tensor without elements, whose strides may be no
  // number of bytes.
  int64_t byte_stride(int64_t d) const { return numel ? stride(d) * item_size() : 0; }
  // Address of position i along d. Wraps where a tensor without elements has such strides.
  char* address(int64_t d, int64_t i) const {
    return reinterpret_cast<char*>(uintptr_t(data) +
                                   uint64_t(i) * uint64_t(stride(d)) * uint64_t(item_size()));
  }
  int64_t offset() const {
    return int64_t(uintptr_t(data) - uintptr_t(storage->data)) / item_size();
  }
  bool is_cpu() const { return device.type == TT_CPU; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
  uint32_t version() const { return atomic_load(&storage->version, kRelaxed); }
  // The number of those writes that invalidate saved tensors.
  uint32_t tracked_version() const {
    const uint32_t apart = atomic_load(&storage->data_writes, kRelaxed);
    return flags & kOwnVersion ? apart : version() - apart;
  }
  void bump_version(uint32_t writes = 1) {
    atomic_fetch_add(&storage->version, writes, kRelaxed);
    if (TT_UNLIKELY(flags & kOwnVersion)) atomic_fetch_add(&storage->data_writes, writes, kRelaxed);
  }
  static void destroy(Tensor*) noexcept;
};
static_assert(sizeof(Tensor) == 160);

// Records that the application received (1) or returned (-1) a reference to t.
TT_INLINE void count_handle(const Tensor* t, int change) noexcept {
  count_live(t, sizeof(Tensor), kLiveHandles, change);
  if (TT_CHECKED)
    atomic_fetch_add(&const_cast<Tensor*>(t)->external_refs, uint16_t(change), kRelaxed);
}

using TensorRef = Ref<Tensor>;
using TensorList = SmallVec<TensorRef, 4>;
using TensorSpan = Span<const Tensor* const>;
struct TensorPair {
  TensorRef first, second;
};
struct TensorTriple {
  TensorRef first, second, third;
};
struct TensorQuad {
  TensorRef first, second, third, fourth;
};

// Uninitialised, row-major. The sizes have passed checked_numel or belong to a tensor.
TensorRef new_tensor(Ints sizes, Dtype dtype, Device device);
// Uninitialised, with dense strides (some permutation of row-major).
TensorRef new_strided(Ints sizes, Ints strides, Dtype dtype, Device device);
// Uninitialised, with t's sizes and the order of its dimensions in memory.
TensorRef new_ordered_like(const Tensor& t, Dtype dtype, Device device);
// Another tensor over src's storage; `data` points into it. Not linked to autograd.
TensorRef new_alias(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype);
TensorRef new_alias(const Tensor& src);  // with src's geometry
// The same as a view of base, which is src's base or src itself.
TensorRef new_view(const Tensor& src, Ints sizes, Ints strides, char* data, Dtype dtype,
                   const Tensor& base);
// Turns the view t into a tensor of its own over the same memory; returns its former base.
TensorRef leave_base(Tensor& t) noexcept;
inline TensorRef new_alias(const Tensor& src, Ints sizes, Ints strides) {
  return new_alias(src, sizes, strides, src.data, src.dtype);
}
// Fails unless CPU memory of this geometry can be wrapped: aligned, no negative strides, no
// overflow.
void check_import(const void* data, Ints sizes, Ints strides, Dtype dtype);
// Wraps CPU memory. The deleter (or NULL) runs exactly once, also if this call fails.
TensorRef new_import(void* data, Ints sizes, Ints strides, Dtype dtype, Device device,
                     void (*deleter)(void*), void* user);
// Makes a 0-dim CPU tensor that holds s.
TensorRef new_scalar(const Scalar& s, Dtype dtype);

// The same as new_tensor of t's sizes, by copying t's header: the hot path of elementwise
// operators.
TensorRef new_like(const Tensor& t, Dtype dtype);

// t takes over src's storage, geometry and dtype; its identity and autograd flags stay.
void set_data(Tensor& t, const Tensor& src);

// Returns the device of a TT_EXT tensor; fails with DEVICE if it belongs to another runtime than
// that of the running call.
ExtDevice& ext_of(const Tensor& t);

bool same_geometry(const Tensor& a, const Tensor& b);  // equal sizes and strides
// Byte range [lo, hi) of the elements of t.
void byte_range(const Tensor& t, const char** lo, const char** hi);
bool may_share_memory(const Tensor& a, const Tensor& b);

}  // namespace TT_NS
