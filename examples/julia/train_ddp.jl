#!/usr/bin/env julia
# Trains a small network on handwritten digits in several processes: the Julia form of
# examples/c/train_ddp.c.
#
#     python3 -m tt.distributed.run --no-python --nproc-per-node 2 julia --project=bindings/julia \
#         examples/julia/train_ddp.jl
#     mpirun -n 2 julia --project=bindings/julia examples/julia/train_ddp.jl
using TT

const TRAIN, BATCH, EPOCHS = 1500, 60, 10

function read_digits(path)
    rows = [parse.(Int, split(line, ',')) for line in eachline(path)]
    pixels = Float32[row[i] / 16 for row in rows, i in 1:64]
    return tensor(pixels), tensor(Int64[row[65] for row in rows])
end

function main()
    x, y = read_digits(joinpath(@__DIR__, "..", "data", "digits.csv"))
    TT.set_num_threads!(1)
    g = TT.Group()
    rank, mine = TT.group_rank(g), BATCH ÷ TT.group_size(g)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    adam = optim.Adam(TT.parameters(net))
    ddp = TT.Ddp(net, g)  # all ranks get rank 0's parameters
    for epoch in 1:EPOCHS
        loss = nothing
        for start in 0:BATCH:TRAIN-1
            rows = start + rank * mine .+ (1:mine)
            loss = TT.cross_entropy(net(x[rows, :]), y[rows])
            TT.zero_grad!(adam)
            backward(loss)  # ends with the mean of the gradients of all ranks
            TT.step!(adam)
        end
        rank == 0 && println("epoch $epoch: loss ", round(Float64(loss); digits=4))
    end
    if rank == 0
        tests = TRAIN+1:size(x, 1)
        guess = Array(TT.argmax(net(x[tests, :]); dim=2))
        right = count(guess .== Array(y[tests])) / length(tests)
        println(TT.group_size(g), " processes: test accuracy ", round(100right; digits=1), " %")
    end
    TT.free!(ddp)
end

main()
