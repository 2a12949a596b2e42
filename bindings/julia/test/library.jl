# Which library is loaded, and what a missing or strange one says.
function fresh(code; env...)
    out = IOBuffer()
    command = `$NEW_JULIA -O0 --compile=min -e $code`
    done = run(pipeline(setenv(command, merge(ENV, Dict(string(k) => v for (k, v) in env))),
        stdout=out, stderr=out); wait=false)
    wait(done)
    return success(done), String(take!(out))
end

@testset "library" begin
    @test isfile(TT.LIBRARY[]) && startswith(TT.build_info(), "tt 0.1.0")
    @test TT.set_cuda_math!(matmul_tf32=true, cudnn=false) === nothing  # the CPU ignores it
    @test TT.set_cuda_math!() === nothing
    ok, said = fresh("using TT"; TT_LIBRARY="/nowhere/libtt.so")
    @test !ok
    @test occursin("libtt was not found", said)
    @test occursin("/nowhere/libtt.so (TT_LIBRARY): not there", said)
    # finalizers that run after that of the ctx
    ok, said = fresh("""
        using TT
        function late(r)
            try
                r[] .+ TT.ones(9)
            catch e
                ccall(:puts, Cint, (Cstring,), e.message)
            end
        end
        r = Ref{Any}()
        finalizer(late, r)
        r[] = TT.ones(3)""")
    @test ok && occursin("sizes 3 and 9", said)
    mktempdir() do folder  # constants of a precompiled package
        mkpath(joinpath(folder, "Keeps", "src"))
        write(joinpath(folder, "Keeps", "src", "Keeps.jl"), """module Keeps
            using TT
            const t, a, m = TT.ones(2), typed(TT.ones(2)), TT.nn.Linear(1, 1)
            end""")
        ok, said = fresh("""using Keeps, TT
            for use in (() -> Keeps.t .+ 1, () -> sum(Keeps.a), () -> Keeps.a[1],
                () -> (Keeps.a[1] = 2), () -> deepcopy(Keeps.a), () -> string(Keeps.a),
                        () -> Keeps.m(TT.ones(1)))
                try
                    use()
                catch e
                    print(e isa TT.HandleError ? occursin("precompiled", e.message) : '?', ' ')
                end
            end
            print(string(Keeps.t))"""; JULIA_LOAD_PATH="$folder:@:@stdlib")
        @test ok && said == "true true true true true true true Tensor(freed)"
    end
    mktempdir() do folder
        # what `using TT` does first; another Julia for each would take a second
        refused(path) = withenv("TT_LIBRARY" => path) do
            return thrown(TT.load_library, ErrorException).msg
        end
        path = joinpath(folder, "libtt.so")
        write(path, "no library")
        said = refused(path)
        @test occursin(path, said) && occursin("was not found", said)
        compiler = Sys.which("cc")
        compiler === nothing && return
        source = joinpath(folder, "other.c")
        says(version) = "const char *tt_version(void) { return \"$version\"; }"
        cases = (
            (says("7.8.9"), "is version 7.8.9, this package needs 0.1.x"),
            ("int x;", "is no libtt"),
            (says("0.1.7"), "version 0.1.7, has no function"),
        )
        for (k, (text, want)) in enumerate(cases)
            write(source, text)
            path = joinpath(folder, "other$k.so")
            run(`cc -shared -fPIC -o $path $source`)
            @test occursin(want, refused(path))
        end
        TT.load_library()  # the functions of the last one are replaced
    end
end
