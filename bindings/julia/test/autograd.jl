# Gradients, modes, functions of one's own; each task its own ctx.
leaf(x) = tensor(x; requires_grad=true)

@testset "backward and grad" begin
    x, w = leaf([1.0, 2]), leaf([3.0, 4])
    y = sum(x .* w .^ 2)
    backward(y)
    @test near(x.grad, [9, 16]) && near(w.grad, [6, 16]) && y.grad_fn !== nothing && TT.name(y.grad_fn) isa String && length(TT.next_functions(y.grad_fn)) >= 1
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
        e = thrown(() -> backward(sum(sqrt(x .* 0 .- 0) .* 0)), TT.AutogradError)
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
    program(seed) = "using TT; $seed print(Array(TT.rand(4)))"
    in_a_process(seed) = read(`$(Base.julia_cmd()) --startup-file=no -e $(program(seed))`, String)
    @test in_a_process("") != in_a_process("")
    @test in_a_process("TT.manual_seed(2);") == in_a_process("TT.manual_seed(2);")
end

@testset "functions with gradients of their own" begin
    seen = Ref{Any}()
    cube = CustomFunction((c, x) -> (save_for_backward(c, x); seen[] = TT.is_grad_enabled(); x .^ 3),
                          (c, g) -> g .* 3 .* saved_tensors(c)[1] .^ 2; name="cube")
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
