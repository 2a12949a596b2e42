# Initial values of weights, by the names of torch.nn.init; they fill a tensor without recording it,
# and return it.

const GAINS = Dict("linear" => 1.0, "conv1d" => 1.0, "conv2d" => 1.0, "conv3d" => 1.0,
    "conv_transpose1d" => 1.0, "conv_transpose2d" => 1.0, "conv_transpose3d" => 1.0,
    "sigmoid" => 1.0, "tanh" => 5 / 3, "relu" => Base.sqrt(2.0), "selu" => 0.75)

"""
    nn.init.calculate_gain(nonlinearity, slope=0.01)

The recommended gain of weights before a nonlinearity, such as "relu"; slope is that of
"leaky_relu".
"""
function calculate_gain(nonlinearity::AbstractString, slope::Real=0.01)
    nonlinearity == "leaky_relu" && return Base.sqrt(2 / (1 + slope^2))
    return get(GAINS, nonlinearity) do
        throw(ArgumentError("nonlinearity is \"$nonlinearity\": no gain is known for it"))
    end
end

"The numbers of inputs and of outputs of a weight (out, in, …)."
function fans(t::Tensor)
    ndims(t) >= 2 ||
        throw(DimensionMismatch("a weight of size $(size(t)): must have at least 2 dims"))
    window = Base.prod(size(t)[3:end])
    return size(t, 2) * window, size(t, 1) * window
end
filled(f, t::Tensor) = (no_grad(() -> f(t)); t)

"Fills t with values uniform in [a, b)."
init_uniform!(t::Tensor; a::Real=0, b::Real=1) = filled(t -> uniform!(t, a, b), t)
"Fills t with normal values."
init_normal!(t::Tensor; mean::Real=0, std::Real=1) = filled(t -> normal!(t, mean, std), t)
"Fills t with one value."
constant!(t::Tensor, x::Real) = filled(t -> fill!(t, x), t)
"Fills t with normal values truncated to [a, b]."
function trunc_normal!(t::Tensor; mean::Real=0, std::Real=1, a::Real=-2, b::Real=2)
    scale = std * Base.sqrt(2.0)
    low, high = (item(erf(tensor((x - mean) / scale))) for x in (a, b))
    return filled(t) do t
        erfinv!(uniform!(t, low, high))
        copyto!(t, clamp(t .* scale .+ mean; min=a, max=b))
    end
end
"Fills t with values uniform within `gain * sqrt(6 / (fan_in + fan_out))`: Glorot and Bengio, 2010."
function xavier_uniform!(t::Tensor; gain::Real=1)
    bound = gain * Base.sqrt(6 / Base.sum(fans(t)))
    return init_uniform!(t; a=-bound, b=bound)
end
"Fills t with normal values of std `gain * sqrt(2 / (fan_in + fan_out))`: Glorot and Bengio, 2010."
xavier_normal!(t::Tensor; gain::Real=1) =
    init_normal!(t; std=gain * Base.sqrt(2 / Base.sum(fans(t))))
function kaiming_std(t, a, mode, nonlinearity)
    mode in ("fan_in", "fan_out") ||
        throw(ArgumentError("mode is \"$mode\": must be \"fan_in\" or \"fan_out\""))
    return calculate_gain(nonlinearity, a) / Base.sqrt(fans(t)[mode == "fan_in" ? 1 : 2])
end
"""
    nn.init.kaiming_uniform!(t; a=0, mode="fan_in", nonlinearity="leaky_relu")

Fills t with values uniform within `gain * sqrt(3 / fan)`: He et al., 2015. a is the slope of a
leaky ReLU; mode is the fan that is used.
"""
function kaiming_uniform!(t::Tensor; a::Real=0, mode="fan_in", nonlinearity="leaky_relu")
    bound = Base.sqrt(3.0) * kaiming_std(t, a, mode, nonlinearity)
    return init_uniform!(t; a=-bound, b=bound)
end
"""
    nn.init.kaiming_normal!(t; a=0, mode="fan_in", nonlinearity="leaky_relu")

Fills t with normal values of std `gain / sqrt(fan)`: He et al., 2015.
"""
kaiming_normal!(t::Tensor; a::Real=0, mode="fan_in", nonlinearity="leaky_relu") =
    init_normal!(t; std=kaiming_std(t, a, mode, nonlinearity))
"""
Fills t with orthogonal rows, or columns if there are fewer, of norm gain: Saxe et al., 2013. All
dims but the first are flattened.
"""
function orthogonal!(t::Tensor; gain::Real=1)
    fans(t)
    rows = size(t, 1)
    columns = rows == 0 ? 0 : length(t) ÷ rows
    length(t) == 0 && return t
    return filled(t) do t
        values = normal!(TT.empty(Base.max(rows, columns), Base.min(rows, columns)))
        q, r = qr(to(values; dtype=Float64))
        q = q .* sign(diagonal(r))  # the factor of a positive diagonal is unique
        q = rows < columns ? TT.t(q) : q
        copyto!(t, reshape(q .* gain, size(t)...))
    end
end
"Fills the weight of a convolution (3 to 5 dims) so that it returns its input in each group."
function dirac!(t::Tensor; groups::Integer=1)
    ndims(t) in 3:5 ||
        throw(DimensionMismatch("a weight of size $(size(t)): must have 3, 4 or 5 dims"))
    size(t, 1) % groups == 0 ||
        throw(DimensionMismatch("size(t, 1) is $(size(t, 1)): must be divisible by groups"))
    values = Base.zeros(size(t)...)
    centre = map(n -> n ÷ 2 + 1, size(t)[3:end])
    out = size(t, 1) ÷ groups
    for g in 0:groups-1, d in 1:Base.min(out, size(t, 2))
        values[g * out + d, d, centre...] = 1
    end
    return filled(t -> copyto!(t, values), t)
end
"Fills t, of 2 dims, with 1 on the diagonal and 0 elsewhere."
function eye!(t::Tensor)
    ndims(t) == 2 || throw(DimensionMismatch("a tensor of size $(size(t)): must have 2 dims"))
    return filled(t -> copyto!(t, eye(size(t, 1), size(t, 2); dtype=eltype(t))), t)
end
"""
    nn.init.sparse!(t, sparsity; std=0.01)

Fills t, of 2 dims, with normal values of mean 0, of which the fraction `sparsity` of each column is
0, rounded up: Martens, 2010.
"""
function sparse!(t::Tensor, sparsity::Real; std::Real=0.01)
    ndims(t) == 2 || throw(DimensionMismatch("a tensor of size $(size(t)): must have 2 dims"))
    0 <= sparsity <= 1 || throw(ArgumentError("sparsity is $sparsity: must be in [0, 1]"))
    rows, columns = size(t)
    init_normal!(t; std=std)
    dropped = Base.fill(false, rows, columns)
    for column in 1:columns
        dropped[Array(randperm(rows))[1:Base.ceil(Int, sparsity * rows)] .+ 1, column] .= true
    end
    return filled(t -> masked_fill!(t, to(tensor(dropped); device=t.device), 0), t)
end

const INIT_FUNCTIONS = (:calculate_gain, :constant!, :trunc_normal!, :xavier_uniform!,
    :xavier_normal!, :kaiming_uniform!, :kaiming_normal!, :orthogonal!, :dirac!, :eye!,
    :sparse!)
