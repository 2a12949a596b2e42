// einsum: every operand gets the dimensions of all labels, in a common order; then pairs are
// contracted from left to right, each by a batched product, or by mul if no dimension is summed.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/matmul/einsum_parse.h"
#include "ops/impl.h"

namespace TT_NS {

namespace {

// The common order of dimensions: those of the result, then the summed ones.
struct Order {
  int64_t place[kLetters];  // of a letter; -1: unused
  int64_t ellipsis = -1;    // first place of the ellipsis
  int64_t ellipsis_dims = 0;
  int64_t n_out = 0;
  int64_t n = 0;

  Order(const Equation& e, TensorSpan operands) {
    for (int64_t& p : place) p = -1;
    bool dots = false;
    for (int64_t i = 0; i < operands.n; i++) {
      const int64_t own = ellipsis_of(e.terms[i], *operands[i], i);
      if (own >= 0) dots = true;
      if (own > ellipsis_dims) ellipsis_dims = own;
    }
    for (uint8_t l : e.out) add(l);
    n_out = n;
    if (dots && ellipsis < 0) add(kEllipsis);
    for (uint8_t l = 0; l < kLetters; l++)
      for (const Labels& term : e.terms)
        for (uint8_t used : term)
          if (used == l) add(l);
    if (n > kMaxDims)
      fail_arg(TT_SHAPE, "equation", "the labels cover {} dimensions: at most {} are supported", n,
               kMaxDims);
  }

  // Returns the number of dimensions that the ellipsis covers in operand i, or -1 without an
  // ellipsis.
  static int64_t ellipsis_of(const Labels& term, const Tensor& t, int64_t i) {
    bool dots = false;
    for (uint8_t l : term) dots |= l == kEllipsis;
    const int64_t named = term.size() - dots;
    const bool fits = dots ? t.ndim >= named : t.ndim == named;
    if (!fits)
      fail_arg(TT_SHAPE, "operands", "operand {} is {}, but its term has {} labels{}", i, t.sizes(),
               named, dots ? " and an ellipsis" : "");
    return dots ? t.ndim - named : -1;
  }

 private:
  void add(uint8_t l) {
    if (l == kEllipsis) {
      ellipsis = n;
      n += ellipsis_dims;
    } else if (place[l] < 0) {
      place[l] = n++;
    }
  }
};

// Takes the diagonals of t for repeated labels and expands it to all dimensions of the order; those
// without a label in this term get size 1.
TensorRef expand_to_order(const Tensor& t, const Labels& term, const Order& order,
                          int64_t operand) {
  TensorRef r = TensorRef::share(&t);
  Shape places;  // of r's dimensions
  const int64_t dots = Order::ellipsis_of(term, t, operand);
  for (uint8_t l : term) {
    if (l != kEllipsis) places.push_back(order.place[l]);
    for (int64_t k = 0; l == kEllipsis && k < dots; k++)
      places.push_back(order.ellipsis + order.ellipsis_dims - dots + k);
  }
  for (int64_t d = 0; d < places.size();) {
    int64_t twin = d + 1;
    while (twin < places.size() && places[twin] != places[d]) twin++;
    if (twin == places.size()) {
      d++;
      continue;
    }
    if (r->size(d) != r->size(twin))
      fail_arg(TT_SHAPE, "operands",
               "operand {} is {}: a repeated label has sizes {} and {}: must be equal", operand,
               t.sizes(), r->size(d), r->size(twin));
    r = op::diagonal(r, 0, d, twin);
    const int64_t p = places[d];
    places.erase(twin);
    places.erase(d);
    places.push_back(p);
  }
  Shape dims, sizes;
  for (int64_t p = 0; p < order.n; p++) {
    sizes.push_back(1);
    for (int64_t d = 0; d < places.size(); d++)
      if (places[d] == p) {
        dims.push_back(d);
        sizes.back() = r->size(d);
      }
  }
  r = op::permute(r, dims);
  return r->ndim == order.n ? std::move(r) : op::view(r, sizes);
}

// The role of a dimension in the product of a and b.
enum Role { kBatch, kLeft, kRight, kSum };
static Role role_of(const Tensor& a, const Tensor& b, uint64_t sum, int64_t d) {
  if (sum >> d & 1) return kSum;
  if (b.size(d) == 1) return kLeft;
  return a.size(d) == 1 ? kRight : kBatch;
}

// Returns sum(a * b) over the dimensions `sum`, which get size 1; in all others sizes are equal or
// one of them is 1.
TensorRef contract(const Tensor& a, const Tensor& b, uint64_t sum) {
  const int64_t n = a.ndim;
  Shape of[4];
  for (int64_t d = 0; d < n; d++) of[role_of(a, b, sum, d)].push_back(d);
  Shape a_dims, b_dims, c_dims, c_sizes, back;
  int64_t volume[4] = {1, 1, 1, 1};
  const auto gather = [&](Shape& dims, Role r1, Role r2, Role r3, Role r4) {
    for (Role r : {r1, r2, r3, r4}) dims.append(of[r]);
  };
  gather(a_dims, kBatch, kLeft, kSum, kRight);
  gather(b_dims, kBatch, kSum, kRight, kLeft);
  gather(c_dims, kBatch, kLeft, kRight, kSum);
  back.resize(n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t d = c_dims[i];
    back[d] = i;
    const int64_t size = a.size(d) == 1 ? b.size(d) : a.size(d);
    c_sizes.push_back(sum >> d & 1 ? 1 : size);
  }
  for (int r = 0; r < 4; r++)
    for (int64_t d : of[r]) volume[r] *= a.size(d) == 1 ? b.size(d) : a.size(d);
  const int64_t a_shape[3] = {volume[kBatch], volume[kLeft], volume[kSum]};
  const int64_t b_shape[3] = {volume[kBatch], volume[kSum], volume[kRight]};
  const int flat = of[kBatch].empty();  // no batch: matrices
  TensorRef x = op::reshape(op::permute(a, a_dims), Ints(a_shape + flat, 3 - flat));
  TensorRef y = op::reshape(op::permute(b, b_dims), Ints(b_shape + flat, 3 - flat));
  return op::permute(*op::view(op::matmul_stack(x, y), c_sizes), back);
}

// Checks that the sizes of each label are equal, or 1.
void check_sizes(const SmallVec<TensorRef, 4>& t, int64_t n) {
  for (int64_t d = 0; d < n; d++) {
    int64_t size = 1;
    for (int64_t i = 0; i < t.size(); i++) {
      const int64_t own = t[i]->size(d);
      if (own != 1 && size != 1 && own != size)
        fail_arg(TT_SHAPE, "operands",
                 "operand {} has size {} where an earlier one with this label has {}: must be "
                 "equal, or one of them 1",
                 i, own, size);
      if (own != 1) size = own;
    }
  }
}

// Multiplies a by the next operand b and sums dimensions that neither the result nor a later
// operand has.
TensorRef join(TensorRef a, TensorRef b, int64_t n_out, int64_t n, int64_t* users) {
  Shape of_a, of_b;
  uint64_t both = 0;
  for (int64_t d = n_out; d < n; d++) {
    if (a->size(d) != 1 && b->size(d) != 1) {
      if (--users[d] == 1) {
        both |= uint64_t(1) << d;
        users[d] = 0;
      }
    } else if (users[d] == 1) {
      if (a->size(d) != 1) {
        of_a.push_back(d);
        users[d] = 0;
      } else if (b->size(d) != 1) {
        of_b.push_back(d);
        users[d] = 0;
      }
    }
  }
  if (!of_a.empty()) a = op::sum_dim(a, of_a, true);
  if (!of_b.empty()) b = op::sum_dim(b, of_b, true);
  // Sums of integers are int64. contract takes operands of one dtype.
  if (a->dtype != b->dtype && category(a->dtype) < 2 && category(b->dtype) < 2) {
    const Dtype common = promote(a->dtype, b->dtype);
    a = op::to_dtype(a, common);
    b = op::to_dtype(b, common);
  }
  return both ? contract(a, b, both) : op::mul(a, b);
}

}  // namespace

TensorRef impl::einsum(Call, Str equation, TensorSpan operands) {
  if (operands.empty())
    fail_arg(TT_INVALID_ARG, "operands", "operands is empty: at least one is needed");
  const Equation e = parse_equation(equation, operands.n);
  const Order order(e, operands);
  SmallVec<TensorRef, 4> t;
  for (int64_t i = 0; i < operands.n; i++)
    t.push_back(expand_to_order(*operands[i], e.terms[i], order, i));
  check_sizes(t, order.n);
  const int64_t summed = order.n - order.n_out;
  if (t.size() == 1) {
    Shape dims;
    for (int64_t d = order.n_out; d < order.n; d++) dims.push_back(d);
    return summed ? op::sum_dim(t[0], dims) : std::move(t[0]);
  }
  int64_t users[kMaxDims] = {};
  for (const TensorRef& x : t)
    for (int64_t d = 0; d < order.n; d++) users[d] += x->size(d) != 1;
  TensorRef r = std::move(t[0]);
  for (int64_t i = 1; i < t.size(); i++)
    r = join(std::move(r), std::move(t[i]), order.n_out, order.n, users);
  return summed ? op::view(r, r->sizes().slice(0, order.n_out)) : std::move(r);
}

}  // namespace TT_NS
