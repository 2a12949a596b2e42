# Datasets, samplers, loaders.

"""
    TT.Dataset(tensors...)

Samples by row: sample `i` is row `i` of each tensor, along C's first dimension. `d[i]` is a sample,
`TT.subset(d, indices)` a dataset of chosen ones, `vcat(a, b)` of all of several.
"""
Dataset(tensors::Tensor...) = own(Dataset, handle_out(o -> GC.@preserve tensors begin
    C.tt_dataset_tensors(ctx(), handles(tensors), length(tensors), o)
end))
Base.length(d::Dataset) = Int(C.tt_dataset_size(d))
Base.getindex(d::Dataset, i::Integer) = (list_out((outs, cap, n) -> C.tt_dataset_get(
    ctx(), d, i - 1, outs, cap, n))...,)
Base.lastindex(d::Dataset) = length(d)
described(d::Dataset) = "$(length(d)) samples"
Base.eltype(::Type{Dataset}) = Tuple{Vararg{Tensor}}
Base.iterate(d::Dataset, i=1) = i > length(d) ? nothing : (d[i], i + 1)
Base.vcat(d::Dataset, more::Dataset...) = own(Dataset, handle_out(o -> GC.@preserve d more begin
    C.tt_dataset_concat(ctx(), [handle_of(x) for x in (d, more...)], 1 + length(more), o)
end))
"A dataset of chosen samples of another one."
subset(d::Dataset, indices) = own(Dataset, handle_out(o -> C.tt_dataset_subset(
    ctx(), d, Int64[i - 1 for i in indices], length(indices), o)))

"""
    TT.Sampler(n)
    TT.Sampler(n, :random; seed, replacement=false, length=n)
    TT.Sampler(weights, :weighted; seed, replacement=true, length)
    TT.Sampler(indices, :subset; seed=0, shuffle=false)
    TT.Sampler(n, :distributed; rank, size, seed=0, shuffle=false, drop_last=false)

An order of samples. `:distributed` is that of the process `rank` of `size`, from 0: every size-th
index of an order that is the same in all of them. `TT.next!(s, n)` is the next at most n indices,
none at the end of an epoch. `TT.get_state(s)` is `(seed, epoch, position)`, and
`TT.set_state!(s, state)` continues there.
"""
Sampler(n::Integer) = own(Sampler, handle_out(o -> C.tt_sampler_sequential(ctx(), n, o)))
function Sampler(of, kind::Symbol; seed::Integer=0, replacement::Bool=kind == :weighted,
        length::Integer=-1, shuffle::Bool=false, rank::Integer=0, size::Integer=1,
        drop_last::Bool=false)
    kind == :random && return own(Sampler, handle_out(o -> C.tt_sampler_random(
        ctx(), of, replacement, length, seed, o)))
    kind == :weighted && return own(Sampler, handle_out(o -> C.tt_sampler_weighted(
        ctx(), Float64[w for w in of], Base.length(of), length, replacement, seed, o)))
    kind == :subset && return own(Sampler, handle_out(o -> C.tt_sampler_subset(
        ctx(), Int64[i - 1 for i in of], Base.length(of), shuffle, seed, o)))
    kind == :distributed && return own(Sampler, handle_out(o -> C.tt_sampler_distributed(
        ctx(), of, rank, size, shuffle, drop_last, seed, o)))
    throw(ArgumentError("kind is :$kind: must be :random, :weighted, :subset or :distributed"))
end
Base.length(s::Sampler) = Int(C.tt_sampler_length(s))
described(s::Sampler) = "$(length(s)) indices"
function next!(s::Sampler, n::Integer)
    indices, found = Vector{Int64}(undef, n), Ref(Int64(0))
    check(C.tt_sampler_next(ctx(), s, indices, n, found))
    return resize!(indices, found[]) .+ 1
end

"""
    TT.Loader(dataset, sampler=nothing; batch_size=1, shuffle=false, seed=0, workers=0, prefetch=2,
              drop_last=false)

Batches of a dataset, made ahead by threads of tt: `for (x, y) in loader`. Each loop is an epoch.
`shuffle` draws another order in each epoch, from `seed`; a sampler is an order of its own.
`TT.get_state(loader)` counts what was returned, and `TT.set_state!` continues there, also in the
middle of an epoch.
"""
function Loader(d::Dataset, s::Union{Sampler, Nothing}=nothing; batch_size::Integer=1,
        shuffle::Bool=false, seed::Integer=0, workers::Integer=0, prefetch::Integer=2,
        drop_last::Bool=false)
    if shuffle
        s === nothing || throw(ArgumentError("shuffle = true beside a sampler"))
        s = Sampler(length(d), :random; seed=seed)
    end
    opts = Ref(C.tt_loader_opts(0x0f, batch_size, workers, prefetch, drop_last, 0))
    sampler = s === nothing ? C_NULL : s
    return own(Loader, handle_out(o -> C.tt_loader_new(ctx(), d, sampler, opts, o)))
end
Base.length(l::Loader) = Int(C.tt_loader_length(l))
Base.eltype(::Type{Loader}) = Tuple{Vararg{Tensor}}
described(l::Loader) = "$(length(l)) batches"
function Base.iterate(l::Loader, _=nothing)
    batch = list_out((outs, cap, n) -> C.tt_loader_next(ctx(), l, outs, cap, n))
    return isempty(batch) ? nothing : ((batch...,), nothing)
end

for (kind, get, set) in [(:Sampler, C.tt_sampler_state, C.tt_sampler_set_state),
        (:Loader, C.tt_loader_state, C.tt_loader_set_state)]
    @eval function get_state(x::$kind)
        state = Vector{Int64}(undef, 3)
        check($get(ctx(), x, state))
        return (seed = state[1], epoch = state[2], position = state[3])
    end
    @eval set_state!(x::$kind, state) = (check($set(ctx(), x, Int64[state...])); x)
end
