# The runtime, and the ctx of each task.

const RUNTIME = Ref{Ptr{Cvoid}}(C_NULL)
const ENDING = Ref(false)  # the process ends: finalizers run in any order

end_process() = ENDING[] = true

function start_runtime()
    size = UInt64(sizeof(C.tt_runtime_opts))
    queue_drops = 1  # drops wait for poll()
    opts = Ref(C.tt_runtime_opts(size, C_NULL, C_NULL, C_NULL, 0, 0, 0, queue_drops, 0))
    C.tt_runtime_new(opts, RUNTIME) == 0 || error("TT: tt_runtime_new failed")
    n = isdefined(Threads, :maxthreadid) ? Threads.maxthreadid() : Threads.nthreads()
    empty!(LAST_USED)
    for _ in 1:n
        push!(LAST_USED, LastUsed(nothing, nothing))
    end
    atexit(end_process)
end

"Runs what releases have queued, on a thread of Julia's."
poll() = disable_sigint(() -> C.tt_runtime_poll(RUNTIME[]))  # Ctrl-C must not unwind C

"""
The place of a tensor's handle. A tensor that is freed leaves its slot to a later one: `use` counts
up when the slot is filled and when it is emptied, so it is odd while there is a handle, and a
`Tensor` knows by it whether it still is the one in the slot.
"""
mutable struct Slot
    handle::Ptr{Cvoid}
    use::Int
end

"Tensors that are freed together, by their slots."
struct Scope
    slots::Vector{Slot}
    outer::Union{Scope, Nothing}
end

"A ctx of C, with what belongs to the task that uses it."
mutable struct Ctx
    handle::Ptr{Cvoid}
    raised::Any  # (exception,) that a callback of the running call has thrown
    trace::Any  # where it was thrown
    token::Any  # keeps the task's cancel token
    newest::Slot  # the slot of the last tensor, which has no finalizer yet
    scope::Union{Scope, Nothing}  # the innermost open one
    unseen::Int  # bytes of tensors made since the last look at the memory in use
    function Ctx()
        h = Ref{Ptr{Cvoid}}(C_NULL)
        C.tt_ctx_new(RUNTIME[], h) == 0 || error("TT: tt_ctx_new failed")
        return finalizer(end_ctx, new(h[], nothing, [], nothing, Slot(C_NULL, 0), nothing, 0))
    end
end
function end_ctx(c::Ctx)
    ENDING[] && return  # other finalizers may still use it
    finalizer(empty_slot!, c.newest)
    C.tt_ctx_release(c.handle)
end

# Looking into a task's storage takes longer than a small operator, so each thread remembers the
# task that it saw last.
mutable struct LastUsed
    task::Union{Task, Nothing}
    ctx::Union{Ctx, Nothing}
end
const LAST_USED = LastUsed[]

@inline function task_ctx()
    id = Threads.threadid()
    id <= length(LAST_USED) || return stored_ctx()  # a thread that was added later
    last = @inbounds LAST_USED[id]
    return (last.task === current_task() ? last.ctx : remember(last))::Ctx
end
stored_ctx() = get!(Ctx, task_local_storage(), :tt_ctx)::Ctx
@noinline function remember(last)
    ctx = stored_ctx()
    last.task, last.ctx = current_task(), ctx
    return ctx
end
@inline ctx() = task_ctx().handle

@inline check(status) = status == 0 ? nothing : fail()

"Throws the error of this task's last call; what a callback has thrown comes out as itself."
@noinline function fail()
    c = task_ctx()
    raised, c.raised = c.raised, nothing
    raised === nothing || throw(raised[1])
    throw(exception_of(unsafe_load(C.tt_ctx_error(c.handle))))
end
