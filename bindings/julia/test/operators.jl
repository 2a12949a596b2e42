# Operators: kinds of arguments, dims from 1, dots, errors.
a, b = Tensor([1.0 2; 3 4]), Tensor([5.0 6; 7 8])
A, B = Array(a), Array(b)

@testset "arithmetic" begin
    @test near(a + b, A + B)
    @test near(a - b, A - B)
    @test near(a * b, A * B)
    @test near(-a, -A)
    @test near(+a, A)
    @test near(a + 1, A .+ 1)
    @test near(1 - a, 1 .- A)
    @test near(2a, 2A)
    @test near(a / 2, A / 2)
    @test near(a^2, A^2)
    @test near(a^1, A)
    @test near(a^3, A^3)
    @test near(a^5, A^5)
    @test near(a', A') && near(transpose(a), A') && near(a * Tensor([1.0, 2]), A * [1, 2])
    s = Tensor(3.0)
    @test near(s * a, 3A) && near(a / s, A / 3) && (s^2)[] == 9 && (1 / s)[] ≈ 1 / 3
    @test near(a / b, A / B) && near(a \ b, A \ B) && near(inv(a), inv(A))
    thrown(() -> a \ Tensor(zeros(2, 2)) / Tensor(zeros(2, 2)), TT.LinAlgError)
    @test near(s \ a, A / 3)
    @test near(2 \ a, A / 2)
    @test near(a + LinearAlgebra.I, A + LinearAlgebra.I)
    @test near(3LinearAlgebra.I - a, 3LinearAlgebra.I - A)
    @test near(a * LinearAlgebra.I, A)
    thrown(() -> a^0.5, ArgumentError)
    @test near(add(a, b; alpha=2), A + 2B)
    @test near(sub(a, 1; alpha=3), A .- 3)
    @test near(add(2, a), A .+ 2)
    @test eltype(Tensor([1, 2]) + 0.5) == Float32
    @test eltype(Tensor([1, 2]) + 1) == Int64
    @test eltype(Tensor([1f0]) * 2.0) == Float32
    @test near(vcat(a, b), [A; B])
    @test near(hcat(a, b), [A B])
    @test near(cat(a, b; dims=1), [A; B])
    @test near(TT.stack([a, b], 3), cat(A, B; dims=3))
end

@testset "in place and out" begin
    x = tensor(A)
    @test add!(x, b) === x && near(x, A + B)
    @test near(TT.mul!(x, 0.5), (A + B) / 2)
    @test near(relu!(neg!(x)), zeros(2, 2))
    @test near(fill!(x, 3), fill(3, 2, 2))
    @test near(zero!(x), zeros(2, 2))
    @test copy!(x, b) === x && near(x, B)
    @test add(a, b; out=x) === x && near(x, A + B) && near(pow(a, 2; out=x), A .^ 2)
    values, indices = TT.zeros(2; dtype=Float64), TT.zeros(2; dtype=Int64)
    TT.max(a, 2; out=(values, indices))
    @test Array(values) == [2, 4] && Array(indices) == [1, 1]
    y = unsqueeze(a, 1)
    @test squeeze!(y) === y
    @test size(y) == (2, 2)
    @test size(TT.t!(tensor(ones(2, 3)))) == (3, 2)
    @test size(unsqueeze!(y, 3)) == (2, 2, 1)
    thrown(() -> TT.sum(a; out=x), ArgumentError)
    thrown(() -> add(a, b; out=TT.zeros(3)), TT.Error)
end

@testset "dims count from 1" begin
    t = Tensor(reshape(Float64.(1:24), 2, 3, 4))
    T = Array(t)
    drop(x; dims) = dropdims(x; dims=dims)
    for d in 1:3
        @test near(TT.sum(t, d), drop(sum(T; dims=d); dims=d))
        @test near(TT.sum(t; dim=d, keepdim=true), sum(T; dims=d))
        @test near(TT.mean(t, d - 4), drop(Statistics.mean(T; dims=d); dims=d))
        @test near(softmax(t, d), exp.(T) ./ sum(exp.(T); dims=d))
        @test near(TT.cumsum(t, d), cumsum(T; dims=d))
        @test size(unsqueeze(t, d), d) == 1
        @test near(TT.max(t, d).values, drop(maximum(T; dims=d); dims=d))
    end
    @test near(TT.sum(t, (1, 3)), drop(sum(T; dims=(1, 3)); dims=(1, 3)))
    @test near(TT.sum(t, [1, 2]), sum(T; dims=(1, 2))[1, 1, :])
    @test sum(t)[] == 300
    @test size(permute(t, 3, 1, 2)) == size(permute(t, (3, 1, 2))) == (4, 2, 3)
    @test near(permute(t, 2, 1, 3), permutedims(T, (2, 1, 3)))
    @test near(flip(t, 2), reverse(T; dims=2))
    @test size(TT.transpose(t, 1, 3)) == (4, 3, 2)
    @test near(select(t, 2, 3), T[:, 3, :])
    @test near(select(t, 2, -1), T[:, 3, :])
    @test near(narrow(t, 3, 2, 2), T[:, :, 2:3])
    @test near(index_select(t, 2, Tensor([0, 2])), T[:, [1, 3], :])
    @test size.(TT.split(t, 3, 3)) == [(2, 3, 3), (2, 3, 1)]
    @test size(flatten(t)) == (24,)
    @test size(flatten(t; start_dim=2)) == (2, 12)
    @test size(TT.reshape(t, 6, -1)) == (6, 4)
    @test size(TT.reshape(t, :)) == (24,)
    @test size(TT.reshape(t, :, 4)) == (6, 4)
    @test size(TT.view(tensor(T), 24)) == (24,)
    @test near(diagonal(t[:, :, 1]), [T[1, 1, 1], T[2, 2, 1]])
    @test Array(TT.argmax(t; dim=3)) == fill(3, 2, 3)
    @test length(unbind(t)) == 2
    @test length(chunk(t, 2, 3)) == 2
    thrown(() -> TT.sum(t, 0), ArgumentError)
    @test occursin("count from 0",
        sprint(showerror, thrown(() -> TT.sum(t, 4), TT.OutOfRangeError)))
    thrown(() -> softmax(t), UndefKeywordError)
end

@testset "forms and options" begin
    @test TT.max(a)[] == 4
    @test near(TT.max(a, b), max.(A, B))
    @test near(TT.maximum(a, b), B)
    @test maximum(a)[] == 4
    @test minimum(a)[] == 1
    @test near(TT.clamp(a, 2, 3), clamp.(A, 2, 3))
    @test near(TT.clamp(a; max=2), min.(A, 2))
    @test near(TT.clamp(a, Tensor([2.0])), max.(A, 2))
    @test near(where(a .> 2, a, 0.0), (A .> 2) .* A)
    @test near(pow(2, a), 2 .^ A)
    @test near(TT.div(a, b; rounding_mode="floor"), A .÷ B)
    @test near(gelu(a; approximate="tanh"), Array(gelu(a)); atol=1e-3)
    @test near(gelu(a; approximate=:none), Array(gelu(a)))
    @test Statistics.var(a)[] ≈ Statistics.var(A)
    @test LinearAlgebra.norm(a)[] ≈ LinearAlgebra.norm(A)
    @test LinearAlgebra.norm(a, 1)[] ≈ 10
    @test TT.norm(a, 1)[] ≈ 10
    @test near(mse_loss(a, b), 16)
    @test near(mse_loss(a, b; reduction="sum"), 64)
    @test near(mse_loss(a, b; reduction="none"), fill(16, 2, 2))
    x = tensor(ones(1, 1, 4, 4))
    @test size(conv2d(x, tensor(ones(2, 1, 3, 3)))) == (1, 2, 2, 2)
    @test size(conv2d(x, tensor(ones(2, 1, 3, 3)); padding="same", bias=tensor([1.0, 2]))) ==
        (1, 2, 4, 4)
    @test size(max_pool2d(x, 2)) == (1, 1, 2, 2)
    @test size(interpolate(x; scale_factor=2.0)) == (1, 1, 8, 8)
    @test size(pad(x, (1, 1))) == (1, 1, 4, 6)
    @test near(einsum("ij,jk->ik", [a, b]), A * B)
    @test near(linear(a, b), A * B')
    @test near(TT.tril(a, -1), [0 0; 3 0])
    @test near(LinearAlgebra.tril(a, -1), [0 0; 3 0])
    values, indices = TT.sort(Tensor([3.0, 1, 2]))
    @test Array(values) == 1:3 && Array(indices) == [1, 2, 0] && Array(topk(a, 1).values) == [2 4]'
    @test Array(TT.unique(Tensor([2, 1, 2])).values) == [1, 2]
    @test TT.any(a .> 3)[]
    @test Array(TT.isnan(a)) == falses(2, 2)
    @test near(cross_entropy(a, Tensor([0, 1])),
        Statistics.mean([log(1 + exp(1)), log(1 + exp(-1))]))
    @test near(embedding(Tensor([1, 0]), a), A[[2, 1], :])
    @test near(dropout(a, 0.0), A)
    @test size(repeat(a, 2, 1)) == (4, 2)
    @test size(expand(Tensor([1 2]), 3, 2)) == (3, 2)
    @test near(TT.roll(a, 1; dims=1), A[[2, 1], :])
    @test Array(to(a; dtype=Int32)) == A && is_contiguous(clone(a; memory_format=:contiguous))
    for f in (:exp, :log, :sqrt, :sin, :cos, :tanh, :abs, :sign, :floor, :ceil, :round, :log1p,
        :expm1)
        @test near(getproperty(TT, f)(a / 5), getproperty(Base, f).(A / 5))
    end
end

@testset "a first argument that may be left out" begin
    @test Array(TT.arange(3)) == [0, 1, 2] == Array(TT.arange(stop=3))
    @test Array(TT.arange(1, 7, 3)) == [1, 4]
    @test Array(TT.randint(1, (2, 3))) == zeros(2, 3) == Array(TT.randint(0, 1, (2, 3)))
    @test Array(TT.randint(high=1, size=(2, 3); dtype=Float32)) == zeros(2, 3)
    @test Array(TT.randint_like(TT.ones(2), 1)) == [0, 0]
end

@testset "dots" begin
    i = Tensor([1 2; 3 4])
    @test near(sin.(a) .+ 2 .* b .^ 2 ./ (1 .+ a), sin.(A) .+ 2 .* B .^ 2 ./ (1 .+ A))
    @test near(a .* b, A .* B)
    @test near(2 .^ a, 2 .^ A)
    @test near(6 ./ a, 6 ./ A)
    @test near(a .+ [10, 20], A .+ [10 20])
    @test near(a .- (1:2)', A .- (1:2)')
    @test near(relu.(a .- 2), max.(A .- 2, 0))
    @test near(max.(a, 2), max.(A, 2))
    @test near(b .÷ a, B .÷ A)
    @test near(b .% 4, B .% 4)
    @test near(mod.(-b, 4), mod.(-B, 4))
    @test near(fld.(b, 4), fld.(B, 4))
    @test near(a .\ b, A .\ B)
    @test near(inv.(a), 1 ./ A)
    @test Array(a .== 2) == (A .== 2)
    @test Array(a .!= b) == (A .!= B)
    @test Array(2 .< a) == (2 .< A)
    @test Array(a .<= 2) == (A .<= 2)
    @test Array(3 .>= a) == (3 .>= A)
    @test Array((a .> 1) .& (a .< 4)) == ((A .> 1) .& (A .< 4))
    @test Array(.!(a .> 1)) == .!(A .> 1)
    @test Array(i .| 4) == (Array(i) .| 4)
    @test Array(i .⊻ 1) == xor.(Array(i), 1)
    @test Array(i .<< 1) == Array(i) .<< 1
    @test Array(.~i) == .~Array(i)
    @test near(ifelse.(a .> 2, a, b), ifelse.(A .> 2, A, B))
    @test near(abs2.(a), A .^ 2)
    @test eltype(Float32.(a)) == Float32
    @test near(+(a, b) .+ a .+ b, 2A + 2B)
    @test near(atan.(a, b), atan.(A, B))
    @test near(atan.(a, 2), atan.(A, 2))
    @test near(atan.(2, a), atan.(2, A))
    @test near(identity.(a), A)
    x = identity.(identity.(a)) .+ (+).(a) .* 1
    same = identity.(a)
    fill!(same, 0)
    @test near(x, 2A) && near(a, A)
    @test near(max.(a, 2, 3), max.(A, 2, 3))
    @test near(min.(a, 3, 2), min.(A, 2))
    @test near(a .+ (10, 20), A .+ [10 20])
    x = tensor(A)
    x .+= 1
    @test near(x, A .+ 1)
    x .= 2 .* a .+ x
    @test near(x, 3A .+ 1)
    x .= 5
    x[1, :] .= 0
    @test near(x, [0 0; 5 5])
    y = zeros(2, 2)
    y .= a
    y .+= a .* 2
    @test y == 3A
    typed(x) .= tensor([1.0, 2])  # along the last dim
    @test near(x, [1 2; 1 2])
    view(y, :, 1) .= a[:, 2]
    @test y == [2 6; 4 12]
    thrown(() -> y .= TT.ones(3), TT.Error)
    thrown(() -> sum.(a), ArgumentError)
end

own(x) = x > 2 ? x : zero(x)
smooth(x; slope=0.5) = ifelse.(x > 2, x, slope * x)
kept = Tensor[]
remembered(x) = (y = x .* 1; push!(kept, y.values); y)

@testset "user-defined functions in dots" begin
    f(x) = exp(-x^2) / (1 + abs(x)) - max(x, 2) % 3
    g(x, y) = muladd(x, y, 1) + clamp(x, 1, 2) ^ 2 - 2 ^ x + inv(y) * one(x)
    @test near(f.(a), f.(A))
    @test near(map(f, a), f.(A))
    @test near(g.(a, b), g.(A, B))
    @test near(g.(a, 2), g.(A, 2))
    @test near(g.(2, a), g.(2, A))
    @test near((v -> v + 1).(a), A .+ 1)
    @test near((x -> 3.0).(a), fill(3, 2, 2))
    @test near(smooth.(a), smooth.(A))
    @test near(smooth.(a; slope=0.1), smooth.(A; slope=0.1))
    @test near(gelu.(a; approximate="tanh"), Array(gelu(a; approximate="tanh")))
    @test near((x -> relu(x - 2)).(a), max.(A .- 2, 0))
    @test any(x -> x > 3, a)
    @test !all(x -> x > 3, a)
    @test count(x -> x > 1, a) == 3
    @test near(sum(x -> x^2, a), 30)
    x = tensor(A; requires_grad=true)
    backward(sum((v -> v^3 + 2v).(x)))
    @test near(x.grad, 3A .^ 2 .+ 2)
    y = remembered.(a) .+ 1  # what a function keeps is not freed
    @test near(kept[1], A) && near(y, A .+ 1)
    e = thrown(() -> own.(a), ArgumentError)
    @test occursin("own. of a Tensor: it decides by one element", e.msg)
    third(x) = cbrt(x)
    @test occursin("third. of a Tensor: cbrt has no elementwise form",
        thrown(() -> third.(a), ArgumentError).msg)
    @test occursin("it returns a String", thrown(() -> string.(a), ArgumentError).msg)
    thrown(() -> (x -> error("mine")).(a), ErrorException)
    thrown(() -> (x -> [1][2]).(a), BoundsError)
end

@testset "errors" begin
    e = thrown(() -> a * Tensor(ones(3, 3)), TT.ShapeError)
    @test e.op == "matmul"
    @test e.code == TT.C.TT_SHAPE
    @test e.shapes == [[2, 2], [3, 3]]
    @test occursin("must equal", e.message)
    @test e.cause === nothing
    @test occursin("TT.ShapeError: matmul", sprint(showerror, e))
    @test thrown(() -> bitwise_and(a, a), TT.UnimplementedError).dtypes == [Float64]
    thrown(() -> TT.mean(Tensor([1, 2])), TT.Error)
    thrown(() -> tanh(a), ArgumentError)
    thrown(() -> max(a, 1), ArgumentError)
    @test max(Tensor(1.0), 2)[] == 2 && isnan(Tensor(NaN)) && exp(Tensor(0.0))[] == 1
    thrown(() -> add(a, "x"), MethodError)
    thrown(() -> relu([1.0]), MethodError)
    thrown(() -> relu(a; inplace=true), MethodError)
    thrown(() -> TT.sum(a; dim="x"), TypeError)
    thrown(() -> sum(a; dims="x"), TypeError)
    thrown(() -> mse_loss(a, b; reduction="most"), ArgumentError)
    thrown(() -> TT.max(a, 1, 2, 3), MethodError)
    thrown(() -> TT.max(a, b; keepdim=true), ArgumentError)
    thrown(() -> a .+ Tensor(ones(3)), TT.ShapeError)
    x = tensor([1.0])
    free!(x)
    free!(x)
    e = thrown(() -> x + x, TT.HandleError)
    @test occursin("freed", e.message) && string(x) == "Tensor(freed)"
    thrown(() -> linear(a, b, x), TT.HandleError)
    thrown(() -> size(x), TT.HandleError)
    thrown(() -> TT.stack([a, x]), TT.HandleError)
end
