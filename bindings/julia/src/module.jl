# Modules: trees of layers. The constructors of the layers are generated (gen/nn.jl); `nn` has them
# under PyTorch's names.

share_module(h) = (C.tt_module_retain(h); own(Module, h))

# Room for the results of a module: an array would take longer than a small layer.
const ROOM = 16
function (m::Module)(x::Tensor)
    look()
    input, outs, n = Ref(handle_of(x)), Ref{NTuple{ROOM, Ptr{Cvoid}}}(), Ref(Int64(0))
    GC.@preserve x outs check(C.tt_module_forward(ctx(), m, input, 1,
        Pointers(Base.unsafe_convert(Ptr{NTuple{ROOM, Ptr{Cvoid}}}, outs)), ROOM, n))
    return n[] == 1 ? wrap(outs[][1]) : map(wrap, outs[][1:n[]])
end
function (m::Module)(inputs::Union{Tensor, Nothing}...)
    look()  # what a forward has recorded hangs on one small result
    outs = list_out((outs, cap, n) -> GC.@preserve inputs C.tt_module_forward(ctx(), m,
        handles(inputs), length(inputs), outs, cap, n))
    return length(outs) == 1 ? outs[1] : (outs...,)
end

show_live(io, m::Module) = print(io, printed(C.tt_module_print, m))

"Sets the mode of all modules in a model, a module or any struct, to training. Returns the model."
function train!(model, on::Bool=true)
    model isa Handle && throw(ArgumentError("a $(typeof(model)) has no training mode"))
    foreach_part((part, _) -> part isa Module && train!(part, on), model)
    return model
end
"Sets the mode of all modules in a model, a module or any struct, to evaluation. Returns the model."
eval!(model) = train!(model, false)
"""
    TT.to!(model; device=nothing, dtype=nothing)

Moves all tensors of a model, a module or any struct, and converts floating and complex ones; they
stay the same objects. Returns the model.
"""
to!(m::Module; device=nothing, dtype=nothing) =
    (check(C.tt_module_to(ctx(), m, device_or_null(device), dtype_code(dtype))); m)
function to!(model; device=nothing, dtype=nothing)
    model isa Handle && throw(ArgumentError("a $(typeof(model)) cannot be moved"))
    all = ModuleList()  # so that all parts move, or none
    foreach_part(model) do part, place
        part isa Module ? push!(all, part) : register_buffer!(all, "tensor of " *
            Base.replace(name_of(place), "." => "/"), part)
    end
    to!(all; device=device, dtype=dtype)
    return model
end
"Clears the gradients of all parameters of a model, a module or any struct. Returns the model."
function zero_grad!(model)
    model isa Handle && throw(ArgumentError("a $(typeof(model)) has no gradients"))
    foreach(p -> p.grad = nothing, parameters(model))
    return model
end
Base.copy(m::Module) =
    copy_tensor_hooks!(own(Module, handle_out(o -> C.tt_module_copy(ctx(), m, o))), m)
Base.deepcopy_internal(m::Module, seen::IdDict) = get!(() -> copy(m), seen, m)

# ---- the tree ----

function Base.getindex(m::Module, i::Integer)
    1 <= i <= length(m) || throw(BoundsError(m, i))
    return child(m, i)
end
Base.lastindex(m::Module) = length(m)
Base.iterate(m::Module, i=1) = i > length(m) ? nothing : (m[i], i + 1)
Base.eltype(::Type{Module}) = Module
"name => child of each child, in order."
named_children(m::Module) = [child_name(m, i) => m[i] for i in 1:length(m)]
"""
    TT.modules(model)

The modules in a model, a module or any struct, with all below them: each once, parents first.
PyTorch's `apply` is `foreach(f, TT.modules(model))`.
"""
modules(model) = last.(named_modules(model))
"As `TT.modules`: path => module of each, under its first path, such as \"layers.0\"."
function named_modules(model)
    model isa Handle && !(model isa Module) &&
        throw(ArgumentError("a $(typeof(model)) has no modules"))
    found, seen, left = Pair{String, Module}[], Set{Ptr{Cvoid}}(), Pair{String, Module}[]
    foreach_part((part, place) -> part isa Module && push!(left, name_of(place) => part), model)
    reverse!(left)
    while !isempty(left)
        path, m = pop!(left)
        handle_of(m) in seen && continue
        push!(seen, handle_of(m))
        push!(found, path => m)
        prefix = isempty(path) ? "" : path * "."
        append!(left, [prefix * name => child for (name, child) in reverse(named_children(m))])
    end
    return found
end
function Base.push!(m::Module, children...)
    foreach(x -> check(C.tt_module_append(ctx(), m, as_module(x))), children)
    return m
end

function Base.getproperty(m::Module, name::Symbol)
    name === :training && return is_training(m)
    path = String(name)
    i = findfirst(i -> child_name(m, i) == path, 1:length(m))
    return i === nothing ? get_tensor(m, path) : m[i]
end
# m.name = tensor replaces or adds a parameter, or replaces the buffer of that name; m.name = module
# replaces or adds a child.
function Base.setproperty!(m::Module, name::Symbol, x)
    if x isa Module
        register_module!(m, name, x)
    elseif String(name) in first.(named_buffers(m))
        register_buffer!(m, name, x)
    else
        register_parameter!(m, name, x)
    end
    return x
end
function Base.propertynames(m::Module)
    tensors = [first.(named_parameters(m)); first.(named_buffers(m))]
    own = filter(name -> !('.' in name), tensors)
    return (Symbol.(first.(named_children(m)))..., Symbol.(own)...)
end

function load_state_dict!(m::Module, state; strict::Bool=true)
    opts = Ref(C.tt_module_load_state_dict_opts(C.TT_MODULE_LOAD_STATE_DICT_STRICT, strict))
    check(C.tt_module_load_state_dict(ctx(), m, StateDict(state), opts))
    return m
end

# ---- modules of Julia ----

"""
    net = nn.custom("Net"; fc=nn.Linear(4, 2), scale=tensor([1f0])) do m, x
        m.fc(x) .* m.scale
    end

A module whose forward is a function; tensors become parameters, modules children.
"""
custom_module(forward, type_name::AbstractString="Module"; members...) =
    new_module(forward, type_name, nothing, members)
function new_module(forward, type_name, value, members)
    poll()
    text = String(type_name)
    held = hold((forward = forward, value = value))
    def = Ref(C.tt_module_def(sizeof(C.tt_module_def), pointer(text), held, entry_module_forward(),
                              entry_module_copy(), drop()))
    m = own(Module, GC.@preserve text handle_out(o -> C.tt_module_new_custom(ctx(), def, o)))
    for (name, x) in members
        x isa Module ? register_module!(m, name, x) : register_parameter!(m, name, x)
    end
    return m
end

"""
A module for a child of nn.Sequential that is none: a function, or a struct that can be called. Its
fields that are tensors or have some become parameters and children.
"""
as_module(m::Module) = m
function as_module(f)
    T = typeof(f)
    isempty(methods(f)) && throw(ArgumentError("a $T cannot be called, so it is no layer"))
    members = Pair{Symbol, Any}[]
    for name in fieldnames(T)
        x = getfield(f, name)
        if x isa Union{Tensor, Module}
            push!(members, name => x)
        elseif !isempty(parameters(x))
            push!(members, name => as_module(x))
        end
    end
    value = isempty(members) ? nothing : f
    type_name = f isa Function ? nameof(f) : nameof(T)
    return new_module((m, x...) -> f(x...), string(type_name), value, members)
end

"""
    loss = nn.TripletMarginWithDistanceLoss(; margin=1, swap=false, reduction="mean") do a, b … end

`loss(anchor, positive, negative)` is max(0, d(anchor, positive) - d(anchor, negative) + margin),
where the distance d is a function of two tensors; without one it is the Euclidean distance. Copies
share it.
"""
TripletMarginWithDistanceLoss(; options...) = TripletMarginWithDistanceLoss(nothing; options...)
function TripletMarginWithDistanceLoss(distance; margin::Real=1, swap::Bool=false,
        reduction::AbstractString="mean")
    poll()
    code = findfirst(isequal(reduction), ("none", "mean", "sum"))
    code === nothing &&
        throw(ArgumentError("reduction is \"$reduction\": must be \"none\", \"mean\" or \"sum\""))
    opts = Ref(C.tt_nn_triplet_margin_with_distance_loss_opts(0x7, margin, swap, code - 1))
    make(fn, user, drop) = own(Module, handle_out(
        o -> C.tt_nn_triplet_margin_with_distance_loss(ctx(), fn, user, drop, opts, o)))
    distance === nothing && return make(C_NULL, C_NULL, C_NULL)
    return make(entry_fn(), hold(pair -> [distance(pair...)]), drop())
end

# ---- transformers ----

"A function that is given for an activation, as a module, and the name that C gets."
function_and_name(name::Union{AbstractString, Symbol}) = (nothing, name)
function_and_name(f) = (as_module(f), "relu")
"Sets the activation of a layer, or of each layer of a Transformer to a copy; returns m."
function with_activation!(m::Module, f::Union{Module, Nothing})
    f === nothing && return m
    length(m) > 2 && return register_activation!(m, f)
    for stack in m, layer in stack.layers
        register_activation!(layer, copy(f))
    end
    return m
end
register_activation!(layer, f) = (register_module!(layer, "activation", f); layer)

# ---- averages of models ----

"""
    m = TT.AveragedModel(model; decay=nothing, use_buffers=false)

A module whose child `module` is a copy of the model, which it calls, with averages of the model's
parameters: the mean of all, or with a decay an exponential moving average (Izmailov et al. 2018).
`TT.update_parameters!(m, model)` adds the model's, `m.n_averaged` counts. Buffers are copied unless
`use_buffers`.
"""
function AveragedModel(model::Module; decay::Union{Real, Nothing}=nothing, use_buffers::Bool=false)
    opts = Ref(C.tt_averaged_model_opts(given(decay, 0) | C.TT_AVERAGED_MODEL_USE_BUFFERS,
        decay === nothing ? 0 : decay, use_buffers))
    made = own(Module, handle_out(o -> C.tt_averaged_model(ctx(), model, opts, o)))
    copy_tensor_hooks!(get_submodule(made, "module"), model)
    return made
end

"""
    TT.update_bn!(m) do … end
    TT.update_bn!(loader, m)

Recomputes the running statistics of all batch normalisations in m as means over the batches for
which the block calls m, or over those of a loader: tensors, or collections that begin with one. m
is in training mode meanwhile. A failure restores the statistics.
"""
function update_bn!(f::Base.Callable, m::Module)
    poll()
    check(C.tt_module_update_bn(ctx(), m, entry_epoch_fn(), hold(() -> (f(); nothing)), drop()))
    return m
end
update_bn!(loader, m::Module) =
    update_bn!(() -> foreach(batch -> m(batch isa Tensor ? batch : first(batch)), loader), m)

"""
Calls a MultiheadAttention with options: (output, weights or nothing). The module's hooks do not
run.
"""
function attend(m::Module, query::Tensor, key::Tensor, value::Tensor; key_padding_mask=nothing,
    need_weights::Bool=true, attn_mask=nothing,
                average_attn_weights::Bool=true, is_causal::Bool=false)
    set = given(key_padding_mask, 0) | given(attn_mask, 2)
    set |= C.TT_NN_MULTIHEAD_ATTENTION_FORWARD_NEED_WEIGHTS
    set |= C.TT_NN_MULTIHEAD_ATTENTION_FORWARD_AVERAGE_ATTN_WEIGHTS
    set |= C.TT_NN_MULTIHEAD_ATTENTION_FORWARD_IS_CAUSAL
    opts = Ref(C.tt_nn_multihead_attention_forward_opts(set, handle(key_padding_mask), need_weights,
        handle(attn_mask), average_attn_weights, is_causal))
    o, w = Ref{Ptr{Cvoid}}(), Ref{Ptr{Cvoid}}(C_NULL)
    check(GC.@preserve key_padding_mask attn_mask C.tt_nn_multihead_attention_forward(ctx(), m,
        query, key, value, opts, o, w))
    return wrap(o[]), wrap_or_nothing(w[])
end
