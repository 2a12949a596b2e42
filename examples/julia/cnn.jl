#!/usr/bin/env julia
# A convolutional network for handwritten digits, with a layer and an update rule of our own. It is
# trained by the gradient of a function; the loss, some digits and the accuracy by class are drawn
# as text.
#
#     julia --project=bindings/julia examples/julia/cnn.jl [EPOCHS]
using TT
using TT: relu, cross_entropy, max_pool2d, (..)

const DATA = joinpath(@__DIR__, "..", "data", "digits.csv")

# ---- the model: any struct with tensors or layers in it ----

"Scales each channel by a factor in 0 … 1 that depends on the means of all channels."
struct ChannelGate
    weight::Tensor
    bias::Tensor
end
ChannelGate(channels::Int) =
    ChannelGate(TT.zeros(channels, channels; requires_grad=true),
                TT.ones(channels; requires_grad=true))
function (gate::ChannelGate)(x)
    means = TT.mean(x, (3, 4))  # (N, C)
    factors = TT.sigmoid.(means * gate.weight .+ gate.bias)
    return x .* factors[:, :, nothing, nothing]
end

struct Digits
    conv1::nn.Module
    conv2::nn.Module
    gate::ChannelGate
    head::nn.Module
end
Digits() = Digits(nn.Conv2d(1, 16, 3; padding=1), nn.Conv2d(16, 32, 3; padding=1), ChannelGate(32),
                  nn.Sequential(nn.Flatten(), nn.Linear(32 * 2 * 2, 10)))
function (m::Digits)(x)
    h = max_pool2d(relu(m.conv1(x)), 2)      # (N, 16, 4, 4)
    h = m.gate(relu(m.conv2(h)))
    return m.head(max_pool2d(h, 2))
end

# ---- training ----

"Momentum: v = 0.9 v + gradient; parameter -= rate * v."
function update!(parameters, velocities, gradients, rate)
    no_grad() do
        for (p, v, g) in zip(parameters, velocities, gradients)
            v .= 0.9 .* v .+ g
            p .-= rate .* v
        end
    end
end

function train!(model, images, labels; epochs, rate=0.05, batch=50)
    parameters = TT.parameters(model)
    velocities = map(zero, parameters)
    losses = Float64[]
    for epoch in 1:epochs
        step_rate = rate * (1 + cos(pi * (epoch - 1) / epochs)) / 2
        for rows in TT.split(TT.randperm(size(images, 1)), batch)
            loss = TT.scope() do  # frees what a step makes
                x, y = images[rows, ..], labels[rows]
                loss, (gradients,) = TT.withgradient(m -> cross_entropy(m(x), y), model)
                update!(parameters, velocities, gradients, step_rate)
                loss[]
            end
            push!(losses, loss)
        end
    end
    return losses
end

# ---- plots as text ----

"Values over their index, as dots of 2 x 4 in each character."
function lineplot(values; width=60, height=8, title="")
    low, high = extrema(values)
    cells = zeros(UInt8, height, width)
    bits = [0x01 0x08; 0x02 0x10; 0x04 0x20; 0x40 0x80]  # of a braille character
    for k in 0:2width-1
        part = values[1+k*length(values)÷2width:max(1, (k+1)*length(values)÷2width)]
        isempty(part) && continue
        mean = sum(part) / length(part)
        row = round(Int, (4height - 1) * (high - mean) / max(high - low, eps()))
        cells[row÷4+1, k÷2+1] |= bits[row%4+1, k%2+1]
    end
    println(title)
    for row in 1:height
        mark = ""
        row == 1 && (mark = string(round(high; digits=2)))
        row == height && (mark = string(round(low; digits=2)))
        println(lpad(mark, 8), " │", join(Char(0x2800 + c) for c in cells[row, :]))
    end
end

"Shares as bars."
function barplot(names, shares; width=40, title="")
    println(title)
    for (name, share) in zip(names, shares)
        bar = repeat("█", round(Int, width * share))
        println(lpad(name, 8), " │", rpad(bar, width), " ", round(100 * share; digits=1), " %")
    end
end

"Images beside one another, in shades."
function show_images(images, captions)
    shades = collect(" ░▒▓█")
    shade(v) = shades[1+floor(Int, 4.99 * v)]
    for row in 1:8
        println(join((join(shade(v)^2 for v in image[row, :]) for image in images), "  "))
    end
    println(join((rpad(c, 16) for c in captions), "  "))
end

# ---- data ----

"Rows of 64 pixels (0 to 16) and a label, as images (N, 1, 8, 8) in 0 … 1 and labels (N)."
function read_digits(path)
    rows = [parse.(Int, split(line, ',')) for line in eachline(path)]
    pixels = [row[8(i-1)+j] / 16f0 for row in rows, _ in 1:1, i in 1:8, j in 1:8]
    return tensor(pixels), tensor([row[65] for row in rows])
end

function main(epochs)
    TT.manual_seed(1)
    images, labels = read_digits(DATA)
    train, test = 1:1500, 1501:size(images, 1)
    model = Digits()
    losses = train!(model, images[train, ..], labels[train]; epochs=epochs)
    lineplot(losses; title="loss of $(length(losses)) steps")

    scores = no_grad(() -> model(images[test, ..]))
    guess, truth = Array(TT.argmax(scores, 2)), Array(labels[test])
    show_images([Array(images[test[k], 1, ..]) for k in 1:5], ["→ $(guess[k])" for k in 1:5])
    right(class) = count((truth .== class) .& (guess .== class)) / count(truth .== class)
    barplot(0:9, right.(0:9); title="right, by class")
    println("test accuracy ", round(100 * count(truth .== guess) / length(truth); digits=1), " %")
end

epochs = isempty(ARGS) ? 15 : tryparse(Int, ARGS[1])
if epochs === nothing || epochs < 1
    println(stderr, "usage: cnn.jl [EPOCHS]")
    exit(2)
end
main(epochs)
