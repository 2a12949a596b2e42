#include "io/torch/pickler.h"

#include <string.h>

namespace TT_NS {

Pickler::Pickler(const TorchLayout& layout) : layout_(layout) {
  op(PickleOp::kProtocol);
  bytes(2, 1);
  written_.resize(2 * layout.size());
}

void Pickler::bytes(uint64_t value, int n) {
  out_.append({reinterpret_cast<const char*>(&value), n});
}

void Pickler::text(Span<const char> s) {
  op(PickleOp::kText);
  bytes(uint64_t(s.n), 4);
  out_.append(s);
}

void Pickler::name(const char* a, const char* b, const char* c) {
  op(PickleOp::kGlobal);
  for (const char* s : {a, b, c}) out_.append({s, int64_t(strlen(s))});
}

void Pickler::real(double v) {
  uint64_t bits;
  memcpy(&bits, &v, 8);
  op(PickleOp::kDouble);
  bytes(swap_bytes(bits), 8);
}

void Pickler::integer(const uint8_t* b, int n) {
  op(PickleOp::kLong1);
  bytes(uint64_t(n), 1);
  out_.append({reinterpret_cast<const char*>(b), n});
}
void Pickler::integer(int64_t v) {
  if (v == int32_t(v)) {
    op(PickleOp::kInt4);
    return bytes(uint64_t(v), 4);
  }
  integer(reinterpret_cast<const uint8_t*>(&v), 8);
}

void Pickler::ints(Ints v) {
  op(PickleOp::kMark);
  for (int64_t n : v) integer(n);
  op(PickleOp::kTuple);
}

void Pickler::tensor(int64_t i, bool parameter, bool requires_grad) {
  const int64_t memo = 2 * i + parameter;
  if (written_[memo]) {
    op(PickleOp::kGet4);
    return bytes(uint64_t(memo), 4);
  }
  written_[memo] = true;
  if (parameter) {
    name(PickleName::kParameter);
    op(PickleOp::kMark);
  }
  rebuild(i, requires_grad && !parameter);
  if (parameter) {
    truth(requires_grad);
    ordered();
    call(PickleOp::kTuple);
  }
  op(PickleOp::kPut4);
  bytes(uint64_t(memo), 4);
}

void Pickler::rebuild(int64_t i, bool requires_grad) {
  const Tensor& t = layout_.at(i);
  const bool whole = layout_.whole(i);
  char key[24];
  Shape strides(t.strides());
  if (!whole) contiguous_strides(t.sizes(), strides.data());
  const bool untyped = is_wide_unsigned(t.dtype);
  name(untyped ? PickleName::kTypedTensor : PickleName::kTensor);
  op(PickleOp::kMark);
  op(PickleOp::kMark);
  text({"storage", 7});
  if (untyped) name(PickleName::kUntyped);
  else name("torch\n", kStorageNames[int(t.dtype)], "Storage\n");
  text({key, format_int(key, layout_.key(i))});
  text({"cpu", 3});
  integer(untyped ? layout_.numel(i) * t.item_size() : layout_.numel(i));
  op(PickleOp::kTuple);
  op(PickleOp::kPersistent);
  integer(whole ? t.offset() : 0);
  ints(t.sizes());
  ints(strides);
  truth(requires_grad);
  ordered();
  if (untyped) name("torch\n", kDtypeNames[int(t.dtype)], "\n");
  call(PickleOp::kTuple);
}

}  // namespace TT_NS
