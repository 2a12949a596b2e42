#!/usr/bin/env python3
"""Two ways to divide one model among processes, over tt's collectives and transfers: a pipeline of
two stages, and layers whose columns and rows are divided (tensor parallelism). Each compares its
gradients with those of the whole model.

    python3 -m tt.distributed.run --nproc-per-node 2 examples/python/parallel_mlp.py
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
try:
    import tt
except ImportError:  # in the tree, not installed
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import tt
from tt import distributed as dist
from tt import nn
from tt.distributed.nn.functional import all_reduce, copy_to_all

BATCH, WIDTH, HIDDEN, PARTS = 16, 8, 12, 4


def whole_model():
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH))


def data():
    tt.manual_seed(1)
    return tt.randn(BATCH, WIDTH)


def expected():
    """The whole model after backward."""
    model = whole_model()
    model(data()).square().sum().backward()
    return model


class ColumnParallel(nn.Module):
    """A Linear of which each rank has some of the outputs."""

    def __init__(self, whole, rank, size):
        super().__init__()
        self.weight = nn.Parameter(whole.weight.detach().chunk(size, 0)[rank].clone())
        self.bias = nn.Parameter(whole.bias.detach().chunk(size, 0)[rank].clone())

    def forward(self, x):
        return nn.functional.linear(copy_to_all(x), self.weight, self.bias)


class RowParallel(nn.Module):
    """A Linear of which each rank has some of the inputs; the sum over the ranks is the result."""

    def __init__(self, whole, rank, size):
        super().__init__()
        self.weight = nn.Parameter(whole.weight.detach().chunk(size, 1)[rank].clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())

    def forward(self, x):
        # Every rank computes the same from here on: the gradient arrives once, not once per rank.
        return SumOfRanks.apply(nn.functional.linear(x, self.weight)) + self.bias


class SumOfRanks(tt.autograd.Function):
    """The sum over the ranks; its gradient, the same on all ranks, is that of each summand."""

    @staticmethod
    def forward(ctx, x):
        with tt.no_grad():
            return all_reduce(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def tensor_parallel(rank, size):
    model = whole_model()
    first, last = ColumnParallel(model[0], rank, size), RowParallel(model[2], rank, size)
    last(first(data()).relu()).square().sum().backward()
    right = expected()
    compare("columns", first.weight.grad, right[0].weight.grad.chunk(size, 0)[rank])
    compare("rows", last.weight.grad, right[2].weight.grad.chunk(size, 1)[rank])
    compare("bias", last.bias.grad, right[2].bias.grad)


def first_stage(stage, parts):
    """Sends the results of all parts, then takes their gradients in the same order. Nothing waits
    for a send before the end: the other stage may be sending, too."""
    results = [stage(x) for x in parts]
    started = [dist.isend(y.detach(), 1) for y in results]
    for y in results:
        dist.recv(gradient := tt.empty(y.shape), 1)
        y.backward(gradient)
    for work in started:
        work.wait()


def last_stage(stage, parts):
    """Computes forward and backward of each part as it comes."""
    started = []
    for _ in parts:
        dist.recv(x := tt.empty(BATCH // PARTS, HIDDEN), 0)
        x.requires_grad_()
        stage(x).square().sum().backward()
        started.append(dist.isend(x.grad, 0))
    for work in started:
        work.wait()


def pipeline(rank):
    model, parts = whole_model(), data().chunk(PARTS)
    right = expected()
    if rank == 0:
        first_stage(model[:2], parts)
        compare("first stage", model[0].weight.grad, right[0].weight.grad)
    else:
        last_stage(model[2:], parts)
        compare("last stage", model[2].weight.grad, right[2].weight.grad)


def compare(what, found, right):
    assert tt.allclose(found, right, rtol=1e-4, atol=1e-5), f"{what}: the gradients differ"
    print(f"rank {dist.get_rank()}: gradients of {what} equal those of the whole model", flush=True)


def main():
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    if size != 2:
        sys.exit("parallel_mlp: run it in 2 processes")
    tensor_parallel(rank, size)
    pipeline(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
