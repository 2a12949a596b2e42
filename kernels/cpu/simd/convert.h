// Blocks of elements: converts between dtypes, gathers and scatters strided elements.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

// A block has at most kBlock elements and kBlockBytes bytes.
constexpr int64_t kBlock = 256, kBlockBytes = 2048;
TT_INLINE constexpr int64_t block_elements(int64_t itemsize) {
  return itemsize > 8 ? kBlockBytes / itemsize : kBlock;
}

// dst[i] = src[i] as another dtype; both are contiguous and do not overlap; n <= kBlock (<= 128 if
// either is c128). Float to integer truncates; a value out of range gives what x86 gives: the
// smallest int32 or int64, cut to the narrower width. Complex to real drops the imaginary part. To
// bool is x != 0. f16 and bf16 round to nearest, ties to even.
void convert_block(void* dst, int32_t dst_dtype, const void* src, int32_t src_dtype,
                   int64_t n) noexcept;

// dst[i] = *(src + i * stride bytes), elements of itemsize 1, 2, 4, 8 or 16.
void gather(char* dst, const char* src, int64_t stride, int64_t n, int64_t itemsize) noexcept;
// *(dst + i * stride) = src[i]
void scatter(char* dst, int64_t stride, const char* src, int64_t n, int64_t itemsize) noexcept;
// dst[r][c] = src[c][r] for r < rows, c < cols; strides between rows of each, in bytes. No overlap.
void transpose_elements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                        int64_t rows, int64_t cols, int64_t itemsize) noexcept;
// dst[i] = *value, with n rounded up to whole 64 bytes.
void fill_block(char* dst, const char* value, int64_t n, int64_t itemsize) noexcept;

// Writes the bytes of a scalar as an element of this dtype.
void encode_scalar(void* dst, int32_t dtype, const tt_scalar& s) noexcept;

TT_ENTRY_END
