// Any dtype to any dtype in at most three vectorised passes: some fifty loops for 12 x 12
// conversions.
//
//   source dtype        --widening-->   i32 i64 f32 f64 c64 c128
//   one of these six    --between-->    another one of them
//   one of these six    --narrowing-->  destination dtype
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/transpose.h"

#include "kernels/cpu/simd/vec.h"
#include "kernels/functors/functor.h"

TT_ISA_BEGIN

enum Wide : int32_t { kI32, kI64, kF32, kF64, kC64, kC128, kNumWide };

constexpr int32_t kWideOf[16] = {kI32, kI32, kI32, kI32, kI32, kI32, kI64,
                                 kF32, kF32, kF32, kF64, kC64, kC128};
constexpr bool is_wide(int32_t dtype) {
  return dtype == TT_I32 || dtype == TT_I64 || dtype >= TT_F32;
}

// Float to integer as by cvttss2si, but defined for every input.
template <class I, class F> TT_INLINE I truncate_to(F x) {
  constexpr F kLimit = sizeof(I) == 4 ? F(0x1p31) : F(0x1p63);
  const bool fits = x >= -kLimit && x < kLimit;
  return I(fits ? x : -kLimit);
}

template <class D, class S> TT_INLINE D convert(S s) {
  if constexpr (kIsComplex<S>) {
    if constexpr (kIsComplex<D>) return {typename D::Real(s.re), typename D::Real(s.im)};
    else return convert<D>(s.re);
  } else if constexpr (kIsComplex<D>) {
    return {typename D::Real(s), 0};
  } else if constexpr (kIsFloat<S> && kIsInt<D>) {
    return truncate_to<D>(s);
  } else {
    return D(s);
  }
}

// NULL: the build lacks one of the dtypes, or they are the same.
using Pass = void (*)(void* dst, const void* src, int64_t n);

// Between a complex number and a real one of another type than its parts: not worth a vector loop.
template <class D, class S> constexpr bool kIsRare =
    kIsComplex<S> != kIsComplex<D> && !kIsSame<Real<S>, Real<D>>;

template <class D, class S> void wide_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<D*>(dst);
  const auto* TT_RESTRICT s = static_cast<const S*>(src);
  if constexpr (kIsRare<D, S>) {
    for (int64_t i = 0; i < n; i++) {
      d[i] = convert<D>(s[i]);
      TT_SCALAR_LOOP;
    }
    return;
  }
  TT_VECTORIZE for (int64_t i = 0; i < n; i++) d[i] = convert<D>(s[i]);
}

// Whether the masked bits of a word are not all 0.
template <class Word>
TT_ONE_BODY void to_bool_pass(void* dst, const void* src, int64_t n, Word mask) {
  auto* TT_RESTRICT d = static_cast<uint8_t*>(dst);
  const auto* TT_RESTRICT s = static_cast<const Word*>(src);
  TT_VECTORIZE for (int64_t i = 0; i < n; i++) d[i] = (s[i] & mask) != 0;
}

void c128_to_bool_pass(void* dst, const void* src, int64_t n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const c128*>(src);
  for (int64_t i = 0; i < n; i++) {
    d[i] = s[i] != c128{};
    TT_SCALAR_LOOP;
  }
}

void from_bool_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<int32_t*>(dst);
  const auto* TT_RESTRICT s = static_cast<const uint8_t*>(src);
  TT_VECTORIZE for (int64_t i = 0; i < n; i++) d[i] = s[i] != 0;
}

TT_INLINE float f16_to_f32(uint16_t h) {
  const uint32_t em = h & 0x7fffu;
  const uint32_t shifted = em << 13;
  // Normal: the exponent is rebiased. Subnormal: an exact product. Inf and nan keep their fraction,
  // nan being made quiet.
  const float sub = float(int32_t(em)) * 0x1p-24f;
  const uint32_t special = shifted | 0x7f800000u | (em > 0x7c00u ? 0x400000u : 0u);
  const uint32_t normal = shifted + (112u << 23);
  const uint32_t finite = em >= 0x400u ? normal : bit_cast<uint32_t>(sub);
  const uint32_t bits = em >= 0x7c00u ? special : finite;
  return bit_cast<float>(bits | uint32_t(h & 0x8000u) << 16);
}

TT_INLINE uint16_t f32_to_f16(float f) {
  const uint32_t u = bit_cast<uint32_t>(f);
  const uint32_t sign = u >> 16 & 0x8000u;
  const uint32_t a = u & 0x7fffffffu;
  const uint32_t nan = 0x7e00u | (a >> 13 & 0x3ffu);
  const float pos = bit_cast<float>(a > 0x38800000u ? 0x38800000u : a);
  const uint32_t sub = bit_cast<uint32_t>(pos + 0.5f) - 0x3f000000u;  // the addition rounds
  const uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13;
  const uint32_t finite = a < 0x38800000u ? sub : normal;
  const uint32_t not_nan = a >= 0x477ff000u ? 0x7c00u : finite;
  const uint32_t r = a > 0x7f800000u ? nan : not_nan;
  return uint16_t(sign | r);
}

TT_INLINE uint16_t f32_to_bf16(float f) {
  const uint32_t u = bit_cast<uint32_t>(f);
  const uint32_t nan = u >> 16 | 0x40u;
  const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return uint16_t((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

void from_bf16_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<float*>(dst);
  const auto* TT_RESTRICT s = static_cast<const uint16_t*>(src);
  TT_VECTORIZE for (int64_t i = 0; i < n; i++) d[i] = bit_cast<float>(uint32_t(s[i]) << 16);
}
void to_bf16_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<uint16_t*>(dst);
  const auto* TT_RESTRICT s = static_cast<const float*>(src);
  TT_VECTORIZE for (int64_t i = 0; i < n; i++) d[i] = f32_to_bf16(s[i]);
}

void from_f16_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<float*>(dst);
  const auto* TT_RESTRICT s = static_cast<const uint16_t*>(src);
  int64_t i = 0;
  if constexpr (kHalfConversions)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store(d + i, load_f16(s + i));
  if constexpr (kHalfConversions)
    for (; i < n; i++) {
      d[i] = f16_to_f32(s[i]);
      TT_SCALAR_LOOP;
    }
  TT_VECTORIZE for (; i < n; i++) d[i] = f16_to_f32(s[i]);
}
void to_f16_pass(void* dst, const void* src, int64_t n) {
  auto* TT_RESTRICT d = static_cast<uint16_t*>(dst);
  const auto* TT_RESTRICT s = static_cast<const float*>(src);
  int64_t i = 0;
  if constexpr (kHalfConversions)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store_f16(d + i, load(s + i));
  if constexpr (kHalfConversions)
    for (; i < n; i++) {
      d[i] = f32_to_f16(s[i]);
      TT_SCALAR_LOOP;
    }
  TT_VECTORIZE for (; i < n; i++) d[i] = f32_to_f16(s[i]);
}

template <class T> constexpr bool kBuilt = is_built(Traits<T>::kDtype);
template <class D, class S> constexpr Pass wide_pass_of() {
  if constexpr (kBuilt<D> && kBuilt<S> && !kIsSame<D, S>) return wide_pass<D, S>;
  else return nullptr;
}
template <class D> constexpr Pass kWideRow[kNumWide] = {
    wide_pass_of<D, int32_t>(), wide_pass_of<D, int64_t>(), wide_pass_of<D, float>(),
    wide_pass_of<D, double>(),  wide_pass_of<D, c64>(),     wide_pass_of<D, c128>()};

Pass widening(int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return from_bool_pass;
    case TT_U8: return wide_pass<int32_t, uint8_t>;
    case TT_I8: return is_built(TT_I8) ? wide_pass<int32_t, int8_t> : nullptr;
    case TT_I16: return is_built(TT_I16) ? wide_pass<int32_t, int16_t> : nullptr;
    case TT_F16: return is_built(TT_F16) ? from_f16_pass : nullptr;
    default: return is_built(TT_BF16) ? from_bf16_pass : nullptr;
  }
}

Pass narrowing(int32_t dtype) {
  switch (dtype) {
    case TT_U8: return wide_pass<uint8_t, int32_t>;
    case TT_I8: return is_built(TT_I8) ? wide_pass<uint8_t, int32_t> : nullptr;  // the same bits
    case TT_I16: return is_built(TT_I16) ? wide_pass<int16_t, int32_t> : nullptr;
    case TT_F16: return is_built(TT_F16) ? to_f16_pass : nullptr;
    default: return is_built(TT_BF16) ? to_bf16_pass : nullptr;
  }
}

Pass between(int32_t dst, int32_t src) {
  switch (dst) {
    case kI32: return kWideRow<int32_t>[src];
    case kI64: return kWideRow<int64_t>[src];
    case kF32: return kWideRow<float>[src];
    case kF64: return kWideRow<double>[src];
    case kC64: return kWideRow<c64>[src];
    default: return kWideRow<c128>[src];
  }
}

// Bits of an element of a dtype that are all 0 if and only if it is 0: all bits but the signs of
// floating numbers, by code.
constexpr uint64_t kValueBits[16] = {0,
                                     0xff,
                                     0xff,
                                     0xff,
                                     0xffff,
                                     0xffffffff,
                                     0xffffffffffffffff,
                                     0x7fff,
                                     0x7fff,
                                     0x7fffffff,
                                     0x7fffffffffffffff,
                                     0x7fffffff7fffffff,
                                     0,
                                     0xffff,
                                     0xffffffff,
                                     0xffffffffffffffff};
void to_bool(void* dst, int32_t dtype, const void* src, int64_t n) {
  const uint64_t mask = kValueBits[dtype];
  switch (kItemSize[dtype]) {
    case 1: return to_bool_pass(dst, src, n, uint8_t(mask));
    case 2: return to_bool_pass(dst, src, n, uint16_t(mask));
    case 4: return to_bool_pass(dst, src, n, uint32_t(mask));
    case 8: return to_bool_pass(dst, src, n, mask);
    default: return c128_to_bool_pass(dst, src, n);
  }
}

// ---- uint16, uint32, uint64: by scalar loops, since they are rare ----

template <class D, class S> void scalar_pass(void* dst, const void* src, int64_t n) {
  auto* d = static_cast<D*>(dst);
  const auto* s = static_cast<const S*>(src);
  for (int64_t i = 0; i < n; i++) {
    d[i] = D(s[i]);
    TT_SCALAR_LOOP;
  }
}
// Values from 2^63 on are those of uint64, others those of int64.
template <class F> void float_to_uint64(uint64_t* d, const void* src, int64_t n) {
  const auto* s = static_cast<const F*>(src);
  for (int64_t i = 0; i < n; i++) {
    d[i] = s[i] >= F(0x1p63) && s[i] < F(0x1p64) ? uint64_t(s[i])
                                                 : uint64_t(truncate_to<int64_t>(s[i]));
    TT_SCALAR_LOOP;
  }
}
constexpr bool is_wide_unsigned(int32_t dtype) { return dtype > TT_C128; }
constexpr bool is_floating(int32_t dtype) { return dtype >= TT_F16 && dtype <= TT_C128; }
template <bool> struct LongestFloat { using type = double; };
template <> struct LongestFloat<false> { using type = float; };  // of a build without float64
using Longest = LongestFloat<is_built(TT_F64)>::type;

// uint64 as the floating dtype from which it becomes dst_dtype in one rounding; returns that dtype.
int32_t float_of_uint64(void* out, int32_t dst_dtype, const void* src, int64_t n) {
  if (is_built(TT_F64) && (dst_dtype == TT_F64 || dst_dtype == TT_C128)) {
    scalar_pass<Longest, uint64_t>(out, src, n);
    return TT_F64;
  }
  scalar_pass<float, uint64_t>(out, src, n);
  return TT_F32;
}
// The value as int64; that of uint64 by its bits.
void widen_unsigned(int64_t* out, int32_t src_dtype, const void* src, int64_t n) {
  if (src_dtype == TT_U16) scalar_pass<int64_t, uint16_t>(out, src, n);
  else if (src_dtype == TT_U32) scalar_pass<int64_t, uint32_t>(out, src, n);
  else memcpy(out, src, size_t(n) * 8);
}
void narrow_to_unsigned(void* dst, int32_t dst_dtype, const int64_t* src, int64_t n) {
  if (dst_dtype == TT_U16) scalar_pass<uint16_t, int64_t>(dst, src, n);
  else if (dst_dtype == TT_U32) scalar_pass<uint32_t, int64_t>(dst, src, n);
  else memcpy(dst, src, size_t(n) * 8);
}

template <class T> void gather_as(char* dst, const char* src, int64_t stride, int64_t n) {
  auto* TT_RESTRICT d = reinterpret_cast<T*>(dst);
  if (stride == -int64_t(sizeof(T))) {
    const auto* TT_RESTRICT s = reinterpret_cast<const T*>(src);
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) d[i] = s[-i];
    return;
  }
  for (int64_t i = 0; i < n; i++, src += stride) d[i] = *reinterpret_cast<const T*>(src);
}
template <class T> void scatter_as(char* dst, int64_t stride, const char* src, int64_t n) {
  const auto* TT_RESTRICT s = reinterpret_cast<const T*>(src);
  for (int64_t i = 0; i < n; i++, dst += stride) *reinterpret_cast<T*>(dst) = s[i];
}
template <class T> void fill_as(char* dst, const char* value, int64_t n) {
  auto* TT_RESTRICT d = reinterpret_cast<T*>(dst);
  const T v = *reinterpret_cast<const T*>(value);
  constexpr int64_t kStep = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i += kStep)
    for (int64_t j = 0; j < kStep; j++) d[i + j] = v;
}

// A tile of n x n words and its transpose, for a part of a tile.
template <class Word, int n> struct TilePart {
  static constexpr int64_t kRow = n * int64_t(sizeof(Word));
  alignas(64) Word whole[n][n];
  alignas(64) Word turned[n][n];

  // Loads cols <= n rows of `rows` elements; what is left of the tile is 0.
  TT_NOINLINE void load_from(const char* src, int64_t src_stride, int64_t rows, int64_t cols) {
    memset(whole, 0, sizeof whole);
    for (int64_t c = 0; c < cols; c++)
      store(whole[c],
            load(reinterpret_cast<const Word*>(src + c * src_stride), Part<Word>(int(rows))));
  }
  TT_NOINLINE void store_to(char* dst, int64_t dst_stride, int64_t rows, int64_t cols) const {
    for (int64_t r = 0; r < rows; r++)
      store(reinterpret_cast<Word*>(dst + r * dst_stride), load(turned[r]), Part<Word>(int(cols)));
  }
};

// A source that spans more is not expected in the second-level cache. Its bands take two lines of
// each of its rows, since processors fetch lines in pairs.
constexpr int64_t kFarBytes = int64_t(1) << 20;
constexpr int64_t kFarBand = 128;
#ifdef __OPTIMIZE_SIZE__  // as the baseline of x86-64 is compiled
constexpr bool kHasBands = false;
#else
constexpr bool kHasBands = true;
#endif

TT_INLINE void prefetch_tile(const char* dst, int64_t dst_stride, const char* src,
                             int64_t src_stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    TT_PREFETCH(src + i * src_stride);
    TT_PREFETCH_WRITE(dst + i * dst_stride);
  }
}

// The tiles of an output, band after band; in a band column after column of tiles.
struct TileWalk {
  int64_t rows, cols;
  int64_t tile;       // its rows and columns
  int64_t band_rows;  // a multiple of tile
  int64_t band = 0;   // its first row
  int64_t r = 0, c = 0;

  TT_INLINE bool is_done() const { return band >= rows; }
  TT_INLINE void next() {
    r += tile;
    if (r < min(rows, band + band_rows)) return;
    c += tile;
    if (c >= cols) {
      c = 0;
      band += band_rows;
    }
    r = band;
  }
};

// T, a word without sign, selects transpose_tile(); Word is its type for loads of parts.
template <class T, class Word> void transpose_words(char* dst, int64_t dst_stride, const char* src,
                                                    int64_t src_stride, int64_t rows,
                                                    int64_t cols) {
  constexpr int64_t kItem = sizeof(T);
  constexpr int64_t n = kTileBytes / kItem;
  const bool is_far = kHasBands && cols * src_stride > kFarBytes;
  TilePart<Word, int(n)> part;
  TileWalk at = {rows, cols, n, is_far ? kFarBand / kItem : n};
  for (; !at.is_done(); at.next()) {
    const int64_t nr = min(rows - at.r, n);
    const int64_t nc = min(cols - at.c, n);
    char* const d = dst + at.r * dst_stride + at.c * kItem;
    const char* s = src + at.c * src_stride + at.r * kItem;
    const bool is_part = nr < n || nc < n;
    char* to = d;
    const char* from = s;
    int64_t to_stride = dst_stride, from_stride = src_stride;
    if (TT_UNLIKELY(is_part)) {
      if (nr * nc < 2 * n) {
        transpose_scalar<T>(d, dst_stride, s, src_stride, nr, nc);
        continue;
      }
      part.load_from(s, src_stride, nr, nc);
      to = reinterpret_cast<char*>(part.turned);
      from = reinterpret_cast<const char*>(part.whole);
      to_stride = from_stride = part.kRow;
    } else if (is_far) {  // the next tile of these rows; beyond the last a prefetch does nothing
      prefetch_tile(d + n * kItem, dst_stride, s + n * src_stride, src_stride, n);
    }
    transpose_tile<T, int(n)>(to, to_stride, from, from_stride);  // one copy of its long body
    if (TT_UNLIKELY(is_part)) part.store_to(d, dst_stride, nr, nc);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

static TT_COLD void convert_unsigned(void* dst, int32_t dst_dtype, const void* src,
                                     int32_t src_dtype, int64_t n) {
  alignas(64) int64_t mid[kBlock];
  if (src_dtype == TT_U64 && is_floating(dst_dtype)) {
    const int32_t as = float_of_uint64(mid, dst_dtype, src, n);
    return convert_block(dst, dst_dtype, mid, as, n);
  }
  if (is_wide_unsigned(src_dtype)) {
    widen_unsigned(mid, src_dtype, src, n);
    return convert_block(dst, dst_dtype, mid, TT_I64, n);
  }
  if (dst_dtype == TT_U64 && is_floating(src_dtype)) {
    convert_block(mid, is_built(TT_F64) ? TT_F64 : TT_F32, src, src_dtype, n);
    return float_to_uint64<Longest>(static_cast<uint64_t*>(dst), mid, n);
  }
  convert_block(mid, TT_I64, src, src_dtype, n);
  narrow_to_unsigned(dst, dst_dtype, mid, n);
}

void convert_block(void* dst, int32_t dst_dtype, const void* src, int32_t src_dtype,
                   int64_t n) noexcept {
  alignas(64) char tmp[2][kBlockBytes];
  if (dst_dtype == src_dtype) {
    memcpy(dst, src, size_t(n * kItemSize[dst_dtype]));
    return;
  }
  if (dst_dtype == TT_BOOL) return to_bool(dst, src_dtype, src, n);
  if (is_wide_unsigned(src_dtype) || is_wide_unsigned(dst_dtype))
    return convert_unsigned(dst, dst_dtype, src, src_dtype, n);
  const int32_t from = kWideOf[src_dtype];
  const int32_t to = kWideOf[dst_dtype];
  if (!is_wide(src_dtype)) {
    const bool last = is_wide(dst_dtype) && from == to;
    widening(src_dtype)(last ? dst : tmp[0], src, n);
    if (last) return;
    src = tmp[0];
  }
  if (from != to) {
    const bool last = is_wide(dst_dtype);
    between(to, from)(last ? dst : tmp[1], src, n);
    if (last) return;
    src = tmp[1];
  }
  narrowing(dst_dtype)(dst, src, n);
}

void gather(char* dst, const char* src, int64_t stride, int64_t n, int64_t itemsize) noexcept {
  if (stride == itemsize) {
    memcpy(dst, src, size_t(n * itemsize));
    return;
  }
  switch (itemsize) {
    case 1: return gather_as<uint8_t>(dst, src, stride, n);
    case 2: return gather_as<uint16_t>(dst, src, stride, n);
    case 4: return gather_as<uint32_t>(dst, src, stride, n);
    case 8: return gather_as<uint64_t>(dst, src, stride, n);
    default: return gather_as<Bytes16>(dst, src, stride, n);
  }
}

void scatter(char* dst, int64_t stride, const char* src, int64_t n, int64_t itemsize) noexcept {
  if (stride == itemsize) {
    memcpy(dst, src, size_t(n * itemsize));
    return;
  }
  switch (itemsize) {
    case 1: return scatter_as<uint8_t>(dst, stride, src, n);
    case 2: return scatter_as<uint16_t>(dst, stride, src, n);
    case 4: return scatter_as<uint32_t>(dst, stride, src, n);
    case 8: return scatter_as<uint64_t>(dst, stride, src, n);
    default: return scatter_as<Bytes16>(dst, stride, src, n);
  }
}

void transpose_elements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                        int64_t rows, int64_t cols, int64_t itemsize) noexcept {
  switch (itemsize) {
    case 1: return transpose<uint8_t>(dst, dst_stride, src, src_stride, rows, cols);
    case 2: return transpose<uint16_t>(dst, dst_stride, src, src_stride, rows, cols);
    case 4: return transpose_words<uint32_t, int32_t>(dst, dst_stride, src, src_stride, rows, cols);
    case 8: return transpose_words<uint64_t, int64_t>(dst, dst_stride, src, src_stride, rows, cols);
    default: return transpose<Bytes16>(dst, dst_stride, src, src_stride, rows, cols);
  }
}

void fill_block(char* dst, const char* value, int64_t n, int64_t itemsize) noexcept {
  switch (itemsize) {
    case 1: return fill_as<uint8_t>(dst, value, n);
    case 2: return fill_as<uint16_t>(dst, value, n);
    case 4: return fill_as<uint32_t>(dst, value, n);
    case 8: return fill_as<uint64_t>(dst, value, n);
    default: return fill_as<Bytes16>(dst, value, n);
  }
}

void encode_scalar(void* dst, int32_t dtype, const tt_scalar& s) noexcept {
  if (s.kind <= TT_SCALAR_INT) return convert_block(dst, dtype, &s.i, TT_I64, 1);
  const c128 z = {s.re, s.kind == TT_SCALAR_COMPLEX ? s.im : 0.0};
  convert_block(dst, dtype, &z, TT_C128, 1);
}

TT_ENTRY_END
