# Gradients: modes, backward and grad, hooks, functions with gradients of their own.

"""
    backward(t; gradient, retain_graph, create_graph=false, inputs)
    backward(tensors; gradients, …)

Adds the gradients of t, or of several results at once, to the leaves' `grad`.
"""
backward(t::Tensor; gradient=nothing, kw...) = backward([t]; gradients=[gradient], kw...)
function backward(tensors; gradients=nothing, retain_graph=nothing, create_graph::Bool=false,
    inputs=nothing)
    tensors, gradients, inputs = map(listed, (tensors, gradients, inputs))
    list = handles(tensors)
    grads = gradients === nothing ? fill(C_NULL, length(list)) : handles(gradients)
    into = inputs === nothing ? Ptr{Cvoid}[] : handles(inputs)
    set = C.TT_BACKWARD_CREATE_GRAPH | given(retain_graph, 1) | given(inputs, 3)
    opts = Ref(C.tt_backward_opts(set, C_NULL, flag(retain_graph), create_graph, pointer(into),
        length(into)))
    length(grads) == length(list) ||
        throw(DimensionMismatch("$(length(list)) tensors, $(length(grads)) gradients"))
    check(GC.@preserve tensors gradients inputs into C.tt_backward_all(ctx(), list, grads,
        length(list), opts))
    relieve()
    return
end

"""
    TT.grad(outputs, inputs; grad_outputs, retain_graph, create_graph=false, allow_unused=false)

The gradients of outputs (a tensor or several) with respect to inputs: a tensor for a tensor, else a
vector.
"""
function grad(outputs, inputs; grad_outputs=nothing, retain_graph=nothing, create_graph::Bool=false,
    allow_unused::Bool=false)
    outputs, all_inputs, grad_outputs = map(listed, (outputs, inputs, grad_outputs))
    of, by = handles(outputs), handles(all_inputs)
    given_grads = grad_outputs === nothing ? Ptr{Cvoid}[] : handles(grad_outputs)
    set = C.TT_GRAD_CREATE_GRAPH | C.TT_GRAD_ALLOW_UNUSED
    set |= given(grad_outputs, 0) | given(retain_graph, 1)
    opts = Ref(C.tt_grad_opts(set, pointer(given_grads), length(given_grads), flag(retain_graph),
        create_graph, allow_unused))
    outs = fill(C_NULL, length(by))
    check(GC.@preserve outputs all_inputs grad_outputs given_grads C.tt_grad(ctx(), of, length(of),
        by, length(by), opts, outs))
    return inputs isa Tensor ? wrap_or_nothing(outs[1]) : map(wrap_or_nothing, outs)
end

# ---- modes: of the task ----

function with_grad(f, on)
    previous = set_grad_enabled!(on)
    try
        return f()
    finally
        set_grad_enabled!(previous)
    end
end
"""
    no_grad() do … end

Operators inside are not recorded for gradients. This is a mode of the task: other tasks, also those
that begin inside, record.
"""
no_grad(f) = with_grad(f, false)
"`TT.enable_grad() do … end`: operators inside are recorded, also within `no_grad`."
enable_grad(f) = with_grad(f, true)

"""
    TT.detect_anomaly() do … end

A backward inside fails at the first operator whose gradient has a nan, and names it.
"""
function detect_anomaly(f)
    previous = set_anomaly_enabled!(true)
    try
        return f()
    finally
        set_anomaly_enabled!(previous)
    end
end

# ---- what operators keep for backward ----

saved_pack(user, ctx, t, packed) =
    guarded(() -> unsafe_store!(packed, hold(held(user).pack(borrow(t)))))
saved_unpack(user, ctx, packed, out) =
    guarded(() -> give(out, 1, held(user).unpack(held(packed)), "unpack"))

"""
    TT.saved_tensors_hooks(pack, unpack) do … end

Operators inside keep `pack(t)`, which may be anything, instead of a tensor t that backward needs.
Backward reads `unpack` of that, a tensor of t's size and dtype. `pack` must not change t. Of nested
blocks the innermost counts.
"""
function saved_tensors_hooks(f, pack, unpack)
    poll()
    def = Ref(C.tt_saved_tensors_def(sizeof(C.tt_saved_tensors_def),
        hold((pack = pack, unpack = unpack)),
        @cfunction(saved_pack, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Ptr{Cvoid}})),
        @cfunction(saved_unpack, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Ptr{Cvoid}})),
        drop(), drop()))
    check(C.tt_saved_tensors_push(ctx(), def))
    try
        return f()
    finally
        check(C.tt_saved_tensors_pop(ctx()))
    end
end

# ---- nodes ----

"The nodes of its inputs; nothing for a leaf or no gradient."
next_functions(n::Node) = [next_function(n, i) for i in 1:num_inputs(n)]
"""
Describes a node, what it saved for its gradient included, as JSON whose numbers may be inf and nan.
A tensor among "saved" is {"tensor": i}, a list of them {"tensors": [i, n]}, where i is the number
for TT.saved.
"""
describe(n::Node) = printed(C.tt_node_describe, n)
"Returns a tensor that a node saved, by its number in TT.describe; nothing if it is absent."
saved(n::Node, i::Integer) = wrap_or_nothing(handle_out(o -> C.tt_node_saved(ctx(), n, i, o)))
"""
Calls f(gradients of the outputs) before n's formula. `TT.register_hook(f, n)` calls f(gradients of
the inputs) after it.
"""
register_prehook(f, n::Node) = hook_node(f, n, 1)
register_hook(f, n::Node) = hook_node(f, n, 0)
hook_node(f, n, before) =
    hook(C.tt_node_register_hook, C.tt_node_remove_hook, n, entry_node_hook, f, before)
show_live(io, n::Node) = print(io, "<", name(n), " node>")

# ---- gradients of functions ----

"""
    TT.gradient(f, x…)

The gradients of f(x…), a tensor without dims, one for each x: a tensor for a tensor, a number for
a number, an array for an array of numbers. Anything else, such as a module or a struct, has
a vector of gradients beside `TT.parameters(x)`. What f does not use has the gradient `nothing`.
"""
gradient(f, x...) = withgradient(f, x...).grad

"`TT.withgradient(f, x…)`: the value of f(x…) beside the gradients, as (val = …, grad = …)."
function withgradient(f, x...)
    inputs = map(traced, x)
    value = enable_grad(() -> f(inputs...))
    if !(value isa Tensor && is_number(value))
        found = value isa Tensor ? "one of size $(size(value))" : "a $(typeof(value))"
        throw(ArgumentError("gradient: the function must return a tensor without dims, not $found"))
    end
    wanted = Tensor[]
    foreach(i -> append!(wanted, differentiated(i)), inputs)
    found = isempty(wanted) || !value.requires_grad ? [nothing for _ in wanted] :
        grad(value, wanted; allow_unused=true)
    left = Iterators.Stateful(found)
    of(input, x) = as_given(x, collect(Iterators.take(left, length(differentiated(input)))))
    return (val = detach(value), grad = map(of, inputs, x))
end
"The form of x with which f is called."
traced(x::Tensor) = requires_grad!(detach(x))
traced(x::Union{Number, AbstractArray{<:Number}}) = tensor(x; requires_grad=true)
traced(x) = x
differentiated(x::Tensor) = [x]
differentiated(x) = parameters(x)
"The gradients found for x, in the form in which x was given."
as_given(x::Tensor, found) = found[1]
as_given(x::Number, found) = found[1] === nothing ? nothing : item(found[1])
as_given(x::AbstractArray{<:Number}, found) = found[1] === nothing ? nothing : Array(found[1])
as_given(x, found) = found

"""
    TT.parameters(x)

The tensors in x that require gradients, each once: parameters of modules, and leaves in tuples,
arrays, Dicts, closures and fields of any struct.
"""
function parameters(x)
    found, seen = Tensor[], Set{Ptr{Cvoid}}()
    function add(t::Tensor, place=nothing)
        h = handle_of(t)
        is_leaf(t) && requires_grad(t) && !(h in seen) || return
        push!(seen, h)
        push!(found, t)
    end
    add(m::Module, place) = foreach(add, parameters(m))
    foreach_part(add, x)
    return found
end

# ---- functions with gradients of their own ----

"""
    f = TT.CustomFunction(; name="function") do x…
        y = …
        pullback(dy…) = (dx…,)
        return y, pullback
    end

A function with a rule for its gradient, as a ChainRules `rrule`. Called as f(x…) with arguments of
any kind, it returns y, a tensor or a tuple of tensors. The pullback takes the gradient of each
tensor in y and returns one gradient, or `nothing`, for each x. Nothing inside is recorded, except
what the pullback computes under `create_graph=true`.

    f = TT.CustomFunction(forward, backward; outputs=1, name="function")

The same in two parts: `forward(c, x…)` may keep tensors by `TT.save_for_backward(c, t…)`, and
`backward(c, dy…)` gets them by `TT.saved_tensors(c)`. Two more parts may be given by keyword.

`jvp(c, x, dx)` returns the tangent of each result, from the tuple of arguments and that of their
tangents (`nothing`: 0); it may read `TT.saved_tensors(c)`, too. Without it tangents follow from
`backward`.

`vmap(c, n, dims, x…)` returns the results for all n samples of `TT.vmap`, which come first in
them and in each x whose part of `dims` is 1; an x that the samples share has `nothing` there. What
it does is recorded. Without it `forward` and `backward` run on the shapes of one sample.
"""
struct CustomFunction
    forward::Any
    backward::Any  # nothing: forward gives the pullback
    outputs::Int
    name::String
    jvp::Any
    vmap::Any
end
CustomFunction(forward, backward; outputs=1, name="function", jvp=nothing, vmap=nothing) =
    CustomFunction(forward, backward, outputs, name, jvp, vmap)
CustomFunction(rule; name="function") = CustomFunction(rule, nothing, 0, name, nothing, nothing)

function (f::CustomFunction)(x...; options...)
    f.backward === nothing && return apply_rule(f, x, options)
    forward(c, tensors...) = f.forward(c, with_tensors(x, tensors)...; options...)
    backward(c, grads...) = of_tensors_only(f.name, x, f.backward(c, grads...))
    jvp(c, tangents...) = f.jvp(c, x, with_tensors(map(tensor_or_nothing, x), tangents); options...)
    function vmap(c, n, samples, shared)
        dims = with_tensors(map(tensor_or_nothing, x), map(s -> s === nothing ? s : 1, samples))
        given = map((s, t) -> s === nothing ? t : s, samples, shared)
        return f.vmap(c, n, dims, with_tensors(x, given)...; options...)
    end
    outs = apply_function(f.name, forward, backward, x, f.outputs;
                          jvp=f.jvp === nothing ? nothing : jvp,
                          vmap=f.vmap === nothing ? nothing : vmap)
    return f.outputs == 1 ? outs[1] : outs
end
tensor_or_nothing(a) = a isa Tensor ? a : nothing
function apply_rule(f, x, options)
    found = no_grad(() -> f.forward(x...; options...))
    is_rule_result(found) || throw(ArgumentError(
        "the rule of $(f.name) must return (y, pullback), where y is a tensor or a tuple of " *
        "tensors, not a $(typeof(found))"))
    y, pullback = found
    ys = y isa Tensor ? (y,) : y
    # C's results are other tensors than those that the pullback may hold: else neither would end.
    outs = apply_function(f.name, (c, _...) -> map(detach, ys),
                          (c, grads...) -> of_tensors_only(f.name, x, pullback(grads...)), x,
                          length(ys))
    return y isa Tensor ? outs[1] : outs
end

is_rule_result(found) = found isa Tuple{Union{Tensor, Tuple{Vararg{Tensor}}}, Any}
"x with these tensors in the places of its own."
function with_tensors(x, tensors)
    left = Iterators.Stateful(tensors)
    return map(a -> a isa Tensor ? popfirst!(left) : a, x)
end
"Of the gradients for x those for its tensors."
function of_tensors_only(name, x, grads)
    grads isa Union{Tuple, AbstractVector} || (grads = (grads,))
    length(grads) == length(x) ||
        throw(ArgumentError(
            "the gradient of $name must have $(length(x)) parts, not $(length(grads))"))
    return Tuple(g for (a, g) in zip(x, grads) if a isa Tensor)
end

function apply_function(name, forward, backward, x, n; jvp=nothing, vmap=nothing)
    poll()
    inputs = filter(a -> a isa Tensor, collect(Any, x))
    call = (forward = forward, backward = backward, jvp = jvp, vmap = vmap, n_saved = Ref(0))
    outs = fill(C_NULL, n)
    def = Ref(C.tt_function_def(sizeof(C.tt_function_def), pointer(name), hold(call),
                                entry_function_forward(), entry_function_backward(), drop(),
                                jvp === nothing ? C_NULL : entry_function_jvp(),
                                vmap === nothing ? C_NULL : entry_function_vmap()))
    check(GC.@preserve name inputs C.tt_function_apply(ctx(), def, handles(inputs), length(inputs),
        outs, n))
    return map(wrap, (outs...,))
end
"Keeps tensors, from within the forward of a CustomFunction for its backward and jvp."
function save_for_backward(c::FunctionContext, tensors::Union{Tensor, Nothing}...)
    check(GC.@preserve tensors C.tt_function_save(ctx(), c.h, handles(tensors), length(tensors)))
    c.n_saved[] += length(tensors)
    return
end
"The tensors that `TT.save_for_backward` kept."
function saved_tensors(c::FunctionContext)
    saved(i) = wrap_or_nothing(handle_out(o -> C.tt_function_saved(ctx(), c.h, i - 1, o)))
    return [saved(i) for i in 1:c.n_saved[]]
end
