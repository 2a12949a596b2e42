// Matmul against exact references. Values are small integers (and halves), so that every
// sum is exact in every dtype and any difference is an error; one test with random reals bounds the
// rounding.
#include "base/amx.h"
#include "core/half.h"
#include "cpu/matmul_run.h"
#include "kernels/cpu/simd/fused.h"
#include "tests/c/harness/share.h"

#include "amx_emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace TT_NS {
namespace {

using Complex = std::complex<double>;
constexpr int32_t kDtypes[] = {TT_F32, TT_F64, TT_C64, TT_C128, TT_I32, TT_I64, TT_F16, TT_BF16};

std::vector<Isa> isas() {
  std::vector<Isa> list;
  for (int i = 0; i <= best_isa(); i++) list.push_back(Isa(i));
  return list;
}

// Kernels of an instruction set, with one of its ways to multiply bf16, float32 and float16.
struct Variant {
  Isa isa;
  Bf16Products bf16;
  bool pieces = false;  // float32 and float16 as sums of bf16, by tiles
};
bool has_pieces(int32_t dtype) { return dtype == TT_F32 || dtype == TT_F16; }

// Whether tiles may be used by this thread: by the processor, else by the emulator.
bool prepare_amx() {
  if (best_isa() != kIsaAvx512) return false;
#if TT_AMX_EMULATOR
  if (!has_amx_products()) amx_emulator::install();
  return true;
#else
  return has_amx_products();
#endif
}

constexpr const char* kWays[] = {"", " by groups", " by tiles"};

std::vector<Variant> variants(int32_t dtype) {
  static const bool amx = prepare_amx();
  std::vector<Variant> list;
  for (Isa isa : isas()) list.push_back({isa, kBf16Widened});
  if (has_pieces(dtype) && amx) list.push_back({kIsaAvx512, kBf16Widened, true});
  if (dtype != TT_BF16) return list;
  if (has_bf16_products()) list.push_back({kBf16Isa, kBf16Groups});
  if (amx) list.push_back({kIsaAvx512, kBf16Tiles});
  return list;
}

// Sets the path of a plan before its workspace is made.
void use_variant(MatmulPlan* plan, Variant v) {
  if (v.pieces && plan->k > 0) plan->path = kMatmulPieces;
}

// Emulated tiles run on one thread: those of a pool block all signals.
int32_t run_variant(const MatmulPlan& plan, Variant v, Pool* pool = nullptr) {
  assume_bf16_products(v.bf16);
  const bool emulated = (v.bf16 == kBf16Tiles || v.pieces) && !has_amx_products();
  const int32_t status = run_matmul(plan, v.isa, emulated ? nullptr : pool);
  assume_bf16_products(-1);
  return status;
}

void put(char* at, int32_t dtype, Complex v) {
  const auto write = [&](auto x) { memcpy(at, &x, sizeof x); };
  switch (dtype) {
    case TT_F32: return write(float(v.real()));
    case TT_F64: return write(v.real());
    case TT_C64: return write(std::complex<float>(v));
    case TT_C128: return write(v);
    case TT_I32: return write(int32_t(v.real()));
    case TT_I64: return write(int64_t(v.real()));
    case TT_F16: return write(float_to_f16(float(v.real())));
    default: return write(float_to_bf16(float(v.real())));
  }
}

template <class T> T read(const char* at) {
  T x;
  memcpy(&x, at, sizeof x);
  return x;
}

Complex get(const char* at, int32_t dtype) {
  switch (dtype) {
    case TT_F32: return read<float>(at);
    case TT_F64: return read<double>(at);
    case TT_C64: return Complex(read<std::complex<float>>(at));
    case TT_C128: return read<Complex>(at);
    case TT_I32: return read<int32_t>(at);
    case TT_I64: return double(read<int64_t>(at));
    case TT_F16: return f16_to_float(read<uint16_t>(at));
    default: return bf16_to_float(read<uint16_t>(at));
  }
}

// A stack of matrices in a buffer of its own, guarded by a canary on both sides of every element's
// range.
struct Matrix {
  int32_t dtype = 0;
  std::vector<int64_t> size, stride;
  std::vector<char> bytes;
  int64_t offset = 0;

  char* data() { return bytes.data() + offset; }
  int64_t rank() const { return int64_t(size.size()); }
  char* at(const std::vector<int64_t>& index) {
    int64_t o = 0;
    for (size_t i = 0; i < index.size(); i++) o += index[i] * stride[i];
    return data() + o * kItemSize[dtype];
  }
  // Element (i, j) of matrix `batch` of a stack with sizes `full`, broadcast.
  char* broadcast_at(const std::vector<int64_t>& batch, int64_t i, int64_t j) {
    std::vector<int64_t> index(size.size());
    const size_t lead = size.size() - 2;
    const size_t skip = batch.size() - lead;
    for (size_t q = 0; q < lead; q++) index[q] = size[q] == 1 ? 0 : batch[skip + q];
    index[lead] = size[lead] == 1 ? 0 : i;
    index[lead + 1] = size[lead + 1] == 1 ? 0 : j;
    return at(index);
  }
  MatmulOperand operand() { return {data(), int32_t(rank()), size.data(), stride.data()}; }
};

enum Layout { kRowMajor, kColMajor, kPaddedRows, kEveryOther, kNumLayouts };

constexpr char kCanary = 0x5b;

Matrix make(int32_t dtype, std::vector<int64_t> size, int layout) {
  Matrix x;
  x.dtype = dtype;
  x.size = size;
  x.stride.resize(size.size());
  const size_t r = size.size() - 2;
  const size_t c = r + 1;
  int64_t run;
  switch (layout) {
    case kColMajor:
      x.stride[r] = 1;
      x.stride[c] = std::max<int64_t>(size[r], 1);
      run = x.stride[c] * size[c];
      break;
    case kPaddedRows:
      x.stride[c] = 1;
      x.stride[r] = size[c] + 3;
      run = x.stride[r] * size[r];
      break;
    case kEveryOther:
      x.stride[c] = 2;
      x.stride[r] = 2 * size[c] + 1;
      run = x.stride[r] * size[r];
      break;
    default:
      x.stride[c] = 1;
      x.stride[r] = size[c];
      run = x.stride[r] * size[r];
      break;
  }
  for (size_t i = r; i-- > 0;) {
    x.stride[i] = run;
    run *= size[i];
  }
  x.offset = 64;
  x.bytes.assign(size_t(run) * kItemSize[dtype] + 128, kCanary);
  return x;
}

template <class F> void for_each_index(const std::vector<int64_t>& size, F f) {
  std::vector<int64_t> index(size.size(), 0);
  for (int64_t n : size)
    if (n == 0) return;
  for (;;) {
    f(index);
    size_t i = size.size();
    while (i-- > 0) {
      if (++index[i] < size[i]) break;
      index[i] = 0;
    }
    if (i == size_t(-1)) return;
  }
}

std::mt19937 rng(7);
int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng); }

void fill(Matrix& x) {
  const bool complex = matmul_is_complex(x.dtype);
  for_each_index(x.size, [&](const auto& i) {
    put(x.at(i), x.dtype, {double(pick(-3, 3)), complex ? double(pick(-3, 3)) : 0});
  });
}

struct Workspace {
  std::vector<char> bytes;
  void* get(int64_t n) {
    bytes.assign(size_t(n) + 64 + 64, kCanary);
    end = n;
    base = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    return n ? base : nullptr;
  }
  bool intact() const {
    for (int i = 0; i < 16; i++)
      if (base[end + i] != kCanary) return false;
    return true;
  }
  char* base;
  int64_t end;
};

struct Case {
  int32_t dtype;
  std::vector<int64_t> a_batch, b_batch, c_batch;
  int64_t m, n, k;
  int a_layout, b_layout, c_layout, d_layout;
  bool with_d, in_place;
  double alpha, beta;
  std::vector<int64_t> d_size;
};

std::string describe(const Case& c, Variant v) {
  return std::string(isa_name(v.isa)) + kWays[v.bf16] + (v.pieces ? " by pieces" : "") + " dtype " +
         std::to_string(c.dtype) + " m " + std::to_string(c.m) + " n " + std::to_string(c.n) +
         " k " + std::to_string(c.k) + " layouts " + std::to_string(c.a_layout) +
         std::to_string(c.b_layout) + std::to_string(c.c_layout) + std::to_string(c.d_layout) +
         " batch dims " + std::to_string(c.c_batch.size()) + " d " + std::to_string(c.with_d) +
         (c.in_place ? " in place" : "") + " alpha " + std::to_string(c.alpha);
}

std::vector<int64_t> join(std::vector<int64_t> x, int64_t rows, int64_t cols) {
  x.push_back(rows);
  x.push_back(cols);
  return x;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Every element right, nothing outside them written; fails at the first difference.
void check_always(const Case& c, Pool* pool = nullptr, int32_t force_path = -1) {
  Matrix a = make(c.dtype, join(c.a_batch, c.m, c.k), c.a_layout);
  Matrix b = make(c.dtype, join(c.b_batch, c.k, c.n), c.b_layout);
  Matrix out = make(c.dtype, join(c.c_batch, c.m, c.n), c.c_layout);
  Matrix d = c.in_place ? out : make(c.dtype, c.d_size.empty() ? out.size : c.d_size, c.d_layout);
  fill(a);
  fill(b);
  fill(d);
  const tt_scalar alpha = {TT_SCALAR_FLOAT, 0, 0, c.alpha, 0};
  const tt_scalar beta = {TT_SCALAR_FLOAT, 0, 0, c.beta, 0};
  Matrix want = c.in_place ? d : out;
  const bool complex = matmul_is_complex(c.dtype);
  std::vector<Complex> x(size_t(c.m * c.k));
  std::vector<Complex> y(size_t(c.k * c.n));
  for_each_index(c.c_batch, [&](const auto& batch) {
    for (int64_t i = 0; i < c.m; i++)
      for (int64_t p = 0; p < c.k; p++)
        x[size_t(i * c.k + p)] = get(a.broadcast_at(batch, i, p), c.dtype);
    for (int64_t j = 0; j < c.n; j++)
      for (int64_t p = 0; p < c.k; p++)
        y[size_t(j * c.k + p)] = get(b.broadcast_at(batch, p, j), c.dtype);
    for (int64_t i = 0; i < c.m; i++)
      for (int64_t j = 0; j < c.n; j++) {
        const Complex* u = x.data() + i * c.k;
        const Complex* v = y.data() + j * c.k;
        double re = 0, im = 0;
        for (int64_t p = 0; p < c.k; p++) re += u[p].real() * v[p].real();
        for (int64_t p = 0; complex && p < c.k; p++) {
          re -= u[p].imag() * v[p].imag();
          im += u[p].real() * v[p].imag() + u[p].imag() * v[p].real();
        }
        Complex sum = Complex(re, im) * c.alpha;
        if (c.with_d) sum += c.beta * get(d.broadcast_at(batch, i, j), c.dtype);
        put(want.broadcast_at(batch, i, j), c.dtype, sum);
      }
  });
  for (Variant v : variants(c.dtype)) {
    Matrix got = c.in_place ? d : out;
    const MatmulOperand addend = c.in_place ? got.operand() : d.operand();
    MatmulPlan plan;
    matmul_build(&plan, c.dtype, a.operand(), b.operand(), c.with_d ? &addend : nullptr,
                 got.operand(), matmul_scalar(alpha), matmul_scalar(beta));
    if (force_path >= 0) plan.path = force_path;
    use_variant(&plan, v);
    Workspace workspace;
    plan.workspace = workspace.get(matmul_workspace_bytes(plan));
    ASSERT_EQ(run_variant(plan, v, pool), TT_OK);
    ASSERT_TRUE(workspace.intact()) << describe(c, v);
    if (got.bytes == want.bytes) continue;
    for_each_index(out.size, [&](const auto& i) {
      ASSERT_EQ(get(got.at(i), c.dtype), get(want.at(i), c.dtype))
          << describe(c, v) << " at " << i[i.size() - 2] << "," << i.back();
    });
    ASSERT_TRUE(got.bytes == want.bytes) << "written outside the result: " << describe(c, v);
  }
}

void check(const Case& c, Pool* pool = nullptr, int32_t force_path = -1) {
  // A sanitizer makes the reference 20 times slower: every eighth case will do.
  static int count = 0;
  if ((kSanitized && count++ % 8) || left_out()) return;
  check_always(c, pool, force_path);
}

Case simple(int32_t dtype, int64_t m, int64_t n, int64_t k) {
  return {dtype,     {},        {},        {},    m,     n, k, kRowMajor,
          kRowMajor, kRowMajor, kRowMajor, false, false, 1, 0, {}};
}

constexpr int64_t kSizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  13, 14,  15,
                              16, 17, 29, 31, 32, 33, 47, 64, 65, 101, 130};
int64_t pick_size() { return kSizes[pick(0, int64_t(std::size(kSizes)) - 1)]; }

TEST(Matmul, EveryDtypeAndLayout) {
  for (int32_t dtype : kDtypes)
    for (int a = 0; a < kNumLayouts; a++)
      for (int b = 0; b < kNumLayouts; b++)
        for (int out : {kRowMajor, kColMajor, kPaddedRows, kEveryOther}) {
          Case c = simple(dtype, pick_size(), pick_size(), pick_size());
          c.a_layout = a;
          c.b_layout = b;
          c.c_layout = out;
          ASSERT_NO_FATAL_FAILURE(check(c));
        }
}

TEST(Matmul, RandomShapesScalarsAndAddends) {
  for (int round = 0; round < 1500; round++) {
    Case c = simple(kDtypes[round % std::size(kDtypes)], pick_size(), pick_size(), pick_size());
    c.a_layout = int(pick(0, 3));
    c.b_layout = int(pick(0, 3));
    c.c_layout = int(pick(0, 3));
    c.d_layout = int(pick(0, 3));
    c.with_d = pick(0, 1);
    c.in_place = c.with_d && pick(0, 3) == 0;
    c.alpha = pick(0, 1) ? 1 : 2;
    c.beta = pick(0, 1) ? 1 : 3;
    if (c.with_d && !c.in_place) c.d_size = {pick(0, 1) ? c.m : 1, pick(0, 1) ? c.n : 1};
    ASSERT_NO_FATAL_FAILURE(check(c));
  }
}

TEST(Matmul, BatchesBroadcast) {
  for (int round = 0; round < 800; round++) {
    Case c = simple(kDtypes[round % std::size(kDtypes)], pick(0, 9), pick(1, 20), pick(0, 20));
    if (round % 10 == 0) {
      c.m = pick(20, 70);
      c.n = pick(20, 70);
      c.k = pick(60, 80);
    }
    const int64_t dims = pick(1, 3);
    for (int64_t i = 0; i < dims; i++) {
      const int64_t size = pick(0, 20) == 0 ? 0 : pick(1, 4);
      const int64_t which = pick(0, 3);
      c.c_batch.push_back(size);
      c.a_batch.push_back(which == 1 ? 1 : size);
      c.b_batch.push_back(which == 2 ? 1 : size);
    }
    // A shorter batch broadcasts on the left.
    if (pick(0, 2) == 0) c.b_batch.erase(c.b_batch.begin());
    c.a_layout = int(pick(0, 3));
    c.b_layout = int(pick(0, 3));
    c.c_layout = int(pick(0, 3));
    c.d_layout = int(pick(0, 3));
    c.with_d = pick(0, 1);
    c.beta = 1;
    if (pick(0, 1)) c.d_size = {1, c.n};
    ASSERT_NO_FATAL_FAILURE(check(c));
  }
}

TEST(Matmul, FewRowsOrColumns) {
  for (int32_t dtype : {TT_F32, TT_F64, TT_F16, TT_BF16})
    for (int64_t few : {1, 3, 4, 8, 9, 16, 17})
      for (int64_t n : {1, 65, 550})
        for (int64_t k : {1, 131})
          for (int layout = 0; layout < 8; layout++) {
            Case c = simple(dtype, few, n, k);
            if (layout & 1) std::swap(c.m, c.n);
            c.a_layout = layout & 2 ? kColMajor : kRowMajor;
            c.b_layout = layout & 4 ? kColMajor : kRowMajor;
            c.with_d = layout % 3 == 1;
            c.beta = 1;
            c.d_size = {1, c.n};
            ASSERT_NO_FATAL_FAILURE(check(c));
          }
}

TEST(Matmul, FewRowsOfManyColumns) {
  for (int32_t dtype : {TT_F32, TT_F64, TT_F16, TT_BF16})
    for (int64_t m : {1, 3, 8})
      for (int layout : {kRowMajor, kColMajor}) {
        Case c = simple(dtype, m, 1100, 70);
        c.b_layout = layout;
        ASSERT_NO_FATAL_FAILURE(check(c));
      }
}

TEST(Matmul, DeepSums) {
  for (int32_t dtype : kDtypes)
    for (int64_t k : {511, 512, 513, 1100}) {
      Case c = simple(dtype, 37, 70, k);
      // f16 holds these sums to 2048 exactly, and is rounded once beyond.
      c.a_layout = kPaddedRows;
      c.with_d = true;
      c.alpha = 2;
      c.beta = 1;
      ASSERT_NO_FATAL_FAILURE(check(c));
    }
}

// k divided into pieces: every way in which their sums are stored.
TEST(Matmul, LongSumsInPieces) {
  for (int32_t dtype : kDtypes)
    for (int layout : {kRowMajor, kColMajor, kEveryOther}) {
      Case c = simple(dtype, 20, 21, 8200);
      c.a_layout = layout;
      c.b_layout = kPaddedRows;
      c.c_layout = layout;
      ASSERT_NO_FATAL_FAILURE(check(c));
      c.m = 130;
      c.n = 3;
      c.with_d = true;
      c.alpha = 2;
      c.beta = 3;
      c.d_size = {1, 3};
      ASSERT_NO_FATAL_FAILURE(check(c));
      c = simple(dtype, 3, 70, 9000);
      c.b_layout = layout;
      c.with_d = c.in_place = true;
      c.beta = 1;
      ASSERT_NO_FATAL_FAILURE(check(c));
      c = simple(dtype, 3, 5, 20500);
      c.a_batch = {2, 1};
      c.b_batch = {1, 2};
      c.c_batch = {2, 2};
      c.a_layout = layout;
      c.c_layout = kPaddedRows;
      c.with_d = true;
      c.beta = 1;
      ASSERT_NO_FATAL_FAILURE(check(c));
    }
}

// Each matrix of a batch on one thread.
TEST(Matmul, BatchesOfShortSums) {
  for (int32_t dtype : kDtypes) {
    Case c = simple(dtype, 24, 20, 60);
    c.a_batch = {40, 1};
    c.b_batch = c.c_batch = {40, 3};
    c.a_layout = kPaddedRows;
    c.c_layout = kEveryOther;
    c.with_d = true;
    c.beta = 2;
    ASSERT_NO_FATAL_FAILURE(check(c));
    c.k = 900;
    c.a_batch = c.b_batch = c.c_batch = {35};  // more than one pass over panels
    ASSERT_NO_FATAL_FAILURE(check(c));
  }
}

TEST(Matmul, ManyBlocks) {
  for (int32_t dtype : {TT_F32, TT_F64, TT_BF16, TT_F16, TT_C64, TT_I32}) {
    Case c = simple(dtype, 350, 530, 65);
    c.b_layout = kColMajor;
    ASSERT_NO_FATAL_FAILURE(check(c));
    c = simple(dtype, 1030, 67, 400);
    c.a_layout = kColMajor;
    ASSERT_NO_FATAL_FAILURE(check(c));
  }
  ASSERT_NO_FATAL_FAILURE(check(simple(TT_F32, 4100, 5, 66)));
  ASSERT_NO_FATAL_FAILURE(check(simple(TT_F32, 70, 4200, 66)));
}

// bf16 by tiles: several passes along k, blocks of k and of columns, whole panels and their ends.
TEST(Matmul, ManyTiles) {
  struct Shape {
    int64_t m, n, k;
    int a_layout, d_columns;
  };
  for (const Shape& s : {Shape{64, 600, 96, kRowMajor, 600}, Shape{150, 70, 700, kRowMajor, 1},
                         Shape{65, 40, 2112, kRowMajor, 40}, Shape{33, 48, 2100, kColMajor, 48},
                         Shape{16, 33, 1280, kRowMajor, 33}, Shape{530, 17, 64, kPaddedRows, 17}})
    for (bool with_d : {false, true}) {
      Case c = simple(TT_BF16, s.m, s.n, s.k);
      c.a_layout = s.a_layout;
      c.with_d = with_d;
      c.alpha = with_d && s.m % 2 ? 2 : 1;
      c.beta = 1;
      c.d_size = {s.m % 4 ? s.m : 1, s.d_columns};
      ASSERT_NO_FATAL_FAILURE(check(c));
    }
}

// The real parts of a matrix's elements, row by row.
std::vector<double> values(Matrix& x) {
  std::vector<double> list;
  for_each_index(x.size, [&](const auto& i) { list.push_back(get(x.at(i), x.dtype).real()); });
  return list;
}

// A sum of products in double, and the sum of their magnitudes.
struct Sum {
  double value = 0, size = 0;
};

// Those of a (m, k) times b (k, n), row by row.
std::vector<Sum> sums(Matrix& a, Matrix& b) {
  const int64_t m = a.size[0];
  const int64_t k = a.size[1];
  const int64_t n = b.size[1];
  const std::vector<double> x = values(a);
  const std::vector<double> y = values(b);
  std::vector<Sum> list(size_t(m * n));
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) {
        const double term = x[size_t(i * k + p)] * y[size_t(p * n + j)];
        Sum& sum = list[size_t(i * n + j)];
        sum.value += term;
        sum.size += std::abs(term);
      }
  return list;
}

// Random reals: |error| <= (k + 8) eps * sum |a||b|.
TEST(Matmul, RoundingIsBounded) {
  std::normal_distribution<double> normal;
  for (int32_t dtype : {TT_F32, TT_F64})
    for (int64_t m : {1, 4, 32, 130})
      for (int64_t k : {64, 500}) {
        const int64_t n = 75;
        Matrix a = make(dtype, {m, k}, kRowMajor);
        Matrix b = make(dtype, {k, n}, m % 8 ? kColMajor : kRowMajor);
        Matrix c = make(dtype, {m, n}, kRowMajor);
        for (Matrix* x : {&a, &b})
          for_each_index(x->size, [&](const auto& i) { put(x->at(i), dtype, normal(rng)); });
        const std::vector<Sum> want = sums(a, b);
        const double eps = dtype == TT_F32 ? 0x1p-24 : 0x1p-53;
        for (Variant v : variants(dtype)) {
          MatmulPlan plan;
          matmul_build(&plan, dtype, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne,
                       {});
          use_variant(&plan, v);
          Workspace workspace;
          plan.workspace = workspace.get(matmul_workspace_bytes(plan));
          ASSERT_EQ(run_variant(plan, v), TT_OK);
          const std::vector<double> got = values(c);
          for (size_t i = 0; i < got.size(); i++)
            ASSERT_NEAR(got[i], want[i].value, double(k + 8) * eps * want[i].size)
                << isa_name(v.isa) << (v.pieces ? " by pieces" : "");
        }
      }
}

// The sums of the squares of the errors of c = a b, and of sums of equal chains of at most 192
// terms.
struct RoundingErrors {
  double of_c, of_chains;
};
void add_rounding_errors(Matrix& a, Matrix& b, Matrix& c, bool fused, RoundingErrors* errors) {
  const int64_t k = a.size[1];
  const int64_t n_chains = ceil_div(k, int64_t(192));
  const int64_t chain = ceil_div(k, n_chains);
  const std::vector<Sum> want = sums(a, b);
  const std::vector<double> x = values(a), y = values(b), got = values(c);
  for (size_t i = 0; i < want.size(); i++) {
    const size_t row = i / size_t(c.size[1]) * size_t(k);
    const size_t column = i % size_t(c.size[1]);
    float total = 0;
    float part = 0;
    for (int64_t p = 0; p < k; p++) {
      const auto u = float(x[row + size_t(p)]);
      const auto v = float(y[size_t(p) * size_t(c.size[1]) + column]);
      const float product = u * v;
      part = fused ? std::fma(u, v, part) : part + product;
      if ((p + 1) % chain && p + 1 < k) continue;
      total += part;
      part = 0;
    }
    errors->of_c += std::pow(got[i] - want[i].value, 2);
    errors->of_chains += std::pow(total - want[i].value, 2);
  }
}

// The small, packed and rows paths. The errors of several draws vary by a few percent.
TEST(Matmul, LongSumsErrAsShortChains) {
  constexpr int kDraws = 8;
  std::mt19937 own_rng(1);
  std::normal_distribution<double> normal;
  for (int64_t m : {4, 8, 24})
    for (int64_t k : {250, 512, 1000}) {
      Matrix a = make(TT_F32, {m, k}, kRowMajor);
      Matrix b = make(TT_F32, {k, 96}, kRowMajor);
      Matrix c = make(TT_F32, {m, 96}, kRowMajor);
      const std::vector<Variant> ways = variants(TT_F32);
      std::vector<RoundingErrors> errors(ways.size());
      for (int draw = 0; draw < kDraws; draw++) {
        for (Matrix* x : {&a, &b})
          for_each_index(x->size, [&](const auto& i) { put(x->at(i), TT_F32, normal(own_rng)); });
        for (size_t i = 0; i < ways.size(); i++) {
          MatmulPlan plan;
          matmul_build(&plan, TT_F32, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne,
                       {});
          use_variant(&plan, ways[i]);
          Workspace workspace;
          plan.workspace = workspace.get(matmul_workspace_bytes(plan));
          ASSERT_EQ(run_variant(plan, ways[i]), TT_OK);
          const bool fused = ways[i].isa != kIsaBaseline || TT_FUSED;
          add_rounding_errors(a, b, c, fused, &errors[i]);
        }
      }
      // Sums of pieces are rounded once for 32 terms.
      for (size_t i = 0; i < ways.size(); i++)
        ASSERT_LT(std::sqrt(errors[i].of_c),
                  (ways[i].pieces ? 0.5 : 1.05) * std::sqrt(errors[i].of_chains))
            << isa_name(ways[i].isa) << " " << m << " " << k;
    }
}

// RoundingIsBounded for a dtype of 16 bits, whose results are rounded once, by at most `unit` of
// them; subnormal factors of bf16 may be 0.
void check_rounding_of_halves(int32_t dtype, double unit) {
  std::normal_distribution<double> normal;
  for (int64_t m : {16, 33, 100})
    for (int64_t k : {32, 63, 770}) {
      const int64_t n = 75;
      Matrix a = make(dtype, {m, k}, m % 2 ? kColMajor : kRowMajor);
      Matrix b = make(dtype, {k, n}, m % 2 ? kRowMajor : kColMajor);
      Matrix c = make(dtype, {m, n}, kRowMajor);
      for (Matrix* x : {&a, &b})
        for_each_index(x->size, [&](const auto& i) { put(x->at(i), dtype, normal(rng)); });
      put(a.at({3, 5}), dtype, 0x1p-130);
      const std::vector<Sum> want = sums(a, b);
      for (Variant v : variants(dtype)) {
        MatmulPlan plan;
        matmul_build(&plan, dtype, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
        use_variant(&plan, v);
        Workspace workspace;
        plan.workspace = workspace.get(matmul_workspace_bytes(plan));
        ASSERT_EQ(run_variant(plan, v), TT_OK);
        const std::vector<double> got = values(c);
        for (size_t i = 0; i < got.size(); i++) {
          const Sum sum = want[i];
          const double bound = double(k + 8) * 0x1p-24 * sum.size + unit * std::abs(sum.value);
          ASSERT_NEAR(got[i], sum.value, bound) << isa_name(v.isa) << kWays[v.bf16] << v.pieces;
        }
      }
    }
}
TEST(Matmul, RoundingOfHalvesIsBounded) {
  ASSERT_NO_FATAL_FAILURE(check_rounding_of_halves(TT_BF16, 0x1p-8));
  ASSERT_NO_FATAL_FAILURE(check_rounding_of_halves(TT_F16, 0x1p-11));
}

// Infinities, NaNs and sums that no bf16 holds are the same with groups and tiles as without.
TEST(Matmul, Bf16KeepsInfinityAndNan) {
  Matrix a = make(TT_BF16, {40, 64}, kRowMajor);
  Matrix b = make(TT_BF16, {64, 50}, kRowMajor);
  fill(a);
  fill(b);
  put(a.at({3, 5}), TT_BF16, HUGE_VAL);
  put(a.at({20, 7}), TT_BF16, std::nan(""));
  for (int64_t j = 0; j < 50; j++) {
    put(b.at({9, j}), TT_BF16, 0x1.fep126);
    put(b.at({10, j}), TT_BF16, 0x1p119);
  }
  for (int64_t i = 0; i < 40; i++) {
    put(a.at({i, 9}), TT_BF16, double(i % 3 - 1));
    put(a.at({i, 10}), TT_BF16, 0.0);
  }
  // The sum is half a unit above the largest bf16. Other terms must be 0: BFMMLA rounds to odd, so
  // that the smallest one would decide.
  for (int64_t k = 0; k < 64; k++) put(a.at({11, k}), TT_BF16, 0.0);
  put(a.at({11, 9}), TT_BF16, 2.0);
  put(a.at({11, 10}), TT_BF16, 1.0);
  Matrix want;
  for (Variant v : variants(TT_BF16)) {
    Matrix c = make(TT_BF16, {40, 50}, kRowMajor);
    MatmulPlan plan;
    matmul_build(&plan, TT_BF16, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
    Workspace workspace;
    plan.workspace = workspace.get(matmul_workspace_bytes(plan));
    ASSERT_EQ(run_variant(plan, v), TT_OK);
    if (want.bytes.empty()) want = c;
    for_each_index(c.size, [&](const auto& i) {
      const double got = get(c.at(i), TT_BF16).real();
      const double expected = get(want.at(i), TT_BF16).real();
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
          << isa_name(v.isa) << kWays[v.bf16] << " at " << i[0] << "," << i[1] << ": " << got
          << " for " << expected;
    });
  }
}

// Instructions that multiply groups take subnormal factors as 0; widened ones are kept.
TEST(Matmul, Bf16UsesGroups) {
  if (!has_bf16_products() || (kBf16Isa == kIsaAvx512 && !TT_HAVE_AVX512)) return;
  constexpr int64_t kSize = 260;  // too large for the paths that widen
  Matrix a = make(TT_BF16, {kSize, kSize}, kRowMajor);
  Matrix b = make(TT_BF16, {kSize, kSize}, kRowMajor);
  Matrix c = make(TT_BF16, {kSize, kSize}, kRowMajor);
  for_each_index(a.size, [&](const auto& i) {
    put(a.at(i), TT_BF16, 0x1p-130);
    put(b.at(i), TT_BF16, 0x1p100);
  });
  MatmulPlan plan;
  matmul_build(&plan, TT_BF16, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
  Workspace workspace;
  plan.workspace = workspace.get(matmul_workspace_bytes(plan));
  ASSERT_EQ(run_variant(plan, {kBf16Isa, kBf16Groups}), TT_OK);
  ASSERT_EQ(get(c.at({3, 5}), TT_BF16).real(), 0);
  ASSERT_EQ(run_variant(plan, {kBf16Isa, kBf16Widened}), TT_OK);
  ASSERT_EQ(get(c.at({3, 5}), TT_BF16).real(), kSize * 0x1p-30);
}

#if TT_AMX_EMULATOR
// The variants above do use the tiles.
TEST(Matmul, Bf16UsesTiles) {
  if (best_isa() != kIsaAvx512 || has_amx_products()) return;
  ASSERT_NO_FATAL_FAILURE(check_always(simple(TT_BF16, 40, 40, 40)));
  const int64_t before = amx_emulator::executed();
  ASSERT_NO_FATAL_FAILURE(check_always(simple(TT_BF16, 15, 40, 31)));
  ASSERT_EQ(amx_emulator::executed(), before);
  ASSERT_NO_FATAL_FAILURE(check_always(simple(TT_BF16, 16, 16, 32)));
  ASSERT_EQ(amx_emulator::executed(), before + 7);  // configure, zero, two loads, add, store, free
  ASSERT_FALSE(amx_emulator::state().configured);
}
#endif

TEST(Matmul, NanAndInfReachTheirRowsAndColumnsOnly) {
  for (int64_t size : {5, 40, 70, 200})
    for (int64_t m : {int64_t(1), size}) {
      Matrix a = make(TT_F32, {m, size}, kRowMajor);
      Matrix b = make(TT_F32, {size, size}, kRowMajor);
      Matrix c = make(TT_F32, {m, size}, kRowMajor);
      fill(a);
      fill(b);
      const int64_t col = size - 2;
      put(b.at({size / 2, col}), TT_F32, std::nan(""));
      for (int64_t i = 0; i < m; i++) put(a.at({i, 1}), TT_F32, 1.0);
      put(b.at({1, 0}), TT_F32, HUGE_VAL);
      for (Isa isa : isas()) {
        MatmulPlan plan;
        matmul_build(&plan, TT_F32, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
        Workspace workspace;
        plan.workspace = workspace.get(matmul_workspace_bytes(plan));
        ASSERT_EQ(run_matmul(plan, isa, nullptr), TT_OK);
        for_each_index(c.size, [&](const auto& i) {
          const double v = get(c.at(i), TT_F32).real();
          ASSERT_EQ(std::isnan(v), i[1] == col) << i[1];
          ASSERT_EQ(std::isinf(v), i[1] == 0) << i[1];
        });
      }
    }
}

// Rows or columns with numbers that have no pieces are multiplied by vectors: results have their
// bits. The first 32 rows are fine, unless it is a column.
struct OddNumbers {
  double in_a, in_b;
};
void check_odd_numbers(int32_t dtype, const std::vector<OddNumbers>& list, double unit) {
  const Variant vectors = {kIsaAvx512, kBf16Widened};
  const Variant pieces = {kIsaAvx512, kBf16Widened, true};
  std::normal_distribution<double> normal;
  for (const OddNumbers& odd : list)
    for (int64_t k : {40, 1200}) {  // the odd numbers are in the last block of k
      Matrix a = make(dtype, {50, k}, kRowMajor);
      Matrix b = make(dtype, {k, 70}, kColMajor);
      Matrix c = make(dtype, {50, 70}, kRowMajor);
      for (Matrix* x : {&a, &b, &c})
        for_each_index(x->size, [&](const auto& i) { put(x->at(i), dtype, normal(rng)); });
      put(a.at({33, k - 3}), dtype, odd.in_a);
      put(b.at({k - 5, 60}), dtype, odd.in_b);
      const Matrix before = c;
      Matrix want = c;
      for (Variant v : {vectors, pieces}) {
        c = before;  // the addend, too
        const MatmulOperand addend = c.operand();
        MatmulPlan plan;
        matmul_build(&plan, dtype, a.operand(), b.operand(), &addend, c.operand(), kMatmulOne,
                     kMatmulOne);
        use_variant(&plan, v);
        Workspace workspace;
        plan.workspace = workspace.get(matmul_workspace_bytes(plan));
        ASSERT_EQ(run_variant(plan, v), TT_OK);
        ASSERT_TRUE(workspace.intact());
        if (!v.pieces) want = c;
        for_each_index(c.size, [&](const auto& i) {
          const double x = get(want.at(i), dtype).real();
          const double y = get(c.at(i), dtype).real();
          ASSERT_EQ(std::isnan(x), std::isnan(y)) << odd.in_a << " " << odd.in_b << " k " << k;
          if (std::isnan(x) || x == y) return;
          ASSERT_LT(i[0], 32) << odd.in_a << " " << odd.in_b << " k " << k;
          ASSERT_NEAR(x, y, 1e-5 * (1e3 + std::abs(x)) + unit * std::abs(x));
        });
      }
    }
}
TEST(Matmul, NumbersWithoutPiecesHaveTheBitsOfVectors) {
  if (variants(TT_F32).size() == isas().size()) GTEST_SKIP() << "no tiles here";
  const double inf = HUGE_VAL;
  const double nan = std::nan("");
  const std::vector<OddNumbers> not_finite = {{inf, 1}, {1, -inf}, {nan, 1}, {1, nan}};
  const std::vector<OddNumbers> far_from_1 = {{0x1p-140, 1},      {1, 0x1p-126},
                                              {3.4e38, 1},        {0x1p60, 0x1p60},
                                              {0x1p-60, 0x1p-60}, {0x1p-90, 0x1p-20}};
  ASSERT_NO_FATAL_FAILURE(check_odd_numbers(TT_F32, not_finite, 0));
  ASSERT_NO_FATAL_FAILURE(check_odd_numbers(TT_F32, far_from_1, 0));
  ASSERT_NO_FATAL_FAILURE(check_odd_numbers(TT_F16, not_finite, 0x1p-10));
}

// Columns of b whose pieces are packed before: one and several blocks of k and of columns.
void check_packed_pieces(int32_t dtype) {
  const Variant pieces = {kIsaAvx512, kBf16Widened, true};
  std::normal_distribution<double> normal;
  struct Size {
    int64_t m, n, k;
  };
  const double inf = HUGE_VAL;
  for (const Size& s : {Size{17, 64, 96}, Size{35, 70, 40}, Size{33, 100, 1200}, Size{3, 4200, 64}})
    for (const double in_a : {1., inf, 0x1p-140})
      for (const double in_b : {1., -inf, 0x1p-126}) {
        Matrix a = make(dtype, {s.m, s.k}, kRowMajor);
        Matrix b = make(dtype, {s.k, s.n}, kColMajor);
        Matrix c = make(dtype, {s.m, s.n}, kRowMajor);
        for (Matrix* x : {&a, &b, &c})
          for_each_index(x->size, [&](const auto& i) { put(x->at(i), dtype, normal(rng)); });
        put(a.at({s.m - 1, s.k - 3}), dtype, in_a);
        put(b.at({s.k - 5, 34}), dtype, in_b);
        const Matrix before = c;
        const MatmulOperand addend = c.operand();
        MatmulPlan plan;
        matmul_build(&plan, dtype, a.operand(), b.operand(), &addend, c.operand(), kMatmulOne,
                     kMatmulOne);
        use_variant(&plan, pieces);
        Workspace workspace;
        plan.workspace = workspace.get(matmul_workspace_bytes(plan));
        ASSERT_TRUE(matmul_can_pack_pieces(plan));
        ASSERT_EQ(run_variant(plan, pieces), TT_OK);
        const Matrix want = c;
        Workspace packed;
        MatmulPlan packs = plan;
        packs.path = kMatmulPackPieces;
        packs.c = static_cast<char*>(packed.get(matmul_packed_pieces_bytes(plan)));
        ASSERT_EQ(run_variant(packs, pieces), TT_OK);
        plan.path = kMatmulPackedPieces;
        plan.b = packs.c;
        memcpy(c.data(), before.bytes.data() + before.offset, size_t(s.m * s.n * kItemSize[dtype]));
        ASSERT_EQ(run_variant(plan, pieces), TT_OK);
        ASSERT_TRUE(workspace.intact() && packed.intact());
        EXPECT_EQ(c.bytes, want.bytes)
            << s.m << " x " << s.n << " x " << s.k << ", " << in_a << " " << in_b;
      }
}
TEST(Matmul, PiecesPackedBeforeGiveTheSameBits) {
  if (variants(TT_F32).size() == isas().size()) GTEST_SKIP() << "no tiles here";
  ASSERT_NO_FATAL_FAILURE(check_packed_pieces(TT_F32));
  ASSERT_NO_FATAL_FAILURE(check_packed_pieces(TT_F16));
}

// Numbers far from 1, whose smallest products are just large enough for pieces, and products that
// pieces express exactly.
TEST(Matmul, PiecesExpressProducts) {
  std::uniform_real_distribution<double> uniform(1, 2);
  for (Variant v : variants(TT_F32))
    for (const int exponent : {-50, 0, 50}) {
      const int64_t m = 40, n = 33, k = 64;
      Matrix a = make(TT_F32, {m, k}, kRowMajor);
      Matrix b = make(TT_F32, {k, n}, kRowMajor);
      Matrix c = make(TT_F32, {m, n}, kRowMajor);
      for_each_index(a.size, [&](const auto& i) {
        put(a.at(i), TT_F32, i[1] == i[0] ? std::ldexp(uniform(rng), exponent) : 0);
      });
      for_each_index(
          b.size, [&](const auto& i) { put(b.at(i), TT_F32, std::ldexp(uniform(rng), exponent)); });
      MatmulPlan plan;
      matmul_build(&plan, TT_F32, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
      use_variant(&plan, v);
      Workspace workspace;
      plan.workspace = workspace.get(matmul_workspace_bytes(plan));
      ASSERT_EQ(run_variant(plan, v), TT_OK);
      for_each_index(c.size, [&](const auto& i) {
        const double x = get(a.at({i[0], i[0]}), TT_F32).real();
        const double want = x * get(b.at({i[0], i[1]}), TT_F32).real();
        ASSERT_NEAR(get(c.at(i), TT_F32).real(), want, 0x1p-22 * want) << exponent;
      });
    }
}

// All products of float16, of subnormal ones, too, are exact until they are rounded.
TEST(Matmul, PiecesOfFloat16AreExact) {
  std::uniform_int_distribution<int> finite(0, 0x7bff);
  for (Variant v : variants(TT_F16)) {
    const int64_t m = 40, n = 65, k = 64;
    Matrix a = make(TT_F16, {m, k}, kRowMajor);
    Matrix b = make(TT_F16, {k, n}, kRowMajor);
    Matrix c = make(TT_F16, {m, n}, kRowMajor);
    for_each_index(a.size, [&](const auto& i) {
      put(a.at(i), TT_F16, i[1] == i[0] ? f16_to_float(uint16_t(finite(rng))) : 0);
    });
    for_each_index(
        b.size, [&](const auto& i) { put(b.at(i), TT_F16, -f16_to_float(uint16_t(finite(rng)))); });
    MatmulPlan plan;
    matmul_build(&plan, TT_F16, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne, {});
    use_variant(&plan, v);
    Workspace workspace;
    plan.workspace = workspace.get(matmul_workspace_bytes(plan));
    ASSERT_EQ(run_variant(plan, v), TT_OK);
    for_each_index(c.size, [&](const auto& i) {
      const double x = get(a.at({i[0], i[0]}), TT_F16).real();
      const double y = get(b.at({i[0], i[1]}), TT_F16).real();
      const double want = f16_to_float(float_to_f16(float(x * y)));
      ASSERT_EQ(get(c.at(i), TT_F16).real(), want) << isa_name(v.isa) << v.pieces;
    });
  }
}

#if TT_HAVE_NEON
// A number of one of 40 exponents from `least` on, few of them 0, subnormal, infinite or NaN.
uint32_t any_float(uint32_t least) {
  const uint32_t fraction = uint32_t(rng()) & 0x807fffff;
  switch (pick(0, 4000)) {
    case 0: return 0x7f800000;
    case 1: return 0xffc12345;
    case 2: return fraction;
    case 3: return 0x80000000;
    default: return fraction | (least + uint32_t(pick(0, 39))) << 23;
  }
}

// Whether no, few or many products are subnormal, which NEON takes as 0.
TEST(Matmul, NeonHasTheBitsOfTheBaseline) {
  ASSERT_EQ(best_isa(), 1) << "this processor has no NEON";
  struct Shape {
    int64_t m, n, k;
    int layout;
  };
  for (const Shape& s :
       {Shape{3, 7, 5, kRowMajor}, Shape{4, 8, 6, kEveryOther}, Shape{13, 21, 200, kRowMajor},
        Shape{33, 14, 300, kRowMajor}, Shape{30, 43, 270, kColMajor}, Shape{2, 50, 90, kRowMajor}})
    for (int32_t dtype : {TT_F32, TT_C64})
      for (uint32_t least : {47, 63, 70, 108}) {
        Matrix a = make(dtype, {s.m, s.k}, s.layout);
        Matrix b = make(dtype, {s.k, s.n}, s.layout);
        Matrix d = make(dtype, {s.m, s.n}, kRowMajor);
        for (Matrix* x : {&a, &b, &d})
          for (char* at = x->data(); at + 4 <= x->bytes.data() + x->bytes.size(); at += 4) {
            const uint32_t bits = any_float(least);
            memcpy(at, &bits, sizeof bits);
          }
        Matrix want = make(dtype, {s.m, s.n}, kRowMajor);
        const MatmulOperand addend = d.operand();
        for (bool with_d : {false, true})
          for (Isa isa : isas()) {
            Matrix c = make(dtype, {s.m, s.n}, kRowMajor);
            MatmulPlan plan;
            matmul_build(&plan, dtype, a.operand(), b.operand(), with_d ? &addend : nullptr,
                         c.operand(), kMatmulOne, kMatmulOne);
            Workspace workspace;
            plan.workspace = workspace.get(matmul_workspace_bytes(plan));
            ASSERT_EQ(run_matmul(plan, isa, nullptr), TT_OK);
            if (isa == kIsaBaseline) want = c;
            ASSERT_TRUE(want.bytes == c.bytes)
                << "dtype " << dtype << " m " << s.m << " k " << s.k << " least " << least;
          }
      }
}
#endif

// Runs every kernel call in `parts` pieces: what any number of threads may do.
TEST(Matmul, BitsDoNotDependOnTheNumberOfThreads) {
  Arena* arena = arena_new(nullptr);
  Pool* pool = pool_new(arena);
  ASSERT_TRUE(pool);
  std::normal_distribution<double> normal;
  struct Shape {
    int64_t batch, m, n, k;
    int b_layout;
  };
  for (const Shape& s : {Shape{1, 700, 650, 500, kRowMajor}, Shape{1000, 24, 24, 24, kColMajor},
                         Shape{1, 2, 4000, 700, kColMajor}, Shape{1, 3, 4000, 700, kRowMajor},
                         Shape{1, 250, 200, 120, kRowMajor}, Shape{5, 200, 300, 390, kColMajor},
                         Shape{1, 20, 40, 20000, kRowMajor}, Shape{3, 3, 7, 20500, kColMajor},
                         Shape{70, 30, 30, 70, kRowMajor}})
    for (int32_t dtype : {TT_F32, TT_C64, TT_F64, TT_BF16, TT_F16}) {
      if (kSanitized && dtype != TT_F32) break;
      if (left_out()) continue;
      Matrix a = make(dtype, {s.batch, s.m, s.k}, kRowMajor);
      Matrix b = make(dtype, {s.batch, s.k, s.n}, s.b_layout);
      Matrix first = make(dtype, {s.batch, s.m, s.n}, kRowMajor);
      for (Matrix* x : {&a, &b})
        for_each_index(x->size, [&](const auto& i) { put(x->at(i), dtype, normal(rng)); });
      std::vector<Variant> ways;
      for (Isa isa : isas()) ways.push_back({isa, kBf16Widened});
      if (has_pieces(dtype) && has_amx_products()) ways.push_back({kIsaAvx512, kBf16Widened, true});
      for (Variant v : ways)
        for (int32_t threads : {1, 2, 3}) {
          ASSERT_EQ(pool_set_threads(pool, threads), TT_OK);
          Matrix c = first;
          MatmulPlan plan;
          matmul_build(&plan, dtype, a.operand(), b.operand(), nullptr, c.operand(), kMatmulOne,
                       {});
          use_variant(&plan, v);
          Workspace workspace;
          plan.workspace = workspace.get(matmul_workspace_bytes(plan));
          ASSERT_EQ(run_matmul(plan, v.isa, pool), TT_OK);
          ASSERT_TRUE(workspace.intact());
          if (threads == 1) first = c;
          else
            ASSERT_TRUE(first.bytes == c.bytes)
                << isa_name(v.isa) << " dtype " << dtype << " m " << s.m << " threads " << threads;
        }
    }
  pool_delete(pool);
  arena_release(arena);
}

}  // namespace
}  // namespace TT_NS
