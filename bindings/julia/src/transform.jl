# Transforms of functions of tensors, and mixed precision.

"Calls a transform of C with a function, which gets tensors and returns one or several."
function transformed(call, f)
    poll()
    return call(entry_fn(), hold(inputs -> f(inputs...)), drop())
end

const RESULTS = 1024  # of a function in C
"Takes the first n tensors that C has written."
taken(list, n) = [wrap_or_nothing(list[i]) for i in 1:n]
one_or_all(list) = length(list) == 1 ? list[1] : (list...,)
none_or_all(list) = isempty(list) ? nothing : one_or_all(list)

"""
    TT.checkpoint(f, x…; keep=())

f(x…), without the tensors that its operators need for backward: the first that is read calls f
again, with the same inputs, random numbers and autocast. Gradients of any order, those of
parameters that f uses among them, are as without a checkpoint.

The second call has the results of the operators named by `keep`, such as `("matmul",)`, without
computing them; they must not be written to. Those are operators that f calls, or of which these
consist. Views, and operators that write to their arguments, are always called again.
"""
function checkpoint(f, x::Tensor...; keep=())
    list, outs, n = handles(x), fill(C_NULL, RESULTS), Ref(Int64(0))
    if !isempty(keep)
        ops = [find_op(name) for name in keep]
        transformed((fn, user, drop) -> check(GC.@preserve x C.tt_selective_checkpoint_function(
            ctx(), fn, user, drop, list, length(list), ops, length(ops), outs, RESULTS, n)), f)
        return one_or_all(taken(outs, n[]))
    end
    transformed((fn, user, drop) -> check(GC.@preserve x C.tt_checkpoint_function(ctx(), fn, user,
        drop, list, length(list), outs, RESULTS, n)), f)
    return one_or_all(taken(outs, n[]))
end

"""
    TT.vjp(f, x…; cotangents=nothing)

The results of f(x…) beside the products of cotangents (one per result) and the Jacobian matrices,
as (val = …, grad = …) with a gradient per x. Without cotangents f returns a tensor of one element.
"""
function vjp(f, x::Tensor...; cotangents=nothing)
    list, v = handles(x), cotangents === nothing ? nothing : listed(cotangents)
    weights = v === nothing ? Ptr{Cvoid}[] : handles(v)
    outs, n, grads = fill(C_NULL, RESULTS), Ref(Int64(0)), fill(C_NULL, length(list))
    transformed((fn, user, drop) -> check(GC.@preserve x v C.tt_vjp(ctx(), fn, user, drop, list,
        length(list), weights, length(weights), outs, RESULTS, n, grads)), f)
    return (val = one_or_all(taken(outs, n[])), grad = (taken(grads, length(grads))...,))
end

"""
    TT.jvp(f, x, tangents)

The results of f(x…) beside their derivatives in the direction of tangents, one per item of x, as
(val = …, tangent = …).
"""
function jvp(f, x, tangents)
    x, tangents = map(listed, (x, tangents))
    list, v = handles(x), handles(tangents)
    length(list) == length(v) ||
        throw(DimensionMismatch("$(length(list)) inputs, $(length(v)) tangents"))
    outs, n, products = fill(C_NULL, RESULTS), Ref(Int64(0)), fill(C_NULL, RESULTS)
    transformed((fn, user, drop) -> check(GC.@preserve x tangents C.tt_jvp(ctx(), fn, user, drop,
        list, v, length(list), outs, products, RESULTS, n)), f)
    return (val = one_or_all(taken(outs, n[])), tangent = one_or_all(taken(products, n[])))
end

"""
    y, derivative = TT.linearize(f, x…)

The results of f(x…) and their derivative as a linear function of the tangents of x:
`derivative(v…)` gives Jacobian-vector products and does not call f again. Neither is recorded for
gradients; `TT.jvp` is.
"""
function linearize(f, x::Tensor...)
    leaf(t, learns) = requires_grad!(detach(t), learns)
    enable_grad() do
        primals = map(t -> leaf(t, true), x)
        value = f(primals...)
        results = listed(value)
        weights = [leaf(zeros_like(y), y.requires_grad) for y in results]
        # Products with Jacobian matrices from the left are linear in the weights of the results:
        # their derivative in the direction of the tangents is the product from the right.
        recorded = [y for y in results if y.requires_grad]
        given = [w for w in weights if w.requires_grad]
        products = isempty(recorded) ? [nothing for _ in x] : grad(recorded, collect(primals);
            grad_outputs=given, create_graph=true, allow_unused=true)
        results = map(detach, results)
        return value isa Tensor ? results[1] : (results...,),
            Linearized(primals, weights, products, value isa Tensor)
    end
end

"The derivative of a function, which `TT.linearize` has recorded."
struct Linearized
    primals::Tuple{Vararg{Tensor}}
    weights::Vector{Tensor}                  # of the results
    products::Vector{Union{Tensor, Nothing}} # of each x, linear in the weights
    of_one::Bool                             # f has returned a tensor, not several
end
Base.show(io::IO, d::Linearized) =
    print(io, "Linearized(of ", length(d.primals), " tensors to ", length(d.weights), ")")
function (d::Linearized)(tangents::Tensor...)
    length(tangents) == length(d.primals) || throw(DimensionMismatch(
        "linearize: $(length(tangents)) tangents for $(length(d.primals)) tensors"))
    for (i, (t, x)) in enumerate(zip(tangents, d.primals))
        size(t) == size(x) && eltype(t) == eltype(x) || throw(DimensionMismatch(
            "linearize: tangent $i is $(eltype(t)) of size $(size(t)): must be $(eltype(x)) of " *
            "size $(size(x))"))
    end
    used = [i for (i, p) in enumerate(d.products) if p !== nothing && p.requires_grad]
    weights = [w for w in d.weights if w.requires_grad]
    found = isempty(used) ? [nothing for _ in weights] : grad([d.products[i] for i in used],
        weights; grad_outputs=[tangents[i] for i in used], retain_graph=true, allow_unused=true)
    left = Iterators.Stateful(found)
    of(w) = w.requires_grad ? popfirst!(left) : nothing
    products = [p === nothing ? zeros_like(w) : p for (w, p) in ((w, of(w)) for w in d.weights)]
    return d.of_one ? products[1] : (products...,)
end

"""
    TT.hvp(f, x, v)

Computes f(x…), a tensor of one element, and the products of its Hessian matrix and v, one for
each item of x: (val = …, product = …).
"""
function hvp(f, x, v)
    x = listed(x)
    function value_and_gradient(x...)
        val, grad = vjp(f, x...)
        return (val, (g === nothing ? zeros_like(t) : g for (g, t) in zip(grad, x))...)
    end
    found = jvp(value_and_gradient, x, v)
    products = [p === nothing ? zeros_like(t) : p for (p, t) in zip(found.tangent[2:end], x)]
    return (val = found.val[1], product = one_or_all(products))
end

"""
    TT.dual_level() do … end

Opens a level of dual tensors for a block: the results of operators on them have tangents. Levels do
not nest.
"""
function dual_level(f)
    check(C.tt_dual_level_push(ctx()))
    try
        return f()
    finally
        check(C.tt_dual_level_pop(ctx()))
    end
end

"""
    TT.make_dual(primal, tangent)

A dual tensor of the open level: a view of primal with a tangent, of its dims and eltype.
"""
make_dual(primal::Tensor, tangent::Tensor) =
    wrap(handle_out(out -> C.tt_make_dual(ctx(), primal, tangent, out)))

"""
    TT.unpack_dual(t)

A tensor without its tangent at the open level, and the tangent or nothing: (primal = …, tangent =
…).
"""
function unpack_dual(t::Tensor)
    primal, tangent = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)
    check(C.tt_unpack_dual(ctx(), t, primal, tangent))
    return (primal = wrap(primal[]), tangent = wrap_or_nothing(tangent[]))
end

"A transform that gives matrices: a vector, or a matrix of them for several inputs or results."
function matrices(transform, f, x)
    list = handles(x)
    cap = length(list) * RESULTS
    outs, n = fill(C_NULL, cap), Ref(Int64(0))
    transformed((fn, user, drop) -> check(GC.@preserve x transform(ctx(), fn, user, drop, list,
        length(list), outs, cap, n)), f)
    found = taken(outs, n[])
    return length(found) == 1 ? found[1] : permutedims(Base.reshape(found, length(list), :))
end

"""
    TT.jacobian(f, x…)

The Jacobian matrix of f(x…), of the result's dims and those of x; for several results or x a matrix
of them, with a row for each result.
"""
jacobian(f, x::Tensor...) = matrices(C.tt_jacobian, f, x)

"""
    TT.hessian(f, x…)

The second derivatives of f(x…), a tensor of one element; for several x a matrix of them.
"""
hessian(f, x::Tensor...) = matrices(C.tt_hessian, f, x)

"""
    TT.vmap(f, x…; dims=1)

Calls f, a function of one sample, once for all samples: `dims` is the dimension of samples of each
x, or a tuple with one for each, `nothing` where each sample gets the whole x. Results have the
samples in front.
"""
function vmap(f, x::Tensor...; dims=1)
    list = handles(x)
    every = dims isa Integer ? fill(dims, length(list)) : collect(dims)
    numbers = Int64[d === nothing ? typemin(Int64) : d - 1 for d in every]
    outs, n = fill(C_NULL, RESULTS), Ref(Int64(0))
    GC.@preserve numbers begin
        opts = Ref(C.tt_vmap_opts(C.TT_VMAP_IN_DIMS, pointer(numbers), length(numbers), C_NULL, 0,
            0))
        transformed((fn, user, drop) -> check(GC.@preserve x C.tt_vmap(ctx(), fn, user, drop, list,
            length(list), opts, outs, RESULTS, n)), f)
    end
    return one_or_all(taken(outs, n[]))
end

"""
    TT.compile(; limit=8, dynamic=false) do x, y
        …
    end

A function that is recorded once for tensors alike and then replayed without dispatch, best a whole
training step: forward, backward, `TT.step!`. Tensors of other sizes or types make another record,
at most `limit`; beyond that, and where no record is possible, the function itself runs. What it
does besides computing with tensors happens in recorded calls only: `TT.compile_info`.
dynamic: once three records differ only in the size of one dimension, such as the batch, or five in
two, and follow from each other, records for further sizes are made without calling the function,
which must not decide by the size. It may be a whole training step.

f takes tensors and returns one, several in a tuple, or nothing.
"""
function compile(f; limit::Integer=8, dynamic::Bool=false)
    opts = Ref(C.tt_compile_opts(C.TT_COMPILE_LIMIT | C.TT_COMPILE_DYNAMIC, limit, dynamic, 0))
    return own(Compiled, handle_out(o -> transformed((fn, user, drop) -> C.tt_compile(ctx(), fn,
        user, drop, opts, o), (x...) -> recorded(f, x...))))
end

function (g::Compiled)(x::Tensor...)
    list, outs, n = handles(x), fill(C_NULL, RESULTS), Ref(Int64(0))
    poll()
    check(GC.@preserve x C.tt_compiled_call(ctx(), g, list, length(list), outs, RESULTS, n))
    return none_or_all(taken(outs, n[]))
end
function (g::Compiled)(x...; options...)
    other = isempty(options) ? first(v for v in x if !(v isa Tensor)) : first(options)
    throw(ArgumentError("a compiled function takes tensors, not $(repr(other)): " *
                        "let the function have other values from where it is defined"))
end

"""
    TT.compile_info(g)

What a compiled function has done: (records, replays, runs, reason); reason: why the last call that
ran the function was not recorded, or nothing.
"""
function compile_info(g::Compiled)
    info = Ref(C.tt_compiled_info(0, 0, 0, C_NULL))
    check(C.tt_compiled_get_info(ctx(), g, info))
    reason = info[].reason == C_NULL ? nothing : unsafe_string(info[].reason)
    return (records = info[].n_records, replays = info[].n_replays, runs = info[].n_runs,
        reason = reason)
end

"Drops the records of a compiled function; later calls make new ones."
reset!(g::Compiled) = check(C.tt_compiled_reset(ctx(), g))

"""
    TT.functional_call(m, tensors, x…)

Calls a module with other tensors in the place of the parameters and buffers of their names;
tensors: a StateDict, a Dict or pairs.
"""
function functional_call(m::Module, tensors, x::Union{Tensor, Nothing}...)
    state = StateDict(tensors)
    outs = list_out((outs, cap, n) -> GC.@preserve state x C.tt_functional_call(ctx(), m, state,
        handles(x), length(x), outs, cap, n))
    return one_or_all(outs)
end

"""
    params, buffers = TT.stack_module_state(models)

The parameters and the buffers of modules of one class, stacked by name along a new first dim: for
`TT.vmap` over `TT.functional_call`, which then computes all models at once. The parameters are
leaves, and require gradients where those of the first model do.

    names = keys(params)
    y = TT.vmap((tensors...) -> TT.functional_call(models[1], Dict(zip(names, tensors)), x),
        values(params)...)
"""
function stack_module_state(models)
    models = collect(Module, models)
    isempty(models) && throw(ArgumentError("stack_module_state: there are no models"))
    first_one = models[1]
    Base.all(m -> module_type(m) == module_type(first_one), models) ||
        throw(ArgumentError("stack_module_state: all models must be of the same class"))
    Base.all(m -> m.training == first_one.training, models) ||
        throw(ArgumentError("stack_module_state: all models must be in the same training mode"))
    return stacked_by_name(named_parameters, models), stacked_by_name(named_buffers, models)
end
function stacked_by_name(tensors_of, models)
    all_tensors = [collect(tensors_of(m)) for m in models]
    names = first.(all_tensors[1])
    Base.all(tensors -> first.(tensors) == names, all_tensors) || throw(ArgumentError(
        "stack_module_state: all models must have tensors of the same names"))
    made = StateDict()
    for (i, (name, t)) in enumerate(all_tensors[1])
        stacked = stack([detach(last(tensors[i])) for tensors in all_tensors])
        made[name] = requires_grad!(stacked, t.requires_grad)
    end
    return made
end

"""
    TT.autocast(; dtype=nothing, device=:cpu, enabled=true, cache=true) do … end

Mixed precision for tensors on a type of device, :cpu or :cuda: matrix products and convolutions
compute in dtype, BFloat16 on the CPU by default; losses in Float32. Call `backward` after the
block. cache: casts of parameters are kept until the outermost block ends.
"""
function autocast(f; dtype=nothing, device::Symbol=:cpu, enabled::Bool=true, cache::Bool=true)
    device in (:cpu, :cuda) || throw(ArgumentError("autocast: device must be :cpu or :cuda"))
    code = dtype === nothing ? 0 : dtype_code(dtype)
    check(C.tt_autocast_push(ctx(), device === :cpu ? 1 : 2, enabled, code, cache))
    try
        return f()
    finally
        check(C.tt_autocast_pop(ctx()))
    end
end

"""
    TT.GradScaler(; init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000,
        enabled=true)

A gradient scaler: `backward(TT.scale(s, loss))`, `TT.step!(s, opt)`, `TT.update!(s)`. A step
whose gradients have inf or nan is skipped, and the scale follows. `TT.get_state(s)` and
`TT.set_state!(s, state)` keep it.
"""
function GradScaler(; init_scale::Real=65536, growth_factor::Real=2, backoff_factor::Real=0.5,
        growth_interval::Integer=2000, enabled::Bool=true)
    opts = Ref(C.tt_grad_scaler_new_opts(0x1f, init_scale, growth_factor, backoff_factor,
        growth_interval, !enabled))
    return own(GradScaler, handle_out(o -> C.tt_grad_scaler_new(ctx(), opts, o)))
end
described(s::GradScaler) = "scale = $(get_scale(s))"
function get_state(s::GradScaler)
    state = Base.zeros(5)
    check(C.tt_grad_scaler_state(ctx(), s, state))
    return (state...,)
end
set_state!(s::GradScaler, state) =
    (check(C.tt_grad_scaler_set_state(ctx(), s, Float64[state...])); s)

"""
    TT.unscale_grads!(params, factor)

Multiplies the gradients of params by factor. Returns whether an element of them is inf or nan.
"""
function unscale_grads!(params, factor::Real)
    params = listed(params)
    found = Ref(Int32(0))
    check(GC.@preserve params C.tt_unscale_grads_(ctx(), handles(params), length(params), factor,
        found))
    return found[] != 0
end
