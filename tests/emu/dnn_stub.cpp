// A cuDNN that convolves by the definition, from the strides of its descriptors, in double. It
// counts its calls, spoils its workspace, has no numbers of f16, and names first the algorithms
// that tt must not take: one with other bits in each run, then one that rounds f32 to TF32, for the
// weight of f32 also a slower one.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int dnn_stub_calls;
EXPORT int dnn_stub_searches;
EXPORT int dnn_stub_allowed;
EXPORT size_t dnn_stub_cudart;
int dnn_stub_calls;
int dnn_stub_searches;
int dnn_stub_allowed;            // 0, or the number of the algorithm to take in place of kGood
size_t dnn_stub_cudart = 99000;  // of a cuBLASLt that nobody has

namespace {

constexpr int kRefused = 9;
constexpr int kMost = 5;
constexpr size_t kWork = 40;
constexpr int kGood = 6;                        // the number of the algorithm to take
constexpr int kWeightGemm = 1, kWeightFft = 2;  // of f32, where the second one is to be taken
enum Type : int32_t { kFloat = 0, kDouble = 1, kBfloat16 = 9 };
enum Math : int32_t { kDefault = 0, kTensorOp = 1, kFma = 3 };

struct Shape {  // of a tensor or a filter
  int32_t type, n, size[kMost], stride[kMost];
};
struct Convolution {
  int32_t n, pad[3], stride[3], dilation[3], groups, math, type;
};
struct Algorithm {
  int32_t number, status;
  float time;
  size_t memory;
  int32_t determinism, math;
  int32_t reserved[3];
};

double load(const Shape& s, const void* p, int64_t i) {
  if (s.type == kDouble) return static_cast<const double*>(p)[i];
  if (s.type == kFloat) return double(static_cast<const float*>(p)[i]);
  const uint32_t bits = uint32_t(static_cast<const uint16_t*>(p)[i]) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return double(f);
}
void store(const Shape& s, void* p, int64_t i, double v) {
  const float f = float(v);
  if (s.type == kDouble) {
    static_cast<double*>(p)[i] = v;
  } else if (s.type == kFloat) {
    static_cast<float*>(p)[i] = f;
  } else {
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    static_cast<uint16_t*>(p)[i] = uint16_t((b + 0x7fffu + (b >> 16 & 1)) >> 16);
  }
}

// Calls f(place in x, place in y, place in w) for each product of the definition.
template <class F>
void each(const Shape& x, const Shape& y, const Shape& w, const Convolution& c, const F& f) {
  const int dims = c.n;
  const int32_t ci = w.size[1];
  const int32_t co = y.size[1] / c.groups;
  int64_t pixels = 1, taps = 1;
  for (int d = 0; d < dims; d++) {
    pixels *= y.size[2 + d];
    taps *= w.size[2 + d];
  }
  for (int64_t image = 0; image < y.size[0]; image++)
    for (int64_t pixel = 0; pixel < pixels; pixel++)
      for (int64_t tap = 0; tap < taps; tap++) {
        int64_t at_x = image * x.stride[0], at_y = image * y.stride[0], at_w = 0;
        int64_t rest = pixel, rest_tap = tap;
        bool inside = true;
        for (int d = dims - 1; d >= 0; d--) {
          const int64_t o = rest % y.size[2 + d];
          const int64_t k = rest_tap % w.size[2 + d];
          rest /= y.size[2 + d];
          rest_tap /= w.size[2 + d];
          const int64_t i = o * c.stride[d] - c.pad[d] + k * c.dilation[d];
          inside &= i >= 0 && i < x.size[2 + d];
          at_x += i * x.stride[2 + d];
          at_y += o * y.stride[2 + d];
          at_w += k * w.stride[2 + d];
        }
        for (int32_t out = 0; inside && out < y.size[1]; out++)
          for (int32_t in = 0; in < ci; in++)
            f(at_x + (out / co * ci + in) * x.stride[1], at_y + out * y.stride[1],
              at_w + out * w.stride[0] + in * w.stride[1]);
      }
}

bool fits(const Shape& x, const Shape& y, const Shape& w, const Convolution& c) {
  if (x.type != y.type || x.type != w.type || c.n != x.n - 2 || c.n != w.n - 2) return false;
  if (x.size[1] != w.size[1] * c.groups || y.size[1] != w.size[0] || x.size[0] != y.size[0])
    return false;
  for (int d = 0; d < c.n; d++) {
    const int32_t room = x.size[2 + d] + 2 * c.pad[d] - c.dilation[d] * (w.size[2 + d] - 1) - 1;
    if (y.size[2 + d] > room / c.stride[d] + 1) return false;
  }
  return c.type == (x.type == kDouble ? kDouble : kFloat);
}

int find(const Shape& x, const Shape& y, const Shape& w, const Convolution& c, int32_t* n,
         Algorithm* out) {
  dnn_stub_searches++;
  if (!fits(x, y, w, c)) return kRefused;
  const int32_t exact = x.type == kBfloat16 ? kTensorOp : kFma;
  out[0] = {2, 0, 1, 0, 0, exact, {}};
  out[1] = {3, kRefused, 2, 0, 1, exact, {}};
  out[2] = {x.type == kBfloat16 ? kGood : 4, 0, 3, kWork, 1, kDefault, {}};
  out[3] = {kGood, 0, 4, kWork, 1, exact, {}};
  *n = 4;
  return 0;
}
int good_for_weight(const Shape& x) { return x.type == kFloat ? kWeightFft : kGood; }

// get(i, j): a product; put sums of them into `result`.
template <class Places> int compute(const Shape& shape, void* result, int32_t algorithm, void* work,
                                    size_t bytes, const void* alpha, const void* beta,
                                    const Places& places, int32_t good = kGood) {
  const bool wide = shape.type == kDouble;
  const double a =
      wide ? *static_cast<const double*>(alpha) : double(*static_cast<const float*>(alpha));
  const double b =
      wide ? *static_cast<const double*>(beta) : double(*static_cast<const float*>(beta));
  if (dnn_stub_allowed) good = dnn_stub_allowed;
  const bool works = work && bytes == kWork;
  if (algorithm != good || (!works && !dnn_stub_allowed) || a != 1 || b != 0) return kRefused;
  dnn_stub_calls++;
  if (works) memset(work, 0xff, bytes);
  int64_t n = 1;
  for (int d = 0; d < shape.n; d++) n += int64_t(shape.size[d] - 1) * shape.stride[d];
  double* sums = new double[size_t(n)]();
  bool* touched = new bool[size_t(n)]();
  // Every element of the result is written, also those that no product reaches.
  int64_t total = 1;
  for (int d = 0; d < shape.n; d++) total *= shape.size[d];
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i, at = 0;
    for (int d = shape.n - 1; d >= 0; d--) {
      at += rest % shape.size[d] * shape.stride[d];
      rest /= shape.size[d];
    }
    touched[at] = true;
  }
  places(sums);
  for (int64_t i = 0; i < n; i++)
    if (touched[i]) store(shape, result, i, sums[i]);
  delete[] touched;
  delete[] sums;
  return 0;
}

template <class T> int make(T** out) {
  *out = new T{};
  return 0;
}
template <class T> int drop(T* p) {
  delete p;
  return 0;
}

}  // namespace

EXPORT int cudnnCreate(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
EXPORT size_t cudnnGetCudartVersion() { return dnn_stub_cudart; }
EXPORT int cudnnSetStream(void*, void*) { return 0; }
EXPORT int cudnnCreateTensorDescriptor(Shape** out) { return make(out); }
EXPORT int cudnnDestroyTensorDescriptor(Shape* p) { return drop(p); }
EXPORT int cudnnCreateFilterDescriptor(Shape** out) { return make(out); }
EXPORT int cudnnDestroyFilterDescriptor(Shape* p) { return drop(p); }
EXPORT int cudnnCreateConvolutionDescriptor(Convolution** out) { return make(out); }
EXPORT int cudnnDestroyConvolutionDescriptor(Convolution* p) { return drop(p); }
EXPORT int cudnnSetTensorNdDescriptor(Shape* p, int type, int n, const int* size,
                                      const int* stride) {
  if (n < 4 || n > kMost || (type != kFloat && type != kDouble && type != kBfloat16))
    return kRefused;
  *p = {type, n, {}, {}};
  memcpy(p->size, size, size_t(n) * 4);
  memcpy(p->stride, stride, size_t(n) * 4);
  return 0;
}
EXPORT int cudnnSetFilterNdDescriptor(Shape* p, int type, int format, int n, const int* size) {
  *p = {type, n, {}, {}};
  memcpy(p->size, size, size_t(n) * 4);
  int32_t step = 1;
  if (format == 1) step = size[1];
  for (int d = n - 1; d >= 2; d--) {
    p->stride[d] = step;
    step *= size[d];
  }
  p->stride[1] = format == 1 ? 1 : step;
  p->stride[0] = format == 1 ? step : step * size[1];
  return 0;
}
EXPORT int cudnnSetConvolutionNdDescriptor(Convolution* p, int n, const int* pad, const int* stride,
                                           const int* dilation, int mode, int type) {
  if (mode != 1) return kRefused;
  *p = {};
  p->n = n;
  p->type = type;
  p->groups = 1;
  memcpy(p->pad, pad, size_t(n) * 4);
  memcpy(p->stride, stride, size_t(n) * 4);
  memcpy(p->dilation, dilation, size_t(n) * 4);
  return 0;
}
EXPORT int cudnnSetConvolutionGroupCount(Convolution* p, int n) {
  p->groups = n;
  return 0;
}
EXPORT int cudnnSetConvolutionMathType(Convolution* p, int math) {
  p->math = math;
  return 0;
}
EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void*, Shape* x, Shape* w, Convolution* c,
                                                  Shape* y, int, int* n, Algorithm* out) {
  return find(*x, *y, *w, *c, n, out);
}
EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, Shape* w, Shape* y, Convolution* c,
                                                       Shape* x, int, int* n, Algorithm* out) {
  return find(*x, *y, *w, *c, n, out);
}
EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, Shape* x, Shape* y, Convolution* c,
                                                         Shape* w, int, int* n, Algorithm* out) {
  const int status = find(*x, *y, *w, *c, n, out);
  if (status != 0 || x->type != kFloat) return status;
  out[4] = out[3];
  out[3].number = kWeightGemm;
  out[4].number = kWeightFft;
  *n = 5;
  return 0;
}
EXPORT int cudnnConvolutionForward(void*, const void* alpha, Shape* x, const void* px, Shape* w,
                                   const void* pw, Convolution* c, int algorithm, void* work,
                                   size_t bytes, const void* beta, Shape* y, void* py) {
  return compute(*y, py, algorithm, work, bytes, alpha, beta, [&](double* sums) {
    each(*x, *y, *w, *c,
         [&](int64_t i, int64_t o, int64_t k) { sums[o] += load(*x, px, i) * load(*w, pw, k); });
  });
}
EXPORT int cudnnConvolutionBackwardData(void*, const void* alpha, Shape* w, const void* pw,
                                        Shape* y, const void* py, Convolution* c, int algorithm,
                                        void* work, size_t bytes, const void* beta, Shape* x,
                                        void* px) {
  return compute(*x, px, algorithm, work, bytes, alpha, beta, [&](double* sums) {
    each(*x, *y, *w, *c,
         [&](int64_t i, int64_t o, int64_t k) { sums[i] += load(*y, py, o) * load(*w, pw, k); });
  });
}
EXPORT int cudnnConvolutionBackwardFilter(void*, const void* alpha, Shape* x, const void* px,
                                          Shape* y, const void* py, Convolution* c, int algorithm,
                                          void* work, size_t bytes, const void* beta, Shape* w,
                                          void* pw) {
  return compute(
      *w, pw, algorithm, work, bytes, alpha, beta,
      [&](double* sums) {
        each(*x, *y, *w, *c, [&](int64_t i, int64_t o, int64_t k) {
          sums[k] += load(*x, px, i) * load(*y, py, o);
        });
      },
      good_for_weight(*x));
}
// c += a, which has one element for each channel.
EXPORT int cudnnAddTensor(void*, const void*, Shape* a, const void* pa, const void*, Shape* c,
                          void* pc) {
  if (a->n != c->n || a->size[1] != c->size[1] || a->type != c->type) return kRefused;
  int64_t total = 1;
  for (int d = 0; d < c->n; d++) total *= c->size[d];
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i, at = 0, channel = 0;
    for (int d = c->n - 1; d >= 0; d--) {
      const int64_t k = rest % c->size[d];
      at += k * c->stride[d];
      if (d == 1) channel = k * a->stride[1];
      rest /= c->size[d];
    }
    store(*c, pc, at, load(*c, pc, at) + load(*a, pa, channel));
  }
  return 0;
}
