"""Struct layouts and constants of each language equal those of a C compiler (tests/gen/abi_dump.c),
line by line."""
import ctypes

import pytest

from languages import BUILD, LANGUAGES, ROOT, cargo, julia, run

JULIA = """
include(joinpath("{root}", "bindings/julia/src/gen/c.jl"))
for T in C.STRUCTS
    println("struct ", nameof(T), " ", sizeof(T))
    for i in 1:fieldcount(T)
        println("field ", nameof(T), ".", fieldname(T, i), " ", Int(fieldoffset(T, i)))
    end
end
for name in names(C; all=true)
    startswith(String(name), "TT_") && println("constant ", name, " ", Int128(getfield(C, name)))
end
"""


def c_rows(_):
    return run(BUILD / "tests/abi_dump")


def python_rows(_):
    from tt import _structs

    rows = []
    for name in _structs.STRUCTS:
        kind = _structs.struct(name)
        rows.append(f"struct {name} {ctypes.sizeof(kind)}")
        rows += [
            f"field {name}.{field} {getattr(kind, field).offset}" for field, _ in kind._fields_
        ]
    return "\n".join(
        rows + [f"constant {name} {value}" for name, value in _structs.CONSTANTS.items()]
    )


def rust_rows(folder):
    cargo("test", "-p", "tt-sys", "--test", "abi", TT_ABI_TO=folder / "rust")
    return (folder / "rust").read_text().replace(".type_ ", ".type ")  # a name that Rust reserves


def julia_rows(folder):
    (folder / "dump.jl").write_text(JULIA.format(root=ROOT))
    return julia(folder / "dump.jl")


@pytest.mark.parametrize("language", LANGUAGES)
def test_language_sees_what_c_sees(language, tmp_path):
    rows_of = {"c": c_rows, "python": python_rows, "rust": rust_rows, "julia": julia_rows}
    rows = rows_of[language](tmp_path).split("\n")
    want = c_rows(tmp_path).split("\n")
    assert sorted(filter(None, rows)) == sorted(filter(None, want)) and len(want) > 1500
