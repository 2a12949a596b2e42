"""How a program of each language is run over the library under test."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])
LANGUAGES = os.environ["TT_LANGUAGES"].split(",")
FOLDERS = {
    "c": "c",
    "py": "python",
    "rs": "rust",
    "jl": "julia",
}  # suffix of a language's sources -> the language


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cargo(command, *args, manifest=ROOT / "bindings/rust/Cargo.toml", **environment):
    return run(
        os.environ["TT_CARGO"],
        command,
        "--quiet",
        "--offline",
        "--manifest-path",
        manifest,
        *args,
        env=dict(os.environ, **{k: str(v) for k, v in environment.items()}),
    )


def julia(*args):
    return run(os.environ["TT_JULIA"], "-O0", "--startup-file=no", *args)


def example(language, name, *args):
    """Runs the example of that name."""
    source = ROOT / "examples" / language / name
    if language == "c":
        return run(BUILD / "examples" / name, *args)
    if language == "rust":
        return cargo("run", "--example", name, "--", *args)
    return (
        julia(source.with_suffix(".jl"), *args)
        if language == "julia"
        else run(sys.executable, source.with_suffix(".py"), *args)
    )
