# Errors of libtt as exceptions; what is wrong before C is called is an ArgumentError, BoundsError, MethodError or TypeError.

"""
A failed call of tt: `op`, `arg` and `arg_index` (from 0; -1: not one argument) name what was wrong, `shapes` and `dtypes` are those that did
not fit, `cause` is the error inside a callback. `message` speaks as C does: its dims and indices count from 0.
"""
abstract type Error <: Exception end

const ERRORS = Dict{Int32, DataType}()
for (name, what, codes) in [
        (:InvalidArgumentError, "A value outside its domain.", [C.TT_INVALID_ARG, C.TT_UNSUPPORTED_OPTION]),
        (:ShapeError, "Shapes that do not fit each other or the operator.", [C.TT_SHAPE]),
        (:DtypeError, "A dtype that the operator does not take.", [C.TT_DTYPE]),
        (:DeviceError, "Tensors on different devices, or a device that is not there.", [C.TT_DEVICE]),
        (:OutOfRangeError, "An index or a dim out of range.", [C.TT_INDEX]),
        (:OutOfMemory, "The allocator or the memory limit said no.", [C.TT_OOM]),
        (:FileError, "Reading or writing failed.", [C.TT_IO]),
        (:FormatError, "A file that is not what it should be.", [C.TT_FORMAT]),
        (:UnimplementedError, "A valid call that tt has no kernel or formula for.", [C.TT_NOT_IMPLEMENTED]),
        (:HandleError, "An object that was freed.", [C.TT_BAD_HANDLE]),
        (:AutogradError, "A graph that was freed, a saved tensor that was overwritten, an in-place write to a leaf …", [C.TT_AUTOGRAD]),
        (:CancelledError, "The cancel token was set.", [C.TT_CANCELLED]),
        (:CallbackError, "A callback failed without an exception of Julia.", [C.TT_CALLBACK]),
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

"The exception that says what a tt_error says."
function exception_of(record::C.tt_error)
    shapes = [collect(Int, record.shape[i][1:min(record.ndim[i], 8)]) for i in 1:2 if record.ndim[i] >= 0]
    dtypes = Type[DTYPES[d] for d in record.dtype if d != 0]
    cause = record.cause == C_NULL ? nothing : exception_of(unsafe_load(record.cause))
    kind = get(ERRORS, record.code, InternalError)
    return kind(record.code, text(record.op), text(record.arg), record.arg_index, text(record.message), shapes, dtypes, cause)
end

function Base.showerror(io::IO, e::Error)
    print(io, "TT.", nameof(typeof(e)), ": ", isempty(e.op) || startswith(e.message, e.op * ":") ? "" : e.op * ": ", e.message)
    e isa OutOfRangeError && occursin(r"\d", replace(e.message, r"\"[^\"]*\"" => "")) && print(io, " (here dims and indices count from 0, as in C)")
    e.cause === nothing || print(io, "\n  caused by ")
    e.cause === nothing || showerror(io, e.cause)
end

@noinline throw_freed(what, how="was freed") = throw(HandleError(C.TT_BAD_HANDLE, "", "", -1, "this $what $how", [], [], nothing))
"What constants of precompiled packages have lost."
@noinline throw_lost(what) = throw_freed(what, "is a constant of a precompiled package, which cannot keep its memory: make it in __init__")
