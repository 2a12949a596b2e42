// Attention by cuDNN beside the own kernels, one line for each geometry: what serves, the largest
// differences of outputs and gradients, the times. Small geometries are compared with the
// definition in double, too, and every backward pass is repeated: its bits must be equal, but for
// cuDNN's where sums may have any order. Gradients by the own kernels' products of a warpgroup
// (flash_wgmma.h) are the last provider. With an argument cuDNN is left out.
//   sh tests/gpu/sdpa_check.sh    compiles it here or there; libcudnn.so.9 is on the loader's path
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "kernels/cuda/attention/flash.h"
#include "kernels/cuda/attention/sdpa.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/rows.h"

using namespace TT_NS;

namespace {

int g_failed = 0;

struct Case {
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  bool causal;
  int32_t dtype;
  bool exact;  // compare with the definition
};
constexpr Case kCases[] = {
    {2, 4, 4, 128, 128, 64, 64, false, TT_BF16, true},
    {2, 4, 4, 128, 128, 64, 64, true, TT_F16, true},
    {2, 4, 2, 70, 200, 128, 128, true, TT_BF16, true},
    {1, 6, 2, 200, 77, 40, 56, false, TT_F16, true},
    {1, 2, 2, 300, 300, 32, 32, true, TT_BF16, true},
    {8, 16, 16, 2048, 2048, 64, 64, false, TT_BF16, false},
    {8, 16, 16, 2048, 2048, 64, 64, true, TT_BF16, false},
    {8, 16, 16, 2048, 2048, 128, 128, false, TT_BF16, false},
    {8, 16, 16, 2048, 2048, 128, 128, true, TT_BF16, false},
    {8, 16, 4, 2048, 2048, 128, 128, true, TT_F16, false},
    {16, 12, 12, 1024, 1024, 64, 64, true, TT_BF16, false},
};

char* memory(size_t bytes) {
  void* p = nullptr;
  if (cudaMalloc(&p, bytes ? bytes : 1) != cudaSuccess) {
    printf("cudaMalloc of %zu bytes: %s\n", bytes, cudaGetErrorString(cudaGetLastError()));
    exit(2);
  }
  return static_cast<char*>(p);
}

using Values = std::vector<float>;
float rounded(float v, int32_t dtype, uint16_t* bits) {
  if (dtype == TT_F16) {
    const F16 h = narrow_f16(v);
    *bits = h.bits;
    return widen(h);
  }
  const BF16 h = narrow_bf16(v);
  *bits = h.bits;
  return widen(h);
}

// A tensor of halves on the device, (batch, rows, heads, width) in memory, and its values.
struct Halves {
  Values values;
  char* p;
  AttentionRows rows;
  Halves(int64_t batch, int64_t heads, int64_t n, int64_t width, int32_t dtype, uint32_t seed,
         bool host = true) {
    const size_t size = size_t(batch * heads * n * width);
    p = memory(size * 2);
    rows = {p, n * heads * width * 2, width * 2, heads * width * 2};
    std::vector<uint16_t> bits(size);
    if (host) values.resize(size);
    for (size_t i = 0; i < size; i++) {
      seed = seed * 1664525u + 1013904223u;
      const float v = rounded(float(double(seed >> 8) * 0x1p-23 - 1) * 1.5f, dtype, &bits[i]);
      if (host) values[i] = v;
    }
    cudaMemcpy(p, bits.data(), size * 2, cudaMemcpyHostToDevice);
  }
  ~Halves() { cudaFree(p); }
};
Values floats(const char* p, size_t n) {
  Values v(n);
  cudaMemcpy(v.data(), p, n * 4, cudaMemcpyDeviceToHost);
  return v;
}
Values halves(const char* p, size_t n, int32_t dtype) {
  std::vector<uint16_t> bits(n);
  cudaMemcpy(bits.data(), p, n * 2, cudaMemcpyDeviceToHost);
  Values v(n);
  for (size_t i = 0; i < n; i++) {
    F16 f;
    BF16 b;
    f.bits = bits[i];
    b.bits = bits[i];
    v[i] = dtype == TT_F16 ? widen(f) : widen(b);
  }
  return v;
}
double distance(const Values& a, const Values& b) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const double d = fabs(double(a[i]) - double(b[i]));
    if (!(d <= most)) most = d;
    scale = fmax(scale, fabs(double(b[i])));
  }
  return most / (scale > 0 ? scale : 1);
}

// out, lse, dq, dk, dv
struct Results {
  Values of[5];
};
Results definition(const Case& c, double scale, const Values& q, const Values& k, const Values& v,
                   const Values& g) {
  Results r;
  const int64_t queries = c.batch * c.heads * c.queries;
  const int64_t keys = c.batch * c.key_heads * c.keys;
  r.of[0].resize(size_t(queries * c.value_width));
  r.of[1].resize(size_t(queries));
  std::vector<double> dq(size_t(queries * c.width)), dk(size_t(keys * c.width)),
      dv(size_t(keys * c.value_width));
  std::vector<double> w(size_t(c.keys)), dw(size_t(c.keys)), o(size_t(c.value_width));
  for (int64_t row = 0; row < queries; row++) {
    const int64_t i = row % c.queries, head = row / c.queries % c.heads;
    const int64_t batch = row / c.queries / c.heads, key_head = head / (c.heads / c.key_heads);
    const int64_t at = (batch * c.queries + i) * c.heads + head;
    const int64_t end = c.causal && i + 1 < c.keys ? i + 1 : c.keys;
    const auto key = [&](int64_t j) { return (batch * c.keys + j) * c.key_heads + key_head; };
    double most = -INFINITY, sum = 0, delta = 0;
    for (int64_t j = 0; j < end; j++) {
      double s = 0;
      for (int64_t d = 0; d < c.width; d++)
        s += double(q[size_t(at * c.width + d)]) * k[size_t(key(j) * c.width + d)];
      w[size_t(j)] = s * scale;
      most = fmax(most, s * scale);
    }
    for (int64_t j = 0; j < end; j++) sum += w[size_t(j)] = exp(w[size_t(j)] - most);
    r.of[1][size_t(row)] = float(most + log(sum));
    o.assign(o.size(), 0);
    for (int64_t j = 0; j < end; j++) {
      w[size_t(j)] /= sum;
      double x = 0;
      for (int64_t d = 0; d < c.value_width; d++) {
        const double value = v[size_t(key(j) * c.value_width + d)];
        const double grad = g[size_t(at * c.value_width + d)];
        o[size_t(d)] += w[size_t(j)] * value;
        x += grad * value;
        dv[size_t(((batch * c.key_heads + key_head) * c.keys + j) * c.value_width + d)] +=
            w[size_t(j)] * grad;
      }
      dw[size_t(j)] = x;
      delta += w[size_t(j)] * x;
    }
    for (int64_t d = 0; d < c.value_width; d++)
      r.of[0][size_t(at * c.value_width + d)] = float(o[size_t(d)]);
    for (int64_t j = 0; j < end; j++)
      for (int64_t d = 0; d < c.width; d++) {
        const double ds = w[size_t(j)] * (dw[size_t(j)] - delta) * scale;
        dq[size_t(row * c.width + d)] += ds * k[size_t(key(j) * c.width + d)];
        dk[size_t(((batch * c.key_heads + key_head) * c.keys + j) * c.width + d)] +=
            ds * q[size_t(at * c.width + d)];
      }
  }
  r.of[2].assign(dq.begin(), dq.end());
  r.of[3].assign(dk.begin(), dk.end());
  r.of[4].assign(dv.begin(), dv.end());
  return r;
}

template <class F> double milliseconds(const F& f) {
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  f();
  cudaEventRecord(from, nullptr);
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; i++) f();
  cudaEventRecord(to, nullptr);
  cudaEventSynchronize(to);
  float ms = 0;
  cudaEventElapsedTime(&ms, from, to);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return double(ms) / kTimes;
}

enum Provider { kOwn, kLibrary, kAnyOrder, kGroups, kProviders };
bool is_library(int provider) { return provider == kLibrary || provider == kAnyOrder; }

void test(const Case& c, bool library) {
  const auto filled = [&](int64_t heads, int64_t n, int64_t width, uint32_t seed) {
    return Halves(c.batch, heads, n, width, c.dtype, seed, c.exact);
  };
  Halves q = filled(c.heads, c.queries, c.width, 1);
  Halves k = filled(c.key_heads, c.keys, c.width, 2);
  Halves v = filled(c.key_heads, c.keys, c.value_width, 3);
  Halves g = filled(c.heads, c.queries, c.value_width, 4);
  Halves out = filled(c.heads, c.queries, c.value_width, 5);
  const size_t rows = size_t(c.batch * c.heads * c.queries);
  const size_t keys = size_t(c.batch * c.key_heads * c.keys);
  const size_t sizes[5] = {rows * size_t(c.value_width), rows, rows * size_t(c.width),
                           keys * size_t(c.width), keys * size_t(c.value_width)};
  AttentionPlan p = {};
  p.dtype = c.dtype;
  p.batch = c.batch;
  p.heads = c.heads;
  p.key_heads = c.key_heads;
  p.queries = c.queries;
  p.keys = c.keys;
  p.width = c.width;
  p.value_width = c.value_width;
  p.scale = 1 / sqrt(double(c.width));
  p.causal = c.causal;
  p.q = q.rows;
  p.k = k.rows;
  p.v = v.rows;
  p.grad = g.rows;
  p.out = out.rows;
  p.lse = memory(sizes[1] * 4);
  p.dq = memory(sizes[2] * 2);
  p.dk = memory(sizes[3] * 2);
  p.dv = memory(sizes[4] * 2);

  printf("b %lld h %lld/%lld q %lld k %lld d %lld/%lld %s%s:", (long long)c.batch,
         (long long)c.heads, (long long)c.key_heads, (long long)c.queries, (long long)c.keys,
         (long long)c.width, (long long)c.value_width, c.dtype == TT_F16 ? "f16" : "bf16",
         c.causal ? " causal" : "");
  const auto read = [&] {
    return Results{{halves(out.p, sizes[0], c.dtype), floats(p.lse, sizes[1]),
                    halves(p.dq, sizes[2], c.dtype), halves(p.dk, sizes[3], c.dtype),
                    halves(p.dv, sizes[4], c.dtype)}};
  };
  Results by[kProviders];
  double ms[kProviders][2] = {};
  for (int provider = 0; provider < kProviders; provider++) {
    if (is_library(provider) && !library) continue;
    cuda::sdpa::use_library(is_library(provider) ? "" : nullptr);
    p.math = provider == kAnyOrder ? kNondeterministic : 0;
    cuda::flash::use_wgmma(provider == kGroups);
    if (provider == kGroups && !cuda::flash::serves_wgmma(p)) {
      printf(" [no products of a warpgroup]");
      g_failed = 1;
    }
    const auto serves = [&](cuda::sdpa::Task t) { return cuda::sdpa::serves(p, t); };
    if (is_library(provider)) {
      const bool forward = serves(cuda::sdpa::kForward);
      if (!forward) printf(" [forward refused: %s]", cuda::sdpa::refusal());
      const bool backward = serves(cuda::sdpa::kBackward);
      if (!backward) printf(" [backward refused: %s]", cuda::sdpa::refusal());
      g_failed |= !forward || !backward;
    }
    const size_t bytes[2] = {cuda::attention_workspace(&p), cuda::attention_backward_workspace(&p)};
    char* const workspace = memory(bytes[0] > bytes[1] ? bytes[0] : bytes[1]);
    if (is_library(provider))
      printf(" workspace %.1f + %.1f MB", double(bytes[0]) / 1e6, double(bytes[1]) / 1e6);
    int32_t status[2] = {};
    ms[provider][0] = milliseconds([&] { status[0] = cuda::attention(&p, nullptr, workspace); });
    ms[provider][1] =
        milliseconds([&] { status[1] = cuda::attention_backward(&p, nullptr, workspace); });
    const cudaError_t e = cudaDeviceSynchronize();
    if (status[0] || status[1] || e != cudaSuccess) {
      printf(" [status %d %d, %s, %s]", status[0], status[1], cudaGetErrorString(e),
             cuda::sdpa::refusal());
      g_failed = 1;
    }
    by[provider] = read();
    if (provider != kOwn && provider != kAnyOrder) {  // again, in other memory
      cudaMemset(workspace, 0xff, bytes[1]);
      cuda::attention_backward(&p, nullptr, workspace);
      const Results again = read();
      for (int i = 2; i < 5; i++) {
        if (memcmp(again.of[i].data(), by[provider].of[i].data(), sizes[i] * 4) == 0) continue;
        printf(" [other bits of gradient %d]", i - 2);
        g_failed = 1;
      }
    }
    cudaFree(workspace);
  }
  const double unit = c.dtype == TT_F16 ? 0x1p-10 : 0x1p-7;
  const auto compare = [&](const char* what, const Results& a, const Results& b) {
    printf("\n    %s:", what);
    constexpr const char* kNames[] = {"out", "lse", "dq", "dk", "dv"};
    for (int i = 0; i < 5; i++) {
      const double d = distance(a.of[i], b.of[i]);
      const bool right = d <= (i == 1 ? 1e-4 : 2 * unit);
      printf(" %s %.1e%s", kNames[i], d, right ? "" : " [wrong]");
      g_failed |= !right;
    }
  };
  if (library) compare("cuDNN - own", by[kLibrary], by[kOwn]);
  if (library) compare("any order - own", by[kAnyOrder], by[kOwn]);
  compare("groups - own", by[kGroups], by[kOwn]);
  if (c.exact) {
    const Results want = definition(c, p.scale, q.values, k.values, v.values, g.values);
    compare("own - exact", by[0], want);
    if (library) compare("cuDNN - exact", by[kLibrary], want);
    if (library) compare("any order - exact", by[kAnyOrder], want);
    compare("groups - exact", by[kGroups], want);
  }
  const double flops =
      2.0 * double(rows) * double(c.keys) * double(c.width + c.value_width) * (c.causal ? 0.5 : 1);
  constexpr const char* kNames[] = {"own", "cuDNN", "any order", "groups"};
  printf("\n   ");
  for (int i = 0; i < kProviders; i++) {
    if (is_library(i) && !library) continue;
    printf(" %s %.3f + %.3f ms (%.0f and %.0f TF/s)", kNames[i], ms[i][0], ms[i][1],
           flops / ms[i][0] / 1e9, 2.5 * flops / ms[i][1] / 1e9);
  }
  printf("\n");
  for (char* m : {p.lse, p.dq, p.dk, p.dv}) cudaFree(m);
  fflush(stdout);
}

}  // namespace

int main(int argc, char**) {
  for (const Case& c : kCases) test(c, argc == 1);
  puts(g_failed ? "FAILED" : "ok");
  return g_failed;
}
