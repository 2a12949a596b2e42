# Groups of processes, and data-parallel training over them. Ranks count from 0, as everywhere.

"""
    TT.Group(backend, rank, size, rendezvous=""; timeout=1800, library=nothing)
    TT.Group()

Connects this process with the others of a group: backend `"gloo"` meets at `"tcp://host:port"` or
`"file:///path"`, `"mpi"` knows rank and size, which may be -1. Without arguments they come from the
environment: `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, which launchers set, or mpirun.
`timeout` is in seconds. Every rank makes the same calls in the same order; a rank that fails is
named by the errors of the others.
"""
function Group(backend::AbstractString, rank::Integer, size::Integer, rendezvous::AbstractString="";
        timeout::Real=1800, library::Union{AbstractString, Nothing}=nothing)
    path = library === nothing ? library_of(backend) : String(library)
    bits = UInt64(1) | UInt64(path !== nothing) << 1
    GC.@preserve path begin
        at = path === nothing ? Ptr{UInt8}(C_NULL) : pointer(path)
        opts = Ref(C.tt_group_opts(bits, Base.round(Int64, 1000 * timeout), at))
        return own(Group, handle_out(o -> C.tt_group_new(
            ctx(), backend, rank, size, rendezvous, opts, o)))
    end
end
function Group(; timeout::Real=1800)
    under_mpi = haskey(ENV, "OMPI_COMM_WORLD_SIZE") || haskey(ENV, "PMI_SIZE")
    under_mpi && !haskey(ENV, "MASTER_ADDR") && return Group("mpi", -1, -1; timeout=timeout)
    rank, size = parse(Int, get(ENV, "RANK", "0")), parse(Int, get(ENV, "WORLD_SIZE", "1"))
    size == 1 && return Group("gloo", rank, size; timeout=timeout)
    return Group("gloo", rank, size, "tcp://$(ENV["MASTER_ADDR"]):$(ENV["MASTER_PORT"])";
        timeout=timeout)
end

"The library of a backend beside libtt, nothing if it is not there."
function library_of(backend)
    path = joinpath(dirname(realpath(LIBRARY[])), "libtt_$backend.so")
    return isfile(path) ? path : nothing
end

"The rank of this process in a group."
group_rank(g::Group) = Int(C.tt_group_rank(g))
"The number of processes of a group."
group_size(g::Group) = Int(C.tt_group_size(g))
described(g::Group) =
    "$(unsafe_string(C.tt_group_backend(g))), rank $(group_rank(g)) of $(group_size(g))"

"""
    TT.split_group(g, color, key=0)

A group for each color, of the ranks that pass it, in the order of their keys; nothing for a
negative color. All ranks of the group call it.
"""
split_group(g::Group, color::Integer, key::Integer=0) =
    own_or_nothing(Group, handle_out(o -> C.tt_group_split(ctx(), g, color, key, o)))

const REDUCTIONS = (sum=1, mean=2, min=3, max=4, prod=5, band=6, bor=7, bxor=8)
reduction(op::Symbol) = haskey(REDUCTIONS, op) ? Int32(REDUCTIONS[op]) :
    throw(ArgumentError("op is :$op: must be one of $(join(keys(REDUCTIONS), ", "))"))

# The work of a call, or its end. Tensors in use stay alive by C's references.
function start(call, async::Bool, result)
    async || (check(call(C_NULL)); return result)
    return own(Work, handle_out(call))
end
"Waits for the end of a work, and throws its error. timeout is in seconds."
Base.wait(w::Work; timeout::Real=-1) =
    check(C.tt_work_wait(ctx(), w, timeout < 0 ? -1 : Base.round(Int64, 1000 * timeout)))
function Base.istaskdone(w::Work)
    done = Ref(Int32(0))
    check(C.tt_work_test(ctx(), w, done))
    return done[] != 0
end

"Waits for a receive, and returns the rank that has sent."
function source(w::Work)
    rank = Ref(Int32(0))
    check(C.tt_work_source(ctx(), w, rank))
    return Int(rank[])
end

"Waits until all ranks of a group have called it."
barrier(g::Group; async::Bool=false) = start(w -> C.tt_group_barrier(ctx(), g, w), async, nothing)
"""
    TT.all_reduce!(g, x; op=:sum, async=false)

Replaces x, on all ranks, by the sum of the tensors of all ranks, or by what `op` says: `:mean`,
`:min`, `:max`, `:prod`, `:band`, `:bor`, `:bxor`. With async, here and in the other calls, returns
a `TT.Work` to wait for.
"""
all_reduce!(g::Group, x::Tensor; op::Symbol=:sum, async::Bool=false) =
    start(w -> C.tt_group_all_reduce(ctx(), g, x, reduction(op), w), async, x)
"The same as `TT.all_reduce!` on the rank root; the tensors of the others stay."
reduce!(g::Group, x::Tensor, root::Integer=0; op::Symbol=:sum, async::Bool=false) =
    start(w -> C.tt_group_reduce(ctx(), g, x, reduction(op), root, w), async, x)
"Replaces x, on all ranks, by that of the rank root."
broadcast!(g::Group, x::Tensor, root::Integer=0; async::Bool=false) =
    start(w -> C.tt_group_broadcast(ctx(), g, x, root, w), async, x)
"Writes the tensors x of all ranks to out, one behind the other in C's order."
all_gather!(g::Group, out::Tensor, x::Tensor; async::Bool=false) =
    start(w -> C.tt_group_all_gather(ctx(), g, x, out, w), async, out)
"Reduces x over all ranks, and writes part r of the result to the tensor out of rank r."
reduce_scatter!(g::Group, out::Tensor, x::Tensor; op::Symbol=:sum, async::Bool=false) =
    start(w -> C.tt_group_reduce_scatter(ctx(), g, x, out, reduction(op), w), async, out)
"Sends part r of x to rank r; part r of out comes from rank r."
all_to_all!(g::Group, out::Tensor, x::Tensor; async::Bool=false) =
    start(w -> C.tt_group_all_to_all(ctx(), g, x, out, w), async, out)
"Writes the tensors x of all ranks to out on the rank root, where the others pass nothing."
gather!(g::Group, out::Union{Tensor, Nothing}, x::Tensor, root::Integer=0; async::Bool=false) =
    start(w -> C.tt_group_gather(ctx(), g, x, out === nothing ? C_NULL : out, root, w), async, out)
"Writes part r of x on the rank root, where the others pass nothing, to out of rank r."
scatter!(g::Group, out::Tensor, x::Union{Tensor, Nothing}, root::Integer=0; async::Bool=false) =
    start(w -> C.tt_group_scatter(ctx(), g, x === nothing ? C_NULL : x, out, root, w), async, out)
"Sends x to another rank, which receives it with the same tag."
send(g::Group, x::Tensor, peer::Integer, tag::Integer=0; async::Bool=false) =
    start(w -> C.tt_group_send(ctx(), g, x, peer, tag, w), async, nothing)
"""
Receives a tensor of the shape and dtype of x from another rank into x; if peer is -1, from the
first that sends with this tag, which `TT.source` of the work returns.
"""
recv!(g::Group, x::Tensor, peer::Integer, tag::Integer=0; async::Bool=false) =
    start(w -> C.tt_group_recv(ctx(), g, x, peer, tag, w), async, x)

"""
    TT.Ddp(m, g; bucket_bytes=25 << 20, broadcast_buffers=true, find_unused_parameters=false,
           compression=nothing)

Begins data-parallel training of a module: all ranks call it, the parameters and buffers of rank 0
replace those of the others, and backward replaces gradients by their mean over the ranks, until the
object is freed. compression: `TT.BFloat16` or `Float16`, the type of the messages.
"""
function Ddp(m::Module, g::Group; bucket_bytes::Integer=25 << 20, broadcast_buffers::Bool=true,
        find_unused_parameters::Bool=false, compression::Union{Type, Nothing}=nothing)
    bits = 0x07 | UInt64(compression !== nothing) << 3
    dtype = compression === nothing ? 0 : dtype_code(compression)
    opts = Ref(C.tt_ddp_opts(
        bits, bucket_bytes, broadcast_buffers, find_unused_parameters, dtype, 0))
    return own(Ddp, handle_out(o -> C.tt_ddp_new(ctx(), m, g, opts, o)))
end
"Begins a forward of a model that is not called as a module: buffers of rank 0 replace the others."
prepare_forward!(d::Ddp) = check(C.tt_ddp_prepare_forward(ctx(), d))
"""
Replaces the gradients that the parameters have by their means over the ranks, after backwards in
`no_sync`, such as those of a compiled step.
"""
reduce!(d::Ddp) = check(C.tt_ddp_reduce(ctx(), d))
"""
Lets the batch normalizations in a module use the statistics of the batches of all ranks: their
forward and backward are then collective calls.
"""
sync_batch_norm!(g::Group, m::Module) = check(C.tt_group_sync_batch_norm(ctx(), g, m))
"Calls f; gradients of backward in it add up in each process, without a mean."
function no_sync(f, d::Ddp)
    check(C.tt_ddp_set_sync(ctx(), d, false))
    try
        return f()
    finally
        check(C.tt_ddp_set_sync(ctx(), d, true))
    end
end

"""
Gradients that a backward has filled, for a hook (`TT.set_hook!`): `index` counts from 1 to `count`,
`buffer` is a vector, `gradients` are its parts with the shapes of the `parameters`.
"""
struct GradBucket
    index::Int
    count::Int
    buffer::Tensor
    gradients::Vector{Tensor}
    parameters::Vector{Tensor}
    failed::Bool
end
function GradBucket(p::Ptr{C.tt_ddp_bucket})
    b = unsafe_load(p)
    each(list) = Tensor[borrow(unsafe_load(list, i)) for i in 1:b.num_parameters]
    return GradBucket(b.index + 1, b.num_buckets, borrow(b.buffer), each(b.gradients),
        each(b.parameters), b.failed != 0)
end

bucket_start(user, ctx, b) = guarded(() -> held(user).start(GradBucket(b)))
bucket_finish(user, ctx, b) = guarded(() -> held(user).finish(GradBucket(b)))

"""
    TT.set_hook!(start, d::TT.Ddp; finish=bucket -> nothing)
    TT.set_hook!(nothing, d)

Lets the application reduce the gradients: `start(bucket)` is called during backward, as soon as it
has filled a bucket and those before, and may start works of groups; `finish(bucket)` is called at
its end, and leaves the gradients in `bucket.buffer`. After a failure it is called with
`bucket.failed`, to wait for what `start` has begun. All ranks call `set_hook!`, and the same
collectives in their hooks; if one fails, backward fails on all ranks. `nothing`: tt reduces again.
"""
function set_hook!(start, d::Ddp; finish=bucket -> nothing)
    poll()
    check(C.tt_ddp_set_hook(ctx(), d,
        @cfunction(bucket_start, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{C.tt_ddp_bucket})),
        @cfunction(bucket_finish, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{C.tt_ddp_bucket})),
        hold((start = start, finish = finish)), drop()))
end
set_hook!(::Nothing, d::Ddp) =
    check(C.tt_ddp_set_hook(ctx(), d, C_NULL, C_NULL, C_NULL, C_NULL))
