# What a file holds beside its tensors, from the JSON of structure(s).

"""
    TT.contents(s)

What the file of a state dict holds (`torch_load`, `gguf_load`) as Julia's values: numbers, texts,
`Bool`, `nothing`, tensors of s, vectors (lists), tuples (also sizes), `Dict{Any,Any}` (dicts),
types (dtypes), texts of devices. Ints beyond 64 bits are `BigInt`. `nothing` for other dicts.
"""
function contents(s::StateDict)
    text = structure(s)
    return text === nothing ? nothing : json_value(IOBuffer(text), s)
end

malformed(io) = throw(ArgumentError("the structure is malformed at byte $(Base.position(io))"))

function json_peek(io)
    while true
        eof(io) && malformed(io)
        c = Char(peek(io))
        c in (' ', '\n', '\t', '\r') || return c
        read(io, Char)
    end
end
# Skips c if it is next. Returns whether it was.
function json_skip(io, c)
    found = json_peek(io) == c
    found && read(io, Char)
    return found
end
json_expect(io, c) = json_skip(io, c) || malformed(io)

function json_value(io, s; names=false)
    c = json_peek(io)
    c == '"' && return json_text(io)
    c == '[' && return json_items(() -> json_value(io, s), io, '[', ']')
    c == '{' && return json_object(io, s, names)
    return json_word(io)
end

function json_items(item, io, first, last)
    items = Any[]
    json_expect(io, first)
    while !json_skip(io, last)
        isempty(items) || json_expect(io, ',')
        push!(items, item())
    end
    return items
end

function json_text(io)
    text = IOBuffer()
    json_expect(io, '"')
    while true
        c = read(io, Char)
        c == '"' && return String(take!(text))
        print(text, c == '\\' ? json_escaped(io) : c)
    end
end
const JSON_ESCAPES = Dict('n' => '\n', 't' => '\t', 'r' => '\r', 'b' => '\b', 'f' => '\f')
function json_escaped(io)
    c = read(io, Char)
    c == 'u' || return get(JSON_ESCAPES, c, c)
    code = parse(UInt32, String(read(io, 4)); base=16)
    return 0xd800 <= code <= 0xdfff ? '\ufffd' : Char(code)  # half of a pair
end

function json_word(io)
    text = IOBuffer()
    while !eof(io) && (isascii(Char(peek(io))) && (isletter(Char(peek(io))) ||
        isdigit(Char(peek(io))) || Char(peek(io)) in "+-."))
        print(text, read(io, Char))
    end
    word = String(take!(text))
    word == "null" && return nothing
    word == "true" && return true
    word == "false" && return false
    int = tryparse(Int64, word)
    int === nothing || return int
    big = tryparse(BigInt, word)
    big === nothing || return big
    number = tryparse(Float64, word)
    return number === nothing ? malformed(io) : number
end

# names: the keys are a file's own, as those of a GGUF file's metadata and types.
function json_object(io, s, names)
    members = json_items(io, '{', '}') do
        key = json_text(io)
        json_expect(io, ':')
        return key => json_value(io, s; names=key in ("metadata", "types"))
    end
    length(members) == 1 && !names && return of_kind(members[1]..., s)
    return Dict{Any,Any}(members)
end

# The value of an object with a single key, such as {"tuple": […]}.
function of_kind(kind, value, s)
    if value isa String
        kind in ("tensor", "parameter") && return s[value]
        kind == "float" && return parse(Float64, value)
        kind == "dtype" && return DTYPES[findfirst(==(value), DTYPE_NAMES)]
        kind == "device" && return value
    elseif value isa Vector
        kind == "list" && return value
        kind in ("tuple", "size") && return Tuple(value)
        kind in ("dict", "ordered", "counter") &&
            return Dict{Any,Any}(k => v for (k, v) in value)
    end
    return Dict{Any,Any}(kind => value)
end
const DTYPE_NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128", "uint16", "uint32", "uint64")
