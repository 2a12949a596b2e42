# What a Tensor has in common with Julia's arrays.
A = Float64[1 2 3; 4 5 6]
a, v, i, s = tensor(A), tensor([3.0, 1, 2]), tensor([1 2; 3 4]), Tensor(3.0)

@testset "dims=" begin
    T = reshape(Float64.(1:24), 2, 3, 4) ./ 10
    t = tensor(T)
    reductions = (sum, prod, Statistics.mean, maximum, minimum, Statistics.var, Statistics.std)
    for f in reductions, d in 1:3
        @test near(f(t; dims=d), f(T; dims=d)) && f(t; dims=:) ≈ f(T) && f(t) ≈ f(T)
    end
    for f in (sum, Statistics.mean, maximum, minimum, Statistics.var, Statistics.std)
        @test near(f(t; dims=(1, 3)), f(T; dims=(1, 3))) && near(f(t; dims=[2]), f(T; dims=2))
    end
    for f in (cumsum, cumprod), d in 1:3
        @test near(f(t; dims=d), f(T; dims=d)) && near(f(v), f(Array(v)))
    end
    @test Array(any(t .> 2; dims=1)) == any(T .> 2; dims=1)
    @test Array(all(t .> 1; dims=(1, 2))) == all(T .> 1; dims=(1, 2))
    @test near(Statistics.std(t; dims=2, corrected=false),
        Statistics.std(T; dims=2, corrected=false))
    @test near(TT.sum(t, 2), dropdims(sum(T; dims=2); dims=2))
    @test near(softmax(a; dims=1), exp.(A) ./ sum(exp.(A); dims=1))
    @test size(TT.norm(t; dims=1)) == (1, 3, 4)
    @test argmax(a; dims=2) == argmax(A; dims=2)
    @test argmax(a) == argmax(A)
    @test argmin(v) == 2
    @test Array(TT.argmax(a; dims=2)) == fill(2, 2, 1)
    @test near(sort(v; rev=true), [3, 2, 1])
    @test near(sort(a; dims=1, rev=true), A[[2, 1], :])
    @test TT.max(a; dims=1).values ≈ A[2:2, :]
    @test sortperm(v) == [2, 3, 1]
    @test sort!(copy(v)) == [1, 2, 3]
    @test unique(tensor([3, 1, 3])) == [3, 1]
    @test prod(t; dims=(1, 2)) ≈ prod(T; dims=(1, 2))
    @test sum(abs2, a) ≈ sum(abs2, A)
    @test near(sum(exp, a; dims=1), sum(exp, A; dims=1))
    @test any(isnan, a) == false
    @test Statistics.mean(sqrt, v) ≈ Statistics.mean(sqrt, Array(v))
    x = tensor(A; requires_grad=true)
    backward(sum(abs2, maximum(x; dims=2)))
    @test near(x.grad, [0 0 6; 0 0 12])
    x.grad = nothing
    backward(sum(x -> x^2 + 1, x))
    @test near(x.grad, 2A)
    any(a .> 5) && all(a .> 0) && isnan(sum(a)) == false && maximum(a) > 5 && first(a) < 2 ||
        error("a condition")
    thrown(() -> any(a), TypeError)
    thrown(() -> sum(a; dims=0), ArgumentError)
    thrown(() -> TT.max(a, a; dims=1), ArgumentError)
    out = zero(a)
    @test cumsum!(out, a; dims=1) === out
    @test out == cumsum(A; dims=1)
    @test cumprod!(similar(v), v) == [3, 3, 6]
    @test TT.cumsum!(copy(v)) == [3, 4, 6]
    @test tensor(BFloat16.([1, 2])) ≈ [1, 2]
    @test eltype(float.(i)) == Float32
    @test eltype(float.(a)) == Float64
    thrown(() -> cumsum(a; dims=:), TypeError)
    thrown(() -> TT.prod(a; dims=(1, 2)), ArgumentError)
    thrown(() -> cumsum(a), UndefKeywordError)
end

@testset "values" begin
    @test [x for x in v] == [3, 1, 2]
    @test collect(a) == A
    @test [2x for x in a] == 2A
    @test first(v) === 3.0
    @test last(v) === 2.0
    @test 2 in v
    @test !(7 in v)
    @test eltype([x for x in i]) == Int
    @test (i...,) == (1, 3, 2, 4)
    @test collect(enumerate(v)) == [(1, 3.0), (2, 1.0), (3, 2.0)]
    p, q, r = v
    @test (p, q, r) === (3.0, 1.0, 2.0)
    @test isempty([x for x in TT.zeros(0)])
    @test [x for x in s] == fill(3.0)
    @test count(a .> 2) == 4
    @test count(>(2), a) == 4
    @test findall(a .> 4) == findall(A .> 4)
    @test findfirst(==(2), v) == 3
    @test findmax(a) == findmax(A)
    @test extrema(v) == (1, 3)
    @test eachindex(v) == 1:3
    @test eachindex(a) == CartesianIndices((2, 3))
    @test all(k -> a[k] == A[k], eachindex(a))
    @test a == A
    @test A == a
    @test a != A .+ 1
    @test s == 3
    @test 3 == s
    @test a[1, 1] != 2
    @test a ≈ A
    @test a ≈ a .+ 1e-12
    @test !(a ≈ A .+ 1)
    @test s ≈ 3
    @test a == copy(a)
    @test s < 4
    @test s > 2
    @test s <= 3
    @test 3 >= s
    @test s < Tensor(4)
    @test !(Tensor(NaN) < 1)
    @test sort([s, Tensor(1.0)])[1] == 1
    thrown(() -> a < 4, TT.Error)
    losses = Float64[]
    push!(losses, sum(a))
    @test losses == [21]
    @test Float32[s, 1] == [3, 1]
    @test Float32(s) === 3f0
    @test Int32(s) === Int32(3)
    @test ComplexF64(s) === 3.0 + 0im
    @test convert(Float64, s) === 3.0
    @test float(s) === 3.0
    @test Matrix(a) == A
    @test Vector(v) == [3, 1, 2]
    @test Array{Float32}(a) isa Matrix{Float32}
    @test Matrix{Int}(a) == A
    @test convert(Array, a) == A
    @test convert(Vector{Float32}, v) isa Vector{Float32}
    @test convert(Tensor, A) == A && Tensor[A, a][1] == A
    thrown(() -> Vector(a), TypeError)
    thrown(() -> Int(Tensor(2.5)), InexactError)
    thrown(() -> first(TT.zeros(2; device="meta")), ArgumentError)
end

@testset "making and filling" begin
    like(t, T, n) = eltype(t) == T && size(t) == n
    @test like(similar(a), Float64, (2, 3))
    @test like(similar(a, Int32), Int32, (2, 3))
    @test like(similar(a, (4,)), Float64, (4,))
    @test like(similar(a, 4, 5), Float64, (4, 5))
    @test like(similar(a, Bool, 2, 2), Bool, (2, 2))
    @test like(similar(a, Bool, (1,)), Bool, (1,))
    @test like(similar(a, ()), Float64, ())
    @test string(similar(TT.zeros(2; device="meta")).device) == "Device(\"meta\")"
    @test like(TT.zeros(Float64, 2, 3), Float64, (2, 3))
    @test like(TT.ones(Int64, (2,)), Int64, (2,))
    @test like(TT.rand(Float64, 2; requires_grad=true), Float64, (2,))
    @test like(TT.randn(Float64), Float64, ())
    @test zero(a) == zeros(2, 3) && one(i) == [1 0; 0 1] && eltype(one(i)) == Int && one(s) == 1
    thrown(() -> one(a), DimensionMismatch)
    b, B = similar(a), similar(A)
    @test copyto!(b, A) === b
    @test b == A
    @test copyto!(B, a) === B
    @test B == A
    @test copyto!(b, a .+ 1) == A .+ 1
    @test copy!(b, A) == A
    @test fill!(b, 2) == fill(2, 2, 3)
    TT.manual_seed(1)
    Random.rand!(b)
    @test all(x -> 0 <= x < 1, collect(b)) && b != 2 && !(Random.randn!(b) == zeros(2, 3))
    @test eltype(tensor((1.0, 2))) == Float64
    @test tensor(Any[1, 2]) == [1, 2]
    @test eltype(tensor(Real[1, 2.5f0])) == Float32
    @test eltype(tensor(UInt16[1]; dtype=Int32)) == Int32
    thrown(() -> tensor(Int128[1]), ArgumentError)
    thrown(() -> tensor([[1.0], [2.0]]), ArgumentError)
    g = TT.Generator(1)
    x = TT.rand(3; generator=g)
    @test Array(TT.rand(3; generator=Random.seed!(g, 1))) == Array(x)
end

@testset "shapes" begin
    T = reshape(Float64.(1:24), 2, 3, 4)
    t = tensor(T)
    @test map(Array, eachslice(t; dims=2)) == [T[:, k, :] for k in 1:3]
    @test sum(map(Array, eachrow(a))) == vec(sum(A; dims=1))
    @test length(collect(eachcol(a))) == 3
    @test selectdim(t, 2, 1) == T[:, 1, :]
    @test selectdim(t, 3, 2:3) == T[:, :, 2:3]
    @test dropdims(sum(t; dims=(1, 3)); dims=(1, 3)) == dropdims(sum(T; dims=(1, 3)); dims=(1, 3))
    thrown(() -> dropdims(t; dims=1), ArgumentError)
    p = permutedims(t, (3, 1, 2))
    @test p == permutedims(T, (3, 1, 2))
    @test !TT.same_storage(p, t)
    @test is_contiguous(p)
    @test permutedims(a) == A'
    @test permutedims(v) == [3 1 2]
    @test size(permute(t, (3, 1, 2))) == size(p)
    fill!(permutedims(v), 0)
    @test v == [3, 1, 2]  # a copy, as of arrays
    @test reverse(a) == A[2:-1:1, 3:-1:1]
    @test reverse(t; dims=3) == reverse(T; dims=3)
    @test circshift(v, 1) == [2, 3, 1]
    @test circshift(a, (1, 2)) == circshift(A, (1, 2))
    @test stride(a, 1) == 3
    @test [a; a] == [A; A]
    @test [a a] == [A A]
    @test [a a; a a] == [A A; A A]
    @test hcat(v, v) == [3 3; 1 1; 2 2]
    @test [v v; i[1:1, :]] == [3 3; 1 1; 2 2; 1 2]
    @test cat(a, a; dims=3) == cat(A, A; dims=3)
    @test vcat(s, s) == [3, 3] && reduce(vcat, [v, v]) == [3, 1, 2, 3, 1, 2]
    @test TT.reshape(a, 3, :) == [1 2; 3 4; 5 6]
    @test reshape(a, 3, :) == reshape(A, 3, :)
    @test reshape(t, 4, :, 2) == reshape(T, 4, :, 2)
    @test vec(t) == vec(T)
    @test t[:] == vec(T)
    @test repeat(a, 2) == repeat(A, 2)
    @test repeat(v, 1, 2) == repeat([3.0, 1, 2], 1, 2)
    @test a' == A'
    @test v' == [3 1 2]
end

@testset "linear algebra, dots" begin
    @test LinearAlgebra.tr(i) == 5
    @test LinearAlgebra.diag(i) == [1, 4]
    @test LinearAlgebra.diag(i, 1) == [2]
    @test LinearAlgebra.norm(LinearAlgebra.normalize(v)) ≈ 1
    @test LinearAlgebra.dot(v, v) == 14
    c = similar(a, 2, 2)
    @test LinearAlgebra.mul!(c, a, a') === c
    @test c == A * A'
    @test a * A' == A * A'
    @test A * a' == A * A'
    @test a + A == 2A
    @test A - a == 0A
    @test a * [1.0, 1, 1] == [6, 15]
    @test map(abs, -a) == A
    @test map(+, a, a) == 2A
    @test (-a .|> abs) == A
    @test round.(Int, a ./ 2) == round.(Int, A ./ 2)
    @test eltype(floor.(Int32, a)) == Int32
    @test near(round.(a ./ 3; digits=1), round.(A ./ 3; digits=1))
    @test near(leaky_relu.(-a; negative_slope=0.5), -A ./ 2)
    @test near(TT.clamp.(a .* 2; max=4), min.(2A, 4))
    @test occursin("reverse has no", thrown(() -> reverse.(a; dims=1), ArgumentError).msg)
    w = tensor([1.0, 2])
    @test w * w' == [1 2; 2 4]
    @test w * w[1:1]' == reshape([1, 2], 2, 1)
    @test w' * w == [5]
    @test near(muladd.(w, 2, 1), [3, 5])
    @test 2 ^ Tensor(3.0) == 8
    thrown(() -> 2 ^ a, ArgumentError)
end

@testset "shown in containers" begin
    @test summary(a) == "2×3 Tensor of Float64"
    @test occursin("2×3 Tensor of Float64  3-element Tensor of Float64",
        repr("text/plain", reshape([a, v], 1, 2)))
    @test repr("text/plain", v) == "tensor([3., 1., 2.], dtype=float64)"
    @test repr((x = v,)) == "(x = tensor([3., 1., 2.], dtype=float64),)"
end

@testset "objects are shown" begin
    m = nn.Linear(2, 1)
    opt = optim.SGD(parameters(m); lr=0.5)
    said(x) = repr(x)
    @test said(opt) == "Optimizer(2 parameters, lr = 0.5)"
    @test said(opt.param_groups) == "TT.ParamGroup[ParamGroup(2 parameters, lr = 0.5)]"
    @test said(optim.StepLR(opt, 3)) == "Scheduler(last_epoch = 0, lr = 0.5)"
    @test said(TT.Generator(3)) == "Generator(seed = 3, offset = 0)"
    @test said(TT.CancelToken()) == "CancelToken()"
    @test said(state_dict(m)) == "StateDict(weight, bias)"
    @test said((v .* 1).grad_fn) == "nothing"
    @test said((requires_grad!(copy(v)) .* 1).grad_fn) == "<mul node>"
    free!(m)
    @test said(m) == "Module(freed)"
    @test !occursin("count from 0",
        sprint(showerror, thrown(() -> nn.Linear(1, 1).fc1, TT.OutOfRangeError)))
end

@testset "serialized" begin
    io = IOBuffer()
    Serialization.serialize(io, (x = a, list = [v, requires_grad!(tensor([1.0]))]))
    back = Serialization.deserialize(seekstart(io))
    @test back.x == A
    @test eltype(back.x) == Float64
    @test back.list[1] == [3, 1, 2]
    @test back.list[2].requires_grad
    thrown(() -> Serialization.serialize(io, nn.Linear(1, 1)), ArgumentError)
end

@testset "equality" begin
    values = Any[
        s, Tensor(3), 3, 3.0, fill(3.0), tensor([3.0]), [3.0], tensor([3f0]), a, A,
        tensor(Int.(A)), copy(a), Tensor(NaN), NaN, tensor([NaN]), [NaN], Tensor(-0.0), -0.0, 0.0,
        tensor(BFloat16.([3])), TT.zeros(1, 1), zeros(1, 1), true, Tensor(true), 1, 2^53 + 1,
        Tensor(2^53 + 1), 2.0^53,
    ]
    hashes = map(hash, values)
    for same in (==, isequal)
        table = [same(x, y) for x in values, y in values]
        @test table == table'
        for j in eachindex(values), i in findall(table[:, j])  # transitive: equal ones equal alike
            @test table[i, :] == table[j, :]
            @test same !== isequal || hashes[i] == hashes[j]
        end
    end
    @test a == copy(a)
    @test isequal(Tensor(NaN), NaN)
    @test Dict(a => 1)[copy(a)] == 1
    @test unique([v, copy(v), s]) == [v, s]
    @test !(s == fill(3.0))
    @test in(v, [a, v])
end

@testset "matrices" begin
    A, B = [4.0 1 0; 2 3 1; 0 1 5], [1.0 2; 3 4; 5 6]
    a, b = tensor(A), tensor(B)
    for f in (LinearAlgebra.det, LinearAlgebra.logdet, LinearAlgebra.cond, LinearAlgebra.rank,
              LinearAlgebra.svdvals, LinearAlgebra.pinv, LinearAlgebra.tr, inv, exp)
        @test TT.plain_value(f(a)) ≈ f(A)
    end
    of_tensor = map(TT.plain_value, LinearAlgebra.logabsdet(a))
    @test collect(of_tensor) ≈ collect(LinearAlgebra.logabsdet(A))
    @test Array(a \ b) ≈ A \ B && Array(b \ a) ≈ B \ A && Array(transpose(b) / a) ≈ B' / A
    for p in (-2, -1, 0, 1, 3)
        @test Array(a ^ p) ≈ A ^ p
    end
    @test Array(LinearAlgebra.kron(a, b)) ≈ LinearAlgebra.kron(A, B)
    @test Array(LinearAlgebra.cross(a[1, :], a[2, :])) ≈ LinearAlgebra.cross(A[1, :], A[2, :])
    of_det, = TT.gradient(LinearAlgebra.det, A)
    @test of_det ≈ LinearAlgebra.det(A) * inv(A)'
    thrown(() -> inv(b), TT.ShapeError)
    thrown(() -> a ^ 0.5, ArgumentError)
end

@testset "factors" begin
    LA = LinearAlgebra
    A, S, B = [4.0 1 0; 2 3 1; 0 1 5], [4.0 1 0; 1 3 1; 0 1 5], [1.0 2; 3 4; 5 6]
    a, s, b = tensor(A), tensor(S), tensor(B)
    U, sigma, V = LA.svd(b)
    @test Array(U) * LA.Diagonal(Array(sigma)) * Array(V)' ≈ B
    @test Array(LA.svd(b).S) ≈ LA.svd(B).S && size(LA.svd(b; full=true).U) == (3, 3)
    for x in (A, S, [0.0 1; -1 0], [1 2im; -2im 3.0])
        values, vectors = LA.eigen(tensor(x))
        @test Array(values) ≈ LA.eigen(x).values && eltype(values) === eltype(LA.eigen(x).values)
        @test x * Array(vectors) ≈ Array(vectors) * LA.Diagonal(Array(values))
        @test Array(LA.eigvals(tensor(x))) ≈ LA.eigvals(x)
    end
    @test LA.eigmax(s)[] ≈ LA.eigmax(S) && LA.eigmin(s)[] ≈ LA.eigmin(S)
    @test_throws DomainError LA.eigmax(tensor([0.0 1; -1 0]))
    Q, R = LA.qr(b)
    @test Array(Q) * Array(R) ≈ B && Array(LA.qr(b) \ a[:, 1]) ≈ LA.qr(B) \ A[:, 1]
    L, U, p = LA.lu(a)
    @test Array(L) * Array(U) ≈ A[p, :]
    @test p == LA.lu(A).p
    @test Array(LA.lu(a).P) == LA.lu(A).P
    for (f, F) in ((LA.lu(a), LA.lu(A)), (LA.cholesky(s), LA.cholesky(S)))
        @test Array(f \ b) ≈ F \ B && Array(f \ B[:, 1]) ≈ F \ B[:, 1]
        @test LA.det(f)[] ≈ LA.det(F)
        @test Array(LA.inv(f)) ≈ LA.inv(F)
        @test LA.issuccess(f)
    end
    @test Array(LA.cholesky(s).U) ≈ LA.cholesky(S).U && LA.logdet(LA.cholesky(s))[] ≈ LA.logdet(S)
    @test LA.isposdef(s)
    @test !LA.isposdef(-s)
    @test !LA.isposdef(a)
    @test_throws LA.PosDefException LA.cholesky(-s)
    @test_throws LA.PosDefException LA.cholesky(a)
    @test_throws LA.SingularException LA.lu(tensor([1.0 2; 2 4]))
    @test !LA.issuccess(LA.lu(tensor([1.0 2; 2 4]); check=false))
    of_values, = TT.gradient(x -> sum(LA.svd(x).S), B)
    @test of_values ≈ LA.svd(B).U * LA.svd(B).Vt
    of_det, = TT.gradient(x -> LA.det(LA.lu(x)), A)
    @test of_det ≈ LA.det(A) * LA.inv(A)'
end

@testset "as arrays" begin
    S, w, n, c = [4.0 1 0; 1 3 1; 0 1 5], [3.0, 1, 2], [1 2; 3 4], ComplexF64[1 + 2im, 3 - 1im]
    as_array(x) = x isa Tensor ? TT.plain_value(x) : x
    like(f, arrays...) =
        @test as_array(f(map(tensor, arrays)...)) ≈ f(map(copy, arrays)...)
    # reductions, with dims and init
    for op in (+, *, max, min)
        like(x -> reduce(op, x), A)
        like(x -> reduce(op, x; dims=1), A)
        like(x -> mapreduce(abs2, op, x; dims=2, init=1.0), A)
    end
    like(x -> reduce(|, x; dims=1), A .> 4)
    like(x -> mapreduce(abs, (p, q) -> p + 2q, x; dims=1, init=0.0), A)
    @test sum(a; dims=1, init=1) == [6 8 10] && maximum(a; init=9) == 9
    @test minimum(a; dims=2, init=2) == reshape([1, 2], 2, 1) && prod(a; init=2) == 1440
    x = tensor(A; requires_grad=true)
    backward(sum(mapreduce(abs2, +, x; dims=1)))
    @test near(x.grad, 2A)
    for f in (Statistics.mean, Statistics.var, Statistics.std, Statistics.median)
        like(f, n)
        like(x -> f(x; dims=1), n)
    end
    like(Statistics.mean, w .> 1)
    like(x -> Statistics.cov(x; dims=2), S)
    like(Statistics.cor, S)
    like(Statistics.cov, w, w .^ 2)
    like(Statistics.cor, w, w .^ 2)
    # order
    like(x -> sort(x; by=v -> -v), w)
    like(x -> sort(x; lt=(>)), w)
    like(x -> reverse!(x), w)
    like(x -> permute!(x, [2, 3, 1]), w)
    like(x -> filter(>(1), x), w)
    like(x -> diff(x), w)
    like(x -> diff(x; dims=1), A)
    @test reverse(a; dims=:) == A[2:-1:1, 3:-1:1]
    # copies
    like(x -> copyto!(x, [9.0]), w)
    like(x -> copyto!(x, 1.0:6), A)
    thrown(() -> copyto!(tensor(w), 1.0:4), BoundsError)
    thrown(() -> copy!(tensor(A), [1.0 2 3]), ArgumentError)
    @test [2x for x in a] == 2A
    @test CartesianIndices(a) == CartesianIndices(A) && LinearIndices(a) == LinearIndices(A)
    # numbers
    for f in (real, imag, conj, float, complex, isreal)
        like(f, c)
        like(f, w)
    end
    like(float, n)
    @test real.(tensor(c)) == [1, 3] && imag.(tensor(c)) == [2, -1]
    @test angle.(tensor(c)) ≈ angle.(c)
    for f in (x -> hypot.(x, 2), x -> log.(2, x), x -> exp10.(x), x -> deg2rad.(x), x -> cld.(x, 2),
              x -> fma.(x, 2.0, 1.0), x -> isinteger.(x ./ 2), x -> complex.(x, x))
        like(f, w)
    end
    like(x -> isodd.(x) .+ 2 .* iseven.(x), n)
    @test round(Int, Tensor(2.7)) === 3 && floor(Int, s) === 3
    # arrays and numbers beside tensors
    for f in (x -> [x; 5.0], x -> [5.0; x], x -> [1.0; 2.0; x], x -> [x w], x -> [w x],
              x -> [w w x], x -> [w; x; w], x -> hcat(x, w, x))
        like(f, w)
        @test f(tensor(w)) isa Tensor
    end
    like(x -> [A; x], A)
    like(x -> [x [1.0; 2]; 1 2 3 4], A)
    like(x -> [1 2 3; x], A)
    like(x -> [1 2 3 4; x [1.0; 2]], A)
    like(x -> [x x; x x], A)
    like(x -> cat(A, x; dims=3), A)
    like(x -> reduce(hcat, [x, x, x]), w)
    like(x -> repeat(x; inner=2), w)
    like(x -> repeat(x; inner=(1, 2), outer=(2, 1)), A)
    # matrices
    like(x -> LinearAlgebra.dot(x, x), c)
    like(x -> LinearAlgebra.dot(x, x), [c c])
    like(x -> x \ w, S)
    like(x -> S \ x, w)
    like(x -> x / S, S)
    like(x -> S / x, S)
    like(x -> LinearAlgebra.mul!(fill!(similar(x), 1), x, x, 2.0, 3.0), S)
    like(x -> LinearAlgebra.mul!(fill!(similar(x), NaN), x, x, 2.0, 0), S)
    like(x -> LinearAlgebra.rmul!(x, 2), w)
    like(x -> LinearAlgebra.lmul!(2, x), w)
    like(x -> LinearAlgebra.axpy!(2.0, x, copy(x)), w)
    like(x -> LinearAlgebra.tril!(copy(x)) + LinearAlgebra.triu!(copy(x), 1), S)
    like(LinearAlgebra.diagm, w)
    @test LinearAlgebra.issymmetric(tensor(S)) && !LinearAlgebra.issymmetric(i)
    @test LinearAlgebra.ishermitian(tensor([1 im; -im 1.0])) && !LinearAlgebra.ishermitian(a)
end
