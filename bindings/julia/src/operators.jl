# + - * / ^ and their dotted forms. A dotted expression is evaluated operator by operator; each is recorded like any other.

scalar_like(t::Tensor) = ndims(t) == 0

Base.:+(a::Tensor) = a
Base.:-(a::Tensor) = neg(a)
for (op, f) in ((:+, :add), (:-, :sub))
    @eval @inline Base.$op(a::Tensor, b::Tensor) = result(C.$(Symbol(:tt_, f)), a, b)
    @eval Base.$op(a::Tensor, b::Number) = $f(a, b)
end
Base.:+(a::Number, b::Tensor) = add(b, a)
Base.:-(a::Number, b::Tensor) = rsub(b, a)
"The matrix product, as matmul, and of a vector by a row; with a number or a 0-dim tensor the elementwise one."
Base.:*(a::Tensor, b::Tensor) = scalar_like(a) || scalar_like(b) ? mul(a, b) :
    ndims(a) == 1 && ndims(b) == 2 && size(b, 1) == 1 ? matmul(unsqueeze(a, 2), b) : matmul(a, b)
Base.:*(a::Tensor, b::Number) = mul(a, b)
Base.:*(a::Number, b::Tensor) = mul(b, a)
Base.:/(a::Tensor, b::Number) = div(a, b)
Base.:/(a::Union{Tensor, Number}, b::Tensor) = scalar_like(b) ? div(a, b) : throw(ArgumentError("there is no matrix division: ./ divides elementwise"))
function Base.:^(a::Tensor, p::Union{Tensor, Number})
    scalar_like(a) && return pow(a, p)
    p isa Integer && p > 0 || throw(ArgumentError("^ of a matrix takes a positive integer: .^ works elementwise"))
    return p == 1 ? clone(a) : product_of(a, p)
end
Base.:^(a::Number, p::Tensor) = scalar_like(p) ? pow(a, p) : throw(ArgumentError("a number ^ a matrix is not there: .^ works elementwise"))
product_of(a, n) = n == 1 ? a : (half = product_of(a, n >> 1); iseven(n) ? half * half : half * half * a)
Base.literal_pow(::typeof(^), a::Tensor, ::Val{p}) where {p} = a ^ p

"The transpose of a matrix (a view); of a vector: a row."
Base.transpose(a::Tensor) = ndims(a) == 1 ? unsqueeze(a, 1) : ndims(a) == 2 ? t(a) : throw(ArgumentError("transpose of a tensor of $(ndims(a)) dims: name two of them, or permute"))
LinearAlgebra.adjoint(a::Tensor) = eltype(a) <: Complex ? throw(ArgumentError("' of complex tensors is not there: transpose(a)")) : transpose(a)

# ---- dotted ----

struct TensorStyle <: Base.BroadcastStyle end
const Dotted = Base.Broadcast.Broadcasted
Base.BroadcastStyle(::Type{Tensor}) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.AbstractArrayStyle) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.DefaultArrayStyle{0}) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.Style{Tuple}) = TensorStyle()
Base.Broadcast.broadcastable(a::Tensor) = a
Base.Broadcast.instantiate(b::Dotted{TensorStyle}) = b
Base.copy(b::Dotted{TensorStyle}) = evaluate(b)
Base.copyto!(dst::AbstractArray, b::Dotted{TensorStyle}) = copyto!(dst, Array(expand(evaluate(b), size(dst))))
Base.Broadcast.materialize!(dst::Tensor, b::Dotted) = store!(dst, evaluate(b))
Base.Broadcast.materialize!(dst::Tensor, x::Union{Tensor, Number}) = store!(dst, x)
store!(dst, x::Number) = fill!(dst, x)
store!(dst, x) = copy!(dst, x isa Tensor ? x : Tensor(x))

function evaluate(b::Dotted{TensorStyle})
    args = map(evaluate, b.args)
    out = dotted(b.f, args...)
    foreach((given, x) -> given isa Dotted && x isa Tensor && x !== out && !among(x, given) && free!(x), b.args, args)  # nobody else has seen these
    return out
end
"Whether x, the value of a dotted expression, is one of its operands."
among(x, b) = any(a -> a isa Dotted ? among(x, a) : a === x, b.args)
evaluate(b::Dotted) = evaluate(Base.materialize(b))
evaluate(x::Ref) = x[]
evaluate(x::AbstractArray) = Tensor(x)
evaluate(x::Tuple) = Tensor([x...])
evaluate(x) = x

"f.(a…) with a tensor among a. Give a method to a function of your own that is made of elementwise operators and makes a new tensor."
dotted(f, args...) = any(a -> a isa Tensor, args) ? not_elementwise(f) : f(args...)
not_elementwise(f) = throw(ArgumentError("$f. of a Tensor: only elementwise operators can be dotted; f.(typed(t)) works on an array"))

"An operator of f.(a…; options…)."
struct WithOptions
    f::Any
    options::Any
end
Base.Broadcast.broadcasted_kwsyntax(f, a::Union{Tensor, Dotted{TensorStyle}}, more...; options...) =
    Base.Broadcast.broadcasted(WithOptions(f, options), a, more...)
dotted(o::WithOptions, args...) = o.f in ELEMENTWISE ? o.f(args...; o.options...) : not_elementwise(o.f)

for f in ELEMENTWISE
    @eval dotted(::typeof($f), a, more...) = $f(a, more...)
end

# Two operands, of which one may be a number.
for (op, f, swapped) in DOTS
    number_first = swapped === nothing ? :($f(a, b)) : :($swapped(b, a))
    @eval dotted(::typeof($op), a, b) = a isa Number ? (b isa Number ? $op(a, b) : $number_first) : $f(a, b)
end
of_tensors(f, x, y) = f(x isa Tensor ? x : number_tensor(x, y), y isa Tensor ? y : number_tensor(y, x))
truncated(x, y) = div(x, y; rounding_mode="trunc")
for (op, call) in [(:\, :(div(b, a))), (:÷, :(truncated(a, b))), (:fld, :(floor_divide(a, b))), (:%, :(of_tensors(fmod, a, b))),
                   (:max, :(of_tensors(maximum, a, b))), (:min, :(of_tensors(minimum, a, b))), (:atan, :(of_tensors(atan2, a, b)))]
    @eval dotted(::typeof(Base.$op), a, b) = a isa Number && b isa Number ? Base.$op(a, b) : $call
end
for op in (:+, :*, :max, :min)
    @eval dotted(::typeof($op), a, b, c, more...) = dotted($op, dotted($op, a, b), c, more...)
end
dotted(::typeof(+), a) = a
dotted(::typeof(-), a) = -a
dotted(::typeof(~), a) = bitwise_not(a)
dotted(::typeof(!), a) = logical_not(a)
dotted(::typeof(identity), a) = a
dotted(::typeof(abs2), a) = square(abs(a))
dotted(::typeof(muladd), a, b, c) = dotted(+, dotted(*, a, b), c)
dotted(::typeof(float), a) = eltype(a) <: Integer ? to(a; dtype=Float32) : a
dotted(::typeof(inv), a) = reciprocal(a)
dotted(::typeof(ifelse), a, b, c) = where(a, b, c)
dotted(::typeof(Base.literal_pow), ::typeof(^), a, ::Val{p}) where {p} = pow(a, p)
dotted(::typeof(|>), a, f) = dotted(f, a)
dotted(::Type{T}, a::Tensor) where {T<:Number} = to(a; dtype=T)
for f in (:round, :floor, :ceil, :trunc)
    @eval dotted(::typeof($f), T::Type, a::Tensor) = to($f(a); dtype=T)
end
