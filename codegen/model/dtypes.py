"""The words for dtypes: of the key `dtypes` of a declaration, and of the compute sets of
kernels."""
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
NAMES = ("bool", *INTEGERS, *FLOATING, *COMPLEX)
WORDS = {
    "all": NAMES,
    "integers": INTEGERS,
    "floating": FLOATING,
    "complex": COMPLEX,
    **{name: (name,) for name in NAMES},
}
# compute set of a kernel -> the dtypes of its operands, before they are converted
OF_KERNELS = {
    "all": "all",
    "arith": "all",
    "real": "bool, integers, floating",
    "float": "all",
    "real_float": "bool, integers, floating",
    "bitwise": "bool, integers",
    "logical": "all",
}


def words_of(op):
    """The words for the dtypes of its tensors; empty if the declaration does not say."""
    if not op.kernel:
        return op.get("dtypes", "")
    words = OF_KERNELS[op.kernel["set"]]
    if op.kernel.get("no_integers"):
        return "floating, complex" if words == "all" else "floating"
    if op.kernel.get("no_bool"):
        words = "integers, floating, complex" if words == "all" else words.removeprefix("bool, ")
    return words


def names_of(words):
    return {name for word in words.split(", ") for name in WORDS[word]}
