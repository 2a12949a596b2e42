# What a Tensor has in common with Julia's arrays. What counts elements or looks for them does so on the host, without gradients.

# ---- values ----

Base.collect(a::Tensor) = Array(a)
Base.Array{T}(a::Tensor) where {T} = Array{T}(Array(a))
Base.Array{T, N}(a::Tensor) where {T, N} = Array{T, N}(Array(a))
(::Type{Array{T, N} where T})(a::Tensor) where {N} = Array(a)::Array{<:Any, N}
(::Type{T})(a::Tensor) where {T<:Number} = T(item(a))
Base.convert(::Type{T}, a::Tensor) where {T<:Union{Number, Array}} = T(a)::T
Base.convert(::Type{Tensor}, x::Union{Number, AbstractArray}) = tensor(x)

plain_value(x) = x
plain_value(x::Tensor) = eltype(x) === BFloat16 ? plain_value(to(x; dtype=Float32)) : ndims(x) == 0 ? item(x) : Array(x)
const Plain = Union{Number, AbstractArray}
"Beside a number or an array the values are compared; two tensors are equal if they are the same: `a .== b`, `a ≈ b` compare theirs."
Base.:(==)(a::Tensor, b::Plain) = plain_value(a) == b
Base.:(==)(a::Plain, b::Tensor) = a == plain_value(b)
Base.isapprox(a::Tensor, b::Union{Tensor, Plain}; kw...) = isapprox(plain_value(a), plain_value(b); kw...)
Base.isapprox(a::Plain, b::Tensor; kw...) = isapprox(a, plain_value(b); kw...)
Base.isless(a::Tensor, b::Union{Tensor, Real}) = isless(item(a), plain_value(b))
Base.isless(a::Real, b::Tensor) = isless(a, item(b))
Base.:<(a::Tensor, b::Union{Tensor, Real}) = item(a) < plain_value(b)
Base.:<(a::Real, b::Tensor) = a < item(b)

"Elements in the order of Julia's arrays: numbers, which record no gradients."
Base.iterate(a::Tensor) = (values = typed(a); tagged(values, iterate(values)))
Base.iterate(a::Tensor, (values, state)) = tagged(values, iterate(values, state))
tagged(values, step) = step === nothing ? nothing : (step[1], (values, step[2]))
Base.IteratorEltype(::Type{Tensor}) = Base.EltypeUnknown()
Base.keys(a::Tensor) = ndims(a) == 1 ? Base.OneTo(length(a)) : CartesianIndices(size(a))
Base.last(a::Tensor) = typed(a)[end]
for f in (:count, :findall, :findfirst, :findmax, :findmin, :extrema)
    @eval Base.$f(a::Tensor; kw...) = $f(Array(a); kw...)
    @eval Base.$f(g::Function, a::Tensor; kw...) = $f(g, Array(a); kw...)
end

# ---- other processes, files of Serialization ----

function Serialization.serialize(s::Serialization.AbstractSerializer, a::Tensor)
    Serialization.serialize_type(s, Tensor)
    Serialization.serialize(s, (Array(a), a.is_leaf && a.requires_grad))
end
function Serialization.deserialize(s::Serialization.AbstractSerializer, ::Type{Tensor})
    values, on = Serialization.deserialize(s)
    return tensor(values; requires_grad=on)
end
Serialization.serialize(::Serialization.AbstractSerializer, x::Handle) = throw(ArgumentError("a $(typeof(x)) cannot be serialized: save_checkpoint, save_file"))

# ---- making, filling ----

Base.similar(a::Tensor, T::Type, dims...) = empty(isempty(dims) ? size(a) : gathered(dims); dtype=T, device=device(a))
Base.similar(a::Tensor, dims...) = similar(a, eltype(a), dims...)
Base.zero(a::Tensor) = zeros_like(a)
function Base.one(a::Tensor)
    n = isempty(size(a)) ? 1 : size(a, 1)
    all(==(n), size(a)) && ndims(a) in (0, 2) || throw(DimensionMismatch("one of a tensor of size $(size(a)): only square matrices have it"))
    return reshape(eye(n; dtype=eltype(a), device=device(a)), size(a))
end
Base.copy!(a::Tensor, x::AbstractArray) = copy!(a, Tensor(x))
Base.copyto!(a::Tensor, x::Union{Tensor, AbstractArray}) = copy!(a, x)
Base.copyto!(a::AbstractArray, x::Tensor) = copyto!(a, Array(x))
Random.rand!(a::Tensor) = uniform!(a)
Random.randn!(a::Tensor) = normal!(a)
Random.seed!(g::Generator, seed::Integer) = (set_state!(g, (seed % UInt64, 0)); g)

# ---- shapes ----

Base.view(a::Tensor, index...) = a[index...]
Base.selectdim(a::Tensor, d::Integer, i) = a[ntuple(k -> k == d ? i : Colon(), ndims(a))...]
Base.eachslice(a::Tensor; dims::Integer) = (select(a, dims, i) for i in axes(a, dims))
Base.eachrow(a::Tensor) = eachslice(a; dims=1)
Base.eachcol(a::Tensor) = eachslice(a; dims=2)
Base.permutedims(a::Tensor, order) = clone(permute(a, order...); memory_format=:contiguous)
Base.permutedims(a::Tensor) = ndims(a) == 1 ? clone(unsqueeze(a, 1)) : permutedims(a, (2, 1))
Base.dropdims(a::Tensor; dims) =
    all(d -> size(a, d) == 1, dims) ? squeeze(a, dims) : throw(ArgumentError("dropdims: dims $dims of $(size(a)) are not all of size 1"))
Base.reverse(a::Tensor; dims=ntuple(identity, ndims(a))) = flip(a, dims...)
Base.circshift(a::Tensor, shifts) = roll(a, shifts; dims=ntuple(identity, length(shifts)))
"With trailing dims of size 1, until they are n."
lifted(a, n) = ndims(a) < n ? reshape(a, size(a)..., ntuple(_ -> 1, n - ndims(a))...) : a
Base.cat(a::Tensor, more::Tensor...; dims::Integer) = cat([lifted(x, dims) for x in (a, more...)], dims)
Base.vcat(a::Tensor, more::Tensor...) = cat(a, more...; dims=1)
Base.hcat(a::Tensor, more::Tensor...) = cat(a, more...; dims=2)
function Base.hvcat(rows::Tuple{Vararg{Int}}, all::Tensor...)
    ends = cumsum([rows...])
    return vcat((hcat(all[last-n+1:last]...) for (n, last) in zip(rows, ends))...)
end

# ---- reductions, linear algebra ----

Base.maximum(a::Tensor; dims=:) = dims isa Colon ? max(a) : amax(a; dims=dims)
Base.minimum(a::Tensor; dims=:) = dims isa Colon ? min(a) : amin(a; dims=dims)
# Base's f(function, array) must not be meant by a list of dims.
for f in (:(Base.sum), :(Base.prod), :(Base.any), :(Base.all), :(Statistics.mean), :(Base.maximum), :(Base.minimum))
    @eval $f(a::Tensor, dims::AbstractArray; kw...) = $f(a, Tuple(dims); kw...)
    @eval $f(g::Function, a::Tensor; kw...) = $f(dotted(g, a); kw...)
end
for f in (:cumsum, :cumprod)
    @eval Base.$(Symbol(f, "!"))(out::Tensor, a::Tensor; dims=only_dim(a)) = $f(a; dims=dims, out=out)
end
Base.map(f, a::Tensor, more::Tensor...) = dotted(f, a, more...)
LinearAlgebra.norm(a::Tensor, p::Real; kw...) = norm(a; p=p, kw...)
LinearAlgebra.normalize(a::Tensor, p::Real=2) = a / norm(a, p)
LinearAlgebra.diag(a::Tensor, k::Integer=0) = diagonal(a; offset=k)
LinearAlgebra.tr(a::Tensor) = sum(diagonal(a))
LinearAlgebra.mul!(out::Tensor, a::Tensor, b::Tensor) = matmul(a, b; out=out)
for op in (:+, :-, :*)
    @eval Base.$op(a::Tensor, b::AbstractArray) = $op(a, Tensor(b))
    @eval Base.$op(a::AbstractArray, b::Tensor) = $op(Tensor(a), b)
end

Base.stride(a::Tensor, d::Integer) = strides(a)[d]
Base.summary(io::IO, a::Tensor) = print(io, Base.dims2string(size(a)), " Tensor of ", eltype(a))
