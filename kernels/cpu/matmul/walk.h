// BatchWalk: the operands of one matmul of a batch. It starts at any index and steps to the
// next one by adding strides; at[i] counts along batch dimension i, 0 being the innermost.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/matmul_plan.h"

TT_ISA_BEGIN

struct BatchWalk {
  const MatmulPlan& p;
  const char *a, *b, *d;
  char* c;
  int64_t at[kMaxMatmulBatch];

  TT_INLINE BatchWalk(const MatmulPlan& plan, int64_t index)
      : p(plan), a(p.a), b(p.b), d(p.d), c(p.c) {
    for (int32_t i = 0; i < p.n_batch; i++) {
      const MatmulBatchDim& dim = p.batch_dim[i];
      at[i] = i + 1 < p.n_batch ? index % dim.size : index;
      index /= dim.size;
      a += at[i] * dim.a;
      b += at[i] * dim.b;
      c += at[i] * dim.c;
      d += at[i] * dim.d;
    }
  }
  TT_INLINE void next() {
    for (int32_t i = 0; i < p.n_batch; i++) {
      const MatmulBatchDim& dim = p.batch_dim[i];
      a += dim.a;
      b += dim.b;
      c += dim.c;
      d += dim.d;
      if (++at[i] < dim.size) return;
      at[i] = 0;
      a -= dim.size * dim.a;
      b -= dim.size * dim.b;
      c -= dim.size * dim.c;
      d -= dim.size * dim.d;
    }
  }
};

TT_ISA_END
