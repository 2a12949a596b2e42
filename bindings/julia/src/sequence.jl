# Padded and packed sequences of different lengths, as torch.nn.utils.rnn has them.

"""
Sequences of different lengths without padding: in `data` the first elements of all, then the second
ones, and so on, with longer sequences first. `batch_sizes` counts the sequences with an element at
each step; `sorted_indices` has their numbers in the order of `data`. A recurrent layer is called as
`lstm(p.data, nothing, nothing, p.batch_sizes)`.
"""
struct PackedSequence
    data::Tensor
    batch_sizes::Tensor
    sorted_indices::Vector{Int}
end
"The same sequences with other elements, such as the results of a layer."
PackedSequence(p::PackedSequence, data::Tensor) =
    PackedSequence(data, p.batch_sizes, p.sorted_indices)

merged(t::Tensor) = reshape(t, size(t, 1) * size(t, 2), size(t)[3:end]...)
picked(t::Tensor, places) = index_select(t, 1, to(tensor(places); device=t.device))

"""
    TT.pack_padded_sequence(input, lengths; batch_first=false)

Packs padded sequences (T, N, …), or (N, T, …), of these lengths, in any order.
"""
function pack_padded_sequence(input::Tensor, lengths; batch_first::Bool=false)
    ndims(input) >= 2 ||
        throw(DimensionMismatch("input of size $(size(input)): must have at least 2 dims"))
    n, longest = batch_first ? size(input)[1:2] : reverse(size(input)[1:2])
    length(lengths) == n && n > 0 ||
        throw(DimensionMismatch("$(length(lengths)) lengths for $n sequences"))
    Base.all(l -> 1 <= l <= longest, lengths) ||
        throw(ArgumentError("lengths is $lengths: must be in 1:$longest"))
    order = sortperm(collect(lengths); rev=true, alg=Base.Sort.MergeSort)
    places, sizes = Int64[], Int64[]
    for step in 0:lengths[order[1]]-1
        here = [i - 1 for i in order if lengths[i] > step]
        append!(places, [batch_first ? i * longest + step : step * n + i for i in here])
        push!(sizes, length(here))
    end
    return PackedSequence(picked(merged(input), places), tensor(sizes), order)
end

"""
    padded, lengths = TT.pad_packed_sequence(p; batch_first=false, padding_value=0)

The padded sequences (T, N, …), or (N, T, …), in their own order, and their lengths.
"""
function pad_packed_sequence(p::PackedSequence; batch_first::Bool=false, padding_value::Real=0)
    sizes, n, rows = Array(p.batch_sizes), length(p.sorted_indices), size(p.data, 1)
    longest = length(sizes)
    Base.sum(sizes) == rows && longest > 0 && sizes[1] == n && issorted(sizes; rev=true) ||
        throw(DimensionMismatch("batch_sizes $sizes: do not fit $rows rows of $n sequences"))
    lengths, places, row = Base.zeros(Int, n), Base.fill(Int64(rows), n * longest), 0
    for (step, count) in enumerate(sizes), i in p.sorted_indices[1:count]
        places[batch_first ? (i - 1) * longest + step : (step - 1) * n + i] = row
        lengths[i] += 1
        row += 1
    end
    padding = full_like(p.data[1:1, ntuple(_ -> (:), ndims(p.data) - 1)...], padding_value)
    shape = batch_first ? (n, longest) : (longest, n)
    padded = picked(TT.cat([p.data, padding], 1), places)
    return reshape(padded, shape..., size(p.data)[2:end]...), lengths
end

"`TT.pack_sequence(sequences)` packs sequences (L, …), in any order."
pack_sequence(sequences) = pack_padded_sequence(pad_sequence(sequences; batch_first=true),
    [size(t, 1) for t in sequences]; batch_first=true)
"The sequences (L, …) that `TT.pack_sequence` has packed."
unpack_sequence(p::PackedSequence) =
    unpad_sequence(pad_packed_sequence(p; batch_first=true)...; batch_first=true)
"""
    TT.unpad_sequence(padded, lengths; batch_first=false)

Sequences (L, …) of these lengths without the padding behind them: undoes `TT.pad_sequence`.
"""
unpad_sequence(padded::Tensor, lengths; batch_first::Bool=false) =
    [copy(narrow(select(padded, batch_first ? 1 : 2, i), 1, 1, n)) for (i, n) in enumerate(lengths)]

"""
    TT.pad_sequence(sequences; batch_first=false, padding_value=0)

Pads sequences (L, …) to the longest one and stacks them: (T, N, …), or (N, T, …).
"""
function pad_sequence(sequences; batch_first::Bool=false, padding_value::Real=0)
    longest = Base.maximum(size(t, 1) for t in sequences)
    padded = [TT.cat([t, TT.full((longest - size(t, 1), size(t)[2:end]...), padding_value;
        dtype=eltype(t), device=t.device)], 1) for t in sequences]
    return TT.stack(padded, batch_first ? 1 : 2)
end
