# Objects go in any order and from any task, memory stays where it is.
settled() = (TT.ones(1); GC.gc(); GC.gc(); TT.poll(); TT.memory().live_handles)

@testset "no growth" begin
    a = TT.ones(4, 4)
    before = settled()
    churn(n) = for i in 1:n
        b = a .+ i
        i % 3 == 0 && free!(b)
    end
    churn(100_000)
    @test settled() <= before + 2
    used = TT.memory().in_use
    churn(100_000)
    settled()
    @test TT.memory().in_use <= used + 1_000_000
    big(n) = for i in 1:n
        TT.ones(256, 256) .+ 1
    end
    big(3000)  # 800 MB in all
    @test TT.memory().reserved < 400_000_000
    graphs(n) = for i in 1:n
        x = tensor([1.0]; requires_grad=true)
        sum(x .* x)
    end
    graphs(2000)
    settled()
    @test TT.memory().live_nodes == 0
end

mutable struct Holder
    t::Tensor
    # in the same collection as the tensor, before it or after
    Holder(t) = finalizer(h -> free!(h.t), new(t))
end

@testset "free!" begin
    a, t = TT.ones(2), TT.ones(2)
    alias, kept = t, settled()
    free!(t)
    v = TT.ones(3)
    for use in (x -> x .+ 1, size, x -> a + x, x -> x == a, hash, x -> backward([x]), typed)
        @test_throws TT.HandleError use(alias)
    end
    @test sprint(show, alias) == "Tensor(freed)"
    foreach(free!, (t, alias))  # says nothing to v
    @test sum(v)[] == 3
    free!(v)
    @test_throws TT.HandleError v .+ 1
    w = a + a
    free!(w)
    u = a + a  # in the slot of w, which is nobody's
    @test getfield(u, :slot) === getfield(w, :slot) && TT.is_freed(w) && u == [2, 2]
    free!(w)
    @test u == [2, 2]
    foreach(free!, [a .* i for i in 1:1000])
    @test sum(a)[] == 2 && settled() <= kept + 2
    make(n) = foreach(i -> Holder(a .+ i), 1:n)
    make(1000)
    settled()
    again(n) = foreach(i -> a .+ i, 1:n)
    again(1000)
    @test settled() <= kept + 2
end

@testset "slots" begin
    a = TT.ones(2)
    kept = settled()
    wasted(n) = foreach(i -> a .+ i, 1:n)
    wasted(1_000_000)
    @test TT.memory().live_handles < kept + 500_000  # nobody had to ask for a collection
    made(n) = [a .* i for i in 1:n]
    function half_dropped(n)
        list = made(n)
        deleteat!(list, 1:2:n)
        left = settled()
        wasted(60_000)
        return all(i -> list[i][2][] == 2i, 1:997:length(list)), left
    end
    right, left = half_dropped(40_000)
    @test right && left <= kept + 20_002
    @test settled() <= kept + 2
    made_late = Ref(0)
    function late(holder)  # makes tensors in a finalizer, after that of its own or before it
        TT.is_freed(holder[]) || holder[] .+ 1
        a .+ 1
        made_late[] += 1
    end
    holders(n) = foreach(i -> finalizer(late, Ref(a .* i)), 1:n)
    holders(30_000)
    settled()
    @test settled() <= kept + 3 && a[1][] == 1 && made_late[] == 30_000
    u = a .* 3
    getfield(u, :slot).handle = C_NULL  # as in a constant of a precompiled package
    @test_throws TT.HandleError size(u)
    @test string(u) == "Tensor(freed)" && free!(u) === nothing
end

@testset "scopes" begin
    a, outer = TT.ones(4), Tensor[]
    kept = settled()
    live() = TT.memory().live_handles
    for k in 1:1000
        TT.scope() do
            b = a .+ k
            sum(b .* b)
        end
    end
    @test live() <= kept + 1001  # the results
    settled()
    t, u = TT.scope() do
        v = a .* 2
        push!(outer, v, TT.keep!(a .* 3))
        w = TT.scope(() -> (a .* 5) .+ v)
        freed = a .* 7
        free!(freed)
        (a .* 4, Dict(1 => w))
    end
    @test t == fill(4, 4) && u[1] == fill(7, 4) && outer[2] == fill(3, 4) && TT.is_freed(outer[1])
    @test_throws TT.HandleError outer[1] .+ 1
    thrown(() -> TT.scope(() -> (push!(outer, a .* 1); error("inside"))), ErrorException)
    @test TT.is_freed(outer[3]) && settled() <= kept + 4
    x, net = tensor(ones(4); requires_grad=true), nn.Linear(4, 1; dtype=Float64)
    TT.scope() do  # what C holds stays
        backward(sum(net(x .* 1)))
    end
    @test size(x.grad) == (4,) && size(net.weight.grad) == (1, 4) && settled() >= 0
    other = TT.scope(() -> fetch(@async (z = TT.ones(2); TT.scope(() -> z .+ 1); z)))
    @test other == [1, 1]
end

@testset "deep models" begin  # no recursion
    deep = foldl((x, _) -> Any[x], 1:100_000; init=tensor([1.0]; requires_grad=true))
    @test length(parameters(deep)) == 1
    free!(only(parameters(deep)))
end

@testset "any order" begin
    function chain(n)
        x = tensor(ones(8); requires_grad=true)
        list = Tensor[x]
        foreach(_ -> push!(list, list[end][1:end] .* 1), 1:n)
        return list
    end
    for order in (identity, reverse, l -> l[sortperm(sin.(1:length(l)))])
        foreach(free!, order(chain(200)))
    end
    list = chain(50)
    free!.(list[1:2:end])
    list = nothing
    a = zeros(3, 3)
    t = Tensor(a)
    a = nothing
    GC.gc()
    u = typed(t[2, :])
    t = nothing
    GC.gc()
    u .= 4
    @test sum(u) == 12
    m = nn.Sequential(nn.Linear(2, 2))
    opt = optim.Adam(parameters(m))
    s = optim.StepLR(opt, 1)
    w = m[1].weight
    m = nothing
    settled()
    step!(opt)
    opt = nothing
    settled()
    step!(s)
    @test size(w) == (2, 2)
end

@testset "tasks and threads" begin
    results = zeros(16)
    Threads.@threads for i in 1:16
        manual_seed(i)
        x = tensor(fill(Float64(i), 50); requires_grad=true)
        h = x .* 2
        register_hook(g -> g .* 2, h)
        for _ in 1:200
            x .+ 1
        end
        backward(sum(h))
        results[i] = sum(x.grad)[]
    end
    @test results == fill(200, 16)
    sums = zeros(8)
    Threads.@threads for i in 1:8  # slots of all threads, through many collections
        x = TT.ones(4)
        mine = [x .* k for k in 1:2000]
        foreach(k -> (y = x .+ k; k % 5 == 0 && free!(y)), 1:30_000)
        sums[i] = sum(t -> t[1][], mine)
    end
    @test sums == fill(sum(1:2000), 8)
    made = [@async TT.ones(10) .* i for i in 1:20]
    @test sum(t -> sum(fetch(t))[], made) == 10 * sum(1:20)
    @test settled() < 1000
end
