# Captured graphs: reading, rewriting, files and plans.
manual_seed(2)
x, other, w = TT.randn(4, 3), TT.randn(4, 3), TT.randn(3, 4)
net(x, f=relu) = softmax(TT.reshape(f(x * w), 2, 8), 2)
called(g, op) = only(filter(v -> v.op == op, g.calls))
ops(g) = [v.op for v in g.calls]

@testset "reading" begin
    g = TT.capture(net, x)
    @test ops(g) == ["matmul_stack", "relu", "view", "native_softmax"]
    input, act = only(g.inputs), called(g, "relu")
    @test input.op === nothing && input.role === :input && input.args == NamedTuple()
    @test input.size == (4, 3) && input.dtype == Float32 && input.tensor == x
    @test act.args.self == g.calls[1] && act.role === :made && act.tensor === nothing
    @test only(act.args.self.users) == act && act.results == [act]
    weight = g.calls[1].args.other
    @test weight.role === :constant && TT.same_storage(weight.tensor, w)
    @test called(g, "native_softmax").args.dim == 1 && g.outputs == g.calls[end:end]
    @test occursin("relu(self=%", string(g)) && occursin("digraph", TT.graphviz(g))
    @test string(act) == "%$(TT.number_of(act))" && :args in propertynames(act)
    twice = TT.capture((a, b) -> (a + b, TT.cat([a, b], 1)), x, other)
    @test called(twice, "cat").args.tensors == twice.inputs && length(twice.outputs) == 2
    composite = TT.capture(t -> TT.gelu(t), x)
    @test all(v -> v.scope === nothing || v.scope isa String, composite.calls)
    thrown(() -> g.nothing_such, ErrorException)
    thrown(() -> act.nothing_such, ErrorException)
end

@testset "captures that fail" begin
    thrown(() -> TT.capture(t -> error("mine"), x), ErrorException)
    thrown(() -> TT.capture(t -> "text", x), ArgumentError)
    thrown(() -> TT.capture(t -> t * t, x), TT.ShapeError)
    e = thrown(() -> TT.capture(t -> t .* sum(t)[], x), TT.Error)
    @test occursin("captur", e.message)
    frozen = TT.capture(t -> t .* sum(t)[], x; allow_reads=true)
    @test TT.Plan(frozen)(other) ≈ other .* sum(x)
    @test net(x) == TT.Plan(TT.capture(net, x))(x)  # no capture is left open
end

@testset "plans" begin
    p = TT.Plan(TT.capture(net, x))
    @test p(other) == net(other) && p(x) == net(x)
    @test string(p) == "Plan(1 inputs, 1 outputs)"
    copy!(p.inputs[1], other)
    @test TT.run!(p) && p.outputs[1] == net(other)
    copy!(p.inputs[1], x)
    steps = 0
    while !TT.run!(p; ns=1)
        steps += 1
    end
    @test p.outputs[1] == net(x) && steps < 100
    thrown(() -> p(TT.ones(1, 3)), DimensionMismatch)
    thrown(() -> p(x, x), DimensionMismatch)
    both = TT.Plan(TT.capture((a, b) -> (a + b, a - b), x, other))
    @test both(x, other) == (x + other, x - other)
    kept = TT.scope(() -> TT.Plan(TT.capture(net, x)))
    @test kept(other) == net(other)
end

@testset "a training step" begin
    function losses(run)
        manual_seed(3)
        model = nn.Linear(3, 1)
        opt = optim.Adam(model; lr=0.1)
        function step(x)
            TT.zero_grad!(opt)
            loss = TT.mean(model(x) .^ 2)
            backward(loss)
            step!(opt)
            return TT.detach(loss)
        end
        step(x)
        next = run(step)
        return [Float64(next(x)) for _ in 1:4]
    end
    function planned(step)
        g = TT.capture(step, x)
        @test any(v -> v.op == "optim_step", g.calls)
        p = TT.Plan(g)
        return p
    end
    eager = losses(identity)
    @test losses(planned)[1:3] == eager[2:4]  # the capture was a step
end

@testset "rewriting" begin
    g = TT.capture(net, x)
    act = called(g, "relu")
    gelu_result = insert!(g, act, "gelu", act.args.self)
    @test replace!(g, act => gelu_result) === g && delete!(g, act) === g
    @test !("relu" in ops(g)) && TT.Plan(g)(other) ≈ net(other, gelu)
    copied = copy(g)
    doubled = push!(copied, "mul_scalar", only(copied.outputs), 2.0)
    copied.outputs = [doubled]
    @test TT.Plan(copied)(other) ≈ 2 .* net(other, gelu)
    @test TT.Plan(g)(other) ≈ net(other, gelu)
    # shapes follow
    g = TT.capture(t -> -sum(exp.(t)), x)
    total = called(g, "sum")
    rows = push!(g, "sum_dim", total.args.self, [1]; after=total)
    replace!(g, total => rows)
    delete!(g, total)
    @test g.outputs[1].size == (4,) && rows.users == [called(g, "neg")]
    @test TT.Plan(g)(other) ≈ -TT.sum(exp.(other), 2)
    # lists and numbers of other kinds
    g = TT.capture((a, b) -> a .+ b, x, other)
    joined = push!(g, "cat", g.inputs, 0)
    powers = push!(g, "pow_scalar", joined, 2)
    g.outputs = (joined, powers)
    first, second = TT.Plan(g)(x, other)
    @test first == [x; other] && second ≈ first .^ 2
    # what is refused changes nothing
    g = TT.capture(net, x)
    act, before = called(g, "relu"), string(g)
    thrown(() -> delete!(g, act), TT.InvalidArgumentError)
    thrown(() -> delete!(g, g.inputs[1]), ArgumentError)
    thrown(() -> replace!(g, act => g.inputs[1]), TT.ShapeError)
    thrown(() -> insert!(g, act, "exp_", act), TT.InvalidArgumentError)
    thrown(() -> insert!(g, act, "exp", act), TT.InvalidArgumentError)
    thrown(() -> push!(g, "no_such_operator", act), TT.Error)
    thrown(() -> push!(g, "exp", copied.inputs[1]), ArgumentError)
    thrown(() -> push!(g, "exp", act; after=copied.inputs[1]), ArgumentError)
    thrown(() -> (g.outputs = copied.outputs), ArgumentError)
    thrown(() -> (g.inputs = g.inputs), ErrorException)
    thrown(() -> push!(g, "exp", "text"), TT.InvalidArgumentError)
    @test string(g) == before && TT.Plan(g)(other) == net(other)
    free!(g)
    thrown(() -> g.calls, TT.HandleError)
    thrown(() -> act.op, TT.HandleError)
    @test string(g) == "Graph(freed)"
end

@testset "optimizing" begin
    g = TT.capture(t -> (TT.sigmoid(t); exp(Tensor(1f0)); exp.(t) .+ exp.(t)), x)
    best = TT.optimize(g)
    @test count(==("exp"), ops(best)) == 1 && !("sigmoid" in ops(best))
    @test TT.Plan(best)(other) == TT.Plan(g)(other)
    @test count(==("exp"), ops(TT.optimize(g; passes=[:dce]))) == 2
    @test occursin("dce", thrown(() -> TT.optimize(g; passes=(:no,)), ArgumentError).msg)
end

@testset "graphs in files" begin
    mktempdir() do folder
        path = joinpath(folder, "net.ttg")
        g = TT.capture(net, x)
        TT.save_graph(path, g)
        @test TT.Plan(TT.load_graph(path))(other) == net(other)
        TT.export_onnx(joinpath(folder, "net.onnx"), g)
        of(sizes...) = TT.capture(t -> exp.(t), TT.ones(sizes...))
        others, dims = [of(4, 3), of(2, 5), of(4, 5)], ["rows", "columns"]
        named = joinpath(folder, "dims.onnx")
        TT.export_onnx(named, of(2, 3), others, dims)
        @test occursin("columns", read(named, String))
        thrown(() -> TT.export_onnx(named, of(2, 3), others[1:2], dims), TT.InvalidArgumentError)
        thrown(() -> TT.export_onnx(named, of(2, 3), others, ["", "x"]), TT.InvalidArgumentError)
        thrown(() -> TT.export_onnx(named, of(2, 3), others, ["x"]), TT.InvalidArgumentError)
        TT.export_c(folder, "net", TT.capture(t -> relu(t * w), x))
        TT.export_c(folder, "net", g)
        unknown = TT.capture(TT.linalg_svdvals, x)
        thrown(() -> TT.export_c(folder, "net", unknown), TT.UnimplementedError)
        @test filesize(joinpath(folder, "net.onnx")) > 100
        @test occursin("net_run", read(joinpath(folder, "net.c"), String))
        write(path, "no graph")
        thrown(() -> TT.load_graph(path), TT.FormatError)
        thrown(() -> TT.load_graph(joinpath(folder, "none")), TT.FileError)
    end
end
