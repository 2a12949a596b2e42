# Where tensors' handles lie, and how those that nobody asks for any more are found.
#
# A finalizer for each tensor would take longer than a small operator. Each has a slot instead, an object that tt sees through a WeakRef only;
# after a collection the one finalizer there is looks through the WeakRefs and releases the handles of slots that are no more.

"""
Has a function compiled where Julia interprets (--compile=min), as all is that has a ccall. What is interpreted allocates at every step, and may so
run a finalizer between any two; of what follows, nothing does but where it says so.
"""
macro compiled(f)
    pushfirst!(f.args[2].args, :(ccall(:jl_value_ptr, Ptr{Cvoid}, (Any,), nothing)))  # no instruction
    return esc(f)
end

"""
Holds a tensor's place while Julia can reach it. A slot whose tensor was freed is put aside and takes a later one, which then costs no memory.
"""
mutable struct Slot
    at::Ptr{Cvoid}
end
const NONE = Slot(C_NULL)

"What a slot points to: not in Julia's memory, as it outlives the slot."
struct Place
    h::Ptr{Cvoid}    # the tensor's handle; of a free place: the next free one's address
    use::Int         # how many tensors it has held: tells those that are freed
    ref::Ptr{Cvoid}  # the address of its WeakRef: to the slot, to NONE if it is free, to nothing once the slot is no more
end
@inline handle_at(at) = unsafe_load(Ptr{Ptr{Cvoid}}(at))
@inline handle_at!(at, h) = unsafe_store!(Ptr{Ptr{Cvoid}}(at), h)
@inline use_at(at) = unsafe_load(Ptr{Int}(at), 2)
@inline freed_at!(at) = unsafe_store!(Ptr{Int}(at), use_at(at) + 1, 2)
@inline ref_at(at) = unsafe_load(Ptr{Ptr{Ptr{Cvoid}}}(at), 3)
# No write barrier, as the reference keeps nothing alive: it would take as long as the rest of making a slot.
@inline watch!(s) = unsafe_store!(ref_at(s.at), pointer_from_objref(s))
@inline is_watched(s) = unsafe_load(ref_at(s.at)) == pointer_from_objref(s)

const BLOCK = 1024  # places
mutable struct Block
    places::Ptr{Place}
    refs::Vector{WeakRef}
    free::Ptr{Cvoid}             # the first free place, but of those that the thread which has the block open took over
    n_free::Int
    next::UInt                   # the address of the one after it in its list
    older::Union{Block, Nothing} # keeps all of them
    function Block()
        b = new(Libc.malloc(BLOCK * sizeof(Place)), [WeakRef(NONE) for _ in 1:BLOCK], C_NULL, BLOCK, 0, nothing)
        b.places == C_NULL && throw(OutOfMemoryError())
        for k in BLOCK:-1:1
            unsafe_store!(b.places, Place(b.free, 0, pointer_from_objref(b.refs[k])), k)
            b.free = b.places + (k - 1) * sizeof(Place)
        end
        return b
    end
end

"Of a thread: the ctx that it used last (looking into a task's storage takes longer than a small operator), its slots and its blocks."
mutable struct Lane
    task::Union{Task, Nothing}
    h::Ptr{Cvoid}
    last::Slot                   # put aside, or NONE
    spare::Vector{Slot}          # the first `top`, put aside before it
    top::Int
    free::Ptr{Cvoid}             # free places of `block`, which only this thread takes
    block::Union{Block, Nothing}
    newest::Union{Block, Nothing}
    unseen::Int                  # bytes of tensors that took new slots since look()
    Lane() = new(nothing, C_NULL, NONE, fill(NONE, 64), 0, C_NULL, nothing, nothing, 0)
end
const FIRST = Lane()  # of thread 1: a constant, which needs no root around calls
const LANES = Ref([FIRST])
const LANES_LOCK = Threads.SpinLock()
@inline lane() = Threads.threadid() == 1 ? FIRST : lane_of(Threads.threadid())
@noinline lane_of(i) = i <= length(LANES[]) ? LANES[][i] : add_lanes(i)
function add_lanes(n)
    old = LANES[]
    new = [old; [Lane() for _ in length(old)+1:n]]
    lock(LANES_LOCK)
    LANES[] === old && (LANES[] = new)
    unlock(LANES_LOCK)
    return lane_of(n)
end

# ---- taking a slot ----

# Nothing runs the collector, and so another finalizer's free!, between taking a slot and filling it.
@inline @compiled function slot_from(l, h)
    s = l.last
    s === NONE && return another_slot(l, h)
    l.last = NONE
    handle_at!(s.at, h)
    return s
end
@noinline @compiled function another_slot(l, h)
    l.top == 0 && return new_slot(l, h)
    s = l.spare[l.top]
    l.spare[l.top] = NONE
    l.top -= 1
    handle_at!(s.at, h)
    return s
end
@inline @compiled function new_slot(l, h)
    l.free == C_NULL && make_room(l, h)
    at = l.free
    l.free = handle_at(at)
    handle_at!(at, h)
    s = Slot(at)
    watch!(s)
    l.unseen += C.tt_tensor_storage_bytes(h) + LOOK >> 6
    l.unseen < LOOK || (l.unseen = 0; look())
    return s
end
const LOOK = 1 << 24  # bytes of new tensors, at most 64 of them: asking how much is in use takes longer than a small operator

# Empties s, and puts it aside; not if the collector has found it dead, as only a finalizer can ask for that: release_dead(), which may run on
# another thread just now, sees to its handle and its place.
@inline @compiled function vacate(s)
    h = handle_at(s.at)
    freed_at!(s.at)
    is_watched(s) || return C_NULL
    handle_at!(s.at, C_NULL)
    Threads.threadid() == 1 ? put_aside(FIRST, s) : put_elsewhere(s)
    return h
end
@inline put_aside(l, s) = l.last === NONE ? (l.last = s; nothing) : put_beside(l, s)
@noinline @compiled function put_beside(l, s)
    l.top < length(l.spare) || return
    l.top += 1
    l.spare[l.top] = s
    return
end
@noinline put_elsewhere(s::Slot) = put_aside(lane(), s)

# ---- blocks ----

# Of blocks that no thread has open. Blocks are added one by one and taken all at once, so that neither other threads nor finalizers need a lock.
const List = Threads.Atomic{UInt}
const FULL, READY = List(0), List(0)  # without and with free places
function add!(list::List, b)
    while true
        head = list[]
        b.next = head
        Threads.atomic_cas!(list, head, UInt(pointer_from_objref(b))) == head && return
    end
end
take_all!(list::List) = Threads.atomic_xchg!(list, UInt(0))
block_at(address) = unsafe_pointer_to_objref(Ptr{Cvoid}(address))::Block

const TAKEN = Threads.Atomic{Int}(0)  # places, since the last collection
const QUOTA, HEAP = 1 << 14, 256 << 20
mutable struct Pace
    limit::Int    # of places taken between two collections
    quota::Int    # its least value
    last::UInt64  # when the last one ended
    slow::Int     # how many in a row took more time than what was between them
    grown::Int    # bytes in Julia's heap that ask for a full one
end
const PACE = Pace(QUOTA, QUOTA, 0, 0, HEAP)

@noinline make_room(l, h) =
    try
        open_block(l)
    catch
        C.tt_tensor_release(h)
        rethrow()
    end

"Gives l's thread free places. What allocates here may run finalizers that ask for the same."
@compiled function open_block(l)
    b = l.block
    if b !== nothing
        l.block = nothing
        add!(FULL, b)  # in any case: only release_dead() takes from there, which may just be at b
    end
    TAKEN[] < PACE.limit || collect_slots()
    while l.free == C_NULL
        at = take_all!(READY)
        b = at == 0 ? new_block(l) : block_at(at)
        rest = at == 0 ? at : b.next
        while rest != 0
            other = block_at(rest)
            rest = other.next
            add!(READY, other)
        end
        free = b.free
        l.free == C_NULL || (add!(READY, b); return)
        l.free = free
        Threads.atomic_add!(TAKEN, b.n_free)
        b.free, b.n_free = C_NULL, 0
        Threads.atomic_fence()  # before release_dead() on another thread can see it
        l.block = b
    end
end
function new_block(l)
    b = Block()
    b.older = l.newest
    l.newest = b
    return b
end

"Where places are used up. A few thousand dead tensors are in the caches still; a third of a million, as Julia's own count would let pass, are not."
function collect_slots()
    spent = -Base.gc_num().total_time
    GC.gc(false)
    spent += Base.gc_num().total_time
    TAKEN[] = 0
    watch_collections()  # from Julia 1.9 on Ctrl-C may end the finalizer before its first line
    now = time_ns()
    PACE.slow = 2 * spent > now - PACE.last ? PACE.slow + 1 : 0
    PACE.last = now
    PACE.slow < 8 || (PACE.slow = 0; PACE.quota = min(2 * PACE.quota, 1 << 20))
    if Base.gc_live_bytes() > PACE.grown  # these collections put off Julia's own, which see to what has grown old
        GC.gc(true)
        PACE.grown = Base.gc_live_bytes() + max(Base.gc_live_bytes(), HEAP)
    end
end

# ---- after each collection ----

mutable struct Sentinel
    unused::Int
end
const ENDING = Ref(false)
const WATCH = Ref{Any}(nothing)  # a WeakRef to the Sentinel
watched(ended) = WATCH[] isa WeakRef && WATCH[].value !== nothing && WATCH[].value !== ended
watch_collections(ended=nothing) = ENDING[] || watched(ended) || (WATCH[] = WeakRef(finalizer(after_collection, Sentinel(0))))

# The only place where dead slots are looked for: as finalizers run one after another, none of another object meets a place that changes hands.
function after_collection(s)
    try
        disable_sigint(() -> try release_dead() finally watch_collections(s) end)
    catch  # Ctrl-C: what a finalizer throws, nobody hears of
        Sys.isunix() && ccall(:kill, Cint, (Cint, Cint), getpid(), 2)
    end
    return
end

@compiled function release_dead()
    live = 0
    for at in (take_all!(FULL), take_all!(READY))
        while at != 0
            b = block_at(at)
            at = b.next
            live += sweep!(b)
            add!(b.free == C_NULL ? FULL : READY, b)
        end
    end
    for l in LANES[]  # whose threads go on taking other places of these
        b = l.block
        b === nothing || (live += sweep!(b))
    end
    PACE.limit = max(PACE.quota, live)
    TAKEN[] = 0
    return
end

"Frees the places of b whose slots are no more; how many others are taken."
@inline @compiled function sweep!(b::Block)
    live = 0
    for k in BLOCK:-1:1
        ref = @inbounds b.refs[k]
        slot = ref.value
        if slot === nothing
            at = b.places + (k - 1) * sizeof(Place)
            h = handle_at(at)
            freed_at!(at)
            ref.value = NONE
            handle_at!(at, b.free)
            b.free = at
            b.n_free += 1
            C.tt_tensor_release(h)
        elseif slot !== NONE
            live += 1
        end
    end
    return live
end
