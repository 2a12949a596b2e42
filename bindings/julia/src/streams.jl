# Streams, events, facts and memory of CUDA devices.

"""
    TT.Stream(device=nothing; priority=0)

Makes a stream; a device has at most 31. A lower priority is served first. device nothing: the first
CUDA device. `TT.with_stream(f, s)` computes on it.
"""
Stream(device=nothing; priority::Integer=0) = own(Stream,
    handle_out(o -> C.tt_stream_new(ctx(), device_or_null(device), priority, o)))

"""
    TT.Stream(handle::Ptr{Cvoid}, device=nothing)

A stream of the application: its `cudaStream_t`, which must live longer than this object.
"""
Stream(handle::Ptr{Cvoid}, device=nothing) = own(Stream,
    handle_out(o -> C.tt_stream_import(ctx(), device_or_null(device), handle, o)))

"The stream on which this task computes."
current_stream(device=nothing) =
    own(Stream, handle_out(o -> C.tt_stream_current(ctx(), device_or_null(device), o)))

"The device's own stream."
default_stream(device=nothing) =
    own(Stream, handle_out(o -> C.tt_stream_default(ctx(), device_or_null(device), o)))

"Runs f, whose operators compute on the stream, on the stream's device."
function with_stream(f, s::Stream)
    before = current_stream(Device("cuda:$(device_index(s))"))
    set_stream!(s)
    try
        return f()
    finally
        set_stream!(before)
    end
end

"""
    TT.Event(device=nothing; timing=false)

An event of a CUDA device; with timing, `TT.elapsed_ms` compares it with others.
"""
Event(device=nothing; timing::Bool=false) = own(Event,
    handle_out(o -> C.tt_event_new(ctx(), device_or_null(device), timing, o)))

"A copy of a tensor of the CPU in pinned memory: copies from there to CUDA devices do not wait."
pin_memory(t::Tensor, device=nothing) =
    wrap(handle_out(o -> C.tt_pin_memory(ctx(), t, device_or_null(device), o)))

"Facts about a CUDA device, as a named tuple."
function device_properties(device=nothing)
    out = Ref{C.tt_device_properties}()
    check(C.tt_device_get_properties(ctx(), device_or_null(device), out))
    p = out[]
    return (name = unsafe_string(p.name), capability = (Int(p.major), Int(p.minor)),
            multi_processor_count = Int(p.multi_processor_count), total_memory = p.total_memory)
end

"The memory of the runtime on a CUDA device, in bytes, as a named tuple."
function device_memory(device=nothing)
    out = Ref{C.tt_device_memory}()
    check(C.tt_device_memory_stats(ctx(), device_or_null(device), out))
    m = out[]
    return (allocated = m.allocated, max_allocated = m.max_allocated, reserved = m.reserved,
            max_reserved = m.max_reserved, limit = m.limit, free = m.free, total = m.total)
end

"Sets the largest numbers of bytes of `TT.device_memory` to the present ones."
reset_peak_memory!(device=nothing) = check(C.tt_device_reset_peak(ctx(), device_or_null(device)))

"Whether kernels of a CUDA device can access the memory of another one."
function can_access_peer(device, peer)
    out = Ref(Int32(0))
    check(C.tt_device_can_access_peer(ctx(), device_or_null(device), device_or_null(peer), out))
    return out[] != 0
end
