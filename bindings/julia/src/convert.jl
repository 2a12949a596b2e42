# Conversions of Julia's arguments, for generated code.

struct Required end
"The default of an argument that must be given, by position or by keyword."
const required = Required()
@noinline missing_argument(name) = throw(UndefKeywordError(name))

# `dims` beside `dim`, as Julia's functions take it: what is reduced keeps size 1; a colon means all
# dims.
function chosen(dims, dim)
    dims === nothing && return dim
    dim isa Union{Tensor, Tuple} &&
        throw(ArgumentError("dims = $(repr(dims)) beside $(typeof(dim))"))
    dims isa Ints && return dims
    dims isa Colon && dim === nothing || wrong_dims(dims, "a dim, several or :")
    return nothing
end
function chosen_one(dims, dim)
    dims isa Union{Tuple, AbstractVector} || return chosen(dims, dim)
    return length(dims) == 1 ? dims[1] : wrong_dims(dims, "one dim")
end
@noinline wrong_dims(dims, kind) = throw(ArgumentError("dims = $(repr(dims)): must be $kind"))
keeps(dims) = !(dims isa Union{Nothing, Colon})
"The arguments, with 0 inserted if the first one is left out, as in arange(stop)."
function left_out(given...)
    there = filter(x -> x !== nothing, given)
    missing_ones = length(given) - length(there)
    missing_ones == 0 && return given
    return (0, there..., ntuple(_ -> nothing, missing_ones - 1)...)
end
only_dim(t) = ndims(t) == 1 ? 1 : missing_argument(:dims)

struct Ellipsis end
"An ellipsis among indices, `t[1, ..]`: all other dims, whole. `using TT: (..)` brings it in."
const .. = Ellipsis()

const Ints = Union{Integer, Tuple{Vararg{Integer}}, AbstractVector{<:Integer}}
const Floats = Union{Real, Tuple{Vararg{Real}}, AbstractVector{<:Real}}
const Tensors = Union{AbstractVector{Tensor}, Tuple{Vararg{Tensor}}}
const OptionalTensors = Union{AbstractVector, Tuple{Vararg{Union{Tensor, Nothing}}}}

# ---- dtypes, devices, memory formats ----

"A float of 16 bits with the range of Float32. Julia stores and shows it; tt computes with it."
primitive type BFloat16 <: AbstractFloat 16 end
Base.Float32(x::BFloat16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
Base.Float64(x::BFloat16) = Float64(Float32(x))
function BFloat16(x::Float32)
    bits = reinterpret(UInt32, x)
    Base.isnan(x) && return reinterpret(BFloat16, UInt16(bits >> 16) | 0x0040)
    return reinterpret(BFloat16, UInt16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16))
end
BFloat16(x::Real) = BFloat16(Float32(x))
Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Union{Float32, Float64}} = T
Base.promote_rule(::Type{BFloat16}, ::Type{<:Integer}) = BFloat16
Base.show(io::IO, x::BFloat16) = print(io, "BFloat16(", Float32(x), ")")

const DTYPES = (Bool, UInt8, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64,
    ComplexF32, ComplexF64, UInt16, UInt32, UInt64)
function dtype_code(@nospecialize(T::Type))
    for k in 1:length(DTYPES)
        DTYPES[k] === T && return Int32(k)
    end
    wrong_dtype(T)
end
@noinline wrong_dtype(@nospecialize(T)) =
    throw(ArgumentError("no tensor has elements of type $T: must be one of $(join(DTYPES, ", "))"))
dtype_code(::Nothing) = Int32(0)

"Where tensors live: Device(\"cpu\"), \"meta\", \"cuda:0\" or a backend's name."
struct Device
    raw::C.tt_device
end
function Device(text::AbstractString)
    out = Ref{C.tt_device}()
    check(C.tt_device_parse(ctx(), text, out))
    return Device(out[])
end
const DEVICE_TYPES = ("cpu", "cuda", "meta", "ext")
function Base.show(io::IO, d::Device)
    number = d.raw.type in (C.TT_CUDA, C.TT_EXT) ? ":$(d.raw.index)" : ""
    print(io, "Device(\"", DEVICE_TYPES[d.raw.type], number, "\")")
end
const DeviceLike = Union{Device, AbstractString}
device_struct(d::Device) = d.raw
device_struct(d::AbstractString) = Device(d).raw
device_struct(::Nothing) = C.tt_device(0, 0)

const MEMORY_FORMATS = (contiguous = C.TT_CONTIGUOUS, preserve = C.TT_PRESERVE,
                        channels_last = C.TT_CHANNELS_LAST,
                        channels_last_3d = C.TT_CHANNELS_LAST_3D)
function memory_format_code(s::Symbol)
    haskey(MEMORY_FORMATS, s) ||
        throw(ArgumentError(
            "memory format :$s: must be one of " * join(keys(MEMORY_FORMATS), ", ")))
    return MEMORY_FORMATS[s]
end

# ---- numbers ----

is_real(x) = x isa Real && !(x isa Integer)
is_int(x) = x isa Integer && !(x isa Bool)
scalar(x::Bool) = C.tt_scalar(C.TT_SCALAR_BOOL, 0, x, x, 0)
scalar(x::Integer) = C.tt_scalar(C.TT_SCALAR_INT, 0, x, x, 0)
scalar(x::Real) = C.tt_scalar(C.TT_SCALAR_FLOAT, 0, 0, x, 0)
scalar(x::Complex) = C.tt_scalar(C.TT_SCALAR_COMPLEX, 0, 0, Base.real(x), Base.imag(x))
scalar(::Nothing) = C.tt_scalar(0, 0, 0, 0, 0)
scalar_or_null(x) = x === nothing ? C_NULL : Ref(scalar(x))
f64(x) = x === nothing ? 0.0 : Float64(x)
i64(x) = x === nothing ? Int64(0) : Int64(x)
flag(x) = x === nothing ? Int32(0) : Int32(x)
pair(x) = (Float64(x[1]), Float64(x[2]))
given(x, k) = x === nothing ? UInt64(0) : UInt64(1) << k

"C's number of a dim or an index, which counts from 0; from the end both count from -1."
from_zero(::Nothing, what) = Int64(0)
function from_zero(i, what)
    i == 0 && throw(ArgumentError("$what count from 1 (or back from -1): there is no 0"))
    return i > 0 ? Int64(i) - 1 : Int64(i)
end
c_dim(d) = from_zero(d, "dims")
c_index_of(i) = from_zero(i, "indices")

function choice(table, x, arg)
    name = x === nothing ? "none" : String(x)
    for (key, value) in table
        key == name && return Int32(value)
    end
    throw(ArgumentError("$arg is \"$name\": must be one of $(join(first.(table), ", "))"))
end

"""
A tensor without dims of a number beside tensors: promotion goes by the number's kind alone, and no
digit is lost.
"""
function number_tensor(x::Number, beside...)
    others = filter(t -> t isa Tensor, collect(Any, beside))
    isempty(others) && return number_of(x, Int32(0))
    T, kind = eltype(others[1]), number_kind(typeof(x))
    kind > number_kind(T) && return number_of(x, Int32(0))
    widest = (C.TT_BOOL, C.TT_I64, C.TT_F64, C.TT_C128)[kind]
    return number_of(x, ndims(others[1]) > 0 ? widest : dtype_code(T))
end
number_kind(::Type{Bool}) = 1
number_kind(::Type{<:Integer}) = 2
number_kind(::Type{<:Real}) = 3
number_kind(::Type{<:Number}) = 4

# ---- lists ----

ints(::Nothing) = Int64[]
ints(x::Integer) = Int64[x]
ints(x) = Int64[i isa Colon ? -1 : i for i in x]
floats(::Nothing) = Float64[]
floats(x::Real) = Float64[x]
floats(x) = Float64[v for v in x]
c_dims(::Nothing) = Int64[]
c_dims(x::Integer) = Int64[c_dim(x)]
c_dims(x) = Int64[c_dim(d) for d in x]
gathered(args) = length(args) == 1 && !(args[1] isa Union{Integer, Colon}) ? args[1] : args
handle(x) = x === nothing ? C_NULL : handle_of(x)
listed(x::Tensor) = [x]
listed(x::Union{AbstractVector, Tuple, Nothing}) = x
listed(x) = collect(Any, x)
"The handles in a list, whose tensors the caller keeps alive."
handles(list::Union{AbstractVector, Tuple}) = Ptr{Cvoid}[handle(x) for x in list]
optional(x) = x === nothing ? C_NULL : x
text_or_null(x) = x === nothing ? C_NULL : String(x)
text_or_nothing(p) = p == C_NULL ? nothing : unsafe_string(p)

"The tensors of a C call that fills (outs, cap, n); the first room is for 64."
function list_out(call)
    n = Ref(Int64(0))
    outs = Vector{Ptr{Cvoid}}(undef, 64)
    while (status = call(outs, length(outs), n)) == C.TT_BUFFER_TOO_SMALL && n[] > length(outs)
        resize!(outs, n[])
    end
    check(status)
    return Tensor[wrap(outs[i]) for i in 1:n[]]
end

@noinline no_form(name) = throw(
    ArgumentError("$name: no form of it takes arguments of these kinds together"))
@noinline no_out(name) = throw(ArgumentError("$name: this form has no out"))
