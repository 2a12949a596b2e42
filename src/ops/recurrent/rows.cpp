// Rows of packed sequences: the step before each, the first and the last of each sequence.
#include "ops/recurrent/rows.h"

#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

bool is_uniform(Ints sizes) { return sizes[0] == sizes[sizes.n - 1]; }

TensorRef index_tensor(const Shape& rows, Device device) {
  const int64_t n[1] = {rows.size()};
  TensorRef t = new_tensor(n, Dtype::kI64, Device{TT_CPU, 0});
  for (int64_t i = 0; i < rows.size(); i++) t->as<int64_t>()[i] = rows[i];
  note_host_write(*t);
  return t->device == device ? std::move(t) : op::to(*t, Dtype::kNone, device);
}

}  // namespace

TensorRef recurrent_rows_before(const Tensor& values, const Tensor& first, Ints sizes,
                                bool reverse) {
  const int64_t total = values.size(0);
  const int64_t n = sizes[0];
  if (is_uniform(sizes)) {
    TensorRef rest = op::narrow(values, 0, reverse ? n : 0, total - n);
    const Tensor* const forward[2] = {&first, rest.get()};
    const Tensor* const backward[2] = {rest.get(), &first};
    return op::cat(reverse ? backward : forward, 0);
  }
  Shape rows;
  RecurrentWalk walk(sizes, total, false);
  for (int64_t t = 0; t < sizes.n; t++, walk.next()) {
    const RecurrentStep before = reverse ? walk.after() : walk.before();
    for (int64_t i = 0; i < sizes[t]; i++)
      rows.push_back(i < before.rows ? before.at + i : total + i);
  }
  const Tensor* const both[2] = {&values, &first};
  return op::index_select(*op::cat(both, 0), 0, *index_tensor(rows, values.device));
}

TensorRef recurrent_first_rows(const Tensor& values, Ints sizes, bool reverse) {
  const int64_t n = sizes[0];
  if (!reverse) return op::narrow(values, 0, 0, n);
  if (is_uniform(sizes)) return op::narrow(values, 0, values.size(0) - n, n);
  Shape rows(Ints{});
  for (int64_t i = 0; i < n; i++) rows.push_back(0);
  int64_t at = 0;
  for (int64_t size : sizes) {
    for (int64_t i = 0; i < size; i++) rows[i] = at + i;
    at += size;
  }
  return op::index_select(values, 0, *index_tensor(rows, values.device));
}

}  // namespace TT_NS
