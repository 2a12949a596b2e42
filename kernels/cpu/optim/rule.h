// A step of an optimizer over all its tensors. An item is a parameter with its gradient and states,
// all of n elements; a rule (kernels/functors/optim.h) updates them one vector at a time.
#pragma once

#include "kernels/cpu/simd/loop.h"
#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/functors/optim.h"

TT_ISA_BEGIN

// Updates n elements; the rest at the end is a padded vector.
template <class T, class R> TT_INLINE void run_rule(const R& rule, const Run<T>& all, int64_t n) {
  constexpr int L = kLanes<T>;
  int64_t i = 0;
  for (; i + L <= n; i += L)
    rule(Run<T>{all.p + i, all.g + i, {all.s[0] + i, all.s[1] + i, all.s[2] + i}});
  if (i == n) return;
  alignas(64) T rest[2 + kOptimStates][L] = {};
  const size_t bytes = size_t(n - i) * sizeof(T);
  __builtin_memcpy(rest[0], all.p + i, bytes);
  __builtin_memcpy(rest[1], all.g + i, bytes);
  for (int k = 0; k < kOptimStates; k++)
    if (rule.has[k]) __builtin_memcpy(rest[2 + k], all.s[k] + i, bytes);
  rule(Run<T>{rest[0], rest[1], {rest[2], rest[3], rest[4]}});
  __builtin_memcpy(all.p + i, rest[0], bytes);
  for (int k = 0; k < kOptimStates; k++)
    if (rule.has[k]) __builtin_memcpy(all.s[k] + i, rest[2 + k], bytes);
}

// Updates elements [from, to) of an item whose dtype is T.
template <class T, class R>
TT_NOINLINE void run_direct(const OptimItem& item, int64_t from, int64_t to) {
  Run<T> run = {
      reinterpret_cast<T*>(item.param) + from, reinterpret_cast<const T*>(item.grad) + from, {}};
  // A state that does not exist is never read: any address will do.
  for (int k = 0; k < kOptimStates; k++)
    run.s[k] = item.state[k] ? reinterpret_cast<T*>(item.state[k]) + from : run.p;
  run_rule<T>(R(item), run, to - from);
}

// Updates elements [from, to) of an item of f16 or bf16, in f32.
template <class R> TT_NOINLINE void run_half(const OptimItem& item, int64_t from, int64_t to) {
  alignas(64) float v[2 + kOptimStates][kRowBlock];
  const R rule(item);
  for (int64_t i = from; i < to; i += kRowBlock) {
    const int64_t n = min(to - i, kRowBlock);
    load_run(v[0], item.param + 2 * i, 2, n, item.dtype);
    load_run(v[1], item.grad + 2 * i, 2, n, item.dtype);
    for (int k = 0; k < kOptimStates; k++)
      if (rule.has[k] && !rule.fresh[k])
        load_run(v[2 + k], item.state[k] + 2 * i, 2, n, item.dtype);
    run_rule<float>(rule, Run<float>{v[0], v[1], {v[2], v[3], v[4]}}, n);
    store_f32(item.param + 2 * i, 2, v[0], n, item.dtype);
    for (int k = 0; k < kOptimStates; k++)
      if (rule.has[k]) store_f32(item.state[k] + 2 * i, 2, v[2 + k], n, item.dtype);
  }
}

template <template <class> class R>
TT_INLINE void run_item(const OptimItem& item, int64_t from, int64_t to) {
  if (item.dtype == TT_F32) return run_direct<float, R<float>>(item, from, to);
  if (is_dtype(item.dtype, TT_F64)) return run_direct<double, R<double>>(item, from, to);
  if (is_built(TT_F16) || is_built(TT_BF16)) run_half<R<float>>(item, from, to);
}

TT_ISA_END
