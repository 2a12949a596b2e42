// Walks the steps of packed rows in the order of a direction.
#pragma once

#include "base/small_vec.h"
#include "plan/recurrent_plan.h"

namespace TT_NS {

// The rows of one step.
struct RecurrentStep {
  int64_t at, rows;
};

// Steps 0 … n - 1 in the order in which a direction computes them.
class RecurrentWalk {
 public:
  RecurrentWalk(Span<const int64_t> batch_sizes, int64_t total, bool reverse)
      : sizes_(batch_sizes), reverse_(reverse) {
    t_ = reverse ? sizes_.n - 1 : 0;
    at_ = reverse ? total - sizes_[t_] : 0;
  }
  RecurrentStep now() const { return {at_, sizes_[t_]}; }
  // The step computed before this one; it has no rows if this is the first.
  RecurrentStep before() const { return neighbour(!reverse_); }
  RecurrentStep after() const { return neighbour(reverse_); }
  void next() { move(reverse_); }
  void back() { move(!reverse_); }

 private:
  RecurrentStep neighbour(bool lower) const {
    if (lower ? t_ == 0 : t_ == sizes_.n - 1) return {at_, 0};
    if (lower) return {at_ - sizes_[t_ - 1], sizes_[t_ - 1]};
    return {at_ + sizes_[t_], sizes_[t_ + 1]};
  }
  void move(bool lower) {
    if (lower) {
      t_--;
      if (t_ >= 0) at_ -= sizes_[t_];
    } else {
      at_ += sizes_[t_];
      t_++;
    }
  }

  const Span<const int64_t> sizes_;
  const bool reverse_;
  int64_t t_, at_;
};

// Multiplications of a task, at least.
constexpr int64_t kRecurrentTask = 1 << 15;

// Sets a stage of blocks, each of rows * depth * columns multiplications.
inline void recurrent_stage(RecurrentPlan* p, int stage, int64_t blocks, int64_t depth,
                            int64_t columns) {
  const int64_t work = (p->rows + 1) * (depth + 1) * columns;
  p->run.units[stage] = blocks;
  p->run.grain[stage] = max<int64_t>(1, kRecurrentTask / work);
}

// Sets the stages of a step; rows and sizes are set.
inline void recurrent_forward_stages(RecurrentPlan* p) {
  const int64_t lanes = recurrent_lanes(p->mode);
  one_stage(&p->run, 0, 1);
  recurrent_stage(p, 0, ceil_div(p->hidden, lanes), p->state, lanes * recurrent_gates(p->mode));
  if (!p->projects) return;
  p->run.n = 2;
  recurrent_stage(p, 1, ceil_div(p->state, kRecurrentProjectedLanes), p->hidden,
                  kRecurrentProjectedLanes);
}
inline void recurrent_backward_stages(RecurrentPlan* p) {
  const int64_t lanes = kRecurrentBackwardLanes;
  const int64_t depth = recurrent_gates(p->mode) * p->hidden;
  one_stage(&p->run, 0, 1);
  recurrent_stage(p, 0, ceil_div(p->state, lanes), depth, lanes);
  if (!p->projects) return;
  p->run.n = 2;
  recurrent_stage(p, 1, ceil_div(p->hidden, lanes), p->state, lanes);
}

}  // namespace TT_NS
