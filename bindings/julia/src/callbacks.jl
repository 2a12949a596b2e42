# What C's callbacks into Julia (gen/callbacks.jl) are made of. C holds a key of the Julia function
# (array.jl: hold).

"""
Runs body. What it throws is kept in the ctx until the C call that led here fails. The task stays on
its thread meanwhile, as C's frames are on its stack.
"""
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

"The stack trace of the last exception that a callback of this task has thrown."
callback_trace() = stacktrace(task_ctx().trace)

const Pointers = Ptr{Ptr{Cvoid}}
borrow_or_nothing(h) = h == C_NULL ? nothing : borrow(h)
borrowed(list::Pointers, n) = ntuple(i -> borrow_or_nothing(unsafe_load(list, i)), Int(n))

"Writes a result of a callback, with a reference of its own; `nothing` leaves the place empty."
function give(list::Pointers, i, t, what)
    t === nothing && return
    t isa Tensor || throw(ArgumentError("$what must return tensors or nothing, not $(typeof(t))"))
    C.tt_tensor_retain(t)
    unsafe_store!(list, handle_of(t), i)
end
"""
Writes the results of a callback: one tensor, or a list of n. Where C asks for their number
(n_given), n is the largest, and `nothing` is none.
"""
function give_all(list::Pointers, n, found, what, n_given=C_NULL)
    if found === nothing
        n_given == C_NULL || unsafe_store!(n_given, 0)
        return
    end
    found = found isa Tensor ? (found,) : found
    found isa Union{Tuple,NamedTuple,AbstractVector} ||
        throw(ArgumentError("$what must return tensors or nothing, not $(typeof(found))"))
    count = length(found)
    if n_given == C_NULL
        count == n ||
            throw(ArgumentError("$what must return $n tensors or nothing, not $count"))
    else
        count <= n || throw(ArgumentError("$what returned $count tensors: at most $n"))
        unsafe_store!(n_given, count)
    end
    foreach(i -> give(list, i, found[i], what), 1:count)
end

struct Declined end  # a device leaves an operator to tt
give_unless_declined(list, n, found, what) =
    found === missing ? Declined() : give_all(list, n, found, what)
function pointer_or_null(body)
    try
        return Ptr{Cvoid}(body())
    catch
        return C_NULL
    end
end

"What the copy of a module of Julia's runs."
function copy_of(call)
    call.value === nothing ||
        throw(ArgumentError("a $(typeof(call.value)) as a module cannot be copied, as it would " *
                            "share its tensors: make it by nn.custom"))
    return call
end

"The running call of a custom function, in its forward and its backward."
struct FunctionContext
    h::Ptr{Cvoid}
    n_saved::Ref{Int}
end

# Backends stay: they free memory in finalizers, too, which must not wait for the lock of HELD.
const BACKENDS = Any[]
backend(key) = BACKENDS[UInt(key)]
drop() = @cfunction(forget, Cvoid, (Ptr{Cvoid},))

"A registered hook: `TT.remove!(hook)` ends it."
struct Hook
    owner::Handle
    remove::Any
    id::Int64
end
"Ends a hook: it is not called any more."
remove!(h::Hook) = (check(h.remove(ctx(), h.owner, h.id)); poll(); nothing)

function hook(register, remove, owner, entry, f, before...)
    poll()
    id = Ref(Int64(0))
    check(register(ctx(), owner, before..., entry(), hold(f), drop(), id))
    return Hook(owner, remove, id[])
end
