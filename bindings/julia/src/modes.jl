# Random numbers, threads, cancelling, profiler, trace, operators by name, DLPack.

"""
    manual_seed(seed)

Seeds random numbers: this task draws as `TT.Generator(seed)`. Each task that first uses TT after
this draws a stream of its own, which follows from the seed and the order in which tasks do so.
Tasks that have used TT before keep their generators. Without a seed, each run draws different
numbers.
"""
function manual_seed(seed::Integer)
    check(C.tt_manual_seed(ctx(), seed % UInt64))
    C.tt_runtime_manual_seed(RUNTIME[], seed % UInt64)
    return nothing
end
"(seed, offset) of a generator"
function get_state(g::Generator)
    state = fill(UInt64(0), 2)
    check(C.tt_generator_state(ctx(), g, state))
    return (state...,)
end
described(g::Generator) = "seed = $(get_state(g)[1]), offset = $(get_state(g)[2])"
set_state!(g::Generator, state) = check(C.tt_generator_set_state(ctx(), g, UInt64[state...]))

# ---- threads, memory, devices ----

"Returns cached memory to the system."
trim() = (poll(); check(C.tt_trim(ctx())))
"Sets the dtype of floating-point numbers and tensors that are given none, in this task."
set_default_dtype!(T) = check(C.tt_ctx_set_default_dtype(ctx(), dtype_code(T)))
"Returns the dtype of floating-point numbers and tensors that are given none."
function default_dtype()
    o = Ref(Int32(0))
    check(C.tt_ctx_default_dtype(ctx(), o))
    return DTYPES[o[]]
end
"""
    set_print_options!(; precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=nothing)

Sets how tensors are printed in this task: digits after the point, the number of elements above
which a tensor is summarized, the items shown at each end of a dimension then, characters of a line,
and whether in scientific notation (`nothing`: by the magnitudes of the elements).
"""
function set_print_options!(; precision=4, threshold=1000, edgeitems=3, linewidth=80,
                            sci_mode=nothing)
    sci = sci_mode === nothing ? Int32(-1) : Int32(sci_mode)
    check(C.tt_ctx_set_print_options(ctx(), precision, threshold, edgeitems, linewidth, sci))
end
"""
    set_cuda_math!(; matmul_tf32=false, conv_tf32=false, deterministic=true, cublaslt=true,
                   cudnn=true, cudnn_attention=true, cusolver=true, cufft=true)

Sets how CUDA devices compute what this task calls, backward included: whether libraries may round
the factors of products and of convolutions of Float32 to TF32, which is several times as fast;
whether results must have the same bits in every run; and which of NVIDIA's libraries serve
products, convolutions, attention, decompositions and Fourier transforms. Kernels of TT serve where
a library is absent or not wanted. Graphs keep it with each operator. The CPU ignores it.
"""
function set_cuda_math!(; matmul_tf32=false, conv_tf32=false, deterministic=true, cublaslt=true,
                        cudnn=true, cudnn_attention=true, cusolver=true, cufft=true)
    set = C.TT_CUDA_MATH_MATMUL_TF32 | C.TT_CUDA_MATH_CONV_TF32 | C.TT_CUDA_MATH_DETERMINISTIC |
          C.TT_CUDA_MATH_CUBLASLT | C.TT_CUDA_MATH_CUDNN | C.TT_CUDA_MATH_CUDNN_ATTENTION |
          C.TT_CUDA_MATH_CUSOLVER | C.TT_CUDA_MATH_CUFFT
    opts = Ref(C.tt_cuda_math_opts(set, matmul_tf32, conv_tf32, deterministic, cublaslt, cudnn,
                                   cudnn_attention, cusolver, cufft))
    check(C.tt_ctx_set_cuda_math(ctx(), opts))
end
"Name of the instruction set in use."
function instruction_set()
    o = Ref(Int32(0))
    check(C.tt_ctx_isa(ctx(), o))
    wide = get(Dict(:aarch64 => "sve256", :arm => "neon"), Sys.ARCH, "avx2")
    return ("baseline", wide, "avx512")[o[]]
end
function device_count(kind="cuda")
    o = Ref(Int32(0))
    check(C.tt_device_count(ctx(), Int32(findfirst(==(kind), DEVICE_TYPES)), o))
    return Int(o[])
end
device_or_null(device) = device === nothing ? C_NULL : Ref(device_struct(device))
synchronize(device=nothing) = check(C.tt_synchronize(ctx(), device_or_null(device)))

"Live objects, largest first; no other thread may use tt meanwhile."
function live()
    n = Ref(Int64(0))
    rows = Vector{C.tt_live_row}(undef, 16)
    while (status = C.tt_runtime_live(ctx(), rows, length(rows), n)) == C.TT_BUFFER_TOO_SMALL
        resize!(rows, n[] + 8)
    end
    check(status)
    return map(rows[1:n[]]) do r
        of_tensor = r.dtype != 0
        (kind = unsafe_string(r.kind), dtype = of_tensor ? DTYPES[r.dtype] : nothing,
         shape = of_tensor ? r.shape[1:Base.min(r.ndim, 8)] : nothing,
         requires_grad = r.requires_grad != 0, count = r.count, bytes = r.bytes)
    end
end

# ---- cancelling ----

"""
    TT.with_cancel(token) do … end

Calls of this task inside fail with a `TT.CancelledError` once any task has called
`TT.cancel(token)`.
"""
function with_cancel(f, k::CancelToken)
    c = task_ctx()
    before = c.token
    set(token) = (check(C.tt_ctx_set_cancel(c.handle, optional(token))); c.token = token)
    set(k)
    try
        return f()
    finally
        set(before)
    end
end

"""
    set_poll!(f)

Calls f() between the kernels of this task's calls, at most every 50 ms, and before other callbacks.
An exception ends the call. f must not change tensors that the call uses. `set_poll!(nothing)` ends
this.
"""
set_poll!(f) = check(C.tt_ctx_set_poll(ctx(), entry_poll_fn(), hold(f), drop()))
set_poll!(::Nothing) = check(C.tt_ctx_set_poll(ctx(), C_NULL, C_NULL, C_NULL))

# ---- profiler, trace ----

"""
    TT.profile() do … end

The operators that run inside, as rows `(op, calls, self_ns, total_ns)` by total time.
"""
function profile(f)
    check(C.tt_profiler_start(ctx()))
    try
        f()
    finally
        check(C.tt_profiler_stop(ctx()))
    end
    n = Ref(Int64(0))
    C.tt_profiler_rows(ctx(), C_NULL, 0, n)
    rows = Vector{C.tt_profile_row}(undef, n[])
    check(C.tt_profiler_rows(ctx(), rows, length(rows), n))
    return map(r -> (op = unsafe_string(r.op), calls = r.calls, self_ns = r.self_ns,
        total_ns = r.total_ns), rows)
end

"""
    p = TT.profile_events(; record_shapes, profile_memory, with_flops, with_modules) do … end

Records the events that run inside. Returns their rows as `p.events`, by their begin, their sums as
`p.sums`, and as `p.dropped` the number of events that were more than `capacity`. With `path` it
writes them to a file that chrome://tracing and Perfetto show.
"""
function profile_events(f; capacity = 1 << 20, record_shapes = false, profile_memory = false,
        with_flops = false, with_modules = false, path = nothing)
    opts = Ref(C.tt_profiler_start_opts(0x1f, capacity, record_shapes, profile_memory, with_flops,
        with_modules))
    check(C.tt_profiler_start_ex(ctx(), opts))
    try
        f()
    finally
        check(C.tt_profiler_stop(ctx()))
    end
    path === nothing || check(C.tt_profiler_chrome_trace(ctx(), path))
    dropped = Ref(Int64(0))
    check(C.tt_profiler_dropped(ctx(), dropped))
    return (events = map(event_row, profiler_list(C.tt_profiler_events, C.tt_profile_event)),
        sums = map(sum_row, profiler_list(C.tt_profiler_sums, C.tt_profile_sum)),
        dropped = dropped[])
end
function profiler_list(read, row)
    n = Ref(Int64(0))
    read(ctx(), C_NULL, 0, n)
    rows = Vector{row}(undef, n[])
    check(read(ctx(), rows, length(rows), n))
    return rows
end
const EVENT_KINDS =
    (:op, :kernel, :module, :node, :memory, :optimizer, :region, :communication)
event_row(r) = (name = unsafe_string(r.name), kind = EVENT_KINDS[r.kind],
    shapes = r.n_shapes == 0 ? Int64[] : copy(unsafe_wrap(Array, r.shapes, Int(r.n_shapes))),
    id = r.id, parent = r.parent, begin_ns = r.begin_ns, end_ns = r.end_ns, bytes = r.bytes,
    held = r.held, flops = r.flops)
sum_row(r) = (name = unsafe_string(r.name), kind = EVENT_KINDS[r.kind], calls = r.calls,
    self_ns = r.self_ns, total_ns = r.total_ns, bytes = r.bytes, flops = r.flops)

"""
    TT.region(name) do … end

Marks what runs inside as an event of the running profile.
"""
function region(f, name)
    id = Ref(Int64(0))
    check(C.tt_profiler_begin(ctx(), C.TT_EVENT_REGION, name, id))
    try
        return f()
    finally
        check(C.tt_profiler_end(ctx(), id[]))
    end
end

"""
    TT.trace(see) do … end

Calls see(op, slot, depth) before each operator that runs inside.
"""
function trace(f, see)
    key, c = hold(see), task_ctx()
    check(C.tt_ctx_trace_dispatch(ctx(), entry_trace_fn(), key))
    try
        found = f()
        c.raised === nothing || fail()  # what see has thrown made no call fail
        return found
    finally
        c.raised = nothing
        C.tt_ctx_trace_dispatch(ctx(), C_NULL, C_NULL)
        forget(key)
    end
end

# ---- operators by name ----

find_op(name) = handle_out(o -> C.tt_op_find(ctx(), name, o))
"The schema of the operator of C of this name: its arguments with types and defaults."
op_schema(name) = unsafe_string(C.tt_op_schema(find_op(name)))

value(tag; n=0, i=0, f=0.0, scalar=TT.scalar(nothing), device=device_struct(nothing), tensor=C_NULL,
    tensors=C_NULL, ints=C_NULL, str=C_NULL, generator=C_NULL) =
    C.tt_value(tag, 0, n, i, f, scalar, device, tensor, tensors, ints, str, generator, C_NULL)
"C's form of an argument of an operator; what it points to goes into kept."
c_value(x::Nothing, kept) = value(C.TT_VAL_NONE)
c_value(x::Tensor, kept) = value(C.TT_VAL_TENSOR; tensor=handle(x))
c_value(x::Bool, kept) = value(C.TT_VAL_BOOL; i=x)
c_value(x::Integer, kept) = value(C.TT_VAL_INT; i=x)
c_value(x::Real, kept) = value(C.TT_VAL_FLOAT; f=x)
c_value(x::Complex, kept) = value(C.TT_VAL_SCALAR; scalar=scalar(x))
c_value(x::Type, kept) = value(C.TT_VAL_INT; i=dtype_code(x))
c_value(x::Device, kept) = value(C.TT_VAL_DEVICE; device=x.raw)
c_value(x::Generator, kept) = value(C.TT_VAL_GENERATOR; generator=handle(x))
function c_value(x::AbstractString, kept)
    s = String(x)
    push!(kept, s)
    return value(C.TT_VAL_STR; str=pointer(s), n=sizeof(s))
end
function c_value(x::Union{Tuple{Vararg{Integer}}, AbstractVector{<:Integer}}, kept)
    v = Int64[x...]
    push!(kept, v)
    return value(C.TT_VAL_INTS; ints=pointer(v), n=length(v))
end
function c_value(x::OptionalTensors, kept)
    v = handles(x)
    push!(kept, v)
    return value(C.TT_VAL_TENSORS; tensors=pointer(v), n=length(v))
end

function number_of_scalar(s::C.tt_scalar)
    s.kind == C.TT_SCALAR_FLOAT && return s.re
    s.kind == C.TT_SCALAR_COMPLEX && return Complex(s.re, s.im)
    return s.kind == C.TT_SCALAR_BOOL ? s.i != 0 : s.i
end
values_of(args, n) = ntuple(i -> value_of(unsafe_load(args, i)), Int(n))
"An argument of an operator as a Julia value, for callbacks."
function value_of(v::C.tt_value)
    v.tag == C.TT_VAL_TENSOR && return borrow(v.tensor)
    v.tag == C.TT_VAL_TENSORS && return collect(borrowed(v.tensors, v.n))
    v.tag == C.TT_VAL_SCALAR && return number_of_scalar(v.scalar)
    v.tag == C.TT_VAL_INT && return v.i
    v.tag == C.TT_VAL_FLOAT && return v.f
    v.tag == C.TT_VAL_BOOL && return v.i != 0
    v.tag == C.TT_VAL_INTS && return [unsafe_load(v.ints, i) for i in 1:v.n]
    v.tag == C.TT_VAL_STR && return unsafe_string(v.str, v.n)
    v.tag == C.TT_VAL_DEVICE && return Device(v.device)
    v.tag == C.TT_VAL_INDEX && return [unsafe_load(v.index, i) for i in 1:v.n]
    return nothing
end

"""
    TT.call_op(name, args…)

Calls an operator by C's name with the arguments of its schema (`TT.op_schema(name)`); dims and
indices count from 0. Returns a tensor or a vector of tensors.
"""
function call_op(name, args...)
    kept = Any[]
    values = C.tt_value[c_value(x, kept) for x in args]
    outs = list_out((outs, cap, n) -> GC.@preserve kept args C.tt_op_call(ctx(), find_op(name),
        values, length(values), outs, cap, n))
    return length(outs) == 1 ? outs[1] : outs
end

"""
    TT.register_op("name(x: Tensor, k: Int) -> Tensor", compute; backward=nothing)

A custom operator, called by `TT.call_op`. `compute(args…)` runs without recording;
`backward(grads, args, results)` returns one gradient, or `nothing`, for each tensor argument.
"""
function register_op(schema, compute; backward=nothing)
    poll()
    text = String(schema)
    entry = backward === nothing ? C_NULL : entry_op_backward()
    def = Ref(C.tt_op_def(sizeof(C.tt_op_def), pointer(text),
        hold((compute = compute, backward = backward)), entry_op_compute(), entry, drop()))
    check(GC.@preserve text C.tt_op_register(ctx(), def))
end

"""
    TT.register_backend(name; alloc, free, copy, compute=(op, args...) -> missing)

A custom device, as `tt_backend_register` describes it: `alloc(bytes)` gives a pointer,
`free(p, bytes)` takes it back (also within a finalizer: it must not wait), `copy(dst, src, bytes,
kind)` copies, and `compute` returns the results of an operator, or `missing`: tt computes it on the
CPU.
"""
function register_backend(name; alloc, free, copy, compute=(op, args...) -> missing)
    push!(BACKENDS, (alloc=alloc, free=free, copy=copy, compute=compute))
    text, out = String(name), Ref{C.tt_device}()
    def = Ref(C.tt_backend_def(sizeof(C.tt_backend_def), pointer(text),
        Ptr{Cvoid}(length(BACKENDS)), entry_backend_alloc(), entry_backend_free(),
        entry_backend_copy(),
                               entry_backend_compute(), C_NULL))
    check(GC.@preserve text C.tt_backend_register(ctx(), def, out))
    return Device(out[])
end

# ---- DLPack ----

"""
A DLManagedTensor (version=0) or DLManagedTensorVersioned (1) of t. The receiver calls its deleter.
"""
function to_dlpack(t::Tensor; version::Integer=0)
    return handle_out(o -> C.tt_tensor_to_dlpack(ctx(), t, version, o))
end
"Takes over such a pointer, and returns its tensor."
from_dlpack(managed::Ptr; version::Integer=0) =
    wrap(handle_out(o -> C.tt_tensor_from_dlpack(ctx(), managed, version, o)))

# ---- the modules nn and optim ----

Sequential(children...) = push!(Sequential(), children...)
ModuleList(children...) = push!(ModuleList(), children...)
function ModuleDict(first::Pair, more::Pair...)
    m = ModuleDict()
    foreach(((name, child),) -> register_module!(m, name, as_module(child)), (first, more...))
    return m
end

"""
    nn.ParameterList(tensors)

A module that holds parameters by index: "0", "1", … in a state dict. It is not called.
"""
function ParameterList(tensors)
    m = ParameterList()
    for (i, t) in enumerate(tensors)
        register_parameter!(m, string(i - 1), requires_grad!(t))
    end
    return m
end
"`nn.ParameterDict(name => tensor, …)`: a module that holds parameters by name. It is not called."
function ParameterDict(first::Pair, more::Pair...)
    m = ParameterDict()
    foreach(((name, t),) -> register_parameter!(m, name, requires_grad!(t)), (first, more...))
    return m
end

"Layers and containers by PyTorch's names."
module nn
import ..TT
for name in (TT.NN_CLASSES..., :TripletMarginWithDistanceLoss)
    @eval const $name = TT.$name
    @eval export $name
end
const Module = TT.Module
const custom = TT.custom_module
const attend = TT.attend
const clip_grad_norm! = TT.clip_grad_norm!
for name in (:clip_grad_value!, :clip_grads_with_norm!, :get_total_norm, :parameters_to_vector,
             :vector_to_parameters!, :generate_square_subsequent_mask)
    @eval const $name = TT.$name
end

"Initial values of weights by the names of torch.nn.init: they fill a tensor and return it."
module init
import ...TT
const uniform! = TT.init_uniform!
const normal! = TT.init_normal!
for name in TT.INIT_FUNCTIONS
    @eval const $name = TT.$name
end
end

"Tensors that are computed before each forward: torch.nn.utils.parametrize and parametrizations."
module parametrize
import ...TT
for name in (:register_parametrization!, :remove_parametrizations!, :is_parametrized,
             :weight_norm!, :spectral_norm!, :orthogonal!)
    @eval const $name = TT.$name
end
end

"Masks that zero parts of parameters: torch.nn.utils.prune."
module prune
import ...TT
for name in (:random_unstructured!, :l1_unstructured!, :random_structured!, :ln_structured!,
             :custom_from_mask!, :global_unstructured!, :is_pruned)
    @eval const $name = TT.$name
end
const identity! = TT.prune_identity!
const remove! = TT.remove_pruning!
end
end

"Optimizers and schedules by PyTorch's names."
module optim
import ..TT
for name in (TT.OPTIM_CLASSES..., :LambdaLR, :MultiplicativeLR)
    @eval const $name = TT.$name
    @eval export $name
end
const Optimizer = TT.Optimizer
const Scheduler = TT.Scheduler
end
