# Gradient norms, vectors of parameters, random splits: what torch.nn.utils, torch.random and
# torch.utils have in a few lines.

"""
    TT.get_total_norm(tensors, norm_type=2; error_if_nonfinite=false)

The norm of order `norm_type` of all tensors as one vector, a tensor without dims; 0 without
tensors. With `error_if_nonfinite`, a norm that is nan or infinite is a `DomainError`.
"""
function get_total_norm(tensors, norm_type::Real=2; error_if_nonfinite::Bool=false)
    list = listed(tensors)
    isempty(list) && return zeros()
    total = no_grad(() -> norm(stack([norm(t, norm_type) for t in list]), norm_type))
    error_if_nonfinite && !Base.isfinite(Float64(total)) &&
        throw(DomainError(Float64(total), "the total norm must be finite"))
    return total
end

"""
    TT.clip_grads_with_norm!(params, max_norm, total_norm)

Multiplies the gradients of params by `min(1, max_norm / (total_norm + 1e-6))`. Parameters without
a gradient are skipped.
"""
function clip_grads_with_norm!(params, max_norm::Real, total_norm::Tensor)
    no_grad() do
        factor = clamp(max_norm / (total_norm + 1e-6); max=1)
        for p in listed(params)
            p.grad === nothing || mul!(p.grad, factor)
        end
    end
end

"""
    TT.fuse_conv_bn_weights(weight, bias, mean, var, eps, bn_weight, bn_bias; transposed=false)

The weight and bias of a convolution, or of a linear layer, that includes the batch normalisation
behind it, in evaluation: of the running statistics `mean` and `var`, and the normalisation's weight
and bias. Biases and the normalisation's weight may be `nothing`.
"""
function fuse_conv_bn_weights(weight::Tensor, bias, mean::Tensor, var::Tensor, eps::Real,
        bn_weight, bn_bias; transposed::Bool=false)
    w, b = no_grad() do
        factor = rsqrt(var .+ eps)
        bn_weight === nothing || (factor = factor .* bn_weight)
        offset = (bias === nothing ? .-mean : bias .- mean) .* factor
        bn_bias === nothing || (offset = offset .+ bn_bias)
        shape = ones(Int, ndims(weight))
        shape[transposed ? 2 : 1] = -1
        fused = weight .* reshape(factor, shape...)
        return to(fused; dtype=eltype(weight)), to(offset; dtype=eltype(weight))
    end
    learnt = weight.requires_grad
    requires_grad!(w, learnt)
    return w, requires_grad!(b, bias === nothing ? learnt : bias.requires_grad)
end

"""
    TT.fuse_conv_bn_eval(conv, bn)

A copy of a convolution, transposed or not, that includes the batch normalisation behind it. Both
must be in evaluation mode (`TT.eval!`).
"""
function fuse_conv_bn_eval(conv::Module, bn::Module)
    kind = module_type(conv)
    startswith(kind, "Conv") ||
        throw(ArgumentError("fuse_conv_bn_eval: $kind: must be a convolution"))
    return fused_with_bn("fuse_conv_bn_eval", conv, bn, startswith(kind, "ConvTranspose") ? 2 : 1)
end
"""
    TT.fuse_linear_bn_eval(linear, bn)

A copy of a linear layer that includes the batch normalisation behind it. Both must be in evaluation
mode. The normalisation has as many channels as the layer has outputs, or one.
"""
function fuse_linear_bn_eval(linear::Module, bn::Module)
    kind = module_type(linear)
    kind == "Linear" || throw(ArgumentError("fuse_linear_bn_eval: $kind: must be a linear layer"))
    return fused_with_bn("fuse_linear_bn_eval", linear, bn, 1)
end
"Fuses a layer whose weight has the output channels in a dim with a normalisation."
function fused_with_bn(op, layer, bn, channels_dim)
    refuse(m, rule) = throw(ArgumentError("$op: $(module_type(m)): $rule"))
    occursin("BatchNorm", module_type(bn)) || refuse(bn, "must be a batch normalisation")
    foreach(m -> m.training && refuse(m, "must be in evaluation mode"), (layer, bn))
    mean, weight, bias = bn.running_mean, layer.weight, layer.bias
    mean === nothing && refuse(bn, "must have running statistics")
    outputs, channels = size(weight, channels_dim), length(mean)
    channels == outputs || channels == 1 && module_type(layer) == "Linear" ||
        refuse(bn, "has $channels channels, the layer $outputs outputs: must be equal")
    w, b = no_grad() do
        # The normalisation of 1 without mean and shift is the factor of each channel, that of the
        # bias is the new bias.
        tensors = (name => getproperty(bn, Symbol(name)) for name in ("running_mean", "bias"))
        scaling = [name => zeros_like(t) for (name, t) in tensors if t !== nothing]
        ones_of_rank = Base.ones(Int, ndims(weight) - 2)
        shape = (outputs ÷ channels, channels, ones_of_rank...)
        factor = functional_call(bn, scaling, expand(ones_like(mean)[1:1], shape))
        start = bias === nothing ? expand(zeros_like(mean), outputs) : to(bias; dtype=eltype(mean))
        offset = reshape(bn(reshape(start, shape...)), -1)
        along = channels_dim == 1 ? (outputs, 1, ones_of_rank...) : (1, outputs, ones_of_rank...)
        return to(weight .* reshape(factor, along...); dtype=eltype(weight)),
            to(offset; dtype=eltype(weight))
    end
    made = copy(layer)
    made.weight = requires_grad!(w, weight.requires_grad)
    made.bias = requires_grad!(b, (bias === nothing ? weight : bias).requires_grad)
    return made
end

"""
    TT.gumbel_softmax(logits; tau=1, hard=false, dim=ndims(logits))

Draws from the Gumbel-softmax distribution (Jang et al. 2016) of logits along dim, with the
temperature `tau`. `hard`: the result is one-hot, with the gradient of the soft one.
"""
function gumbel_softmax(logits::Tensor; tau::Real=1, hard::Bool=false, dim::Integer=ndims(logits))
    drawn = exponential!(zeros_like(detach(logits)))
    soft = softmax((logits .- log(drawn)) ./ tau, dim)
    hard || return soft
    fixed = detach(soft)
    largest = argmax(fixed, dim; keepdim=true)
    return scatter(zeros_like(fixed), dim, largest, 1) .- fixed .+ soft
end

"""
    TT.svd_lowrank(A; q=6, niter=2)

U, S and V of rank q whose product `U * Diagonal(S) * V'` is near A, by random projections and
`niter` power iterations (Halko et al. 2009): faster than `svd` for a q much smaller than the sizes.
"""
function svd_lowrank(A::Tensor; q::Integer=6, niter::Integer=2)
    wide = size(A, ndims(A) - 1) < size(A, ndims(A))
    tall = wide ? adjoint(A) : A
    flat = adjoint(tall)
    basis = linalg_qr(matmul(tall, randn(size(tall, ndims(A)), q; dtype=eltype(A)))).Q
    for _ in 1:niter
        basis = linalg_qr(matmul(flat, basis)).Q
        basis = linalg_qr(matmul(tall, basis)).Q
    end
    U, S, Vh = linalg_svd(matmul(adjoint(basis), tall); full_matrices=false)
    left, right = matmul(basis, U), adjoint(Vh)
    return wide ? (U=right, S=S, V=left) : (U=left, S=S, V=right)
end

"""
    TT.pca_lowrank(A; q=min(6, size(A)[end-1:end]...), niter=2)

The q principal components of the rows of A, as `TT.svd_lowrank` of A less the means of its columns:
the columns of V are the directions.
"""
function pca_lowrank(A::Tensor; q::Integer=Base.min(6, size(A)[end-1:end]...),
        niter::Integer=2)
    0 <= q <= Base.minimum(size(A)[end-1:end]) ||
        throw(ArgumentError("q is $q, A is $(size(A)): q must fit both sizes"))
    return svd_lowrank(A .- mean(A, ndims(A) - 1; keepdim=true); q=q, niter=niter)
end

"All parameters, flattened in row-major order, as one tensor of one dim."
parameters_to_vector(params) = cat([reshape(p, -1) for p in listed(params)])

"""
    TT.vector_to_parameters!(vector, params)

Copies consecutive elements of a vector into params, which together have as many elements.
"""
function vector_to_parameters!(vector::Tensor, params)
    list = listed(params)
    total = Base.sum(Int[length(p) for p in list])
    size(vector) == (total,) ||
        throw(DimensionMismatch("vector is $(size(vector)): must be ($total,), as the parameters"))
    no_grad() do
        first = 1
        for p in list
            copyto!(p, reshape(narrow(vector, 1, first, length(p)), size(p)...))
            first += length(p)
        end
    end
    return params
end

"""
    TT.generate_square_subsequent_mask(n)

The additive mask (n, n) of causal attention: -inf above the diagonal, else 0, so that a query
attends to itself and to the keys before it.
"""
generate_square_subsequent_mask(n::Integer) = triu(full((n, n), -Inf), 1)

"""
    TT.random_split(dataset, lengths)

Splits a dataset into random subsets that do not overlap. `lengths` are numbers of samples, whose
sum is the length of the dataset, or fractions with the sum 1: numbers of samples are then rounded
down, and the samples that remain are distributed in turn. The generator of this task draws the
order.
"""
function random_split(d::Dataset, lengths)
    total, counts = length(d), collect(lengths)
    if !Base.all(n -> n isa Integer, counts)
        Base.all(f -> 0 <= f <= 1, counts) && Base.sum(counts) ≈ 1 ||
            throw(ArgumentError("the fractions are $lengths: must be in [0, 1], with the sum 1"))
        counts = floor_counts(total, counts)
    end
    Base.all(n -> 0 <= n <= total, counts) && Base.sum(counts) == total ||
        throw(ArgumentError("lengths is $lengths: the sum must be $total, the number of samples"))
    order, ends = Array(randperm(total)) .+ 1, Base.cumsum(counts)
    return [subset(d, order[stop-n+1:stop]) for (n, stop) in zip(counts, ends)]
end
function floor_counts(total, fractions)
    counts = [Base.floor(Int, total * f) for f in fractions]
    for i in 0:total-Base.sum(counts)-1
        counts[i % length(counts) + 1] += 1
    end
    return counts
end

"""
    TT.fork_rng() do … end

Runs the block, then restores the generator of this task and, if the block has seeded it, the seed
of new tasks: what is drawn later does not depend on the block.
"""
function fork_rng(f)
    function seeds_of_tasks()
        numbers = fill(UInt64(0), 2)
        C.tt_runtime_rng_state(RUNTIME[], numbers)
        return numbers
    end
    generator, seeds = Generator(), seeds_of_tasks()
    state = get_state(generator)
    try
        return f()
    finally
        set_state!(generator, state)
        now = seeds_of_tasks()
        # not if the block was the first to use a task: the next ones go on counting
        (now[1] != seeds[1] || now[2] < seeds[2]) &&
            C.tt_runtime_set_rng_state(RUNTIME[], seeds)
    end
end

"""
    TT.checkpoint_sequential(layers, segments, x)

Calls layers, or those of an `nn.Sequential`, in turn. They are divided into `segments` parts, of
which all but the last are checkpoints (`TT.checkpoint`).
"""
function checkpoint_sequential(layers, segments::Integer, x::Tensor)
    list = collect(Any, layers)
    1 <= segments <= Base.max(length(list), 1) || throw(ArgumentError(
        "segments is $segments: must be in [1, $(length(list))], the number of layers"))
    n = length(list) ÷ segments
    through(part, x) = foldl((x, layer) -> layer(x), part; init=x)
    for k in 1:segments-1
        part = list[(k-1)*n+1:k*n]
        x = checkpoint(x -> through(part, x), x)
    end
    return through(list[(segments-1)*n+1:end], x)
end

"""
    TT.save_on_cpu() do … end

Operators inside save copies on the CPU of the tensors that they need for backward, which copies
them to their devices again.
"""
save_on_cpu(f) = saved_tensors_hooks(f, t -> (t.device, no_grad(() -> copied_to_cpu(t))),
    ((device, t),) -> to(t; device=device))
copied_to_cpu(t) = t.device == Device("cpu") ? copy(t) : to(t; device="cpu")
