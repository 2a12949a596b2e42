// Unpickler: a machine for the pickles of PyTorch's files. It never calls Python code; pickle.h
// lists the names that a pickle may contain.
#pragma once

#include "io/torch/pickle.h"
#include "io/torch/storages.h"

namespace TT_NS {

// An entry of the machine's stack: the position in the pickle of a plain value's opcode, or ~i for
// object i.
using PickleValue = int32_t;

enum class PickleKind : uint8_t {
  kList,
  kTuple,
  kDict,
  kOrdered,
  kCounter,
  kSize,
  kDevice,
  kTensor,
  kParameter,
  kStorage
};

struct PickleObject {
  PickleKind kind;
  uint8_t levels;  // nesting levels, itself included
  bool complete;   // it is part of another one and accepts no more items, so that no container
                   // contains itself
  bool hashable;   // it may be a key
  // Its cells, -1: none. Of tensors, `first` is their number in TorchStorages.
  int32_t first, last;
};
struct PickleCell {
  PickleValue value;
  int32_t next;
};

class Unpickler {
 public:
  // budget: bytes for objects. begin: position of the pickle's first byte in the file.
  Unpickler(Span<const char> pickle, int64_t begin, int64_t budget, TorchStorages& storages)
      : data_(reinterpret_cast<const uint8_t*>(pickle.ptr)),
        bytes_(pickle.n),
        begin_(begin),
        budget_(budget),
        storages_(storages) {}
  PickleValue run();

  const PickleObject& object(PickleValue v) const { return objects_[~v]; }
  const PickleCell& cell(int32_t i) const { return cells_[i]; }
  PickleOp op(PickleValue v) const { return PickleOp(data_[v]); }
  Span<const char> text(PickleValue v) const;  // of kText
  int int_bytes(PickleValue v, uint8_t* out)
      const;  // two's complement, little-endian, up to kMaxIntBytes; returns 0 if it is not an int
  bool number(PickleValue v, int64_t* out) const;      // an int of 64 bits
  double real(PickleValue v) const;                    // of kDouble
  PickleName name(PickleValue v, Dtype* dtype) const;  // of kGlobal
  template <class... A>
  [[noreturn]] TT_COLD void bad(int64_t at, const char* why, const A&... a) const {
    storages_.archive().bad(begin_ + at, why, a...);
  }

 private:
  bool is(PickleValue v, PickleOp o) const { return v >= 0 && op(v) == o; }
  bool is(PickleValue v, PickleKind k) const { return v < 0 && object(v).kind == k; }
  using Items = SmallVec<PickleValue, 8>;
  void take(int64_t n);
  void plain(PickleOp o);
  void step(PickleOp o);
  PickleValue pop();
  void need(int64_t n) const;
  int64_t since_mark();
  PickleValue make(PickleKind kind, int64_t items, bool hashable = false);
  void add(PickleValue to, int64_t items);
  void fixed_tuple(int64_t n);
  void extend(int64_t items, bool pairs);
  void put(uint32_t i);
  PickleValue got(uint32_t i) const;
  void reduce();
  PickleValue wrap(PickleKind kind, PickleValue around, bool hashable);
  PickleValue numbered(PickleKind kind, int32_t number);
  PickleValue persistent();
  PickleValue tensor(const Items& args, bool typed);
  Items items(PickleValue tuple, int64_t max_items) const;
  Shape numbers(PickleValue tuple, int64_t from = 0) const;

  const uint8_t* data_;
  int64_t bytes_, begin_, budget_;
  int64_t at_ = 0, next_ = 0;  // of the current opcode, and after it
  TorchStorages& storages_;
  Items stack_, memo_;
  SmallVec<int64_t, 1> marks_;
  SmallVec<PickleObject, 1> objects_;
  SmallVec<PickleCell, 1> cells_;
};

}  // namespace TT_NS
