"""The features of the crate tt, each if its crate is installed: among Debian's
(librust-half-dev and the like), or in the folder TT_CRATES, laid out as `cargo vendor` does."""
import os
from pathlib import Path

import pytest

from test_rust import ROOT, cargo

FOLDER = Path(os.environ.get("TT_CRATES", "/usr/share/cargo/registry"))
ALSO = {"serde": ["serde_json"]}  # what the test of a feature uses besides its crate
FEATURES = ["half", "ndarray", "num-complex", "serde"]
MANIFEST = """[package]
name = "features"
version = "0.1.0"
edition = "2021"
[dependencies]
tt = {{ path = "{root}/bindings/rust/tt", features = {features} }}
{crates}
"""
SOURCE = """[source.crates-io]
replace-with = "here"
[source.here]
directory = "{folder}"
"""


def crates_of(feature):
    return [feature, *ALSO.get(feature, [])]


def at_hand(crate):
    """As Debian names its folder (half-1.6.0) or `cargo vendor` (half)."""
    return any(p.name == crate or p.name.rpartition("-")[0] == crate for p in FOLDER.glob("*"))


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """A package with the features whose crates are installed, and the result of its tests."""
    folder = tmp_path_factory.mktemp("features")
    features = [f for f in FEATURES if all(at_hand(c) for c in crates_of(f))]
    for name in ("src", "tests", ".cargo"):
        (folder / name).mkdir()
    (folder / "src/lib.rs").touch()
    for feature in features:
        test = (ROOT / f"tests/rust/features/{feature}.rs").read_text()
        (folder / f"tests/{feature}.rs").write_text(test)
    crates = "\n".join(f'{c} = "*"' for f in features for c in crates_of(f))
    manifest = MANIFEST.format(root=ROOT, features=features, crates=crates)
    (folder / "Cargo.toml").write_text(manifest)
    (folder / ".cargo/config.toml").write_text(SOURCE.format(folder=FOLDER))
    return features, cargo("test", "--tests", folder=folder, cwd=folder, locked=False)


@pytest.mark.parametrize("feature", FEATURES)
def test_feature(feature, tested):
    features, done = tested
    if feature not in features:
        pytest.skip(f"{FOLDER} has no {feature}")
    assert done.returncode == 0 and "test result: ok" in done.stdout, done.stdout + done.stderr
