/* tt_tensor_print: the text that PyTorch 2.15 prints, with its line breaks, without its "torch."
 * prefix. */
#include "support.h"

#include <math.h>

typedef struct Case {
  tt_dtype dtype;
  int64_t ndim;
  int64_t shape[4];
  int32_t requires_grad;
  double values[24]; /* real and imaginary parts */
  const char* text;
} Case;

static const Case kCases[] = {
    {TT_BOOL, 1, {2}, 0, {1, 0, 0, 0}, "tensor([ True, False])"},
    {TT_U8, 1, {3}, 0, {1, 0, 100, 0, 7, 0}, "tensor([  1, 100,   7], dtype=uint8)"},
    {TT_I8, 1, {3}, 0, {1, 0, 100, 0, 7, 0}, "tensor([  1, 100,   7], dtype=int8)"},
    {TT_I16, 1, {3}, 0, {1, 0, 100, 0, 7, 0}, "tensor([  1, 100,   7], dtype=int16)"},
    {TT_I32, 1, {3}, 0, {1, 0, 100, 0, 7, 0}, "tensor([  1, 100,   7], dtype=int32)"},
    {TT_I64, 1, {3}, 0, {1, 0, 100, 0, 7, 0}, "tensor([  1, 100,   7])"},
    {TT_F16,
     1,
     {3},
     0,
     {1.5, 0, -2, 0, 0.333251953125, 0},
     "tensor([ 1.5000, -2.0000,  0.3333], dtype=float16)"},
    {TT_BF16,
     1,
     {3},
     0,
     {1.5, 0, -2, 0, 0.333251953125, 0},
     "tensor([ 1.5000, -2.0000,  0.3340], dtype=bfloat16)"},
    {TT_F32, 1, {3}, 0, {1.5, 0, -2, 0, 0.333251953125, 0}, "tensor([ 1.5000, -2.0000,  0.3333])"},
    {TT_F64,
     1,
     {3},
     0,
     {1.5, 0, -2, 0, 0.333251953125, 0},
     "tensor([ 1.5000, -2.0000,  0.3333], dtype=float64)"},
    {TT_C64,
     1,
     {3},
     0,
     {1, 2, -0.5, -0.25, 0, 0},
     "tensor([ 1.0000+2.0000j, -0.5000-0.2500j,  0.0000+0.0000j])"},
    {TT_C128,
     1,
     {3},
     0,
     {1, 2, -0.5, -0.25, 0, 0},
     "tensor([ 1.0000+2.0000j, -0.5000-0.2500j,  0.0000+0.0000j],\n"
     "       dtype=complex128)"},
    {TT_F32, 0, {0}, 0, {3, 0}, "tensor(3.)"},
    {TT_F64, 0, {0}, 0, {0.1, 0}, "tensor(0.1000, dtype=float64)"},
    {TT_F32, 0, {0}, 0, {NAN, 0}, "tensor(nan)"},
    {TT_F32, 0, {0}, 0, {-0.0, 0}, "tensor(-0.)"},
    {TT_F32, 1, {0}, 0, {0}, "tensor([])"},
    {TT_I64, 1, {0}, 0, {0}, "tensor([], dtype=int64)"},
    {TT_F32, 2, {2, 0}, 0, {0}, "tensor([], size=(2, 0))"},
    {TT_F64, 3, {0, 3, 2}, 0, {0}, "tensor([], size=(0, 3, 2), dtype=float64)"},
    {TT_F32, 1, {3}, 0, {1, 0, 2, 0, 3, 0}, "tensor([1., 2., 3.])"},
    {TT_F32, 1, {4}, 0, {1, 0, INFINITY, 0, -INFINITY, 0, NAN, 0}, "tensor([1., inf, -inf, nan])"},
    {TT_F32, 1, {2}, 0, {0, 0, 0, 0}, "tensor([0., 0.])"},
    {TT_F32, 1, {2}, 0, {1e-05, 0, 1, 0}, "tensor([1.0000e-05, 1.0000e+00])"},
    {TT_F32, 1, {2}, 0, {0.0001, 0, 0.0001, 0}, "tensor([1.0000e-04, 1.0000e-04])"},
    {TT_F32, 1, {2}, 0, {100000000, 0, 1, 0}, "tensor([1.0000e+08, 1.0000e+00])"},
    {TT_F64, 1, {2}, 0, {200000000, 0, 1, 0}, "tensor([2.0000e+08, 1.0000e+00], dtype=float64)"},
    {TT_F32, 1, {2}, 0, {1001, 0, 1, 0}, "tensor([1.0010e+03, 1.0000e+00])"},
    {TT_F32, 1, {2}, 0, {1000, 0, 1, 0}, "tensor([1000.,    1.])"},
    {TT_F32, 1, {2}, 0, {1000.5, 0, 1, 0}, "tensor([1.0005e+03, 1.0000e+00])"},
    {TT_F64, 1, {2}, 0, {-1e-09, 0, 3e+20, 0}, "tensor([-1.0000e-09,  3.0000e+20], dtype=float64)"},
    {TT_F32,
     2,
     {2, 2},
     1,
     {1, 0, 2, 0, 3, 0, 4, 0},
     "tensor([[1., 2.],\n"
     "        [3., 4.]], requires_grad=True)"},
    {TT_F64,
     2,
     {2, 2},
     1,
     {1.25, 0, 2, 0, 3, 0, 4, 0},
     "tensor([[1.2500, 2.0000],\n"
     "        [3.0000, 4.0000]], dtype=float64, requires_grad=True)"},
    {TT_F32,
     3,
     {2, 3, 2},
     0,
     {0.5, 0, 1.5, 0, 2.5, 0, 3.5, 0, 4.5,  0, 5.5,  0,
      6.5, 0, 7.5, 0, 8.5, 0, 9.5, 0, 10.5, 0, 11.5, 0},
     "tensor([[[ 0.5000,  1.5000],\n"
     "         [ 2.5000,  3.5000],\n"
     "         [ 4.5000,  5.5000]],\n"
     "\n"
     "        [[ 6.5000,  7.5000],\n"
     "         [ 8.5000,  9.5000],\n"
     "         [10.5000, 11.5000]]])"},
    {TT_I32,
     4,
     {2, 2, 1, 2},
     0,
     {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0},
     "tensor([[[[0, 1]],\n"
     "\n"
     "         [[2, 3]]],\n"
     "\n"
     "\n"
     "        [[[4, 5]],\n"
     "\n"
     "         [[6, 7]]]], dtype=int32)"},
    {TT_I64,
     1,
     {2},
     0,
     {-9.223372036854776e+18, 0, 1, 0},
     "tensor([-9223372036854775808,                    1])"},
    {TT_C128,
     1,
     {2},
     0,
     {1, 1000000000, 2, 0},
     "tensor([1.+1.0000e+09j, 2.+0.0000e+00j], dtype=complex128)"},
    {TT_C64, 1, {2}, 0, {NAN, -INFINITY, INFINITY, NAN}, "tensor([nan-infj, inf+nanj])"},
};

static void prints(tt_ctx* c, const tt_tensor* t, const char* want) {
  char text[4096];
  int64_t n = -1;
  OK(tt_tensor_print(c, t, text, (int64_t)sizeof text, &n));
  assert_string_equal(text, want);
  assert_int_equal(n, strlen(want));
}

static tt_tensor* convert(tt_ctx* c, tt_tensor* t, tt_dtype dtype) {
  tt_to_opts o;
  tt_tensor* out = NULL;
  memset(&o, 0, sizeof o);
  o.set = TT_TO_DTYPE;
  o.dtype = dtype;
  OK(tt_to(c, t, &o, &out));
  tt_tensor_release(t);
  return out;
}

static void test_values(void** state) {
  CTX;
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    const Case* k = &kCases[i];
    const int is_complex = k->dtype >= TT_C64;
    double real[12];
    int64_t n = 1, d;
    tt_tensor* t = NULL;
    for (d = 0; d < k->ndim; d++) n *= k->shape[d];
    for (d = 0; d < n; d++) real[d] = k->values[2 * d];
    OK(tt_tensor_from_data(c, is_complex ? k->values : real, is_complex ? TT_C128 : TT_F64,
                           k->shape, k->ndim, &t));
    t = convert(c, t, k->dtype);
    OK(tt_requires_grad_(c, t, k->requires_grad));
    prints(c, t, k->text);
    tt_tensor_release(t);
  }
}

static tt_tensor* count(tt_ctx* c, int64_t n, tt_dtype dtype) {
  tt_scalar start, end;
  tt_arange_opts o;
  tt_tensor* t = NULL;
  memset(&start, 0, sizeof start);
  memset(&o, 0, sizeof o);
  start.kind = TT_SCALAR_INT;
  end = start;
  end.i = n;
  o.set = TT_ARANGE_DTYPE;
  o.dtype = dtype;
  OK(tt_arange(c, &start, &end, &o, &t));
  return t;
}

static void test_layout(void** state) {
  CTX;
  tt_tensor* t = count(c, 40, TT_F64);
  tt_tensor* v = NULL;
  prints(c, t,
         "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
         "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
         "        28., 29., 30., 31., 32., 33., 34., 35., 36., 37., 38., 39.],\n"
         "       dtype=float64)");
  tt_tensor_release(t);
  t = count(c, 2000, TT_I64);
  prints(c, t, "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  tt_tensor_release(t);
  t = count(c, 10000, TT_I64);
  OK(tt_view(c, t, (const int64_t[]){100, 100}, 2, &v));
  prints(c, v,
         "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
         "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
         "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
         "        ...,\n"
         "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
         "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
         "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])");
  tt_tensor_release(t);
  tt_tensor_release(v);
  t = count(c, 6, TT_F32);
  OK(tt_view(c, t, (const int64_t[]){2, 3}, 2, &v));
  tt_tensor_release(t);
  OK(tt_t(c, v, &t)); /* not contiguous */
  prints(c, t, "tensor([[0., 3.],\n        [1., 4.],\n        [2., 5.]])");
  tt_tensor_release(t);
  tt_tensor_release(v);
}

static void test_facts(void** state) {
  CTX;
  const double values[] = {1, 2};
  const int64_t shape[] = {2, 3};
  tt_tensor* x = vec(c, values, 2);
  tt_tensor* y = NULL;
  tt_tensor* v = NULL;
  tt_empty_opts o;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_mul(c, x, x, &y));
  prints(c, y, "tensor([1., 4.], dtype=float64, grad_fn=<MulBackward0>)");
  OK(tt_detach(c, y, &v));
  prints(c, v, "tensor([1., 4.], dtype=float64)");
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(v);
  memset(&o, 0, sizeof o);
  o.set = TT_EMPTY_DEVICE;
  o.device.type = TT_META;
  OK(tt_empty(c, shape, 2, &o, &x));
  prints(c, x, "tensor(..., device='meta', size=(2, 3))");
  tt_tensor_release(x);
  o.set |= TT_EMPTY_DTYPE;
  o.dtype = TT_I64;
  OK(tt_empty(c, NULL, 0, &o, &x));
  prints(c, x, "tensor(..., device='meta', size=(), dtype=int64)");
  tt_tensor_release(x);
}

static void test_buffers(void** state) {
  CTX;
  const double values[] = {1, 2};
  const char* const want = "tensor([1., 2.], dtype=float64)";
  const int64_t length = (int64_t)strlen(want);
  tt_tensor* x = vec(c, values, 2);
  char text[64];
  int64_t n = -1;
  OK(tt_tensor_print(c, x, text, length + 1, &n));
  assert_string_equal(text, want);
  memset(text, 'x', sizeof text);
  FAILS(TT_BUFFER_TOO_SMALL, tt_tensor_print(c, x, text, length, &n));
  assert_int_equal(n, length);
  assert_int_equal(text[0], 0);
  assert_int_equal(text[length], 'x');
  FAILS(TT_BUFFER_TOO_SMALL, tt_tensor_print(c, x, NULL, 0, &n)); /* asks for the length */
  assert_int_equal(n, length);
  FAILS(TT_BUFFER_TOO_SMALL, tt_tensor_print(c, x, text, -5, &n));
  FAILS(TT_INVALID_ARG, tt_tensor_print(c, x, text, 64, NULL));
  FAILS(TT_BAD_HANDLE, tt_tensor_print(c, NULL, text, 64, &n));
  tt_tensor_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_values), TEST(test_layout), TEST(test_facts),
                                     TEST(test_buffers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
