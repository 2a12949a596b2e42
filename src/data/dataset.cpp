#include "data/dataset.h"

#include "autograd/node.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

void Source::destroy(Source* s) noexcept {
  const auto drop = s->drop;
  void* user = s->user;
  s->~Source();
  drop_and_free(s, sizeof *s, drop, user);
}

void Dataset::destroy(Dataset* d) noexcept {
  d->tag = 0;
  d->~Dataset();
  mem_retire(d, sizeof *d);
}

// ---- construction ----

static Ref<Source> new_source(int64_t size) {
  auto* s = new (mem_alloc(sizeof(Source))) Source{1, size, {}, false, nullptr, nullptr, nullptr};
  return Ref<Source>::adopt(s);
}

static Ref<Dataset> new_dataset() {
  return Ref<Dataset>::adopt(new (mem_alloc(sizeof(Dataset)))
                                 Dataset{kTagDataset, 1, {}, {}, false, {}});
}

static void add_source(Dataset& d, Ref<Source> s) {
  const int64_t before = d.total();
  int64_t end;
  if (add_overflow(before, max<int64_t>(0, s->size), &end))
    fail_arg(TT_INVALID_ARG, "datasets", "the number of samples overflows");
  d.sources.reserve(d.sources.size() + 1);
  d.ends.push_back(end);
  d.sources.push_back(std::move(s));
}

Ref<Dataset> tensor_dataset(TensorSpan tensors) {
  if (!tensors.n || tensors.n > kMaxFields)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors has length {}: must be 1 to {}", tensors.n,
             kMaxFields);
  const int64_t size = tensors[0]->ndim ? tensors[0]->size(0) : 0;
  Ref<Source> s = new_source(size);
  s->plain = true;
  for (int64_t i = 0; i < tensors.n; i++) {
    const Tensor& t = *tensors[i];
    if (!t.ndim) fail_arg(TT_SHAPE, "tensors", "tensors[{}] is 0-dim: has no rows", i);
    if (t.size(0) != size)
      fail_arg(TT_SHAPE, "tensors", "tensors[{}] has {} rows, tensors[0] {}: must be equal", i,
               t.size(0), size);
    s->plain &= t.is_cpu() && t.contiguous() && !requires_grad(t);
    s->rows.push_back(TensorRef::share(&t));
  }
  Ref<Dataset> d = new_dataset();
  add_source(*d, std::move(s));
  return d;
}

Ref<Dataset> callback_dataset(int64_t size, SampleFn fn, void* user, void (*drop)(void*)) {
  Ref<Dataset> d = new_dataset();
  Ref<Source> s = new_source(size);
  d->sources.reserve(1);
  d->ends.reserve(1);
  s->fn = fn;
  s->user = user;
  s->drop = drop;  // nothing can fail from here on
  add_source(*d, std::move(s));
  return d;
}

Ref<Dataset> concat_datasets(Span<const Dataset* const> parts) {
  Ref<Dataset> d = new_dataset();
  for (const Dataset* part : parts) d->chosen |= part->chosen;
  for (int64_t i = 0; i < parts.n; i++) {
    const Dataset& part = *parts[i];
    if (part.is_stream())
      fail_arg(TT_INVALID_ARG, "datasets", "datasets[{}] is a stream: it has no indices", i);
    const int64_t offset = d->total();
    for (const Ref<Source>& s : part.sources) add_source(*d, s);
    if (!d->chosen) continue;
    d->indices.reserve(d->indices.size() + part.size());
    for (int64_t k = 0; k < part.size(); k++)
      d->indices.push_back(offset + (part.chosen ? part.indices[k] : k));
  }
  return d;
}

Ref<Dataset> subset_of(const Dataset& whole, Ints indices) {
  if (whole.is_stream())
    fail_arg(TT_INVALID_ARG, "dataset", "dataset is a stream: it has no indices");
  Ref<Dataset> d = new_dataset();
  d->chosen = true;
  for (const Ref<Source>& s : whole.sources) add_source(*d, s);
  d->indices.reserve(indices.n);
  for (int64_t i = 0; i < indices.n; i++) {
    const int64_t at = indices[i];
    if (at < 0 || at >= whole.size())
      fail_arg(TT_INDEX, "indices", "indices[{}] is {}: must be 0 to {}", i, at, whole.size() - 1);
    d->indices.push_back(whole.chosen ? whole.indices[at] : at);
  }
  return d;
}

// ---- samples ----

struct Place {
  const Source* source;
  int64_t row;
};

static Place place_of(const Dataset& d, int64_t i) {
  if (i < 0 || i >= d.size())
    fail_arg(TT_INDEX, "index", "index is {}: the dataset has {} samples", i, d.size());
  if (d.chosen) i = d.indices[i];
  int64_t low = 0;
  int64_t high = d.ends.size() - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (d.ends[middle] > i) high = middle;
    else low = middle + 1;
  }
  return {d.sources[low].get(), i - (low ? d.ends[low - 1] : 0)};
}

// Returns the tensors of a callback; none at the end of a stream.
static TensorList called(const Source& s, int64_t index) {
  tt_tensor* outs[kMaxFields] = {};
  int64_t n = 0;
  TensorList list;
  list.reserve(kMaxFields);
  const auto take = [&] {
    for (tt_tensor* out : outs) {
      if (!out) continue;
      auto* t = reinterpret_cast<Tensor*>(out);
      count_handle(t, -1);
      list.push_back(TensorRef::adopt(t));
    }
  };
  try {
    run_callback("the callback of a dataset", false,
                 [&](tt_ctx* c) { return s.fn(s.user, c, index, outs, kMaxFields, &n); });
  } catch (...) {
    take();
    throw;
  }
  take();
  if (n < 0 || n > kMaxFields || n != list.size() || (!n && s.size >= 0))
    fail(TT_CALLBACK, "the callback of a dataset set {} tensors and a length of {} for sample {}",
         list.size(), n, index);
  return list;
}

static TensorList sample_at(const Place& at) {
  if (at.source->fn) return called(*at.source, at.row);
  TensorList sample;
  for (const TensorRef& t : at.source->rows) sample.push_back(op::select(*t, 0, at.row));
  return sample;
}

TensorList sample_of(const Dataset& d, int64_t i) { return sample_at(place_of(d, i)); }

// ---- batches ----

// The bytes of one row of a contiguous tensor.
static int64_t row_bytes(const Tensor& t) {
  return t.size(0) ? t.numel / t.size(0) * t.item_size() : 0;
}

static TensorRef batch_tensor(Ints sample, int64_t n, Dtype dtype) {
  Shape shape;
  shape.push_back(n);
  shape.append(sample);
  return new_tensor(shape.span(), dtype, kCpuDevice);
}

// Rows that follow one another are copied together.
static void copy_rows(char* dst, const Tensor& src, Ints rows) {
  const int64_t bytes = row_bytes(src);
  for (int64_t i = 0; i < rows.n;) {
    int64_t run = 1;
    while (i + run < rows.n && rows[i + run] == rows[i] + run) run++;
    memcpy(dst + i * bytes, src.data + rows[i] * bytes, size_t(run * bytes));
    i += run;
  }
}

// Batch of one source of tensors.
static TensorList gathered(const Source& s, Ints rows) {
  TensorList batch;
  TensorRef index;
  for (const TensorRef& t : s.rows) {
    if (s.plain) {
      TensorRef made = batch_tensor({t->sizes_ptr() + 1, t->ndim - 1}, rows.n, t->dtype);
      if (made->numel) copy_rows(made->data, *t, rows);
      batch.push_back(std::move(made));
      continue;
    }
    if (!index) {
      const int64_t n = rows.n;
      index = new_tensor({&n, 1}, Dtype::kI64, kCpuDevice);
      memcpy(index->data, rows.ptr, size_t(n) * sizeof(int64_t));
      index = op::to_device(*index, t->device);
    }
    batch.push_back(op::index_select(*t, 0, *index));
  }
  return batch;
}

// Collects samples into a batch, each straight into its place where its memory allows that.
class Stack {
 public:
  explicit Stack(int64_t n) : n_(n) {}
  void add(const TensorList& sample, int64_t number);
  TensorList take();

 private:
  void begin(const TensorList& sample);
  int64_t n_;
  int64_t filled_ = 0;
  bool direct_ = false;             // batch_ is filled in place
  TensorList batch_;                // (direct)
  SmallVec<TensorList, 1> fields_;  // else: the samples of each field
};

void Stack::begin(const TensorList& sample) {
  direct_ = true;
  for (const TensorRef& t : sample) direct_ &= t->is_cpu() && !requires_grad(*t);
  for (const TensorRef& t : sample) {
    if (direct_) batch_.push_back(batch_tensor(t->sizes(), n_, t->dtype));
    else fields_.push_back(TensorList());
  }
}

void Stack::add(const TensorList& sample, int64_t number) {
  if (!filled_) begin(sample);
  const int64_t n_fields = direct_ ? batch_.size() : fields_.size();
  if (sample.size() != n_fields)
    fail(TT_SHAPE, "sample {} has {} tensors, the first of the batch {}: must be equal", number,
         sample.size(), n_fields);
  for (int64_t i = 0; i < n_fields; i++) {
    const Tensor& t = *sample[i];
    if (!direct_) {
      fields_[i].push_back(sample[i]);
      continue;
    }
    const Tensor& to = *batch_[i];
    const Ints row{to.sizes_ptr() + 1, to.ndim - 1};
    if (!same(t.sizes(), row))
      fail(TT_SHAPE, "tensor {} of sample {} is {}, of the first of the batch {}: must be equal", i,
           number, t.sizes(), row);
    if (t.dtype != to.dtype || !t.is_cpu())
      fail(t.is_cpu() ? TT_DTYPE : TT_DEVICE,
           "tensor {} of sample {} is {} on {}, of the first of the batch {}: must be equal", i,
           number, fmt(t.dtype), fmt(t.device), fmt(to.dtype));
    const TensorRef dense = t.contiguous() ? TensorRef::share(&t) : op::contiguous(t);
    const int64_t bytes = row_bytes(to);
    if (bytes) memcpy(to.data + filled_ * bytes, dense->data, size_t(bytes));
  }
  filled_++;
}

TensorList Stack::take() {
  if (!filled_) return {};
  if (!direct_) {
    for (TensorList& field : fields_) {
      SmallVec<const Tensor*, 8> items;
      for (const TensorRef& t : field) items.push_back(t.get());
      batch_.push_back(op::stack(items.span(), 0));
    }
  } else if (filled_ < n_) {
    for (TensorRef& t : batch_) t = op::contiguous(*op::narrow(*t, 0, 0, filled_));
  }
  return std::move(batch_);
}

TensorList batch_of(const Dataset& d, Ints indices) {
  if (!indices.n) return {};
  const Source& first = *place_of(d, indices[0]).source;
  if (!first.fn && d.sources.size() == 1) {
    SmallVec<int64_t, 64> rows;
    rows.reserve(indices.n);
    for (int64_t i : indices) rows.push_back(place_of(d, i).row);
    return gathered(first, rows.span());
  }
  Stack stack(indices.n);
  for (int64_t i : indices) stack.add(sample_of(d, i), i);
  return stack.take();
}

TensorList batch_of_stream(const Dataset& d, int64_t first, int64_t n) {
  Stack stack(n);
  for (int64_t i = 0; i < n; i++) {
    const TensorList sample = called(*d.sources[0], first + i);
    if (!sample.size()) break;
    stack.add(sample, first + i);
  }
  return stack.take();
}

}  // namespace TT_NS
