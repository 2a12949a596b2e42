"""tt.fx: traced Python code, as PyTorch's documentation and tutorials use it; then graphs of
captured operators, which are read, rewritten and run. The tests above the line pass with PyTorch in
tt's place, too."""
import copy
import math
import operator
import pickle
import time

import pytest
import tt
import tt.nn.functional as F
from tt import fx, nn
from tt.fx import Proxy, Tracer, Transformer, symbolic_trace
from tt.fx.passes.shape_prop import ShapeProp

fx.wrap("sqrt_of")
fx.wrap("len")


def sqrt_of(x):
    return math.sqrt(x)


def close(a, b):
    tt.testing.assert_close(a, b)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.param = nn.Parameter(tt.rand(3, 4))
        self.linear = nn.Linear(4, 5)
        self.layers = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
        self.register_buffer("scale", tt.full((5,), 2.0))

    def forward(self, x):
        h = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        return self.layers(h) * self.scale, h.size(0)


CODE = """def forward(self, x):
    param = self.param
    add = x + param;  x = param = None
    linear = self.linear(add);  add = None
    clamp = linear.clamp(min = 0.0, max = 1.0);  linear = None
    layers_0 = getattr(self.layers, "0")(clamp)
    layers_1 = getattr(self.layers, "1")(layers_0);  layers_0 = None
    scale = self.scale
    mul = layers_1 * scale;  layers_1 = scale = None
    size = clamp.size(0);  clamp = None
    return (mul, size)"""
GRAPH = """graph():
    %x : [num_users=1] = placeholder[target=x]
    %param : [num_users=1] = get_attr[target=param]
    %add : [num_users=1] = [target=operator.add](args = (%x, %param), kwargs = {})
    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})
    %clamp : [num_users=2] = call_method[target=clamp](args = (%linear,), kwargs = LIMITS)
    %layers_0 : [num_users=1] = call_module[target=layers.0](args = (%clamp,), kwargs = {})
    %layers_1 : [num_users=1] = call_module[target=layers.1](args = (%layers_0,), kwargs = {})
    %scale : [num_users=1] = get_attr[target=scale]
    %mul : [num_users=1] = [target=operator.mul](args = (%layers_1, %scale), kwargs = {})
    %size : [num_users=1] = call_method[target=size](args = (%clamp, 0), kwargs = {})
    return (mul, size)"""
GRAPH = GRAPH.replace("= [target", "= call_function[target").replace(
    "LIMITS", "{min: 0.0, max: 1.0}"
)


def test_traces_a_module():
    m = Mixed()
    traced = symbolic_trace(m)
    assert traced.code.strip() == CODE and str(traced.graph) == GRAPH
    x = tt.rand(3, 4)
    close(traced(x)[0], m(x)[0])
    assert traced(x)[1] == 3 and list(traced.state_dict()) == list(m.state_dict())
    loss = traced(x)[0].sum()
    loss.backward()
    assert m.param.grad is not None and traced.param is m.param


def test_traces_functions_with_all_kinds_of_parameters():
    def f(input, y=2, *rest, k=3, **more):
        a, b = tt.split(input, 2)
        return {"a": a[:, None] + y, "b": [b, (k, input.shape[0])], "c": 2 - b, "d": -b}

    g = symbolic_trace(f)
    assert "def forward(self, input, y = 2, k = 3, *rest, **more):" in g.code
    assert "getitem_2 = getitem[(slice(None, None, None), None)]" in g.code
    x = tt.rand(4, 3)
    found, wanted = g(x), f(x)
    close(found["a"], wanted["a"])
    close(found["c"], wanted["c"])
    assert found["b"][1] == (3, 4)
    names = [n.name for n in g.graph.nodes]
    assert names[:2] == ["input_1", "y"] and "getattr_1" in names


def test_a_list_of_operands_of_einsum_is_taken_apart():
    def product(x, y):
        return tt.einsum("ij,jk->ik", [x, y])

    graph = tt.fx.symbolic_trace(product)
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    assert node.target is tt.einsum and [str(x) for x in node.args] == ["ij,jk->ik", "x", "y"]
    assert graph(tt.ones(2, 3), tt.ones(3, 2)).tolist() == [[3, 3], [3, 3]]


def test_concrete_arguments_and_leaf_functions():
    def f(x, flag):
        if flag:
            return x
        return sqrt_of(x.size(0)) * tt.relu(x) + len(x) + math.floor(x.size(1) / 2)

    g = symbolic_trace(f, concrete_args={"flag": False})
    x = tt.rand(4, 3)
    close(g(x, False), f(x, False))
    with pytest.raises(AssertionError, match="specialized to have value False"):
        g(x, True)
    targets = [n.target for n in g.graph.nodes if n.op == "call_function"]
    assert sqrt_of in targets and len in targets and math.floor in targets


@pytest.mark.parametrize(
    "function, error",
    [
        (lambda x: 1 if x.sum() > 0 else 2, "control flow"),
        (lambda x: [i for i in x], "cannot be iterated"),
        (lambda x: int(x), "int"),
    ],
)
def test_what_cannot_be_traced_raises(function, error):
    with pytest.raises((ValueError, TypeError), match=error):
        symbolic_trace(function)


def test_leaf_modules_are_chosen_by_the_tracer():
    class Deep(Tracer):
        def is_leaf_module(self, m, name):
            return False

    m = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    g = fx.GraphModule(m, Deep().trace(m))
    functions = [n.target for n in g.graph.nodes if n.op == "call_function"]
    assert functions[0] is F.linear and len(functions) == 2
    weights = [n.target for n in g.graph.nodes if n.op == "get_attr"]
    assert weights == ["0.weight", "0.bias"]
    x = tt.rand(2, 3)
    close(g(x), m(x))
    assert [n.target for n in symbolic_trace(m).graph.nodes if n.op == "call_module"] == ["0", "1"]


def test_replaces_one_operator():
    def f(x, y):
        z = x + y
        return tt.relu(z)

    g = symbolic_trace(f)
    for node in g.graph.nodes:
        if node.op == "call_function" and node.target == operator.add:
            with g.graph.inserting_after(node):
                new = g.graph.call_function(tt.mul, node.args, node.kwargs)
                node.replace_all_uses_with(new)
            g.graph.erase_node(node)
    g.graph.lint()
    g.recompile()
    x, y = tt.randn(3), tt.randn(3)
    close(g(x, y), tt.relu(x * y))
    relu = next(n for n in g.graph.nodes if n.target is tt.relu)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        g.graph.erase_node(relu)
    relu.args = (g.graph.output_node(),)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        g.graph.lint()


def fused(conv, bn):
    """The convolution that does what conv and bn do in evaluation."""
    new = copy.deepcopy(conv)
    factor = bn.weight * tt.rsqrt(bn.running_var + bn.eps)
    new.weight = nn.Parameter(conv.weight * factor.reshape(-1, 1, 1, 1))
    bias = conv.bias if conv.bias is not None else tt.zeros_like(bn.running_mean)
    new.bias = nn.Parameter((bias - bn.running_mean) * factor + bn.bias)
    return new


def test_fuses_convolutions_and_batch_norms():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.mod = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
            self.conv = nn.Conv2d(2, 2, 1)
            self.bn = nn.BatchNorm2d(2)

        def forward(self, x):
            return self.bn(self.conv(self.mod(x)))

    m = Wrapped()
    for bn in (m.mod[1], m.bn):
        nn.init.uniform_(bn.weight)
        bn.running_mean.normal_()
        bn.running_var.uniform_(0.5, 2)
    m.eval()
    g = symbolic_trace(m)
    modules = dict(g.named_modules())
    for node in g.graph.nodes:
        if node.op != "call_module" or type(modules[node.target]) is not nn.BatchNorm2d:
            continue
        before = node.args[0]
        if type(modules[before.target]) is nn.Conv2d and len(before.users) == 1:
            place, _, name = before.target.rpartition(".")
            new = fused(modules[before.target], modules[node.target])
            setattr(modules[place], name, new)
            node.replace_all_uses_with(before)
            g.graph.erase_node(node)
    g.delete_all_unused_submodules()
    g.recompile()
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in g.modules())
    x = tt.randn(2, 1, 5, 5)
    tt.testing.assert_close(g(x), m(x), rtol=1e-4, atol=1e-5)


def test_an_interpreter_measures_each_node():
    class Profiling(fx.Interpreter):
        def __init__(self, module):
            super().__init__(symbolic_trace(module))
            self.times = {}

        def run_node(self, n):
            start = time.perf_counter()
            found = super().run_node(n)
            self.times.setdefault(n.name, []).append(time.perf_counter() - start)
            return found

    m = Mixed()
    x = tt.rand(3, 4)
    profiler = Profiling(m)
    for _ in range(2):
        close(profiler.run(x)[0], m(x)[0])
    assert len(profiler.times) == 11 and all(len(t) == 2 for t in profiler.times.values())
    bad = symbolic_trace(lambda x: tt.relu(x).reshape(7))
    with pytest.raises(Exception, match="While executing %reshape"):
        fx.Interpreter(bad).run(tt.ones(2))


def test_a_transformer_swaps_functions():
    class Swapped(Transformer):
        def call_function(self, target, args, kwargs):
            if target is tt.sigmoid:
                return tt.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                first, *rest = args
                return first.sigmoid(*rest, **kwargs)
            return super().call_method(target, args, kwargs)

    g = Swapped(symbolic_trace(lambda x: tt.sigmoid(x).neg())).transform()
    x = tt.randn(3)
    close(g(x), tt.neg(x).sigmoid())


def test_proxies_of_nodes_decompose():
    def relu(x):
        return (x > 0) * x

    g = symbolic_trace(lambda x: F.relu(x + 1) * 2)
    new, env = fx.Graph(), {}
    tracer = fx.proxy.GraphAppendingTracer(new)
    for node in g.graph.nodes:
        if node.op == "call_function" and node.target is F.relu:
            made = relu(*[Proxy(env[x.name], tracer) for x in node.args if isinstance(x, fx.Node)])
            env[node.name] = made.node
        else:
            env[node.name] = new.node_copy(node, lambda x: env[x.name])
    x = tt.randn(4)
    close(fx.GraphModule(g, new)(x), g(x))
    assert F.relu not in [n.target for n in new.nodes]


def test_inverts_a_function():
    """The operators of a chain are undone from the last to the first."""
    inverse = {tt.add: tt.sub, tt.mul: tt.div, tt.exp: tt.log}
    g = symbolic_trace(lambda x: tt.exp(tt.mul(tt.add(x, 1), 2)))
    new = fx.Graph()
    value = new.placeholder("x")
    for node in reversed(g.graph.nodes):
        if node.op == "call_function":
            value = new.call_function(inverse[node.target], (value, *node.args[1:]))
    new.output(value)
    x = tt.randn(5)
    close(fx.GraphModule({}, new)(g(x)), x)


def test_replaces_patterns():
    def f(x, w1, w2):
        m1 = tt.cat([w1, w2]).sum()
        m2 = tt.cat([w1, w2]).sum()
        return x + tt.max(m1) + tt.max(m2)

    def pattern(w1, w2):
        return tt.cat([w1, w2]).sum()

    def replacement(w1, w2):
        return tt.stack([w1, w2])

    g = symbolic_trace(f)
    matches = fx.replace_pattern(g, pattern, replacement)
    assert [m.anchor.name for m in matches] == ["sum_1", "sum_1"]
    functions = [n.target for n in g.graph.nodes if n.op == "call_function"]
    assert functions == [tt.stack, tt.max, operator.add] * 2
    x, a, b = tt.randn(1), tt.randn(3), tt.randn(3)
    wanted = x + 2 * tt.max(tt.stack([a, b]))
    close(g(x, a, b), wanted)

    chain = symbolic_trace(lambda x: tt.neg(tt.neg(tt.neg(tt.neg(x)))))
    found = fx.replace_pattern(chain, lambda x: tt.neg(tt.neg(x)), lambda x: tt.relu(x))
    assert len(found) == 2 and [n.name for n in chain.graph.nodes][1:3] == ["relu", "relu_1"]
    close(chain(x), tt.relu(x))
    used = symbolic_trace(lambda x: (tt.neg(x) + 1, tt.exp(tt.neg(x))))
    assert not fx.replace_pattern(used, lambda x: tt.exp(x + 3), lambda x: x)


def test_shapes_are_noted():
    g = symbolic_trace(Mixed())
    ShapeProp(g).propagate(tt.rand(3, 4))
    meta = {n.name: n.meta.get("tensor_meta") for n in g.graph.nodes}
    assert meta["linear"].shape == (3, 5) and meta["linear"].dtype is tt.float32
    assert meta["size"] is None and meta["x"].stride == (4, 1)


def test_graphs_are_made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=2)
    p = graph.get_attr("inner.weight")
    total = graph.call_function(operator.add, (x, y))
    graph.call_function(tt.exp, (x,))
    view = graph.call_method("view", (total, -1))
    infinite = graph.call_function(tt.clamp, (view,), {"max": float("inf")})
    out = graph.output((infinite, p, tt.float32, [slice(x, None), {"k": 1}]))
    assert graph.output_node() is out and x.users == {total: None, **dict.fromkeys(x.users)}
    assert graph.eliminate_dead_code() and len(graph.nodes) == 7
    g = fx.GraphModule({"inner.weight": nn.Parameter(tt.ones(2))}, graph)
    found = g(tt.ones(2, 1))
    assert found[0].tolist() == [3, 3] and found[1] is g.inner.weight and found[2] is tt.float32
    with pytest.raises(TypeError):
        out.args[0][3].append(1)
    assert graph.find_nodes(op="call_method", target="view") == [view]
    x.replace_all_uses_with(y)
    assert total.args == (y, y) and not x.users
    total.update_arg(0, 3)
    view.insert_arg(2, 1)
    assert total.args == (3, y) and view.args == (total, -1, 1)
    copied = copy.deepcopy(graph)
    assert str(copied) == str(graph) and copied is not graph


def test_graphs_are_printed_as_a_table(capsys):
    if tt.__name__ == "tt":  # PyTorch needs another package for it
        symbolic_trace(lambda x: tt.exp(x)).graph.print_tabular()
        head, _, first = capsys.readouterr().out.splitlines()[:3]
        assert head.startswith("opcode") and first.startswith("placeholder")


def test_fusion_and_removal_for_inference():
    from tt.fx.experimental import optimization

    net = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 4), nn.Dropout(0.5)
    )
    net.append(nn.BatchNorm1d(4))
    for norm in (net[1], net[5]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    x = tt.randn(3, 2, 4, 4)
    before = [p.detach().clone() for p in net.eval().parameters()]
    fused = optimization.fuse(net)
    assert tt.allclose(fused(x), net(x), atol=1e-5)
    assert [str(n.target) for n in fused.graph.nodes if n.op == "call_module"] == list("02345")
    assert all(tt.equal(p, b) for p, b in zip(net.parameters(), before))
    plain = optimization.remove_dropout(net.train())
    assert not any(str(n.target) == "4" for n in plain.graph.nodes)


def test_modules_are_copied_and_saved():
    m = Mixed()
    g = symbolic_trace(m)
    x = tt.rand(3, 4)
    other = copy.deepcopy(g)
    with tt.no_grad():
        other.param.zero_()
    assert not tt.equal(other(x)[0], g(x)[0]) and other.code == g.code
    back = pickle.loads(pickle.dumps(g))
    close(back(x)[0], g(x)[0])
    assert symbolic_trace(g).code == g.code
    g.add_submodule("a.b", nn.Linear(1, 1))
    assert isinstance(g.a.b, nn.Linear) and g.delete_submodule("a.b")
    with pytest.raises(RuntimeError):
        fx.GraphModule({}, g.graph)


# ---- what is tt's own ----


def net():
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_reads_what_a_module_calls():
    m, x = net(), tt.randn(5, 3)
    g = tt.fx.capture(m, x).graph
    assert [n.op for n in g.nodes] == ["placeholder"] + ["call_function"] * 3
    assert [n.target for n in g.nodes] == ["in0", "linear_rows", "relu", "linear_rows"]
    x, first, relu, last = g.nodes
    assert relu.args == (first,) and list(relu.users) == [last] and g.outputs == [last]
    assert first.args[0] is x and first.args[1].op == "get_attr" and first.shape == (5, 4)
    assert first.dtype == tt.float32 and first in last.all_input_nodes + [first]
    assert "relu" in str(g) and str(relu) == f"relu_{relu.value}"


def test_replaces_an_operator():
    m, x, other = net(), tt.randn(5, 3), tt.randn(5, 3)
    module = tt.fx.capture(m, x)
    assert module(other).equal(m(other))
    [relu] = [n for n in module.graph.nodes if n.target == "relu"]
    with module.graph.inserting_before(relu):
        scaled = module.graph.call_function("mul_scalar", (relu.args[0], 2.0))
        new = module.graph.call_function("gelu", (scaled,))
    relu.replace_all_uses_with(new)
    with pytest.raises(tt.errors.InvalidArgumentError, match="is used"):
        module.graph.erase_node(new)
    module.graph.erase_node(relu)
    module.graph.lint()
    module.recompile()
    assert module(other).equal(m[2](nn.functional.gelu(2 * m[0](other))))
    assert not [n for n in module.graph.nodes if n.target == "relu"]


def test_outputs_and_dead_code():
    module = tt.fx.capture(lambda x: (x.exp(), {"y": x.sin()}), tt.randn(4))
    made = module(tt.ones(4))
    assert made[1]["y"].equal(tt.ones(4).sin())
    exp = module.graph.nodes[1]
    module.graph.output(exp)
    module.graph.eliminate_dead_code()
    assert [n.target for n in module.graph.nodes] == ["in0", "exp"]


def test_the_graph_of_a_program_is_edited_before_its_first_run():
    program = tt.export.export(lambda x: (x.exp(), x.sin()), (tt.randn(4),))
    assert isinstance(program.graph, tt.fx.captured.Graph) and program.graph.num_outputs == 2
    program.graph.output([program.graph.outputs[1]] * 2)
    x = tt.randn(4)
    assert [y.tolist() for y in program.run(x)] == [x.sin().tolist()] * 2


def test_runs_with_the_shapes_of_the_examples_only():
    module = tt.fx.capture(net(), tt.randn(5, 3))
    with pytest.raises(ValueError, match="captured with"):
        module(tt.randn(1, 3))
    with pytest.raises(ValueError, match="2 tensors"):
        module(tt.randn(5, 3), tt.randn(5, 3))
    assert not module(tt.randn(5, 3).requires_grad_()).requires_grad


def test_refuses():
    g = tt.fx.capture(lambda x: x.exp(), tt.randn(4)).graph
    with pytest.raises(TypeError, match="set"):
        g.call_function("exp", ({1},))
    for much in (2**64, [2**64]):
        with pytest.raises(ValueError, match="64 bits"):
            g.call_function("exp", (much,))
    with pytest.raises(NotImplementedError):
        g.call_function("no_operator", ())
    with pytest.raises(ValueError, match="stop"):
        tt.fx.capture(lambda x: stop(), tt.randn(4))
    assert len(tt.fx.capture(lambda x: x.exp(), tt.randn(4)).graph.nodes) == 2


def stop():
    raise ValueError("stop")


def test_graph_files(tmp_path):
    from tt._graph import load

    module = tt.fx.capture(net(), tt.randn(5, 3))
    module.graph.handle.save(tmp_path / "net.ttg")
    loaded = tt.fx.captured.GraphModule(None, tt.fx.captured.Graph(load(tmp_path / "net.ttg")))
    x = tt.randn(5, 3)
    assert loaded(x).equal(module(x))
    (tmp_path / "net.ttg").write_bytes(b"12345678")
    with pytest.raises(tt.errors.FormatError):
        load(tmp_path / "net.ttg")
