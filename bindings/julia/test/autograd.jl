# Gradients, modes, functions of one's own; each task its own ctx.
leaf(x) = tensor(x; requires_grad=true)

@testset "backward and grad" begin
    x, w = leaf([1.0, 2]), leaf([3.0, 4])
    y = sum(x .* w .^ 2)
    backward(y)
    @test near(x.grad, [9, 16])
    @test near(w.grad, [6, 16])
    @test y.grad_fn !== nothing
    @test TT.name(y.grad_fn) isa String
    @test length(TT.next_functions(y.grad_fn)) >= 1
    backward(sum(x))
    @test near(x.grad, [10, 17])
    x.grad = nothing
    @test x.grad === nothing
    x.grad = tensor([1.0, 1])
    @test near(x.grad, [1, 1])
    g = grad(sum(x .^ 3), x; create_graph=true)
    @test near(g, [3, 12]) && near(grad(sum(g), x), [6, 12])
    @test near(grad(x .* 2, [x, w]; grad_outputs=tensor([1.0, 10]), allow_unused=true)[1], [2, 20])
    z = x .* w
    backward([sum(z), sum(z)]; gradients=[nothing, tensor(2.0)], inputs=[w])
    @test near(w.grad, [6 + 3, 16 + 6])
    made(i) = (GC.gc(); foreach(_ -> TT.ones(1), 1:100); sum(x .* i))
    x.grad = nothing
    backward(made(i) for i in 1:3)  # tensors that nobody else holds
    @test near(x.grad, [6, 6]) && near(grad((made(i) for i in 1:3), [x])[1], [6, 6])
    h = x .* 2
    retain_grad!(h)
    backward(sum(h); retain_graph=true)
    @test near(h.grad, [1, 1])
    backward(sum(h))
    e = thrown(() -> backward(sum(tensor([1.0]))), TT.AutogradError)
    thrown(() -> add!(x, 1), TT.AutogradError)
    thrown(() -> backward(x .* 1), TT.Error)
    thrown(() -> grad(sum(x), w), TT.AutogradError)
end

@testset "modes" begin
    x = leaf([1.0])
    y = no_grad() do
        @test !TT.is_grad_enabled()
        z = enable_grad(() -> x .* 2)
        @test z.requires_grad
        x .* 2
    end
    @test !y.requires_grad && TT.is_grad_enabled()
    thrown(() -> no_grad(() -> error("inside")), ErrorException)
    @test TT.is_grad_enabled()
    detect_anomaly() do
        @test TT.is_anomaly_enabled()
        e = thrown(() -> backward(sum(sqrt.(x .* 0 .- 0) .* 0)), TT.AutogradError)
        @test occursin("sqrt", e.message)
    end
    @test !TT.is_anomaly_enabled()
    no_grad() do  # another task has modes of its own
        @test fetch(@async TT.is_grad_enabled())
    end
    manual_seed(1)
    a = TT.rand(2)
    b = fetch(@async (manual_seed(1); TT.rand(2)))
    @test Array(a) == Array(b)
end

@testset "random numbers of tasks" begin
    mask() = Array(dropout(TT.ones(64)))
    in_a_task(f) = fetch(@async f())
    masks = map(fetch, [@async mask() for _ in 1:3])
    @test allunique([masks; [mask()]])
    on_threads = map(fetch, [Threads.@spawn mask() for _ in 1:3])
    @test allunique([on_threads; masks])
    round_of(seed) = (manual_seed(seed); [mask(), (in_a_task(mask) for _ in 1:3)...])
    first_round = round_of(3)
    @test round_of(3) == first_round && allunique(first_round)
    @test isempty(intersect(round_of(4), first_round))
    manual_seed(6)
    seed = in_a_task(() -> TT.get_state(TT.Generator())[1])
    manual_seed(6)
    drawn = in_a_task(() -> Array(TT.rand(3)))
    @test drawn == Array(TT.rand(3; generator=TT.Generator(seed)))
    @test TT.get_state(TT.Generator())[1] == 6 != seed
    draws = "using TT; println(Array(TT.rand(4))); TT.manual_seed(2); println(Array(TT.rand(4)))"
    process() = readlines(`$NEW_JULIA -e $draws`)
    (free, seeded), (free_again, seeded_again) = process(), process()
    @test free != free_again && seeded == seeded_again
end

@testset "custom functions" begin
    seen = Ref{Any}()
    function cube_forward(c, x)
        save_for_backward(c, x)
        seen[] = TT.is_grad_enabled()
        return x .^ 3
    end
    cube_backward(c, g) = g .* 3 .* saved_tensors(c)[1] .^ 2
    cube = CustomFunction(cube_forward, cube_backward; name="cube")
    x = leaf([2.0, 3])
    y = cube(x)
    @test near(y, [8, 27]) && y.requires_grad && seen[] == false && TT.name(y.grad_fn) == "cube"
    backward(sum(y))
    @test near(x.grad, [12, 27])
    two = CustomFunction((c, a, b) -> (a .+ b, a .* b), (c, g, h) -> (g, nothing); outputs=2)
    p, q = two(x, leaf([1.0, 1]))
    @test near(p, [3, 4]) && near(q, [2, 3])
    @test near(grad(sum(p), x), [1, 1])
    wrong = CustomFunction((c, x) -> "no tensor", (c, g) -> g)
    thrown(() -> wrong(x), ArgumentError)
    few = CustomFunction((c, a, b) -> a .+ b, (c, g) -> g)
    thrown(() -> backward(sum(few(x, x))), ArgumentError)
end

@testset "tangents and samples of functions" begin
    calls = Symbol[]
    function power_forward(c, x, n, w)
        save_for_backward(c, x)
        return x .^ n .* w
    end
    function power_jvp(c, (x, n, w), (dx, dn, dw))
        push!(calls, :jvp)
        @test near(saved_tensors(c)[1], [1, 2])
        @test dn === nothing && dw === nothing
        return dx .* n .* x .^ (n - 1) .* w
    end
    function power_vmap(c, n, dims, x, power, w)
        push!(calls, :vmap)
        @test (n, dims, power) == (2, (1, nothing, nothing), 3)
        return x .^ power .* w
    end
    power = CustomFunction(power_forward, (c, g) -> (g, nothing, nothing); jvp=power_jvp,
                           vmap=power_vmap)
    x, w = tensor([1.0, 2]), tensor([10.0, 100])
    y, dy = TT.jvp(x -> power(x, 3, w), (x,), (tensor([1.0, 10]),))
    @test near(y, [10, 800]) && near(dy, [30, 12000])
    samples = tensor([1.0 2; 3 4])
    @test near(TT.vmap(x -> power(x, 3, w), samples), [10 800; 270 6400])
    @test calls == [:jvp, :vmap]
end

struct Affine
    weight::Tensor
    bias::Tensor
    name::String
end
Affine(n, m) = Affine(leaf(ones(n, m)), leaf(zeros(m)), "affine")
(f::Affine)(x) = x * f.weight .+ f.bias

@testset "gradients of functions" begin
    x = tensor([1.0, 2])
    g, = TT.gradient(x -> sum(x .^ 3), x)
    @test near(g, [3, 12]) && x.grad === nothing && !x.requires_grad
    gx, gy, gz = TT.gradient((x, y, z) -> sum(x .* y), [1.0, 2], 3.0, x)
    @test gx == [3, 3] && gy === 3.0 && gz === nothing
    value, (g,) = TT.withgradient(x -> sum(abs2, x), x)
    @test value == 5 && near(g, [2, 4]) && value.requires_grad == false
    f = Affine(2, 3)
    (of_f,) = TT.gradient(f -> sum(f(TT.ones(4, 2; dtype=Float64))), f)
    @test length(of_f) == 2 && near(of_f[1], fill(4, 2, 3)) && near(of_f[2], fill(4, 3))
    layer = nn.Linear(2, 1)
    of_layer, of_x = TT.gradient((m, x) -> sum(m(x)), layer, TT.ones(5, 2))
    @test near(of_layer[2], [5]) && size(of_x) == (5, 2) && layer.weight.grad === nothing
    @test TT.gradient(x -> Tensor(1.0), x) == (nothing,)
    @test near(no_grad(() -> TT.gradient(x -> sum(x .^ 2), x))[1], [2, 4])
    @test occursin("size (2,)", thrown(() -> TT.gradient(x -> x .* 2, x), ArgumentError).msg)
    thrown(() -> TT.gradient(x -> 1.0, x), ArgumentError)
    thrown(() -> TT.gradient(x -> sum(x), tensor([1, 2])), TT.Error)
end

@testset "hooks on saved tensors" begin
    x, kept = leaf([2.0, 3.0]), Any[]
    pack(t) = (push!(kept, Array(t)); Array(t))
    y = TT.saved_tensors_hooks(pack, a -> tensor(a .* 10)) do
        x .* x
    end
    @test kept == [[2, 3], [2, 3]]
    z = x .* x  # behind the block: plain
    @test length(kept) == 2
    @test near(TT.grad(sum(y), x), [40, 60]) && near(TT.grad(sum(z), x), [4, 6])
    squared(pack, unpack) = TT.saved_tensors_hooks(() -> sum(x .* x), pack, unpack)
    @test thrown(() -> squared(t -> error("in pack"), identity), ErrorException).msg == "in pack"
    failing = squared(identity, t -> error("in unpack"))
    @test thrown(() -> backward(failing), ErrorException).msg == "in unpack"
    thrown(() -> backward(squared(identity, t -> 3)), ArgumentError)
    thrown(() -> backward(squared(identity, t -> nothing)), TT.Error)
    thrown(() -> backward(squared(identity, t -> TT.ones(2, 2))), TT.Error)
    thrown(() -> TT.saved_tensors_hooks(() -> error("mine"), pack, identity), ErrorException)
    x .* x  # the block has ended
    @test length(kept) == 2
end

@testset "parameters of anything" begin
    f, layer = Affine(2, 3), nn.Linear(3, 1)
    model = (first = f, list = Any[layer, Dict("a" => f.bias)], act = x -> x .* f.weight, n = 3,
        text = "t")
    found = TT.parameters(model)
    @test length(found) == 4
    @test TT.same_tensor(found[1], f.weight)
    @test TT.same_tensor(found[3], layer.weight)
    ring = Any[f.weight]
    push!(ring, ring)
    @test length(TT.parameters(ring)) == 1
    @test isempty(TT.parameters(3))
    @test isempty(TT.parameters(tensor([1.0])))
end

@testset "rules" begin
    calls = Ref(0)
    function power_rule(x, n; scale=1.0)
        calls[] += 1
        return x .^ n .* scale, dy -> (dy .* n .* scale .* x .^ (n - 1), nothing)
    end
    power = TT.CustomFunction(power_rule; name="power")
    x = leaf([1.0, 2])
    y = power(x, 3; scale=2)
    @test near(y, [2, 16]) && TT.name(y.grad_fn) == "power" && calls[] == 1
    backward(sum(y))
    @test near(x.grad, [6, 24])
    g = TT.grad(sum(power(x, 3)), x; create_graph=true)
    @test near(TT.grad(sum(g), x), [6, 12])
    pair = TT.CustomFunction() do a, mode, b
        return (a .* b, a .+ b), (dp, ds) -> (dp .* b .+ ds, nothing, nothing)
    end
    p, s = pair(x, :fast, tensor([3.0, 4]))
    @test near(TT.grad(sum(p) + sum(s), x), [4, 5])
    exponential = TT.CustomFunction(x -> (y = exp.(x); (y, dy -> dy .* y)))
    nodes() = (TT.ones(1); GC.gc(); GC.gc(); TT.poll(); TT.memory().live_nodes)
    before = nodes()
    used(n) = foreach(_ -> exponential(x), 1:n)
    used(100)
    @test nodes() <= before + 1  # a pullback that holds its result does not keep itself alive
    two_parts = CustomFunction((c, x, n) -> (save_for_backward(c, x); x .^ n),
        (c, g) -> (g .* 2 .* saved_tensors(c)[1], nothing))
    @test near(TT.grad(sum(two_parts(x, 2)), x), [2, 4])
    wrong = TT.CustomFunction((x, n) -> (x .* n, dy -> dy))
    @test occursin("2 parts", thrown(() -> backward(sum(wrong(x, 2))), ArgumentError).msg)
    for result in (3, (3, identity), (x .* 1, identity, 1))
        odd = TT.CustomFunction(x -> result; name="odd")
        @test occursin("rule of odd must return", thrown(() -> odd(x), ArgumentError).msg)
    end
    failing = TT.CustomFunction(x -> (x .* 1, dy -> error("mine")))
    thrown(() -> backward(sum(failing(x))), ErrorException)
end

@testset "compiled functions" begin
    function losses(wrapped)
        TT.manual_seed(4)
        model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.2), nn.Linear(5, 1))
        opt = optim.Adam(TT.parameters(model); lr=0.1)
        train = wrapped() do x
            TT.zero_grad!(opt)
            y = model(x)
            loss = TT.mean(y .* y)
            backward(loss)
            TT.step!(opt)
            return TT.detach(loss)
        end
        found = map(1:6) do k
            TT.manual_seed(k)
            return TT.item(train(TT.randn(2, 3)))
        end
        return found, train
    end
    eager, _ = losses(f -> f)
    replayed, train = losses(TT.compile)
    @test replayed == eager
    @test TT.compile_info(train) == (records = 1, replays = 5, runs = 1, reason = nothing)
    TT.reset!(train)
    @test TT.compile_info(train).records == 0
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh())
    compiled = TT.compile(x -> model(x))
    for k in 1:4
        x = TT.randn(2, 3)
        found = map((model, compiled)) do f
            TT.zero_grad!(model)
            backward(sum(f(x)))
            return Array(first(TT.parameters(model)).grad)
        end
        @test found[1] == found[2]
    end
    @test TT.compile_info(compiled).replays == 3
    doubling = TT.compile(x -> x .+ x; dynamic=true)
    for n in 2:9
        @test near(doubling(TT.ones(n)), fill(2.0, n))
    end
    @test TT.compile_info(doubling).runs == 3
    reading = TT.compile(x -> x .* TT.item(sum(x)))
    @test near(reading(tensor([1.0, 2])), [3, 6]) && near(reading(tensor([1.0, 3])), [4, 12])
    @test occursin("read", TT.compile_info(reading).reason)
    for read in (x -> x .* typed(x)[1], x -> x .* sum(v * 2 for v in x), x -> ((a, b) = x; x .+ b))
        reading = TT.compile(read)
        for k in 1:3
            x = tensor([1.0, k])
            @test reading(x) == read(x)
        end
        @test TT.compile_info(reading).replays == 0
        @test thrown(() -> TT.capture(read, TT.ones(2)), TT.Error) isa TT.Error
    end
    total = TT.zeros(2)
    adding = TT.compile(x -> (total .+= x; nothing))
    @test all(adding(TT.ones(2)) === nothing for _ in 1:3) && total == Float32[3, 3]
    @test_throws ArgumentError adding(TT.ones(2), 2.0)
    @test_throws ArgumentError adding(TT.ones(2); scale=2)
    @test_throws ArgumentError TT.compile(x -> Dict(:sum => sum(x)))(TT.ones(2))
    failing = TT.compile(x -> error("mine"))
    thrown(() -> failing(tensor([1.0])), ErrorException)
end

@testset "matrices of derivatives" begin
    x, y = TT.ones(2), TT.ones(3)
    found = TT.jacobian((a, b) -> (a .* 2, sum(b)), x, y)
    @test size(found) == (2, 2) && near(found[1, 1], [2 0; 0 2]) && near(found[2, 2], [1, 1, 1])
    @test near(TT.hessian((a, b) -> sum(a) * sum(b), x, y)[1, 2], [1 1 1; 1 1 1])
    @test size(TT.jacobian(t -> nothing, x)) == (0, 1)
    thrown(() -> TT.jacobian(t -> t), TT.InvalidArgumentError)
end

@testset "dual tensors" begin
    x, t = tensor([1.0, 2]), tensor([1.0, 0.5])
    thrown(() -> TT.make_dual(x, t), TT.AutogradError)
    TT.dual_level() do
        y = TT.unpack_dual(TT.make_dual(x, t) .^ 3)
        @test near(y.primal, [1, 8])
        @test near(y.tangent, [3, 6])
        @test TT.unpack_dual(x).tangent === nothing
    end
end

@testset "checkpoints of activations" begin
    x = TT.requires_grad!(TT.randn(4, 3))
    w = TT.requires_grad!(TT.randn(3, 2))
    calls = 0
    block(x) = (calls += 1; TT.dropout(tanh.(x * w), 0.5))
    grads = map((f -> f(x), f -> TT.checkpoint(f, x))) do run
        TT.manual_seed(1)
        TT.grad(sum(run(block)), [x, w])
    end
    @test calls == 3 && all(grads[1] .== grads[2])
end

@testset "selective checkpoints" begin
    w, x = tensor([2.0 -1; 1 3]; requires_grad=true), tensor([1.0 2; -1 0.5]; requires_grad=true)
    function gradients(keep)
        y = TT.checkpoint(x -> TT.sum(TT.tanh(TT.matmul(x, w))), x; keep=keep)
        again = Ref(0)
        g = trace(() -> TT.grad(y, [x, w]),
            (op, slot, _...) -> again[] += op == "tanh" && slot == "cpu")
        return map(Array, g), again[]
    end
    want, computed = gradients(())
    @test computed == 1
    @test gradients(("tanh",)) == (want, 0)
    @test gradients(["matmul", "tanh", "sum"]) == (want, 0)
    thrown(() -> TT.checkpoint(x -> x, x; keep=("no_operator",)), TT.Error)
end
