"""tt.fx: graphs that a function leaves are read, rewritten and run."""
import pytest
import tt
from tt import nn


def net():
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_reads_what_a_module_calls():
    m, x = net(), tt.randn(5, 3)
    g = tt.fx.symbolic_trace(m, x).graph
    assert [n.op for n in g.nodes] == ["placeholder"] + ["call_function"] * 3
    assert [n.target for n in g.nodes] == ["in0", "linear_rows", "relu", "linear_rows"]
    x, first, relu, last = g.nodes
    assert relu.args == (first,) and list(relu.users) == [last] and g.outputs == [last]
    assert first.args[0] is x and first.args[1].op == "get_attr" and first.shape == (5, 4)
    assert first.dtype == tt.float32 and first in last.all_input_nodes + [first]
    assert "relu" in str(g) and str(relu) == f"relu_{relu.value}"


def test_replaces_an_operator():
    m, x, other = net(), tt.randn(5, 3), tt.randn(5, 3)
    module = tt.fx.symbolic_trace(m, x)
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
    module = tt.fx.symbolic_trace(lambda x: (x.exp(), {"y": x.sin()}), tt.randn(4))
    made = module(tt.ones(4))
    assert made[1]["y"].equal(tt.ones(4).sin())
    exp = module.graph.nodes[1]
    module.graph.output(exp)
    module.graph.eliminate_dead_code()
    assert [n.target for n in module.graph.nodes] == ["in0", "exp"]


def test_the_graph_of_a_program_is_edited_before_its_first_run():
    program = tt.export.export(lambda x: (x.exp(), x.sin()), (tt.randn(4),))
    assert isinstance(program.graph, tt.fx.Graph) and program.graph.num_outputs == 2
    program.graph.output([program.graph.outputs[1]] * 2)
    x = tt.randn(4)
    assert [y.tolist() for y in program.run(x)] == [x.sin().tolist()] * 2


def test_runs_with_the_shapes_of_the_examples_only():
    module = tt.fx.symbolic_trace(net(), tt.randn(5, 3))
    with pytest.raises(ValueError, match="captured with"):
        module(tt.randn(1, 3))
    with pytest.raises(ValueError, match="2 tensors"):
        module(tt.randn(5, 3), tt.randn(5, 3))
    assert not module(tt.randn(5, 3).requires_grad_()).requires_grad


def test_refuses():
    with pytest.raises(NotImplementedError, match="concrete_args"):
        tt.fx.symbolic_trace(net())
    g = tt.fx.symbolic_trace(lambda x: x.exp(), tt.randn(4)).graph
    with pytest.raises(TypeError, match="set"):
        g.call_function("exp", ({1},))
    for much in (2**64, [2**64]):
        with pytest.raises(ValueError, match="64 bits"):
            g.call_function("exp", (much,))
    with pytest.raises(NotImplementedError):
        g.call_function("no_operator", ())
    with pytest.raises(ValueError, match="stop"):
        tt.fx.symbolic_trace(lambda x: stop(), tt.randn(4))
    assert len(tt.fx.symbolic_trace(lambda x: x.exp(), tt.randn(4)).graph.nodes) == 2


def stop():
    raise ValueError("stop")


def test_graph_files(tmp_path):
    from tt._graph import load

    module = tt.fx.symbolic_trace(net(), tt.randn(5, 3))
    module.graph.handle.save(tmp_path / "net.ttg")
    loaded = tt.fx.GraphModule(None, tt.fx.Graph(load(tmp_path / "net.ttg")))
    x = tt.randn(5, 3)
    assert loaded(x).equal(module(x))
    (tmp_path / "net.ttg").write_bytes(b"12345678")
    with pytest.raises(tt.errors.FormatError):
        load(tmp_path / "net.ttg")
