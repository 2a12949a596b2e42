"""Breaks the lines of generated files at 100 columns.

Emitters write one statement a line; `wrap` breaks the long ones behind a comma or at an operator,
as far out of the brackets as it can. Only white space changes, but for a string that is too long
for a line, which becomes several that the compiler joins, and for Python's imports and conditions,
which get parentheses.
"""
import re
import textwrap
from dataclasses import dataclass

from codegen.model.schema import split_top

WIDTH = 100
C = "c"
PYTHON = "python"
JULIA = "julia"
RUST = "rust"
LANGUAGES = {
    **dict.fromkeys((".c", ".h", ".cpp", ".inc"), C),
    **dict.fromkeys((".py", ".pyi"), PYTHON),
    ".jl": JULIA,
    ".rs": RUST,
}
COMMENTS = {C: ("// ",), PYTHON: ("# ",), JULIA: ("# ",), RUST: ("/// ", "//! ", "// ")}
PINNED = ("# type:", "# noqa", ";  // ")  # comments that belong to their line
STRING = r'"(?:[^"\\]|\\.)*"'
CHARACTER = r"'(?:\\.[^']*|[^'\\])'"
OPERATORS = r" (?:&&|\|\||\?|:|->|\+|\||=|and|or) "
TOKEN = {
    language: re.compile(rf"(?P<string>{strings})|(?P<operator>{OPERATORS})|[(\[{{<)\]}}>,;]")
    for language, strings in {
        C: f"{STRING}|{CHARACTER}",
        RUST: f"{STRING}|{CHARACTER}",
        JULIA: f"{STRING}|{CHARACTER}",
        PYTHON: f"{STRING}|'(?:[^'\\\\]|\\\\.)*'",
    }.items()
}
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
# the costs of a break: at a token, for each open bracket, for each column left empty
COMMA_COST = 0
ASSIGNMENT_COST = 2
OPERATOR_COST = 3
BRACKET_COST = 6
DEPTH_COST = 4
COLUMN_COST = 0.1
# a continuation line is aligned with its bracket up to this column
LAST_ALIGNED = 56
UNIT = re.compile(r"\\[0-7]{1,3}|\\.|[^\\]")  # of a string
# a string is only broken if this much of it fits
SHORTEST_PIECE = 20


@dataclass
class Break:
    at: int  # the first character of the next line
    brackets: tuple  # places of the open ones
    cost: float


# ---- where a line can be broken ----


def is_bracket(code, at, language):
    if code[at] != "<":
        return code[at] in "([{"
    return language in (C, RUST) and at > 0 and (code[at - 1].isalnum() or code[at - 1] in "_:")


def at_operator(operator, at, brackets, language):
    """The Break at an operator, None where it must not be."""
    word = operator.strip()
    if word == "=":
        return None if brackets else Break(at + 3, (), ASSIGNMENT_COST)
    if word in (":", "?") and language in (JULIA, PYTHON):
        return None
    if word in ("and", "or") and language != PYTHON:
        return None
    behind = len(operator) if language == JULIA else 1
    return Break(at + behind, tuple(brackets), OPERATOR_COST)


def breaks(code, language):
    """The Breaks of a line of code, and its strings as (begin, end) pairs."""
    found = []
    strings = []
    brackets = []
    for token in TOKEN[language].finditer(code):
        at = token.start()
        if token["string"]:
            strings.append(token.span())
        elif token["operator"]:
            found.append(at_operator(token["operator"], at, brackets, language))
        elif is_bracket(code, at, language):
            brackets.append(at)
            space = code[at + 1 : at + 2] == " "
            found.append(Break(at + 1 + space, tuple(brackets), BRACKET_COST))
        elif brackets and code[at] == CLOSING[code[brackets[-1]]]:
            brackets.pop()
        elif code[at] in ",;" and code[at + 1 : at + 2] == " ":
            found.append(Break(at + 2, tuple(brackets), COMMA_COST))
    return [b for b in found if b], strings


def may_break(code, place, language, inside):
    """Python and Julia end a statement at the end of a line, outside of brackets."""
    if inside or place.brackets or language in (C, RUST):
        return True
    ending = code[: place.at].rstrip()
    return language == JULIA and ending.endswith((";", "&&", "||"))


# ---- code ----


class Line:
    """One statement on its way to several lines."""

    def __init__(self, code, language, inside=False):
        """inside: a bracket of an earlier line is open."""
        self.code = code
        self.language = language
        self.inside = inside
        self.indent = len(code) - len(code.lstrip())
        further = 0 if inside else 4
        if language == PYTHON and code.endswith(":"):
            further = 8
        self.plain = self.indent + further
        self.columns = {}  # place in code -> column in the output
        self.lines = []
        self.aligns = language in (C, PYTHON)
        self.scan()

    def scan(self):
        found, self.strings = breaks(self.code, self.language)
        self.breaks = [b for b in found if may_break(self.code, b, self.language, self.inside)]

    def continued(self, place):
        """The column at which the next line begins."""
        if not self.aligns or not place.brackets:
            return self.plain
        last = place.brackets[-1]
        space = self.code[last + 1 : last + 2] == " "
        column = self.columns[last] + 1 + space
        behind = place.at - last <= 2
        return self.plain if behind or column > LAST_ALIGNED else column

    def best(self, start, column):
        """The cheapest Break of the text from start on, None if nothing fits."""
        limit = start + WIDTH - column
        fits = [
            b for b in self.breaks if b.at > start + 8 and len(self.code[: b.at].rstrip()) <= limit
        ]
        return min(
            fits,
            key=lambda b: b.cost + DEPTH_COST * len(b.brackets) + COLUMN_COST * (limit - b.at),
            default=None,
        )

    def emit(self, start, end, column):
        for at in range(start, end):
            self.columns[at] = column + at - start
        self.lines.append(" " * column + self.code[start:end])

    def cut_of_string(self, start, column):
        """Where to cut a string that is too long for its line; None if it cannot be cut."""
        limit = start + WIDTH - column - 2
        begin = next((b for b, e in self.strings if max(b, start) < limit < e), None)
        if begin is None or self.language == JULIA or not self.may_cut(begin):
            return None
        begin = max(begin + 1, start)
        units = [unit.end() for unit in UNIT.finditer(self.code, begin) if unit.end() <= limit]
        spaces = [end for end in units if self.code[end - 1] == " "]
        found = spaces[-1:] if self.language == RUST else units[-1:]
        if spaces and spaces[-1] - begin >= SHORTEST_PIECE:
            found = spaces[-1:]
        return found[0] if found and found[0] - begin >= SHORTEST_PIECE else None

    def may_cut(self, begin):
        """Whether a string may be cut: Python joins strings only inside brackets, and prefixes are
        not handled."""
        if self.language != PYTHON:
            return True
        prefixed = begin > 0 and self.code[begin - 1].isalpha()
        return self.inside and not prefixed and self.code[begin] == '"'

    def cut(self, start, cut, column):
        """Ends the line inside a string, and returns where the next line begins."""
        if self.language == RUST:
            self.emit(start, cut, column)
            self.lines[-1] += "\\"
            return cut
        self.code = self.code[:cut] + '""' + self.code[cut:]
        self.scan()
        self.emit(start, cut + 1, column)
        return cut + 1

    def wrapped(self):
        start = self.indent
        column = self.indent
        while len(self.code) - start > WIDTH - column:
            place = self.best(start, column)
            if place:
                self.emit(start, place.at, column)
                start = place.at
                column = self.continued(place)
            elif self.lines and column > self.plain:
                column = self.plain
                self.aligns = False
            else:
                cut = self.cut_of_string(start, column)
                if not cut:
                    break
                start = self.cut(start, cut, column)
                column = self.plain
        self.emit(start, len(self.code), column)
        return [line.rstrip() for line in self.lines]


def body_of(line, language):
    """(head, statements) of a line `head { statements }`; None of any other."""
    if language not in (C, RUST) or not line.endswith(" }"):
        return None
    _, strings = breaks(line, language)
    depth = 0
    for at, char in enumerate(line):
        if any(begin <= at < end for begin, end in strings):
            continue
        if char == "{" and depth == 0:
            whole = line[at + 1] == " " and line[at - 1] == " " and line[at - 3] not in "=,"
            return (line[:at].rstrip(), line[at + 2 : -2]) if whole else None
        depth += (char in "([{") - (char in ")]}")
    return None


def statements(body):
    """The statements of a body, each with its semicolon."""
    parts = split_top(body, ";")
    return [part + ";" for part in parts[:-1]] + [parts[-1] + ";" * body.endswith(";")]


def block(line, language):
    """A block on one line becomes one of several; None of any other line."""
    found = body_of(line, language)
    if not found:
        return None
    head, body = found
    indent = line[: len(line) - len(line.lstrip())]
    step = "  " if language == C else "    "
    inner = [indent + step + statement for statement in statements(body)]
    lines = [f"{head} {{", *inner, indent + "}"]
    return [part for each in lines for part in wrapped_line(each, language)]


def wrapped_line(line, language, inside=False):
    if len(line) <= WIDTH:
        return [line]
    return block(line, language) or Line(line, language, inside).wrapped()


def python_line(line, inside):
    """Imports and conditions get the parentheses in which they can be broken."""
    indent = line[: len(line) - len(line.lstrip())]
    imported = re.fullmatch(r"\s*(from \S+ import )([^(]*)", line)
    if imported:
        names = prose(imported[2], indent + "    ", indent + "    ")
        return [f"{indent}{imported[1]}(", *names, f"{indent})"]
    condition = re.fullmatch(r"(\s*)(if|elif|while|return) (.* (?:and|or) .*?)(:?)", line)
    if condition and not inside:
        return Line(f"{indent}{condition[2]} ({condition[3]}){condition[4]}", PYTHON).wrapped()
    return Line(line, PYTHON, inside).wrapped()


# ---- comments and texts ----


def prose(text, first, rest):
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def comment(line, language):
    """Breaks a line that is a comment; None if it is none."""
    indent = line[: len(line) - len(line.lstrip())]
    for mark in COMMENTS[language]:
        if line.lstrip().startswith(mark):
            return prose(line.strip()[len(mark) :], indent + mark, indent + mark)
    if language == C and line.lstrip().startswith("/* "):
        return prose(line.strip(), indent, indent + "   ")
    return None


def behind(line, language):
    """Code followed by a comment, which continues below itself; None if there is no comment."""
    at = line.rfind(" /* ")
    if language != C or at < 0 or not line.endswith(" */") or at > WIDTH // 2:
        return None
    return prose(line[at + 1 :], line[: at + 1], " " * (at + 4))


def document(line):
    """A line of a docstring: what follows the name of an argument is indented further."""
    indent = line[: len(line) - len(line.lstrip())]
    deeper = "    " if re.match(r'\s*(""")?[\w.!]+\(', line) else ""
    deeper = deeper or ("  " if re.match(r"\s*(- )?[\w`]+: ", line) else "")
    return prose(line.strip(), indent, indent + deeper)


def broken(line, language, inside):
    if line.lstrip().startswith("#") and language == C:
        return [line]
    if any(mark in line for mark in PINNED):
        return [line]
    found = comment(line, language) or behind(line, language)
    if found:
        return found
    if language == PYTHON:
        return python_line(line, inside)
    return wrapped_line(line, language, inside)


class State:
    """What is open at the beginning of a line: a docstring, a comment, brackets."""

    def __init__(self, language):
        self.language = language
        self.in_text = False
        self.depth = 0

    def is_text(self, line):
        """Returns whether the line is part of a text, and updates the state."""
        before = self.in_text
        if self.language == C:
            opened = line.rfind("/*")
            closed = line.rfind("*/")
            self.in_text = opened > closed or (self.in_text and closed < 0)
            return before or (self.in_text and line.lstrip().startswith("/*"))
        if self.language == RUST:
            return False
        quotes = line.count('"""')
        self.in_text ^= quotes % 2 == 1
        return before or (quotes > 0 and line.lstrip().startswith('"""'))

    def count(self, line):
        if self.language in (PYTHON, JULIA):
            bare = re.sub(STRING, "", line)
            self.depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


def tokens(text):
    """The tokens, which wrap must not change."""
    text = re.sub(r'\\\n\s*|"\n\s*"', "", text)
    return re.sub(r"[\s()]|///?!?|#", "", text)


def wrap(path, text):
    """The text of a generated file with lines of at most WIDTH columns, where they can be
    broken."""
    language = LANGUAGES.get(path[path.rfind(".") :])
    lines = text.split("\n")
    if not language or all(len(line) <= WIDTH for line in lines):
        return text
    out = []
    state = State(language)
    for line in lines:
        inside = state.depth > 0
        is_text = state.is_text(line)
        if not is_text:
            state.count(line)
        if len(line) <= WIDTH:
            out.append(line)
        else:
            out += document(line) if is_text else broken(line, language, inside)
    result = "\n".join(out)
    if tokens(result) != tokens(text):
        raise ValueError(f"{path}: breaking its lines changed the text")
    return result
