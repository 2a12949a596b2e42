# Tests of TT.jl. Run by ctest (tests/julia), or:
# TT_LIBRARY=… julia --project=bindings/julia bindings/julia/test/runtests.jl [[but] FILE…]
using Test, TT
import LinearAlgebra, Random, Serialization, Statistics
using Statistics: mean
using TT: (..)

# Short names for what users write as TT.relu; those that Base or Statistics exports stay theirs.
const EXPORTING = (Base, Statistics, LinearAlgebra, Random)
for name in TT.PUBLIC
    name in (:t, :Module) || any(m -> Base.isexported(m, name), EXPORTING) || @eval using TT: $name
end

"The exception that f throws, of type T."
function thrown(f, T)
    try
        f()
    catch e
        @test e isa T
        return e
    end
    @test "nothing thrown" == T
end
near(t, want; atol=1e-6) = isapprox(want isa Number ? t[] : Array(t), want; atol=atol)

const PACKAGE_ROOT = dirname(@__DIR__)
const NEW_JULIA = `$(Base.julia_cmd()) --startup-file=no --project=$PACKAGE_ROOT`
const ALL = ["abi", "tensor", "operators", "index", "arraylike", "autograd", "callbacks",
    "data", "module", "utils", "optim", "graph", "files", "memory", "library", "docs"]
files = isempty(ARGS) ? ALL : ARGS
if files[1] == "but"
    files = setdiff(ALL, ARGS[2:end])
end
@testset "TT" begin
    for name in files
        @testset "$name" begin
            manual_seed(0)  # the same random numbers in every run
            seconds = @elapsed include(name * ".jl")
            println(rpad(name, 10), round(seconds; digits=1), " s")
        end
    end
end
