// A cuFFT that adds up each transform from strides and distances, counts its calls, writes to the
// inputs of Hermitian ones, and refuses what tt must not ask for.
#include <math.h>
#include <stdint.h>

#include <complex>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int fft_stub_calls;
EXPORT int fft_stub_plans;
int fft_stub_calls;
int fft_stub_plans;
EXPORT int fft_stub_last;
int fft_stub_last;  // handle

namespace {

constexpr int kInvalid = 4;
constexpr size_t kWork = 24;
using Complex = std::complex<double>;
struct Plan {
  long long n, in_stride, in_distance, out_stride, out_distance, batch;
  int32_t type;
  bool own_work, destroyed;
  unsigned char* work;
};
std::vector<Plan> g_plans;

Plan* begin(int32_t handle, int32_t type) {
  Plan* p = &g_plans[size_t(handle)];
  if (p->type != type || !p->own_work || !p->work) return nullptr;
  fft_stub_calls++;
  for (size_t i = 0; i < kWork; i++) p->work[i] = 0xff;
  return p;
}
// Real numbers must be aligned as complex ones.
bool is_aligned(const double* p) { return reinterpret_cast<uintptr_t>(p) % sizeof(Complex) == 0; }
// get(i): input i of a transform; put(k, sum).
template <class Get, class Put>
void transform(const Plan& p, int sign, long long outputs, const Get& get, const Put& put) {
  for (long long b = 0; b < p.batch; b++) {
    std::vector<Complex> x;
    for (long long i = 0; i < p.n; i++) x.push_back(get(b, i));
    for (long long k = 0; k < outputs; k++) {
      Complex sum = 0;
      for (long long i = 0; i < p.n; i++)
        sum += x[size_t(i)] * std::polar(1.0, sign * 2 * M_PI * double(i * k % p.n) / double(p.n));
      put(b, k, sum);
    }
  }
}

}  // namespace

EXPORT int cufftCreate(int32_t* handle) {
  *handle = int32_t(g_plans.size());
  g_plans.push_back({});
  fft_stub_last = *handle;
  return 0;
}
EXPORT int cufftDestroy(int32_t handle) {
  g_plans[size_t(handle)].destroyed = true;
  return 0;
}
EXPORT int fft_stub_has(int32_t handle) { return !g_plans[size_t(handle)].destroyed; }
EXPORT int cufftSetAutoAllocation(int32_t handle, int32_t yes) {
  g_plans[size_t(handle)].own_work = !yes;
  return 0;
}
EXPORT int cufftMakePlanMany64(int32_t handle, int32_t rank, long long* n, long long* in_embed,
                               long long in_stride, long long in_distance, long long* out_embed,
                               long long out_stride, long long out_distance, int32_t type,
                               long long batch, size_t* bytes) {
  if (rank != 1 || !in_embed || !out_embed || batch < 1) return kInvalid;
  Plan& p = g_plans[size_t(handle)];
  p = {n[0],  in_stride, in_distance, out_stride, out_distance,
       batch, type,      p.own_work,  false,      nullptr};
  *bytes = kWork;
  fft_stub_plans++;
  return 0;
}
EXPORT int cufftSetWorkArea(int32_t handle, void* work) {
  g_plans[size_t(handle)].work = static_cast<unsigned char*>(work);
  return 0;
}
EXPORT int cufftSetStream(int32_t, void*) { return 0; }
EXPORT int cufftExecZ2Z(int32_t handle, Complex* in, Complex* out, int32_t sign) {
  Plan* p = begin(handle, 0x69);
  if (!p || (sign != 1 && sign != -1)) return kInvalid;
  transform(
      *p, sign, p->n,
      [&](long long b, long long i) { return in[b * p->in_distance + i * p->in_stride]; },
      [&](long long b, long long k, Complex x) {
        out[b * p->out_distance + k * p->out_stride] = x;
      });
  return 0;
}
EXPORT int cufftExecD2Z(int32_t handle, double* in, Complex* out) {
  Plan* p = begin(handle, 0x6a);
  if (!p || !is_aligned(in)) return kInvalid;
  transform(
      *p, -1, p->n / 2 + 1,
      [&](long long b, long long i) {
        return Complex(in[b * p->in_distance + i * p->in_stride], 0);
      },
      [&](long long b, long long k, Complex x) {
        out[b * p->out_distance + k * p->out_stride] = x;
      });
  return 0;
}
EXPORT int cufftExecZ2D(int32_t handle, Complex* in, double* out) {
  Plan* p = begin(handle, 0x6c);
  if (!p || !is_aligned(out)) return kInvalid;
  const auto place = [&](long long b, long long i) -> Complex& {
    return in[b * p->in_distance + i * p->in_stride];
  };
  transform(
      *p, 1, p->n,
      [&](long long b, long long i) {
        return i <= p->n / 2 ? place(b, i) : std::conj(place(b, p->n - i));
      },
      [&](long long b, long long k, Complex x) {
        out[b * p->out_distance + k * p->out_stride] = x.real();
      });
  for (long long b = 0; b < p->batch; b++)
    for (long long i = 0; i <= p->n / 2; i++) place(b, i) = NAN;
  return 0;
}
// tt's test is in double.
EXPORT int cufftExecC2C(int32_t, void*, void*, int32_t) { return kInvalid; }
EXPORT int cufftExecR2C(int32_t, void*, void*) { return kInvalid; }
EXPORT int cufftExecC2R(int32_t, void*, void*) { return kInvalid; }
