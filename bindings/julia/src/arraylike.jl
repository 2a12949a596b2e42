# What functions of Base and the standard libraries do to a Tensor, by their own contracts. Those
# that return indices, or look for elements, do so with Julia's array of the values; no gradients
# pass through them.

# ---- values ----

Base.collect(a::Tensor) = Array(a)
Base.Array{T}(a::Tensor) where {T} = Array{T}(Array(a))
Base.Array{T, N}(a::Tensor) where {T, N} = Array{T, N}(Array(a))
(::Type{Array{T, N} where T})(a::Tensor) where {N} = Array(a)::Array{<:Any, N}
(::Type{T})(a::Tensor) where {T<:Number} = T(item(a))
Base.convert(::Type{T}, a::Tensor) where {T<:Union{Number, Array}} = T(a)::T
Base.convert(::Type{Tensor}, x::Union{Number, AbstractArray}) = tensor(x)

"What a tensor is to ==, isequal and hash: an array or, without dims, a number."
function plain_value(a::Tensor)
    eltype(a) === BFloat16 && return plain_value(to(a; dtype=Float32))
    return is_number(a) ? item(a) : Array(a)
end
plain_value(x) = x
const Plain = Union{Number, AbstractArray}
for f in (:(==), :isequal, :isapprox)
    options = f === :isapprox ? (Expr(:parameters, :(options...)),) : ()
    for (A, B) in ((Tensor, Tensor), (Tensor, Plain), (Plain, Tensor))
        @eval Base.$f($(options...), a::$A, b::$B) =
            Base.$f($(options...), plain_value(a), plain_value(b))
    end
end
Base.hash(a::Tensor, h::UInt) = hash(plain_value(a), h)
for f in (:isless, :<)
    @eval Base.$f(a::Tensor, b::Tensor) = $f(item(a), item(b))
    @eval Base.$f(a::Tensor, b::Real) = $f(item(a), b)
    @eval Base.$f(a::Real, b::Tensor) = $f(a, item(b))
end

"Elements in the order of Julia's arrays: numbers, which record no gradients."
Base.iterate(a::Tensor) = (values = typed(a); tagged(values, iterate(values)))
Base.iterate(a::Tensor, (values, state)) = tagged(values, iterate(values, state))
tagged(values, step) = step === nothing ? nothing : (step[1], (values, step[2]))
Base.IteratorEltype(::Type{Tensor}) = Base.EltypeUnknown()
Base.collect(g::Base.Generator{Tensor}) = collect(Base.Generator(g.f, Array(g.iter)))
Base.CartesianIndices(a::Tensor) = CartesianIndices(size(a))
Base.LinearIndices(a::Tensor) = LinearIndices(size(a))
Base.keys(a::Tensor) = ndims(a) == 1 ? Base.OneTo(length(a)) : CartesianIndices(size(a))
Base.last(a::Tensor) = typed(a)[end]
for f in (:count, :findall, :findfirst, :findlast, :findmax, :findmin, :argmax, :argmin, :extrema)
    @eval Base.$f(a::Tensor; options...) = Base.$f(Array(a); options...)
    @eval Base.$f(g::Function, a::Tensor; options...) = Base.$f(g, Array(a); options...)
end

# ---- numbers: functions that mean something else for arrays, or nothing ----

"f of tensors without dims, as of the numbers in them."
function number_call(f, args...)
    Base.all(is_number, args) ||
        throw(ArgumentError("$f takes numbers, and tensors without dims: $f.(t) is elementwise"))
    found = dotted(f, args...)
    return eltype(found) === Bool ? item(found) : found
end
for name in (filter(f -> !(f in (:exp, :isreal)), NUMERIC)..., :abs2)  # exp: of matrices, below
    @eval Base.$name(a::Tensor) = number_call(Base.$name, a)
end
for f in (:max, :min, :mod, :%, :÷, :fld)
    @eval Base.$f(a::Tensor, b::Tensor) = number_call(Base.$f, a, b)
    @eval Base.$f(a::Tensor, b::Real) = number_call(Base.$f, a, b)
    @eval Base.$f(a::Real, b::Tensor) = number_call(Base.$f, a, b)
end
Base.clamp(a::Tensor, low, high) = number_call(Base.clamp, a, low, high)
for f in (:round, :floor, :ceil, :trunc)
    @eval Base.$f(::Type{T}, a::Tensor) where {T<:Integer} = Base.$f(T, item(a))
end

# ---- numbers: functions that Base has for arrays, too ----

Base.real(a::Tensor) = eltype(a) <: Complex ? real(a) : a
Base.imag(a::Tensor) = eltype(a) <: Complex ? imag(a) : zeros_like(a)
Base.conj(a::Tensor) = conj(a)
Base.complex(a::Tensor) = eltype(a) <: Complex ? a : complex(a, zeros_like(a))
Base.float(a::Tensor) = is_number(a) ? float(item(a)) : dotted(float, a)
Base.isreal(a::Tensor) = !(eltype(a) <: Complex) || item(all(isreal(a)))

# ---- other processes, files of Serialization ----

function Serialization.serialize(s::Serialization.AbstractSerializer, a::Tensor)
    Serialization.serialize_type(s, Tensor)
    Serialization.serialize(s, (Array(a), a.is_leaf && a.requires_grad))
end
function Serialization.deserialize(s::Serialization.AbstractSerializer, ::Type{Tensor})
    values, on = Serialization.deserialize(s)
    return tensor(values; requires_grad=on)
end
Serialization.serialize(::Serialization.AbstractSerializer, x::Handle) =
    throw(ArgumentError("a $(typeof(x)) cannot be serialized: save_checkpoint, save_file"))

# ---- making, filling ----

Base.similar(a::Tensor, T::Type, dims...) =
    empty(isempty(dims) ? size(a) : gathered(dims); dtype=T, device=device(a))
Base.similar(a::Tensor, dims...) = similar(a, eltype(a), dims...)
Base.zero(a::Tensor) = zeros_like(a)
function Base.one(a::Tensor)
    is_number(a) && return ones_like(a)
    ndims(a) == 2 && size(a, 1) == size(a, 2) ||
        throw(DimensionMismatch("one of a tensor of size $(size(a)): only square matrices have it"))
    return eye(size(a, 1); dtype=eltype(a), device=device(a))
end
Base.fill!(a::Tensor, x) = fill!(a, x)
function Base.copy!(a::Tensor, x::Union{Tensor, AbstractArray})
    size(a) == size(x) ||
        throw(ArgumentError("copy!: the sizes are $(size(a)) and $(size(x)): must be equal"))
    return copy!(a, Tensor(x))
end
function Base.copyto!(a::Tensor, x::Union{Tensor, AbstractArray})
    size(a) == size(x) && return copy!(a, Tensor(x))
    length(x) <= length(a) || throw(BoundsError(a, length(x)))
    a[1:length(x)] = vec(x)
    return a
end
Base.copyto!(a::AbstractArray, x::Tensor) = copyto!(a, Array(x))
Base.clamp!(a::Tensor, low, high) = clamp!(a, low, high)
Random.rand!(a::Tensor) = uniform!(a)
Random.randn!(a::Tensor) = normal!(a)
Random.seed!(g::Generator, seed::Integer) = (set_state!(g, (seed % UInt64, 0)); g)

# ---- shapes ----

const Dims = Union{Colon, Ints}

"""
    reshape(t, dims…)

A tensor of these dims with the same elements in Julia's order, by columns; a view where t's strides
allow one. `TT.reshape` has PyTorch's order, by rows.
"""
Base.reshape(a::Tensor, dims::Tuple{Vararg{Union{Integer, Colon}}}) =
    by_columns(reshape(by_columns(a), Base.reverse(sizes(a, dims))))
Base.reshape(a::Tensor, dims::Union{Integer, Colon}...) = Base.reshape(a, dims)
"The dims in the opposite order."
by_columns(a) = ndims(a) < 2 ? a : permute(a, ndims(a):-1:1)
function sizes(a, dims)
    open = Base.count(d -> d isa Colon, dims)
    known = Base.prod(Int[d for d in dims if !(d isa Colon)])
    fits = open == 0 ? known == length(a) : open == 1 && known > 0 && length(a) % known == 0
    hint = Base.any(d -> d == -1, dims) ? ": an open dim is a colon" : ""
    fits || throw(DimensionMismatch(
        "a tensor of $(length(a)) elements cannot have the dims $dims$hint"))
    return map(d -> d isa Colon ? length(a) ÷ known : Int(d), dims)
end
Base.vec(a::Tensor) = Base.reshape(a, :)
Base.selectdim(a::Tensor, d::Integer, i) = a[ntuple(k -> k == d ? i : Colon(), ndims(a))...]
Base.eachslice(a::Tensor; dims::Integer) = (select(a, dims, i) for i in axes(a, dims))
Base.eachrow(a::Tensor) = eachslice(a; dims=1)
Base.eachcol(a::Tensor) = eachslice(a; dims=2)
Base.permutedims(a::Tensor, order) = clone(permute(a, order...); memory_format=:contiguous)
Base.permutedims(a::Tensor) = ndims(a) == 1 ? clone(unsqueeze(a, 1)) : permutedims(a, (2, 1))
function Base.dropdims(a::Tensor; dims)
    Base.all(d -> size(a, d) == 1, dims) ||
        throw(ArgumentError("dropdims: dims $dims of $(size(a)) are not all of size 1"))
    return squeeze(a, dims)
end
Base.reverse(a::Tensor; dims::Dims=:) = flip(a, (dims isa Colon ? (1:ndims(a)) : dims)...)
Base.reverse!(a::Tensor; options...) = copy!(a, Base.reverse(a; options...))
Base.permute!(a::Tensor, order::AbstractVector) = copy!(a, a[order])
Base.filter(f, a::Tensor) = a[dotted(f, a)]
Base.diff(a::Tensor; dims::Integer=only_dim(a)) = diff(a; dim=dims)
Base.circshift(a::Tensor, shifts) = roll(a, shifts; dims=ntuple(identity, length(shifts)))
function Base.repeat(a::Tensor; inner=1, outer=1)
    a = lifted(a, length(inner))
    for (d, n) in enumerate(inner)
        a = repeat_interleave(a, n, d)
    end
    return Base.repeat(a, outer...)
end
Base.repeat(a::Tensor, counts::Integer...) =
    repeat(lifted(a, length(counts)), counts...,
        ntuple(_ -> 1, Base.max(0, ndims(a) - length(counts)))...)
"With trailing dims of size 1, until they are n."
lifted(a, n) = ndims(a) < n ? reshape(a, size(a)..., ntuple(_ -> 1, n - ndims(a))...) : a
joined(parts, dims) = cat([lifted(Tensor(x), dims) for x in parts], dims)
# Of [a b; c d], with a tensor among the first four, or behind four numbers. Signatures of four
# unions would take a second when TT is loaded.
const Part = Union{Tensor, Plain}
for n in 0:4
    before = n < 4 ? :Plain : :Number
    names = [Symbol(:part, k) for k in 1:n+1]
    arguments = [Expr(:(::), name, k > n ? :Tensor : before) for (k, name) in enumerate(names)]
    @eval begin
        Base.cat($(arguments...), more::Part...; dims::Integer) =
            joined(($(names...), more...), dims)
        Base.vcat($(arguments...), more::Part...) = joined(($(names...), more...), 1)
        Base.hcat($(arguments...), more::Part...) = joined(($(names...), more...), 2)
        Base.hvcat(rows::Tuple{Vararg{Int}}, $(arguments...), more::Part...) =
            joined_rows(rows, ($(names...), more...))
    end
end
function joined_rows(rows, parts)
    ends = Base.cumsum([rows...])
    return joined([joined(parts[last-n+1:last], 2) for (n, last) in zip(rows, ends)], 1)
end
Base.reduce(::typeof(vcat), list::AbstractVector{Tensor}) = joined(list, 1)
Base.reduce(::typeof(hcat), list::AbstractVector{Tensor}) = joined(list, 2)
if isdefined(Base, :stack)  # from Julia 1.9 on
    Base.stack(list::AbstractVector{Tensor}; dims=:) =
        stack(list, dims isa Colon ? ndims(list[1]) + 1 : dims)
end

# ---- reductions: to a tensor without dims or, with dims, to one that keeps them with size 1 ----

function reduced(f, a, dims)
    dims isa Colon && return f(a)
    dims isa Integer && return f(a; dims=dims)
    return foldl((t, d) -> f(t; dims=d), dims; init=a)
end
const Init = Union{Number, Nothing}
with_init(op, found, init) = init === nothing ? found : dotted(op, found, init)
Base.sum(a::Tensor; dims::Dims=:, init::Init=nothing) = with_init(+, sum(a; dims=dims), init)
Base.prod(a::Tensor; dims::Dims=:, init::Init=nothing) = with_init(*, reduced(prod, a, dims), init)
Base.maximum(a::Tensor; dims::Dims=:, init::Init=nothing) =
    with_init(Base.max, dims isa Colon ? max(a) : amax(a; dims=dims), init)
Base.minimum(a::Tensor; dims::Dims=:, init::Init=nothing) =
    with_init(Base.min, dims isa Colon ? min(a) : amin(a; dims=dims), init)
Statistics.mean(a::Tensor; dims::Dims=:) = mean(dotted(float, a); dims=dims)
for f in (:var, :std)
    @eval Statistics.$f(a::Tensor; dims::Dims=:, corrected::Bool=true) =
        $f(dotted(float, a); dims=dims, correction=corrected ? 1 : 0)
end
Statistics.median(a::Tensor; options...) = Statistics.median(Array(a); options...)
in_rows(a, dims) = dims == 1 ? Base.transpose(a) : a
Statistics.cov(a::Tensor; dims::Integer=1, corrected::Bool=true) =
    cov(dotted(float, in_rows(a, dims)); correction=corrected ? 1 : 0)
Statistics.cor(a::Tensor; dims::Integer=1) = corrcoef(dotted(float, in_rows(a, dims)))
Statistics.cov(a::Tensor, b::Tensor; corrected::Bool=true) =
    Statistics.cov(Base.hcat(a, b); corrected=corrected)[1, 2]
Statistics.cor(a::Tensor, b::Tensor) = Statistics.cor(Base.hcat(a, b))[1, 2]
for f in (:any, :all)  # to a Bool without dims
    @eval function Base.$f(a::Tensor; dims::Dims=:)
        eltype(a) === Bool || throw(TypeError($(QuoteNode(f)), "", Bool, a))
        return dims isa Colon ? item($f(a)) : $f(a; dims=dims)
    end
end
for f in (:(Base.sum), :(Base.prod), :(Base.maximum), :(Base.minimum), :(Base.any), :(Base.all),
          :(Statistics.mean))
    @eval $f(g::Function, a::Tensor; options...) = $f(dotted(g, a); options...)
end
for (op, f) in ((:+, :sum), (:*, :prod), (:max, :maximum), (:min, :minimum), (:&, :all), (:|, :any))
    @eval Base.mapreduce(f, ::typeof(Base.$op), a::Tensor; options...) =
        Base.$f(dotted(f, a); options...)
end
Base.mapreduce(f, op, a::Tensor; options...) = mapreduce(f, op, Array(a); options...)
Base.reduce(op, a::Tensor; options...) = mapreduce(identity, op, a; options...)
Base.map(f, a::Tensor, more::Tensor...) = copy(Base.Broadcast.broadcasted(f, a, more...))
for f in (:cumsum, :cumprod)
    @eval Base.$f(a::Tensor; dims::Integer=only_dim(a)) = $f(a, dims)
    @eval Base.$(Symbol(f, "!"))(out::Tensor, a::Tensor; dims::Integer=only_dim(a)) =
        $f(a, dims; out=out)
end

# ---- order ----

function Base.sort(a::Tensor; dims::Integer=only_dim(a), rev::Bool=false, order...)
    isempty(order) && return sort(a, dims; descending=rev, stable=true).values
    ndims(a) == 1 || throw(ArgumentError("sort takes by and lt for vectors only"))
    return a[sortperm(a; rev=rev, order...)]
end
Base.sort!(a::Tensor; options...) = copy!(a, Base.sort(a; options...))
Base.sortperm(a::Tensor; options...) = sortperm(Array(a); options...)
Base.unique(a::Tensor) = tensor(Base.unique(Array(a)); device=device(a))

# ---- linear algebra ----

LinearAlgebra.norm(a::Tensor, p::Real=2) = norm(reshape(a, :), p)
LinearAlgebra.normalize(a::Tensor, p::Real=2) = a / LinearAlgebra.norm(a, p)
LinearAlgebra.dot(a::Tensor, b::Tensor) =
    ndims(a) == ndims(b) == 1 ? vdot(a, b) : sum(conj(a) .* b)
LinearAlgebra.diag(a::Tensor, k::Integer=0) = diagonal(a; offset=k)
LinearAlgebra.tr(a::Tensor) = sum(diagonal(a))
LinearAlgebra.tril(a::Tensor, k::Integer=0) = tril(a, k)
LinearAlgebra.triu(a::Tensor, k::Integer=0) = triu(a, k)
LinearAlgebra.tril!(a::Tensor, k::Integer=0) = tril!(a, k)
LinearAlgebra.triu!(a::Tensor, k::Integer=0) = triu!(a, k)
LinearAlgebra.diagm(a::Tensor) = diag(a)
LinearAlgebra.issymmetric(a::Tensor) = ndims(a) == 2 && a == Base.transpose(a)
LinearAlgebra.ishermitian(a::Tensor) = ndims(a) == 2 && a == LinearAlgebra.adjoint(a)
LinearAlgebra.mul!(out::Tensor, a::Tensor, b::Tensor) = matmul(a, b; out=out)
LinearAlgebra.mul!(out::Tensor, a::Tensor, b::Tensor, α::Number, β::Number) =
    add!(iszero(β) ? zero!(out) : mul!(out, β), a * b; alpha=α)
LinearAlgebra.rmul!(a::Tensor, x::Number) = mul!(a, x)
LinearAlgebra.lmul!(x::Number, a::Tensor) = mul!(a, x)
LinearAlgebra.axpy!(x::Number, a::Tensor, b::Tensor) = add!(b, a; alpha=x)
for op in (:+, :-, :*, :/, :\)
    @eval Base.$op(a::Tensor, b::AbstractArray) = $op(a, Tensor(b))
    @eval Base.$op(a::AbstractArray, b::Tensor) = $op(Tensor(a), b)
end
Base.exp(a::Tensor) = is_number(a) ? number_call(Base.exp, a) : matrix_exp(a)
LinearAlgebra.det(a::Tensor) = linalg_det(a)
function LinearAlgebra.logabsdet(a::Tensor)
    found = linalg_slogdet(a)
    return found.logabsdet, found.sign
end
LinearAlgebra.logdet(a::Tensor) = logdet(a)
LinearAlgebra.pinv(a::Tensor) = linalg_pinv(a)
LinearAlgebra.rank(a::Tensor) = Int(item(linalg_matrix_rank(a)))
LinearAlgebra.cond(a::Tensor) = linalg_cond(a)
LinearAlgebra.svdvals(a::Tensor) = linalg_svdvals(a)
LinearAlgebra.kron(a::Tensor, b::Tensor) = kron(a, b)
LinearAlgebra.cross(a::Tensor, b::Tensor) = cross(a, b)
