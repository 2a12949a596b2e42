# Optimizers with groups, clipping, schedules.
@testset "steps" begin
    for (make, want) in ((p -> optim.SGD(p; lr=0.1), 1 - 0.1 * 2),
        (p -> optim.SGD(p; lr=0.1, momentum=0.9), 0.8), (p -> optim.Adam(p; lr=0.1), 0.9),
                         (p -> optim.AdamW(p; lr=0.1, weight_decay=0.0),
                             0.9), (p -> optim.RMSprop(p; lr=0.01), 0.9),
                             (p -> optim.Adagrad(p; lr=0.1), 0.9),
                         (p -> optim.Adadelta(p; eps=0.16),
                             1 - 2 * 0.4 / sqrt(0.56)), (p -> optim.Adamax(p; lr=0.1), 0.9),
                             (p -> optim.RAdam(p; lr=0.1), 0.8),
                         (p -> optim.ASGD(p; lr=0.1, lambd=1.0),
                             0.7), (p -> optim.Rprop(p; lr=0.1, etas=(0.5, 1.5)), 0.9),
                             (p -> optim.Lion(p; lr=0.1), 0.9))
        x = tensor([1.0]; requires_grad=true)
        opt = make([x])
        backward(sum(x .^ 2))
        step!(opt)
        @test near(x, [want]; atol=1e-4)
        zero_grad!(opt)
        @test x.grad === nothing
    end
    x, y = tensor([1.0]; requires_grad=true), tensor([1.0]; requires_grad=true)
    opt = optim.SGD([x, y]; lr=0.5)
    grads, = TT.gradient(m -> sum(m.x .^ 2), (x = x, y = y))
    step!(opt, grads)
    @test x == [0] && y == [1] && x.grad === y.grad === nothing
    thrown(() -> step!(opt, grads[1:1]), DimensionMismatch)
    x = tensor([1.0]; requires_grad=true)
    opt = optim.SGD([x]; lr=0.5)
    loss = step!(opt) do
        zero_grad!(opt)
        l = sum(x .^ 2)
        backward(l)
        l
    end
    @test loss[] == 1 && x[1][] == 0
end

@testset "Adafactor and Muon" begin
    for make in (x -> optim.Adafactor([x]; lr=0.1),
        x -> optim.Muon([x]; lr=0.1, adjust_lr_fn="match_rms_adamw"))
        x = tensor([1.0 -2.0; 0.5 3.0]; requires_grad=true)
        opt = make(x)
        before = sum(x .^ 2)[]
        for _ in 1:5
            zero_grad!(opt)
            backward(sum(x .^ 2))
            step!(opt)
        end
        @test sum(x .^ 2)[] < before
    end
    thrown(() -> optim.Muon([tensor([1.0]; requires_grad=true)]), TT.InvalidArgumentError)
end

@testset "plateaus, cycles and restarts" begin
    x = tensor([1.0]; requires_grad=true)
    opt = optim.SGD([x]; lr=1.0)
    s = optim.ReduceLROnPlateau(opt; factor=0.5, patience=0)
    for loss in (3.0, 2.0, 2.0)
        TT.step_metric!(s, loss)
    end
    @test TT.get_last_lr(s) == [0.5]
    thrown(() -> step!(s), TT.InvalidArgumentError)
    s = optim.CyclicLR(optim.SGD([x]; lr=1.0, momentum=0.9), 0.5, 1.5; step_size_up=2)
    step!(s)
    @test TT.get_last_lr(s) == [1.0]
    s = optim.CosineAnnealingWarmRestarts(optim.SGD([x]; lr=1.0), 2)
    step!(s)
    @test TT.get_last_lr(s) ≈ [0.5]
    step!(s)
    @test TT.get_last_lr(s) == [1.0]
    s = optim.SWALR(optim.SGD([x]; lr=1.0), 0.5; anneal_epochs=2, anneal_strategy="linear")
    step!(s)
    @test TT.get_last_lr(s) == [0.75]
end

@testset "LBFGS" begin
    rosenbrock(x) = sum(100 .* (x[2:4] .- x[1:3] .^ 2) .^ 2 .+ (1 .- x[1:3]) .^ 2)
    x = tensor([-1.2, 1.0, -0.5, 0.8]; requires_grad=true)
    opt = optim.LBFGS([x]; line_search_fn="strong_wolfe")
    calls = 0
    function closure()
        calls += 1
        zero_grad!(opt)
        loss = rosenbrock(x)
        backward(loss)
        return loss
    end
    losses = [step!(closure, opt)[] for _ in 1:2]
    state = state_dict(opt)
    @test losses[1] ≈ 281.7 && losses[2] < 4
    @test state.numbers["state.0.func_evals"] == calls && calls > 20
    @test opt.param_groups[1].max_eval == 25
    before = Array(x)
    thrown(() -> step!(opt), TT.InvalidArgumentError)
    count = Ref(0)
    @test_throws ErrorException step!(opt) do
        (count[] += 1) == 3 ? error("not today") : closure()
    end
    @test Array(x) == before
    other = tensor(before; requires_grad=true)
    again = optim.LBFGS([other]; line_search_fn="strong_wolfe")
    load_state_dict!(again, state)
    step!(closure, opt)
    continued = Array(x)
    x, opt = other, again
    step!(closure, opt)
    @test Array(x) == continued != before
    for _ in 1:5
        step!(closure, opt)
    end
    @test near(x, [1, 1, 1, 1]; atol=1e-6)
end

@testset "groups and state" begin
    a, b = tensor([1.0]; requires_grad=true), tensor([1.0]; requires_grad=true)
    opt = optim.Adam([(params=[a], lr=0.5), (params=[b], betas=(0.5, 0.6))]; lr=0.25)
    groups = opt.param_groups
    @test length(groups) == 2
    @test groups[1].lr == 0.5
    @test groups[2].lr == 0.25
    @test groups[2].betas == (0.5, 0.6)
    @test groups[2].params == [b]
    groups[1].lr = 0.125
    @test opt.param_groups[1].lr == 0.125 && length(groups[1]) == 1
    c = tensor([1.0]; requires_grad=true)
    add_param_group!(opt, [c]; weight_decay=0.5)
    @test opt.param_groups[3].weight_decay == 0.5
    @test TT.num_parameters(opt) == 3
    @test TT.parameter(opt, 3) == c
    @test TT.get_state(opt, 1, "exp_avg") === nothing
    backward(sum(a .+ b .+ c))
    step!(opt)
    @test near(TT.get_state(opt, 1, "exp_avg"), [0.1]; atol=1e-7)
    @test TT.get_state(opt, 1, "step")[] == 1
    TT.set_state!(opt, 1, "exp_avg", tensor([7.0]))
    state = state_dict(opt)
    @test near(state.tensors["state.0.exp_avg"], [7]) && state.numbers["param_groups.0.lr"] == 0.125
    other = optim.Adam([(params=[a],), (params=[b],), (params=[c],)])
    load_state_dict!(other, state)
    @test near(TT.get_state(other, 1, "exp_avg"), [7]) && other.param_groups[1].lr == 0.125
    thrown(() -> opt.param_groups[1].nothing_such, TT.InvalidArgumentError)
    thrown(() -> optim.SGD([a, a]), TT.Error)
    thrown(() -> optim.SGD(a), ArgumentError)
    thrown(() -> optim.SGD([1.0]), ArgumentError)  # a number is no parameter
    thrown(() -> optim.SGD(nn.ReLU()), ArgumentError)
    thrown(() -> optim.SGD([]), ArgumentError)
    @test TT.num_parameters(optim.SGD(nn.Linear(2, 1))) == 2
    @test TT.num_parameters(optim.SGD((layers = [nn.Linear(2, 1)], scale = a))) == 3
    thrown(() -> optim.SGD([a]; rate=1), MethodError)
    thrown(() -> optim.SGD([a]; lr=-1), TT.InvalidArgumentError)
end

@testset "clipping" begin
    x = tensor([3.0, 4]; requires_grad=true)
    x.grad = tensor([3.0, 4])
    @test nn.clip_grad_norm!([x], 1.0)[] == 5 && near(x.grad, [0.6, 0.8]; atol=1e-5)
    nn.clip_grad_value!([x], 0.7)
    @test near(x.grad, [0.6, 0.7]; atol=1e-5)
end

@testset "schedules" begin
    x = tensor([1.0]; requires_grad=true)
    function rates(make, n)
        opt = optim.SGD([x]; lr=1.0)
        s = make(opt)
        return map(1:n) do _
            rate = TT.get_last_lr(s)[1]
            step!(opt)
            step!(s)
            rate
        end
    end
    @test rates(o -> optim.StepLR(o, 2; gamma=0.5), 4) == [1, 1, 0.5, 0.5]
    @test rates(o -> optim.MultiStepLR(o, [1, 3]; gamma=0.1), 4) ≈ [1, 0.1, 0.1, 0.01]
    @test rates(o -> optim.ExponentialLR(o, 0.5), 3) == [1, 0.5, 0.25]
    @test rates(o -> optim.CosineAnnealingLR(o, 2), 3) ≈ [1, 0.5, 0]
    @test rates(o -> optim.LambdaLR(epoch -> 1 / (1 + epoch), o), 3) ≈ [1, 1 / 2, 1 / 3]
    @test rates(o -> optim.MultiplicativeLR(e -> 0.5, o), 3) == [1, 0.5, 0.25]
    @test rates(o -> optim.SequentialLR(o,
        [optim.ConstantLR(o; factor=0.5, total_iters=2), optim.ExponentialLR(o, 0.9)], [2]),
        3)[1] == 0.5
    @test length(rates(o -> optim.OneCycleLR(o, 1.0; total_steps=5), 5)) == 5
    opt = optim.SGD([x]; lr=1.0)
    s = optim.StepLR(opt, 2)
    step!(s, 4)
    @test TT.last_epoch(s) == 4 && opt.param_groups[1].lr ≈ 0.01 && state_dict(s)["last_epoch"] == 4
    @test TT.last_epoch(load_state_dict!(optim.StepLR(opt, 2), state_dict(s))) == 4
    wrong = merge(state_dict(s), Dict("last_epoch" => 7.0, "no such number" => 1.0))
    thrown(() -> load_state_dict!(s, wrong), TT.Error)
    @test TT.last_epoch(s) == 4
end

@testset "states of optimizers" begin
    w = TT.requires_grad!(TT.ones(2))
    adam = optim.Adam([w])
    bad = ["param_groups.0.lr" => 0.5, "state.0.exp_avg" => TT.zeros(2),
        "state.0.exp_avg_sq" => TT.zeros(3)]
    thrown(() -> load_state_dict!(adam, Dict(bad)), TT.ShapeError)
    @test adam.param_groups[1].lr ≈ 1e-3 && isempty(state_dict(adam).tensors)
    numbers = state_dict(adam).numbers
    wrong = TT.StateDict(["state.0.step" => tensor(5.0), "param_groups.0.initial_lr" => tensor(1.0),
        "state.0.exp_avg_sq" => TT.zeros(3)])
    thrown(() -> load_state_dict!(adam, wrong), TT.ShapeError)
    @test state_dict(adam).numbers == numbers
    backward(sum(w))
    step!(adam)
    before = Dict(name => Array(t) for (name, t) in state_dict(adam).tensors)
    thrown(() -> load_state_dict!(adam, Dict(bad)), TT.ShapeError)
    @test before == Dict(name => Array(t) for (name, t) in state_dict(adam).tensors)
    # the names and tensors that PyTorch's files have
    flat = Dict{String, Tensor}(state_dict(adam).tensors)
    flat["state.0.step"] = tensor(1f0)
    other = load_state_dict!(optim.Adam([TT.requires_grad!(TT.ones(2))]), TT.StateDict(flat))
    @test state_dict(other).numbers["state.0.step"] == 1
    @test state_dict(other).tensors["state.0.exp_avg"] == before["state.0.exp_avg"]
end

@testset "parameters of several models" begin
    a, b = nn.Linear(2, 1), (inner = nn.Linear(1, 1), scale = TT.requires_grad!(TT.ones(1)))
    @test TT.num_parameters(optim.SGD((a, b))) == TT.num_parameters(optim.SGD([a, b])) == 5
    @test length(optim.SGD([(params = [a.weight], lr = 0.1), (params = a.bias,)]).param_groups) == 2
    for wrong in ((), [1, 2], [a.weight, a], (nn.ReLU(),))
        @test_throws ArgumentError optim.SGD(wrong)
    end
end

@testset "gradient scaler" begin
    x = tensor([1.0]; requires_grad=true)
    opt = optim.SGD([x]; lr=0.5)
    s = TT.GradScaler(; init_scale=8, growth_interval=1)
    backward(TT.scale(s, sum(x)))
    @test step!(s, opt) && x[1][] == 0.5
    TT.update!(s)
    @test TT.get_scale(s) == 16 && TT.get_state(s) == (16.0, 2.0, 0.5, 1.0, 0.0)
    @test TT.get_scale(TT.set_state!(TT.GradScaler(), TT.get_state(s))) == 16
end

@testset "gradient scaler in a compiled step" begin
    function steps(compiled)
        x = tensor([1.0]; requires_grad=true)
        opt = optim.SGD([x]; lr=0.5)
        s = TT.GradScaler(; init_scale=8, growth_interval=2)
        function train(factor)
            zero_grad!(opt)
            backward(TT.scale(s, sum(x .* factor)))
            step!(s, opt)
            TT.update!(s)
            nothing
        end
        run = compiled ? TT.compile(train) : train
        map([1.0, 1, Inf, 1, NaN]) do factor
            run(tensor([factor]))
            (x[1][], TT.get_scale(s), TT.found_inf(s, opt))
        end
    end
    @test steps(true) == steps(false)
    @test last.(steps(true)) == fill(-1, 5) && map(t -> t[2], steps(true)) == [8, 16, 8, 8, 4]
end
