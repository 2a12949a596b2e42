# Tensors from arrays and back.

"Holds x until C calls the drop that goes with the returned key."
function hold(x)
    lock(HELD_LOCK)
    try
        id = LAST_KEY[] += 1
        HELD[id] = x
        return Ptr{Cvoid}(id)
    finally
        unlock(HELD_LOCK)
    end
end
function held(key::Ptr{Cvoid})
    lock(HELD_LOCK)
    try
        return HELD[UInt(key)]
    finally
        unlock(HELD_LOCK)
    end
end
# Called by C within poll() or a failing call, never in the middle of a collection.
function forget(key::Ptr{Cvoid})
    lock(HELD_LOCK)
    try
        delete!(HELD, UInt(key))
    finally
        unlock(HELD_LOCK)
    end
    return
end
const HELD = Dict{UInt, Any}()
const HELD_LOCK = Threads.SpinLock()
const LAST_KEY = Ref(UInt(0))

"""
    Tensor(array)
    Tensor(number)

A tensor of the array's shape and element type over the array's memory, by columns: each sees the
other's writes. An array that is no `Array` is copied first. A `Vector` cannot grow any more
afterwards (from Julia 1.11 on: once it grows, the two are apart). `tensor` makes a copy.
"""
function Tensor(a::Array{T, N}) where {T, N}
    poll()
    code = dtype_code(T)
    memory = N == 1 ? Base.reshape(a, :, 1) : a  # while data is shared, a cannot grow
    o = Ref{Ptr{Cvoid}}()
    sizes, steps = Int64[size(a)...], Int64[strides(a)...]
    check(C.tt_tensor_import(ctx(), pointer(a), code, sizes, N, steps, true, drop(), hold(memory),
        o))
    return wrap(o[])
end
Tensor(a::AbstractArray) = Tensor(plain(a))
Tensor(a::Tensor) = a
plain(a::Array) = a
plain(a::AbstractArray{T, N}) where {T, N} = copyto!(Array{T, N}(undef, size(a)), a)
function Tensor(x::Number)
    return number_of(x, dtype_code(typeof(x) in DTYPES ? typeof(x) : wider(x)))
end
wider(::Integer) = Int64
wider(::Real) = Float64
wider(::Number) = ComplexF64
number_of(x, code) = wrap(handle_out(o -> C.tt_scalar_tensor(ctx(), Ref(scalar(x)), code, o)))

"""
    tensor(x; dtype=nothing, device=nothing, requires_grad=false)

A new tensor, stored by rows, with the values of an array, a number, a tensor or an iterator.
"""
function tensor(x; dtype=nothing, device=nothing, requires_grad::Bool=false)
    made = copied(x, dtype)
    dtype === device === nothing || (made = to(made; dtype=dtype, device=device))
    return requires_grad ? requires_grad!(made) : made
end
copied(x::Tensor, dtype) = clone(detach(x))
copied(x::Number, dtype) = Tensor(x)
copied(x::AbstractArray, dtype) = row_major(of_one_type(plain(x), dtype))
copied(x, dtype) = copied(collect(x), dtype)
"Arrays of Any, Real … get the type that their elements promote to; of other types: dtype."
function of_one_type(a, dtype)
    eltype(a) in DTYPES && return a
    isconcretetype(eltype(a)) || isempty(a) ||
        return convert(Array{mapreduce(typeof, promote_type, a)}, a)
    return dtype === nothing ? a : dtype.(a)
end
# The copy is C's: permutedims would be compiled for each type and number of dims.
function row_major(@nospecialize(a::Array))
    N, o = ndims(a), Ref{Ptr{Cvoid}}()
    sizes = Int64[size(a, d) for d in N:-1:1]
    code = dtype_code(eltype(a))
    check(GC.@preserve a C.tt_tensor_from_data(ctx(), pointer(a), code, sizes, N, o))
    N < 2 && return wrap(o[])
    columns = wrap(o[])
    check(C.tt_permute(ctx(), columns, Int64[N-1:-1:0;], N, o))
    transposed = wrap(o[])
    check(C.tt_clone(ctx(), transposed, Ref(C.tt_clone_opts(UInt64(1), C.TT_CONTIGUOUS)), o))
    free!(transposed)
    free!(columns)
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

"The array that `typed` returns."
struct TensorArray{T, N} <: AbstractArray{T, N}
    at::Ptr{T}
    size::NTuple{N, Int}
    strides::NTuple{N, Int}
    writable::Bool
    owner::Tensor
end

const RECORDING = Threads.Atomic{Int}(0)  # how many functions are recorded, in all threads

"Calls f while C records it."
function recorded(f, x...)
    Threads.atomic_add!(RECORDING, 1)
    try
        return f(x...)
    finally
        Threads.atomic_sub!(RECORDING, 1)
    end
end

"Ends the recording of this thread, or fails its capture: memory is read, which C does not see."
function note_read()
    RECORDING[] > 0 && item(tensor(0.0))
    return nothing
end

"""
    typed(t)

An array over the memory of a CPU tensor, whatever its strides. Autograd does not see writes to it.
"""
function typed(a::Tensor)
    C.tt_tensor_device_type(a) == C.TT_CPU ||
        throw(ArgumentError("typed: $(device(a)) has no memory of the host's"))
    note_read()
    owner = borrow(handle_of(a))  # a reference of its own: a may be freed
    return TensorArray{eltype(a), ndims(a)}(C.tt_tensor_data(a), size(a), strides(a),
        is_writable(a), owner)
end
# Of a constant of a precompiled package `at` points anywhere.
@inline Base.size(a::TensorArray) = is_freed(a.owner) ? throw_freed("array of typed()") : a.size
Base.strides(a::TensorArray) = a.strides
Base.IndexStyle(::Type{<:TensorArray}) = IndexCartesian()
Base.deepcopy_internal(a::TensorArray, seen::IdDict) = get!(() -> typed(deepcopy(a.owner)), seen, a)
Base.elsize(::Type{<:TensorArray{T}}) where {T} = sizeof(T)
Base.cconvert(::Type{Ptr{T}}, a::TensorArray{T}) where {T} = a
Base.unsafe_convert(::Type{Ptr{T}}, a::TensorArray{T}) where {T} = a.at
Base.@propagate_inbounds function Base.getindex(a::TensorArray{T, N},
    index::Vararg{Int, N}) where {T, N}
    @boundscheck checkbounds(a, index...)
    return GC.@preserve a unsafe_load(a.at, offset(index, a.strides))
end
Base.@propagate_inbounds function Base.setindex!(a::TensorArray{T, N}, x,
    index::Vararg{Int, N}) where {T, N}
    @boundscheck checkbounds(a, index...)
    a.writable || throw(ReadOnlyMemoryError())
    GC.@preserve a unsafe_store!(a.at, convert(T, x), offset(index, a.strides))
    return a
end
@inline offset(::Tuple{}, ::Tuple{}) = 1
@inline offset(index, strides) =
    (index[1] - 1) * strides[1] + offset(Base.tail(index), Base.tail(strides))
