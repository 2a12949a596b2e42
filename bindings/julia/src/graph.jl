# Captured graphs: reading, rewriting, files; plans, which run them.

"""
    g = TT.capture(x…; allow_reads=false) do x…
        …
    end

Calls a function of tensors, and records what it computes, forward, backward and steps of optimizers
alike, as a `TT.Graph`. Its inputs are x, its outputs the tensors that the function returns. Other
tensors are constants of the graph, or its state if the function writes them. Reading an element
fails, or with `allow_reads` freezes what follows from it into the graph.

    TT.Plan(g)(x…)

computes the outputs for other tensors of the same sizes and dtypes.
"""
function capture(f, x::Tensor...; allow_reads::Bool=false)
    opts = Ref(C.tt_capture_opts(C.TT_CAPTURE_ALLOW_READS, allow_reads, 0))
    check(GC.@preserve x C.tt_capture_begin(ctx(), handles(x), length(x), opts))
    outs = try
        tensors_only(recorded(f, x...), "a captured function must return")
    catch
        C.tt_capture_drop(ctx())
        rethrow()
    end
    return own(Graph, GC.@preserve outs handle_out(o -> C.tt_capture_end(
        ctx(), handles(outs), length(outs), o)))
end
function tensors_only(found, must)
    list = found isa Tensor ? (found,) : found
    list isa Union{Tuple{Vararg{Tensor}}, AbstractVector{Tensor}} ||
        throw(ArgumentError("$must a tensor or several, not a $(typeof(found))"))
    return list
end

# ---- reading ----

"""
A tensor of a graph: an input, one from outside, or a result of a call of an operator.

- `v.op`: the name of the operator, nothing for an input or a tensor from outside
- `v.args`: the arguments of the call by name; tensors are values, dims and indices count from 0
- `v.results`: what the call makes and, behind it, what it writes
- `v.users`: the first results of the calls that read v
- `v.size`, `v.dtype`: of the tensor
- `v.role`: `:input`, `:state`, `:constant` or `:made`; `v.tensor` is the tensor from outside
- `v.scope`: the composite operator that the call is a part of, or nothing
"""
struct Value
    graph::Graph
    number::Int32  # C's, which edits keep
end
Base.show(io::IO, v::Value) = print(io, "%", getfield(v, :number))

"A struct that a C function fills in."
function described_by(call, T, args...)
    out = Ref{T}()
    check(call(ctx(), args..., out))
    return out[]
end
graph_info(g) = described_by(C.tt_graph_get_info, C.tt_graph_info, g)
call_info(g, i) = described_by(C.tt_graph_get_node, C.tt_graph_node, g, i)
value_info(v) = described_by(C.tt_graph_get_value, C.tt_graph_value, graph_of(v), number_of(v))
storage_info(v) = described_by(C.tt_graph_get_storage, C.tt_graph_storage, graph_of(v),
    value_info(v).storage)
graph_of(v::Value) = getfield(v, :graph)
number_of(v::Value) = getfield(v, :number)
"The position of the call that makes v; -1: none."
call_of(v) = value_info(v).node

values_at(g, p, n) = GC.@preserve g [value_at(g, unsafe_load(p, i)) for i in 1:n]
value_at(g, number) = number < 0 ? nothing : Value(g, number)
results_of(g, i) = (node = call_info(g, i); values_at(g, node.outs, node.n_outs))
first_result(g, i) = first(filter(!isnothing, results_of(g, i)))

const GRAPH_PARTS = (
    inputs = g -> (info = graph_info(g); values_at(g, info.inputs, info.n_inputs)),
    outputs = g -> (info = graph_info(g); values_at(g, info.outputs, info.n_outputs)),
    calls = g -> [first_result(g, i) for i in 0:graph_info(g).n_nodes-1])
Base.propertynames(::Graph) = keys(GRAPH_PARTS)
Base.getproperty(g::Graph, name::Symbol) =
    haskey(GRAPH_PARTS, name) ? GRAPH_PARTS[name](g) : error("a Graph has no property $name")
show_live(io, g::Graph) = print(io, printed(C.tt_graph_print, g))
"The graph in the language of Graphviz."
graphviz(g::Graph) = printed(C.tt_graph_dot, g)

of_call(f, otherwise) = v -> (i = call_of(v); i < 0 ? otherwise : f(graph_of(v), i))
const ROLES = (:input, :state, :constant, :made)
const VALUE_FACTS = (
    op = of_call((g, i) -> unsafe_string(call_info(g, i).name), nothing),
    args = of_call((g, i) -> call_arguments(g, i), NamedTuple()),
    results = of_call(results_of, Value[]),
    scope = of_call((g, i) -> text_or_nothing(call_info(g, i).scope), nothing),
    users = v -> [first_result(graph_of(v), i) for i in users_of(v)],
    size = v -> (info = value_info(v); GC.@preserve v ints_at(info.sizes, info.ndim)),
    dtype = v -> DTYPES[value_info(v).dtype],
    role = v -> ROLES[storage_info(v).role+1],
    tensor = v -> (h = storage_info(v).tensor; h == C_NULL ? nothing : borrow(h)))
Base.propertynames(::Value) = keys(VALUE_FACTS)
Base.getproperty(v::Value, name::Symbol) =
    haskey(VALUE_FACTS, name) ? VALUE_FACTS[name](v) : error("a value has no property $name")

function users_of(v)
    n, out = Ref(Int64(0)), Vector{Int64}(undef, graph_info(graph_of(v)).n_nodes)
    check(C.tt_graph_users(ctx(), graph_of(v), number_of(v), out, length(out), n))
    return out[1:n[]]
end

function call_arguments(g, i)
    list = [described_by(C.tt_graph_get_arg, C.tt_graph_arg, g, i, k)
            for k in 0:call_info(g, i).n_args-1]
    names = Tuple(Symbol(unsafe_string(a.name)) for a in list)
    return NamedTuple{names}(Tuple(argument_of(g, a) for a in list))
end
"An argument of a call as a Julia value; nothing for kinds that no call from here has."
function argument_of(g, a::C.tt_graph_arg)
    a.tag == C.TT_VAL_TENSOR && return value_at(g, unsafe_load(a.values))
    a.tag == C.TT_VAL_TENSORS && return values_at(g, a.values, a.n_values)
    a.tag == C.TT_VAL_SCALAR && return number_of_scalar(a.scalar)
    a.tag == C.TT_VAL_INT && return a.i
    a.tag == C.TT_VAL_FLOAT && return a.f
    a.tag == C.TT_VAL_BOOL && return a.i != 0
    a.tag == C.TT_VAL_INTS && return [unsafe_load(a.ints, k) for k in 1:a.n]
    a.tag == C.TT_VAL_STR && return unsafe_string(a.str, a.n)
    a.tag == C.TT_VAL_DEVICE && return Device(a.device)
    return nothing
end

# ---- rewriting ----

graph_arg(tag; values=Int32[], i=0, f=0.0, scalar=TT.scalar(nothing), device=device_struct(nothing),
    n=0, ints=C_NULL, str=C_NULL) = C.tt_graph_arg(C_NULL, tag, 0, length(values), pointer(values),
    i, f, scalar, device, n, ints, str, C_NULL)
"C's form of an argument of a call in g; what it points to goes into kept."
function c_argument(g, x, kept)
    x === nothing && return graph_arg(C.TT_VAL_NONE)
    x isa Value && return c_argument(g, C.TT_VAL_TENSOR, [x], kept)
    x isa Union{Tuple{Value, Vararg{Value}}, AbstractVector{Value}} &&
        return c_argument(g, C.TT_VAL_TENSORS, x, kept)
    v = c_value(x, kept)
    return graph_arg(v.tag; i=v.i, f=v.f, scalar=v.scalar, device=v.device, n=v.n, ints=v.ints,
        str=v.str)
end
function c_argument(g, tag, values, kept)
    Base.all(v -> graph_of(v) === g, values) ||
        throw(ArgumentError("an argument is a value of another graph"))
    numbers = Int32[number_of(v) for v in values]
    push!(kept, numbers)
    return graph_arg(tag; values=numbers)
end

function insert_call(g, before, op, args)
    kept, n, outs = Any[], Ref(Int64(0)), Vector{Int32}(undef, 16)
    list = C.tt_graph_arg[c_argument(g, x, kept) for x in args]
    check(GC.@preserve kept C.tt_graph_insert(ctx(), g, before, find_op(op), list, length(list),
        outs, length(outs), n))
    return one_or_all([Value(g, k) for k in outs[1:n[]]])
end

"""
    insert!(g, before, op, args…)
    push!(g, op, args…; after)

Inserts a call of an operator into a `TT.Graph`, before or after the call that makes a value;
without `after` behind all others. `op` is the name in C, and `args` are as in `TT.call_op`, with
values in the place of tensors. Returns the value of the result, or a tuple of them. A composite
operator becomes several calls; shapes of later calls follow. An edit that fails changes nothing.
"""
Base.insert!(g::Graph, before::Value, op::AbstractString, args...) =
    insert_call(g, Base.max(call_of(of_graph(g, before)), 0), op, args)
function Base.push!(g::Graph, op::AbstractString, args...; after::Union{Value, Nothing}=nothing)
    at = after === nothing ? graph_info(g).n_nodes : call_of(of_graph(g, after)) + 1
    return insert_call(g, at, op, args)
end
of_graph(g, v) =
    graph_of(v) === g ? v : throw(ArgumentError("$v is a value of another graph"))

"""
    replace!(g, old => new)

The calls of a `TT.Graph` behind the one that makes `new`, and its outputs, use the value `new` in
place of `old`.
"""
function Base.replace!(g::Graph, change::Pair{Value, Value})
    old, new = of_graph(g, change[1]), of_graph(g, change[2])
    check(C.tt_graph_replace_uses(ctx(), g, number_of(old), number_of(new)))
    return g
end
"`delete!(g, v)` removes the call that makes a value of a `TT.Graph`, if nothing uses its results."
function Base.delete!(g::Graph, v::Value)
    i = call_of(of_graph(g, v))
    i < 0 && throw(ArgumentError("$v is made by no call"))
    check(C.tt_graph_remove(ctx(), g, i))
    return g
end
function Base.setproperty!(g::Graph, name::Symbol, values)
    name === :outputs || error("property $name of a Graph cannot be set")
    list = Int32[number_of(of_graph(g, v)) for v in values]
    check(C.tt_graph_set_outputs(ctx(), g, list, length(list)))
    return values
end
Base.copy(g::Graph) = own(Graph, handle_out(o -> C.tt_graph_copy(ctx(), g, o)))

const PASSES = (dce = C.TT_PASS_DCE, cse = C.TT_PASS_CSE, fold = C.TT_PASS_FOLD,
                norm = C.TT_PASS_NORM, pool = C.TT_PASS_POOL, slices = C.TT_PASS_SLICES,
                epilogues = C.TT_PASS_EPILOGUES)
"""
    TT.optimize(g; passes=nothing)

An optimized copy of a `TT.Graph`. Without `passes`, by those that keep every bit and freeze
nothing: `:dce`, `:cse`, `:pool`, `:slices`, `:epilogues`. `:fold` and `:norm` compute with the
constants as they are now (docs/graphs.md).
"""
function optimize(g::Graph; passes=nothing)
    passes === nothing &&
        return own(Graph, handle_out(o -> C.tt_graph_optimize(ctx(), g, C_NULL, o)))
    for p in passes
        haskey(PASSES, p) ||
            throw(ArgumentError("pass :$p: must be one of $(join(keys(PASSES), ", "))"))
    end
    bits = foldl(|, (PASSES[p] for p in passes); init=UInt64(0))
    opts = Ref(C.tt_graph_optimize_opts(C.TT_GRAPH_OPTIMIZE_PASSES, bits))
    return own(Graph, handle_out(o -> C.tt_graph_optimize(ctx(), g, opts, o)))
end

# ---- files ----

"Writes a graph, with the tensors from outside, to a file (.ttg)."
save_graph(path, g::Graph) = check(C.tt_graph_save(ctx(), g, path))
"Reads a graph from a file (.ttg), and checks it whole."
load_graph(path) = own(Graph, handle_out(o -> C.tt_graph_load(ctx(), path, o)))
"Writes a graph as an ONNX model."
export_onnx(path, g::Graph) = check(C.tt_graph_export_onnx(ctx(), g, path))
"""
    export_onnx(path, g, other, dim)

Writes an ONNX model with a dimension of any size, named `dim`. `other` is the same computation for
another size of it.
"""
export_onnx(path, g::Graph, other::Graph, dim) =
    check(C.tt_graph_export_onnx_dynamic(ctx(), g, other, string(dim), path))
"""
    export_onnx(path, g, others, dims)

Writes an ONNX model with up to three dimensions of any size, named `dims` in the order in which the
inputs have them. `others` are the same computation for other sizes: one graph for one dimension,
three for two, seven for three.
"""
function export_onnx(path, g::Graph, others::AbstractVector{Graph}, dims)
    names = map(String, collect(dims))
    GC.@preserve others check(C.tt_graph_export_onnx_dims(ctx(), g, handles(others),
        length(others), names, length(names), path))
end
"""
    resize(g, other, size)

Returns the graph for another size of a dimension. `other` is the same computation for a second size
of it; what differs must grow evenly with the size.
"""
resize(g::Graph, other::Graph, size) =
    own(Graph, handle_out(o -> C.tt_graph_resize(ctx(), g, other, size, o)))
"""
    load_onnx(path; dynamic=1)

Reads an ONNX model as a graph. `dynamic` is the size of the dimensions that have no number.
"""
function load_onnx(path; dynamic::Integer=1)
    opts = Ref(C.tt_graph_load_onnx_opts(C.TT_GRAPH_LOAD_ONNX_DYNAMIC, dynamic))
    return own(Graph, handle_out(o -> C.tt_graph_load_onnx(ctx(), path, opts, o)))
end
"Writes a graph as C source: folder/name.c and folder/name.h, for machines without tt."
function export_c(folder, name, g::Graph; blob::Bool=false)
    opts = Ref(C.tt_graph_export_c_opts(C.TT_GRAPH_EXPORT_C_BLOB, blob, 0))
    return check(C.tt_graph_export_c_with(ctx(), g, folder, name, opts))
end
"""
    quantize(g, samples; histogram=false, per_row=false)

A copy of a graph that computes convolutions of images and linear layers with constant weights in
8-bit integers. The samples, inputs run after run, show the ranges of activations.
"""
function quantize(g::Graph, samples; histogram::Bool=false, per_row::Bool=false)
    set = C.TT_GRAPH_QUANTIZE_HISTOGRAM | C.TT_GRAPH_QUANTIZE_PER_ROW
    opts = Ref(C.tt_graph_quantize_opts(set, histogram, per_row))
    list = handles(Tuple(samples))
    return own(Graph, handle_out() do o
        GC.@preserve samples C.tt_graph_quantize(ctx(), g, list, length(list), opts, o)
    end)
end

# ---- plans ----

"""
    p = TT.Plan(g)
    p(x…)

A `TT.Graph` as a list of kernels in memory of its own, on the CPU: a call copies the inputs, runs
the kernels without dispatch or allocation, and returns copies of the outputs. `p.inputs` and
`p.outputs` are the tensors that `TT.run!(p)` reads and writes. The plan is of the graph as it is
now. One task uses a plan at a time.
"""
struct Plan
    handle::PlanHandle
    inputs::Vector{Tensor}
    outputs::Vector{Tensor}
end
function Plan(g::Graph)
    info, fixed = graph_info(g), copy(g)  # an edit needs a graph that nothing else holds
    p = own(PlanHandle, handle_out(o -> C.tt_plan_new(ctx(), fixed, C_NULL, o)))
    slot(output, i) = wrap(handle_out(o -> C.tt_plan_slot(ctx(), p, output, i, o)))
    return Plan(p, [slot(false, i) for i in 0:info.n_inputs-1],
        [slot(true, i) for i in 0:info.n_outputs-1])
end
Base.show(io::IO, p::Plan) =
    print(io, "Plan(", length(p.inputs), " inputs, ", length(p.outputs), " outputs)")

"""
    TT.run!(p; ns=nothing)

Computes `p.outputs` from `p.inputs`. With ns, stops after so many nanoseconds. Returns whether the
run is complete; if not, the next call goes on.
"""
function run!(p::Plan; ns::Union{Integer, Nothing}=nothing)
    poll()
    ns === nothing && (check(C.tt_plan_run(ctx(), p.handle)); return true)
    done = Ref(Int32(0))
    check(C.tt_plan_run_for(ctx(), p.handle, ns, done))
    return done[] != 0
end
function (p::Plan)(x::Tensor...)
    map(size, x) == Tuple(size(t) for t in p.inputs) || throw(DimensionMismatch(
        "the inputs have the sizes $(map(size, x)), those of the plan $(map(size, p.inputs))"))
    foreach(copy!, p.inputs, x)
    run!(p)
    return one_or_all(map(clone, p.outputs))
end
