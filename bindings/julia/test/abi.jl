# The low level against C, and what Julia has against what C has.
const C = TT.C
const PACKAGE = dirname(@__DIR__)

@testset "structs and constants are C's" begin
    dump = get(ENV, "TT_ABI_DUMP", joinpath(PACKAGE, "..", "..", "build", "tests", "abi_dump"))
    rows = split.(readlines(`$dump`))
    structs = Dict(string(nameof(T)) => T for T in C.STRUCTS)
    wrong, seen = String[], 0
    for (kind, name, value) in rows
        owner, field = kind == "field" ? split(name, '.') : (name, "")
        want = parse(BigInt, value)
        if kind == "constant"
            got = Int128(getfield(C, Symbol(name)))
        elseif kind == "struct"
            got = sizeof(structs[owner])
        else
            at = findfirst(==(Symbol(field)), fieldnames(structs[owner]))
            got = fieldoffset(structs[owner], at)
        end
        got == want ? (seen += 1) : push!(wrong, name)
    end
    @test isempty(wrong)
    @test seen == length(rows) > 1000
    @test sum(fieldcount, C.STRUCTS) == count(r -> r[1] == "field", rows)
    @test length(C.STRUCTS) == count(r -> r[1] == "struct", rows)
end

@testset "each function of C is used or excluded" begin
    sources = [
        joinpath(root, f) for (root, _, names) in walkdir(joinpath(PACKAGE, "src"))
        for f in names if endswith(f, ".jl") && f != "c.jl"
    ]
    text = join(read.(sources, String))
    named = (m.captures[1] for m in eachmatch(r"\bC\.(tt_\w+)|:(?=tt_version)", text))
    used = Set(name for name in named if name !== nothing)
    lines = read(joinpath(PACKAGE, "excluded.txt"), String)
    excluded = Set(m.captures[1] for m in eachmatch(r"^(tt_\w+) \S"m, lines))
    @test isempty(setdiff(C.NAMES, used, excluded, ["tt_version"]))
    @test isempty(intersect(used, excluded))
    @test issubset(excluded, C.NAMES)
end

@testset "every operator has its doc" begin
    for f in (relu, softmax, conv2d, add!, nn.Linear, optim.Adam, TT.zeros)
        @test !occursin("No documentation", string(Base.Docs.doc(f)))
    end
end

@testset "no call is ambiguous" begin
    pairs = detect_ambiguities(TT; imported=true)
    ours = filter(p -> !any(m -> occursin("Missing", string(m.sig)), p), pairs)
    @test isempty(ours)
end

"Whether TT owns a type: it, a parameter of it, or each member of a union is defined in TT."
owned(T::DataType) = T.name.module in (TT, TT.C) || any(owned, T.parameters)
owned(T::UnionAll) = owned(Base.unwrap_unionall(T))
owned(T::Union) = owned(T.a) && owned(T.b)
owned(T::TypeVar) = owned(T.ub)
owned(T) = false
is_vararg(T) = T isa UnionAll ? is_vararg(T.body) : T isa DataType && T.name.name === :Vararg

@testset "no type piracy" begin
    seen, pirated = 0, []
    for library in (Base, LinearAlgebra, Statistics, Random, Serialization), name in names(library)
        isdefined(library, name) && getfield(library, name) isa Function || continue
        for m in methods(getfield(library, name))
            m.module === TT || continue
            seen += 1
            types = Base.unwrap_unionall(m.sig).parameters[2:end]
            any(owned, filter(!is_vararg, collect(types))) || push!(pirated, m)
        end
    end
    @test seen > 300
    @test pirated == []
end
