# What C's callbacks into Julia (gen/callbacks.jl) are made of; the Julia function stands behind the key (array.jl: keep).

"Runs body; what it throws waits in the ctx until the call that led here fails. The task stays on its thread meanwhile."
function guarded(body)
    task = current_task()
    sticky, task.sticky = task.sticky, true
    try
        return body() === Declined() ? C.TT_NOT_IMPLEMENTED : C.TT_OK
    catch e
        task_ctx().raised, task_ctx().trace = (e,), catch_backtrace()
        return C.TT_CALLBACK
    finally
        task.sticky = sticky
    end
end

"Where in a callback the last exception came from, of those that callbacks of this task have thrown."
callback_trace() = stacktrace(task_ctx().trace)

const Pointers = Ptr{Ptr{Cvoid}}
borrow_or_nothing(h) = h == C_NULL ? nothing : borrow(h)
borrowed(list::Pointers, n) = ntuple(i -> borrow_or_nothing(unsafe_load(list, i)), Int(n))

"Writes an owned handle into C's results; nothing for nothing."
function give(list::Pointers, i, t, what)
    t === nothing && return
    t isa Tensor || throw(ArgumentError("$what must return tensors or nothing, not $(typeof(t))"))
    C.tt_tensor_retain(t)
    unsafe_store!(list, handle_of(t), i)
end
"The results of a callback: one tensor or as many as C wants; where it asks how many (n_given), at most so many."
function give_all(list::Pointers, n, found, what, n_given=C_NULL)
    found === nothing && return
    found = found isa Tensor ? (found,) : found
    n_given == C_NULL ? length(found) == n || throw(ArgumentError("$what must return $n tensors or nothing, not $(length(found))")) :
        length(found) <= n || throw(ArgumentError("$what returned $(length(found)) tensors: at most $n"))
    foreach(i -> give(list, i, found[i], what), 1:length(found))
    n_given == C_NULL || unsafe_store!(n_given, length(found))
end

# A device may leave an operator to tt.
struct Declined end
give_unless_declined(list, n, found, what) = found === missing ? Declined() : give_all(list, n, found, what)
pointer_or_null(body) = try Ptr{Cvoid}(body()) catch; C_NULL end

"The running call of a custom function, in its forward and its backward."
struct FunctionContext
    h::Ptr{Cvoid}
    n_saved::Ref{Int}
end

const BACKENDS = Any[]  # none goes: memory is freed in the middle of a collection, too, when KEPT must not be asked
backend(key) = BACKENDS[UInt(key)]
const DROP = Ref{Ptr{Cvoid}}(C_NULL)

"Of a registered hook: remove!(hook) ends it."
struct Hook
    owner::Handle
    remove::Any
    id::Int64
end
remove!(h::Hook) = (check(h.remove(ctx(), h.owner, h.id)); poll(); nothing)

function hook(register, remove, owner, entry, f, before...)
    poll()
    id = Ref(Int64(0))
    check(register(ctx(), owner, before..., ENTRY[entry], keep(f), DROP[], id))
    return Hook(owner, remove, id[])
end
