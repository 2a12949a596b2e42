# t[…] reads and writes as arrays do.
t = tensor(reshape(Float64.(1:60), 3, 4, 5))
T = Array(t)
same(index...) = near(t[index...], T[index...])

@testset "reading" begin
    @test same(2, 3, 4)
    @test same(:, 2, :)
    @test same(1:2, :, 3)
    @test same(1:2:3, 4:-1:1, 2:2)
    @test same(3, [1, 4], :)
    @test same([3, 1, 1], :, 2)
    @test same([1, 3], [2, 2, 4], 5)
    @test same([1, 2], :, [5, 1])
    @test same(:, :, 2:1)
    @test same(CartesianIndex(1, 2), 3)
    @test same([true, false, true], :, 1)
    @test same([1 2; 3 1], 2, 3)
    @test t[2, 3, 4] isa Tensor
    @test t[2, 3, 4][] === T[2, 3, 4]
    @test near(t[end, end, end], T[end, end, end])
    @test near(t[:, 2:end, 1], T[:, 2:end, 1])
    @test near(t[1, ..], T[1, :, :])
    @test near(t[.., 2], T[:, :, 2])
    @test near(t[2, .., 5], T[2, :, 5])
    @test size(t[nothing, :, nothing, 1, ..]) == (1, 3, 1, 5)
    mask = T .> 30
    @test near(t[t .> 30], T[mask])
    @test near(t[mask], T[mask])
    @test near(t[BitArray(mask)], T[mask])
    thrown(() -> t[trues(3, 4, 4)], BoundsError)
    @test near(t[Tensor([0, 2]), :, 1], T[[1, 3], :, 1])
    @test near(t[Tensor([0, 2]), Tensor([1, 3]), 1], [T[1, 2, 1], T[3, 4, 1]])
    for wrong in ((4, 1, 1), (0, 1, 1), (1:4, 1, 1), ([0], 1, 1), (1, 1, [6]))
        thrown(() -> t[wrong...], BoundsError)
    end
    @test same(17) && same(60) && same(5:9) && same([3, 1]) && same([1 2; 60 4]) && same(:)
    thrown(() -> t[61], BoundsError)
    thrown(() -> t[1, 2], ArgumentError)
    thrown(() -> t[1, 2, 3, 4], ArgumentError)
    thrown(() -> t[.., ..], ArgumentError)
    thrown(() -> t[1.5, 1, 1], ArgumentError)
    thrown(() -> t[true, 1, 1], ArgumentError)
    @test TT.is_view(t[1, :, 2:3]) && near(view(t, 1, :, 2), T[1, :, 2])
end

@testset "writing" begin
    for (index, x) in (((1, 2, 3), 7), ((:, 1, 2:3), 0.5), (([1, 3], :, 2), 2),
        (([1, 3], [2, 4], 1), [1.0 2; 3 4]), ((2, :, :), ones(4, 5)),
                       ((1:2, 3, 4), Tensor([8.0, 9])), (([true, false, true], 1, 1), [3.0, 4]))
        u, U = clone(t), copy(T)
        u[index...] = x
        if x isa Tensor
            U[index...] = Array(x)
        elseif x isa Number && !all(i -> i isa Int, index)
            U[index...] = fill(x, size(U[index...]))
        else
            U[index...] = x
        end
        @test near(u, U)
    end
    u = clone(t)
    u[[1, 3], 1, 1] = [5, 6]  # of another type
    @test u[3, 1, 1][] == 6
    u = clone(t)
    u[u .> 30] = 0
    @test near(u, T .* (T .<= 30))
    u[T .<= 30] = 1:30
    U = T .* (T .<= 30)
    U[T .<= 30] = 1:30
    @test near(u, U)
    u, U = clone(t), copy(T)
    u[u .> 30] .= 0
    u[[1, 3], :, 1] .+= 2
    u[[1, 3], [1, 4], 2] .= 7
    u[3:5] .*= 2
    U[U .> 30] .= 0
    U[[1, 3], :, 1] .+= 2
    U[[1, 3], [1, 4], 2] .= 7
    U[3:5] .*= 2
    @test near(u, U)
    @test near((u[:] .= 3; u), fill(3, 3, 4, 5))
    u, U = clone(t), copy(T)
    u[1, ..] .= 1
    @test near(u[1, ..], ones(4, 5))
    @test u[2, 2, 2][] == T[2, 2, 2]
    u, U = clone(t), copy(T)
    for index in (7, 3:5, [60, 1], :)
        x = index isa Int ? 2.0 : reshape(Float64.(1:length(U[index])), size(U[index]))
        u[index], U[index] = x, x
        @test near(u, U)
    end
    thrown(() -> view(u, [1, 2], :, 1), ArgumentError)
    thrown(() -> view(u, 1:3), ArgumentError)
    @test size(view(u, 1, 1:2, :)) == (2, 5)
    thrown(() -> u[4, 1, 1] = 0, BoundsError)
    thrown(() -> u[1, :, :] = ones(3), TT.Error)
    thrown(() -> u[[1, 2], :, [1, 2]] = 0, ArgumentError)
end

@testset "gradients pass through" begin
    x = tensor(ones(3, 3); requires_grad=true)
    backward(sum(x[2, :] .* 3) + sum(x[[1, 1], 2]))
    @test near(x.grad, [0 2 0; 3 3 3; 0 0 0])
    x.grad = nothing
    mask = [true false false; true true false; false false true]
    backward(sum(x[mask] .* tensor([1.0, 2, 3, 4])))
    @test near(x.grad, [1 0 0; 2 3 0; 0 0 4])
end
