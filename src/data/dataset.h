// Dataset: samples by index. A sample is a list of tensors.
#pragma once

#include "base/ref.h"
#include "core/ctx.h"
#include "core/tensor.h"

namespace TT_NS {

// Sets outs (owned) to the tensors of sample `index`.
using SampleFn = tt_status (*)(void* user, tt_ctx* ctx, int64_t index, tt_tensor** outs,
                               int64_t cap, int64_t* n_outs);
constexpr int64_t kMaxFields = 64;  // tensors of a sample

// Where samples come from: the rows of tensors, or a callback.
struct Source {
  RefCount refs;
  int64_t size;  // -1: a stream, whose end its callback tells by no tensors
  SmallVec<TensorRef, 2>
      rows;  // fn NULL: sample i is row i of each; contiguous on the CPU if plain
  bool plain;
  SampleFn fn;
  void* user;
  void (*drop)(void* user);
  static void destroy(Source*) noexcept;
};

// Samples of several sources, one source behind the other, or chosen among these by `indices`.
// Datasets of datasets are flattened, so that none is deeper.
struct Dataset {
  uint32_t tag;
  RefCount refs;
  SmallVec<Ref<Source>, 1> sources;
  SmallVec<int64_t, 1> ends;  // number of samples up to the end of each source
  bool chosen;
  SmallVec<int64_t, 1> indices;  // (chosen)

  bool is_stream() const { return sources.size() == 1 && sources[0]->size < 0; }
  int64_t size() const {
    if (is_stream()) return -1;
    if (chosen) return indices.size();
    return total();
  }
  int64_t total() const { return ends.size() ? ends[ends.size() - 1] : 0; }  // of the sources
  static void destroy(Dataset*) noexcept;
};

// All fail with OOM and name their argument.
Ref<Dataset> tensor_dataset(TensorSpan tensors);
// size -1: a stream. The dataset owns user once this returns.
Ref<Dataset> callback_dataset(int64_t size, SampleFn fn, void* user, void (*drop)(void*));
Ref<Dataset> concat_datasets(Span<const Dataset* const> parts);
Ref<Dataset> subset_of(const Dataset& whole, Ints indices);

// Returns sample i, which is in range.
TensorList sample_of(const Dataset& d, int64_t i);
// Returns a batch of samples: each tensor stacked along a new first dimension. Fails with INDEX for
// an index out of range, SHAPE or DTYPE if the samples differ.
TensorList batch_of(const Dataset& d, Ints indices);
// Returns a batch of the next samples of a stream, the first of which is number `first`; fewer than
// n at its end, and nothing behind it.
TensorList batch_of_stream(const Dataset& d, int64_t first, int64_t n);

}  // namespace TT_NS
