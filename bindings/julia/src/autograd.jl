# Gradients: modes, backward and grad, hooks, functions with gradients of their own.

"""
    backward(t; gradient, retain_graph, create_graph=false, inputs)
    backward(tensors; gradients, …)

Adds the gradients of t, or of several results at once, to the leaves' `grad`.
"""
backward(t::Tensor; gradient=nothing, kw...) = backward([t]; gradients=[gradient], kw...)
function backward(tensors; gradients=nothing, retain_graph=nothing, create_graph::Bool=false, inputs=nothing)
    tensors, gradients, inputs = map(listed, (tensors, gradients, inputs))
    list = handles(tensors)
    grads = gradients === nothing ? fill(C_NULL, length(list)) : handles(gradients)
    into = inputs === nothing ? Ptr{Cvoid}[] : handles(inputs)
    set = C.TT_BACKWARD_CREATE_GRAPH | given(retain_graph, 1) | given(inputs, 3)
    opts = Ref(C.tt_backward_opts(set, C_NULL, flag(retain_graph), create_graph, pointer(into), length(into)))
    length(grads) == length(list) || throw(DimensionMismatch("$(length(list)) tensors, $(length(grads)) gradients"))
    check(GC.@preserve tensors gradients inputs into C.tt_backward_all(ctx(), list, grads, length(list), opts))
    relieve()
    return
end

"""
    grad(outputs, inputs; grad_outputs, retain_graph, create_graph=false, allow_unused=false)

The gradients of outputs (a tensor or several) with respect to inputs: one if inputs is a tensor, else a vector.
"""
function grad(outputs, inputs; grad_outputs=nothing, retain_graph=nothing, create_graph::Bool=false, allow_unused::Bool=false)
    outputs, all_inputs, grad_outputs = map(listed, (outputs, inputs, grad_outputs))
    of, by = handles(outputs), handles(all_inputs)
    given_grads = grad_outputs === nothing ? Ptr{Cvoid}[] : handles(grad_outputs)
    set = C.TT_GRAD_CREATE_GRAPH | C.TT_GRAD_ALLOW_UNUSED | given(grad_outputs, 0) | given(retain_graph, 1)
    opts = Ref(C.tt_grad_opts(set, pointer(given_grads), length(given_grads), flag(retain_graph), create_graph, allow_unused))
    outs = fill(C_NULL, length(by))
    check(GC.@preserve outputs all_inputs grad_outputs given_grads C.tt_grad(ctx(), of, length(of), by, length(by), opts, outs))
    return inputs isa Tensor ? wrap_or_nothing(outs[1]) : map(wrap_or_nothing, outs)
end

# ---- modes: of the task ----

function with_grad(f, on)
    previous = set_grad_enabled!(on)
    try f() finally set_grad_enabled!(previous) end
end
"no_grad() do … end: operators inside record no gradients. A mode of this task: others, also those begun inside, record."
no_grad(f) = with_grad(f, false)
"enable_grad() do … end: operators inside record gradients, also within no_grad."
enable_grad(f) = with_grad(f, true)

"detect_anomaly() do … end: a backward fails at the first operator whose gradient has nan, and names it."
function detect_anomaly(f)
    previous = set_anomaly_enabled!(true)
    try f() finally set_anomaly_enabled!(previous) end
end

# ---- nodes ----

"The nodes of its inputs; nothing for a leaf or no gradient."
next_functions(n::Node) = [next_function(n, i) for i in 1:num_inputs(n)]
"Before the formula, on the gradients of the outputs; `register_hook`: after it, on those of the inputs."
register_prehook(f, n::Node) = hook(C.tt_node_register_hook, C.tt_node_remove_hook, n, :node_hook, f, 1)
register_hook(f, n::Node) = hook(C.tt_node_register_hook, C.tt_node_remove_hook, n, :node_hook, f, 0)
show_live(io, n::Node) = print(io, "<", name(n), " node>")

# ---- functions of the host ----

"""
    f = CustomFunction(forward, backward; outputs=1, name="function")
    y = f(x…)

`forward(c, x…)` computes without recording and may keep tensors by `save_for_backward(c, t…)`; `backward(c, grads…)`, gets them by
`saved_tensors(c)`, returns one gradient (or nothing) per input.
"""
struct CustomFunction
    forward::Any
    backward::Any
    outputs::Int
    name::String
end
CustomFunction(forward, backward; outputs=1, name="function") = CustomFunction(forward, backward, outputs, name)

function (f::CustomFunction)(inputs::Tensor...)
    poll()
    call = (forward = f.forward, backward = f.backward, n_saved = Ref(0))
    outs = fill(C_NULL, f.outputs)
    def = Ref(C.tt_function_def(sizeof(C.tt_function_def), pointer(f.name), keep(call), ENTRY[:function_forward], ENTRY[:function_backward], DROP[]))
    check(GC.@preserve f inputs C.tt_function_apply(ctx(), def, handles(inputs), length(inputs), outs, length(outs)))
    return f.outputs == 1 ? wrap(outs[1]) : map(wrap, (outs...,))
end
function save_for_backward(c::FunctionContext, tensors::Union{Tensor, Nothing}...)
    check(GC.@preserve tensors C.tt_function_save(ctx(), c.h, handles(tensors), length(tensors)))
    c.n_saved[] += length(tensors)
    return
end
function saved_tensors(c::FunctionContext)
    return [wrap_or_nothing(handle_out(o -> C.tt_function_saved(ctx(), c.h, i - 1, o))) for i in 1:c.n_saved[]]
end
