# Tensors of modules that are computed before each forward: parametrizations, as
# torch.nn.utils.parametrize and parametrizations have them, and pruning (prune.jl).

"A forward pre-hook that sets the tensor `name` of the module at an address."
mutable struct TensorHook
    compute::Any
    address::Ptr{Cvoid}
    kind::Symbol
    name::String
    hook::Any  # (how to remove it, its id): a Hook would own the module
end
function (h::TensorHook)(m, inputs)
    register_buffer!(m, h.name, h.compute(m); persistent=false)
    return nothing
end

"The hook of this kind on a tensor of m, or on any; nothing without one."
function tensor_hook(m::Module, kind, name=nothing)
    poll()  # what C has dropped is held no more
    address = handle_of(m)
    lock(HELD_LOCK)
    try
        for h in values(HELD)
            h isa TensorHook && h.address == address && h.kind === kind &&
                (name === nothing || h.name == name) && return h
        end
    finally
        unlock(HELD_LOCK)
    end
    return nothing
end

"""
Makes the parameter `name` a buffer that is not saved, which `compute(m)` sets now and before each
forward.
"""
function hook_tensor!(compute, m::Module, kind::Symbol, name::String)
    value = compute(m)
    register_parameter!(m, name, nothing)
    register_buffer!(m, name, value; persistent=false)
    return register_tensor_hook!(compute, m, kind, name)
end
function register_tensor_hook!(compute, m::Module, kind::Symbol, name::String)
    h = TensorHook(compute, handle_of(m), kind, name, nothing)
    registered = register_forward_pre_hook(h, m)
    h.hook = (registered.remove, registered.id)
    return m
end
"Removes the hook, and makes value the parameter."
function unhook_tensor!(m::Module, kind::Symbol, name::String, value)
    remove!(Hook(m, tensor_hook(m, kind, name).hook...))
    register_buffer!(m, name, nothing; persistent=false)
    register_parameter!(m, name, value)
    return m
end

# ---- copies of modules ----

"The hooks of all modules, in the order in which they were registered."
function all_tensor_hooks()
    poll()
    lock(HELD_LOCK)
    try
        keys_of = [key for (key, h) in HELD if h isa TensorHook]
        return TensorHook[HELD[key] for key in Base.sort!(keys_of)]
    finally
        unlock(HELD_LOCK)
    end
end
"Makes the copy of a module compute the tensors that the module computes; returns the copy."
function copy_tensor_hooks!(made::Module, m::Module)
    hooks = all_tensor_hooks()
    isempty(hooks) && return made
    todo, seen = [(made, m)], Set{Ptr{Cvoid}}()
    while !isempty(todo)
        to, from = pop!(todo)
        address = handle_of(from)
        address in seen && continue
        push!(seen, address)
        for h in hooks
            h.address == address && register_tensor_hook!(h.compute, to, h.kind, h.name)
        end
        foreach(i -> push!(todo, (to[i], from[i])), 1:length(from))
    end
    return made
end
"The same for the copies of a layer that a stack of them has; returns the stack."
function stacked(stack::Module, layer::Module)
    foreach(made -> copy_tensor_hooks!(made, layer), get_submodule(stack, "layers"))
    return stack
end

# ---- parametrizations ----

function tensor_named(m, name)
    t = get_tensor(m, name)
    t === nothing && throw(ArgumentError("a $(module_type(m)) has no tensor $name"))
    return t
end
"The tensor of this name, which must be no buffer."
function parameter_named(m, name)
    name in first.(named_buffers(m)) &&
        throw(ArgumentError("$name is a buffer of a $(module_type(m)): must be a parameter"))
    return tensor_named(m, name)
end
"Copies a value into a parameter of the same size, and returns the parameter."
overwrite!(parameter, value) = (no_grad(() -> copyto!(parameter, value)); parameter)
parametrizations_of(m, name) = get_submodule(m, "parametrizations.$name")
originals_of(list) =
    [t for (name, t) in named_parameters(list) if startswith(name, "original") && !('.' in name)]
function parametrized(list)
    x = list[1](originals_of(list)...)
    for i in 2:length(list)
        x = list[i](x)
    end
    return x
end

"Whether the tensor of this name, or any tensor of the module, is parametrized."
is_parametrized(m::Module, name=nothing) =
    tensor_hook(m, :parametrization, name === nothing ? nothing : String(name)) !== nothing

"""
    nn.parametrize.register_parametrization!(m, name, f)

Makes the parameter `name` of a module the result of f, a module or a function, for the parameter's
value, which becomes the parameter `parametrizations.NAME.original`. A second parametrization of a
name gets the result of the first.

The tensor is a buffer that is not saved. Each call of the module computes it; in between it is that
of the last call. Copies of the module compute theirs. The module cannot be frozen: call
`nn.parametrize.remove_parametrizations!` first.
"""
function register_parametrization!(m::Module, name, f)
    name, f = String(name), as_module(f)
    train!(f, is_training(m))
    again = is_parametrized(m, name)
    value = again ? tensor_named(m, name) : parameter_named(m, name)
    made = no_grad(() -> f(value))
    made isa Tensor && size(made) == size(value) && eltype(made) == eltype(value) ||
        throw(DimensionMismatch("a parametrization must return a tensor like its argument, " *
                                "$(eltype(value)) $(size(value)), not $(typeof(made))"))
    again || return parametrize_with!(m, name, f, ["original" => value])
    list = parametrizations_of(m, name)
    push!(list, f)
    return register_buffer!(m, name, parametrized(list); persistent=false)
end
"Registers the first parametrization of a name, and the parameters that it gets."
function parametrize_with!(m, name, f, originals)
    list = push!(ModuleList(), f)
    foreach(((original, t),) -> register_parameter!(list, original, t), originals)
    has_some = Base.any(==("parametrizations"), first.(named_children(m)))
    all_lists = has_some ? get_submodule(m, "parametrizations") : ModuleDict()
    register_module!(all_lists, name, list)
    has_some || register_module!(m, "parametrizations", all_lists)
    return hook_tensor!(m -> parametrized(parametrizations_of(m, name)), m, :parametrization, name)
end

"""
    nn.parametrize.remove_parametrizations!(m, name; leave_parametrized=true)

Makes the tensor `name` a parameter again, with the value that it has, or, unless
`leave_parametrized`, with that of the original. A single original becomes this parameter, so that
an optimizer of the original goes on updating it.
"""
function remove_parametrizations!(m::Module, name; leave_parametrized::Bool=true)
    name = String(name)
    is_parametrized(m, name) ||
        throw(ArgumentError("$name of a $(module_type(m)) is not parametrized"))
    list = parametrizations_of(m, name)
    originals = originals_of(list)
    leave_parametrized || length(originals) == 1 || throw(ArgumentError(
        "leave_parametrized is false, but $name is computed from several tensors"))
    value = originals[1]
    if leave_parametrized
        found = no_grad(() -> copy(parametrized(list)))
        learnt = Base.any(t -> t.requires_grad, originals)
        value = length(originals) == 1 ? overwrite!(value, found) : requires_grad!(found, learnt)
    end
    unhook_tensor!(m, :parametrization, name, value)
    register_module!(get_submodule(m, "parametrizations"), name, ModuleList())
    return m
end

"The norm of each slice of v along dim, with the number of dims of v; one norm for nothing."
function norm_except_dim(v, dim)
    dim === nothing && return norm(v)
    rows = reshape(transpose(v, 1, dim), size(v, dim), -1)
    return reshape(norm(rows, 2, 2), [d == dim ? -1 : 1 for d in 1:ndims(v)]...)
end

"""
    nn.parametrize.weight_norm!(m, name="weight"; dim=1)

Parametrizes a weight by its norms, `original0`, and its directions, `original1`: Salimans and
Kingma, 2016. There is a norm for each index in dim, or one norm for `nothing`.
"""
function weight_norm!(m::Module, name="weight"; dim::Union{Integer, Nothing}=1)
    weight = parameter_named(m, name)
    dim === nothing || 1 <= dim <= ndims(weight) ||
        throw(ArgumentError("dim is $dim: must be in 1:$(ndims(weight)), or nothing"))
    norms = requires_grad!(no_grad(() -> copy(norm_except_dim(weight, dim))), weight.requires_grad)
    f = new_module((m, g, v) -> v .* (g ./ norm_except_dim(v, dim)), "_WeightNorm", nothing, ())
    return parametrize_with!(m, String(name), f, ["original0" => norms, "original1" => weight])
end

normalized(x, eps) = x ./ clamp(norm(x); min=eps)
as_matrix(weight, dim) = flatten(movedim(weight, dim, 1), 2)
"The singular vectors after n power iterations."
function iterated(matrix, u, v, n, eps)
    for _ in 1:n
        u = normalized(mv(matrix, v), eps)
        v = normalized(mv(conj(t(matrix)), u), eps)
    end
    return u, v
end

"""
    nn.parametrize.spectral_norm!(m, name="weight"; n_power_iterations=1, eps=1e-12, dim=nothing)

Makes a weight that which is learnt, divided by its largest singular value: Miyato et al., 2018.
Power iterations estimate the singular value, further ones in each call in training. dim: that of
the outputs; nothing: 2 for transposed convolutions, else 1.
"""
function spectral_norm!(m::Module, name="weight"; n_power_iterations::Integer=1, eps::Real=1e-12,
        dim::Union{Integer, Nothing}=nothing)
    weight = parameter_named(m, name)
    usual = startswith(module_type(m), "ConvTranspose") ? 2 : 1
    d = dim === nothing ? usual : dim
    d = d < 0 ? ndims(weight) + 1 + d : d
    1 <= d <= ndims(weight) ||
        throw(ArgumentError("dim is $dim: $name has $(ndims(weight)) dims"))
    n_power_iterations >= 1 ||
        throw(ArgumentError("n_power_iterations is $n_power_iterations: must be at least 1"))
    f = new_module("_SpectralNorm", nothing, ()) do own, w
        ndims(w) == 1 && return normalized(w, eps)
        matrix = as_matrix(w, d)
        u, v = get_tensor(own, "_u"), get_tensor(own, "_v")
        is_training(own) && no_grad() do
            new_u, new_v = iterated(detach(matrix), u, v, n_power_iterations, eps)
            copyto!(u, new_u)
            copyto!(v, new_v)
        end
        u, v = copy(u), copy(v)  # later iterations write to the buffers
        return w ./ vdot(u, mv(matrix, v))
    end
    train!(f, is_training(m))
    ndims(weight) > 1 && no_grad() do
        matrix = as_matrix(detach(weight), d)
        draw(n) = normalized(randn(n; dtype=eltype(matrix), device=matrix.device), eps)
        u, v = draw(size(matrix, 1)), draw(size(matrix, 2))
        u, v = iterated(matrix, u, v, 15, eps)
        register_buffer!(f, "_u", u)
        register_buffer!(f, "_v", v)
    end
    return parametrize_with!(m, String(name), f, ["original" => weight])
end

# ---- orthogonal ----

adjoint_of(x) = transpose(x, -2, -1)
"Q of the QR decomposition with a positive diagonal of R."
function orthogonal_factor(a)
    q, r = qr(a)
    return q .* unsqueeze(sgn(diagonal(r; dim1=-2, dim2=-1)), -2)
end
function is_orthogonal(q)
    n = size(q, ndims(q))
    tolerance = 10 * size(q, ndims(q) - 1) * Float64(Base.eps(eltype(q)))
    error = matmul(adjoint_of(q), q) .- eye(n; dtype=eltype(q), device=q.device)
    return Float64(max(abs(error))) <= tolerance
end
"The orthogonal matrix of the skew-symmetric part of x, by an exponential or Cayley's map."
function of_skew(x, map)
    n, k = size(x)[end-1:end]
    x = tril(x)
    n == k || (x = cat([x, new_zeros_like(x, n - k)], -1))
    a = x .- adjoint_of(x)
    map == "matrix_exp" && return narrow(matrix_exp(a), -1, 1, k)
    one = eye(n; dtype=eltype(a), device=a.device)
    return narrow(linalg_solve(one .- a ./ 2, one .+ a ./ 2), -1, 1, k)
end
new_zeros_like(x, columns) =
    zeros((size(x)[1:end-1]..., columns); dtype=eltype(x), device=x.device)
"The product of the reflections of the columns of x; its signs are those of the diagonal."
function of_reflections(x)
    a = tril(x, -1)
    tau = 2 ./ (1 .+ sum(a .* a, -2))
    signs = trunc(diagonal(detach(x); dim1=-2, dim2=-1))
    return linalg_householder_product(a, tau) .* unsqueeze(signs, -2)
end

"""
    nn.parametrize.orthogonal!(m, name="weight"; orthogonal_map=nothing, use_trivialization=true)

Parametrizes a real matrix, or a batch of them, so that its columns are orthonormal, or its rows if
there are fewer. `orthogonal_map` is `"matrix_exp"`, `"cayley"` or `"householder"`; nothing: the
first for square matrices, else the last. With `use_trivialization` the orthogonal matrix of the
original is multiplied by a fixed one, the buffer `base`: the weight if it is orthogonal, else its
factor Q.
"""
function orthogonal!(m::Module, name="weight"; orthogonal_map=nothing,
        use_trivialization::Bool=true)
    weight = parameter_named(m, name)
    ndims(weight) >= 2 && eltype(weight) <: AbstractFloat ||
        throw(ArgumentError("$name is $(eltype(weight)) $(size(weight)): must be a matrix, or a " *
                            "batch of matrices, of real numbers"))
    n, k = size(weight)[end-1:end]
    map = something(orthogonal_map, n == k ? "matrix_exp" : "householder")
    map in ("matrix_exp", "cayley", "householder") || throw(ArgumentError(
        "orthogonal_map is \"$map\": must be \"matrix_exp\", \"cayley\" or \"householder\""))
    f = new_module("_Orthogonal", nothing, ()) do own, x
        x = n < k ? adjoint_of(x) : x
        q = map == "householder" ? of_reflections(x) : of_skew(x, map)
        use_trivialization && (q = matmul(get_tensor(own, "base"), q))
        return n < k ? adjoint_of(q) : q
    end
    tall = detach(n < k ? adjoint_of(weight) : weight)
    original = no_grad() do
        use_trivialization && return trivial_original(f, weight, tall, n == k)
        map == "householder" || return weight
        a, tau = geqrf(tall)
        signs = sign(diagonal(a; dim1=-2, dim2=-1))
        signs = TT.where(tau .== 0, .-signs, signs)
        a = diagonal_scatter(a, signs; dim1=-2, dim2=-1)
        return copy(n < k ? adjoint_of(a) : a)
    end
    original === weight || requires_grad!(original, weight.requires_grad)
    return parametrize_with!(m, String(name), f, ["original" => original])
end
"Sets the base, and returns the original for which the weight is its first columns."
function trivial_original(f, weight, tall, square)
    rows, columns = size(tall)[end-1:end]
    if square
        base = is_orthogonal(tall) ? copy(tall) : orthogonal_factor(tall)
    else
        sizes = (size(tall)[1:end-2]..., rows, rows - columns)
        more = randn(sizes; dtype=eltype(tall), device=tall.device)
        base = orthogonal_factor(cat([tall, more], -1))
    end
    register_buffer!(f, "base", base)
    n, k = size(weight)[end-1:end]
    minus = .-eye(n, k; dtype=eltype(weight), device=weight.device)
    return copy(expand(minus, size(weight)))
end
