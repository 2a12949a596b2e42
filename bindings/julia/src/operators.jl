# + - * / ^ and dotted functions. A dotted expression is evaluated operator by operator; each is
# recorded for gradients like any other.

is_number(t::Tensor) = ndims(t) == 0
is_number(x::Number) = true

Base.:+(a::Tensor) = a
Base.:-(a::Tensor) = neg(a)
for (op, f) in ((:+, :add), (:-, :sub))
    @eval @inline Base.$op(a::Tensor, b::Tensor) = result(C.$(Symbol(:tt_, f)), a, b)
    @eval Base.$op(a::Tensor, b::Number) = $f(a, b)
end
Base.:+(a::Number, b::Tensor) = add(b, a)
Base.:-(a::Number, b::Tensor) = rsub(b, a)

"""
    a * b

The product of matrices, of a matrix and a vector, or of a vector and a row; with a number, or a
tensor without dims, every element is multiplied. For elementwise products: `a .* b`.
"""
function Base.:*(a::Tensor, b::Tensor)
    (is_number(a) || is_number(b)) && return mul(a, b)
    column_by_row = ndims(a) == 1 && ndims(b) == 2 && size(b, 1) == 1
    return matmul(column_by_row ? unsqueeze(a, 2) : a, b)
end
Base.:*(a::Tensor, b::Number) = mul(a, b)
Base.:*(a::Number, b::Tensor) = mul(b, a)
Base.:/(a::Tensor, b::Number) = div(a, b)
Base.:/(a::Union{Tensor, Number}, b::Tensor) =
    is_number(b) ? div(a, b) : linalg_solve(b, a; left = false)

"""
    a \\ b

The solution of a * x = b: of a system of equations, or of a least squares problem if a is not
square. If a is a number, every element is divided. For elementwise quotients: `a .\\ b`.
"""
function Base.:\(a::Tensor, b::Union{Tensor, Number})
    is_number(a) && return div(b, a)
    return size(a, 1) == size(a, 2) ? linalg_solve(a, b) : linalg_lstsq(a, b).solution
end
Base.:\(a::Number, b::Tensor) = div(b, a)
Base.inv(a::Tensor) = is_number(a) ? number_call(inv, a) : linalg_inv(a)

function Base.:^(a::Tensor, p::Union{Tensor, Number})
    is_number(a) && return pow(a, p)
    p isa Integer ||
        throw(ArgumentError("^ of a matrix takes an integer: .^ is elementwise"))
    return linalg_matrix_power(a, p)
end
Base.:^(a::Number, p::Tensor) =
    is_number(p) ? pow(a, p) :
    throw(ArgumentError("^ takes no matrix as exponent: .^ is elementwise"))
Base.literal_pow(::typeof(^), a::Tensor, ::Val{p}) where {p} = a ^ p

# Identity matrices: A + 2I.
const Scaling = LinearAlgebra.UniformScaling
identity_like(J::Scaling, a) = J.λ * one(a)
Base.:+(a::Tensor, J::Scaling) = a + identity_like(J, a)
Base.:+(J::Scaling, a::Tensor) = a + J
Base.:-(a::Tensor, J::Scaling) = a - identity_like(J, a)
Base.:-(J::Scaling, a::Tensor) = identity_like(J, a) - a
Base.:*(a::Tensor, J::Scaling) = a * J.λ
Base.:*(J::Scaling, a::Tensor) = a * J.λ

"The transpose of a matrix (a view); of a vector: a row."
function Base.transpose(a::Tensor)
    ndims(a) == 1 && return unsqueeze(a, 1)
    ndims(a) == 2 && return t(a)
    throw(ArgumentError(
        "transpose of a tensor of $(ndims(a)) dims: TT.transpose(t, dim, dim), permutedims"))
end
"The transpose of the complex conjugate; a view if a is real."
LinearAlgebra.adjoint(a::Tensor) = Base.transpose(conj(a))

# ---- dots ----

struct TensorStyle <: Base.BroadcastStyle end
const Dotted = Base.Broadcast.Broadcasted
Base.BroadcastStyle(::Type{Tensor}) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.AbstractArrayStyle) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.DefaultArrayStyle{0}) = TensorStyle()
Base.BroadcastStyle(::TensorStyle, ::Base.Broadcast.Style{Tuple}) = TensorStyle()
Base.Broadcast.broadcastable(a::Tensor) = a
Base.Broadcast.instantiate(b::Dotted{TensorStyle}) = b
function Base.copy(b::Dotted{TensorStyle})
    found = evaluate(b)
    return is_operand(found, b) ? clone(found) : found  # of identity.(t)
end
function is_operand(x, @nospecialize(b::Dotted))
    for a in b.args
        is_operand(x, a) && return true
    end
    return false
end
is_operand(x, a) = x isa Tensor && x === a
Base.copyto!(dst::AbstractArray, b::Dotted{TensorStyle}) =
    copyto!(dst, Array(expand(evaluate(b), size(dst))))
Base.Broadcast.materialize!(dst::Tensor, b::Dotted) = assign!(dst, evaluate(b))
Base.Broadcast.materialize!(dst::Tensor, x::Union{Tensor, Number}) = assign!(dst, x)
assign!(dst::Tensor, x::Number) = fill!(dst, x)
assign!(dst::Tensor, x) = copy!(dst, Tensor(x))

function evaluate(b::Dotted{TensorStyle})
    args = map(evaluate, b.args)
    return any_elements(args) ? elementwise_call(b.f, args...) : dotted(b.f, args...)
end
evaluate(b::Dotted) = evaluate(Base.Broadcast.materialize(b))
evaluate(x::Ref) = x[]
evaluate(x::AbstractArray) = Tensor(x)
evaluate(x::Tuple) = Tensor([x...])
evaluate(x) = x

# dotted(f, a…) is f.(a…) with a tensor among a.

for f in ELEMENTWISE
    @eval dotted(::typeof($f), a, more...) = $f(a, more...)
end

# Functions of Base that are elementwise operators under the same name.
const MEAN_SOMETHING_ELSE = (:div, :max, :min, :maximum, :minimum)
const NUMERIC = Tuple(nameof(f) for f in ELEMENTWISE
                      if Base.isexported(Base, nameof(f)) && !(nameof(f) in MEAN_SOMETHING_ELSE))
for name in NUMERIC
    @eval dotted(::typeof(Base.$name), a, more...) = $name(a, more...)
end

# Two operands, of which one may be a number.
for (op, f, swapped) in DOTS
    number_first = swapped === nothing ? :($f(a, b)) : :($swapped(b, a))
    @eval function dotted(::typeof($op), a, b)
        a isa Number || return $f(a, b)
        return b isa Number ? $op(a, b) : $number_first
    end
end
as_tensor_beside(x::Tensor, y) = x
as_tensor_beside(x, y) = number_tensor(x, y)
of_tensors(f, x, y) = f(as_tensor_beside(x, y), as_tensor_beside(y, x))
for (op, call) in [(:\, :(div(b, a))), (:÷, :(div(a, b; rounding_mode="trunc"))),
                   (:fld, :(floor_divide(a, b))), (:%, :(of_tensors(fmod, a, b))),
                   (:cld, :(neg(floor_divide(neg(as_tensor_beside(a, b)), b)))),
                   (:hypot, :(of_tensors(hypot, a, b))),
                   (:max, :(of_tensors(maximum, a, b))), (:min, :(of_tensors(minimum, a, b))),
                   (:atan, :(of_tensors(atan2, a, b)))]
    @eval dotted(::typeof(Base.$op), a, b) = a isa Number && b isa Number ? Base.$op(a, b) : $call
end
for op in (:+, :*, :max, :min)
    @eval dotted(::typeof(Base.$op), a, b, c, more...) =
        dotted(Base.$op, dotted(Base.$op, a, b), c, more...)
end
dotted(::typeof(+), a) = a
dotted(::typeof(-), a) = -a
dotted(::typeof(~), a) = bitwise_not(a)
dotted(::typeof(!), a) = logical_not(a)
dotted(::typeof(identity), a) = a
dotted(::typeof(abs2), a) = square(abs(a))
dotted(::typeof(muladd), a, b, c) = dotted(+, dotted(*, a, b), c)
dotted(::typeof(float), a) = eltype(a) <: Integer ? to(a; dtype=default_dtype()) : a
dotted(::typeof(Base.real), a) = Base.real(a)
dotted(::typeof(Base.imag), a) = Base.imag(a)
dotted(::typeof(Base.conj), a) = conj(a)
dotted(::typeof(Base.angle), a) = angle(a)
dotted(::typeof(Base.complex), a, b) = complex(a, b)
dotted(::typeof(Base.deg2rad), a) = deg2rad(a)
dotted(::typeof(Base.rad2deg), a) = rad2deg(a)
dotted(::typeof(exp10), a) = pow(10, a)
dotted(::typeof(Base.log), base, a) = dotted(/, natural_log(a), natural_log(base))
natural_log(x) = x isa Number ? Base.log(x) : log(x)
dotted(::typeof(isodd), a) = eq(remainder(a, 2), 1)
dotted(::typeof(iseven), a) = eq(remainder(a, 2), 0)
dotted(::typeof(isinteger), a) = logical_and(isfinite(a), eq(a, trunc(a)))
dotted(::typeof(fma), a, b, c) = dotted(muladd, a, b, c)
dotted(::typeof(inv), a) = reciprocal(a)
dotted(::typeof(ifelse), a, b, c) = where(a, b, c)
dotted(::typeof(Base.literal_pow), ::typeof(^), a, ::Val{p}) where {p} = pow(a, p)
dotted(::typeof(|>), a, f) = dotted(f, a)
dotted(::Type{T}, a::Tensor) where {T<:Number} = to(a; dtype=T)
for f in (:round, :floor, :ceil, :trunc)
    @eval dotted(::typeof(Base.$f), T::Type, a::Tensor) = to($f(a); dtype=T)
end

# ---- user-defined functions in dots ----

"""
All elements of a tensor at once, as a dotted user-defined function sees them: they behave as one
number, whose operators are tt's elementwise ones.
"""
struct Elements
    values::Union{Tensor, Number}
end
Base.BroadcastStyle(::Type{Elements}) = TensorStyle()
Base.Broadcast.broadcastable(x::Elements) = x
Base.zero(x::Elements) = Elements(0)
Base.one(x::Elements) = Elements(1)
Base.show(io::IO, x::Elements) = print(io, "elements of ", x.values)
values_in(x::Elements) = x.values
values_in(x) = x

elementwise_call(f, args...) = Elements(dotted(f, map(values_in, args)...))
elements_of(f, args, options) = Elements(f(map(values_in, args)...; options...))
for f in ELEMENTWISE
    if hasmethod(f, Tuple{Number, Number})  # of which the second may be the tensor
        for (A, B) in ((Elements, Elements), (Elements, Number), (Number, Elements))
            @eval (::typeof($f))(a::$A, b::$B; options...) = elements_of($f, (a, b), options)
        end
    else
        @eval (::typeof($f))(a::Elements, more...; options...) =
            elements_of($f, (a, more...), options)
    end
end
for name in (filter(!=(:round), NUMERIC)..., :-, :+, :~, :!, :abs2, :inv, :float)
    @eval Base.$name(a::Elements) = elementwise_call(Base.$name, a)
end
Base.round(a::Elements; digits::Integer=0) = Elements(round(a.values; decimals=digits))
const BINARY = Tuple(unique!([map(row -> nameof(row[1]), DOTS)..., :\, :÷, :fld, :%, :max, :min,
    :atan]))
for name in BINARY
    @eval Base.$name(a::Elements, b::Elements) = elementwise_call(Base.$name, a, b)
    @eval Base.$name(a::Elements, b::Number) = elementwise_call(Base.$name, a, b)
    @eval Base.$name(a::Number, b::Elements) = elementwise_call(Base.$name, a, b)
end
Base.literal_pow(::typeof(^), a::Elements, ::Val{p}) where {p} = a ^ p
Base.clamp(a::Elements, low, high) = elementwise_call(Base.clamp, a, low, high)
Base.muladd(a::Elements, b::Elements, c::Elements) = a * b + c
if !(ifelse isa Core.Builtin)  # from Julia 1.8 on
    @eval Base.ifelse(a::Elements, b, c) = Elements(where(map(values_in, (a, b, c))...))
end

"""
    dotted(f, a…)

f.(a…) where a tensor is among a. A function without a method here is called once, with all
elements of each tensor standing for one of them.
"""
function dotted(f, args...)
    tensors = filter(a -> a isa Tensor, collect(Any, args))
    isempty(tensors) && return f(args...)
    found = try
        values_in(f(map(a -> a isa Tensor ? Elements(a) : a, args)...))
    catch e
        throw_not_elementwise(f, e)
    end
    found isa Tensor && return found
    found isa Number && return expand(Tensor(found), size(tensors[1]))
    throw(not_elementwise(f, "it returns a $(typeof(found))"))
end
any_elements(args) = Base.any(a -> a isa Elements, args)

not_elementwise(f, why) = ArgumentError("$f. of a Tensor: $why; $f.(typed(t)) works on an array")
throw_not_elementwise(f, e) = rethrow()
function throw_not_elementwise(f, e::MethodError)
    any_elements(e.args) || rethrow()
    by_keyword = e.args[1] isa Union{NamedTuple, Base.Iterators.Pairs}
    throw(not_elementwise(f, "$(by_keyword ? e.args[2] : e.f) has no elementwise form"))
end
function throw_not_elementwise(f, e::TypeError)
    e.got isa Elements || rethrow()
    throw(not_elementwise(f,
        "it decides by one element; ifelse.(condition, a, b) chooses for each"))
end

# ---- Bessel functions and orthogonal polynomials, under the names of torch.special ----

"Real numbers, integers in the default dtype."
function real_floats(x::Tensor, name)
    eltype(x) <: Complex && throw(ArgumentError("$name: x is $(eltype(x)): must be real"))
    return eltype(x) <: AbstractFloat ? x : to(x; dtype=eltype(zeros()))
end

# In the order of `BesselFunction` in src/plan/special_function.h.
const BESSEL = (
    :bessel_j0 => "The Bessel function of the first kind of order 0",
    :bessel_j1 => "The Bessel function of the first kind of order 1",
    :bessel_y0 => "The Bessel function of the second kind of order 0, nan below 0",
    :bessel_y1 => "The Bessel function of the second kind of order 1, nan below 0",
    :modified_bessel_k0 => "The modified Bessel function of the second kind of order 0",
    :modified_bessel_k1 => "The modified Bessel function of the second kind of order 1",
    :scaled_modified_bessel_k0 => "`exp(x) * modified_bessel_k0(x)` without underflow",
    :scaled_modified_bessel_k1 => "`exp(x) * modified_bessel_k1(x)` without underflow",
    :airy_ai => "The Airy function Ai, which has no gradient",
)
for (number, (name, text)) in enumerate(BESSEL)
    @eval begin
        @doc $("    TT.$name(x)\n\n$text, elementwise.")
        $name(x::Tensor) = call_op("bessel", real_floats(x, $(string(name))), $(number - 1))
    end
end

# In the order of `Polynomial` in src/plan/special_function.h; from the ninth on those of 2x - 1.
const POLYNOMIALS = (
    :chebyshev_polynomial_t => "The Chebyshev polynomial of the first kind",
    :chebyshev_polynomial_u => "The Chebyshev polynomial of the second kind",
    :chebyshev_polynomial_v => "The Chebyshev polynomial of the third kind",
    :chebyshev_polynomial_w => "The Chebyshev polynomial of the fourth kind",
    :hermite_polynomial_h => "The Hermite polynomial of physics",
    :hermite_polynomial_he => "The Hermite polynomial of probability",
    :laguerre_polynomial_l => "The Laguerre polynomial",
    :legendre_polynomial_p => "The Legendre polynomial",
    :shifted_chebyshev_polynomial_t => "The Chebyshev polynomial of the first kind of `2x - 1`,",
    :shifted_chebyshev_polynomial_u => "The Chebyshev polynomial of the second kind of `2x - 1`,",
    :shifted_chebyshev_polynomial_v => "The Chebyshev polynomial of the third kind of `2x - 1`,",
    :shifted_chebyshev_polynomial_w => "The Chebyshev polynomial of the fourth kind of `2x - 1`,",
)
for (number, (name, text)) in enumerate(POLYNOMIALS)
    @eval begin
        @doc $("    TT.$name(x, n)\n\n$text of degree n, elementwise; 0 for negative n.")
        $name(x::Tensor, n::Integer) =
            polynomial(real_floats(x, $(string(name))), n, $(number - 1))
    end
end
# Beyond these degrees, or 1024 for halves, Hermite polynomials are nan, as PyTorch's are.
const LARGEST_ORDERS = Dict(Float32 => 128, Float64 => 512)
function polynomial(x, n, kind)
    n < 0 && return zeros_like(x)
    limit = get(LARGEST_ORDERS, eltype(x), 1024)
    kind in (4, 5) && n > limit && return full_like(x, NaN)
    return call_op("orthogonal_polynomial", x, kind, Int(n))
end

"`TT.spherical_bessel_j0(x)` is sin(x) / x, elementwise: 1 at 0, 0 at infinity."
function spherical_bessel_j0(x::Tensor)
    given = real_floats(x, "spherical_bessel_j0")
    x = to(given; dtype=Float64)
    zero = x .== 0
    quotient = sin(masked_fill(x, isinf(x), 0)) ./ masked_fill(x, zero, 1)
    return to(masked_fill(quotient, zero, 1); dtype=eltype(given))
end
