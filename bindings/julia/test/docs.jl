# What the documentation says: blocks, names, docstrings.
import Markdown, REPL

const ROOT = joinpath(PACKAGE_ROOT, "..", "..")

module Page end  # where the blocks run

@testset "docs/julia.md prints what it says" begin
    text = read(joinpath(ROOT, "docs", "julia.md"), String)
    blocks = collect(eachmatch(r"^```julia\n(.*?)^```\n(?:```text\n(.*?)^```$)?"ms, text))
    @test length(blocks) >= 12
    mktempdir() do folder
        cd(folder) do
            for block in blocks
                path, said = joinpath(folder, "said"), nothing
                open(path, "w") do io
                    redirect_stdout(() -> Base.include_string(Page, block[1], "docs/julia.md"), io)
                end
                @test read(path, String) == something(block[2], "")
            end
        end
    end
end

"The names that an expression uses: called functions and qualified names."
function names_used(e, found=Any[])
    e isa Expr || return found
    if e.head === :. && e.args[2] isa QuoteNode
        push!(found, e)
        return found
    end
    e.head === :call && e.args[1] isa Symbol && push!(found, e.args[1])
    foreach(a -> names_used(a, found), e.args)
    return found
end
module User
using TT
import LinearAlgebra, Random, Statistics
x = s = opt = m = f = TT.ones(1)
end
placeholder(e) = e isa Expr && e.args[1] in (:x, :opt)  # x.grad
function resolves(e)
    e === :m && return true  # m(x)
    try
        Core.eval(User, e)
        return true
    catch
        return false
    end
end

@testset "names in docs/bindings.md" begin
    rows = filter(startswith("| "), readlines(joinpath(ROOT, "docs", "bindings.md")))
    head = findfirst(r -> occursin("| Julia |", r), rows)
    cells = [strip(split(row, " | ")[end], [' ', '|']) for row in rows[head+1:end]]
    cells = cells[1:findfirst(==("why"), cells)-1]
    spans = [m[1] for cell in cells for m in eachmatch(r"`([^`]+)`", cell)]
    @test length(spans) > 50
    missing_names = []
    for span in spans
        e = Meta.parse(replace(span, "; …" => ""); raise=false)
        names = e isa Symbol ? [e] : names_used(e)
        for name in names
            placeholder(name) || resolves(name) || push!(missing_names, span)
        end
    end
    @test missing_names == []
end

@testset "PyTorch's names in docs/bindings.md" begin
    text = read(joinpath(ROOT, "docs", "bindings.md"), String)
    rows = split(split(text, "| PyTorch | C | Rust | Julia |\n")[2], '\n'; keepempty=false)
    cells = [strip(split(row, " | ")[end], [' ', '|']) for row in rows[2:end]]
    spans = [m[1] for cell in cells for m in eachmatch(r"`([^`]+)`", cell)]
    @test length(spans) > 30
    for span in spans
        program = "let x = TT.ones(2, 2), n = tensor([1 2 3; 4 5 6])\n$span\nend"
        @test Base.include_string(User, program) !== nothing
    end
end

@testset "names in bindings/exposed.tsv" begin
    rows = split.(readlines(joinpath(ROOT, "bindings", "exposed.tsv")), '\t')
    column = findfirst(==("julia"), rows[1])
    names = unique!([row[column] for row in rows[2:end] if !startswith(row[column], "- ")])
    @test filter(name -> !resolves(Meta.parse(name)), names) == []
end

"Nodes of Markdown that no docstring of TT means: what a star or an underscore was taken for."
const UNMEANT = Union{
    Markdown.Italic, Markdown.Bold, Markdown.Link, Markdown.LaTeX, Markdown.Header,
    Markdown.BlockQuote, Markdown.HorizontalRule, Markdown.Table, Markdown.Image,
}
unmeant(x) = x isa UNMEANT
unmeant(x::Union{AbstractVector, Tuple}) = any(unmeant, x)
unmeant(x::Union{Markdown.MD, Markdown.Paragraph}) = unmeant(x.content)
# Lists are of arguments: - `name`: …
unmeant(x::Markdown.List) = unmeant(x.items) ||
    !all(item -> item[1].content[1] isa Markdown.Code, x.items)

@testset "docstrings" begin
    seen, eaten, unnamed = 0, String[], String[]
    for (binding, docs) in Base.Docs.meta(TT), (signature, doc) in docs.docs
        text = join(doc.text)
        seen += 1
        unmeant(Markdown.parse(text)) && push!(eaten, text)
        shown = match(r"^    (?:TT\.)?[\w!.]+\([^\n]*(\n        [^\n]*)*", text)
        args = Set(m[1] for m in eachmatch(r"^- `(\w+)`:"m, text))
        isempty(args) && continue
        words = shown === nothing ? Set() : Set(m.match for m in eachmatch(r"\w+", shown.match))
        issubset(args, words) || push!(unnamed, text)
    end
    @test seen > 600
    @test eaten == []
    @test unnamed == []
    documented(name) =
        !occursin("No documentation", string(REPL.doc(Base.Docs.Binding(TT, name))))
    @test filter(!documented, collect(setdiff(TT.PUBLIC, TT.ALIASES))) == []
    for name in (:typed, :tensor, :Tensor, :free!, :backward, :no_grad, :nn, :optim)
        @test name in names(TT)
        @test documented(name)
    end
end

@testset "few names are exported" begin
    @test Set(names(TT)) ==
        Set([:TT, :Tensor, :tensor, :typed, :free!, :backward, :no_grad, :nn, :optim])
    # Of Flux, Zygote, NNlib, DataFrames and Base: what a user may well have beside TT.
    others = [
        :Chain, :Dense, :Conv, :gradient, :withgradient, :params, :train!, :relu, :softmax,
        :sigmoid, :gelu, :dropout, :select, :flatten, :stack, :combine, :describe, :unstack, :mean,
        :std, :norm, :dot, names(Base)...,
    ]
    @test isempty(intersect(names(TT), others))
    @test isempty(filter(name -> !isdefined(TT, name), collect(TT.PUBLIC)))
end
