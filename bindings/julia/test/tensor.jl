# Making tensors, their facts, arrays over them.
@testset "arrays in and out" begin
    a = [1.0 2 3; 4 5 6]
    t = Tensor(a)
    @test size(t) == (2, 3)
    @test strides(t) == (1, 2)
    @test eltype(t) == Float64
    @test ndims(t) == 2
    @test length(t) == 6
    @test Array(t) == a && t[2, 3][] == 6
    a[1, 1] = 7
    @test t[1, 1][] == 7
    fill!(t, 2)
    @test all(a .== 2)
    c = tensor(a)
    @test strides(c) == (3, 1) && Array(c) == a && is_contiguous(c) && !is_contiguous(t)
    fill!(c, 0)
    @test a[1, 1] == 2
    types = (Bool, UInt8, Int8, Int16, Int32, Int64, Float16, Float32, Float64, ComplexF32,
        ComplexF64)
    for (T, n) in (((T, 2) for T in types)..., ((Float32, n) for n in (0, 1, 3, 6))...)
        x = reshape(T.(collect(1:3^n) .% 2), ntuple(_ -> 3, n))
        @test Array(Tensor(x)) == x == Array(tensor(x)) && eltype(Tensor(x)) == T
    end
    @test Array(tensor(BFloat16.([1, 2.5]))) == [1, 2.5]
    @test Array(Tensor(zeros(0, 4))) == zeros(0, 4)
    @test Array(Tensor(1:3)) == 1:3
    @test Array(Tensor(view(a, 1, :))) == a[1, :]
    @test Array(Tensor(a')) == a'
    @test Array(Tensor(BitArray([1, 0]))) == [true, false]
    @test Tensor(2)[] === 2
    @test Tensor(2.5)[] === 2.5
    @test Tensor(true)[] === true
    @test Tensor(1 + 2im)[] === 1.0 + 2im
    @test eltype(tensor([1, 2]; dtype=Float32)) == Float32
    @test tensor([1.0]; requires_grad=true).requires_grad
    thrown(() -> Tensor(["a"]), ArgumentError)
    v = [1.0, 2]
    w = Tensor(v)
    isdefined(Base, :Memory) ? push!(v, 3) :
        thrown(() -> push!(v, 3), ErrorException)  # Arrays over Memory go on in a larger one
    GC.gc()
    @test Array(w) == [1, 2]
end

@testset "typed" begin
    t = permute(tensor(reshape(Float32.(1:24), 2, 3, 4)), 3, 1, 2)
    a = typed(t)
    @test a isa AbstractArray{Float32, 3} && size(a) == (4, 2, 3) && a == Array(t)
    a[4, 2, 3] = 100
    @test t[4, 2, 3][] == 100 && sum(a) ≈ sum(t)[]
    thrown(() -> a[5, 1, 1], BoundsError)
    thrown(() -> typed(TT.zeros(2; device="meta")), ArgumentError)
    x = typed(tensor([1.0 2; 3 4]))
    @test x * x == [7 10; 15 22] && x .+ 1 == [2 3; 4 5]
    u = TT.zeros(3)
    b = typed(u)
    free!(u)
    b[1] = 5
    @test b == [5, 0, 0]
    c, d = deepcopy((b, b))
    c[1] = 6  # memory of its own
    @test b[1] == 5 && d[1] == 6 && c.at != b.at
end

struct FromZero <: AbstractVector{Float64}
    values::Vector{Float64}
end
Base.size(a::FromZero) = size(a.values)
Base.axes(a::FromZero) = (Base.Slice(0:length(a.values)-1),)
Base.getindex(a::FromZero, i::Int) = a.values[i+1]

@testset "arrays with other indices" begin
    @test Array(Tensor(FromZero([1, 2]))) == Array(tensor(FromZero([1, 2]))) == [1, 2]
    @test Array(tensor((1, 2))) == [1, 2]
end

@testset "facts and printing" begin
    t = TT.ones(2, 3)
    @test t.shape == (2, 3)
    @test t.dtype == Float32
    @test string(t.device) == "Device(\"cpu\")"
    @test t.is_leaf
    @test t.grad === nothing
    @test t.grad_fn === nothing
    @test !t.requires_grad && requires_grad!(t).requires_grad && t.data.requires_grad == false
    t.requires_grad = false
    @test size(t, 2) == 3
    @test size(t, 9) == 1
    @test axes(t) == (1:2, 1:3)
    @test TT.version(t) == 0
    @test TT.is_writable(t)
    @test TT.storage_bytes(t) == 24
    @test TT.storage_offset(t[2, :]) == 3
    @test TT.is_view(t[1, :])
    @test TT.same_storage(t, t[1, :])
    @test string(t) == "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"
    @test Float64(Tensor(2)) === 2.0
    @test Int(Tensor(2.0)) === 2
    @test Bool(Tensor(1))
    thrown(() -> Bool(Tensor(2)), InexactError)
    @test item(Tensor(3f0)) === 3f0
    thrown(() -> t.nothing_such, ErrorException)
    thrown(() -> item(t), TT.InvalidArgumentError)
    m = nn.Linear(2, 1)
    @test TT.same_tensor(t, t)
    @test !TT.same_tensor(t, TT.ones(2, 3))
    @test TT.same_tensor(m.weight, m.weight)
    @test Array(deepcopy(t)) == Array(t) && !TT.same_storage(copy(t), t)
    @test length(TT.live()) > 0
    @test TT.memory().live_tensors > 0
    @test TT.instruction_set() in ("baseline", "avx2", "avx512", "sve256", "neon")
end

@testset "making" begin
    @test size(TT.zeros(2, 3)) == size(TT.zeros((2, 3))) == size(TT.zeros([2, 3])) == (2, 3)
    @test size(TT.empty(())) == ()
    @test Array(arange(0, 5; step=2)) == [0, 2, 4]
    @test Array(full((2,), 3)) == [3, 3]
    @test Array(eye(2)) == [1 0; 0 1]
    @test eltype(TT.rand(2; dtype=Float64)) == Float64 && eltype(TT.ones(2; dtype=Int64)) == Int64
    @test Array(zeros_like(TT.ones(2))) == [0, 0] && Array(linspace(0, 1, 3)) == [0, 0.5, 1]
    manual_seed(3)
    a = TT.randn(4)
    manual_seed(3)
    @test Array(a) == Array(TT.randn(4))
    g = TT.Generator(7)
    state = TT.get_state(g)
    a = TT.rand(3; generator=g)
    @test state == (7, 0) && TT.get_state(g) != state
    TT.set_state!(g, state)
    @test Array(TT.rand(3; generator=g)) == Array(a) && TT.get_state(TT.Generator()) isa Tuple
    @test sort(Array(TT.randperm(5))) == 0:4 && all(x -> 3 <= x < 5, Array(randint(3, 5, (20,))))
    thrown(() -> TT.zeros(2; dtype=String), ArgumentError)
    thrown(() -> TT.zeros(2; device="nowhere"), TT.Error)
    thrown(() -> full((2,)), UndefKeywordError)
end
