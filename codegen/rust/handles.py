"""Handles of the Rust crate and their regular methods: tt/src/gen/handles.rs, from the prototypes of tt.h
(regular.py)."""
from codegen.model.handles import HANDLES
from codegen.rust import docs
from codegen.rust.common import HEAD
from codegen.rust.regular import Regular

STAYS = {"Module", "Optimizer", "Scheduler"}  # on one thread: calls change what clones alias
STAYS_DOC = (
    "It stays on its thread: clones alias, and calls change it. "
    "[`Transfer`](crate::Transfer) moves it to another one."
)
OWN = {"StateDict"}  # its type is written by hand
NAMED = {"StateDict", "SafeTensors"}  # lists of tensors by name
IMPORTS = """use crate::callback::{drop_user, user, Hook};
use crate::gen::callbacks;
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
        else [f"unsafe impl Send for {name} {{}}", f"unsafe impl Sync for {name} {{}}"]
    )
    out += [
        f"impl Clone for {name} {{",
        f"    fn clone(&self) -> {name} {{",
        f"        unsafe {{ sys::tt_{prefix}_retain(self.0.as_ptr()) }};",
        f"        {name}(self.0)",
        "    }",
        "}",
        f"impl Drop for {name} {{",
        "    #[inline]",
        "    fn drop(&mut self) {",
        f"        unsafe {{ sys::tt_{prefix}_release(self.0.as_ptr()) }}",
        "    }",
        "}",
        f"impl Handle for {name} {{",
        f"    type Raw = sys::{raw};",
        "    #[inline]",
        f"    unsafe fn from_raw(raw: *mut sys::{raw}) -> {name} {{",
        f"        {name}(std::ptr::NonNull::new_unchecked(raw))",
        "    }",
        "    #[inline]",
        f"    fn raw(&self) -> *mut sys::{raw} {{",
        "        self.0.as_ptr()",
        "    }",
        "}",
    ]
    return out


def named(name):
    return [
        f"impl {name} {{",
        "    /// Whether there are no tensors.",
        "    pub fn is_empty(&self) -> bool {",
        "        self.len() == 0",
        "    }",
        "    /// Returns the tensor of a name.",
        "    pub fn tensor(&self, name: &str) -> Result<Tensor> {",
        "        self.get(self.find(name)?)",
        "    }",
        "    /// Returns all names, in order.",
        "    pub fn names(&self) -> Vec<String> {",
        "        (0..self.len()).filter_map(|i| self.name(i)).collect()",
        "    }",
        "}",
    ]


def generate(api, callbacks, functions):
    """functions: what Rust does in its own way (model/functions.py)."""
    out = [HEAD.format("include/tt.h") + IMPORTS]
    for raw, (name, prefix) in HANDLES.items():
        out += handle(raw, name, prefix, api.docs[raw]) if name not in OWN else []
        out += named(name) if name in NAMED else []
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
