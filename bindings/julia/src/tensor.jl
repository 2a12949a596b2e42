# The runtime, the ctx of each task, and Tensor: its handle and its facts.

const RUNTIME = Ref{Ptr{Cvoid}}(C_NULL)

function start_runtime()
    size = UInt64(sizeof(C.tt_runtime_opts))
    opts = Ref(C.tt_runtime_opts(size, C_NULL, C_NULL, C_NULL, 0, 0, 0, 1, 0))  # drops wait for poll()
    C.tt_runtime_new(opts, RUNTIME) == 0 || error("TT: tt_runtime_new failed")
    atexit(() -> ENDING[] = true)
    watch_collections()
end

"Runs what releases have queued, on a thread of Julia's."
poll() = disable_sigint(() -> C.tt_runtime_poll(RUNTIME[]))  # Ctrl-C must not leave C from within

# ---- one ctx per task ----

mutable struct Ctx
    h::Ptr{Cvoid}
    raised::Any  # (exception,) that a callback of the running call has thrown
    trace::Any   # where it was thrown
    token::Any   # keeps its cancel token
    function Ctx()
        h = Ref{Ptr{Cvoid}}(C_NULL)
        C.tt_ctx_new(RUNTIME[], h) == 0 || error("TT: tt_ctx_new failed")
        return finalizer(c -> ENDING[] || C.tt_ctx_release(c.h), new(h[], nothing, [], nothing))  # at the end others' finalizers may use it still
    end
end

task_ctx() = get!(Ctx, task_local_storage(), :tt_ctx)::Ctx

@inline ctx() = Threads.threadid() == 1 && FIRST.task === current_task() ? FIRST.h : enter()
@noinline function enter()
    l = lane()
    l.task === current_task() && return l.h
    h = task_ctx().h
    l.task = nothing
    l.h = h
    l.task = current_task()
    return h
end

@inline check(status) = status == 0 ? nothing : fail()

"Throws the error of this task's last call; what a callback has thrown comes out as itself."
@noinline function fail()
    c = task_ctx()
    raised, c.raised = c.raised, nothing
    raised === nothing || throw(raised[1])
    throw(exception_of(unsafe_load(C.tt_ctx_error(c.h))))
end

# ---- handles ----

abstract type Handle end
for (name, free, what) in [
        (:Generator, C.tt_generator_release, "A stream of random numbers; one of a seed, or the task's own by Generator()."),
        (:Node, C.tt_node_release, "A recorded operator."),
        (:Module, C.tt_module_release, "A layer or a tree of layers: `m(x)` computes; `m.weight` is a parameter or buffer, `m.fc` a child, `m[1]` the first child."),
        (:Optimizer, C.tt_optim_release, "Parameters in groups, each with its values: `opt.param_groups[1].lr`. `step!(opt)`, `zero_grad!(opt)`."),
        (:Scheduler, C.tt_scheduler_release, "A schedule of learning rates: `step!(s)` after the optimizer's."),
        (:StateDict, C.tt_state_dict_release, "Tensors by name, in order: `s[\"fc.weight\"]`, `keys(s)`, `pairs(s)`."),
        (:SafeTensors, C.tt_safetensors_release, "An open safetensors file: `f[\"name\"]` reads a tensor, `keys(f)`, `metadata(f)`."),
        (:CancelToken, C.tt_cancel_release, "`with_cancel(f, token)`: calls of f's task fail with a CancelledError once any task has called `cancel(token)`.")]
    @eval @doc $what mutable struct $name <: Handle
        h::Ptr{Cvoid}
        global own(::Type{$name}, h::Ptr{Cvoid}) = finalizer(free!, new(h))
        global function free!(x::$name)
            h = getfield(x, :h)
            setfield!(x, :h, C_NULL)
            $free(h)
        end
    end
    @eval Base.:(==)(a::$name, b::$name) = getfield(a, :h) == getfield(b, :h)
end
Base.hash(x::Handle, h::UInt) = hash(getfield(x, :h), h)

is_freed(x::Handle) = getfield(x, :h) == C_NULL
Base.show(io::IO, x::Handle) = is_freed(x) ? print(io, nameof(typeof(x)), "(freed)") : show_live(io, x)
show_live(io, x) = print(io, nameof(typeof(x)), "(", described(x), ")")
"What show says of an object."
described(x) = ""

own_or_nothing(T, h) = h == C_NULL ? nothing : own(T, h)

"The handle that a C call gives."
function handle_out(call)
    o = Ref{Ptr{Cvoid}}(C_NULL)
    check(call(o))
    return o[]
end

"""
A tensor of any dtype, shape and device. `Tensor(array)` shares the array's memory, `tensor(array)` copies it, `typed(t)` is an array over t's
memory, `Array(t)` a copy. Freed by the collector, or at once by `free!`.

As in PyTorch `t.shape`, `t.dtype`, `t.device`, `t.grad`, `t.requires_grad`, `t.is_leaf`, `t.grad_fn`; Julia's `size(t)`, `eltype(t)` say the same.
"""
struct Tensor <: Handle
    slot::Slot
    use::Int  # the slot's, while this tensor is in it
    global wrap
    # Takes over the reference.
    @inline wrap(h::Ptr{Cvoid}) = (s = Threads.threadid() == 1 ? slot_from(FIRST, h) : slot_elsewhere(h); new(s, use_at(s.at)))
end
@noinline slot_elsewhere(h::Ptr{Cvoid}) = slot_from(lane(), h)
wrap_or_nothing(h) = h == C_NULL ? nothing : wrap(h)
borrow(h) = (C.tt_tensor_retain(h); wrap(h))

# Constants of precompiled packages have lost their pointers.
@inline is_freed(t::Tensor) = (at = getfield(t, :slot).at; at == C_NULL || use_at(at) != getfield(t, :use))
@inline slot_of(t::Tensor) = is_freed(t) ? (getfield(t, :slot).at == C_NULL ? throw_lost(Tensor) : throw_freed(Tensor)) : getfield(t, :slot)

"Gives up t's reference now; any later use of t is a HandleError."
@inline function free!(t::Tensor)
    is_freed(t) || C.tt_tensor_release(vacate(getfield(t, :slot)))
    return
end
Base.finalize(t::Tensor) = free!(t)

"t becomes what u is; u is freed."
function become!(t::Tensor, u::Tensor)
    from = slot_of(u)
    s = slot_of(t)
    h = handle_at(s.at)
    handle_at!(s.at, vacate(from))
    C.tt_tensor_release(h)
    return t
end

"The tensor that a C function makes of args."
@inline function result(f, args...)
    o = Ref{Ptr{Cvoid}}()
    check(f(ctx(), args..., o))
    return wrap(o[])
end

@inline handle_of(t::Tensor) = handle_at(slot_of(t).at)
@inline handle_of(x::Handle) = (h = getfield(x, :h); h == C_NULL ? throw_freed(typeof(x), "was freed, or is a constant of a precompiled package: make it in __init__") : h)
Base.cconvert(::Type{Ptr{Cvoid}}, x::Handle) = x
Base.unsafe_convert(::Type{Ptr{Cvoid}}, x::Handle) = handle_of(x)
@inline Base.cconvert(::Type{Ptr{Cvoid}}, t::Tensor) = slot_of(t)  # which stays alive during the call
@inline Base.unsafe_convert(::Type{Ptr{Cvoid}}, s::Slot) = handle_at(s.at)

# What the collector does not see: the memory that tensors hold.
const SLACK = 64 << 20
const COLLECT_AT = Ref(SLACK)  # bytes in use

@noinline look() = in_use() > COLLECT_AT[] && relieve()

"Runs queued drops, and the collector if tensors hold much more than after its last run."
@noinline function relieve()
    poll()
    in_use() < COLLECT_AT[] && return
    GC.gc(false)
    in_use() < COLLECT_AT[] || GC.gc(true)
    used = in_use()
    COLLECT_AT[] = used + max(used, SLACK)
    return
end

function memory(device=nothing)
    out = Ref{C.tt_memory_stats}()
    check(C.tt_memory(ctx(), device === nothing ? C_NULL : Ref(device_struct(device)), out))
    m = out[]
    return (in_use = m.in_use, reserved = m.reserved, peak = m.peak, limit = m.limit, live_tensors = m.live_tensors, live_nodes = m.live_nodes,
            live_handles = m.live_handles)
end
in_use() = memory().in_use

# ---- facts ----

Base.size(t::Tensor) = GC.@preserve t (p = C.tt_tensor_shape(t); ntuple(d -> Int(unsafe_load(p, d)), ndims(t)))
Base.size(t::Tensor, d::Integer) = d < 1 ? throw(BoundsError(size(t), d)) : d > ndims(t) ? 1 : Int(C.tt_tensor_size(t, d - 1))
Base.strides(t::Tensor) = GC.@preserve t (p = C.tt_tensor_strides(t); ntuple(d -> Int(unsafe_load(p, d)), ndims(t)))
Base.axes(t::Tensor) = map(Base.OneTo, size(t))
Base.axes(t::Tensor, d::Integer) = Base.OneTo(size(t, d))
Base.eltype(t::Tensor) = DTYPES[C.tt_tensor_dtype(t)]
Base.isempty(t::Tensor) = length(t) == 0
Base.hash(t::Tensor, h::UInt) = hash(handle_of(t), h)
Base.:(==)(a::Tensor, b::Tensor) = handle_of(a) == handle_of(b)  # the same tensor; elementwise: a .== b
Base.copy(t::Tensor) = clone(t)
Base.deepcopy_internal(t::Tensor, seen::IdDict) =
    get!(() -> requires_grad!(clone(detach(t)), t.is_leaf && t.requires_grad), seen, t)
device(t::Tensor) = Device(C.tt_device(C.tt_tensor_device_type(t), C.tt_tensor_device_index(t)))
"Whether two tensors lie over the same memory."
same_storage(a::Tensor, b::Tensor) = storage_ptr(a) == storage_ptr(b)

"The value of a tensor of one element, as t[] too."
function item(t::Tensor)
    out = Ref{C.tt_scalar}()
    check(C.tt_item(ctx(), t, out))
    s, T = out[], eltype(t)
    return T === Bool ? s.i != 0 : T <: Integer ? T(s.i) : T <: Complex ? T(s.re, s.im) : T(s.re)
end
Base.Bool(t::Tensor) = item(t) != 0

function printed(print, x)
    n = Ref(Int64(0))
    buffer = Vector{UInt8}(undef, 2000)
    while (status = print(ctx(), x, buffer, length(buffer), n)) == C.TT_BUFFER_TOO_SMALL
        resize!(buffer, n[] + 1)
    end
    check(status)
    return String(buffer[1:n[]])
end
# compact: among others in an array
show_live(io, t::Tensor) = get(io, :compact, false) && ndims(t) > 0 ? summary(io, t) : print(io, printed(C.tt_tensor_print, t))

const FACTS = (shape = size, dtype = eltype, device = device, grad = t -> gradient(t), requires_grad = t -> requires_grad(t),
               is_leaf = t -> is_leaf(t), grad_fn = t -> grad_fn(t), data = t -> detach(t))
Base.propertynames(::Tensor) = keys(FACTS)
Base.getproperty(t::Tensor, name::Symbol) = haskey(FACTS, name) ? FACTS[name](t) : error("a Tensor has no property $name")
function Base.setproperty!(t::Tensor, name::Symbol, x)
    name === :grad ? check(C.tt_tensor_set_grad(ctx(), t, optional(x))) :
    name === :requires_grad ? requires_grad!(t, x) :
    name === :data ? check(C.tt_tensor_set_data(ctx(), t, x)) : error("property $name of a Tensor cannot be set")
    return x
end
