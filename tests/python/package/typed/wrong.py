# mypy: disallow-any-generics, disallow-subclassing-any, disallow-untyped-calls, check-untyped-defs
# mypy: disallow-untyped-defs, disallow-incomplete-defs, disallow-untyped-decorators
# mypy: warn-return-any, warn-unused-ignores, strict-equality
"""Mistakes. mypy must report every line that ends in a comment "error: CODE", and no other line."""
import tt
from tt import nn, optim
from tt.nn import functional as F

x = tt.ones(2, 3)
tt.zeros("2")  # error: arg-type
x.sum(dim="rows")  # error: arg-type
x.reshapes(3, 2)  # error: attr-defined
tt.Tensor.nothing  # error: attr-defined
tt.no_such_function(x)  # error: attr-defined
F.no_such_function(x)  # error: attr-defined
x.to(x).shape.rows  # error: attr-defined
text: str = x.shape[0]  # error: assignment
nn.Linear("3", 4)  # error: arg-type
nn.Linear(3)  # error: call-arg
nn.Conv2d(1, 2, 3, strides=2)  # error: call-arg
nn.NoSuchLayer()  # error: attr-defined
nn.GELU(approximate="exact")  # error: arg-type
nn.ReLU().forward(3)  # error: arg-type
optim.SGD(x, nesterof=True)  # error: call-arg
optim.SGD([x], lr="fast")  # error: arg-type
optim.lr_scheduler.StepLR(x, 3)  # error: arg-type
nn.Module().load_state_dict(3)  # error: arg-type
nn.init.normal_(x, "wide")  # error: arg-type
tt.manual_seed("seed")  # error: arg-type
tt.tensor([1], dtype="float32")  # error: arg-type
tt.device(3.5)  # error: arg-type
F.cross_entropy(x, x, reduction="median")  # error: arg-type
