# Factorizations of matrices: LinearAlgebra's functions with its fields, their order and its errors.
# The parts are tensors, which record gradients.

"""
A factorization of a tensor. As LinearAlgebra's, it can be destructured, and `F \\ b`, `det(F)` and
`inv(F)` use it where they are defined.
"""
abstract type Factors{T} end
Base.iterate(f::Factors, i::Int=1) = i > length(parts(f)) ? nothing : (parts(f)[i], i + 1)
Base.length(f::Factors) = length(parts(f))
Base.show(io::IO, f::Factors) =
    print(io, nameof(typeof(f)), "(", join(map(Base.repr, parts(f)), ", "), ")")

# b as a matrix, for the solvers of C
function solve_columns(solve, b::Tensor)
    ndims(b) == 1 || return solve(b)
    return squeeze(solve(unsqueeze(b, 2)), 2)
end
as_tensor(b::Tensor) = b
as_tensor(b::AbstractArray) = Tensor(b)
identity_like(a::Tensor) = eye(size(a, 1); dtype=eltype(a), device=device(a))

# ---- singular values ----

"`svd(a)`: U, S, V and Vt with `a ≈ U * Diagonal(S) * Vt`."
struct SVD{T} <: Factors{T}
    U::Tensor
    S::Tensor
    Vt::Tensor
end
Base.getproperty(f::SVD, name::Symbol) =
    name === :V ? LinearAlgebra.adjoint(getfield(f, :Vt)) : getfield(f, name)
Base.propertynames(::SVD, private::Bool=false) = (:U, :S, :V, :Vt)
parts(f::SVD) = (f.U, f.S, f.V)
Base.size(f::SVD) = (size(f.U, 1), size(f.Vt, 2))

function LinearAlgebra.svd(a::Tensor; full::Bool=false)
    found = linalg_svd(a; full_matrices=full)
    return SVD{eltype(a)}(found...)
end

# ---- eigenvalues ----

"`eigen(a)`: values, sorted, and the vectors in the columns of a matrix."
struct Eigen{T} <: Factors{T}
    values::Tensor
    vectors::Tensor
end
parts(f::Eigen) = (f.values, f.vectors)
Base.size(f::Eigen) = size(f.vectors)
LinearAlgebra.det(f::Eigen) = prod(f.values)

by_parts(x) = (Base.real(x), Base.imag(x))  # LinearAlgebra's order

function LinearAlgebra.eigen(a::Tensor; sortby=by_parts)
    if sortby === by_parts && LinearAlgebra.ishermitian(a)
        return Eigen{eltype(a)}(linalg_eigh(a)...)
    end
    values, vectors = linalg_eig(a)
    order = sortby === nothing ? Colon() : Base.sortperm(Array(values); by=sortby)
    values, vectors = values[order], vectors[:, order]
    if eltype(a) <: Real && Base.all(iszero, Array(imag(values)))
        values, vectors = real(values), real(vectors)
    end
    return Eigen{eltype(a)}(values, vectors)
end
LinearAlgebra.eigvecs(a::Tensor; options...) = LinearAlgebra.eigen(a; options...).vectors
LinearAlgebra.eigvals(a::Tensor; options...) = LinearAlgebra.eigen(a; options...).values
LinearAlgebra.eigmax(a::Tensor) = maximum_of_real(LinearAlgebra.eigvals(a))
LinearAlgebra.eigmin(a::Tensor) = -maximum_of_real(-LinearAlgebra.eigvals(a))
function maximum_of_real(values::Tensor)
    eltype(values) <: Complex && throw(DomainError(values, "the eigenvalues are complex"))
    return Base.maximum(values)
end

# ---- QR ----

"`qr(a)`: Q, with as many columns as R has rows, and R with `a ≈ Q * R`."
struct QR{T} <: Factors{T}
    Q::Tensor
    R::Tensor
end
parts(f::QR) = (f.Q, f.R)
Base.size(f::QR) = (size(f.Q, 1), size(f.R, 2))
LinearAlgebra.qr(a::Tensor) = QR{eltype(a)}(linalg_qr(a)...)

function Base.:\(f::QR, b::Union{Tensor, AbstractVecOrMat})
    solve(c) = linalg_solve_triangular(f.R, LinearAlgebra.adjoint(f.Q) * c, true)
    return solve_columns(solve, as_tensor(b))
end

# ---- LU ----

"`lu(a)`: L, U and the permutation p, from 1, with `a[p, :] ≈ L * U`; P is its matrix."
struct LU{T} <: Factors{T}
    factors::Tensor
    pivots::Tensor
    info::Int
end
function Base.getproperty(f::LU, name::Symbol)
    name in (:L, :U, :P, :p) || return getfield(f, name)
    P, L, U = lu_unpack(getfield(f, :factors), getfield(f, :pivots))
    name === :L && return L
    name === :U && return U
    name === :P && return Base.transpose(P)
    return [findfirst(!iszero, column) for column in eachcol(Array(P))]
end
Base.propertynames(::LU, private::Bool=false) = (:L, :U, :p, :P, :factors, :pivots, :info)
parts(f::LU) = (f.L, f.U, f.p)
Base.size(f::LU) = size(f.factors)
LinearAlgebra.issuccess(f::LU) = f.info == 0

function LinearAlgebra.lu(a::Tensor; check::Bool=true)
    factors, pivots, info = linalg_lu_factor_ex(a)
    f = LU{eltype(a)}(factors, pivots, Int(item(info)))
    check && f.info > 0 && throw(LinearAlgebra.SingularException(f.info))
    return f
end
function Base.:\(f::LU, b::Union{Tensor, AbstractVecOrMat})
    f.info == 0 || throw(LinearAlgebra.SingularException(f.info))
    return solve_columns(c -> linalg_lu_solve(f.factors, f.pivots, c), as_tensor(b))
end
function LinearAlgebra.det(f::LU)
    swaps = Base.count(i -> f.pivots[i][] != i, 1:length(f.pivots))
    return prod(diagonal(f.factors)) * (iseven(swaps) ? 1 : -1)
end
LinearAlgebra.inv(f::LU) = f \ identity_like(f.factors)

# ---- Cholesky ----

"`cholesky(a)`: L and U with `a ≈ L * L' ≈ U' * U`."
struct Cholesky{T} <: Factors{T}
    L::Tensor
    info::Int
end
Base.getproperty(f::Cholesky, name::Symbol) =
    name === :U ? LinearAlgebra.adjoint(getfield(f, :L)) : getfield(f, name)
Base.propertynames(::Cholesky, private::Bool=false) = (:L, :U, :info)
parts(f::Cholesky) = (f.L, f.U)
Base.size(f::Cholesky) = size(f.L)
LinearAlgebra.issuccess(f::Cholesky) = f.info == 0

function LinearAlgebra.cholesky(a::Tensor; check::Bool=true)
    L, info = linalg_cholesky_ex(a)
    failed = LinearAlgebra.ishermitian(a) ? Int(item(info)) : -1
    check && failed != 0 && throw(LinearAlgebra.PosDefException(failed))
    return Cholesky{eltype(a)}(L, failed)
end
LinearAlgebra.isposdef(a::Tensor) =
    ndims(a) == 2 && LinearAlgebra.issuccess(LinearAlgebra.cholesky(a; check=false))
function Base.:\(f::Cholesky, b::Union{Tensor, AbstractVecOrMat})
    f.info == 0 || throw(LinearAlgebra.PosDefException(f.info))
    return solve_columns(c -> cholesky_solve(c, f.L), as_tensor(b))
end
LinearAlgebra.logdet(f::Cholesky) = 2 * real(sum(log(diagonal(f.L))))
LinearAlgebra.det(f::Cholesky) = exp(LinearAlgebra.logdet(f))
LinearAlgebra.inv(f::Cholesky) = cholesky_inverse(f.L)
