# safetensors, PyTorch's files and checkpoints.
mktempdir() do folder
    path = joinpath(folder, "x.safetensors")
    @testset "safetensors" begin
        a = Tensor([1.0 2 3; 4 5 6])
        tensors = Dict("a" => a, "b" => TT.ones(2; dtype=Int32))
        save_file(path, tensors; metadata=Dict("format" => "pt"))
        all = load_file(path)
        @test Array(all["a"]) == Array(a) && eltype(all["b"]) == Int32 && length(all) == 2
        f = TT.SafeTensors(path; mapped=true)
        @test sort(keys(f)) == ["a", "b"]
        @test TT.metadata(f) == Dict("format" => "pt")
        @test haskey(f, "a")
        @test Array(f["a"]) == Array(a) && !TT.is_writable(f["a"])
        thrown(() -> typed(f["a"])[1, 1] = 2, ReadOnlyMemoryError)
        thrown(() -> f["c"], KeyError)
        @test get(f, "c", nothing) === nothing && Array(get(f, "a", nothing)) == Array(a)
        thrown(() -> load_file(joinpath(folder, "none")), TT.FileError)
        thrown(() -> save_file(path, Dict("a\0b" => a)), ArgumentError)
        write(path, "no tensors here")
        @test occursin("byte", lowercase(thrown(() -> load_file(path), TT.FormatError).message))
        s = TT.StateDict(["x" => a])
        s["y"] = TT.ones(1)
        thrown(() -> s["z"], KeyError)
        @test length(values(s)) == 2 && values(s)[1] == a
        @test keys(s) == ["x", "y"] && first.(collect(s)) == ["x", "y"] && s["x"] == a
    end

    @testset "GGUF" begin
        file = joinpath(folder, "x.gguf")
        numbers = TT.quantize_blockwise(TT.ones(2, 32), "q8_0")
        text(io, s) = (write(io, UInt64(length(s))); write(io, s))
        open(file, "w") do io
            write(io, "GGUF", UInt32(3), UInt64(1), UInt64(1))
            text(io, "k")
            write(io, UInt32(4), UInt32(7))
            text(io, "tensor")  # the name of a kind, too
            write(io, UInt32(2), UInt64(32), UInt64(2), UInt32(8), UInt64(0))
            write(io, zeros(UInt8, -position(io) & 31), permutedims(Array(numbers)))
        end
        s = TT.gguf_load(file)
        @test occursin("\"k\":7", TT.structure(s)) && Array(s["tensor"]) == Array(numbers)
        @test TT.contents(s)["types"] == Dict("tensor" => "q8_0")
        y = TT.blockwise_linear(TT.ones(1, 32), TT.gguf_map(file)["tensor"], nothing, "q8_0")
        @test all(abs.(Array(y) .- 32) .< 0.01)
        write(file, "GGUF")
        @test occursin("byte", lowercase(thrown(() -> TT.gguf_load(file), TT.FormatError).message))
    end

    @testset "PyTorch's files" begin
        file = joinpath(folder, "x.pt")
        write(file * ".csv", "a;b\n1.5;2\n3;4")
        @test Array(TT.csv_load(file * ".csv"; delimiter=';', skip_rows=1)) == [1.5 2; 3 4]
        write(file * ".idx", UInt8[0, 0, 8, 1, 0, 0, 0, 2, 7, 9])
        @test TT.idx_load(file * ".idx")[2][] === 0x09
        s = torch_load(joinpath(@__DIR__,
            "../../../tests/python/conformance-training/files/good/training.pt"))
        @test length(s) == 27
        @test size(s["model.0.weight"]) == (2, 1, 3, 3)
        @test startswith(TT.structure(s), "{\"dict\":[[\"model\",{\"ordered\":")
        torch_save(file, s; structure=TT.structure(s))
        back = torch_load(file)
        @test TT.structure(back) == TT.structure(s)
        @test keys(back) == keys(s)
        @test all(Array(back[k]) == Array(s[k]) for k in keys(s))
        @test TT.same_tensor(TT.contents(s)["model"]["0.weight"], s["model.0.weight"])
        torch_save(file, TT.StateDict(); structure="""{"ordered": [["step", -7],
            [3, {"tuple": [true, null, "a\\u00e9\\"\\n"]}], ["big", 36893488147419103232],
            ["dtype", {"dtype": "float32"}], ["none", {"list": []}], ["at", {"device": "cpu"}],
            ["floats", {"list": [{"float": "-0x1.8p+1"}, {"float": "inf"}, {"float": "nan"},
            {"float": "0x1p-1074"}]}], ["size", {"size": [2, 3]}]]}""")
        values = TT.contents(torch_load(file))
        @test values["step"] === -7 && values["big"] == big(2)^65
        @test values[3] === (true, nothing, "aé\"\n") && values["size"] === (2, 3)
        @test values["dtype"] === Float32 && values["at"] == "cpu" && isempty(values["none"])
        @test isequal(values["floats"], [-3.0, Inf, NaN, nextfloat(0.0)])
        @test TT.contents(TT.StateDict()) === nothing
        torch_save(file, state_dict(nn.Linear(2, 3)))
        @test keys(torch_load(file)) == ["weight", "bias"]
        @test TT.structure(TT.StateDict()) === nothing
        write(file, "PK")
        @test occursin("torch.save", thrown(() -> torch_load(file), TT.FormatError).message)
    end

    @testset "a training resumes" begin
        function make()
            manual_seed(1)
            m = nn.Linear(3, 1)
            o = optim.Adam(parameters(m); lr=0.1)
            return m, o, optim.StepLR(o, 2)
        end
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
        save_checkpoint(path; model=m, optimizer=o, scheduler=s, generator=TT.Generator(),
            extra=Dict("epoch" => Tensor(3)))
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

@testset "event files of TensorBoard" begin
    mktempdir() do folder
        w = TT.SummaryWriter(joinpath(folder, "runs"))
        add_scalar(w, "loss", 0.5, 1)
        before = filesize(w.path)
        add_scalar(w, "loss", tensor(0.25))
        add_text(w, "note", "hello", 2)
        add_histogram(w, "weights", [1.0, 2.0])
        add_image(w, "digit", TT.zeros(1, 2, 2), 3)
        @test before > 60 && filesize(w.path) > before + 100
        @test TT.SummaryWriter(folder).path != TT.SummaryWriter(folder).path
        thrown(() -> add_image(w, "digit", TT.zeros(2, 2), 3), TT.ShapeError)
    end
end
