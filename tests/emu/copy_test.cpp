// Copies between operands that are dense in different dimensions, of all sizes of elements: sides
// that tiles do not divide, rows that are aligned for 16 bytes, for 8, for an element only; planes
// of images with a bias.
#include "check.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/copy/transpose.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  int32_t dtype;
  int64_t rows, columns, batch;
  int64_t start;  // of both operands, elements
};
constexpr Case kCases[] = {
    {"bytes", TT_U8, 144, 112, 2, 0},
    {"bytes, not aligned", TT_BOOL, 100, 150, 1, 1},
    {"halves", TT_BF16, 80, 136, 2, 0},
    {"halves, 8 bytes", TT_F16, 196, 36, 2, 0},
    {"halves, not aligned", TT_I16, 49, 50, 3, 0},
    {"words, low tiles", TT_F32, 20, 144, 3, 0},
    {"words, high tiles", TT_I32, 300, 28, 2, 0},
    {"words, not aligned", TT_F32, 65, 67, 1, 1},
    {"pairs", TT_F64, 70, 66, 2, 0},
    {"pairs, not aligned", TT_I64, 41, 35, 3, 1},
    {"16 bytes", TT_C128, 33, 20, 8, 0},
};

void test_case(const Case& t) {
  const int64_t item = kItemSize[t.dtype];
  const int64_t n = t.rows * t.columns * t.batch;
  Numbers numbers;
  std::vector<Bytes16> from(size_t((n + t.start) * item / 16 + 1));
  std::vector<Bytes16> to(from.size());
  char* const in = reinterpret_cast<char*>(from.data()) + t.start * item;
  char* const out = reinterpret_cast<char*>(to.data()) + t.start * item;
  for (int64_t i = 0; i < n * item; i++) in[i] = char(numbers.next());
  ElementPlan p = {};
  p.n = n;
  p.n_operands = 2;
  p.ndim = 3;
  p.dtype[0] = p.dtype[1] = p.compute = t.dtype;
  p.ptr[0] = out;
  p.ptr[1] = in;
  const int64_t size[3] = {t.rows, t.columns, t.batch};
  const int64_t strides[2][3] = {{1, t.rows, t.rows * t.columns},
                                 {t.columns, 1, t.rows * t.columns}};
  for (int d = 0; d < 3; d++) {
    p.size[d] = size[d];
    for (int k = 0; k < 2; k++) p.stride[k][d] = strides[k][d] * item;
  }
  int32_t status = TT_INTERNAL;
  in_orders(t.name, to, [&] { check(cuda::transpose(p, nullptr, &status), t.name, status); });
  check(status == TT_OK, t.name, status);
  bool right = true;
  for (int64_t b = 0; b < t.batch; b++)
    for (int64_t r = 0; r < t.rows; r++)
      for (int64_t c = 0; c < t.columns; c++) {
        const int64_t image = b * t.rows * t.columns;
        const char* wanted = in + (image + r * t.columns + c) * item;
        right &= memcmp(out + (image + c * t.rows + r) * item, wanted, size_t(item)) == 0;
      }
  check(right, t.name, t.dtype);
}

void test_planes(int64_t images, int64_t pixels, int64_t channels) {
  const int64_t n = images * pixels * channels;
  Numbers numbers;
  std::vector<BF16> from, bias;
  std::vector<BF16> to = std::vector<BF16>(size_t(n));
  for (int64_t i = 0; i < n; i++) from.push_back(narrow_bf16(float(numbers.whole(-20, 20))));
  for (int64_t c = 0; c < channels; c++) bias.push_back(narrow_bf16(float(c)));
  const cuda::PlanesCopy copy = {reinterpret_cast<const char*>(from.data()),
                                 reinterpret_cast<const char*>(bias.data()),
                                 reinterpret_cast<char*>(to.data()),
                                 images,
                                 pixels,
                                 channels,
                                 TT_BF16};
  in_orders("planes", to, [&] { check(cuda::copy_planes(copy, nullptr) == TT_OK, "planes", 0); });
  bool right = true;
  for (int64_t i = 0; i < n; i++) {
    const int64_t pixel = i % pixels;
    const int64_t c = i / pixels % channels;
    const int64_t image = i / pixels / channels;
    const float value = widen(from[size_t((image * pixels + pixel) * channels + c)]);
    right &= widen(to[size_t(i)]) == value + float(c);
  }
  check(right, "planes", int(pixels));
}

}  // namespace

int main() {
  for (const Case& t : kCases)
    if (!EMU_TSAN || t.batch == 1) test_case(t);
  test_planes(3, 49, 40);
  test_planes(2, 5, 3);
  return finished();
}
