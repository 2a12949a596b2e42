#!/usr/bin/env julia
# Learns to balance a pole on a cart (Barto, Sutton and Anderson 1983) by proximal policy
# optimization (Schulman et al. 2017). The carts are arrays of Julia, the network plays all of them
# in one call, and each step of the training is a recorded one (TT.compile).
#
#     julia --project=bindings/julia examples/julia/cart_pole.jl [UPDATES]
using TT
using Statistics: mean, std

const CARTS, STEPS, LONGEST = 16, 64, 200
const DISCOUNT, LAMBDA = 0.99f0, 0.95f0

# ---- the game ----

"Carts with a pole each: columns of position, speed, angle and angular speed; steps so far."
struct Carts
    state::Matrix{Float32}
    age::Vector{Int}
end
Carts(n::Int) = restart!(Carts(zeros(Float32, 4, n), zeros(Int, n)), 1:n)
function restart!(carts, which)
    carts.state[:, which] .= 0.1f0 .* (Array(TT.rand(4, length(which))) .- 0.5f0)
    carts.age[which] .= 0
    return carts
end

"Pushes each cart, to the right where the action is 1. Returns whose pole or cart is lost."
function advance!(carts, actions)
    x, v, angle, spin = (view(carts.state, k, :) for k in 1:4)
    force = ifelse.(actions .== 1, 10f0, -10f0)
    pull = (force .+ 0.05f0 .* spin .^ 2 .* sin.(angle)) ./ 1.1f0
    turn = (9.8f0 .* sin.(angle) .- cos.(angle) .* pull) ./
        (0.5f0 .* (4f0 / 3 .- 0.1f0 .* cos.(angle) .^ 2 ./ 1.1f0))
    push = pull .- 0.05f0 .* turn .* cos.(angle) ./ 1.1f0
    x .+= 0.02f0 .* v
    v .+= 0.02f0 .* push
    angle .+= 0.02f0 .* spin
    spin .+= 0.02f0 .* turn
    carts.age .+= 1
    return (abs.(x) .> 2.4f0) .| (abs.(angle) .> 0.21f0)
end
seen(carts) = tensor(permutedims(carts.state))  # (carts, 4)

"One cart as text, from -2.4 to 2.4."
function picture(state)
    line = fill(' ', 41)
    cart = clamp(round(Int, 21 + state[1] / 2.4 * 20), 2, 40)
    line[cart-1:cart+1] .= '▀'
    top = fill(' ', 41)
    top[clamp(round(Int, cart + 20 * state[3]), 1, 41)] = '●'
    return join(top), join(line)
end

# ---- the player ----

struct Player
    policy::nn.Module
    value::nn.Module
end
network(outputs) = nn.Sequential(nn.Linear(4, 64), TT.tanh, nn.Linear(64, 64), TT.tanh,
    nn.Linear(64, outputs))
Player() = Player(network(2), network(1))
"Logarithms of the probabilities of both actions, and what the player expects to gain."
(p::Player)(x) = TT.log_softmax(p.policy(x), 2), TT.squeeze(p.value(x), 2)
of_actions(logs, actions) = TT.squeeze(TT.gather(logs, 2, TT.unsqueeze(actions, 2)), 2)

"""
Plays STEPS steps of all carts. Returns what the training needs of each, step by step, and the
lengths of the games that ended.
"""
function play!(carts, player)
    states, actions, logs, lengths = Tensor[], Tensor[], Tensor[], Int[]
    values, goes_on = zeros(Float32, CARTS, STEPS + 1), trues(CARTS, STEPS)
    no_grad() do
        for step in 1:STEPS
            x = seen(carts)
            log_probabilities, value = player(x)
            action = TT.squeeze(TT.multinomial(exp.(log_probabilities), 1), 2)
            push!(states, x)
            push!(actions, action)
            push!(logs, of_actions(log_probabilities, action))
            values[:, step] = Array(value)
            ended = advance!(carts, Array(action)) .| (carts.age .>= LONGEST)
            goes_on[:, step] = .!ended
            append!(lengths, carts.age[ended])
            restart!(carts, findall(ended))
        end
        values[:, end] = Array(player(seen(carts))[2])
    end
    gains = advantages(values, goes_on)
    returns = gains .+ values[:, 1:STEPS]
    scaled = (gains .- mean(gains)) ./ (std(gains) + 1f-6)
    return (map(TT.cat, (states, actions, logs))..., tensor(vec(scaled)), tensor(vec(returns))),
        lengths
end

"How much better each step was than expected (Schulman et al. 2016); each step's reward is 1."
function advantages(values, goes_on)
    gains, next = zeros(Float32, CARTS, STEPS), zeros(Float32, CARTS)
    for step in STEPS:-1:1
        surprise = 1 .+ DISCOUNT .* values[:, step+1] .* goes_on[:, step] .- values[:, step]
        next = surprise .+ DISCOUNT * LAMBDA .* goes_on[:, step] .* next
        gains[:, step] = next
    end
    return gains
end

"A step of the training: a function that is recorded once and then replayed."
training_step(player, adam) = TT.compile() do states, actions, logs, gains, returns
    now, values = player(states)
    ratio = exp.(of_actions(now, actions) .- logs)
    gain = TT.mean(min.(ratio .* gains, clamp.(ratio, 0.8, 1.2) .* gains))
    entropy = -TT.sum(now .* exp.(now)) / size(now, 1)
    loss = 0.5 * TT.mse_loss(values, returns) - gain - 0.01 * entropy
    TT.zero_grad!(adam)
    backward(loss)
    TT.step!(adam)
    return TT.detach(loss)
end

function main(updates)
    TT.manual_seed(1)
    carts, player = Carts(CARTS), Player()
    adam = optim.Adam(player; lr=0.003)
    train = training_step(player, adam)
    for update in 1:updates
        data, lengths = play!(carts, player)
        for _ in 1:4, rows in TT.split(TT.randperm(CARTS * STEPS), CARTS * STEPS ÷ 4)
            train((TT.index_select(t, 1, rows) for t in data)...)
        end
        average = isempty(lengths) ? LONGEST : round(Int, mean(lengths))
        println("update ", lpad(update, 3), ": games of ", lpad(average, 3), " steps ",
            repeat("█", average ÷ 5))
    end
    show_game(player)
end

"Plays a game in which the player takes the more probable action, and draws some of its steps."
function show_game(player)
    cart = Carts(1)
    lost = false
    while !lost && cart.age[1] < LONGEST
        cart.age[1] % 50 == 0 && foreach(println, picture(cart.state[:, 1]))
        logs, _ = no_grad(() -> player(seen(cart)))
        lost = advance!(cart, Array(TT.argmax(logs, 2)))[1]
    end
    println("the last game took ", cart.age[1], " steps")
end

updates = isempty(ARGS) ? 15 : tryparse(Int, ARGS[1])
if updates === nothing || updates < 1
    println(stderr, "usage: cart_pole.jl [UPDATES]")
    exit(2)
end
main(updates)
