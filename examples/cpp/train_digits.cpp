// The same network as examples/c/train_digits.c, in C++ with tt.hpp:  train_digits_cpp [DATA
// [EPOCHS]]
#include "tt.hpp"

extern "C" {
#include "../c/digits_data.h"
#include "../c/report.h"
}

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int64_t kTrain = 1500, kBatch = 50;

tt::Module build(tt::Context& c) {
  const int64_t three = 3, two = 2, one = 1;
  tt_nn_conv2d_opts same = {};
  same.set = TT_NN_CONV2D_PADDING;
  same.padding = &one;
  same.n_padding = 1;
  auto layer = [&](auto f, auto... a) { return c.make<tt::Module>(f, a...); };
  return c.sequential({
      layer(tt_nn_conv2d, 1, 16, &three, 1, &same),
      layer(tt_nn_batch_norm2d, 16, nullptr),
      layer(tt_nn_relu, nullptr),
      layer(tt_nn_max_pool2d, &two, 1, nullptr),
      layer(tt_nn_conv2d, 16, 32, &three, 1, &same),
      layer(tt_nn_batch_norm2d, 32, nullptr),
      layer(tt_nn_relu, nullptr),
      layer(tt_nn_max_pool2d, &two, 1, nullptr),
      layer(tt_nn_flatten, nullptr),
      layer(tt_nn_linear, 128, DIGITS_CLASSES, nullptr),
  });
}

double train_epoch(tt::Context& c, const tt::Module& net, const tt::Module& loss_of,
                   const tt::Optimizer& adam, const tt::Tensor& x, const tt::Tensor& y) {
  const tt::Tensor order = c(tt_randperm, kTrain, nullptr);
  double sum = 0;
  for (int64_t i = 0; i < kTrain; i += kBatch) {
    const tt::Tensor rows = c(tt_narrow, order, 0, i, kBatch);
    const tt::Tensor xb = c(tt_index_select, x, 0, rows);
    const tt::Tensor yb = c(tt_index_select, y, 0, rows);
    const tt::Tensor scores = c(net, xb);
    const tt::Tensor loss = c(loss_of, tt::list{scores, yb});
    c.run(tt_optim_zero_grad, adam, 1);
    c.run(tt_backward, loss, nullptr);
    c.run(tt_optim_step, adam);
    sum += c.item(loss);
  }
  return sum / double(kTrain / kBatch);
}

void train(const digits& d, int epochs) {
  tt::Context c;
  c.run(tt_manual_seed, uint64_t(0));  // the same numbers in every run
  const tt::Tensor all_x = c(tt_tensor_from_data, d.pixels, TT_F32, tt::shape{d.n, 1, 8, 8});
  const tt::Tensor all_y = c(tt_tensor_from_data, d.labels, TT_I64, tt::shape{d.n});
  const tt::Tensor order = c(tt_randperm, d.n, nullptr);
  const tt::Tensor x = c(tt_index_select, all_x, 0, order);
  const tt::Tensor y = c(tt_index_select, all_y, 0, order);
  const tt::Module net = build(c);
  const tt::Module loss_of = c.make<tt::Module>(tt_nn_cross_entropy_loss, nullptr);
  tt_optim_adam_opts rate = {};
  rate.set = TT_OPTIM_ADAM_LR;
  rate.lr = 0.005;
  const tt::Optimizer adam =
      c.make<tt::Optimizer>(tt_optim_adam, tt::list(c.parameters(net)), &rate);
  progress bar = progress_start("epoch", 0, epochs);
  for (int e = 1; e <= epochs; e++)
    progress_show(&bar, e, train_epoch(c, net, loss_of, adam, x, y), kTrain);
  tt::NoGrad off(c);
  c.run(tt_module_train, net, 0);
  tt_argmax_opts of_rows = {};
  of_rows.set = TT_ARGMAX_DIM;
  of_rows.dim = 1;
  const int64_t tests = d.n - kTrain;
  const auto guess =
      c.read<int64_t>(c(tt_argmax, c(net, c(tt_narrow, x, 0, kTrain, tests)), &of_rows));
  const auto truth = c.read<int64_t>(c(tt_narrow, y, 0, kTrain, tests));
  print_confusion(truth.data(), guess.data(), tests, DIGITS_CLASSES);
  std::printf("test accuracy %.1f %%\n", 100 * accuracy(truth.data(), guess.data(), tests));
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "examples/data/digits.csv";
  digits d;
  char message[512];
  if (digits_read(path, &d, message, sizeof message)) {
    std::fprintf(stderr, "train_digits_cpp: %s\n", message);
    return 1;
  }
  int status = 0;
  try {
    if (d.n <= kTrain) throw std::runtime_error(std::string(path) + ": too few rows");
    train(d, argc > 2 ? std::atoi(argv[2]) : 20);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_digits_cpp: %s\n", e.what());
    status = 1;
  }
  digits_free(&d);
  return status;
}
