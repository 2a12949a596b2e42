// Arrays of other programs: NumPy's .npy and .npz, IDX (MNIST) and CSV. Files are checked whole;
// all functions fail with IO or FORMAT, naming the path and the byte or the line.
#pragma once

#include "core/state_dict.h"

namespace TT_NS {

TensorRef load_npy(const char* path);
// The arrays of an archive by their names.
StateDictRef load_npz(const char* path);
// Also compressed by gzip.
TensorRef load_idx(const char* path);

struct CsvOptions {
  int64_t skip_rows = 0;
  char delimiter = ',';
  Dtype dtype = Dtype::kNone;  // kNone: the default one
};
// Rows of numbers as [rows, columns].
TensorRef load_csv(const char* path, const CsvOptions& o);

}  // namespace TT_NS
