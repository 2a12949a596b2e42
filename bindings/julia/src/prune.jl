# Masks that zero parts of parameters, as torch.nn.utils.prune has them. A pruned parameter NAME is
# kept as NAME_orig, its mask as the buffer NAME_mask, and NAME is their product.

function pruned_count(amount, n)
    if amount isa Integer
        0 <= amount <= n || throw(ArgumentError("amount is $amount: must be in 0:$n"))
        return Int(amount)
    end
    0 <= amount <= 1 || throw(ArgumentError("amount is $amount: must be in [0, 1]"))
    return Base.round(Int, amount * n)
end
"The positions of a mask of one dim that are not 0, from 0."
left(mask) = reshape(nonzero(mask), -1)
"The mask with 0 at those of places, along dim, whose scores are the smallest."
function without_smallest(mask, dim, places, scores, amount)
    n = pruned_count(amount, length(scores))
    smallest = topk(scores, n; largest=false)[2]
    return index_fill(mask, dim, index_select(places, 1, smallest), 0)
end
random_scores(places) = to(rand(length(places)); device=places.device)

function mask_product(m, name)
    original = tensor_named(m, name * "_orig")
    return to(tensor_named(m, name * "_mask"); dtype=eltype(original)) .* original
end
is_pruned_tensor(m, name) = tensor_hook(m, :pruning, name) !== nothing
mask_of(m, name, value) =
    is_pruned_tensor(m, name) ? tensor_named(m, name * "_mask") : ones_like(detach(value))

"Applies select(scores, mask) to a parameter; the scores are its values, or those given."
function prune!(select, m::Module, name, scores=nothing)
    name = String(name)
    again = is_pruned_tensor(m, name)
    value = again ? tensor_named(m, name) : parameter_named(m, name)
    scores = scores === nothing ? value : scores
    size(scores) == size(value) || throw(DimensionMismatch(
        "scores are $(size(scores)): must have the size $(size(value)) of $name"))
    mask = no_grad(() -> select(detach(scores), mask_of(m, name, value)))
    register_buffer!(m, name * "_mask", mask)
    again && return register_buffer!(m, name, mask_product(m, name); persistent=false)
    register_parameter!(m, name * "_orig", value)
    return hook_tensor!(m -> mask_product(m, name), m, :pruning, name)
end

function unstructured(score, mask, amount)
    flat = reshape(mask, -1)
    places = left(flat)
    return reshape(without_smallest(flat, 1, places, score(places), amount), size(mask)...)
end
magnitudes(t) = places -> abs(index_select(reshape(t, -1), 1, places))
function structured(score, mask, dim, amount)
    n = ndims(mask)
    d = dim < 0 ? n + 1 + dim : dim
    n >= 2 && 1 <= d <= n ||
        throw(ArgumentError("dim is $dim of a tensor of $n dims: must be one of two or more"))
    places = left(sum(mask, [k for k in 1:n if k != d]))
    return without_smallest(mask, d, places, score(d, places), amount)
end

"`nn.prune.identity!(m, name)` makes mask and original of a parameter without pruning it."
prune_identity!(m::Module, name) = prune!((_, mask) -> mask, m, name)
"""
    nn.prune.random_unstructured!(m, name; amount)

Prunes random elements of a parameter. amount: their number, an integer, or their fraction in
[0, 1] of the elements that are not pruned yet. Returns the module.
"""
random_unstructured!(m::Module, name; amount::Real) =
    prune!((_, mask) -> unstructured(random_scores, mask, amount), m, name)
"""
    nn.prune.l1_unstructured!(m, name; amount, importance_scores=nothing)

Prunes the elements of a parameter with the smallest absolute values, or where those of
`importance_scores`, of the parameter's size, are the smallest. amount: their number, an integer, or
their fraction in [0, 1] of the elements that are not pruned yet. Returns the module.

The parameter NAME is kept as the parameter `NAME_orig`, its mask as the buffer `NAME_mask`. NAME is
a buffer of their product, which is not saved and which each call of the module computes, and of its
copies, too. The module cannot be frozen: call `nn.prune.remove!` first.
"""
l1_unstructured!(m::Module, name; amount::Real, importance_scores=nothing) =
    prune!((t, mask) -> unstructured(magnitudes(t), mask, amount), m, name, importance_scores)
"""
    nn.prune.random_structured!(m, name; amount, dim)

Prunes random slices of a parameter along dim. amount: their number, an integer, or their fraction
in [0, 1] of the slices that are not pruned yet. Returns the module.
"""
random_structured!(m::Module, name; amount::Real, dim::Integer) =
    prune!(m, name) do _, mask
        structured((_, places) -> random_scores(places), mask, dim, amount)
    end
"""
    nn.prune.ln_structured!(m, name; amount, n, dim, importance_scores=nothing)

Prunes the slices of a parameter along dim with the smallest norms of order n, or those of
`importance_scores`, of the parameter's size. amount: as in `nn.prune.random_structured!`. Returns
the module.
"""
ln_structured!(m::Module, name; amount::Real, n::Real, dim::Integer, importance_scores=nothing) =
    prune!(m, name, importance_scores) do t, mask
        structured(mask, dim, amount) do d, places
            rows = index_select(movedim(t, d, 1), 1, places)
            norm(reshape(rows, length(places), -1), n, 2)
        end
    end
"`nn.prune.custom_from_mask!(m, name, mask)` prunes the elements where a mask is 0."
custom_from_mask!(m::Module, name, mask::Tensor) = prune!(m, name) do t, before
    size(mask) == size(before) ||
        throw(DimensionMismatch("mask is $(size(mask)): must be $(size(before)) as $name"))
    before .* to(mask; dtype=eltype(t))
end
"""
    nn.prune.global_unstructured!(pairs; amount, method=:l1)

Prunes elements of several parameters, of all that they have together: those with the smallest
absolute values, or random ones for the method `:random`. pairs: `(module, name)` or
`module => name` for each parameter. Returns nothing.
"""
function global_unstructured!(pairs; amount::Real, method::Symbol=:l1)
    method in (:l1, :random) || throw(ArgumentError("method is :$method: must be :l1 or :random"))
    values = [detach(tensor_named(m, String(name))) for (m, name) in pairs]
    masks = [mask_of(m, String(name), value) for ((m, name), value) in zip(pairs, values)]
    everything(list) = cat([reshape(t, -1) for t in list])
    score = method === :l1 ? magnitudes(everything(values)) : random_scores
    mask, first = unstructured(score, everything(masks), amount), 1
    for ((m, name), value) in zip(pairs, values)
        custom_from_mask!(m, name, reshape(narrow(mask, 1, first, length(value)), size(value)...))
        first += length(value)
    end
    return nothing
end
"""
    nn.prune.remove!(m, name)

Writes the pruned values into the original, which is the parameter again, and removes the mask.
Returns the module.
"""
function remove_pruning!(m::Module, name)
    name = String(name)
    is_pruned_tensor(m, name) ||
        throw(ArgumentError("$name of a $(module_type(m)) is not pruned"))
    original = tensor_named(m, name * "_orig")
    overwrite!(original, no_grad(() -> mask_product(m, name)))
    unhook_tensor!(m, :pruning, name, original)
    register_parameter!(m, name * "_orig", nothing)
    register_buffer!(m, name * "_mask", nothing)
    return m
end
"Whether a parameter of the module, or of one below it, is pruned."
is_pruned(m::Module) = tensor_hook(m, :pruning) !== nothing || Base.any(is_pruned, m)
