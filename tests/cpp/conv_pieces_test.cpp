// Convolution of float32 by the tiles of AMX, of the processor or emulated, against sums in double
// precision, and beside the kernels without tiles.
#include "amx_fixture.h"
#include "plan/conv_build.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace TT_NS {
namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

struct Case {
  int64_t n, groups, ci, co, height, width, kernel, stride, pad, dilation;
  int64_t out(int64_t in) const {
    return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  }
  Sizes x() const { return {n, groups * ci, height, width}; }
  Sizes w() const { return {groups * co, ci, kernel, kernel}; }
  Sizes y() const { return {n, groups * co, out(height), out(width)}; }
};
struct Results {
  Floats y, x, w;  // and gradients
};

class ConvPieces : public AmxTest {
 protected:
  Floats random(const Sizes& sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    std::normal_distribution<float> normal;
    Floats v(static_cast<size_t>(n));
    for (float& x : v) x = normal(rng);
    return v;
  }
  tt_tensor* tensor(const Floats& v, const Sizes& sizes, bool last = false) {
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_tensor_from_data(c, v.data(), TT_F32, sizes.data(), int(sizes.size()), &t), TT_OK);
    if (last) {
      tt_clone_opts opts = {};
      opts.set = TT_CLONE_MEMORY_FORMAT;
      opts.memory_format = TT_CHANNELS_LAST;
      EXPECT_EQ(tt_clone(c, t, &opts, &t), TT_OK);
    }
    EXPECT_EQ(tt_requires_grad_(c, t, 1), TT_OK);
    return t;
  }
  Floats values_of(const tt_tensor* t) {
    tt_tensor* dense = nullptr;
    EXPECT_EQ(tt_contiguous(c, t, &dense), TT_OK);
    const auto* data = static_cast<const float*>(tt_tensor_data(dense));
    return Floats(data, data + tt_tensor_numel(dense));
  }
  Floats gradient_of(const tt_tensor* t) {
    tt_tensor* grad = nullptr;
    EXPECT_EQ(tt_tensor_grad(c, t, &grad), TT_OK);
    return values_of(grad);
  }
  Results compute(const Case& t, bool last, const Floats& x, const Floats& w, const Floats& bias,
                  const Floats& grad) {
    tt_tensor* input = tensor(x, t.x(), last);
    tt_tensor* weight = tensor(w, t.w());
    const int64_t stride[2] = {t.stride, t.stride}, pad[2] = {t.pad, t.pad};
    const int64_t dilation[2] = {t.dilation, t.dilation};
    tt_conv2d_opts opts = {};
    opts.set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_DILATION | TT_CONV2D_GROUPS;
    opts.stride = stride;
    opts.padding = pad;
    opts.dilation = dilation;
    opts.n_stride = opts.n_padding = opts.n_dilation = 2;
    opts.groups = t.groups;
    tt_tensor* y = nullptr;
    EXPECT_EQ(tt_conv2d(c, input, weight, tensor(bias, {t.groups * t.co}), &opts, &y), TT_OK);
    tt_backward_opts back = {};
    back.set = TT_BACKWARD_GRADIENT;
    back.gradient = tensor(grad, t.y(), last);
    EXPECT_EQ(tt_backward(c, y, &back), TT_OK);
    return {values_of(y), gradient_of(input), gradient_of(weight)};
  }
  // Runs fn, which uses tiles if it may.
  template <class Fn> Results with_tiles(bool tiles, const Fn& fn) {
#if TT_AMX_EMULATOR
    const int64_t before = amx_emulator::executed();
#endif
    assume_amx_products(tiles);
    const Results got = fn();
    assume_amx_products(of_processor);
#if TT_AMX_EMULATOR
    if (!of_processor) {
      EXPECT_EQ(amx_emulator::executed() > before, tiles);
      EXPECT_FALSE(amx_emulator::state().configured);
    }
#endif
    return got;
  }
  void check(const Case& t, bool last);

  std::mt19937 rng{11};
};

// Root mean square of the errors, by that of the sums.
double error(const Floats& got, const std::vector<double>& want) {
  double errors = 0, squares = 0;
  for (size_t i = 0; i < want.size(); i++) {
    errors += (got[i] - want[i]) * (got[i] - want[i]);
    squares += want[i] * want[i];
  }
  return std::sqrt(errors / squares);
}

void ConvPieces::check(const Case& t, bool last) {
  const Floats x = random(t.x()), w = random(t.w()), g = random(t.y());
  const Floats b = random({t.groups * t.co});
  std::vector<double> want_y(g.size()), want_x(x.size()), want_w(w.size());
  const int64_t high = t.out(t.height), wide = t.out(t.width);
  for (size_t o = 0; o < g.size(); o++) {
    const int64_t left = int64_t(o) % wide, top = int64_t(o) / wide % high;
    const int64_t co = int64_t(o) / wide / high % (t.groups * t.co);
    const int64_t image = int64_t(o) / wide / high / (t.groups * t.co);
    want_y[o] += double(b[size_t(co)]);
    for (int64_t ci = 0; ci < t.ci; ci++)
      for (int64_t k = 0; k < t.kernel * t.kernel; k++) {
        const int64_t i = top * t.stride - t.pad + k / t.kernel * t.dilation;
        const int64_t j = left * t.stride - t.pad + k % t.kernel * t.dilation;
        if (i < 0 || i >= t.height || j < 0 || j >= t.width) continue;
        const int64_t channel = co / t.co * t.ci + ci;
        const auto at = size_t(((image * t.groups * t.ci + channel) * t.height + i) * t.width + j);
        const auto of = size_t((co * t.ci + ci) * t.kernel * t.kernel + k);
        want_y[o] += double(x[at]) * double(w[of]);
        want_x[at] += double(g[o]) * double(w[of]);
        want_w[of] += double(g[o]) * double(x[at]);
      }
  }
  const auto fn = [&] { return compute(t, last, x, w, b, g); };
  const Results vectors = with_tiles(false, fn);
  EXPECT_LE(error(vectors.y, want_y), 4e-7);
  EXPECT_LE(error(vectors.x, want_x), 4e-7);
  EXPECT_LE(error(vectors.w, want_w), 4e-7);
  if (!usable) return;
  // Tiles round 32 terms once.
  const Results tiles = with_tiles(true, fn);
  EXPECT_LE(error(tiles.y, want_y), 0.75 * error(vectors.y, want_y));
  EXPECT_LE(error(tiles.x, want_x), 0.75 * error(vectors.x, want_x));
  EXPECT_LE(error(tiles.w, want_w), 4e-7);
}

TEST_F(ConvPieces, Sums) {
  //                  n  g  ci  co  h   w  k  s  p  d
  const Case cases[] = {
      {1, 1, 64, 64, 16, 15, 3, 1, 1, 1},  {7, 1, 60, 62, 7, 6, 3, 1, 1, 1},
      {3, 1, 32, 48, 17, 16, 3, 2, 1, 1},  {2, 2, 32, 48, 14, 13, 3, 1, 2, 2},
      {2, 1, 64, 48, 21, 20, 4, 2, 1, 1},  {1, 1, 32, 300, 16, 14, 3, 1, 0, 1},
      {8, 1, 64, 64, 12, 14, 1, 2, 0, 1},  {1, 1, 800, 32, 13, 12, 3, 1, 1, 1},
      {1, 1, 32, 32, 5, 600, 3, 1, 1, 1},  {5, 1, 32, 64, 9, 9, 3, 1, 3, 1},
      {4, 1, 64, 64, 20, 20, 3, 2, 0, 3},  {4, 1, 32, 32, 19, 18, 5, 3, 2, 1},
      {1, 1, 32, 160, 24, 24, 3, 1, 1, 1}, {1, 1, 32, 192, 27, 27, 3, 1, 1, 1},
      {1, 1, 32, 160, 4, 405, 1, 1, 0, 1}, {1, 1, 192, 32, 41, 41, 3, 1, 1, 1},
  };
  for (const Case& t : cases) {
    SCOPED_TRACE(&t - cases);
    ASSERT_NO_FATAL_FAILURE(check(t, (&t - cases) % 2 == 0));
  }
}

// The sums of a unit, in blocks of 32 lines, fit their room.
TEST(ConvPiecesPlan, UnitsFitTheirRooms) {
  for (const int64_t co : {16, 40, 64, 96, 128, 160, 192, 224, 256, 300})
    for (int64_t size = 1; size <= 700; size++)
      for (const int64_t height : {int64_t(1), int64_t(7), size})
        for (const int64_t kernel : {1, 3, 6})
          for (const int64_t n : {1, 5}) {
            const int64_t pad = kernel / 2;
            const int64_t grid[] = {1, height + 2 * pad - kernel + 1, size + 2 * pad - kernel + 1};
            const ConvShape shape = {.n = n,
                                     .groups = 1,
                                     .ci = 32,
                                     .co = co,
                                     .x = {1, height, size},
                                     .y = {1, grid[1], grid[2]},
                                     .k = {1, kernel, kernel},
                                     .stride = {1, 1, 1},
                                     .pad = {0, pad, pad},
                                     .dil = {1, 1, 1}};
            TT_NS::ConvPieces b = {};
            build_conv_pieces(&b, shape, kConvForward, grid);
            ASSERT_GE(b.rows, 1);
            const int64_t lines = round_up((b.rows - 1) * b.pitch + b.cols, int64_t(16)) * b.images;
            const int64_t columns = min(round_up(co, kConvCols), kConvTilesCols);
            ASSERT_LE(round_up(lines, int64_t(32)) * columns * 4, kConvPieceSumBytes)
                << co << " columns, " << height << " x " << size << ", windows of " << kernel;
          }
}

// Numbers that have no pieces: units with such pixels, or all if the weight has them, get the bits
// of vectors.
TEST_F(ConvPieces, NumbersWithoutPiecesHaveTheBitsOfVectors) {
  if (!usable) return;
  const Case t = {1, 2, 40, 40, 16, 17, 3, 1, 1, 1};
  const float odd[] = {std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN(), 3e38f, 1e-38f, 1e-42f};
  const Floats g = random(t.y());
  const Floats b = random({t.groups * t.co});
  for (const float number : odd)
    for (const int form : {0, 1, 2, 3}) {
      const bool in_weight = form / 2;
      Floats x = random(t.x()), w = random(t.w());
      if (in_weight) w[5] = number;
      else x[3 * 16 * 17 + 100] = number;
      const auto fn = [&] { return compute(t, form % 2, x, w, b, g); };
      const Results want = with_tiles(false, fn);
      const Results got = with_tiles(true, fn);
      // The first group.
      for (size_t i = 0; i < want.y.size() / 2; i++)
        ASSERT_EQ(memcmp(&got.y[i], &want.y[i], sizeof(float)), 0) << number << " " << i;
    }
}

}  // namespace
}  // namespace TT_NS
