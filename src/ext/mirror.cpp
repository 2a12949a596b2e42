#include "ext/mirror.h"

#include "ops/gen/ops.h"

namespace TT_NS {

ExtMirrors::ExtMirrors(const OpSchema& schema, const Value* args) {
  int64_t n_list = 0;
  int64_t n_indices = 0;
  each_tensor(schema, args, [&](const Tensor& t, const ArgInfo& a) { cover(t, a.mutates); });
  fetch();
  for (int32_t i = 0; i < schema.n_args; i++) {
    n_list += args[i].kind == Value::kTensorList ? args[i].n : 0;
    n_indices += args[i].kind == Value::kIndices ? args[i].n : 0;
  }
  list_.reserve(n_list);
  indices_.reserve(n_indices);
  for (int32_t i = 0; i < schema.n_args; i++) convert(args[i]);
}

void ExtMirrors::cover(const Tensor& t, bool written) {
  if (t.device.type != TT_EXT) return;
  const char *lo, *hi;
  byte_range(t, &lo, &hi);
  // Preserves the alignment of elements: the copy begins at a multiple of 64 bytes of the storage.
  if (lo != hi) lo -= (lo - t.storage->data) & 63;
  for (Mirror& m : mirrors_) {
    if (m.original->storage != t.storage) continue;
    m.written |= written;
    if (lo == hi) return;
    const bool empty = m.lo == m.hi;
    if (empty || lo < m.lo) m.lo = lo;
    if (empty || hi > m.hi) m.hi = hi;
    return;
  }
  mirrors_.push_back({&t, lo, hi, written, {}});
}

void ExtMirrors::fetch() {
  for (Mirror& m : mirrors_) {
    const int64_t bytes = m.hi - m.lo;
    m.bytes = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
    m.bytes->storage->writable = m.original->storage->writable;
    ext_copy(ext_of(*m.original), m.bytes->data, m.lo, bytes, kDeviceToHost);
  }
}

const ExtMirrors::Mirror& ExtMirrors::mirror_of(const Tensor& t) const {
  const Mirror* m = mirrors_.begin();
  while (m->original->storage != t.storage) m++;
  return *m;
}

const Tensor* ExtMirrors::on_cpu(const Tensor* t) {
  if (!t || t->device.type != TT_EXT) return t;
  for (const Pair& p : pairs_)
    if (p.original == t) return p.copy.get();
  const Mirror& m = mirror_of(*t);
  char* data = m.bytes->data + (t->numel ? t->data - m.lo : 0);
  pairs_.push_back({t, new_alias(*m.bytes, t->sizes(), t->strides(), data, t->dtype)});
  return pairs_.back().copy.get();
}

void ExtMirrors::convert(const Value& from) {
  Value v = from;
  if (v.kind == Value::kTensor) v.tensor = on_cpu(v.tensor);
  if (v.kind == Value::kDevice) v = to_value(kCpuDevice);
  if (v.kind == Value::kTensorList) {
    v.tensors = list_.data() + list_.size();
    for (int64_t i = 0; i < v.n; i++) list_.push_back(on_cpu(from.tensors[i]));
  }
  if (v.kind == Value::kIndices) {
    v.indices = indices_.data() + indices_.size();
    for (int64_t i = 0; i < v.n; i++) {
      tt_index x = from.indices[i];
      if (x.kind == TT_IDX_TENSOR)
        x.tensor =
            reinterpret_cast<const tt_tensor*>(on_cpu(reinterpret_cast<const Tensor*>(x.tensor)));
      indices_.push_back(x);
    }
  }
  values_.push_back(v);
}

KeySet ExtMirrors::keys() const {
  KeySet keys = bit(kKeyCpu);
  for (const Value& v : values_) {
    if (v.kind == Value::kTensor) keys |= keys_of(v.tensor);
    for (int64_t i = 0; v.kind == Value::kTensorList && i < v.n; i++) keys |= keys_of(v.tensors[i]);
    if (v.kind == Value::kIndices) keys |= keys_of(Indices(v.indices, v.n));
  }
  return keys & kBackendKeys;
}

TensorRef ExtMirrors::home(TensorRef r, Device to) const {
  if (!r) return r;
  for (const Pair& p : pairs_)
    if (p.copy.get() == r.get()) return TensorRef::share(p.original);
  for (const Mirror& m : mirrors_) {
    if (m.bytes->storage != r->storage) continue;
    char* data = const_cast<char*>(m.lo) + (r->numel ? r->data - m.bytes->data : 0);
    return new_alias(*m.original, r->sizes(), r->strides(), data, r->dtype);
  }
  if (to.type != TT_EXT) return op::to_device(*r, to);
  const char *lo, *hi;
  byte_range(*r, &lo, &hi);
  const int64_t bytes = hi - lo;
  if (r->dense()) {
    TensorRef out = new_strided(r->sizes(), r->strides(), r->dtype, to);
    ext_copy(ext_device(to.index), out->data, lo, bytes, kHostToDevice);
    return out;
  }
  TensorRef whole = new_tensor(Ints(&bytes, 1), Dtype::kU8, to);
  ext_copy(ext_device(to.index), whole->data, lo, bytes, kHostToDevice);
  return new_alias(*whole, r->sizes(), r->strides(), whole->data + (r->data - lo), r->dtype);
}

void ExtMirrors::write_back() const {
  for (const Mirror& m : mirrors_) {
    const uint32_t writes = m.bytes->version();
    if (!writes && !m.written) continue;
    ext_copy(ext_of(*m.original), const_cast<char*>(m.lo), m.bytes->data, m.hi - m.lo,
             kHostToDevice);
    const_cast<Tensor*>(m.original)->bump_version(writes);
  }
}

}  // namespace TT_NS
