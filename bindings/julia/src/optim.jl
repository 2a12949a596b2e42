# Optimizers, clipping, schedules; their constructors are generated (gen/optim.jl).

"""
Takes params: a list of tensors or of groups `(params = …, lr = …)`, or a model or several.
Returns the tensors, if they are one group, and the groups.
"""
function grouped(params)
    params isa Union{Tensor, Number} &&
        throw(ArgumentError("params is a $(typeof(params)): must be a list of tensors or a model"))
    is_list = params isa Union{AbstractVector, Tuple, Base.Generator}
    list = is_list ? collect(Any, params) : []
    is_group(x) = x isa NamedTuple && haskey(x, :params)
    Base.any(is_group, list) && return Tensor[], list
    Base.any(x -> x isa Union{Tensor, Number}, list) || (list = parameters(is_list ? list : params))
    isempty(list) && throw(ArgumentError("params has no tensors that require gradients"))
    return checked_tensors(list), []
end
function checked_tensors(list)
    for x in list
        x isa Tensor || throw(ArgumentError("params has a $(typeof(x)): must be tensors"))
    end
    return Tensor[t for t in list]
end
function made_optimizer(h, groups)
    opt = own(Optimizer, h)
    for g in groups
        values = (name => x for (name, x) in pairs(g) if name !== :params)
        add_param_group!(opt, g.params; values...)
    end
    return opt
end
"""
    TT.add_param_group!(opt, params; values…)

Adds a group of parameters, whose values (`lr`, `weight_decay`, …) are those of opt unless given.
Returns the group.
"""
function add_param_group!(opt::Optimizer, params; values...)
    list = params isa Tensor ? [params] : checked_tensors(params)
    check(GC.@preserve list C.tt_optim_add_param_group(ctx(), opt, handles(list), length(list)))
    group = ParamGroup(opt, num_groups(opt))
    foreach(((name, x),) -> setproperty!(group, name, x), pairs(values))
    return group
end

"A group of parameters; its values are properties: lr, weight_decay, betas …"
struct ParamGroup
    opt::Optimizer
    index::Int
end
Base.length(g::ParamGroup) = Int(C.tt_optim_group_size(getfield(g, :opt), getfield(g, :index) - 1))
function group_value(g::ParamGroup, name)
    out = Ref(0.0)
    check(C.tt_optim_get_f64(ctx(), getfield(g, :opt), getfield(g, :index) - 1, name, out))
    return out[]
end
function Base.getproperty(g::ParamGroup, name::Symbol)
    name === :params && return params_of(getfield(g, :opt), getfield(g, :index))
    haskey(OPTIM_PARTS, name) && return map(part -> group_value(g, part), OPTIM_PARTS[name])
    return group_value(g, String(name))
end
function Base.setproperty!(g::ParamGroup, name::Symbol, x)
    opt, index = getfield(g, :opt), getfield(g, :index) - 1
    names, values = haskey(OPTIM_PARTS, name) ? (OPTIM_PARTS[name], x) : ((String(name),), (x,))
    foreach((n, v) -> check(C.tt_optim_set_f64(ctx(), opt, index, n, v)), names, values)
    return x
end
function params_of(opt::Optimizer, group)
    before = Base.sum(Int[C.tt_optim_group_size(opt, g - 1) for g in 1:group-1])
    return [parameter(opt, before + i) for i in 1:C.tt_optim_group_size(opt, group - 1)]
end
described(opt::Optimizer) =
    "$(num_parameters(opt)) parameters, lr = " * join([g.lr for g in opt.param_groups], ", ")
Base.show(io::IO, g::ParamGroup) =
    print(io, "ParamGroup(", length(g), " parameters, lr = ", g.lr, ")")
Base.propertynames(::Optimizer) = (:param_groups,)
Base.getproperty(opt::Optimizer, name::Symbol) =
    name === :param_groups ? [ParamGroup(opt, g) for g in 1:num_groups(opt)] :
    error("an Optimizer has no property $name")

"""
    TT.step!(opt)
    TT.step!(opt, gradients)
    TT.step!(opt) do loss end

Updates each parameter that has a gradient. `gradients` takes the place of theirs: one for each
parameter of opt, in order, as `TT.gradient` returns them for a model. With a function that clears
the gradients, computes the loss and runs backward, returns the loss.
"""
step!(opt::Optimizer) = (check(C.tt_optim_step(ctx(), opt)); nothing)
function step!(opt::Optimizer, gradients::Union{AbstractVector, Tuple})
    params = [parameter(opt, i) for i in 1:num_parameters(opt)]
    length(params) == length(gradients) || throw(DimensionMismatch(
        "$(length(gradients)) gradients for $(length(params)) parameters"))
    foreach((p, g) -> p.grad = g, params, gradients)
    step!(opt)
    foreach(p -> p.grad = nothing, params)
end
step!(f, opt::Optimizer) = wrap_or_nothing(handle_out(o -> C.tt_optim_step_closure(ctx(), opt,
    entry_optim_closure(), hold(f), drop(), o)))

# (name => value) of the i-th entry of a list of C's
function named_entry(call, out)
    buffer = fill(0x00, 96)
    check(call(buffer, length(buffer), out))
    return GC.@preserve buffer unsafe_string(pointer(buffer))
end
numbers_of(n, call) = Dict(begin
    out = Ref(0.0)
    named_entry((b, cap, o) -> call(i - 1, b, cap, o), out) => out[]
end for i in 1:n)

"""
The whole state, as `(tensors = …, numbers = …)` by names such as `state.0.exp_avg` and
`param_groups.0.lr`, which count from 0 as in files.
"""
function state_dict(opt::Optimizer)
    tensors = Dict(begin
        out = Ref{Ptr{Cvoid}}(C_NULL)
        key = named_entry((b, cap, o) -> C.tt_optim_tensor_at(ctx(), opt, i - 1, b, cap, o), out)
        key => wrap(out[])
    end for i in 1:C.tt_optim_num_tensors(opt))
    return (tensors = tensors, numbers = numbers_of(C.tt_optim_num_numbers(opt),
        (i, b, cap, o) -> C.tt_optim_number_at(ctx(), opt, i, b, cap, o)))
end
"""
    TT.load_state_dict!(opt, state)

Loads what `TT.state_dict(opt)` has returned, or a dict of the same names, such as a part of a file
of PyTorch's: numbers may be tensors of one element there. All is loaded, or nothing if an entry
does not fit. Returns opt.
"""
function load_state_dict!(opt::Optimizer, state)
    function load(state)
        for (name, x) in entries_of(state)
            is_number = x isa Number || is_number_name(name)
            check(is_number ? C.tt_optim_load_number(ctx(), opt, name, Float64(x)) :
                  C.tt_optim_load_tensor(ctx(), opt, name, x))
        end
    end
    before = state_dict(opt)
    try
        load(state)
    catch
        for (name, _) in entries_of(state)
            haskey(before.tensors, name) || haskey(before.numbers, name) || remove_entry!(opt, name)
        end
        load(before)
        rethrow()
    end
    return opt
end
is_number_name(name) = startswith(name, "param_groups.") || endswith(name, ".step")
entries_of(state) = state isa NamedTuple{(:tensors, :numbers)} ?
    Iterators.flatten((pairs(state.tensors), pairs(state.numbers))) : pairs(state)
"Removes an entry such as `state.3.exp_avg` or `param_groups.0.initial_lr`, if there is one."
function remove_entry!(opt, name)
    parts = Base.split(name, '.'; limit=3)
    length(parts) == 3 || return
    # An unknown name is an error of C: there is nothing to remove then.
    parts[1] == "param_groups" && C.tt_optim_load_number(ctx(), opt, name, NaN)
    param = tryparse(Int64, parts[2])
    parts[1] == "state" && param !== nothing &&
        C.tt_optim_set_state(ctx(), opt, param, String(parts[3]), C_NULL)
end

# ---- clipping ----

"Scales the gradients of params so that their norm, which it returns, is at most max_norm."
function clip_grad_norm!(params, max_norm; norm_type=2.0, error_if_nonfinite::Bool=false)
    list = params isa Tensor ? [params] : collect(Tensor, params)
    opts = Ref(C.tt_clip_grad_norm_opts(C.TT_CLIP_GRAD_NORM_NORM_TYPE |
        C.TT_CLIP_GRAD_NORM_ERROR_IF_NONFINITE, norm_type, error_if_nonfinite))
    return wrap(GC.@preserve list handle_out(o -> C.tt_clip_grad_norm_(ctx(), handles(list),
        length(list), max_norm, opts, o)))
end
"Clips each element of the gradients of params to at most `clip_value` in magnitude."
function clip_grad_value!(params, clip_value)
    list = params isa Tensor ? [params] : collect(Tensor, params)
    check(GC.@preserve list C.tt_clip_grad_value_(ctx(), handles(list), length(list), clip_value))
end

# ---- schedules ----

"The learning rates of the groups."
function get_last_lr(s::Scheduler)
    n, out = Ref(Int64(0)), Vector{Float64}(undef, 16)
    while (status = C.tt_scheduler_get_last_lr(ctx(), s, out, length(out),
        n)) == C.TT_BUFFER_TOO_SMALL
        resize!(out, 2 * length(out))
    end
    check(status)
    return out[1:n[]]
end
described(s::Scheduler) = "last_epoch = $(last_epoch(s)), lr = $(join(get_last_lr(s), ", "))"
state_dict(s::Scheduler) = numbers_of(C.tt_scheduler_num_numbers(s),
    (i, b, cap, o) -> C.tt_scheduler_number_at(ctx(), s, i, b, cap, o))
function load_state_dict!(s::Scheduler, state)
    load(numbers) = foreach(((name, x),) -> check(C.tt_scheduler_load_number(ctx(), s, name,
        Float64(x))), pairs(numbers))
    before = state_dict(s)
    try
        load(state)
    catch
        load(before)
        rethrow()
    end
    return s
end

const Functions = Union{Base.Callable, Tuple, AbstractVector}  # one, or one for each group
function lambda_scheduler(call, f, opt, last_epoch)
    poll()
    by_group(epoch, group) = f isa Union{Tuple, AbstractVector} ? f[group + 1](epoch) : f(epoch)
    return own(Scheduler,
        handle_out(o -> call(ctx(), opt, entry_lr_lambda_fn(), hold(by_group), drop(), last_epoch,
        o)))
end
"""
    optim.LambdaLR(opt) do epoch … end
    optim.LambdaLR(opt, f)

Multiplies the first learning rate by what the function, or one for each group, returns. Epochs
count from 0.
"""
LambdaLR(opt::Optimizer, f; last_epoch=-1) = lambda_scheduler(C.tt_lr_lambda, f, opt, last_epoch)
LambdaLR(f::Functions, opt::Optimizer; last_epoch=-1) = LambdaLR(opt, f; last_epoch=last_epoch)
"`optim.MultiplicativeLR(opt) do epoch … end` multiplies the last learning rate."
MultiplicativeLR(opt::Optimizer, f; last_epoch=-1) = lambda_scheduler(C.tt_lr_multiplicative, f,
    opt, last_epoch)
MultiplicativeLR(f::Functions, opt::Optimizer; last_epoch=-1) = MultiplicativeLR(opt, f;
    last_epoch=last_epoch)
