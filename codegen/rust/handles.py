"""Handles of the Rust crate and their regular methods: tt/src/gen/handles.rs, from the prototypes
of tt.h (regular.py)."""
from codegen.model.handles import HANDLES
from codegen.rust import docs
from codegen.rust.common import HEAD
from codegen.rust.regular import Regular

STAYS = {"Module", "Optimizer", "Scheduler", "Ddp"}  # on one thread: clones alias what changes
STAYS_DOC = (
    "It stays on its thread: clones alias, and calls change it. "
    "[`Transfer`](crate::Transfer) moves it to another one."
)
OWN = {"StateDict"}  # its type is written by hand
IMPORTS = """use crate::callback::{drop_user, user, Local};
use crate::generated::callbacks;
use crate::prelude::*;
use crate::StateDict;
"""


def handle(raw, name, prefix, doc):
    """The type: clone adds a reference, drop releases one."""
    out = docs.lines(doc) + (docs.lines(STAYS_DOC) if name in STAYS else [])
    out += ["#[repr(transparent)]", f"pub struct {name}(std::ptr::NonNull<sys::{raw}>);"]
    out += (
        []
        if name in STAYS
        else [
            "// SAFETY: tt guards what threads share of it (tt.h, Threads).",
            f"unsafe impl Send for {name} {{}}",
            "// SAFETY: as above.",
            f"unsafe impl Sync for {name} {{}}",
        ]
    )
    out += [
        f"impl Clone for {name} {{",
        f"    fn clone(&self) -> {name} {{",
        "        // SAFETY: the handle is live.",
        f"        unsafe {{ sys::tt_{prefix}_retain(self.0.as_ptr()) }};",
        f"        {name}(self.0)",
        "    }",
        "}",
        f"impl Drop for {name} {{",
        "    #[inline]",
        "    fn drop(&mut self) {",
        "        // SAFETY: the reference is this handle's own.",
        f"        unsafe {{ sys::tt_{prefix}_release(self.0.as_ptr()) }}",
        "    }",
        "}",
        f"impl Handle for {name} {{",
        f"    type Raw = sys::{raw};",
        "    #[inline]",
        f"    unsafe fn from_raw(raw: *mut sys::{raw}) -> {name} {{",
        "        // SAFETY: the caller gives a live handle, which is not null.",
        f"        {name}(unsafe {{ std::ptr::NonNull::new_unchecked(raw) }})",
        "    }",
        "    #[inline]",
        f"    fn raw(&self) -> *mut sys::{raw} {{",
        "        self.0.as_ptr()",
        "    }",
        "}",
    ]
    return out


def generate(api, callbacks, functions):
    """functions: what Rust does in its own way (model/functions.py)."""
    out = [HEAD.format("include/tt.h") + IMPORTS]
    for raw, (name, prefix) in HANDLES.items():
        out += handle(raw, name, prefix, api.docs[raw]) if name not in OWN else []
    methods = {}
    for fn in api.functions:
        if fn.header != "tt.h" or functions.by_hand(fn.name):
            continue
        regular = Regular(fn, callbacks, functions)
        if regular.ok:
            methods.setdefault(regular.place()[0], []).extend(regular.lines())
    for receiver, lines in methods.items():
        out += ["", f"impl {receiver} {{", *lines, "}"] if receiver else ["", *lines]
    return {"bindings/rust/tt/src/gen/handles.rs": "\n".join(out) + "\n"}
