"""The names that docs/bindings.md gives for Rust exist: its paths are links that rustdoc resolves,
its calls compile."""
import re
import tomllib

from test_rust import BUILD, ROOT, cargo

MANIFEST = """[package]
name = "names"
version = "0.1.0"
edition = "2021"
[dependencies]
tt = {{ path = "{root}/bindings/rust/tt" }}
"""
# What the calls use besides the crate's names.
SOURCE = """#![deny(rustdoc::broken_intra_doc_links)]
{links}
#[allow(unused)]
pub fn calls(
    x: Tensor, n: Tensor, mask: Tensor, params: Vec<Tensor>, opts: opts::GeluOpts, m: Module,
    opt: Optimizer, s: Scheduler, state: StateDict, device: Device, cancel: Cancel, path: &str,
    name: &str, options: ProfileOptions, stream: Stream,
) -> Result<()> {{
    let f = || ();
    let see = |_: &str, _: &str, _: i32| ();
    {calls}
    Ok(())
}}
#[allow(unused)]
use tt::*;
"""
PATH = re.compile(r"[\w:]+!?")


def spans():
    """The code of the cells, but for lists of symbols."""
    areas = tomllib.loads((ROOT / "bindings/areas.toml").read_text())["area"]
    names = tomllib.loads((ROOT / "bindings/pytorch_names.toml").read_text())["row"]
    texts = [row.get("rust", "") for row in areas + names]
    found = [span for text in texts for span in re.findall(r"`([^`]+)`", text)]
    return [s for s in found if re.search(r"\w", s)]


def test_the_names_of_the_page(tmp_path):
    paths = [s for s in spans() if PATH.fullmatch(s)]
    calls = [s for s in spans() if not PATH.fullmatch(s)]
    assert len(paths) > 25 and len(calls) > 25
    links = "\n".join(f"//! [`{p}`](tt::{p})" for p in paths)
    body = "\n    ".join("{ let x = x.clone(); " + f"let _ = {call}; }}" for call in calls)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text(SOURCE.format(links=links, calls=body))
    (tmp_path / "Cargo.toml").write_text(MANIFEST.format(root=ROOT))
    for command in ("check", "doc"):
        options = ["--no-deps"] if command == "doc" else []
        done = cargo(command, *options, folder=tmp_path, locked=False, TT_LIB_DIR=BUILD)
        assert done.returncode == 0, done.stderr
