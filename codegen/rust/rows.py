"""What of the Rust crate repeats itself: tt/src/gen/rows.rs has the rows that tt.h's lists are made
of and the builders of tt_checkpoint and tt_runtime_opts."""
from codegen.model.headers import Array, Named, Pointer
from codegen.rust import docs
from codegen.rust.common import HEAD
from codegen.rust.callbacks import TRAITS
from codegen.model.handles import HANDLES
from codegen.rust.sys_crate import rust_type

ROWS = {
    "tt_live_row": "Live",
    "tt_profile_row": "ProfileRow",
    "tt_profile_event": "ProfileEvent",
    "tt_profile_sum": "ProfileSum",
}
FIELDS = {
    "int64_t": ("i64", "r.{0}"),
    "int32_t": ("bool", "r.{0} != 0"),
    "tt_dtype": ("Option<DType>", "DType::from_raw(r.{0})"),
    "tt_device": (
        "Option<Device>",
        "DeviceType::from_raw(r.{0}.type_).map(|_| Device::of_raw(r.{0}))",
    ),
}
FIELD_DOCS = {  # where the header's text is about C
    ("tt_profile_row", "op"): "Operator.",
    ("tt_profile_row", "calls"): "Number of calls.",
    ("tt_profile_event", "name"): "Name.",
    ("tt_profile_event", "kind"): "Kind of the work.",
    ("tt_profile_event", "shapes"): (
        "For each argument of an operator, its number of dimensions and their sizes; 0 for an "
        "argument that is not a tensor."
    ),
    ("tt_profile_sum", "name"): "Name.",
    ("tt_profile_sum", "kind"): "Kind of the events.",
    ("tt_profile_sum", "calls"): "Number of events.",
    ("tt_live_row", "kind"): 'Kind: "tensor", "node", "module", "optimizer", "generator", …',
    ("tt_live_row", "dtype"): "Dtype, of tensors.",
    ("tt_live_row", "device"): "Device, of tensors.",
    ("tt_live_row", "requires_grad"): "Whether they require a gradient; of tensors.",
    ("tt_live_row", "shape"): "Shape, of tensors: at most the first 8 sizes.",
    ("tt_live_row", "count"): "Number of objects.",
    ("tt_live_row", "bytes"): (
        "Bytes of their elements or of themselves; memory that several tensors share counts for "
        "each of them."
    ),
    (
        "tt_runtime_opts",
        "isa",
    ): "Instruction set, at most the best of this CPU, which is the default.",
    ("tt_runtime_opts", "queue_drops"): (
        "Whether drops and deleters wait for a poll of the runtime, for applications that cannot "
        "be called from every thread."
    ),
}
EVENT_KINDS = {("tt_profile_event", "kind"), ("tt_profile_sum", "kind")}
OPTION_TYPES = {  # option of a runtime -> its type and its value in C
    "isa": ("crate::Isa", "value as i32"),
    "queue_drops": ("bool", "value as i32"),
}
PUBLIC = {
    "nn": "Layers: constructors of modules.",
    "optim": "Optimizers.",
    "lr": "Schedules of learning rates.",
    "opts": "Options of operators, as builders.",
}


def row(s):
    name = ROWS[s.name]
    fields = []
    values = []
    for f in s.fields:
        if f.name in ("ndim", "pad", "n_shapes"):
            continue
        if isinstance(f.type, Array):
            kind = "Vec<i64>"
            value = f"r.{f.name}[..r.ndim.clamp(0, 8) as usize].to_vec()"
        elif f.type == Pointer(Named("int64_t"), True):
            kind = "Vec<i64>"
            value = f"numbers(r.{f.name}, r.n_{f.name})"
        elif (s.name, f.name) in EVENT_KINDS:
            kind = "crate::EventKind"
            value = "crate::EventKind::from_raw(r.{0})"
        elif f.type == Named("double"):
            kind = "f64"
            value = "r.{0}"
        elif f.type == Pointer(Named("char"), True):
            kind = "String"
            value = f"text_of(r.{f.name}).into_owned()"
        else:
            kind, value = FIELDS[f.type.name]
        text = FIELD_DOCS.get((s.name, f.name), f.doc)
        doc = docs.lines(docs.sentence(docs.escaped(text)), "    ") if text else []
        fields += [*doc, f"    pub {f.name}: {kind},"]
        values.append(f"{f.name}: " + value.replace("{0}", f.name))
    return (
        [
            *docs.lines(docs.sentence(s.doc)),
            "#[derive(Clone, Debug, PartialEq)]",
            "#[allow(missing_docs)]",
            f"pub struct {name} {{",
        ]
        + fields
        + [
            "}",
            f"impl {name} {{",
            "    /// # Safety",
            "    /// The strings of the row are valid.",
            f"    pub(crate) unsafe fn of_raw(r: sys::{s.name}) -> {name} {{",
            "        // SAFETY: guaranteed by the caller.",
            f"        unsafe {{ {name} {{ {', '.join(values)} }} }}",
            "    }",
            "}",
            "",
        ]
    )


def checkpoint(s):
    out = [
        "impl<'a> crate::Checkpoint<'a> {",
        "    /// Returns a checkpoint without parts.",
        "    #[allow(clippy::new_without_default)]",
        "    pub fn new() -> Self {",
        f"        Self(sys::{s.name} {{ struct_size: std::mem::size_of::<sys::{s.name}>(), ..Default::default() }}, PhantomData)",
        "    }",
    ]
    for f in s.fields[1:]:
        if f.name == "extra":  # which a load changes: by hand
            continue
        out += [
            f"    /// Adds this {f.name}: {f.doc}.",
            "    #[must_use]",
            f"    pub fn {f.name}(mut self, part: &'a {HANDLES[f.type.to.name][0]}) -> Self {{",
            f"        self.0.{f.name} = part.raw();",
            "        self",
            "    }",
        ]
    return out + ["}", ""]


RUNTIME_DOC = (
    "Options of a [`Runtime`](crate::Runtime). Hooks are static, since the last object of a runtime "
    "may be dropped at any time."
)


def runtime_opts(s):
    hooks = [f for f in s.fields if isinstance(f.type, Pointer)]
    numbers = [f for f in s.fields[1:] if f not in hooks and f.name != "pad"]
    out = [
        *docs.lines(RUNTIME_DOC),
        "#[derive(Clone, Copy, Debug, Default)]",
        "pub struct RuntimeOpts {",
        f"    raw: sys::{s.name},",
    ]
    out += [f"    {f.name}: Option<sys::{f.type.to.name}>," for f in hooks]
    out += [
        "}",
        "impl RuntimeOpts {",
        "    /// Returns all options at their defaults.",
        "    pub fn new() -> RuntimeOpts {",
        f"        RuntimeOpts {{ raw: sys::{s.name} {{ struct_size: std::mem::size_of::<sys::{s.name}>(), ..Default::default() }}, ..Default::default() }}",
        "    }",
    ]
    for f in numbers:
        kind, value = OPTION_TYPES.get(f.name, (rust_type(f.type), "value"))
        out += [
            *docs.lines(docs.sentence(FIELD_DOCS.get((s.name, f.name), f.doc)), "    "),
            "    #[must_use]",
            f"    pub fn {f.name}(mut self, value: {kind}) -> RuntimeOpts {{",
            f"        self.raw.{f.name} = {value};",
            "        self",
            "    }",
        ]
    for f in hooks:
        out += [
            *docs.lines(docs.sentence(f.doc), "    "),
            "    #[must_use]",
            f"    pub fn {f.name}<T: crate::{TRAITS[f.type.to.name]} + 'static>(mut self, hook: &'static T) -> RuntimeOpts {{",
            f"        self.{f.name} = Some(super::callbacks::{f.type.to.name}::table::<T>(hook as *const T as *mut _));",
            "        self",
            "    }",
        ]
    out += [
        "    /// Calls f with the C struct, whose hooks tt copies.",
        f"    pub(crate) fn with_raw<R>(mut self, f: impl FnOnce(&sys::{s.name}) -> R) -> R {{",
    ]
    out += [
        f"        self.raw.{f.name} = self.{f.name}.as_ref().map_or(std::ptr::null(), |h| h);"
        for f in hooks
    ]
    return out + ["        f(&self.raw)", "    }", "}", ""]


def generate(api):
    out = [HEAD.format("include/tt.h") + "use crate::prelude::*;\n"]
    for s in api.structs:
        if s.name in ROWS:
            out += row(s)
        elif s.name == "tt_runtime_opts":
            out += runtime_opts(s)
        elif s.name == "tt_checkpoint":
            out += checkpoint(s)
    folder = "bindings/rust/tt/src/gen"
    modules = [HEAD.format("codegen/rust/rows.py")] + [
        f"mod {m};" for m in ("handles", "operators", "ops", "rows", "types")
    ]
    modules += ["pub(crate) mod callbacks;"] + [
        f"/// {doc}\npub mod {m};" for m, doc in PUBLIC.items()
    ]
    modules += ["pub use self::{handles::*, ops::*, rows::*, types::*};", ""]
    return {f"{folder}/mod.rs": "\n".join(modules), f"{folder}/rows.rs": "\n".join(out)}
