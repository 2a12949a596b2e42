// The part of Python's pickle format (protocol 2) that PyTorch's files use, and the names that
// their pickles may contain.
#pragma once

#include "core/dtype.h"

namespace TT_NS {

enum class PickleOp : uint8_t {
  kMark = '(',
  kStop = '.',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kInt4 = 'J',  // little-endian, signed
  kUint1 = 'K',
  kUint2 = 'M',
  kNone = 'N',
  kText = 'X',    // four bytes of length, UTF-8
  kDouble = 'G',  // eight bytes, big-endian
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kBuild = 'b',
  kGlobal = 'c',  // module, line feed, name, line feed
  kGet1 = 'h',
  kGet4 = 'j',
  kPut1 = 'q',
  kPut4 = 'r',
  kTuple = 't',
  kPersistent = 'Q',
  kReduce = 'R',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,  // a byte of length, then an int in two's complement, little-endian
  kLong4 = 0x8b,  // the same with four bytes of length
};

constexpr int64_t kMaxIntBytes = 255;  // of an int
constexpr int kMaxNesting = 200;       // of containers

enum class PickleName : uint8_t {
  kUnknown,
  kOrdered,
  kCounter,
  kSize,
  kDevice,
  kTensor,
  kParameter,
  kTypedTensor,  // over an untyped storage
  kUntyped,
  kStorage,
  kDtype
};
constexpr const char* kPickleNames[] = {"",
                                        "collections\nOrderedDict\n",
                                        "collections\nCounter\n",
                                        "torch\nSize\n",
                                        "torch\ndevice\n",
                                        "torch._utils\n_rebuild_tensor_v2\n",
                                        "torch._utils\n_rebuild_parameter\n",
                                        "torch._utils\n_rebuild_tensor_v3\n",
                                        "torch.storage\nUntypedStorage\n"};
// PyTorch's names by Dtype: torch.FloatStorage, torch.float32
constexpr const char* kStorageNames[kNumDtypes] = {
    "",         "Bool",  "Byte",   "Char",         "Short",         "Int", "Long", "Half",
    "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble", "",    "",     ""};
constexpr const char* kDtypeNames[kNumDtypes] = {
    "",         "bool",    "uint8",   "int8",      "int16",      "int32",  "int64",  "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "uint16", "uint32", "uint64"};
Dtype dtype_named(Span<const char> name);  // "float32"; kNone: unknown name

}  // namespace TT_NS
