"""Closures and traits of the Rust crate that tt calls: tt/src/gen/callbacks.rs has a C function per
callback type and per function of a table (tt_function_def, …) of tt.h.

Each hands over what the C callback takes: lists with their lengths as slices, handles as
references. It gives what the callback writes: nothing, a number, a tensor, or lists of tensors that
may be absent. Callbacks with a ctx may fail and panic.
"""
from codegen.model.headers import Function, Named, Pointer
from codegen.rust.common import HEAD
from codegen.model.handles import TENSOR, handle_of, list_of_tensors
from codegen.rust.sys_crate import rust_type

PLAIN = {"int64_t": "i64", "double": "f64"}
TRAITS = {
    "tt_function_def": "Function",
    "tt_op_def": "Operator",
    "tt_backend_def": "Backend",
    "tt_module_def": "CustomModule",
    "tt_allocator": "Allocator",
    "tt_executor": "Executor",
    "tt_logger": "Logger",
}
CODES = {"level": "LogLevel", "kind": "CopyKind"}  # numbers of C -> enums
ONE_THREAD = {"tt_optim_closure", "tt_lr_lambda_fn", "tt_epoch_fn"}  # and those that get a module
SAFE = "// SAFETY: `user` is ours, and what tt lends is valid during the call."
BY_HAND = {"tt_executor.parallel_for", "tt_ddp_hook"}
# functions that a type need not have -> the constant that says whether it has one
OPTIONAL = {"tt_function_def.jvp": "HAS_JVP", "tt_function_def.vmap": "HAS_VMAP"}
DECLINABLE = {"tt_backend_def.compute"}  # NOT_IMPLEMENTED is an answer, no failure


def sys_type(kind):
    return rust_type(kind).replace("tt_", "sys::tt_")


class Callback:
    """`fn` called with what it gets, as `kinds` and `values` say; `returns` is what the Rust side
    gives, `write` takes it to C."""

    def __init__(self, fn):
        self.fn = fn
        self.kinds = []
        self.values = []
        self.returns = "()"
        self.write = ["Ok(())"]
        rest = list(fn.params)
        self.ok = rest[0].name == "user"
        self.ctx = len(rest) > 1 and rest[1].name == "ctx"
        rest = rest[2 if self.ctx else 1 :]
        self.count = "1"
        while rest and self.ok:
            self.read(rest)

    def take(self, kind, value):
        self.kinds.append(kind)
        self.values.append(value)

    def read(self, rest):
        p = rest.pop(0)
        kind = p.type
        if list_of_tensors(kind):
            if rest[0].type == Named("int64_t"):  # else as many as in the list before
                self.count = rest.pop(0).name
            cast = "" if kind.to.const else " as *const *const _"
            self.take("&[Option<Tensor>]", f"tensors({p.name}{cast}, {self.count})")
        elif handle_of(kind):
            self.take(
                f"&{handle_of(kind)}", f"&*({'&' + p.name} as *const _ as *const {handle_of(kind)})"
            )
        elif kind == Pointer(Named("tt_value"), True):
            self.take("&[Value]", f"&Value::list({p.name}, {rest.pop(0).name})")
        elif kind == Pointer(Named("tt_op"), True):
            self.take("&str", f"&text_of(sys::tt_op_name({p.name}))")
        elif kind == Pointer(Named("tt_function"), False):
            self.take("&FunctionCall", f"&FunctionCall({p.name})")
        elif kind == Pointer(Named("char"), True):
            self.take("&str", f"&text_of({p.name})")
        elif kind == Pointer(Pointer(TENSOR, False), False):
            self.tensors_out(p.name, rest)
        elif kind == Pointer(Named("double"), False):
            self.returns = "f64"
            self.write = [f"*{p.name} = given;", "Ok(())"]
        elif kind == Pointer(Pointer(Named("void"), False), False):
            self.returns = "T"
            self.write = [f"*{p.name} = crate::callback::user(given);", "Ok(())"]
        elif kind == Named("int32_t") and p.name in CODES:
            self.take(CODES[p.name], f"{CODES[p.name]}::of_raw({p.name})")
        else:
            self.ok = isinstance(kind, (Named, Pointer))
            self.take(
                PLAIN.get(getattr(kind, "name", ""), sys_type(kind) if self.ok else ""), p.name
            )

    def tensors_out(self, name, rest):
        self.returns = {"replacement": "Option<Tensor>", "loss": "Tensor"}.get(
            name, "Vec<Option<Tensor>>"
        )
        given = {"replacement": "vec![given]", "loss": "vec![Some(given)]"}.get(name, "given")
        if rest:  # cap or n_outs, and perhaps the output of the count
            self.count = rest.pop(0).name
        self.write = [f"*{rest.pop(0).name} = given.len() as i64;"] if rest else []
        self.write.append(f"give({given}, {name}, {self.count})")

    @property
    def of_module(self):
        """Does it get a module, which belongs to a thread?"""
        return "&Module" in self.kinds

    @property
    def one_thread(self):
        """Returns whether one thread only calls it, so that it may change its captures."""
        return self.of_module or self.fn.name in ONE_THREAD

    @property
    def bound(self):
        fn = "FnMut" if self.one_thread else "Fn"
        return f"{fn}({', '.join(self.kinds)}) -> Result<{self.returns}>"

    def lines(self, bound, called, table=""):
        ps = ", ".join(f"{p.name}: {sys_type(p.type)}" for p in self.fn.params)
        returns = sys_type(self.fn.returns)
        out = [
            f"pub(crate) unsafe extern \"C\" fn {self.fn.name}<T: {bound}>({ps}){'' if returns == 'c_void' else ' -> ' + returns} {{"
        ]
        call = called.format(", ".join(self.values))
        out.append(f"    {SAFE}")
        if not self.ctx and returns == "c_void":  # nobody to tell of a panic
            return out + [
                f"    crate::context::in_destructor(|| quietly(|| unsafe {{ {call} }}));",
                "}",
            ]
        if not self.ctx:
            return out + [f"    unsafe {{ {call} }}", "}"]
        guard = "declinable" if f"{table}.{self.fn.name}" in DECLINABLE else "guarded"
        body = [f"{call}?;"] if self.returns == "()" else [f"let given = {call}?;"]
        return (
            out
            + [f"    {guard}(ctx, || unsafe {{"]
            + [f"        {line}" for line in body + self.write]
            + ["    })", "}"]
        )


def callbacks(api):
    found = {c.fn.name: c for c in map(Callback, api.callbacks) if c.ok and c.ctx}
    return {name: c for name, c in found.items() if name not in BY_HAND}


def table(s):
    """The functions of a table, and how one is filled."""
    trait = TRAITS[s.name]
    out = []
    fields = []
    params = []
    for f in s.fields:
        if f.name == "struct_size":
            fields.append(f"struct_size: std::mem::size_of::<sys::{s.name}>()")
        elif f.name == "drop":
            fields.append("drop: Some(drop_user::<T>)")
        elif isinstance(f.type, Function):
            if f"{s.name}.{f.name}" not in BY_HAND:
                c = Callback(f.type)
                receiver = "closure::<T>(user)" if c.ctx else "(*(user as *const T))"
                out += c.lines(trait, f"{receiver}.{f.name}({{}})", s.name)
            if f"{s.name}.{f.name}" in OPTIONAL:
                has = OPTIONAL[f"{s.name}.{f.name}"]
                fields.append(f"{f.name}: if T::{has} {{ Some({f.name}::<T>) }} else {{ None }}")
                continue
            fields.append(
                f"{f.name}: Some({'crate::host::' if f'{s.name}.{f.name}' in BY_HAND else ''}{f.name}::<T>)"
            )
        else:
            params.append(f"{f.name}: {sys_type(f.type)}")
            fields.append(f.name)
    inner = out + [
        f"pub(crate) fn table<T: {trait}>({', '.join(params)}) -> sys::{s.name} {{",
        f"    sys::{s.name} {{ {', '.join(fields)} }}",
        "}",
    ]
    return (
        [f"pub(crate) mod {s.name} {{", "    use super::*;"]
        + ["    " + line for line in inner]
        + ["}", ""]
    )


def generate(api):
    traits = ", ".join(
        sorted(set(TRAITS.values()) | set(CODES.values()) | {"FunctionCall", "Value"})
    )
    out = [
        HEAD.format("include/tt.h")
        + f"use crate::callback::*;\nuse crate::prelude::*;\nuse crate::{{{traits}}};\nuse std::os::raw::{{c_char, c_void}};\n"
    ]
    for c in callbacks(api).values():
        local = "closure::<Local<T>>(user).run(|f| f({}))"
        out += c.lines(c.bound, local if c.one_thread else "closure::<T>(user)({})") + [""]
    for s in api.structs:
        if s.name in TRAITS:
            out += table(s)
    return {"bindings/rust/tt/src/gen/callbacks.rs": "\n".join(out)}
