# Comparisons of gradients with finite differences, as torch.autograd.gradcheck makes them.

is_differentiable(t) = t isa Tensor && eltype(t) <: Union{AbstractFloat, BFloat16, Complex}
is_wanted(t) = is_differentiable(t) && t.requires_grad
real_form(t) = eltype(t) <: Complex ? view_as_real(t) : t
flat_numbers(t) = vec(Array(reshape(to(real_form(detach(t)); dtype=Float64), -1)))
"The results of f that can have a gradient, with complex numbers as pairs."
function real_results(f, x)
    found = f(x...)
    return [real_form(t) for t in (found isa Tensor ? (found,) : found) if is_differentiable(t)]
end
"t with a step added to one of its numbers; a complex element has two."
function moved(t, at, step)
    sizes = size(real_form(t))
    steps = Base.zeros(Base.prod(sizes))
    steps[at] = step
    steps = reshape(to(tensor(steps); device=t.device), sizes...)
    return detach(t) .+ to(eltype(t) <: Complex ? view_as_complex(steps) : steps; dtype=eltype(t))
end
"The derivatives of all results by one number of x[input]."
function differences(f, x, input, at, eps)
    ends = map((eps, -eps)) do step
        changed = Any[x...]
        changed[input] = moved(x[input], at, step)
        no_grad(() -> map(flat_numbers, real_results(f, changed)))
    end
    return map((up, down) -> (up .- down) ./ 2eps, ends...)
end
"The gradient of each number of a result with respect to t."
function gradients_of(out, t)
    nothing_flows = Base.zeros(length(real_form(t)))
    out.requires_grad || return [nothing_flows for _ in 1:length(out)]
    unit = to(eye(length(out)); dtype=eltype(out), device=out.device)
    return map(1:length(out)) do j
        g, = grad([out], [t]; grad_outputs=[reshape(unit[j, :], size(out)...)], retain_graph=true,
            allow_unused=true)
        g === nothing ? nothing_flows : flat_numbers(g)
    end
end

"""
    TT.gradcheck(f, x…; eps=1e-6, atol=1e-5, rtol=1e-3)

Compares the gradients of f(x…), with respect to those x that require one, with central differences
of step eps. Returns true, or throws an `ErrorException` that names the derivative where they differ
by more than `atol + rtol * |difference|`. The x should be of double precision; complex numbers are
pairs of real ones.
"""
function gradcheck(f, x...; eps::Real=1e-6, atol::Real=1e-5, rtol::Real=1e-3)
    Base.any(is_wanted, x) ||
        throw(ArgumentError("gradcheck: an x must be floating and require a gradient"))
    outs = enable_grad(() -> real_results(f, x))
    again = enable_grad(() -> real_results(f, x))
    for (i, (a, b)) in enumerate(zip(outs, again))
        isequal(flat_numbers(a), flat_numbers(b)) ||
            error("gradcheck: result $i differs between two equal calls")
    end
    for (input, t) in enumerate(x)
        is_wanted(t) || continue
        found = [gradients_of(out, t) for out in outs]
        for at in 1:length(real_form(t))
            expected = differences(f, x, input, at, eps)
            for (result, rows) in enumerate(found), (j, row) in enumerate(rows)
                got, want = row[at], expected[result][j]
                Base.abs(got - want) <= atol + rtol * Base.abs(want) && continue
                Base.isnan(got) && Base.isnan(want) && continue
                error("gradcheck: the derivative of number $j of result $result by number $at of " *
                      "x $input is $got: finite differences give $want")
            end
        end
    end
    return true
end

"""
    TT.gradgradcheck(f, x…; eps=1e-6, atol=1e-5, rtol=1e-3)

As `TT.gradcheck`, for the gradients of the gradients of f, also by the gradients of its results,
which are random.
"""
function gradgradcheck(f, x...; options...)
    results(x) = (y = f(x...); y isa Tensor ? (y,) : y)
    flowing(x) = [t for t in results(x) if t isa Tensor && t.requires_grad]
    wanted = [i for i in 1:length(x) if is_wanted(x[i])]
    cotangents = [requires_grad!(randn_like(detach(t))) for t in enable_grad(() -> flowing(x))]
    function gradient_of(given...)
        enable_grad() do
            own = Any[given[1:length(x)]...]
            for i in wanted
                own[i].requires_grad || (own[i] = requires_grad!(detach(own[i])))
            end
            grads = grad(flowing(own), Tensor[own[i] for i in wanted]; create_graph=true,
                grad_outputs=[given[length(x)+1:end]...], allow_unused=true)
            [g for g in grads if g !== nothing]
        end
    end
    return gradcheck(gradient_of, x..., cotangents...; options...)
end
