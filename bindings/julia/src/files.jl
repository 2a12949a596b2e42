# State dicts, files of tensors (safetensors, PyTorch's), checkpoints.

StateDict(s::StateDict) = s
function StateDict(tensors)
    s = StateDict()
    foreach(((name, t),) -> s[String(name)] = t,
        tensors isa AbstractDict || tensors isa NamedTuple ? pairs(tensors) : tensors)
    return s
end
const NamedTensors = Union{StateDict, SafeTensors}
Base.keys(s::NamedTensors) = [name_at(s, i) for i in 1:length(s)]
Base.haskey(s::NamedTensors, name) = name in keys(s)
Base.get(s::NamedTensors, name, default) = haskey(s, name) ? s[name] : default
Base.values(s::NamedTensors) = [tensor_at(s, i) for i in 1:length(s)]
Base.pairs(s::StateDict) = pairs_of(s)
pairs_of(s) = [name => tensor_at(s, i) for (i, name) in enumerate(keys(s))]
Base.iterate(s::StateDict, i=1) =
    i > length(s) ? nothing : (name_at(s, i) => tensor_at(s, i), i + 1)
function position(call, s, name)
    i = Ref(Int64(0))
    status = call(ctx(), s, name, i)
    status == C.TT_INDEX && throw(KeyError(name))
    check(status)
    return i[] + 1
end
Base.getindex(s::StateDict, name::AbstractString) =
    tensor_at(s, position(C.tt_state_dict_find, s, name))
Base.setindex!(s::StateDict, t::Tensor, name::AbstractString) =
    check(C.tt_state_dict_set(ctx(), s, name, t))
described(s::NamedTensors) = join(keys(s), ", ")

# ---- state dicts of any struct ----

"""
    TT.state_dict(model)

The tensors of a model, parameters and others, by names such as `layers.0.weight`: a module's, or
those in a struct, a tuple, an array or a Dict. Names count items from 0, as files do.
"""
function state_dict(model)
    model isa Handle && throw(ArgumentError("a $(typeof(model)) has no state dict"))
    state = StateDict()
    foreach_part(model) do part, place
        name = name_of(place)
        if part isa Tensor
            state[name] = part
        else
            foreach(((inner, t),) -> state["$name.$inner"] = t, pairs_of(state_dict(part)))
        end
    end
    return state
end

"""
    TT.load_state_dict!(model, state; strict=true)

Writes tensors (a StateDict, a Dict, pairs) to the tensors of a model that have their names: all, or
none if a size differs. With strict, the names must be the same. Returns the model.
"""
function load_state_dict!(model, state; strict::Bool=true)
    from, to = StateDict(state), state_dict(model)
    absent, extra = setdiff(keys(to), keys(from)), setdiff(keys(from), keys(to))
    strict && !(isempty(absent) && isempty(extra)) && throw(ArgumentError(
        "load_state_dict!: missing are [$(join(absent, ", "))], unexpected [$(join(extra, ", "))]"))
    names = intersect(keys(to), keys(from))
    for name in names
        size(to[name]) == size(from[name]) || throw(DimensionMismatch(
            "load_state_dict!: $name has size $(size(to[name])), not $(size(from[name]))"))
    end
    no_grad(() -> foreach(name -> copy!(to[name], from[name]), names))
    return model
end

"""
    TT.named_parameters(model)

The parameters of a model, a module or any struct, as pairs of the names in `TT.state_dict(model)`
and the tensors; each once, under its first name.
"""
function named_parameters(model)
    wanted, found = Set(map(handle_of, parameters(model))), Pair{String, Tensor}[]
    for (name, t) in pairs(state_dict(model))
        handle_of(t) in wanted || continue
        delete!(wanted, handle_of(t))
        push!(found, name => t)
    end
    return found
end

# ---- safetensors ----

"""
    TT.save_file(path, tensors; metadata=Dict())

Writes tensors (pairs, a Dict, a StateDict) as a safetensors file. After a crash it is the old file
or the new one.
"""
function save_file(path, tensors; metadata=Dict{String, String}())
    list = collect(tensors isa AbstractDict || tensors isa NamedTuple ? pairs(tensors) : tensors)
    names, values = String[String(first(p)) for p in list], Tensor[last(p) for p in list]
    extra = String[x for (k, v) in metadata for x in (k, v)]
    GC.@preserve names values extra begin
        texts = Ptr{UInt8}[Base.unsafe_convert(Cstring, x) for x in extra]
        opts = Ref(C.tt_safetensors_save_opts(C.TT_SAFETENSORS_SAVE_METADATA, pointer(texts),
            length(texts)))
        check(GC.@preserve texts C.tt_safetensors_save(ctx(), path,
            Ptr{UInt8}[Base.unsafe_convert(Cstring, x) for x in names], handles(values),
            length(names), opts))
    end
end

"""
    TT.SafeTensors(path; mapped=false)

Opens a safetensors file. With mapped, its tensors share the file's memory, read-only; the file must
not be cut meanwhile.
"""
SafeTensors(path::AbstractString; mapped::Bool=false) =
    own(SafeTensors,
        handle_out(o -> (mapped ? C.tt_safetensors_map : C.tt_safetensors_open)(ctx(), path, o)))
Base.getindex(f::SafeTensors, name::AbstractString) =
    tensor_at(f, position(C.tt_safetensors_find, f, name))
"The metadata of a safetensors file, a Dict of texts."
function metadata(f::SafeTensors)
    entry(i) = unsafe_string(C.tt_safetensors_metadata_key(f, i)) =>
        unsafe_string(C.tt_safetensors_metadata_value(f, i))
    return Dict(entry(i) for i in 0:C.tt_safetensors_metadata_size(f)-1)
end
"All tensors of a safetensors file, by name."
load_file(path; mapped::Bool=false) = Dict(pairs_of(SafeTensors(path; mapped=mapped)))

# ---- arrays of other programs ----

"""
    TT.csv_load(path; delimiter=',', skip_rows=0, dtype=nothing)

A text of rows of numbers as a tensor of rows and columns. skip_rows: lines at the start that are no
numbers. dtype: Float32 if it is nothing.
"""
csv_load(path; delimiter::AbstractChar=',', skip_rows::Integer=0, dtype=nothing) =
    wrap(handle_out(o -> C.tt_csv_load(ctx(), String(path), string(delimiter), skip_rows,
        dtype_code(dtype), o)))

# ---- PyTorch's files ----

"""
    TT.torch_save(path, tensors; structure=nothing)

Writes tensors (pairs, a Dict, a StateDict) as a file for `torch.load`: of the given structure, else
an OrderedDict. After a crash it is the old file or the new one.
"""
torch_save(path, tensors; structure=nothing) = check(C.tt_torch_save(ctx(), path,
    StateDict(tensors), structure === nothing ? C_NULL : structure))

# ---- checkpoints ----

function with_checkpoint(call, path, extra; module_=nothing, optimizer=nothing, scheduler=nothing,
    generator=nothing)
    parts = (module_, optimizer, scheduler, generator, extra)
    def = Ref(C.tt_checkpoint(sizeof(C.tt_checkpoint), map(handle, parts)...))
    check(GC.@preserve parts call(ctx(), path, def))
end
"""
    TT.save_checkpoint(path; model, optimizer, scheduler, generator, extra)

Writes what is given, and further tensors (extra), into one file. A training that loads it goes
on as if it had not stopped.
"""
function save_checkpoint(path; model=nothing, optimizer=nothing, scheduler=nothing,
    generator=nothing, extra=nothing)
    state = extra === nothing ? nothing : StateDict(extra)
    with_checkpoint(C.tt_checkpoint_save, path, state; module_=model, optimizer=optimizer,
        scheduler=scheduler, generator=generator)
end
"Loads what is given from a checkpoint, all or nothing; returns its further tensors by name."
function load_checkpoint!(path; model=nothing, optimizer=nothing, scheduler=nothing,
    generator=nothing)
    extra = StateDict()
    with_checkpoint(C.tt_checkpoint_load, path, extra; module_=model, optimizer=optimizer,
        scheduler=scheduler, generator=generator)
    return Dict(pairs_of(extra))
end
