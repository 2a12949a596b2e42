#include "io/torch/unpickler.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int32_t kAbsent = INT32_MIN;  // an unset memo entry

template <class T> T get(const uint8_t* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
bool equal(Span<const char> a, const char* b) {
  return a.n == int64_t(strlen(b)) && memcmp(a.ptr, b, size_t(a.n)) == 0;
}
bool printable(Span<const char> s) {
  for (char c : s)
    if (c != '\n' && (c < 0x20 || c > 0x7e)) return false;
  return true;
}

}  // namespace

Dtype dtype_named(Span<const char> name) {
  for (int d = 1; d < kNumDtypes; d++)
    if (equal(name, kDtypeNames[d])) return Dtype(d);
  return Dtype::kNone;
}

// ---- plain values ----

Span<const char> Unpickler::text(PickleValue v) const {
  return {reinterpret_cast<const char*>(data_) + v + 5, int64_t(get<uint32_t>(data_ + v + 1))};
}

int Unpickler::int_bytes(PickleValue v, uint8_t* out) const {
  if (v < 0) return 0;
  const uint8_t* p = data_ + v + 1;
  int n = 0;
  if (is(v, PickleOp::kInt4)) n = 4;
  if (is(v, PickleOp::kUint1)) n = 1;
  if (is(v, PickleOp::kUint2)) n = 2;
  if (is(v, PickleOp::kLong1)) n = *p++;
  if (is(v, PickleOp::kLong4)) {
    n = get<int32_t>(p);
    p += 4;
  }
  memcpy(out, p, size_t(n));
  const bool whole =
      is(v, PickleOp::kUint1) || is(v, PickleOp::kUint2) || (n == 0 && op(v) >= PickleOp::kLong1);
  if (whole) out[n++] = 0;
  return n;
}

bool Unpickler::number(PickleValue v, int64_t* out) const {
  uint8_t b[kMaxIntBytes + 1];
  const int n = int_bytes(v, b);
  if (n == 0) return false;
  const uint8_t sign = b[n - 1] & 0x80 ? 0xff : 0;
  for (int i = 7; i < n; i++)
    if (b[i] != sign && (i > 7 || (b[i] ^ sign) & 0x80)) return false;
  memset(out, sign, 8);
  memcpy(out, b, size_t(min<int64_t>(n, 8)));
  return true;
}

double Unpickler::real(PickleValue v) const {
  const uint64_t bits = swap_bytes(get<uint64_t>(data_ + v + 1));
  double d;
  memcpy(&d, &bits, 8);
  return d;
}

PickleName Unpickler::name(PickleValue v, Dtype* dtype) const {
  const char* begin = reinterpret_cast<const char*>(data_) + v + 1;
  const char* p = begin;
  for (int lines = 0; lines < 2; p++) lines += *p == '\n';
  const Span<const char> all(begin, p - begin);
  for (int k = 1; k < int(PickleName::kStorage); k++)
    if (equal(all, kPickleNames[k])) return PickleName(k);
  if (all.n < 7 || memcmp(begin, "torch\n", 6) != 0) return PickleName::kUnknown;
  const Span<const char> last(begin + 6, all.n - 7);
  *dtype = dtype_named(last);
  if (*dtype != Dtype::kNone) return PickleName::kDtype;
  for (int d = 1; d <= TT_C128 && last.n > 7; d++)
    if (equal(last.slice(0, last.n - 7), kStorageNames[d]) &&
        memcmp(last.end() - 7, "Storage", 7) == 0) {
      *dtype = Dtype(d);
      return PickleName::kStorage;
    }
  return PickleName::kUnknown;
}

// ---- the machine ----

void Unpickler::take(int64_t n) {
  if (n < 0 || n > bytes_ - next_) bad(at_, "the pickle ends too early");
  next_ += n;
}

// Checks that there are at least n values above the last mark.
void Unpickler::need(int64_t n) const {
  if (stack_.size() - (marks_.empty() ? 0 : marks_[marks_.size() - 1]) < n)
    bad(at_, "the pickle pops from an empty stack");
}

PickleValue Unpickler::pop() {
  need(1);
  const PickleValue v = stack_.back();
  stack_.pop_back();
  return v;
}

// Removes the last mark and returns the number of values above it.
int64_t Unpickler::since_mark() {
  if (marks_.empty()) bad(at_, "the pickle has no mark here");
  const int64_t n = stack_.size() - marks_.back();
  marks_.pop_back();
  return n;
}

// Makes a container of the topmost values.
PickleValue Unpickler::make(PickleKind kind, int64_t items, bool hashable) {
  budget_ -= int64_t(sizeof(PickleObject));
  objects_.push_back({kind, 1, false, hashable, -1, -1});
  const PickleValue made = ~int32_t(objects_.size() - 1);
  add(made, items);
  return made;
}

// Moves the topmost values into a container.
void Unpickler::add(PickleValue to, int64_t items) {
  PickleObject& o = objects_[~to];
  budget_ -= items * int64_t(sizeof(PickleCell));
  if (budget_ < 0) bad(at_, "the pickle makes more objects than allowed for a file of this size");
  const PickleValue* p = stack_.end() - items;
  for (int64_t i = 0; i < items; i++) {
    if (p[i] < 0) {
      PickleObject& child = objects_[~p[i]];
      child.complete = true;
      if (child.levels >= o.levels) o.levels = uint8_t(child.levels + 1);
      o.hashable &= child.hashable;
    }
    cells_.push_back({p[i], -1});
    const auto cell = int32_t(cells_.size() - 1);
    if (o.first < 0) o.first = cell;
    else cells_[o.last].next = cell;
    o.last = cell;
  }
  if (o.complete) bad(at_, "a container of the pickle contains itself");
  if (o.levels > kMaxNesting) bad(at_, "the pickle is nested too deeply");
  stack_.resize(stack_.size() - items);
}

void Unpickler::put(uint32_t i) {
  const PickleValue top = pop();
  stack_.push_back(top);
  if (i >= uint64_t(bytes_)) bad(at_, "memo index {} exceeds the size of the pickle", i);
  if (i >= uint64_t(memo_.size())) memo_.resize(int64_t(i) + 1, kAbsent);
  memo_[i] = top;
}

PickleValue Unpickler::got(uint32_t i) const {
  if (i >= uint64_t(memo_.size()) || memo_[i] == kAbsent) bad(at_, "the memo has no object {}", i);
  return memo_[i];
}

// Values that are stored in the pickle: checks their bounds and pushes their position.
void Unpickler::plain(PickleOp o) {
  const uint8_t* p = data_ + next_;
  int64_t n = 0;
  if (o == PickleOp::kUint1 || o == PickleOp::kLong1) n = 1;
  if (o == PickleOp::kUint2) n = 2;
  if (o == PickleOp::kInt4 || o == PickleOp::kText || o == PickleOp::kLong4) n = 4;
  if (o == PickleOp::kDouble) n = 8;
  take(n);
  if (o == PickleOp::kLong1) take(*p);
  if (o == PickleOp::kText) take(get<uint32_t>(p));
  if (o == PickleOp::kLong4) {
    if (get<uint32_t>(p) > kMaxIntBytes) bad(at_, "int of more than {} bytes", kMaxIntBytes);
    take(get<int32_t>(p));
  }
  if (o == PickleOp::kGlobal) {
    for (int lines = 0; lines < 2; lines += data_[next_ - 1] == '\n') take(1);
    const Span<const char> all(reinterpret_cast<const char*>(p), data_ + next_ - p - 1);
    Dtype d;
    if (name(int32_t(at_), &d) == PickleName::kUnknown) {
      const auto* line = static_cast<const char*>(memchr(all.ptr, '\n', size_t(all.n)));
      if (!printable(all)) bad(at_, "the pickle has an invalid name");
      bad(at_, "the pickle names {} {}, which is not allowed", all.slice(0, line - all.ptr),
          all.slice(line + 1 - all.ptr, all.n));
    }
  }
  stack_.push_back(int32_t(at_));
}

void Unpickler::step(PickleOp o) {
  const uint8_t* p = data_ + next_;
  switch (o) {
    case PickleOp::kMark: return marks_.push_back(stack_.size());
    case PickleOp::kEmptyTuple: return stack_.push_back(make(PickleKind::kTuple, 0, true));
    case PickleOp::kEmptyList: return stack_.push_back(make(PickleKind::kList, 0));
    case PickleOp::kEmptyDict: return stack_.push_back(make(PickleKind::kDict, 0));
    case PickleOp::kPut1: take(1); return put(*p);
    case PickleOp::kPut4: take(4); return put(get<uint32_t>(p));
    case PickleOp::kGet1: take(1); return stack_.push_back(got(*p));
    case PickleOp::kGet4: take(4); return stack_.push_back(got(get<uint32_t>(p)));
    case PickleOp::kTuple: return stack_.push_back(make(PickleKind::kTuple, since_mark(), true));
    case PickleOp::kTuple1:
    case PickleOp::kTuple2:
    case PickleOp::kTuple3: return fixed_tuple(int(o) - int(PickleOp::kTuple1) + 1);
    case PickleOp::kAppend:
    case PickleOp::kAppends: return extend(o == PickleOp::kAppends ? since_mark() : 1, false);
    case PickleOp::kSetItem:
    case PickleOp::kSetItems: return extend(o == PickleOp::kSetItems ? since_mark() : 2, true);
    case PickleOp::kPersistent: return stack_.push_back(persistent());
    case PickleOp::kReduce: return reduce();
    case PickleOp::kBuild: pop(); return need(1);  // the _metadata of a state dict
    case PickleOp::kProtocol:
      take(1);
      if (*p == 2) return;
      bad(at_, "the pickle has protocol {}: must be 2", int64_t(*p));
    case PickleOp::kNone:
    case PickleOp::kTrue:
    case PickleOp::kFalse:
    case PickleOp::kInt4:
    case PickleOp::kUint1:
    case PickleOp::kUint2:
    case PickleOp::kLong1:
    case PickleOp::kLong4:
    case PickleOp::kDouble:
    case PickleOp::kText:
    case PickleOp::kGlobal: return plain(o);
    default: bad(at_, "the pickle has the opcode {}, which PyTorch does not write", int64_t(o));
  }
}

PickleValue Unpickler::run() {
  for (;;) {
    at_ = next_;
    take(1);
    const auto o = PickleOp(data_[at_]);
    if (o == PickleOp::kStop) break;
    step(o);
  }
  if (stack_.size() != 1 || !marks_.empty())
    bad(at_, "the pickle has STOP with {} values on its stack", stack_.size());
  return stack_[0];
}

void Unpickler::fixed_tuple(int64_t n) {
  need(n);
  stack_.push_back(make(PickleKind::kTuple, n, true));
}

// Adds the topmost values to the list or dict below them.
void Unpickler::extend(int64_t items, bool pairs) {
  need(items + 1);
  const PickleValue to = stack_[stack_.size() - items - 1];
  const bool dict = is(to, PickleKind::kDict) || is(to, PickleKind::kOrdered);
  if (pairs ? !dict || items % 2 : !is(to, PickleKind::kList))
    bad(at_, "the pickle adds items to an object that is not a list or dict");
  for (int64_t i = 0; pairs && i < items; i += 2) {
    const PickleValue key = stack_[stack_.size() - items + i];
    if (key < 0 && !object(key).hashable) bad(at_, "a dict key is a mutable container");
  }
  add(to, items);
}

// ---- functions that PyTorch's pickles call ----

// Makes an object of another kind over the items of a container, which is complete from now on.
PickleValue Unpickler::wrap(PickleKind kind, PickleValue around, bool hashable) {
  const PickleValue made = make(kind, 0, hashable);
  PickleObject& o = objects_[~made];
  PickleObject& child = objects_[~around];
  child.complete = true;
  o.first = child.first;
  o.last = child.last;
  o.levels = uint8_t(child.levels + 1);
  if (o.levels > kMaxNesting) bad(at_, "the pickle is nested too deeply");
  return made;
}

// Returns the items of a tuple, at most `max_items`.
Unpickler::Items Unpickler::items(PickleValue tuple, int64_t max_items) const {
  Items out;
  if (!is(tuple, PickleKind::kTuple) && !is(tuple, PickleKind::kSize)) bad(at_, "expected a tuple");
  for (int32_t c = object(tuple).first; c >= 0; c = cells_[c].next) {
    if (out.size() == max_items) bad(at_, "expected a tuple of at most {} items", max_items);
    out.push_back(cells_[c].value);
  }
  return out;
}

void Unpickler::reduce() {
  const PickleValue tuple = pop();
  const PickleValue callee = pop();
  Dtype dtype = Dtype::kNone;
  const PickleName what =
      is(callee, PickleOp::kGlobal) ? name(callee, &dtype) : PickleName::kUnknown;
  const Items args = items(tuple, 8);
  const PickleValue first = args.empty() ? 0 : args[0];
  if (what == PickleName::kOrdered && args.empty())
    return stack_.push_back(make(PickleKind::kOrdered, 0));
  if (what == PickleName::kCounter && args.size() == 1 && is(first, PickleKind::kDict))
    return stack_.push_back(wrap(PickleKind::kCounter, first, false));
  if (what == PickleName::kSize && args.size() == 1) {
    numbers(first);
    return stack_.push_back(wrap(PickleKind::kSize, first, true));
  }
  if (what == PickleName::kDevice && (args.size() == 1 || args.size() == 2) &&
      is(first, PickleOp::kText)) {
    if (args.size() == 2) numbers(tuple, 1);
    return stack_.push_back(wrap(PickleKind::kDevice, tuple, true));
  }
  if (what == PickleName::kTensor && args.size() >= 6) return stack_.push_back(tensor(args, false));
  if (what == PickleName::kTypedTensor && args.size() >= 7)
    return stack_.push_back(tensor(args, true));
  if (what == PickleName::kParameter && args.size() >= 2 && args.size() <= 3 &&
      is(first, PickleKind::kTensor)) {
    const int32_t made =
        storages_.parameter(begin_ + at_, object(first).first, is(args[1], PickleOp::kTrue));
    return stack_.push_back(numbered(PickleKind::kParameter, made));
  }
  bad(at_, "the pickle makes a call that is not allowed");
}

// An object that TorchStorages knows by a number.
PickleValue Unpickler::numbered(PickleKind kind, int32_t number) {
  budget_ -= 2 * int64_t(sizeof(Tensor));
  const PickleValue made = make(kind, 0, true);
  objects_[~made].first = number;
  objects_[~made].levels = 0;
  return made;
}

// "storage", its type, key, device and number of elements.
PickleValue Unpickler::persistent() {
  const Items row = items(pop(), 5);
  Dtype dtype = Dtype::kNone;
  int64_t numel;
  const PickleName type = row.size() == 5 && is(row[1], PickleOp::kGlobal) ? name(row[1], &dtype)
                                                                           : PickleName::kUnknown;
  if (type == PickleName::kUntyped) dtype = Dtype::kU8;
  if ((type != PickleName::kStorage && type != PickleName::kUntyped) ||
      !is(row[2], PickleOp::kText) || !number(row[4], &numel))
    bad(at_, "invalid reference to a storage");
  return numbered(PickleKind::kStorage,
                  storages_.storage(begin_ + at_, dtype, text(row[2]), numel));
}

// Storage, offset, sizes, strides, requires_grad, hooks, the dtype over an untyped storage, and
// metadata, which must be empty.
PickleValue Unpickler::tensor(const Items& args, bool typed) {
  int64_t offset;
  Dtype dtype = Dtype::kNone;
  const int64_t last = typed ? 7 : 6;
  const bool no_more = args.size() == last || is(args[last], PickleOp::kNone) ||
                       (is(args[last], PickleKind::kDict) && object(args[last]).first < 0);
  if (typed && (!is(args[6], PickleOp::kGlobal) || name(args[6], &dtype) != PickleName::kDtype))
    bad(at_, "invalid dtype of a tensor");
  if (!no_more) bad(at_, "a tensor has metadata, such as conj");
  if (!is(args[0], PickleKind::kStorage) || !number(args[1], &offset))
    bad(at_, "invalid sizes, strides or offset of a tensor");
  const Shape sizes = numbers(args[2]);
  const Shape strides = numbers(args[3]);
  const int32_t storage = object(args[0]).first;
  const bool requires_grad = is(args[4], PickleOp::kTrue);
  const int32_t made =
      typed ? storages_.typed_tensor(begin_ + at_, storage, dtype, offset, sizes, strides,
                                     requires_grad)
            : storages_.tensor(begin_ + at_, storage, offset, sizes, strides, requires_grad);
  return numbered(PickleKind::kTensor, made);
}

// The items of a tuple, which must be ints.
Shape Unpickler::numbers(PickleValue tuple, int64_t from) const {
  Shape out;
  int64_t v;
  const Items all = items(tuple, INT64_MAX);
  for (int64_t i = from; i < all.size(); i++) {
    if (!number(all[i], &v)) bad(at_, "expected an int");
    out.push_back(v);
  }
  return out;
}

}  // namespace TT_NS
