# Tensors from arrays and back.

"Keeps x alive until C calls the drop that goes with the returned key."
function keep(x)
    lock(KEPT_LOCK)
    try
        id = LAST_KEY[] += 1
        KEPT[id] = x
        return Ptr{Cvoid}(id)
    finally
        unlock(KEPT_LOCK)
    end
end
kept(key::Ptr{Cvoid}) = (lock(KEPT_LOCK); try KEPT[UInt(key)] finally unlock(KEPT_LOCK) end)
# Called by C within poll() or a failing call, never in the middle of a collection.
function forget(key::Ptr{Cvoid})
    lock(KEPT_LOCK)
    try delete!(KEPT, UInt(key)) finally unlock(KEPT_LOCK) end
    return
end
const KEPT = Dict{UInt, Any}()
const KEPT_LOCK = Threads.SpinLock()
const LAST_KEY = Ref(UInt(0))

"""
    Tensor(array)
    Tensor(number)

A tensor of the array's shape and element type over its own memory, column-major: both see each other's writes. Arrays that are no `Array` are
copied first. A `Vector` cannot grow any more afterwards (from Julia 1.11 on: if it grows, the two part). For a copy: `tensor`.
"""
function Tensor(a::Array{T, N}) where {T, N}
    poll()
    code = dtype_code(T)
    memory = N == 1 ? reshape(a, :, 1) : a  # of the same data: nobody moves it now, even if a may grow
    o = Ref{Ptr{Cvoid}}()
    sizes, steps = Int64[size(a)...], Int64[strides(a)...]
    check(C.tt_tensor_import(ctx(), pointer(a), code, sizes, N, steps, true, DROP[], keep(memory), o))
    return wrap(o[])
end
Tensor(a::AbstractArray) = Tensor(plain(a))
Tensor(a::Tensor) = a
plain(a::Array) = a
plain(a::AbstractArray{T, N}) where {T, N} = copyto!(Array{T, N}(undef, size(a)), a)  # whatever its indices
function Tensor(x::Number)
    T = typeof(x) in DTYPES ? typeof(x) : x isa Integer ? Int64 : x isa Real ? Float64 : ComplexF64
    return number_of(x, dtype_code(T))
end
number_of(x, code) = wrap(handle_out(o -> C.tt_scalar_tensor(ctx(), Ref(scalar(x)), code, o)))

"A new tensor with the values of an array, a number or a tensor, row-major as tt's own."
function tensor(x; dtype=nothing, device=nothing, requires_grad::Bool=false)
    made = x isa Tensor ? clone(detach(x)) : x isa Number ? Tensor(x) : row_major(of_one_type(plain(x isa AbstractArray ? x : collect(x)), dtype))
    dtype === device === nothing || (made = to(made; dtype=dtype, device=device))
    return requires_grad ? requires_grad!(made) : made
end
# Arrays of Any, Real … have the type that their elements promote to; what no tensor has, the one that is asked for.
of_one_type(a, dtype) = eltype(a) in DTYPES ? a : isconcretetype(eltype(a)) || isempty(a) ? (dtype === nothing ? a : dtype.(a)) :
    convert(Array{mapreduce(typeof, promote_type, a)}, a)
function row_major(a::Array{T, N}) where {T, N}
    rows = N < 2 ? a : permutedims(a, N:-1:1)
    o = Ref{Ptr{Cvoid}}()
    check(C.tt_tensor_from_data(ctx(), rows, dtype_code(T), Int64[size(a)...], N, o))
    return wrap(o[])
end

"A copy of t's values."
function Base.Array(a::Tensor)
    N, T = ndims(a), eltype(a)
    out = Array{T, N}(undef, size(a))
    columns = N < 2 ? a : permute(a, N:-1:1)
    check(C.tt_tensor_read(ctx(), columns, out, sizeof(out)))
    return out
end

"""
    typed(t)

An array over the memory of a CPU tensor, whatever its strides. Writes go past autograd: it does not see them.
"""
struct TensorArray{T, N} <: AbstractArray{T, N}
    at::Ptr{T}
    size::NTuple{N, Int}
    strides::NTuple{N, Int}
    writable::Bool
    owner::Tensor
end
function typed(a::Tensor)
    C.tt_tensor_device_type(a) == C.TT_CPU || throw(ArgumentError("typed: $(device(a)) has no memory of the host's"))
    owner = borrow(handle_of(a))  # a reference of its own: a may be freed
    return TensorArray{eltype(a), ndims(a)}(C.tt_tensor_data(a), size(a), strides(a), is_writable(a), owner)
end
# `at` of a constant of a precompiled package points anywhere; its owner has lost its place.
@inline Base.size(a::TensorArray) = getfield(a.owner, :slot).at == C_NULL ? throw_lost("array of typed()") : a.size
Base.strides(a::TensorArray) = a.strides
Base.IndexStyle(::Type{<:TensorArray}) = IndexCartesian()
Base.deepcopy_internal(a::TensorArray, seen::IdDict) = get!(() -> typed(deepcopy(a.owner)), seen, a)
Base.elsize(::Type{<:TensorArray{T}}) where {T} = sizeof(T)
Base.cconvert(::Type{Ptr{T}}, a::TensorArray{T}) where {T} = a
Base.unsafe_convert(::Type{Ptr{T}}, a::TensorArray{T}) where {T} = a.at
Base.@propagate_inbounds function Base.getindex(a::TensorArray{T, N}, index::Vararg{Int, N}) where {T, N}
    @boundscheck checkbounds(a, index...)
    return GC.@preserve a unsafe_load(a.at, offset(index, a.strides))
end
Base.@propagate_inbounds function Base.setindex!(a::TensorArray{T, N}, x, index::Vararg{Int, N}) where {T, N}
    @boundscheck checkbounds(a, index...)
    a.writable || throw(ReadOnlyMemoryError())
    GC.@preserve a unsafe_store!(a.at, convert(T, x), offset(index, a.strides))
    return a
end
@inline offset(::Tuple{}, ::Tuple{}) = 1
@inline offset(index, strides) = (index[1] - 1) * strides[1] + offset(Base.tail(index), Base.tail(strides))
