# Modules: the tree, state, hooks, modules of Julia.
@testset "layers" begin
    m = nn.Linear(3, 2; dtype=Float64)
    x = tensor([1.0 2 3; 4 5 6])
    @test near(m(x), Array(x) * Array(m.weight)' .+ Array(m.bias)')
    @test size(m.weight) == (2, 3)
    @test m.weight.requires_grad
    @test TT.same_tensor(m.weight, m.weight)
    @test nn.Linear(3, 2; bias=false).bias === nothing
    @test TT.module_type(m) == "Linear"
    @test string(m) == "Linear(in_features=3, out_features=2, bias=True)"
    @test near(nn.ReLU()(tensor([-1.0, 2])), [0, 2])
    @test near(nn.Softmax(1)(tensor([1.0, 1])), [0.5, 0.5])
    @test size(nn.Flatten()(TT.ones(2, 3, 4))) == (2, 12)
    @test size(nn.Conv2d(1, 4, 3; padding=1)(TT.ones(2, 1, 5, 5))) == (2, 4, 5, 5)
    @test size(nn.MaxPool2d(2)(TT.ones(1, 1, 4, 4))) == (1, 1, 2, 2)
    @test size(nn.Embedding(5, 3)(Tensor([0, 4]))) == (2, 3)
    embedding = nn.Embedding(5, 3; padding_idx=0)  # as the value 0 in a tensor of indices
    @test near(embedding(tensor([0, 0])), zeros(2, 3)) && !near(embedding.weight[2, :], zeros(3))
    @test nn.CrossEntropyLoss()(TT.zeros(2, 4), Tensor([0, 3]))[] ≈ log(4)
    @test nn.MSELoss(; reduction="sum")(TT.ones(3), TT.zeros(3))[] == 3
    @test near(nn.LayerNorm(2; elementwise_affine=false)(tensor([1.0, 3])), [-1, 1]; atol=1e-4)
    @test eltype(nn.BatchNorm1d(3).running_mean) == Float32
    attention = nn.MultiheadAttention(4, 2; batch_first=true)
    q = TT.randn(1, 3, 4)
    out, weights = attention(q, q, q)
    @test size(out) == (1, 3, 4) && size(weights) == (1, 3, 3)
    out, weights = nn.attend(attention, q, q, q; need_weights=false)
    @test size(out) == (1, 3, 4) && weights === nothing
    thrown(() -> m(TT.ones(2, 5; dtype=Float64)), TT.ShapeError)
    thrown(() -> nn.Linear(3), MethodError)
    thrown(() -> nn.Linear(-1, 2), TT.Error)
    thrown(() -> nn.GELU("sinh"), Exception)
    thrown(() -> nn.GELU(; approximate="sinh"), ArgumentError)
    thrown(() -> m.nothing_such, TT.OutOfRangeError)
    free!(m)
    thrown(() -> m(x), TT.HandleError)
end

@testset "trees" begin
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5),
        nn.Sequential(nn.BatchNorm1d(8), nn.ReLU()))
    push!(net, nn.Linear(8, 2))
    @test length(net) == 4
    @test net[end] == net[4]
    @test length(net[3]) == 2
    @test [TT.module_type(m) for m in net] == ["Linear", "Dropout", "Sequential", "Linear"]
    @test first.(named_children(net)) == ["0", "1", "2", "3"]
    @test first.(named_parameters(net))[end] == "3.bias"
    @test length(parameters(net)) == 6
    @test first.(named_buffers(net)) ==
        ["2.0.running_mean", "2.0.running_var", "2.0.num_batches_tracked"]
    @test TT.get_submodule(net, "2.0") == net[3][1]
    @test TT.same_tensor(TT.get_tensor(net, "0.weight"), net[1].weight)
    @test net.training && !eval!(net).training && train!(net)[2].training
    eval!(net)
    x = TT.randn(5, 4)
    y = net(x)
    other = deepcopy(net)
    @test near(other(x), Array(y)) && !TT.same_tensor(other[1].weight, net[1].weight)
    @test !requires_grad!(net, false)[1].weight.requires_grad
    @test requires_grad!(net)[1].weight.requires_grad
    backward(sum(net(x)))
    @test net[1].weight.grad !== nothing && zero_grad!(net)[1].weight.grad === nothing
    weight = net[1].weight
    @test eltype(TT.to!(net; dtype=Float64)[1].weight) == Float64
    @test TT.same_tensor(weight, net[1].weight)
    @test eltype(weight) == Float64
    state = state_dict(other)
    @test keys(state)[1] == "0.weight"
    @test length(state) == 9
    @test haskey(state, "3.bias")
    @test TT.same_tensor(state["0.weight"], other[1].weight)
    fresh = eval!(nn.Sequential(nn.Linear(4, 8), nn.Dropout(),
        nn.Sequential(nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 2)))
    @test near(load_state_dict!(fresh, state)(x), Array(y))
    thrown(() -> load_state_dict!(fresh, Dict("0.weight" => TT.ones(8, 4))), TT.Error)
    load_state_dict!(fresh, Dict("0.weight" => TT.ones(8, 4)); strict=false)
    @test near(fresh[1].weight, ones(8, 4))
    thrown(() -> net[9], BoundsError)
    tied = nn.ModuleDict("a" => nn.Linear(2, 2), "b" => nn.Linear(2, 2))
    tied.b.weight = tied.a.weight
    @test length(parameters(tied)) == 3
    @test TT.same_tensor(tied.a.weight, tied.b.weight)
    @test length(nn.ModuleList(tied.a, tied.b)) == 2
end

@testset "modules of Julia" begin
    net = nn.custom("Net"; fc1=nn.Linear(3, 4), fc2=nn.Linear(4, 2), scale=tensor([2f0])) do m, x
        m.fc2(relu(m.fc1(x))) .* m.scale
    end
    x = TT.randn(5, 3)
    @test size(net(x)) == (5, 2)
    @test first.(named_parameters(net)) ==
        ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    @test occursin("Net(", string(net))
    @test :fc1 in propertynames(net)
    @test :scale in propertynames(net)
    whole = nn.Sequential(net, nn.ReLU())
    @test near(whole(x), max.(Array(net(x)), 0)) && near(deepcopy(whole)(x), Array(whole(x)))
    net.scale = tensor([0f0])
    @test near(net(x), zeros(5, 2))
    TT.register_buffer!(net, "seen", TT.zeros(1))
    net.seen = TT.ones(1)
    @test near(net.seen, [1]) && length(named_buffers(net)) == 1
    many = nn.custom((m, a, b) -> (a .+ b, a .- b))
    @test map(t -> t[], many(tensor(3.0), tensor(1.0))) == (4.0, 2.0)
end

@testset "hooks" begin
    m = nn.Linear(2, 2; dtype=Float64)
    seen = []
    before = register_forward_pre_hook(m) do m, inputs
        push!(seen, TT.module_type(m))
        return inputs[1] .* 0
    end
    after = register_forward_hook(m) do m, inputs, outputs
        push!(seen, length(inputs))
        return outputs[1] .+ 100
    end
    @test near(m(tensor([1.0 2])), Array(m.bias)' .+ 100) && seen == ["Linear", 1]
    remove!(before)
    remove!(after)
    @test near(m(tensor([0.0 0])), Array(m.bias)')
end

@testset "backward hooks" begin
    m = nn.custom((m, a, b) -> a .* b)
    a, b, seen = tensor([2.0, 3]; requires_grad=true), tensor([5.0, 7]), []
    before = register_full_backward_pre_hook((m, grads) -> grads[1] .* 10, m)
    after = register_full_backward_hook(m) do m, grad_outputs, grad_inputs
        push!(seen, Array(grad_outputs[1]), Array(grad_inputs[2]))
        (grad_inputs[1] .+ 1, nothing)
    end
    TT.backward(sum(m(a, b)))
    @test near(a.grad, [51, 71]) && seen == [[10.0, 10.0], [0.0, 0.0]]
    remove!(before)
    remove!(after)
end

@testset "several results of one input" begin
    m = nn.custom((m, x) -> (x .+ 1, x .* 2))
    a, b = m(TT.ones(2))
    @test a == [2, 2]
    @test b == [2, 2]
    @test length(nn.custom((m, x) -> ntuple(k -> x .* k, 16))(TT.ones(1))) == 16
end

struct Scale
    factor::Tensor
    inner::Any
end
(s::Scale)(x) = s.inner(x) .* s.factor

@testset "functions as layers" begin
    scale = Scale(tensor([2f0]; requires_grad=true), nn.Linear(3, 3))
    net = nn.Sequential(nn.Linear(4, 3), relu, x -> x .+ 1, scale, x -> TT.sum(x, 2))
    x = TT.randn(5, 4)
    want = sum(Array(scale.inner(relu(net[1](x)) .+ 1)) .* 2; dims=2)
    @test near(net(x), vec(want); atol=1e-5) && length(net) == 5
    @test first.(named_parameters(net)) ==
        ["0.weight", "0.bias", "3.factor", "3.inner.weight", "3.inner.bias"]
    @test occursin("relu", string(net)) && occursin("Scale", string(net))
    state = Dict(name => TT.zeros(size(t)...) for (name, t) in named_parameters(net))
    load_state_dict!(net, state)
    @test scale.factor == [0]
    thrown(() -> nn.Sequential(3), ArgumentError)
    # a model that is a struct: state, mode
    model = (scale = scale, list = [nn.BatchNorm1d(3)], rate = 0.5)
    @test keys(state_dict(model)) == ["scale.factor", "scale.inner.weight", "scale.inner.bias",
        "list.0.weight", "list.0.bias", "list.0.running_mean", "list.0.running_var",
        "list.0.num_batches_tracked"]
    named = TT.named_parameters((model, model))
    @test [t for (_, t) in named] == TT.parameters(model)
    @test first(named[1]) == "0.scale.factor" && last(named[1]) == scale.factor
    saved = Dict(name => copy(t) for (name, t) in pairs(state_dict(model)))
    no_grad(() -> foreach(p -> fill!(p, 7), parameters(model)))
    @test load_state_dict!(model, saved) === model && scale.factor == [0]
    @test scale.inner.weight == saved["scale.inner.weight"]
    saved["scale.factor"] = TT.ones(2)
    saved["list.0.bias"] = TT.ones(3)
    thrown(() -> load_state_dict!(model, saved), DimensionMismatch)
    @test model.list[1].bias == [0, 0, 0]
    delete!(saved, "scale.factor")
    thrown(() -> load_state_dict!(model, saved), ArgumentError)
    load_state_dict!(model, saved; strict=false)
    @test model.list[1].bias == [1, 1, 1]
    @test !eval!(model).list[1].training && train!(model).list[1].training
    thrown(() -> state_dict(TT.Generator(1)), ArgumentError)
    thrown(() -> eval!(TT.Generator(1)), ArgumentError)
    plain = nn.Sequential(nn.Linear(4, 3), relu)
    @test near(deepcopy(plain)(x), Array(plain(x)))
    @test occursin("nn.custom", thrown(() -> deepcopy(net), ArgumentError).msg)
end

@testset "averages of models" begin
    model = nn.Linear(2, 1)
    follower = deepcopy(model)
    TT.no_grad(() -> TT.fill!(model.weight, 4.0))
    TT.no_grad(() -> TT.fill!(follower.weight, 0.0))
    @test TT.average!(follower, model, 0.25) === follower
    @test follower.weight == [1.0 1.0]
    thrown(() -> TT.average!(follower, nn.Linear(3, 1), 0.5), TT.ShapeError)
end

@testset "AveragedModel, update_bn!" begin
    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    mean, moving = TT.AveragedModel(model), TT.AveragedModel(model; decay=0.75)
    for w in (2.0, 4.0, 6.0)
        no_grad(() -> TT.fill!(model[1].weight, w))
        @test update_parameters!(mean, model) === mean
        update_parameters!(moving, model)
    end
    @test mean.n_averaged == 3 && "module.0.weight" in first.(named_parameters(mean))
    @test near(get_tensor(mean, "module.0.weight"), [4.0 4.0])
    @test near(get_tensor(moving, "module.0.weight"),
        fill((2 * 0.75 + 4 * 0.25) * 0.75 + 6 * 0.25, 1, 2))
    @test size(mean(TT.zeros(3, 2))) == (3, 1)
    thrown(() -> TT.AveragedModel(model; decay=2), TT.InvalidArgumentError)
    norm = nn.BatchNorm1d(1)
    batches = [tensor(Float32[0 2]'), tensor(Float32[4 10]')]
    eval!(norm)
    @test update_bn!(batches, norm) === norm
    @test norm.running_mean == [4] && norm.num_batches_tracked == 2 && !norm.training
    update_bn!(TT.Loader(TT.Dataset(batches[1]); batch_size=2), norm)
    @test norm.running_mean == [1] && norm.running_var == [2]
    seen = Bool[]
    update_bn!(norm) do
        push!(seen, norm.training, norm(batches[2]).requires_grad)
    end
    @test seen == [true, false] && norm.running_mean == [7]
    @test thrown(() -> update_bn!(() -> error("no data"), norm), ErrorException).msg == "no data"
    @test norm.running_mean == [7]
end

@testset "losses with functions and layers of their own" begin
    d(a, b) = TT.sum(TT.abs(a .- b), 2)
    loss = nn.TripletMarginWithDistanceLoss(d; margin=2, reduction="none")
    a, p, n = tensor([0.0 0.0]), tensor([1.0 2.0]), tensor([0.0 3.0])
    @test loss(a, p, n) == [2.0] && TT.module_type(loss) == "TripletMarginWithDistanceLoss"
    GC.gc()
    @test deepcopy(loss)(a, p, n) == [2.0]
    euclidean = nn.TripletMarginWithDistanceLoss()
    @test near(euclidean(a, p, n), nn.TripletMarginLoss()(a, p, n)[])
    failing = nn.TripletMarginWithDistanceLoss((x, y) -> error("no distance"))
    @test thrown(() -> failing(a, p, n), ErrorException).msg == "no distance"
    thrown(() -> nn.TripletMarginWithDistanceLoss(d; reduction="most"), ArgumentError)

    adaptive = nn.AdaptiveLogSoftmaxWithLoss(16, 8, [2, 5])
    x, target = TT.randn(5, 16), tensor([0, 3, 7, 1, 4])
    output, total = adaptive(x, target)
    logs = TT.log_prob(adaptive, x)
    @test near(output, [Array(logs)[i, c + 1] for (i, c) in enumerate([0, 3, 7, 1, 4])]; atol=1e-5)
    @test near(total, -Statistics.mean(Array(output)); atol=1e-5)
    @test TT.predict(adaptive, x) == TT.argmax(logs, 2)
    whole = nn.LinearCrossEntropyLoss(16, 8; bias=true)
    @test near(whole(x, target), TT.cross_entropy(whole.linear(x), target)[]; atol=1e-5)
end

@testset "containers of parameters" begin
    list = nn.ParameterList([TT.ones(2), TT.zeros(3)])
    dict = nn.ParameterDict(:left => TT.ones(2), "right" => TT.zeros(3))
    @test first.(named_parameters(list)) == ["0", "1"] && length(parameters(list)) == 2
    @test dict.right == [0, 0, 0] && dict.left.requires_grad
    @test length(parameters(nn.custom((m, x) -> x .* m.scales.left; scales=dict))) == 2
end

@testset "initial values" begin
    init = nn.init
    @test init.calculate_gain("relu") == sqrt(2) && init.calculate_gain("tanh") == 5 / 3
    @test init.calculate_gain("leaky_relu", 0.5) == sqrt(2 / 1.25)
    thrown(() -> init.calculate_gain("no"), ArgumentError)
    w = nn.Linear(200, 100).weight
    spread(t) = sqrt(Statistics.mean(Array(t) .^ 2))
    bound(t) = maximum(abs, Array(t))
    for (f!, std, most) in [
            (init.xavier_uniform!, sqrt(2 / 300), sqrt(6 / 300)),
            (init.xavier_normal!, sqrt(2 / 300), Inf),
            (init.kaiming_uniform!, sqrt(2 / 200), sqrt(6 / 200)),
            (w -> init.kaiming_uniform!(w; mode="fan_out", nonlinearity="tanh"),
             5 / 3 / sqrt(100), 5 / sqrt(300)),
            (w -> init.kaiming_normal!(w; nonlinearity="relu"), sqrt(2 / 200), Inf),
            (w -> init.normal!(w; std=0.5), 0.5, Inf),
            (w -> init.uniform!(w; a=-3, b=3), sqrt(3), 3),
            (w -> init.trunc_normal!(w; std=0.5, a=-1, b=1), 0.5 * 0.8796, 1)]
        @test f!(w) === w && isapprox(spread(w), std; rtol=0.05) && bound(w) <= most * (1 + 1e-6)
    end
    @test w.requires_grad && w.is_leaf
    for size in ((3, 5), (5, 3), (2, 3, 2))
        q = reshape(Array(init.orthogonal!(TT.zeros(size...); gain=2)), size[1], :)
        rows = size[1] <= Base.prod(size[2:end])
        @test isapprox(rows ? q * q' : q' * q, 4 * LinearAlgebra.I; atol=1e-5)
    end
    conv = nn.Conv1d(2, 4, 3; padding=1, groups=2, bias=false)
    init.dirac!(conv.weight; groups=2)
    x = TT.randn(1, 2, 5)
    @test Array(conv(x))[1, [1, 3], :] == Array(x)[1, :, :]
    @test init.eye!(TT.zeros(2, 3)) == [1 0 0; 0 1 0] && init.constant!(TT.zeros(2), 3) == [3, 3]
    thrown(() -> init.xavier_normal!(TT.zeros(3)), DimensionMismatch)
    thrown(() -> init.kaiming_normal!(TT.zeros(3, 3); mode="fan"), ArgumentError)
end

@testset "packed sequences" begin
    x = TT.randn(3, 5, 4; requires_grad=true)
    p = pack_padded_sequence(x, [2, 5, 3]; batch_first=true)
    @test Array(p.batch_sizes) == [3, 3, 2, 1, 1] && p.sorted_indices == [2, 3, 1]
    steps = [(2, 1), (3, 1), (1, 1), (2, 2), (3, 2), (1, 2), (2, 3), (3, 3), (2, 4), (2, 5)]
    @test all(Array(p.data)[k, :] == Array(x)[i, step, :] for (k, (i, step)) in enumerate(steps))
    padded, lengths = pad_packed_sequence(p; batch_first=true, padding_value=-1)
    want = copy(Array(x))
    want[1, 3:5, :] .= -1
    want[3, 4:5, :] .= -1
    @test lengths == [2, 5, 3] && Array(padded) == want
    other = pack_padded_sequence(TT.transpose(x, 1, 2), [2, 5, 3])
    @test Array(other.data) == Array(p.data)
    @test Array(pad_packed_sequence(other; padding_value=-1)[1]) == permutedims(want, (2, 1, 3))
    lstm = nn.LSTM(4, 6)
    output, = lstm(p.data, nothing, nothing, p.batch_sizes)
    padded, = pad_packed_sequence(PackedSequence(p, output); batch_first=true)
    alone, = lstm(TT.transpose(x[1:1, 1:2, :], 1, 2))
    @test isapprox(Array(padded)[1, 1:2, :], Array(alone)[:, 1, :]; atol=1e-6)
    backward(TT.sum(p.data))
    @test Array(x.grad)[:, :, 1] == [1 1 0 0 0; 1 1 1 1 1; 1 1 1 0 0]
    @test pad_sequence([tensor([1.0, 2.0]), tensor([3.0])]; padding_value=9) == [1 3; 2 9]
    @test pad_sequence([tensor([1, 2]), tensor([3])]; batch_first=true) == [1 2; 3 0]
    thrown(() -> pack_padded_sequence(x, [2, 5]; batch_first=true), DimensionMismatch)
    thrown(() -> pack_padded_sequence(x, [0, 5, 3]; batch_first=true), ArgumentError)
end

@testset "modules" begin
    shared = nn.Linear(2, 2)
    net = nn.Sequential(nn.Sequential(shared, nn.ReLU()), shared)
    found = TT.named_modules(net)
    @test first.(found) == ["", "0", "0.0", "0.1"]
    @test TT.module_type.(last.(found)) == ["Sequential", "Sequential", "Linear", "ReLU"]
    @test first.(TT.named_modules((a = net, b = [nn.ReLU()]))) ==
        ["a", "a.0", "a.0.0", "a.0.1", "b.0"]
    @test length(TT.modules(net)) == 4
    @test_throws ArgumentError TT.modules(TT.ones(2))
end

@testset "hints at tensors" begin
    for f in (() -> TT.relu([1.0]), () -> nn.Linear(2, 2)(ones(1, 2)), () -> TT.Dataset([1, 2]))
        @test occursin("tensor(x) copies an array", sprint(showerror, thrown(f, MethodError)))
    end
end
