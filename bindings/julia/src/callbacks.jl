# What C calls: one entry per kind of callback; the Julia function stands behind the key (array.jl: keep).

"Runs body; what it throws waits in the ctx until the call that led here fails. The task stays on its thread meanwhile."
function guarded(body)
    task = current_task()
    sticky, task.sticky = task.sticky, true
    try
        body()
        return C.TT_OK
    catch e
        task_ctx().raised = (e,)
        return C.TT_CALLBACK
    finally
        task.sticky = sticky
    end
end

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
function give_all(list::Pointers, n, found, what)
    found === nothing && return
    found = found isa Tensor ? (found,) : found
    length(found) == n || throw(ArgumentError("$what must return $n tensors or nothing, not $(length(found))"))
    foreach(i -> give(list, i, found[i], what), 1:n)
end

on_grad(key, _, grad, out) = guarded(() -> give(out, 1, kept(key)(borrow(grad)), "a hook"))
on_accumulate(key, _, leaf) = guarded(() -> kept(key)(borrow(leaf)))
on_poll(key, _) = guarded(kept(key))
on_node(key, _, grads, n, out) = guarded(() -> give_all(out, n, kept(key)(borrowed(grads, n)), "a hook of a node"))
on_loss(key, _, out) = guarded(() -> give(out, 1, kept(key)(), "the closure"))
on_lambda(key, _, epoch, group, out) = guarded(() -> unsafe_store!(out, Float64(kept(key)(epoch, group))))
on_module_pre(key, _, m, inputs, n, out) =
    guarded(() -> give_some(out, n, kept(key)(share_module(m), borrowed(inputs, n)), "a forward pre-hook"))
on_module(key, _, m, inputs, n, outs, n_outs, out) =
    guarded(() -> give_some(out, n_outs, kept(key)(share_module(m), borrowed(inputs, n), borrowed(outs, n_outs)), "a forward hook"))
give_some(list, n, found, what) = n == 1 && found isa Tensor ? give(list, 1, found, what) : give_all(list, n, found, what)

function on_forward(key, _, m, inputs, n, outs, cap, n_outs)
    guarded() do
        found = kept(key)(share_module(m), borrowed(inputs, n)...)
        found = found isa Tensor ? (found,) : found
        length(found) <= cap || throw(ArgumentError("forward returned $(length(found)) tensors: at most $cap"))
        give_all(outs, length(found), found, "forward")
        unsafe_store!(n_outs, length(found))
    end
end
on_copy(key, _, new_key) = guarded(() -> unsafe_store!(new_key, keep(kept(key))))

"The running call of a custom function, in its forward and its backward."
struct FunctionContext
    h::Ptr{Cvoid}
    n_saved::Ref{Int}
    needs::Any
end
function on_function_forward(key, _, f, inputs, n, outs, n_outs)
    guarded() do
        call = kept(key)
        give_all(outs, n_outs, call.forward(FunctionContext(f, call.n_saved, nothing), borrowed(inputs, n)...), "forward")
    end
end
function on_function_backward(key, _, f, grads, n_outs, out, n)
    guarded() do
        call = kept(key)
        give_all(out, n, call.backward(FunctionContext(f, call.n_saved, nothing), borrowed(grads, n_outs)...), "backward")
    end
end

function on_compute(key, _, args, n, outs, n_outs)
    guarded(() -> give_all(outs, n_outs, kept(key).compute(map(value_of, unsafe_wrap(Array, args, Int(n)))...), "compute"))
end
function on_op_backward(key, _, grads, n_outs, args, n, results, out, n_inputs)
    guarded() do
        values = map(value_of, unsafe_wrap(Array, args, Int(n)))
        give_all(out, n_inputs, kept(key).backward(borrowed(grads, n_outs), (values...,), borrowed(results, n_outs)), "backward")
    end
end
function on_trace(key, op, slot, depth)
    guarded(() -> kept(key)(unsafe_string(op), unsafe_string(slot), Int(depth)))
    return
end

# ---- devices of Julia's ----

const BACKENDS = Any[]  # none goes: memory is freed in the middle of a collection, too, when KEPT must not be asked
backend(key) = BACKENDS[UInt(key)]
on_alloc(key, bytes) = try Ptr{Cvoid}(backend(key).alloc(bytes)) catch; C_NULL end
on_free(key, p, bytes) = (backend(key).free(p, bytes); nothing)
on_device_copy(key, _, dst, src, bytes, kind) = guarded(() -> backend(key).copy(dst, src, bytes, kind))
function on_device_compute(key, _, op, args, n, outs, n_outs)
    declined = false
    status = guarded() do
        found = backend(key).compute(unsafe_string(C.tt_op_name(op)), map(value_of, unsafe_wrap(Array, args, Int(n)))...)
        found === missing ? (declined = true) : give_all(outs, n_outs, found, "compute")
    end
    return declined ? C.TT_NOT_IMPLEMENTED : status
end

const DROP = Ref{Ptr{Cvoid}}(C_NULL)
const ENTRY = Dict{Symbol, Ptr{Cvoid}}()

function make_callbacks()
    DROP[] = @cfunction(forget, Cvoid, (Ptr{Cvoid},))
    ENTRY[:grad] = @cfunction(on_grad, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers))
    ENTRY[:accumulate] = @cfunction(on_accumulate, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}))
    ENTRY[:poll] = @cfunction(on_poll, Int32, (Ptr{Cvoid}, Ptr{Cvoid}))
    ENTRY[:node] = @cfunction(on_node, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers))
    ENTRY[:loss] = @cfunction(on_loss, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Pointers))
    ENTRY[:lambda] = @cfunction(on_lambda, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Int64, Int64, Ptr{Float64}))
    ENTRY[:module_pre] = @cfunction(on_module_pre, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers))
    ENTRY[:module] = @cfunction(on_module, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers, Int64, Pointers))
    ENTRY[:forward] = @cfunction(on_forward, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers, Int64, Ptr{Int64}))
    ENTRY[:copy] = @cfunction(on_copy, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Pointers))
    ENTRY[:function_forward] = @cfunction(on_function_forward, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers, Int64))
    ENTRY[:function_backward] = @cfunction(on_function_backward, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Pointers, Int64))
    ENTRY[:compute] = @cfunction(on_compute, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{C.tt_value}, Int64, Pointers, Int64))
    ENTRY[:op_backward] = @cfunction(on_op_backward, Int32,
                                     (Ptr{Cvoid}, Ptr{Cvoid}, Pointers, Int64, Ptr{C.tt_value}, Int64, Pointers, Pointers, Int64))
    ENTRY[:alloc] = @cfunction(on_alloc, Ptr{Cvoid}, (Ptr{Cvoid}, Int64))
    ENTRY[:free] = @cfunction(on_free, Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}, Int64))
    ENTRY[:device_copy] = @cfunction(on_device_copy, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Int64, Int32))
    ENTRY[:device_compute] = @cfunction(on_device_compute, Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{C.tt_value}, Int64, Pointers, Int64))
    ENTRY[:trace] = @cfunction(on_trace, Cvoid, (Ptr{Cvoid}, Ptr{UInt8}, Ptr{UInt8}, Int32))
end

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
