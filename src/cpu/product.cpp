#include "cpu/product.h"

#include "cpu/matmul_run.h"

namespace TT_NS {

void multiply_parts(Dtype d, const Part& c, const Part& a, const Part& b, double factor,
                    bool adds) {
  if (!c.rows || !c.columns || !a.columns) return;
  const Part* const parts[3] = {&a, &b, &c};
  int64_t size[3][2];
  int64_t stride[3][2];
  MatmulOperand operands[3];
  for (int i = 0; i < 3; i++) {
    size[i][0] = parts[i]->rows;
    size[i][1] = parts[i]->columns;
    stride[i][0] = parts[i]->row;
    stride[i][1] = parts[i]->column;
    operands[i] = {parts[i]->data, 2, size[i], stride[i]};
  }
  MatmulPlan plan;
  matmul_build(&plan, int32_t(d), operands[0], operands[1], adds ? &operands[2] : nullptr,
               operands[2], {factor, 0, int64_t(factor)}, {1, 0, 1});
  const Memory workspace(matmul_workspace_bytes(plan));
  plan.workspace = workspace.get();
  run_matmul(plan, Isa(ctx().isa), ctx().rt->pool);
}

}  // namespace TT_NS
