# Hooks, and what Julia functions throw inside of C.
struct Odd <: Exception
    n::Int
end

@testset "hooks" begin
    x = tensor([1.0, 2]; requires_grad=true)
    seen = []
    h = x .* 3
    first = register_hook(g -> (push!(seen, Array(g)); g .* 2), h)
    register_hook(g -> (push!(seen, Array(g)); nothing), x)
    after = register_accumulate_hook(l -> push!(seen, l.grad !== nothing), x)
    backward(sum(h); retain_graph=true)
    @test seen == [[1, 1], [6, 6], true] && near(x.grad, [6, 6])
    remove!(first)
    remove!(after)
    empty!(seen)
    x.grad = nothing
    backward(sum(h))
    @test seen == [[3, 3]] && near(x.grad, [3, 3])
    y = x .* 2
    register_hook(g -> map(t -> t === nothing ? nothing : t .* 10, g), y.grad_fn)
    TT.register_prehook(g -> (push!(seen, length(g)); nothing), y.grad_fn)
    x.grad = nothing
    backward(sum(y))
    @test near(x.grad, [20, 20]) && 1 in seen
    thrown(() -> register_hook(g -> g, tensor([1.0])), TT.AutogradError)
end

@testset "exceptions are passed on" begin
    x = tensor([1.0, 2]; requires_grad=true)
    h = x .* 1
    register_hook(g -> throw(Odd(3)), h)
    @test thrown(() -> backward(sum(h)), Odd).n == 3
    f = CustomFunction((c, x) -> x .* 1, (c, g) -> relu(1))
    thrown(() -> backward(sum(f(x))), MethodError)
    m = nn.custom((m, x) -> throw(Odd(4)))
    @test thrown(() -> m(x), Odd).n == 4 && thrown(() -> nn.Sequential(m)(x), Odd).n == 4
    # an error of tt's inside is the exception too, and a function that catches its own continues
    inner = nn.custom((m, x) -> x * TT.ones(5, 5))
    thrown(() -> inner(x), TT.ShapeError)
    outer = nn.custom((m, x) -> try inner(x) catch e; x .+ 1 end)
    @test near(outer(x), [2, 3])
    opt = optim.SGD([x]; lr=1.0)
    @test thrown(() -> step!(() -> throw(Odd(5)), opt), Odd).n == 5
    @test thrown(() -> optim.LambdaLR(epoch -> throw(Odd(6)), opt), Odd).n == 6
    thrown(() -> m(TT.ones(2), TT.ones(2)), MethodError)
    @test near(x .+ 1, [2, 3])  # nothing of it is left
    throws_deep_inside() = throw(Odd(7))
    thrown(() -> nn.custom((m, x) -> throws_deep_inside())(x), Odd)
    @test any(frame -> occursin("throws_deep_inside", string(frame.func)), TT.callback_trace())
end

@testset "callbacks may print, yield and collect" begin
    x = tensor([1.0]; requires_grad=true)
    h = x .* 1
    register_hook(g -> (yield(); GC.gc(); fetch(@async sum(TT.ones(3))[]); nothing), h)
    other = @async begin
        z = tensor([2.0]; requires_grad=true)
        w = z .* 1
        register_hook(g -> (yield(); g .* 5), w)
        backward(sum(w))
        z.grad[1][]
    end
    backward(sum(h))
    @test near(x.grad, [1]) && fetch(other) == 5
end

@testset "a device of Julia's" begin
    seen, blocks = String[], Dict{Ptr{Cvoid}, Int}()
    function alloc(n)
        p = Libc.malloc(n)
        blocks[p] = n
        return p
    end
    function free(p, n)
        delete!(blocks, p)
        Libc.free(p)
    end
    transfer(dst, src, n, kind) =
        ccall(:memcpy, Ptr{Cvoid}, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t), dst, src, n)
    function compute(op, args...)
        push!(seen, op)
        return op == "exp" ? to(TT.ones(2); device="jl_box") : missing
    end
    device = TT.register_backend("jl_box"; alloc=alloc, free=free, copy=transfer, compute=compute)
    function work()
        x = to(tensor([1.0, 2]); device=device)
        return string(x.device) == "Device(\"ext:0\")" && near(to(x .+ x; device="cpu"), [2, 4]) &&
            near(to(exp.(x); device="cpu"), [1, 1])
    end
    @test work() && "add" in seen && !isempty(blocks)
    GC.gc()
    GC.gc()
    @test isempty(blocks)
end

@testset "ended callbacks release what they held" begin
    collected() = (TT.ones(1); GC.gc(); GC.gc(); TT.poll(); length(TT.HELD))
    before = collected()
    function run()
        x = tensor([1.0]; requires_grad=true)
        h = x .* 1
        register_hook(g -> g, h)
        remove!(register_hook(g -> g, h))
        nn.custom((m, x) -> x)(x)
        CustomFunction((c, x) -> x .* 1, (c, g) -> g)(x)
        Tensor([1.0 2; 3 4])
        try optim.LambdaLR(e -> error("no"), optim.SGD([x])) catch end
    end
    run()
    @test length(TT.HELD) > before
    @test collected() == before
end

@testset "custom operators, profiler, trace" begin
    TT.register_op("jl_times(x: Tensor, k: Int) -> Tensor",
        (x, k) -> x .* k; backward=(grads, args, results) -> grads[1] .* args[2])
    x = tensor([1.0, 2]; requires_grad=true)
    y = TT.call_op("jl_times", x, 3)
    backward(sum(y))
    @test near(y, [3, 6]) && near(x.grad, [3, 3]) && occursin("jl_times", TT.op_schema("jl_times"))
    TT.register_op("jl_bad(x: Tensor) -> Tensor", x -> throw(Odd(7)))
    @test thrown(() -> TT.call_op("jl_bad", x), Odd).n == 7
    @test near(TT.call_op("sum_dim", tensor([1.0 2; 3 4]), [0]), [4, 6])
    @test near(TT.call_op("cat", [x, x], 0), [1, 2, 1, 2])
    @test size(TT.call_op("full", (2, 2), 1.5)) == (2, 2)
    @test length(TT.call_op("max_dim", tensor([1.0 2]), 1, false)) == 2
    thrown(() -> TT.call_op("no_such_operator"), TT.Error)
    p = TT.profile_events(; record_shapes = true, with_flops = true) do
        TT.region(() -> x * 2, "twice")
    end
    region = only(filter(e -> e.kind == :region, p.events))
    @test region.name == "twice" && region.flops == length(x)
    @test any(e -> e.kind == :op && e.parent == region.id && !isempty(e.shapes), p.events)
    @test p.dropped == 0 && any(r -> r.name == "twice" && r.calls == 1, p.sums)
    rows = TT.profile(() -> (x * 2; sum(x)))
    @test any(r -> r.op == "sum" && r.calls == 1, rows)
    seen = []
    TT.trace((op, slot, depth) -> push!(seen, (op, slot, depth))) do
        TT.ones(2) .+ TT.ones(2)
    end
    @test ("add", "cpu", 0) in seen
    thrown(() -> TT.trace(() -> TT.ones(2), (op, slot, depth) -> throw(Odd(9))), Odd)
    thrown(() -> TT.ones(2) .+ TT.ones(3), TT.ShapeError)  # nothing of it is left
    token = TT.CancelToken()
    thrown(() -> TT.with_cancel(() -> (TT.cancel(token); TT.ones(2) .+ 1), token),
        TT.CancelledError)
    @test near(TT.ones(2) .+ 1, [2, 2])
    asked = Ref(0)
    TT.set_poll!(() -> (asked[] += 1) < 2 || throw(Odd(8)))
    @test thrown(() -> while true; TT.ones(2) .+ 1; end, Odd).n == 8 && asked[] == 2
    TT.set_poll!(nothing)
    @test near(TT.from_dlpack(TT.to_dlpack(x.data)), [1, 2]) && occursin("\"add\"", TT.manifest())
end

@testset "hooks on buckets of gradients" begin
    net, g = nn.Linear(2, 1), TT.Group("gloo", 0, 1)
    ddp, x, seen = TT.Ddp(net, g), tensor(Float32[1, 2]), []
    weight = first(parameters(net))
    function run()
        zero_grad!(net)
        backward(sum(net(x)))
        return Array(weight.grad)
    end
    plain = run()
    fits(b) = map(size, b.gradients) == map(size, b.parameters)
    TT.set_hook!(b -> push!(seen, (b.index, b.count, fits(b))), ddp;
        finish=b -> TT.mul!(b.buffer, 0.5))
    @test run() ≈ plain / 2 && seen == [(1, 1, true)]
    TT.set_hook!(b -> throw(Odd(5)), ddp)
    @test thrown(run, Odd).n == 5
    TT.set_hook!(nothing, ddp)
    @test run() ≈ plain
end
