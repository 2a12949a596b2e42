# Transformers, parametrizations, pruning and other tools, beside results of PyTorch.
const RECORDED = joinpath(@__DIR__, "../../../tests/python/conformance-training/modules")

"A recorded call of a layer of PyTorch: its text, and the tensors of the file."
function recorded(layer, id)
    file = TT.SafeTensors(joinpath(RECORDED, "nn.$layer.safetensors"))
    cases = split(TT.metadata(file)["cases"], "{\"id\":")
    return (text = only(c for c in cases if startswith(c, "\"$id\"")), file = file)
end
"The n-th tensor that follows a key of a case."
function of_case(case, key, n=1)
    at = findfirst("\"$key\":", case.text)
    ids = collect(eachmatch(r"\{\"t\":\"(\d+)\"", case.text[last(at):end]))
    return case.file[ids[n][1]]
end
function load_case!(m, case)
    names = first.(collect(TT.state_dict(m)))
    TT.load_state_dict!(m, Dict(name => of_case(case, name) for name in names))
end
agrees(case, y) = near(y, Array(of_case(case, "out")); atol=1e-5)

@testset "transformers load states of PyTorch" begin
    case = recorded("TransformerEncoder", "nn.TransformerEncoder-101-f32-eval")
    layer = nn.TransformerEncoderLayer(8, 2, 12, 0; batch_first=true, activation="gelu")
    encoder = nn.TransformerEncoder(layer, 2)
    load_case!(encoder, case)
    TT.eval!(encoder)
    x = of_case(case, "inputs")
    @test agrees(case, encoder(x, nothing, of_case(case, "src_key_padding_mask")))

    case = recorded("TransformerDecoder", "nn.TransformerDecoder-2-f32-eval")
    layer = nn.TransformerDecoderLayer(8, 2, 12, 0; batch_first=true, norm_first=true, bias=false)
    decoder = nn.TransformerDecoder(layer, 2; norm=nn.LayerNorm(8))
    load_case!(decoder, case)
    padding = of_case(case, "memory_key_padding_mask")
    inputs = (of_case(case, "inputs"), of_case(case, "inputs", 2))
    @test agrees(case, decoder(inputs..., nothing, nothing, nothing, padding))

    case = recorded("Transformer", "nn.Transformer-100-f32-train")
    both = nn.Transformer(8, 2, 1, 1, 12, 0)
    load_case!(both, case)
    mask = nn.generate_square_subsequent_mask(4)
    @test mask == of_case(case, "tgt_mask")
    inputs = (of_case(case, "inputs"), of_case(case, "inputs", 2))
    @test agrees(case, both(inputs..., nothing, mask))
    @test agrees(case, copy(both)(inputs..., nothing, mask))

    twice = nn.custom((m, x) -> 2x, "Twice")
    @test nn.TransformerEncoder(twice, 3)(TT.ones(2)) == [8, 8]
    thrown(() -> nn.TransformerEncoder(twice, -1), TT.Error)
end

"A linear layer of 4 inputs and 3 outputs, whose weights have 12 magnitudes."
function twelve()
    m = nn.Linear(4, 3)
    weight = reshape([i * 7 % 12 - 5.2f0 for i in 0:11], 4, 3)
    m.weight = tensor(Float32.(permutedims(weight)); requires_grad=true)
    m.bias = tensor(Float32[0.5, -1, 0.25]; requires_grad=true)
    return m
end
const ONE_TO_FOUR = tensor(Float32[1 2 3 4])
rows(t) = vec(permutedims(Array(t)))
close_to(t, want) = isapprox(ndims(t) == 2 ? rows(t) : Array(t), want; rtol=1e-4)
names_of(m) = first.(collect(TT.state_dict(m)))

@testset "weight_norm" begin
    m = nn.parametrize.weight_norm!(twelve())
    path = "parametrizations.weight.original"
    @test names_of(m) == ["bias", path * "0", path * "1"]
    y = m(ONE_TO_FOUR)
    @test close_to(y, [4.5, -5, 12.25])
    backward(sum(y .^ 2))
    @test close_to(TT.get_tensor(m, path * "0").grad, [4.856004, 5.475852, 49.164154])
    @test close_to(TT.get_tensor(m, path * "1").grad, [12.406111, 16.820957, 29.096064, 33.51091,
        -9.100447, -24.347815, -30.599688, -36.851563, 1.479866, 67.08725, 34.036911, 99.644295])
    @test length(TT.parameters(m)) == 3
    nn.vector_to_parameters!(TT.zeros(3), [TT.get_tensor(m, path * "0")])
    @test close_to(m(ONE_TO_FOUR), [0.5, -1, 0.25])
    thrown(() -> TT.freeze!(m), TT.Error)
    @test nn.parametrize.is_parametrized(m, "weight")
    nn.parametrize.remove_parametrizations!(m, "weight")
    @test names_of(m) == ["weight", "bias"] && !nn.parametrize.is_parametrized(m)
    @test close_to(TT.freeze!(m)(ONE_TO_FOUR), [0.5, -1, 0.25])
    thrown(() -> nn.parametrize.remove_parametrizations!(m, "weight"), ArgumentError)
    m = nn.parametrize.weight_norm!(twelve(); dim=nothing)
    @test TT.get_tensor(m, path * "0")[] ≈ 12.003332
    thrown(() -> nn.parametrize.weight_norm!(twelve(); dim=3), ArgumentError)
end

@testset "spectral_norm" begin
    m = nn.parametrize.spectral_norm!(twelve())
    path = "parametrizations.weight"
    @test names_of(m) == ["bias", "$path.original", "$path.0._u", "$path.0._v"]
    state = Dict{String, Tensor}(collect(TT.state_dict(m)))
    state["$path.0._u"] = tensor(Float32[1, 0, 0])
    state["$path.0._v"] = tensor(Float32[0, 1, 0, 0])
    TT.load_state_dict!(m, state)
    y = m(ONE_TO_FOUR)
    @test close_to(y, [0.999628, -1.499628, 1.748884])
    backward(sum(y .^ 2))
    @test isapprox(rows(TT.get_tensor(m, "$path.original").grad), [0.366845, 0.282074, 0.810018,
        1.087874, 0.002773, -1.449663, -0.927797, -1.211768, 0.293744, 1.139463, 1.236309,
        1.638818]; rtol=1e-4)
    u = Array(TT.get_tensor(m, "$path.0._u"))
    @test u ≈ [0.278677, 0.897958, -0.340605] rtol = 1e-4
    TT.eval!(m)
    @test close_to(m(ONE_TO_FOUR), [0.999628, -1.499628, 1.748884])
    @test TT.get_tensor(m, "$path.0._u") == u
    nn.parametrize.remove_parametrizations!(m, "weight"; leave_parametrized=false)
    @test m(ONE_TO_FOUR) == twelve()(ONE_TO_FOUR)
    m = twelve()
    weight = m.weight
    nn.parametrize.spectral_norm!(m; dim=-2)
    scaled = Array(m.weight)
    nn.parametrize.remove_parametrizations!(m, "weight")
    @test TT.same_tensor(m.weight, weight) && weight ≈ scaled  # optimizers know it
    m = nn.Linear(2, 2; bias=false)
    m.weight = tensor(ComplexF32[1 2im; -3 4]; requires_grad=true)
    nn.parametrize.spectral_norm!(m; n_power_iterations=50)
    m(TT.ones(1, 2; dtype=ComplexF32))
    @test TT.linalg_svdvals(m.weight)[1][] ≈ 1
    turned = nn.parametrize.spectral_norm!(nn.ConvTranspose2d(2, 3, 2))
    @test size(TT.get_tensor(turned, "$path.0._u")) == (3,)
end

@testset "orthogonal" begin
    for (map, want) in [("matrix_exp", [2.407385, -2.303936, 4.110094]),
                        ("cayley", [2.345492, -2.098146, 3.939784]),
                        ("householder", [-1.183296, -0.129802, -4.258515])]
        m = nn.parametrize.orthogonal!(twelve(); orthogonal_map=map, use_trivialization=false)
        original = TT.detach(twelve().weight) ./ 5
        map == "householder" && (original = TT.t(TT.tril(TT.t(original), -1)) .+ TT.eye(3, 4))
        state = Dict{String, Tensor}(collect(TT.state_dict(m)))
        state["parametrizations.weight.original"] = original
        TT.load_state_dict!(m, state)
        @test close_to(m(ONE_TO_FOUR), want)
    end
    for (rows, columns) in [(3, 3), (2, 4), (4, 2)]
        m = nn.parametrize.orthogonal!(nn.Linear(columns, rows))
        backward(sum(m(TT.ones(1, columns))))
        q = Array(m.weight)
        q = rows < columns ? permutedims(q) : q
        @test q' * q ≈ LinearAlgebra.I atol = 1e-5
    end
end

@testset "parametrizations follow one another" begin
    m = twelve()
    nn.parametrize.register_parametrization!(m, "bias", x -> 2x)
    nn.parametrize.register_parametrization!(m, "bias", x -> x .+ 1)
    @test m.bias == [2, -1, 1.5]
    backward(sum(m(ONE_TO_FOUR)))
    @test TT.get_tensor(m, "parametrizations.bias.original").grad == [2, 2, 2]
    thrown(() -> nn.parametrize.register_parametrization!(m, "weight", sum), DimensionMismatch)
    @test !nn.parametrize.is_parametrized(m, "weight")
    norm = nn.BatchNorm1d(3)
    thrown(() -> nn.parametrize.register_parametrization!(norm, "running_mean", x -> 2x),
        ArgumentError)
    thrown(() -> nn.prune.identity!(norm, "running_mean"), ArgumentError)
    @test isempty(TT.named_children(norm)) && length(TT.named_buffers(norm)) == 3
    # the hook owns no module
    before = length(TT.HELD)
    for _ in 1:3
        free!(nn.parametrize.register_parametrization!(nn.Linear(1, 1), "bias", x -> 2x))
    end
    GC.gc()
    TT.poll()
    @test length(TT.HELD) <= before + 6
end

mask_of(m) = Int.(rows(m.weight_mask))
@testset "copies compute their own weights" begin
    norms = "parametrizations.weight.original0"
    m = nn.parametrize.weight_norm!(twelve())
    net = nn.Sequential(m, m)
    copied = copy(net)
    average = TT.AveragedModel(net)
    nn.vector_to_parameters!(TT.zeros(3), [TT.get_tensor(copied, "0.$norms")])
    @test close_to(copied[1](ONE_TO_FOUR), [0.5, -1, 0.25])
    @test close_to(m(ONE_TO_FOUR), [4.5, -5, 12.25])
    backward(sum(copied[1](ONE_TO_FOUR)))
    @test TT.get_tensor(copied, "0.$norms").grad !== nothing
    TT.update_parameters!(average, copied)
    @test close_to(TT.get_submodule(average, "module.0")(ONE_TO_FOUR), [0.5, -1, 0.25])
    @test nn.parametrize.is_parametrized(copied[2], "weight")  # the same layer twice, as in net
    nn.parametrize.remove_parametrizations!(copied[1], "weight")
    @test !nn.parametrize.is_parametrized(copied[2]) && TT.is_frozen(TT.freeze!(copied))
    @test nn.parametrize.is_parametrized(net[1])

    m = nn.Linear(4, 4)
    nn.prune.l1_unstructured!(m, "weight"; amount=0.5)
    layers = nn.TransformerEncoder(m, 2)
    nn.vector_to_parameters!(TT.zeros(16), [TT.get_tensor(layers, "layers.0.weight_orig")])
    layers(ONE_TO_FOUR)
    last_one = TT.get_submodule(layers, "layers.1")
    @test Base.all(iszero, Array(TT.get_tensor(layers, "layers.0.weight")))
    @test last_one.weight == m.weight && nn.prune.is_pruned(layers)
    nn.prune.remove!(last_one, "weight")
    @test names_of(deepcopy(last_one)) == ["weight", "bias"]
end

@testset "lazy layers take sizes from the first input" begin
    net = nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(3))
    sgd = optim.SGD(net; lr=0.1)
    copied, x = copy(net), TT.randn(5, 4)
    backward(sum(net(x) .^ 2))
    before = Array(net[2].weight)
    @test size(before) == (3, 4)
    TT.step!(sgd)
    @test net[2].weight != before
    TT.load_state_dict!(copied, TT.state_dict(net))
    @test TT.eval!(copied)(x) == TT.eval!(net)(x)
    conv = nn.LazyConv2d(6, 3; groups=2, padding=1)
    thrown(() -> conv(TT.ones(3, 5, 5)), TT.Error)
    @test size(conv(TT.ones(4, 5, 5))) == (6, 5, 5) && size(conv.weight) == (6, 2, 3, 3)
end

@testset "activations of transformers are any functions" begin
    x, y = TT.randn(3, 1, 8), TT.randn(2, 1, 8)
    both = nn.Transformer(8, 2, 1, 1, 12, 0)
    own = nn.Transformer(8, 2, 1, 1, 12, 0; activation=t -> max.(t, 0))
    state = TT.state_dict(both)
    @test first.(collect(state)) == first.(collect(TT.state_dict(own)))
    @test TT.load_state_dict!(own, state)(x, y) == both(x, y)
    layer = nn.TransformerEncoderLayer(8, 2, 12, 0; activation=nn.PReLU())
    @test names_of(layer)[end] == "activation.weight" && size(layer(x)) == (3, 1, 8)
end

struct Tower
    layers::Vector{Any}
    scale::Tensor
    steps::Tensor
end
@testset "structs are models" begin
    shared = nn.Linear(2, 2)
    net = Tower([shared, (shared, nn.BatchNorm1d(2))], TT.ones(2; requires_grad=true), tensor([1]))
    weight, scale = shared.weight, net.scale
    backward(sum(shared(TT.ones(3, 2)) .* scale))
    @test TT.to!(net; dtype=Float64) === net
    @test eltype(weight) == eltype(scale) == eltype(scale.grad) == Float64
    @test eltype(net.steps) == Int64 && eltype(net.layers[2][2].running_mean) == Float64
    @test TT.zero_grad!(net) === net && weight.grad === nothing && scale.grad === nothing
    opt = optim.SGD(net; lr=1)
    schedule = optim.LambdaLR(opt, epoch -> 0.5^epoch)
    TT.step!(schedule)
    @test opt.param_groups[1].lr == 0.5
    thrown(() -> TT.to!(opt; dtype=Float64), ArgumentError)
    thrown(() -> TT.zero_grad!(schedule), ArgumentError)
    @test occursin("colon", thrown(() -> reshape(scale, -1, 1), DimensionMismatch).msg)
end

@testset "special functions of PyTorch" begin
    one, two = tensor(1), tensor(2.0)
    @test TT.bessel_j1(one)[] ≈ 0.4400505857449335f0  # integers in the default dtype
    @test TT.bessel_y0(TT.ones(1; dtype=Float64)) ≈ [0.08825696421567697]
    @test TT.modified_bessel_k1(two)[] ≈ TT.scaled_modified_bessel_k1(two)[] / exp(2)
    @test TT.airy_ai(tensor(1.0))[] ≈ 0.13529241631288147
    @test TT.spherical_bessel_j0(tensor([2.0, 0.0, Inf])) ≈ [0.45464871341284085, 1, 0]
    polynomials = (TT.chebyshev_polynomial_t, TT.chebyshev_polynomial_u,
        TT.chebyshev_polynomial_v, TT.chebyshev_polynomial_w, TT.laguerre_polynomial_l,
        TT.legendre_polynomial_p, TT.shifted_chebyshev_polynomial_t)
    @test [p(two, 2)[] for p in polynomials] == [7, 15, 11, 19, -1, 5.5, 17]
    @test TT.hermite_polynomial_h(two, 3)[] == 40 && TT.hermite_polynomial_he(two, 3)[] == 2
    @test isnan(TT.hermite_polynomial_h(two, 513)[]) && TT.legendre_polynomial_p(two, -1)[] == 0
    thrown(() -> TT.bessel_j0(TT.ones(1; dtype=ComplexF32)), ArgumentError)
end

@testset "small tools" begin
    logits = TT.zeros(5, 3; requires_grad=true)
    hard = TT.gumbel_softmax(logits; tau=0.5, hard=true)
    @test sum(hard)[] == 5 && hard.requires_grad
    @test TT.sum(TT.gumbel_softmax(logits; dim=1), 1) ≈ ones(3)
    val, product = TT.hvp(x -> sum(x .^ 3), tensor([1.0, 2.0]), tensor([1.0, -1.0]))
    @test val[] == 9 && product == [6, -12]
    wide = TT.randn(2, 3, 12; dtype=Float64)  # two matrices of rank 3
    U, S, V = TT.svd_lowrank(wide; q=3, niter=1)
    @test near(TT.matmul(U .* TT.unsqueeze(S, 2), TT.adjoint(V)), Array(wide); atol=1e-9)
    line = tensor([7.6 1.8; 7.0 1.0; 4.0 -3.0])  # along (0.6, 0.8)
    @test Array(abs.(TT.pca_lowrank(line; q=1).V)) ≈ reshape([0.6, 0.8], 2, 1)
    @test_throws ArgumentError TT.pca_lowrank(line; q=3)
    packed = TT.pack_sequence([TT.ones(2, 4), TT.zeros(3, 4)])
    @test packed.batch_sizes == [2, 2, 1]
    first_one, second_one = TT.unpack_sequence(packed)
    @test first_one == ones(2, 4) && size(second_one) == (3, 4)
    conv, norm = nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3)
    x = TT.randn(4, 2, 5, 5)
    norm(conv(x) .* 3)
    TT.eval!(norm)
    both = norm(conv(x))
    conv.weight, conv.bias = TT.fuse_conv_bn_weights(conv.weight, conv.bias, norm.running_mean,
        norm.running_var, 1e-5, norm.weight, norm.bias; transposed=true)
    @test near(conv(x), Array(both); atol=1e-4)
end

@testset "batch normalisations fused with layers" begin
    for (layer, norm, dims) in [
            (nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), (3, 2, 9)),
            (nn.Conv2d(2, 4, 3; groups=2, bias=false), nn.BatchNorm2d(4; affine=false, eps=0.1),
                (3, 2, 5, 5)),
            (nn.ConvTranspose2d(2, 4, 3), nn.BatchNorm2d(4), (3, 2, 5, 5)),
            (nn.Linear(5, 4), nn.BatchNorm1d(4), (3, 5)),
            (nn.Linear(5, 4), nn.BatchNorm1d(1), (3, 1, 5))]
        is_linear = TT.module_type(layer) == "Linear"
        fuse = is_linear ? TT.fuse_linear_bn_eval : TT.fuse_conv_bn_eval
        x = TT.randn(dims...)
        norm(layer(x) .* 3 .+ 1)
        @test_throws ArgumentError fuse(layer, norm)
        TT.eval!(layer)
        TT.eval!(norm)
        fused = fuse(layer, norm)
        @test near(fused(x), Array(norm(layer(x))); atol=1e-4) && fused.weight.requires_grad
        wrong = is_linear ? TT.fuse_conv_bn_eval : TT.fuse_linear_bn_eval
        @test_throws ArgumentError wrong(layer, norm)
    end
end

@testset "linearize, stacked states" begin
    calls, w = Ref(0), TT.requires_grad!(TT.randn(2, 3))
    function f(x, z)
        calls[] += 1
        return TT.mv(w, TT.sin(x)), TT.argsort(x), TT.ones(2), x .* z, z
    end
    x, v = (TT.randn(3), TT.randn(3)), (TT.randn(3), TT.randn(3))
    results, derivative = no_grad(() -> TT.linearize(f, x...))
    products = derivative(v...)
    @test derivative(v...)[1] == products[1] && calls[] == 1
    for (y, p, t) in zip(results, products, TT.jvp(f, x, v).tangent)
        @test near(p, t === nothing ? Array(TT.zeros_like(y)) : Array(t); atol=1e-6)
        @test eltype(p) == eltype(y) && !y.requires_grad && !p.requires_grad
    end
    y, derivative_of_one = TT.linearize(sum, x[1])
    @test y == sum(x[1]) && derivative_of_one(v[1]) ≈ sum(v[1])
    @test_throws DimensionMismatch derivative(v[1])
    @test_throws DimensionMismatch derivative(v[1], TT.ones(2))

    models = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in 1:2]
    params, buffers = TT.stack_module_state(models)
    @test keys(params) == first.(TT.named_parameters(models[1]))
    @test size(buffers["1.num_batches_tracked"]) == (2,)
    @test Base.all(t -> t.requires_grad && TT.is_leaf(t), values(params))
    foreach(TT.eval!, models)
    states = [keys(params); keys(buffers)]
    rows = TT.randn(4, 3)
    both = TT.vmap((t...) -> TT.functional_call(models[1], zip(states, t), rows),
        values(params)..., values(buffers)...)
    @test near(both[2, :, :], Array(models[2](rows)); atol=1e-6)
    TT.train!(models[1])
    for wrong in (models, [], [nn.ReLU(), nn.Linear(1, 1)], [models[2], TT.eval!(nn.Sequential())])
        @test_throws ArgumentError TT.stack_module_state(wrong)
    end
end

@testset "pruning" begin
    m = twelve()
    nn.prune.l1_unstructured!(m, "weight"; amount=4)
    @test mask_of(m) == [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]
    nn.prune.l1_unstructured!(m, "weight"; amount=0.5)
    @test mask_of(m) == [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0]
    nn.prune.ln_structured!(m, "weight"; amount=1, n=2, dim=1)
    @test mask_of(m) == [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]
    @test names_of(m) == ["bias", "weight_orig", "weight_mask"]
    y = m(ONE_TO_FOUR)
    backward(sum(y))
    @test rows(m.weight_orig.grad) == [1, 0, 0, 0, 0, 2, 0, 4, 0, 0, 0, 0]
    net = nn.Sequential(m)
    @test nn.prune.is_pruned(net)
    original = m.weight_orig
    @test nn.prune.remove!(m, "weight") === m
    @test TT.same_tensor(m.weight, original)  # optimizers know it
    @test !nn.prune.is_pruned(net) && names_of(m) == ["weight", "bias"]
    @test TT.freeze!(net)(ONE_TO_FOUR) == y
    thrown(() -> nn.prune.remove!(m, "weight"), ArgumentError)

    m = twelve()
    nn.prune.ln_structured!(m, "weight"; amount=0.5, n=1, dim=-1)
    @test mask_of(m) == [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0]
    nn.prune.l1_unstructured!(m, "weight"; amount=1//2)
    @test mask_of(m) == [1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
    nn.prune.custom_from_mask!(m, "weight", tensor([0 1 1 1; 0 1 1 1; 0 1 1 1]))
    @test mask_of(m) == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]

    a, b = twelve(), twelve()
    b.weight = TT.requires_grad!(TT.detach(b.weight) ./ 2)
    nn.prune.global_unstructured!([(a, "weight"), (b, "weight")]; amount=0.5)
    @test mask_of(a) == [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]
    @test mask_of(b) == [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0]
    manual_seed(4)  # as in Python from this seed
    m = nn.prune.random_unstructured!(nn.Linear(4, 3), "weight"; amount=5)
    @test mask_of(m) == [1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0]
    nn.prune.random_structured!(m, "weight"; amount=1, dim=2)
    @test mask_of(m) == [0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0]
    m = nn.prune.identity!(twelve(), "weight")
    @test sum(mask_of(nn.prune.random_structured!(m, "weight"; amount=1, dim=2))) == 9
    thrown(() -> nn.prune.l1_unstructured!(m, "weight"; amount=1.5), ArgumentError)
    thrown(() -> nn.prune.l1_unstructured!(m, "weight"; amount=13), ArgumentError)
    thrown(() -> nn.prune.random_structured!(m, "weight"; amount=1, dim=3), ArgumentError)
end

@testset "gradients are checked" begin
    x = tensor([0.3, 1.2]; requires_grad=true)
    z = tensor([1 - 0.5im, 0.25 + 2im]; requires_grad=true)
    f(x, z) = (z .* z .* x, abs.(z))
    @test TT.gradcheck(f, x, z)
    @test TT.gradgradcheck(f, x, z)
    e = thrown(() -> TT.gradcheck(x -> x .* TT.detach(x), x), ErrorException)
    @test occursin("number 1 of x 1 is 0.3", e.msg)
    thrown(() -> TT.gradcheck(x -> x .* TT.rand_like(x), x), ErrorException)
    thrown(() -> TT.gradcheck(x -> x, TT.detach(x)), ArgumentError)
end

@testset "tools of training" begin
    net = nn.Sequential(nn.Linear(3, 3), TT.tanh, nn.Linear(3, 3), nn.Dropout(), TT.tanh)
    x = TT.rand(2, 3)
    function gradient_with(segments)
        manual_seed(5)
        TT.zero_grad!(net)
        backward(sum(TT.checkpoint_sequential(net, segments, x)))
        return Array(net[1].weight.grad)
    end
    @test gradient_with(1) == gradient_with(2) == gradient_with(5)
    thrown(() -> TT.checkpoint_sequential(net, 6, x), ArgumentError)
    p = tensor([1.0, 2]; requires_grad=true)
    backward(TT.save_on_cpu(() -> sum(p .* p)))
    @test p.grad == [2, 4]

    data = TT.Dataset(TT.arange(10))
    parts = TT.random_split(data, [2, 0, 8])
    seen = [Int(part[i][1]) for part in parts for i in 1:length(part)]
    @test seen != 0:9 && sort(seen) == 0:9
    @test length.(TT.random_split(data, [0.25, 0.75])) == [3, 7]
    @test length.(TT.random_split(data, [1//4, 3//4])) == [3, 7]
    thrown(() -> TT.random_split(data, [typemax(Int), typemax(Int), 12]), ArgumentError)
    thrown(() -> TT.random_split(data, [3, 3]), ArgumentError)
    thrown(() -> TT.random_split(data, [0.5, 0.4]), ArgumentError)

    manual_seed(1)
    expected = TT.fork_rng(() -> TT.rand(3))
    TT.fork_rng(() -> manual_seed(2))
    @test TT.rand(3) == expected

    sparse = Array(nn.init.sparse!(TT.ones(10, 4), 0.25))
    @test all(count(iszero, sparse; dims=1) .== 3) && !any(isequal(-0f0), sparse)
    total = nn.get_total_norm([tensor([3.0]), tensor([4.0])], 1; error_if_nonfinite=true)
    @test total[] == 7
    thrown(() -> nn.get_total_norm([tensor([NaN])]; error_if_nonfinite=true), DomainError)
    nn.clip_grads_with_norm!([p], 1, nn.get_total_norm([p.grad]))
    @test LinearAlgebra.norm(Array(p.grad)) ≈ 1 rtol = 1e-6
    @test nn.parameters_to_vector([tensor([1 2; 3 4]), tensor([5])]) == 1:5
    thrown(() -> nn.vector_to_parameters!(TT.ones(3), [p]), DimensionMismatch)
end
