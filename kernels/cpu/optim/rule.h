// A step of an optimizer over all its tensors. An item is a parameter with its gradient and states,
// all of n elements; a rule (kernels/functors/optim.h) updates them one vector at a time.
#pragma once

#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/functors/optim.h"

TT_ISA_BEGIN

// The addresses of element i.
template <class T> TT_INLINE Run<T> run_at(const Run<T>& run, int64_t i) {
  return {run.p + i, run.g + i, {run.s[0] + i, run.s[1] + i, run.s[2] + i}};
}

// Updates n elements. The rest at the end is a padded vector in the same loop, so that a rule is
// compiled once.
template <class T, class R> TT_INLINE void run_rule(const R& rule, const Run<T>& all, int64_t n) {
  constexpr int L = kLanes<T>;
  alignas(64) T padded[2 + kOptimStates][L] = {};
  const int64_t rest = n & (L - 1);
  const auto part = Part<T>(int32_t(rest));
  const Run<T> end = run_at(all, n - rest);
  Run<T> run = all;
  for (int64_t whole = n - rest;; whole = 0) {
    if (whole == 0) {
      if (rest == 0) return;
      store(padded[0], load(end.p, part));
      store(padded[1], load(end.g, part));
      for (int k = 0; k < kOptimStates; k++)
        if (rule.has[k]) store(padded[2 + k], load(end.s[k], part));
      run = {padded[0], padded[1], {padded[2], padded[3], padded[4]}};
      whole = L;
    }
    for (int64_t i = 0; i < whole; i += L) rule(run_at(run, i));
    if (run.p == padded[0]) break;
  }
  store(end.p, load(padded[0]), part);
  for (int k = 0; k < kOptimStates; k++)
    if (rule.has[k]) store(end.s[k], load(padded[2 + k]), part);
}

// Updates elements [from, to) of an item.
using Update = void (*)(const OptimItem& item, int64_t from, int64_t to);

// An Update of an item whose dtype is T.
template <class T, class R>
TT_NOINLINE void run_direct(const OptimItem& item, int64_t from, int64_t to) {
  Run<T> run = {
      reinterpret_cast<T*>(item.param) + from, reinterpret_cast<const T*>(item.grad) + from, {}};
  // A state that does not exist is never read: any address will do.
  for (int k = 0; k < kOptimStates; k++)
    run.s[k] = item.state[k] ? reinterpret_cast<T*>(item.state[k]) + from : run.p;
  run_rule<T>(R(item), run, to - from);
}

// Updates elements [from, to) of an item of f16 or bf16, block by block in f32.
TT_NOINLINE void run_half(const OptimItem& item, int64_t from, int64_t to, Update update) {
  alignas(64) float v[2 + kOptimStates][kRowBlock];
  OptimItem block = item;
  block.dtype = TT_F32;
  block.param = reinterpret_cast<char*>(v[0]);
  block.grad = reinterpret_cast<char*>(v[1]);
  for (int k = 0; k < kOptimStates; k++)
    if (item.state[k]) block.state[k] = reinterpret_cast<char*>(v[2 + k]);
  for (int64_t i = from; i < to; i += kRowBlock) {
    const int64_t n = min(to - i, kRowBlock);
    load_run(v[0], item.param + 2 * i, 2, n, item.dtype);
    load_run(v[1], item.grad + 2 * i, 2, n, item.dtype);
    for (int k = 0; k < kOptimStates; k++)
      if (item.state[k] && !(item.fresh >> k & 1))
        load_run(v[2 + k], item.state[k] + 2 * i, 2, n, item.dtype);
    update(block, 0, n);
    store_f32(item.param + 2 * i, 2, v[0], n, item.dtype);
    for (int k = 0; k < kOptimStates; k++)
      if (item.state[k]) store_f32(item.state[k] + 2 * i, 2, v[2 + k], n, item.dtype);
  }
}

// An Update by the rule R for any dtype.
template <template <class> class R>
TT_INLINE void run_item(const OptimItem& item, int64_t from, int64_t to) {
  if (item.dtype == TT_F32) return run_direct<float, R<float>>(item, from, to);
  if (is_dtype(item.dtype, TT_F64)) return run_direct<double, R<double>>(item, from, to);
  if (is_built(TT_F16) || is_built(TT_BF16)) run_half(item, from, to, run_direct<float, R<float>>);
}

// Calls run(rule, item, from, to) for units [begin, end) of an OptimPlan.
template <class F> TT_INLINE int32_t run_plan(const void* plan, int64_t begin, int64_t end, F run) {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  ItemWalk<OptimItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const OptimItem& item = walk.item(u, &from, &to);
    run(p.rule, item, from, to);
  }
  return TT_OK;
}

TT_ISA_END
