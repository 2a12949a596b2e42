"""A file includes its own directory or lower levels only; kernels see base, plan, POD parts of core
and functors, and hide no constant of a header that they include."""
import functools
import re

from common import ROOT, per_file, sources

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
NAMESPACE = re.compile(r"^(?:namespace ([\w:]+) \{|\}  // namespace (\w))", re.M)
CONSTANT = re.compile(r"^(?:inline |static )*constexpr [\w:<>* ]+?\b(k[A-Z]\w*) ?[\[={]", re.M)
ENUM = re.compile(r"^enum\b(?! class)[^{;]*\{([^}]*)\}", re.M)
LEVEL = {
    "base": 0,
    "core": 1,
    "dispatch": 2,
    "plan": 2,
    "cpu": 2.5,
    "ops": 3,
    "autograd": 4,
    "modes": 5,
    "ext": 5,
    "graph": 5,
    "nn": 6,
    "optim": 6,
    "data": 6,
    "dist": 6,
    "io": 6,
    "capi": 7,
}
PUBLIC = {"tt_types.h": 0, "tt_ops.h": 7, "tt_nn.h": 7, "tt_optim.h": 7, "tt.h": 7}
POD_CORE = {
    "core/kernel.h",
    "core/backend.h",
    "core/half.h",
}  # the parts of core that kernels may see
TARGET = {
    "kernels/cpu/simd/isa.h",
    "kernels/cpu/math/math.h",
    "kernels/cpu/math/special.h",
    "kernels/cpu/math/wide.h",
    "kernels/cuda/math.h",
    "kernels/cuda/warp.h",
}  # what a functor takes from the target that it is compiled for


def home(path):
    """The directory of src that a file belongs to: the first part of its path."""
    return path.split("/", 1)[0]


def allowed(here, target):
    if target in PUBLIC:
        return LEVEL[here] >= PUBLIC[target]
    there = home(target)
    return there == here or LEVEL[there] < LEVEL[here]


def allowed_in_kernel(folder, target):
    if target == "tt_types.h" or "/" not in target or target in POD_CORE:
        return True
    parts = target.split("/")
    if parts[0] == "kernels":
        return parts[1] in (folder, "functors") or (folder == "functors" and target in TARGET)
    return parts[0] in ("base", "plan")


def includes(path):
    return INCLUDE.findall(path.read_text())


def constants(text):
    """The constants of a text, with the named namespaces around them."""
    text = re.sub(r"//(?! namespace).*", "", text)
    found, spaces, end = set(), [], 0
    for mark in [*NAMESPACE.finditer(text), None]:
        part = text[end : mark.start() if mark else None]
        names = CONSTANT.findall(part)
        for values in ENUM.findall(part):
            names += re.findall(r"(?:^|,)\s*(k[A-Z]\w*)", values)
        found |= {"::".join([*spaces, name]) for name in names}
        if mark:
            end = mark.end()
            if mark[1]:
                spaces.append(mark[1])
            elif mark[2]:
                spaces.pop()
    return found


@functools.cache
def constants_of(path):
    return constants(path.read_text())


@functools.cache
def headers_of(path):
    """The files that a file includes, and those that they include."""
    found = set()
    for name in includes(path):
        places = [folder / name for folder in (ROOT, ROOT / "src", path.parent)]
        header = next((place for place in places if place.exists()), None)
        if header:
            found |= {header} | headers_of(header)
    return found - {path}


def test_constants_are_not_hidden():
    hidden = [
        (str(path.relative_to(ROOT)), str(header.relative_to(ROOT)), both)
        for path in sources("kernels")
        for header in headers_of(path)
        if (both := constants_of(path) & constants_of(header))
    ]
    assert not hidden


def test_a_hidden_constant_is_noticed():
    header = "namespace TT_NS {\nenum Path : int { kRows = 0 };\n}  // namespace TT_NS\n"
    file = "namespace TT_NS {\nnamespace {\nconstexpr int kRows = 4;\n}  // namespace\n"
    assert constants(header) == constants(file) == {"TT_NS::kRows"}


@per_file(sources("src"))
def test_src(path):
    here = home(str(path.relative_to(ROOT / "src")))
    bad = [
        i
        for i in includes(path)
        if not allowed(here, i if "/" in i or i in PUBLIC else f"{here}/{i}")
    ]
    assert not bad, f"level {LEVEL[here]} ({here}) includes {bad}"


@per_file(sources("kernels"))
def test_kernels(path):
    bad = [
        i
        for i in includes(path)
        if not allowed_in_kernel(path.relative_to(ROOT / "kernels").parts[0], i)
    ]
    assert not bad, f"a kernel includes {bad}"


@per_file(sources("examples", "bench"))
def test_hosts_see_tt_h_only(path):
    allowed = ("tt.h", "tt.hpp") if path.parent.name == "cpp" else ("tt.h",)
    assert [i for i in includes(path) if i.startswith("tt") and i not in allowed] == []


def test_the_rules_can_fail():
    assert (
        not allowed("core", "ops/impl.h")
        and not allowed("ops", "autograd/gen/x.h")
        and not allowed("plan", "dispatch/key.h")
    )
    assert not allowed_in_kernel("cpu", "core/tensor.h") and not allowed_in_kernel(
        "functors", "kernels/cpu/simd/vec.h"
    )
    assert (
        not allowed("modes", "tt.h")
        and allowed("capi", "tt.h")
        and allowed("autograd", "ops/gen/ops.h")
    )
