// Pickler: writes a PyTorch pickle, opcode by opcode.
#pragma once

#include "io/torch/pickle.h"
#include "io/torch/layout.h"

namespace TT_NS {

class Pickler {
 public:
  explicit Pickler(const TorchLayout& layout);
  void op(PickleOp o) { out_.push_back(char(o)); }
  void text(Span<const char> s);
  // Name of a class: the concatenation of the three.
  void name(const char* a, const char* b = "", const char* c = "");
  void name(PickleName n) { name(kPickleNames[int(n)]); }
  void real(double v);
  void integer(const uint8_t* b, int n);  // two's complement, little-endian
  void integer(int64_t v);
  void truth(bool v) { op(v ? PickleOp::kTrue : PickleOp::kFalse); }
  void call(PickleOp tuple) {
    op(tuple);
    op(PickleOp::kReduce);
  }  // with the arguments that `tuple` takes from the stack
  void ordered() {
    name(PickleName::kOrdered);
    call(PickleOp::kEmptyTuple);
  }
  // Writes tensor i of the layout, plain or as an nn.Parameter. A second occurrence refers to the
  // memo.
  void tensor(int64_t i, bool parameter, bool requires_grad);
  bool has(int64_t i) const { return written_[2 * i] || written_[2 * i + 1]; }
  Span<const char> finish() {
    op(PickleOp::kStop);
    return out_.span();
  }

 private:
  void bytes(uint64_t value, int n);
  void ints(Ints v);
  void rebuild(int64_t i, bool requires_grad);

  const TorchLayout& layout_;
  SmallVec<char, 24> out_, written_;  // written_: by tensor, as a tensor and as a parameter
};

}  // namespace TT_NS
