"""What rustc, clippy and rustdoc would say of the sources, where none is installed: each unsafe
block says why it is sound, each documentation begins with a sentence, names have their case."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["bindings/rust/tt/src", "bindings/rust/tt-sys/src", "bindings/rust/examples"]
UNSAFE = re.compile(r"\bunsafe\s*(?:\{|impl\b)")
SENTENCE = re.compile(
    r"(?:[`\[]*[A-Z0-9`]|\().*[.:…]"
)  # or the shape of an argument, in parentheses
DOC = re.compile(r"^\s*//[/!] ?(.*)$")


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            yield path.relative_to(ROOT), path.read_text().splitlines()


def explained(lines, i):
    """Whether a SAFETY comment precedes line i, in its statement or directly above it."""
    while i > 0:
        i -= 1
        line = lines[i].strip()
        if line.startswith("// SAFETY:"):
            return True
        if not line.startswith("//") and (not line or line[-1] in ";}"):
            return False
    return False


def test_unsafe_blocks_say_why_they_are_sound():
    found, silent = 0, []
    for path, lines in sources():
        for i, line in enumerate(lines):
            if UNSAFE.search(line.split("//")[0]):
                found += 1
                if not explained(lines, i):
                    silent.append(f"{path}:{i + 1}: {line.strip()}")
    assert found > 1000 and not silent, "\n".join(silent)


def summaries(lines):
    """(line number, text) of the first paragraph of each doc comment, without code."""
    comments, block = [], []
    for i, line in enumerate([*lines, ""]):
        part = DOC.match(line)
        if part:
            block.append((i + 1, part.group(1).strip()))
        elif block:
            comments.append(block)
            block = []
    for block in comments:
        ends = [k for k, (_, text) in enumerate(block) if not text or text.startswith("```")]
        paragraph = block[: ends[0]] if ends else block
        if paragraph:
            yield paragraph[0][0], " ".join(text for _, text in paragraph)


def test_documentation_begins_with_a_sentence():
    wrong = []
    for path, lines in sources():
        for number, text in summaries(lines):
            if not text.startswith("# ") and not SENTENCE.fullmatch(text):
                wrong.append(f"{path}:{number}: {text}")
    assert not wrong, "\n".join(wrong)


def test_variants_of_generated_enums_are_in_camel_case():
    found, wrong = 0, []
    for path, lines in sources():
        if "gen" in path.parts and "tt-sys" not in path.parts:
            for number, line in enumerate(lines, 1):
                variant = re.fullmatch(r"    (\w+) = \d+,", line)
                if variant:
                    found += 1
                    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", variant.group(1)):
                        wrong.append(f"{path}:{number}: {line.strip()}")
    assert found > 50 and not wrong, "\n".join(wrong)
