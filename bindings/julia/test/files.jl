# safetensors and checkpoints.
mktempdir() do folder
    path = joinpath(folder, "x.safetensors")
    @testset "safetensors" begin
        a = Tensor([1.0 2 3; 4 5 6])
        save_file(path, Dict("a" => a, "b" => TT.ones(2; dtype=Int32)); metadata=Dict("format" => "pt"))
        all = load_file(path)
        @test Array(all["a"]) == Array(a) && eltype(all["b"]) == Int32 && length(all) == 2
        f = TT.SafeTensors(path; mapped=true)
        @test sort(keys(f)) == ["a", "b"] && TT.metadata(f) == Dict("format" => "pt") && haskey(f, "a")
        @test Array(f["a"]) == Array(a) && !TT.is_writable(f["a"])
        thrown(() -> typed(f["a"])[1, 1] = 2, ReadOnlyMemoryError)
        thrown(() -> f["c"], TT.OutOfRangeError)
        thrown(() -> load_file(joinpath(folder, "none")), TT.FileError)
        write(path, "no tensors here")
        @test occursin("byte", lowercase(thrown(() -> load_file(path), TT.FormatError).message))
        s = TT.StateDict(["x" => a])
        s["y"] = TT.ones(1)
        @test keys(s) == ["x", "y"] && first.(collect(s)) == ["x", "y"] && s["x"] == a
    end

    @testset "a training goes on" begin
        make() = (manual_seed(1); m = nn.Linear(3, 1); o = optim.Adam(parameters(m); lr=0.1); (m, o, optim.StepLR(o, 2)))
        function train(m, o, s, n)
            for _ in 1:n
                zero_grad!(o)
                backward(mean(m(TT.randn(4, 3)) .^ 2))
                step!(o)
                step!(s)
            end
        end
        m, o, s = make()
        train(m, o, s, 3)
        save_checkpoint(path; model=m, optimizer=o, scheduler=s, generator=TT.Generator(), extra=Dict("epoch" => Tensor(3)))
        train(m, o, s, 3)
        want = Array(m.weight)
        m, o, s = make()
        manual_seed(99)
        extra = load_checkpoint!(path; model=m, optimizer=o, scheduler=s, generator=TT.Generator())
        train(m, o, s, 3)
        @test Array(m.weight) == want && extra["epoch"][] == 3
        thrown(() -> load_checkpoint!(path; model=nn.Linear(4, 1)), TT.Error)
    end
end
