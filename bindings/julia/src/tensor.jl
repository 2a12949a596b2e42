# Objects of C and their lifetimes; Tensor and its facts.

# ---- handles ----

abstract type Handle end
for (name, release, what) in [
        (:Generator, C.tt_generator_release,
         "A stream of random numbers: of a seed, or the task's own by Generator()."),
        (:Node, C.tt_node_release, "A recorded operator."),
        (:Module, C.tt_module_release,
         "A layer or a tree of layers: `m(x)` computes; `m.weight` is a parameter or buffer, " *
         "`m.fc` a child, `m[1]` the first child."),
        (:Optimizer, C.tt_optim_release,
         "Parameters in groups, each with its values: `opt.param_groups[1].lr`. " *
         "`TT.step!(opt)`, `TT.zero_grad!(opt)`."),
        (:Scheduler, C.tt_scheduler_release,
         "A schedule of learning rates: `TT.step!(s)` after the optimizer's."),
        (:GradScaler, C.tt_grad_scaler_release,
         "Scales losses and skips steps with inf or nan: `TT.GradScaler()`, " *
         "`TT.scale(s, loss)`, `TT.step!(s, opt)`, `TT.update!(s)`."),
        (:StateDict, C.tt_state_dict_release,
         "Tensors by name, in order: `s[\"fc.weight\"]`, `keys(s)`, `pairs(s)`."),
        (:SafeTensors, C.tt_safetensors_release,
         "An open safetensors file: `f[\"name\"]` reads a tensor, `keys(f)`, `TT.metadata(f)`."),
        (:Dataset, C.tt_dataset_release, "Samples by index, each a tuple of tensors."),
        (:Sampler, C.tt_sampler_release, "An order of samples."),
        (:Loader, C.tt_loader_release, "Batches of a dataset."),
        (:Work, C.tt_work_release,
         "A collective call or a transfer of a group: `wait(w)`, `istaskdone(w)`."),
        (:Group, C.tt_group_release, "Processes that communicate."),
        (:Ddp, C.tt_ddp_release, "Data-parallel training of a module over a group."),
        (:Compiled, C.tt_compiled_release,
         "A function that is recorded once and replayed: `TT.compile`."),
        (:Graph, C.tt_graph_release,
         "What a function computed, as calls of operators: `TT.capture`. `g.calls` are the first " *
         "results of the calls in order, `g.inputs` and `g.outputs` its ends."),
        (:PlanHandle, C.tt_plan_release, "The plan of C in a `TT.Plan`."),
        (:Stream, C.tt_stream_release, "A queue of work on a CUDA device."),
        (:Event, C.tt_event_release, "A point in the work of a stream."),
        (:CancelToken, C.tt_cancel_release,
         "`TT.with_cancel(f, token)`: calls of f's task fail with a CancelledError once any task " *
         "has called `TT.cancel(token)`.")]
    @eval begin
        @doc $what mutable struct $name <: Handle
            handle::Ptr{Cvoid}
            global own(::Type{$name}, h::Ptr{Cvoid}) = finalizer(free!, new(h))
        end
        function free!(x::$name)
            h = getfield(x, :handle)
            setfield!(x, :handle, C_NULL)
            $release(h)
        end
        Base.:(==)(a::$name, b::$name) = getfield(a, :handle) == getfield(b, :handle)
    end
end
Base.hash(x::Handle, h::UInt) = hash(getfield(x, :handle), h)

"Whether x was freed by `free!` or at the end of a `TT.scope`."
is_freed(x::Handle) = getfield(x, :handle) == C_NULL
Base.show(io::IO, x::Handle) =
    is_freed(x) ? print(io, nameof(typeof(x)), "(freed)") : show_live(io, x)
show_live(io, x) = print(io, nameof(typeof(x)), "(", described(x), ")")
"The text that show prints in parentheses."
described(x) = ""

own_or_nothing(T, h) = h == C_NULL ? nothing : own(T, h)

"The handle that a C call gives."
function handle_out(call)
    o = Ref{Ptr{Cvoid}}(C_NULL)
    check(call(o))
    return o[]
end

function handle_of(x::Handle)
    h = getfield(x, :handle)
    return h == C_NULL ? throw_freed(typeof(x)) : h
end
Base.cconvert(::Type{Ptr{Cvoid}}, x::Handle) = x
Base.unsafe_convert(::Type{Ptr{Cvoid}}, x::Handle) = handle_of(x)

# ---- tensors ----

"""
A tensor of any dtype, shape and device. `Tensor(array)` shares the array's memory, `tensor(array)`
copies it; `typed(t)` is an array over t's memory, `Array(t)` a copy. The collector frees tensors;
`free!(t)` frees one at once, and `TT.scope` those of a block.

As in PyTorch there are `t.shape`, `t.dtype`, `t.device`, `t.grad`, `t.requires_grad`, `t.is_leaf`
and `t.grad_fn`. A tensor without dims stands for its number: `sum(t) > 2`, `Float64(sum(t))`.
"""
struct Tensor <: Handle
    slot::Slot
    use::Int
    # Takes over the reference. A finalizer costs more than a small operator, so a slot gets one
    # only when the next tensor finds it still in use.
    global @inline function wrap(h::Ptr{Cvoid})
        c = task_ctx()
        slot = isodd(c.newest.use) ? next_slot(c) : c.newest
        slot.handle = h
        slot.use += 1
        return new(slot, slot.use)
    end
end
@noinline function next_slot(c)
    next = Slot(C_NULL, 0)
    before, c.newest = c.newest, next
    leave_to_owner(c, before)
    return next
end

leave_to(::Nothing, slot) = finalizer(empty_slot!, slot)
leave_to(scope::Scope, slot) = push!(scope.slots, slot)

"The slot's tensor lives on: the open scope frees it, or the collector."
function leave_to_owner(c, slot)
    leave_to(c.scope, slot)
    isodd(slot.use) || return
    c.unseen += C.tt_tensor_storage_bytes(slot.handle) + OVERHEAD
    if c.unseen > LOOK
        c.unseen = 0
        look()
    end
end

"Releases what the slot holds."
@inline function empty_slot!(slot::Slot)
    isodd(slot.use) || return
    slot.use += 1
    C.tt_tensor_release(slot.handle)
    return
end

wrap_or_nothing(h) = h == C_NULL ? nothing : wrap(h)
borrow(h) = (C.tt_tensor_retain(h); wrap(h))

# Of a constant in a precompiled package, the handle was not saved.
@inline function is_freed(t::Tensor)
    slot = getfield(t, :slot)
    return slot.use != getfield(t, :use) || slot.handle == C_NULL
end
@inline slot_of(t::Tensor) = is_freed(t) ? throw_freed(Tensor) : getfield(t, :slot)
@inline handle_of(t::Tensor) = slot_of(t).handle
@inline Base.cconvert(::Type{Ptr{Cvoid}}, t::Tensor) = slot_of(t)  # which lives during the call
@inline Base.unsafe_convert(::Type{Ptr{Cvoid}}, slot::Slot) = slot.handle

"""
    free!(x)

Releases x now instead of when the collector runs. Any later use of x throws a `TT.HandleError`.
"""
@inline function free!(t::Tensor)
    is_freed(t) || empty_slot!(getfield(t, :slot))
    return
end

"Gives t the tensor of u, and frees u."
function become!(t::Tensor, u::Tensor)
    from, to = slot_of(u), slot_of(t)
    from.handle, to.handle = to.handle, from.handle
    free!(u)
    return t
end

"The tensor that a C function makes of args."
@inline function result(f, args...)
    o = Ref{Ptr{Cvoid}}()
    check(f(ctx(), args..., o))
    return wrap(o[])
end

# ---- scopes ----

"""
    TT.scope() do … end

Frees the tensors that this task makes inside, except those that the block returns: a tensor, or
several in a tuple, an array, a Dict or a struct. `TT.keep!(t)` keeps another one. What modules,
optimizers and recorded graphs hold is not affected. A loop with a scope in it does not wait for the
collector.
"""
function scope(f)
    c = task_ctx()
    isodd(c.newest.use) && next_slot(c)  # which belongs to the scope around
    mine = c.scope = Scope([], c.scope)
    try
        found = f()
        foreach_part((x, _) -> x isa Tensor && keep!(x), found)
        return found
    finally
        isodd(c.newest.use) && next_slot(c)
        c.scope = mine.outer
        foreach(empty_slot!, mine.slots)
    end
end

"""
    TT.keep!(t)

Hands t from the innermost open scope to the one around it or, if there is none, to the collector.
Returns t.
"""
function keep!(t::Tensor)
    c, slot = task_ctx(), slot_of(t)
    c.scope === nothing && return t
    slot === c.newest && next_slot(c)
    at = findlast(s -> s === slot, c.scope.slots)
    at === nothing && return t  # of another scope
    deleteat!(c.scope.slots, at)
    leave_to(c.scope.outer, slot)
    return t
end

"Where a part of something is: under a key of what is at the outer place."
struct Place
    outer::Union{Place, Nothing}
    key::Any
end
"Keys from the outermost on, as `layers.0.weight`."
function name_of(place)
    keys = String[]
    while place !== nothing
        push!(keys, string(place.key))
        place = place.outer
    end
    return join(Base.reverse(keys), '.')
end

"""
Calls f with each Tensor and Module in x, and its `Place`: in tuples, arrays, Dicts and fields of
structs, in order.
"""
function foreach_part(f, x)
    left, seen = Any[(x, nothing)], IdDict{Any, Nothing}()
    while !isempty(left)
        x, place = pop!(left)
        if x isa Union{Tensor, Module}
            f(x, place)
        elseif !has_no_parts(x) && !haskey(seen, x)
            ismutable(x) && (seen[x] = nothing)
            push_parts!(left, x, place)
        end
    end
end
has_no_parts(x) = isbits(x) || x isa Union{Handle, AbstractString, Symbol, Type, Core.Module, Task,
                                           AbstractArray{<:Number}}
"Pushes the parts of x, the last one first. Items count from 0, as in names of files."
function push_parts!(left, @nospecialize(x::Union{Tuple, AbstractArray}), place)
    n = length(x)
    for (k, part) in enumerate(Iterators.reverse(x))
        push!(left, (part, Place(place, n - k)))
    end
end
function push_parts!(left, @nospecialize(x::AbstractDict), place)
    for (key, part) in x
        push!(left, (part, Place(place, key)))
    end
end
function push_parts!(left, @nospecialize(x), place)
    for k in nfields(x):-1:1
        isdefined(x, k) && push!(left, (getfield(x, k), Place(place, fieldname(typeof(x), k))))
    end
end

# ---- memory ----

# The collector does not see the memory of tensors: it is asked to run when they hold much more than
# after its last run.
const OVERHEAD = 256          # bytes of a tensor besides its elements
const LOOK = 16 << 20         # bytes of new tensors; asking what is in use takes a while
const SLACK = 64 << 20
const COLLECT_AT = Ref(SLACK) # bytes in use

look() = in_use() > COLLECT_AT[] && relieve()

"Runs queued drops, and the collector if tensors hold much more than after its last run."
@noinline function relieve()
    poll()
    in_use() < COLLECT_AT[] && return
    c = task_ctx()
    isodd(c.newest.use) && next_slot(c)
    GC.gc(false)
    in_use() < COLLECT_AT[] || GC.gc(true)
    used = in_use()
    COLLECT_AT[] = used + Base.max(used, SLACK)
    return
end
in_use() = (m = memory(); m.in_use + OVERHEAD * m.live_tensors)

"""
    TT.memory(device=nothing)

Bytes in use, reserved, at the peak and at most allowed, and the numbers of live objects.
"""
function memory(device=nothing)
    out = Ref{C.tt_memory_stats}()
    check(C.tt_memory(ctx(), device_or_null(device), out))
    m = out[]
    return (in_use = m.in_use, reserved = m.reserved, peak = m.peak, limit = m.limit,
            live_tensors = m.live_tensors, live_nodes = m.live_nodes, live_handles = m.live_handles)
end

# ---- facts ----

ints_at(p, n) = ntuple(d -> Int(unsafe_load(p, d)), n)
Base.size(t::Tensor) = GC.@preserve t ints_at(C.tt_tensor_shape(t), ndims(t))
function Base.size(t::Tensor, d::Integer)
    d < 1 && throw(BoundsError(size(t), d))
    return d > ndims(t) ? 1 : Int(C.tt_tensor_size(t, d - 1))
end
Base.strides(t::Tensor) = GC.@preserve t ints_at(C.tt_tensor_strides(t), ndims(t))
Base.stride(t::Tensor, d::Integer) = strides(t)[d]
Base.axes(t::Tensor) = map(Base.OneTo, size(t))
Base.axes(t::Tensor, d::Integer) = Base.OneTo(size(t, d))
Base.eltype(t::Tensor) = DTYPES[C.tt_tensor_dtype(t)]
Base.isempty(t::Tensor) = length(t) == 0
Base.copy(t::Tensor) = clone(t)
Base.deepcopy_internal(t::Tensor, seen::IdDict) =
    get!(() -> requires_grad!(clone(detach(t)), t.is_leaf && t.requires_grad), seen, t)
"The device of a tensor, as `t.device`."
device(t::Tensor) = Device(C.tt_device(C.tt_tensor_device_type(t), C.tt_tensor_device_index(t)))
"Whether a and b share a storage."
same_storage(a::Tensor, b::Tensor) = storage_ptr(a) == storage_ptr(b)
"Whether a and b are one tensor of C: `m.weight` is a new `Tensor` for it each time."
same_tensor(a::Tensor, b::Tensor) = handle_of(a) == handle_of(b)

"The number in a tensor of one element, as `t[]`."
function item(t::Tensor)
    out = Ref{C.tt_scalar}()
    check(C.tt_item(ctx(), t, out))
    s, T = out[], eltype(t)
    T === Bool && return s.i != 0
    T <: Integer && return s.i % T
    return T <: Complex ? T(s.re, s.im) : T(s.re)
end

function printed(print, x)
    n = Ref(Int64(0))
    buffer = Vector{UInt8}(undef, 2000)
    while (status = print(ctx(), x, buffer, length(buffer), n)) == C.TT_BUFFER_TOO_SMALL
        resize!(buffer, n[] + 1)
    end
    check(status)
    return String(buffer[1:n[]])
end
Base.summary(io::IO, t::Tensor) =
    print(io, ndims(t) == 1 ? "$(length(t))-element" : join(size(t), "×"), " Tensor of ", eltype(t))
function show_live(io, t::Tensor)
    among_others = get(io, :compact, false) && ndims(t) > 0  # in an array
    among_others ? summary(io, t) : print(io, printed(C.tt_tensor_print, t))
end

const FACTS = (shape = size, dtype = eltype, device = device, grad = t -> accumulated_grad(t),
               requires_grad = t -> requires_grad(t), is_leaf = t -> is_leaf(t),
               grad_fn = t -> grad_fn(t), data = t -> detach(t))
Base.propertynames(::Tensor) = keys(FACTS)
Base.getproperty(t::Tensor, name::Symbol) =
    haskey(FACTS, name) ? FACTS[name](t) : error("a Tensor has no property $name")
function Base.setproperty!(t::Tensor, name::Symbol, x)
    if name === :grad
        check(C.tt_tensor_set_grad(ctx(), t, optional(x)))
    elseif name === :requires_grad
        requires_grad!(t, x)
    elseif name === :data
        check(C.tt_tensor_set_data(ctx(), t, x))
    else
        error("property $name of a Tensor cannot be set")
    end
    return x
end
