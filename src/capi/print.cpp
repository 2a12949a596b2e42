#include "core/print.h"

#include "autograd/node.h"
#include "capi/api.h"
#include "ops/gen/ops.h"
#include "tt.h"

using namespace TT_NS;

// Returns the node of the operator that made t, if any.
static NodeRef history_of(const Tensor& t) {
  if (!requires_grad(t)) return NodeRef();
  Edge e = gradient_edge(t);
  NodeRef node = e && !e.is_leaf() ? NodeRef::share(e.node()) : NodeRef();
  release_edge(e);
  return node;
}

tt_status tt_tensor_print(tt_ctx* h, const tt_tensor* handle, char* buffer, int64_t cap,
                          int64_t* n) {
  if (n) *n = 0;
  if (buffer && cap > 0) *buffer = 0;
  return api_call(h, "tensor_print", [&](Ctx&) {
    const Tensor& t = tensor_arg(handle, "t", 1);
    out_arg(n, "n", 4);
    NodeRef node = history_of(t);
    const PrintFacts facts = {t.device, node ? as_node(node).type->name : nullptr,
                              requires_grad(t)};
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef on_cpu = t.is_cpu() || t.device.type == TT_META ? TensorRef::share(&t)
                                                              : op::to_device(t, kCpuDevice);
    const int64_t room = buffer && cap > 0 ? cap : 0;
    *n = print_tensor(buffer, room, *on_cpu, facts);
    if (*n < room) return;
    if (room) *buffer = 0;
    fail_arg(TT_BUFFER_TOO_SMALL, "buffer",
             "buffer has room for {} bytes, the text with its terminating zero needs {}", room,
             *n + 1);
  });
}
