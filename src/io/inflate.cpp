#include "io/inflate.h"

#include "base/arith.h"

#include <string.h>

namespace TT_NS {
namespace {

constexpr int kMaxBits = 15;    // of a code
constexpr int kFastBits = 9;    // codes up to this length are found by one look
constexpr int kLiterals = 288;  // literals, the end of a block, lengths
constexpr int kDistances = 30;
constexpr int kEndOfBlock = 256;
constexpr int kInvalid = -1;

// A prefix code: shorter codes are smaller numbers, and equally long ones in the order of their
// symbols. Their bits come with the first one of the code lowest.
class Code {
 public:
  // lengths[i]: bits of symbol i, 0 if it has no code. Returns whether they make a code that is
  // complete, or has one symbol at most.
  bool build(const uint8_t* lengths, int n);
  // Decodes one symbol from the lowest n bits of `bits`. Returns it and sets its number of bits.
  int symbol(uint64_t bits, int n, int* length) const;

 private:
  uint16_t count_[kMaxBits + 1];   // codes of each length
  uint16_t symbols_[kLiterals];    // in the order of their codes
  uint16_t fast_[1 << kFastBits];  // by the next bits: symbol << 4 | length, 0 for longer codes
};

bool Code::build(const uint8_t* lengths, int n) {
  memset(count_, 0, sizeof count_);
  memset(fast_, 0, sizeof fast_);
  for (int i = 0; i < n; i++) count_[lengths[i]]++;
  count_[0] = 0;
  int first[kMaxBits + 2] = {};  // position in symbols_ of the first code of each length
  int left = 1;                  // codes of this length that are free
  for (int bits = 1; bits <= kMaxBits; bits++) {
    left = 2 * left - count_[bits];
    if (left < 0) return false;
    first[bits + 1] = first[bits] + count_[bits];
  }
  const int used = first[kMaxBits + 1];
  if (left > 0 && (used > 1 || count_[1] != used)) return false;
  for (int i = 0; i < n; i++)
    if (lengths[i]) symbols_[first[lengths[i]]++] = uint16_t(i);
  int code = 0;
  for (int bits = 1, k = 0; bits <= kFastBits; bits++, code <<= 1)
    for (int i = 0; i < count_[bits]; i++, k++, code++) {
      int reversed = 0;
      for (int b = 0; b < bits; b++) reversed |= (code >> b & 1) << (bits - 1 - b);
      for (int j = reversed; j < 1 << kFastBits; j += 1 << bits)
        fast_[j] = uint16_t(symbols_[k] << 4 | bits);
    }
  return true;
}

int Code::symbol(uint64_t bits, int n, int* length) const {
  const int fast = fast_[bits & ((1 << kFastBits) - 1)];
  *length = fast & 15;
  if (fast) return *length <= n ? fast >> 4 : kInvalid;
  int code = 0;
  int first = 0;  // code of the first symbol of this length
  int index = 0;  // its position
  for (int k = 1; k <= min(n, kMaxBits); k++) {
    code |= int(bits & 1);
    bits >>= 1;
    *length = k;
    if (code - first < count_[k]) return symbols_[index + code - first];
    index += count_[k];
    first = (first + count_[k]) << 1;
    code <<= 1;
  }
  return kInvalid;
}

// A length or a distance: `base` and the number of bits that are added to it.
struct Range {
  uint16_t base;
  uint8_t bits;
};
constexpr Range kLengths[] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr Range kDistanceRanges[kDistances] = {
    {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
    {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
    {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
    {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};

class Inflation {
 public:
  Inflation(Span<const char> in, Span<char> out) : in_(in), out_(out) {}
  Inflated run();

 private:
  bool fail(const char* why) {
    if (!error_) error_ = why;
    return false;
  }
  void refill() {
    for (; count_ <= 56 && at_ < in_.n; count_ += 8)
      bits_ |= uint64_t(uint8_t(in_[at_++])) << count_;
  }
  void drop(int n) {
    bits_ >>= n;
    count_ -= n;
  }
  bool take(int n, int* value);
  bool next(const Code& code, int* symbol);
  bool block();
  bool stored();
  bool fixed();
  bool dynamic();
  bool code_lengths(const Code& code, uint8_t* lengths, int n);
  bool symbols();
  bool copy(int length);

  const Span<const char> in_;
  const Span<char> out_;
  int64_t at_ = 0;     // bytes that were read
  int64_t done_ = 0;   // bytes that were written
  uint64_t bits_ = 0;  // that were read and not used, the next one lowest
  int count_ = 0;      // of them
  bool last_ = false;  // block
  const char* error_ = nullptr;
  Code literals_, distances_;
};

bool Inflation::take(int n, int* value) {
  refill();
  if (count_ < n) return fail("the compressed data end early");
  *value = int(bits_ & ((uint64_t(1) << n) - 1));
  drop(n);
  return true;
}

bool Inflation::next(const Code& code, int* symbol) {
  int length;
  refill();
  *symbol = code.symbol(bits_, count_, &length);
  if (*symbol == kInvalid)
    return fail(count_ < kMaxBits ? "the compressed data end early" : "a code is unknown");
  drop(length);
  return true;
}

// Bytes as they are, behind their number and its complement.
bool Inflation::stored() {
  drop(count_ & 7);
  int n;
  int complement;
  if (!take(16, &n) || !take(16, &complement)) return false;
  if (n != (complement ^ 0xffff)) return fail("the length of a stored block is wrong");
  if (n > out_.n - done_) return fail("the data are longer than their size");
  for (; n && count_; n--, drop(8)) out_[done_++] = char(bits_);
  if (n > in_.n - at_) return fail("the compressed data end early");
  if (n) memcpy(&out_[done_], &in_[at_], size_t(n));
  at_ += n;
  done_ += n;
  return true;
}

bool Inflation::fixed() {
  uint8_t lengths[kLiterals];
  for (int i = 0; i < kLiterals; i++) {
    lengths[i] = 8;
    if (i >= 144 && i < 256) lengths[i] = 9;
    if (i >= 256 && i < 280) lengths[i] = 7;
  }
  literals_.build(lengths, kLiterals);
  memset(lengths, 5, 32);
  distances_.build(lengths, 32);
  return symbols();
}

// The lengths of the codes of a block come in a code of their own, with runs.
bool Inflation::dynamic() {
  static constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                         11, 4,  12, 3, 13, 2, 14, 1, 15};
  int literals;
  int distances;
  int coded;
  if (!take(5, &literals) || !take(5, &distances) || !take(4, &coded)) return false;
  literals += 257;
  distances += 1;
  if (literals > 286 || distances > kDistances) return fail("a block has too many codes");
  uint8_t lengths[kLiterals + kDistances] = {};
  for (int i = 0; i < coded + 4; i++) {
    int bits;
    if (!take(3, &bits)) return false;
    lengths[kOrder[i]] = uint8_t(bits);
  }
  Code code;
  if (!code.build(lengths, 19)) return fail("the lengths of a block's codes are wrong");
  if (!code_lengths(code, lengths, literals + distances)) return false;
  if (!lengths[kEndOfBlock]) return fail("a block has no end");
  if (!literals_.build(lengths, literals) || !distances_.build(lengths + literals, distances))
    return fail("the lengths of a block's codes are wrong");
  return symbols();
}

bool Inflation::code_lengths(const Code& code, uint8_t* lengths, int n) {
  for (int i = 0; i < n;) {
    int symbol;
    if (!next(code, &symbol)) return false;
    if (symbol < 16) {
      lengths[i++] = uint8_t(symbol);
      continue;
    }
    if (symbol == 16 && !i) return fail("the lengths of a block's codes are wrong");
    const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
    static constexpr Range kRuns[3] = {{3, 2}, {3, 3}, {11, 7}};
    const Range run = kRuns[symbol - 16];
    int more;
    if (!take(run.bits, &more)) return false;
    if (run.base + more > n - i) return fail("the lengths of a block's codes are wrong");
    memset(lengths + i, value, size_t(run.base + more));
    i += run.base + more;
  }
  return true;
}

bool Inflation::symbols() {
  while (true) {
    int symbol;
    if (!next(literals_, &symbol)) return false;
    if (symbol == kEndOfBlock) return true;
    if (symbol > kEndOfBlock) {
      if (!copy(symbol - kEndOfBlock - 1)) return false;
      continue;
    }
    if (done_ == out_.n) return fail("the data are longer than their size");
    out_[done_++] = char(symbol);
  }
}

// Repeats bytes that were written before. length: its symbol.
bool Inflation::copy(int length) {
  if (length >= int(sizeof kLengths / sizeof *kLengths)) return fail("a length is unknown");
  int more;
  if (!take(kLengths[length].bits, &more)) return false;
  const int64_t n = kLengths[length].base + more;
  int distance;
  if (!next(distances_, &distance)) return false;
  if (distance >= kDistances) return fail("a distance is unknown");
  if (!take(kDistanceRanges[distance].bits, &more)) return false;
  const int64_t back = kDistanceRanges[distance].base + more;
  if (back > done_) return fail("a distance reaches before the data");
  if (n > out_.n - done_) return fail("the data are longer than their size");
  char* to = &out_[done_];
  if (back >= n) memcpy(to, to - back, size_t(n));
  else
    for (int64_t i = 0; i < n; i++) to[i] = to[i - back];
  done_ += n;
  return true;
}

bool Inflation::block() {
  int head;
  if (!take(3, &head)) return false;
  last_ = head & 1;
  switch (head >> 1) {
    case 0: return stored();
    case 1: return fixed();
    case 2: return dynamic();
    default: return fail("the kind of a block is unknown");
  }
}

Inflated Inflation::run() {
  while (!last_ && block()) {}
  if (!error_ && done_ != out_.n) fail("the data are shorter than their size");
  return {error_, at_ - count_ / 8};
}

}  // namespace

Inflated inflate(Span<const char> in, Span<char> out) noexcept { return Inflation(in, out).run(); }

}  // namespace TT_NS
