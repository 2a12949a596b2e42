# t[…]: integers, ranges, :, .., nothing (a new dim), arrays of indices or of Bool, index and mask
# tensors. A single index of a tensor of several dims counts elements by columns, as in arrays.

const Sliced = Union{Colon, AbstractRange{<:Integer}, Integer}

"How many dims of the tensor an index covers."
spans(i::Union{Nothing, Ellipsis}) = 0
spans(i::AbstractArray{Bool}) = ndims(i)
spans(i::Tensor) = eltype(i) === Bool ? ndims(i) : 1
spans(i) = 1

"The indices, with the integers of each CartesianIndex, and how many dims `..` leaves whole."
function flatten_index(a::Tensor, index)
    flat = Any[]
    foreach(i -> i isa CartesianIndex ? append!(flat, Tuple(i)) : push!(flat, i), index)
    rest = ndims(a) - Base.sum(Int[spans(i) for i in flat])
    dots = count(i -> i isa Ellipsis, flat)
    dots > 1 && throw(ArgumentError("only one .. among the indices"))
    rest == 0 || rest > 0 && dots == 1 ||
        throw(ArgumentError("a tensor of $(ndims(a)) dims takes so many indices, not " *
                            "$(ndims(a) - rest): t[i, ..] leaves the others whole"))
    return flat, rest
end

is_linear(a, index) =
    length(index) == 1 && ndims(a) != 1 && spans(index[1]) == 1 &&
    index[1] isa Union{Integer, Colon, AbstractArray{<:Integer}}
is_mask(i) = i isa AbstractArray{Bool} || i isa Tensor && eltype(i) === Bool
"Whether the only index is a mask of a tensor of several dims: Julia's arrays go by columns."
is_whole_mask(a, index) =
    length(index) == 1 && ndims(a) > 1 && is_mask(index[1]) && ndims(index[1]) == ndims(a)
function mask_by_columns(a, mask)
    size(mask) == size(a) || wrong_index(a, mask)
    return permute(mask isa Tensor ? mask : Tensor(Array{Bool}(mask)), ndims(a):-1:1)
end
"The element numbers i of a tensor of this size as an index of all dims."
function cartesian(a, i)
    places = CartesianIndices(size(a))
    Base.all(k -> within(length(a), k), i) || wrong_index(a, i)
    i isa Integer && return Tuple(places[i])
    return ntuple(d -> Tensor(Int64[places[k][d] - 1 for k in i]), ndims(a))
end

wrong_index(a, index) = throw(BoundsError(a, index))
within(n, i) = 1 <= i <= n

slice_index(start, stop, step, has) = C.tt_index(C.TT_IDX_SLICE, has, start, stop, step, C_NULL)
bare_index(kind) = C.tt_index(kind, 0, 0, 0, 0, C_NULL)

"C's form of an index of a dim of n; a tensor that it needs goes into kept."
c_index(a, i::Nothing, n, kept) = bare_index(C.TT_IDX_NONE)
c_index(a, i::Ellipsis, n, kept) = bare_index(C.TT_IDX_ELLIPSIS)
c_index(a, i::Colon, n, kept) = slice_index(0, 0, 0, 0)
c_index(a, i::Bool, n, kept) = throw(ArgumentError("a Bool is no index"))
c_index(a, i::Integer, n, kept) =
    within(n, i) ? C.tt_index(C.TT_IDX_INT, 1, i - 1, 0, 0, C_NULL) : wrong_index(a, i)
function c_index(a, i::AbstractRange{<:Integer}, n, kept)
    isempty(i) && return slice_index(0, 0, 1, 7)
    within(n, first(i)) && within(n, last(i)) || wrong_index(a, i)
    step(i) < 0 && return c_index(a, collect(i), n, kept)
    return slice_index(first(i) - 1, last(i), step(i), 7)
end
function c_index(a, i::Tensor, n, kept)
    push!(kept, i)
    return C.tt_index(C.TT_IDX_TENSOR, 0, 0, 0, 0, handle(i))
end
c_index(a, i::AbstractArray{Bool}, n, kept) = c_index(a, Tensor(Array{Bool}(i)), n, kept)
function c_index(a, i::AbstractArray{<:Integer}, n, kept)
    Base.all(k -> within(n, k), i) || wrong_index(a, i)
    return c_index(a, Tensor(Int64.(i) .- 1), n, kept)
end
c_index(a, i, n, kept) = throw(ArgumentError("a $(typeof(i)) is no index of a tensor"))

"Calls f with C's array of indices."
function with_index(f, a::Tensor, index)
    flat, rest = flatten_index(a, index)
    kept, d = Tensor[], 1
    list = C.tt_index[]
    for i in flat
        mask = spans(i) > 1  # C compares the shape of a mask
        push!(list, c_index(a, i, spans(i) == 0 || mask ? 0 : size(a, d), kept))
        d += i isa Ellipsis ? rest : spans(i)
    end
    return GC.@preserve kept f(list)
end

is_list(i) = i isa AbstractArray && !(i isa AbstractRange && step(i) > 0)

"""
    t[index…]

A view where the indices are integers and ranges, else a copy. Lists of indices choose
independently, as in arrays; tensors of indices, which count from 0, go together, as in PyTorch. A
mask of t's size chooses elements in Julia's order, by columns.
"""
function Base.getindex(a::Tensor, index...)
    isempty(index) && return item(a)
    is_whole_mask(a, index) && return elements(by_columns(a), mask_by_columns(a, index[1]))
    if is_linear(a, index)
        i = index[1]
        return i isa Colon ? vec(a) : a[cartesian(a, i)...]
    end
    count(is_list, index) > 1 && return choose_apart(a, index)
    return elements(a, index...)
end
function elements(a, index...)
    o = Ref{Ptr{Cvoid}}()
    with_index(list -> check(C.tt_index_get(ctx(), a, list, length(list), o)), a, index)
    return wrap(o[])
end

"Several lists: one dim after another."
function choose_apart(a, index)
    flat, rest = flatten_index(a, index)
    d = 1
    for (k, i) in enumerate(flat)
        if is_list(i) && spans(i) == 1
            all_before = ntuple(_ -> Colon(), d - 1)
            a, flat[k] = a[all_before..., i, ..], Colon()
        end
        d += i isa Ellipsis ? rest : spans(i)
    end
    return a[flat...]
end

value_for(a, x::Tensor) = x
value_for(a, x::Number) = number_tensor(x, a)
value_for(a, x) = to(Tensor(x); dtype=eltype(a))

function Base.setindex!(a::Tensor, x, index...)
    value = value_for(a, x)
    isempty(index) && return copy!(a, value)
    if is_whole_mask(a, index)
        set_elements(by_columns(a), value, mask_by_columns(a, index[1]))
        return a
    end
    if is_linear(a, index)
        i = index[1]
        index = cartesian(a, i isa Colon ? (1:length(a)) : i)
    end
    lists = findall(is_list, collect(Any, index))
    if length(lists) > 1
        lists == lists[1]:lists[end] && !Base.any(i -> i isa Tensor, index) ||
            throw(ArgumentError("lists of indices in an assignment must stand side by side, " *
                                "without index tensors"))
        index = open_mesh(collect(Any, index), lists)
    end
    set_elements(a, value, index...)
    return a
end
set_elements(a, value, index...) =
    with_index(list -> check(C.tt_index_set(ctx(), a, list, length(list), value)), a, index)

"Lists side by side, each along a dim of its own."
function open_mesh(index, lists)
    for (k, at) in enumerate(lists)
        i = index[at]
        list = i isa AbstractArray{Bool} ? findall(i) : i
        index[at] = Base.reshape(collect(Int, list),
            ntuple(d -> d == k ? length(list) : 1, length(lists)))
    end
    return index
end

Base.lastindex(a::Tensor) = length(a)
Base.lastindex(a::Tensor, d::Integer) = size(a, d)
Base.firstindex(a::Tensor, d::Integer=1) = 1

has_view(a, index) =
    !(is_linear(a, index) && !(index[1] isa Integer)) &&
    Base.all(i -> i isa Union{Sliced, Nothing, Ellipsis, CartesianIndex} && !is_list(i), index)
function Base.view(a::Tensor, index...)
    has_view(a, index) || throw(ArgumentError(
        "view: lists, masks and linear ranges have no view of a tensor: t[list] is a copy"))
    return a[index...]
end

"The left side of `t[index…] .= x` where t[index…] is a copy."
struct Chosen
    tensor::Tensor
    index::Tuple
end
Base.dotview(a::Tensor, index...) = has_view(a, index) ? a[index...] : Chosen(a, index)
Base.Broadcast.materialize!(dst::Chosen, b::Dotted) = assign!(dst, evaluate(b))
function assign!(dst::Chosen, x)
    dst.tensor[dst.index...] = x
    return x
end
