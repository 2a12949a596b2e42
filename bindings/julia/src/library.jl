# Finds, loads and checks libtt.

const PACKAGE_VERSION = "0.1.0"
const LIBRARY = Ref("")  # its path, once it is loaded

"(why, path) of every place that may hold the library, in order."
function candidates()
    named = get(ENV, "TT_LIBRARY", "")
    isempty(named) || return [("TT_LIBRARY", named)]
    name, package = "libtt.$(Libdl.dlext)", dirname(@__DIR__)
    return [("beside the package", joinpath(package, "lib", name)),
        ("the source tree's build", normpath(package, "..", "..", "build", name)),
            ("the system's loader", name * ".0"), ("the system's loader", name)]
end

function open_library()
    tried = String[]
    for (why, path) in candidates()
        if !isempty(dirname(path)) && !isfile(path)
            push!(tried, "$path ($why): not there")
            continue
        end
        try
            return Libdl.dlopen(path), path
        catch e
            push!(tried, "$path ($why): $(sprint(showerror, e))")
        end
    end
    error("TT: libtt was not found; set TT_LIBRARY to its path. Tried:\n  ", join(tried, "\n  "))
end

minor(version) = version[1:findlast(isequal('.'), version)]

function load_library()
    library, path = open_library()
    found = Libdl.dlsym(library, :tt_version; throw_error=false)
    found === nothing && error("TT: $path is no libtt: it has no function tt_version")
    version = unsafe_string(ccall(found, Ptr{UInt8}, ()))
    startswith(version, minor(PACKAGE_VERSION)) ||
        error("TT: $path is version $version, this package needs $(minor(PACKAGE_VERSION))x")
    for (k, name) in enumerate(C.NAMES)
        address = Libdl.dlsym(library, name; throw_error=false)
        address === nothing &&
            error("TT: $path, version $version, has no function $name, which this package, " *
                  "$PACKAGE_VERSION, needs")
        C.FN[k] = address
    end
    LIBRARY[] = path
end
