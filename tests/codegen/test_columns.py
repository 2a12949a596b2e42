"""Generated lines are broken at 100 columns without changing their meaning."""
import ast

import pytest
from codegen.model import columns
from codegen.model.columns import wrap

CALL = "    f(" + ", ".join(f"argument_{n}" for n in range(12)) + ")"


def lines(path, text):
    found = wrap(path, text).split("\n")
    assert all(len(line) <= columns.WIDTH for line in found), found
    return found


def test_short_lines_stay():
    text = "int f();\n\n  int g();  // kept\n"
    assert wrap("a.h", text) == text


def test_a_file_of_another_kind_stays():
    assert wrap("a.md", "x" * 200) == "x" * 200


@pytest.mark.parametrize("path", ["a.cpp", "a.py", "a.jl", "a.rs"])
def test_a_call_is_broken_behind_a_comma(path):
    first, *rest = lines(path, CALL)
    assert first.endswith(",") and rest
    assert " ".join(line.strip() for line in [first, *rest]) == CALL.strip()


def test_c_aligns_with_the_bracket():
    prototype = f"tt_status tt_name({', '.join(f'const tt_tensor *t{n}' for n in range(6))});"
    first, second = lines("a.h", prototype)
    assert second.index("const") == first.index("(") + 1


def test_outer_brackets_are_broken_first():
    first = "a" * 70
    assert lines("a.rs", f"call({first}, inner(bbbbbbbb, ccccccccc, ddddd), last)") == [
        f"call({first},",
        "    inner(bbbbbbbb, ccccccccc, ddddd), last)",
    ]


def test_a_block_on_one_line_becomes_several():
    text = f"void f(int {'a' * 60}) {{ return call({'b' * 30}); }}"
    assert lines("a.cpp", text) == [
        f"void f(int {'a' * 60}) {{",
        f"  return call({'b' * 30});",
        "}",
    ]


def test_commas_in_strings_are_no_breaks():
    text = 'f("' + "a, " * 25 + '", ' + "x" * 40 + ");"
    assert lines("a.cpp", text)[0].endswith('",')


def test_a_long_string_of_c_is_split_between_escapes():
    text = 'const char* s = "' + '\\217\\204\\"ab' * 30 + '";'
    found = lines("a.cpp", text)
    pieces = [line[line.index('"') + 1 : line.rindex('"')] for line in found if '"' in line]
    assert "".join(pieces) == '\\217\\204\\"ab' * 30
    assert all(columns.UNIT.sub("", piece) == "" for piece in pieces)


def test_a_long_string_of_rust_is_continued():
    found = lines("a.rs", 'let s = "' + "word " * 40 + '";')
    assert all(line.endswith(" \\") for line in found[:-1])


@pytest.mark.parametrize(
    "statement",
    [
        "from module import " + ", ".join(f"name_{n}" for n in range(15)),
        "if " + " or ".join(f"value_{n} is not None" for n in range(6)) + ":\n    pass",
        "table = {\n    'a': \"" + "word " * 30 + '",\n}',
        CALL.strip(),
    ],
)
def test_python_means_the_same(statement):
    found = "\n".join(lines("a.py", statement))
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(statement))


def test_python_outside_of_brackets_stays():
    text = "value = " + "x" * 100
    assert wrap("a.py", text) == text


def test_a_docstring_is_prose():
    text = 'def f():\n    """' + "word " * 30 + "\n      name: " + "more " * 30 + '\n    """'
    found = lines("a.py", text)
    name = next(n for n, line in enumerate(found) if "name:" in line)
    assert found[name + 1].startswith("        more")


def test_comments_keep_their_mark():
    assert all(line.startswith("    /// ") for line in lines("a.rs", "    /// " + "word " * 40))
    assert all(line.startswith("// ") for line in lines("a.h", "// " + "word " * 40))


def test_a_comment_behind_a_field_continues_below_itself():
    first, second = lines("a.h", "  int64_t n; /* " + "word " * 22 + "*/")
    assert second.index("word") == first.index("word")


def test_a_directive_stays():
    text = "#define LONG " + "x, " * 50
    assert wrap("a.h", text) == text
