# The price of the binding: a + b of two 4 x 4 tensors beside the same calls from a loop in C, in
# one process, alternately.
# TT_LIBRARY=… julia -O2 --project=bindings/julia bindings/julia/test/bench_add.jl
using TT, Libdl, Statistics

const SOURCE = """
typedef int (*add_fn)(void *, void *, void *, void **);
int add_loop(void *c, void *a, void *b, long n, add_fn add, void (*release)(void *)) {
  for (long i = 0; i < n; i++) {
    void *out;
    if (add(c, a, b, &out)) return 1;
    release(out);
  }
  return 0;
}
int kept_loop(void *c, void *a, void *b, long n, add_fn add, void (*release)(void *), void **kept) {
  for (long i = 0; i < n; i++)
    if (add(c, a, b, &kept[i])) return 1;
  for (long i = 0; i < n; i++) release(kept[i]);
  return 0;
}
"""
const LOOP, KEPT, ADD, RELEASE = mktempdir() do folder
    write(joinpath(folder, "loop.c"), SOURCE)
    run(`cc -O2 -shared -fPIC -o $folder/loop.so $folder/loop.c`)
    address(name) = TT.C.address_of(findfirst(==(name), TT.C.NAMES))
    loops = dlopen("$folder/loop.so")
    functions = dlsym(loops, :add_loop), dlsym(loops, :kept_loop)
    (functions..., address("tt_add"), address("tt_tensor_release"))
end

in_c(a, b, n) = ccall(
    LOOP, Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Clong, Ptr{Cvoid}, Ptr{Cvoid}),
    TT.ctx(), a, b, n, ADD, RELEASE,
)
# Results live until all are there, about as they wait for the collector.
kept_in_c(a, b, kept) = ccall(
    KEPT, Cint,
    (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Clong, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}),
    TT.ctx(), a, b, length(kept), ADD, RELEASE, kept,
)
by_hand(a, b, n) = for _ in 1:n
    o = Ref{Ptr{Cvoid}}()
    TT.check(TT.C.tt_add(TT.ctx(), a, b, o))
    TT.C.tt_tensor_release(o[])
end
freed(a, b, n) = for _ in 1:n
    free!(a + b)
end
in_place(a, b, n) = for _ in 1:n
    TT.add!(a, b)
end
function collected(a, b, n)
    for _ in 1:n
        a + b
    end
end

scoped(a, b, n) = TT.scope() do
    for _ in 1:n
        a + b
    end
end

"Of this process: a run takes 0.1 s, in which other processes have their turns."
function processor_seconds(f)
    start = ccall(:clock, Clong, ())
    f()
    return (ccall(:clock, Clong, ()) - start) / 1e6
end

const CASES = ("C loop" => in_c, "ccall by hand" => by_hand, "free!(a + b)" => freed,
    "a + b in a scope" => scoped, "add!(a, b)" => in_place)
function main(rounds=300, n=5000)
    a, b = tensor(rand(Float32, 4, 4)), tensor(rand(Float32, 4, 4))
    TT.zero!(b)
    times = [Float64[] for _ in CASES]
    for round in 0:rounds, (k, (_, f)) in enumerate(CASES)
        t = time_ns()
        f(a, b, n)
        round > 0 && push!(times[k], (time_ns() - t) / n)
    end
    for (k, (name, _)) in enumerate(CASES)
        println(rpad(name, 16), lpad(round(median(times[k]); digits=1), 6), " ns, ",
            round(median(times[k] ./ times[1]); digits=2), " of the C loop")
    end
    GC.gc()
    kept = Vector{Ptr{Cvoid}}(undef, 300_000)
    for (name, f) in ("C, all kept" => () -> kept_in_c(a, b, kept),
        "a + b, collected" => () -> collected(a, b, length(kept)))
        t = median([processor_seconds(f) for _ in 1:10]) / length(kept) * 1e9
        println(rpad(name, 16), lpad(round(t; digits=1), 6), " ns, ",
            round(t / median(times[1]); digits=1), " of the C loop")
    end
end
main()
