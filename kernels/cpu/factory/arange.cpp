// fill_arange: out[i] = start + i * step, each computed by itself. Units: chunks of kArangeChunk.
#include "kernels/cpu/factory/factory.h"

#include "kernels/cpu/simd/load.h"
#include "plan/factory_plan.h"

TT_ISA_BEGIN

constexpr int64_t kBlock = 1024;  // elements converted at a time

template <class T> inline void write_arange(const ArangePlan& p, int64_t from, int64_t to) {
  T* out = reinterpret_cast<T*>(p.out);
  for (int64_t i = from; i < to; i++) {
    if constexpr (T(0.5) != 0) out[i] = T(p.start + double(i) * p.step);
    else out[i] = T(uint64_t(p.start_int) + uint64_t(i) * uint64_t(p.step_int));
  }
}

inline void write_arange_narrow(const ArangePlan& p, int64_t from, int64_t to) {
  alignas(64) float v[kBlock];
  for (int64_t i = from; i < to; i += kBlock) {
    const int64_t n = min(to - i, kBlock);
    for (int64_t k = 0; k < n; k++) v[k] = float(p.start + double(i + k) * p.step);
    store_f32(p.out + i * 2, 2, v, n, p.dtype);
  }
}

template <class R> inline void write_arange_complex(const ArangePlan& p, int64_t from, int64_t to) {
  Complex<R>* out = reinterpret_cast<Complex<R>*>(p.out);
  for (int64_t i = from; i < to; i++) out[i] = {R(p.start + double(i) * p.step), 0};
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(fill_arange)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ArangePlan& p = *static_cast<const ArangePlan*>(plan);
  const int64_t from = begin * kArangeChunk;
  const int64_t to = min(end * kArangeChunk, p.n);
  switch (p.dtype) {
    case TT_BOOL:
      for (int64_t i = from; i < to; i++) p.out[i] = char(p.start_int + i * p.step_int != 0);
      break;
    case TT_U8:
    case TT_I8: write_arange<uint8_t>(p, from, to); break;
    case TT_I16: write_arange<uint16_t>(p, from, to); break;
    case TT_I32: write_arange<uint32_t>(p, from, to); break;
    case TT_I64: write_arange<uint64_t>(p, from, to); break;
    case TT_F32: write_arange<float>(p, from, to); break;
    case TT_F64: write_arange<double>(p, from, to); break;
    case TT_C64: write_arange_complex<float>(p, from, to); break;
    case TT_C128: write_arange_complex<double>(p, from, to); break;
    default: write_arange_narrow(p, from, to);
  }
  return TT_OK;
}

TT_ENTRY_END
