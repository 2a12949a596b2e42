"""The blocks of docs/rust.md run in order as one program, and print what the page says."""
import re

from test_rust import BUILD, ROOT, cargo

BLOCK = re.compile(r"^```rust\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)
MANIFEST = """[package]
name = "page"
version = "0.1.0"
edition = "2021"
[dependencies]
tt = {{ path = "{root}/bindings/rust/tt" }}
"""
MARK = "---- next block"


def test_the_page_prints_what_it_says(tmp_path):
    blocks = BLOCK.findall((ROOT / "docs/rust.md").read_text())
    assert len(blocks) >= 10
    body = "".join(f'{source}println!("{MARK}");\n' for source, _ in blocks)
    (tmp_path / "src").mkdir()
    # not RUSTFLAGS, with which cargo would compile the crates once more
    main = f"#![deny(warnings)]\nfn main() -> tt::Result<()> {{\n{body}Ok(())\n}}\n"
    (tmp_path / "src/main.rs").write_text(main)
    (tmp_path / "Cargo.toml").write_text(MANIFEST.format(root=ROOT))
    done = cargo("run", folder=tmp_path, locked=False, TT_LIB_DIR=BUILD)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(MARK + "\n")
    assert printed[: len(blocks)] == [expected for _, expected in blocks]


def test_its_lines_are_not_long():
    """Of code, that is: tables may be wide."""
    for source, _ in BLOCK.findall((ROOT / "docs/rust.md").read_text()):
        assert max(len(line) for line in source.splitlines()) <= 100
