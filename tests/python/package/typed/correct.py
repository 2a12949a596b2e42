# mypy: disallow-any-generics, disallow-subclassing-any, disallow-untyped-calls, check-untyped-defs
# mypy: disallow-untyped-defs, disallow-incomplete-defs, disallow-untyped-decorators
# mypy: warn-return-any, warn-unused-ignores, strict-equality
"""A program that uses tt; a strict mypy must find every assert_type true and nothing wrong."""
from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

from typing_extensions import assert_type

import tt
from tt import nn, optim
from tt.autograd import Function
from tt.nn import functional as F

x = tt.tensor([[1.0, 2.0]], requires_grad=True)
assert_type(x, tt.Tensor)
assert_type(x.shape, tt.Size)
assert_type(x.shape[0], int)
assert_type(x.shape[1:], tt.Size)
assert_type(x.size(), tt.Size)
assert_type(x.size(0), int)
assert_type(x.stride(), Tuple[int, ...])
assert_type(x.dtype, tt.dtype)
assert_type(x.device, tt.device)
assert_type(x.requires_grad, bool)
assert_type(x.grad, Optional[tt.Tensor])
assert_type(x.numel(), int)
assert_type(x.float(), tt.Tensor)
assert_type(x.type(), str)
assert_type(x.type(tt.float64), tt.Tensor)
assert_type(x.to("cpu"), tt.Tensor)
assert_type(x.to(tt.int), tt.Tensor)
assert_type(x.T, tt.Tensor)

# operators
assert_type(x + 1, tt.Tensor)
assert_type(2 * x, tt.Tensor)
assert_type(x @ x.mT, tt.Tensor)
assert_type(x == x, tt.Tensor)
assert_type(-x, tt.Tensor)
assert_type(x[0, 1:], tt.Tensor)
assert_type(x.exp().sum(dim=1, keepdim=True), tt.Tensor)
assert_type(tt.zeros(2, 3, dtype=tt.bfloat16), tt.Tensor)
assert_type(tt.zeros((2, 3)), tt.Tensor)
assert_type(x.reshape(2, 1), tt.Tensor)
assert_type(tt.cat([x, x], dim=0), tt.Tensor)
assert_type(x.max(), tt.Tensor)
assert_type(x.max(dim=1).values, tt.Tensor)
values, indices = x.sort(descending=True)
assert_type(indices, tt.Tensor)
assert_type(tt.allclose(x, x), bool)
assert_type(x.equal(x), bool)
assert_type(F.relu(x), tt.Tensor)
assert_type(F.max_pool2d(x, 2), tt.Tensor)
assert_type(F.max_pool2d(x, 2, return_indices=True), Tuple[tt.Tensor, tt.Tensor])
assert_type(F.cross_entropy(x, tt.tensor([1]), reduction="sum"), tt.Tensor)
rows: Iterator[tt.Tensor] = iter(x)
number: float = x.sum().item()

# autograd
x.sum().backward()
(gradient,) = tt.autograd.grad(x.sum(), x)
assert_type(gradient, tt.Tensor)
with tt.no_grad():
    x.add_(1)
handle = x.register_hook(lambda g: g * 2)
handle.remove()


@tt.no_grad()
def half(t: tt.Tensor) -> tt.Tensor:
    return t / 2


assert_type(half(x), tt.Tensor)


class Square(Function):
    @staticmethod
    def forward(ctx: Any, a: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        (a,) = ctx.saved_tensors
        assert isinstance(a, tt.Tensor)
        return 2 * a * g


# modules
class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.ReLU())
        self.head = nn.Linear(width, 1, bias=False)
        self.scale = nn.Parameter(tt.ones(1))
        self.register_buffer("calls", tt.zeros(1))

    def forward(self, inputs: tt.Tensor) -> tt.Tensor:
        hidden: tt.Tensor = self.body(inputs)
        assert_type(self.scale, nn.Parameter)
        return self.head.forward(hidden) * self.scale


net = Net(4).to(tt.float32).train()
assert_type(net, Net)
assert_type(net.head.weight, nn.Parameter)
assert_type(net.head.bias, Optional[nn.Parameter])
assert_type(net.head.in_features, int)
assert_type(nn.ReLU()(x), Any)
assert_type(nn.MultiheadAttention(4, 2).forward(x, x, x), Tuple[tt.Tensor, Optional[tt.Tensor]])
assert_type(nn.Embedding.from_pretrained(x), nn.Embedding)
for name, parameter in net.named_parameters():
    assert_type(name, str)
    assert_type(parameter, nn.Parameter)
net.load_state_dict(net.state_dict())

# optimizers and schedules
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
adam = optim.AdamW([{"params": list(net.parameters()), "lr": 1e-2}], betas=(0.9, 0.99))
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=3)
assert_type(schedule.last_epoch, int)
both = optim.lr_scheduler.SequentialLR(optimizer, [schedule], milestones=[])
optimizer.zero_grad()
optimizer.step()
schedule.step()
assert_type(nn.utils.clip_grad_norm_(net.parameters(), 1.0), tt.Tensor)

# the rest
tt.save(net.state_dict(), "net.safetensors")
generator = tt.manual_seed(1)
assert_type(generator, tt.Generator)
assert_type(tt.get_rng_state(), tt.Tensor)
assert_type(tt.finfo(tt.float32).eps, float)
assert_type(tt.runtime.memory_stats()["in_use"], int)
try:
    x + tt.ones(3)
except tt.TtError as error:
    assert_type(error.op, str)
