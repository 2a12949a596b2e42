#!/usr/bin/env julia
# Trains a small convolutional network on handwritten digits: the Julia form of
# examples/c/train_digits.c.
#
#     julia --project=bindings/julia examples/julia/train_digits.jl [--data FILE] [--epochs N]
#         [--lr RATE] [--threads N] [--seed N] [--device NAME] [--checkpoint FILE] [--resume FILE]
#         [--logits FILE]
#     julia --project=bindings/julia examples/julia/train_digits.jl --evaluate CHECKPOINT
#         [--logits FILE]
#
# --checkpoint saves everything after each epoch; --resume continues from such a file. --evaluate
# tests the model of one, also of the C program; --logits writes the scores of the test rows, raw
# float32: (297, 10) row-major.
using TT

const TRAIN, BATCH, CLASSES = 1500, 50, 10
const USAGE = """
usage: train_digits.jl [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N]
                       [--device NAME] [--checkpoint FILE] [--resume FILE] [--logits FILE]
       train_digits.jl --evaluate CHECKPOINT [--logits FILE]
"""

function parse_options(args)
    data = joinpath(@__DIR__, "..", "data", "digits.csv")
    o = Dict{String, Any}(
        "data" => data, "epochs" => 30, "lr" => 0.01, "threads" => 1, "seed" => 0,
        "device" => "cpu", "checkpoint" => nothing, "resume" => nothing, "evaluate" => nothing,
        "logits" => nothing)
    for k in 1:2:length(args)
        name = replace(args[k], r"^--" => "")
        startswith(args[k], "--") && haskey(o, name) || error("unknown option $(args[k])")
        k < length(args) || error("no value for $(args[k])")
        x = o[name] isa Number ? tryparse(typeof(o[name]), args[k+1]) : args[k+1]
        x === nothing && error("not a number: $(args[k+1])")
        o[name] = x
    end
    return (; (Symbol(k) => v for (k, v) in o)...)
end

"Rows of 64 pixels (0-16) and a label: images (N, 1, 8, 8) in 0 … 1 and labels (N)."
function read_digits(path)
    pixels, labels = Float32[], Int64[]
    isfile(path) || error("$path: no such file")
    for (i, line) in enumerate(eachline(path))
        row = map(x -> tryparse(Int, x), split(line, ','))
        length(row) == 65 && all(x -> x !== nothing && 0 <= x <= 16, row) && row[end] < CLASSES ||
            error("$path:$i: not 64 pixels of 0 to 16 and a digit")
        append!(pixels, row[1:64] ./ 16f0)
        push!(labels, row[end])
    end
    length(labels) > TRAIN || error("$path: $(length(labels)) rows, more than $TRAIN are needed")
    return TT.reshape(tensor(pixels), -1, 1, 8, 8), tensor(labels)
end

"(N, 1, 8, 8) -> (N, 32, 2, 2) -> (N, 10)"
network() = nn.Sequential(
    nn.Conv2d(1, 16, 3; padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3; padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 2 * 2, CLASSES))

function train_batch(net, adam, x, y)
    loss = TT.cross_entropy(net(x), y)
    TT.zero_grad!(adam)
    backward(loss)
    TT.step!(adam)
    return Float64(loss)
end

function train(net, o, x, y)
    adam = optim.Adam(TT.parameters(net); lr=o.lr)
    schedule = optim.CosineAnnealingLR(adam, o.epochs)
    parts = (model=net, optimizer=adam, scheduler=schedule, generator=TT.Generator())
    losses = o.resume === nothing ? Float64[] : Array(TT.load_checkpoint!(o.resume;
        parts...)["losses"])
    first, start = length(losses), time()
    for epoch in first+1:o.epochs
        batches = TT.split(TT.randperm(TRAIN), BATCH)
        total = sum(batches) do rows
            train_batch(net, adam, TT.index_select(x, 1, rows), TT.index_select(y, 1, rows))
        end
        TT.step!(schedule)
        push!(losses, total / length(batches))
        o.checkpoint === nothing || TT.save_checkpoint(o.checkpoint;
            extra=Dict("losses" => tensor(losses)), parts...)
        progress(epoch, o.epochs, epoch - first, losses[end], time() - start)
    end
    println()
end

function progress(epoch, epochs, done, loss, seconds)
    bar = rpad(repeat('#', 30 * epoch ÷ epochs), 30, '-')
    print("\repoch ", lpad(epoch, 3), "/$epochs [$bar] loss ", rpad(round(loss; digits=4), 6, '0'),
        "  ", round(Int, done * TRAIN / seconds),
          " samples/s  ETA ", round(seconds / done * (epochs - epoch); digits=1), " s ")
    flush(stdout)
end

"Rows: the true class; columns: the predicted one."
function print_confusion(truth, guess)
    println("confusion matrix (rows: truth)\n    ", join(lpad.(0:CLASSES-1, 4)))
    for class in 0:CLASSES-1
        counts = [count((truth .== class) .& (guess .== other)) for other in 0:CLASSES-1]
        println(lpad(class, 4), join(n == 0 ? "   ." : lpad(n, 4) for n in counts))
    end
end

function main(args)
    "--help" in args && return print(USAGE)
    o = parse_options(args)
    x, y = map(t -> TT.to(t; device=o.device), read_digits(o.data))
    TT.set_num_threads!(o.threads)
    TT.manual_seed(1234)  # the split is always the same
    order = TT.to(TT.randperm(size(x, 1)); device=o.device)
    train_rows, test_rows = order[1:TRAIN], order[TRAIN+1:end]
    TT.manual_seed(o.seed)
    net = TT.to!(network(); device=o.device)
    if o.evaluate !== nothing
        TT.load_checkpoint!(o.evaluate; model=net)
    else
        train(net, o, TT.index_select(x, 1, train_rows), TT.index_select(y, 1, train_rows))
    end
    TT.eval!(net)
    scores = no_grad(() -> net(TT.index_select(x, 1, test_rows)))
    o.logits === nothing || write(o.logits, Array(scores'))  # Julia's arrays are column-major
    guess, truth = Array(TT.argmax(scores; dim=2)), Array(TT.index_select(y, 1, test_rows))
    print_confusion(truth, guess)
    println("test accuracy ", round(100 * count(truth .== guess) / length(truth); digits=1), " %")
end

try
    main(ARGS)
catch e
    e isa Union{ErrorException, TT.Error, SystemError} || rethrow()
    println(stderr, "train_digits: ", e isa ErrorException ? e.msg : sprint(showerror, e))
    exit(1)
end
