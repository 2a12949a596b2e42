# Datasets, samplers and loaders.
@testset "loaders" begin
    x = TT.tensor(Float32[i for i in 1:23])
    d = TT.Dataset(x, x)
    values(l) = [v for (b, _) in l for v in Array(b)]
    for workers in 0:2
        l = TT.Loader(d, TT.Sampler(23, :random; seed=1); batch_size=4, workers=workers)
        first = values(l)
        state = TT.get_state(l)
        second = values(l)
        @test sort(first) == Float32.(1:23) && first != second && length(l) == 6
        TT.set_state!(l, state)
        @test values(l) == second
    end
    shuffled = TT.Loader(d; batch_size=4, shuffle=true, seed=1)
    @test sort(values(shuffled)) == 1:23 && values(shuffled) != values(shuffled)
    thrown(() -> TT.Loader(d, TT.Sampler(23); shuffle=true), ArgumentError)
    @test [Array(row[1])[] for row in d] == 1:23 && Array(d[end][1])[] == 23
    both = vcat(TT.subset(d, [5, 3]), d)
    @test length(both) == 25 && Array(both[2][1])[] == 3
    @test_throws Exception both[26]
    s = TT.Sampler([0.0, 2.0], :weighted; seed=0, length=3)
    @test length(s) == 3 && TT.next!(s, 5) == [2, 2, 2] && isempty(TT.next!(s, 5))
    @test TT.next!(TT.Sampler(3), 2) == [1, 2]
    @test sort(TT.next!(TT.Sampler([7, 2], :subset; shuffle=true), 9)) == [2, 7]
    @test TT.next!(TT.Sampler(5, :distributed; rank=1, size=2), 9) == [2, 4, 1]
end

@testset "what is shown" begin
    d = TT.Dataset(TT.ones(5, 2))
    @test sprint(show, d) == "Dataset(5 samples)"
    @test sprint(show, TT.Sampler(3)) == "Sampler(3 indices)"
    @test sprint(show, TT.Loader(d; batch_size=2)) == "Loader(3 batches)"
    @test sprint(show, TT.GradScaler(; init_scale=8)) == "GradScaler(scale = 8.0)"
end
