# Errors of libtt as exceptions. Errors found before C is called are an ArgumentError, BoundsError,
# DimensionMismatch, KeyError, MethodError or TypeError.

"""
A call of tt that failed. `op`, `arg` and `arg_index` name the operator and the argument (counted
from 0; -1: no single one), `shapes` and `dtypes` are those that do not match, and `cause` is the
error inside a callback. In `message`, dims and indices count from 0, as in C.
"""
abstract type Error <: Exception end

const ERRORS = Dict{Int32, DataType}()
for (name, what, codes) in [
        (:InvalidArgumentError, "An argument has a value that is not allowed.",
        [C.TT_INVALID_ARG, C.TT_UNSUPPORTED_OPTION]),
        (:ShapeError, "Shapes do not match each other or the operator.", [C.TT_SHAPE]),
        (:DtypeError, "The operator does not take this dtype.", [C.TT_DTYPE]),
        (:DeviceError, "Tensors are on different devices, or a device does not exist.",
        [C.TT_DEVICE]),
        (:OutOfRangeError, "An index or a dim is out of range.", [C.TT_INDEX]),
        (:OutOfMemory, "The allocator failed, or the memory limit was reached.", [C.TT_OOM]),
        (:FileError, "Reading or writing failed.", [C.TT_IO]),
        (:FormatError, "A file does not have the expected format.", [C.TT_FORMAT]),
        (:UnimplementedError, "tt has no kernel or no gradient formula for this call.",
        [C.TT_NOT_IMPLEMENTED]),
        (:HandleError, "The object was freed.", [C.TT_BAD_HANDLE]),
        (:AutogradError,
        "A graph was freed, a saved tensor overwritten, or a leaf written in place.",
        [C.TT_AUTOGRAD]),
        (:CancelledError, "The call was cancelled.", [C.TT_CANCELLED]),
        (:CallbackError, "A callback failed without a Julia exception.", [C.TT_CALLBACK]),
        (:LinAlgError, "A matrix is singular, not positive definite, or has no result.",
        [C.TT_LINALG]),
        (:DistributedError, "A process of a group failed, did not answer, or disagrees.",
        [C.TT_DISTRIBUTED]),
        (:InternalError, "Any other status.", [C.TT_BUFFER_TOO_SMALL, C.TT_ABI, C.TT_INTERNAL])]
    @eval begin
        @doc $what struct $name <: Error
            code::Int32
            op::String
            arg::String
            arg_index::Int
            message::String
            shapes::Vector{Vector{Int}}
            dtypes::Vector{Type}
            cause::Union{Error, Nothing}
        end
        foreach(code -> ERRORS[code] = $name, $codes)
    end
end

text(p) = p == C_NULL ? "" : unsafe_string(p)

"The exception for a tt_error."
function exception_of(record::C.tt_error)
    shapes = [collect(Int,
        record.shape[i][1:Base.min(record.ndim[i], 8)]) for i in 1:2 if record.ndim[i] >= 0]
    dtypes = Type[DTYPES[d] for d in record.dtype if d != 0]
    cause = record.cause == C_NULL ? nothing : exception_of(unsafe_load(record.cause))
    kind = get(ERRORS, record.code, InternalError)
    return kind(record.code, text(record.op), text(record.arg), record.arg_index,
        text(record.message), shapes, dtypes, cause)
end

function Base.showerror(io::IO, e::Error)
    names_op = isempty(e.op) || startswith(e.message, e.op * ":")
    print(io, "TT.", nameof(typeof(e)), ": ", names_op ? "" : e.op * ": ", e.message)
    unquoted = replace(e.message, r"\"[^\"]*\"" => "")
    e isa OutOfRangeError && occursin(r"\d", unquoted) &&
        print(io, " (here dims and indices count from 0, as in C)")
    if e.cause !== nothing
        print(io, "\n  caused by ")
        showerror(io, e.cause)
    end
end

@noinline function throw_freed(what)
    message = "this $what was freed, or is a constant of a precompiled package: make it in __init__"
    throw(HandleError(C.TT_BAD_HANDLE, "", "", -1, message, [], [], nothing))
end

"Adds to a MethodError of tt that arrays are no tensors."
function hint_at_tensors(io, e, types, _...)
    is_array(T) = T isa Type && T <: AbstractArray{<:Number}
    home = e.f isa Type ? parentmodule(e.f) : parentmodule(typeof(e.f))
    mine = e.f isa Module || home === @__MODULE__
    mine && Base.any(is_array, types) && print(io, "\ntt computes with tensors: tensor(x) copies ",
        "an array, Tensor(x) shares its memory.")
end
