# What generated code makes of Julia's arguments.

struct Required end
"The default of an argument that must be given, by position or by keyword."
const required = Required()
@noinline missing_argument(name) = throw(UndefKeywordError(name))

# dims=, as Julia's functions take it: of those that reduce, it keeps the dims with size 1; a colon stands for all.
chosen(dims, dim) = dims === nothing ? dim : dim isa Union{Tensor, Tuple} ? throw(ArgumentError("dims = $(repr(dims)) beside $(typeof(dim))")) : dims isa Ints ? dims : dims isa Colon && dim === nothing ? nothing : wrong_dims(dims, "a dim, several or :")
chosen_one(dims, dim) = dims isa Union{Tuple, AbstractVector} ? (length(dims) == 1 ? dims[1] : wrong_dims(dims, "one dim")) : chosen(dims, dim)
@noinline wrong_dims(dims, kind) = throw(ArgumentError("dims = $(repr(dims)): must be $kind"))
keeps(dims) = !(dims isa Union{Nothing, Colon})
only_dim(t) = ndims(t) == 1 ? 1 : missing_argument(:dims)

"An ellipsis among indices: t[1, ..]."
struct Ellipsis end
const .. = Ellipsis()

const Ints = Union{Integer, Tuple{Vararg{Integer}}, AbstractVector{<:Integer}}
const Floats = Union{Real, Tuple{Vararg{Real}}, AbstractVector{<:Real}}
const Tensors = Union{AbstractVector{Tensor}, Tuple{Vararg{Tensor}}}
const OptionalTensors = Union{AbstractVector, Tuple{Vararg{Union{Tensor, Nothing}}}}

# ---- dtypes, devices, memory formats ----

"A float of 16 bits with the range of Float32: stored and shown here, computed with by tt."
primitive type BFloat16 <: AbstractFloat 16 end
Base.Float32(x::BFloat16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
Base.Float64(x::BFloat16) = Float64(Float32(x))
function BFloat16(x::Float32)
    bits = reinterpret(UInt32, x)
    isnan(x) && return reinterpret(BFloat16, UInt16(bits >> 16) | 0x0040)
    return reinterpret(BFloat16, UInt16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16))
end
BFloat16(x::Real) = BFloat16(Float32(x))
Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Union{Float32, Float64}} = T
Base.promote_rule(::Type{BFloat16}, ::Type{<:Integer}) = BFloat16
Base.show(io::IO, x::BFloat16) = print(io, "BFloat16(", Float32(x), ")")

const DTYPES = (Bool, UInt8, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, ComplexF32, ComplexF64)
function dtype_code(T::Type)
    k = findfirst(==(T), DTYPES)
    return k === nothing ? throw(ArgumentError("no tensor has elements of type $T: must be one of $(join(DTYPES, ", "))")) : Int32(k)
end
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
    print(io, "Device(\"", DEVICE_TYPES[d.raw.type], d.raw.type in (C.TT_CUDA, C.TT_EXT) ? ":$(d.raw.index)" : "", "\")")
end
const DeviceLike = Union{Device, AbstractString}
device_struct(d::Device) = d.raw
device_struct(d::AbstractString) = Device(d).raw
device_struct(::Nothing) = C.tt_device(0, 0)

memory_format_code(s::Symbol) = s === :contiguous ? C.TT_CONTIGUOUS : s === :preserve ? C.TT_PRESERVE : s === :channels_last ? C.TT_CHANNELS_LAST :
    s === :channels_last_3d ? C.TT_CHANNELS_LAST_3D :
    throw(ArgumentError("memory format :$s: must be :contiguous, :preserve, :channels_last or :channels_last_3d"))

# ---- numbers ----

is_real(x) = x isa Real && !(x isa Integer)
is_int(x) = x isa Integer && !(x isa Bool)
scalar(x::Bool) = C.tt_scalar(C.TT_SCALAR_BOOL, 0, x, x, 0)
scalar(x::Integer) = C.tt_scalar(C.TT_SCALAR_INT, 0, x, x, 0)
scalar(x::Real) = C.tt_scalar(C.TT_SCALAR_FLOAT, 0, 0, x, 0)
scalar(x::Complex) = C.tt_scalar(C.TT_SCALAR_COMPLEX, 0, 0, real(x), imag(x))
scalar(::Nothing) = C.tt_scalar(0, 0, 0, 0, 0)
scalar_or_null(x) = x === nothing ? C_NULL : Ref(scalar(x))
f64(x) = x === nothing ? 0.0 : Float64(x)
i64(x) = x === nothing ? Int64(0) : Int64(x)
flag(x) = x === nothing ? Int32(0) : Int32(x)
pair(x) = (Float64(x[1]), Float64(x[2]))
given(x, k) = x === nothing ? UInt64(0) : UInt64(1) << k

"A dim or an index of C's: negative ones count from the end in both."
c_dim(d) = d === nothing ? Int64(0) : d > 0 ? Int64(d) - 1 : d < 0 ? Int64(d) : throw(ArgumentError("dims count from 1 (or back from -1): there is no dim 0"))
c_index_of(i) = i === nothing ? Int64(0) : i > 0 ? Int64(i) - 1 : i < 0 ? Int64(i) : throw(ArgumentError("indices count from 1 (or back from -1): there is no index 0"))

function choice(table, x, arg)
    name = x === nothing ? "none" : String(x)
    for (key, value) in table
        key == name && return Int32(value)
    end
    throw(ArgumentError("$arg is \"$name\": must be one of $(join(first.(table), ", "))"))
end

"A 0-dim tensor of a number beside tensors: promotion sees no more of it than its kind, and no digit is lost."
function number_tensor(x::Number, beside...)
    others = filter(t -> t isa Tensor, collect(Any, beside))
    rank(T) = T === Bool ? 1 : T <: Integer ? 2 : T <: Real ? 3 : 4
    kind, code = rank(typeof(x)), Int32(0)
    if !isempty(others) && kind <= rank(eltype(others[1]))
        code = ndims(others[1]) > 0 ? (C.TT_BOOL, C.TT_I64, C.TT_F64, C.TT_C128)[kind] : dtype_code(eltype(others[1]))
    end
    return number_of(x, code)
end

# ---- lists ----

ints(x) = x === nothing ? Int64[] : x isa Integer ? Int64[x] : Int64[i isa Colon ? -1 : i for i in x]
floats(x) = x === nothing ? Float64[] : x isa Real ? Float64[x] : Float64[v for v in x]
c_dims(x) = x === nothing ? Int64[] : x isa Integer ? Int64[c_dim(x)] : Int64[c_dim(d) for d in x]
gathered(args) = length(args) == 1 && !(args[1] isa Union{Integer, Colon}) ? args[1] : args
handle(x) = x === nothing ? C_NULL : handle_of(x)
listed(x) = x isa Tensor ? [x] : x isa Union{AbstractVector, Tuple, Nothing} ? x : collect(Any, x)
handles(list::Union{AbstractVector, Tuple}) = Ptr{Cvoid}[handle(x) for x in list]  # which somebody must keep meanwhile
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

@noinline no_form(name) = throw(ArgumentError("$name: no form of it takes arguments of these kinds together"))
@noinline no_out(name) = throw(ArgumentError("$name: this form has no out"))
