"""Functions of tt.h in Rust: tt_module_child(ctx, module, i, out) becomes Module::child(i), a
function without a handle in front a function. A function is regular if each argument has one
obvious Rust form. What Rust does in its own way: bindings/rust/functions.toml."""
from codegen.model.handles import HANDLES, TEXT, handle_of, list_of_tensors
from codegen.model.headers import Named, Pointer
from codegen.rust import docs
from codegen.rust.common import snake, unsafe_block, with_then

PLAIN = {"int64_t": "i64", "uint64_t": "u64", "double": "f64", "uint32_t": "u32"}
NULL = "std::ptr::null()"
# what ends a parameter list: (helper, Rust type, C arguments)
LISTS = {Named("char"): ("call_text", "String"), Named("double"): ("call_array", "Vec<f64>")}


class Regular:
    """One function and its Rust form; `ok` is false if it has none by rule."""

    def __init__(self, fn, callbacks, functions):
        """callbacks: C name -> Callback; functions: what Rust does in its own way."""
        self.fn = fn
        self.callbacks = callbacks
        self.functions = functions
        self.ok = True
        self.receiver = None
        self.params = []
        self.before = []
        self.args = []
        self.optional = {}  # parameters that may be None -> their names in Rust
        self.opts = None
        self.generic = ""
        self.helper = None
        self.returns = "()"
        self.outs = []
        self.status = fn.returns == Named("tt_status")
        rest = self.take_ctx(list(fn.params))
        if rest and handle_of(rest[0].type):
            self.receiver = handle_of(rest.pop(0).type)
            self.args.append("self.raw()")
        if self.status:
            self.helper = "call"
        else:
            self.returns = self.fact()
        self.read_outs(rest)
        while rest and self.ok:
            self.read(rest)

    @property
    def unsafe(self):
        return self.functions.get(self.fn.name, "unsafe")

    def take_ctx(self, rest):
        first = rest[0].type if rest else None
        self.ctx = isinstance(first, Pointer) and first.to == Named("tt_ctx")
        return rest[1:] if self.ctx else rest

    # ---- results ----

    def fact(self):
        """The Rust type of what a function returns that cannot fail."""
        kind = self.fn.returns
        if kind == Named("void"):
            return "()"
        if kind == Named("int32_t"):
            return "i32" if "returned" in self.fn.doc.numbers else "bool"
        if kind == TEXT:
            return "Option<String>" if "returned" in self.fn.doc.null else "String"
        self.ok &= isinstance(kind, Named) and kind.name in PLAIN
        return PLAIN.get(getattr(kind, "name", ""), "")

    def read_outs(self, rest):
        """Takes the outputs off the end of rest."""
        names = [p.name for p in rest]
        if names[-2:] in (["cap", "n"], ["cap", "n_outs"]):
            item = rest[-3].type.to
            self.helper, self.returns = LISTS.get(item, ("call_list", "Vec<Tensor>"))
            self.outs = ["items", "cap", "n"]
            del rest[-3:]
        elif names[-3:-1] == ["name", "cap"]:
            item = rest[-1].type.to
            self.helper = "call_named"
            self.returns = f"(String, {handle_of(item) or PLAIN[item.name]})"
            self.outs = ["name", "cap", "out"]
            del rest[-3:]
        elif rest and isinstance(rest[-1].type, Pointer) and not rest[-1].type.const:
            self.read_out(rest)

    def read_out(self, rest):
        last = rest[-1]
        kind = last.type.to
        if handle_of(kind) and last.name in self.fn.doc.null:
            self.helper = "call_opt"
            self.returns = f"Option<{handle_of(kind)}>"
        elif handle_of(kind):
            self.helper = "call1"
            self.returns = handle_of(kind)
        elif isinstance(kind, Named) and kind.name in PLAIN:
            self.helper = "call_value"
            self.returns = PLAIN[kind.name]
        else:
            return
        self.outs = ["out"]
        rest.pop()

    # ---- parameters ----

    def read(self, rest):
        p = rest.pop(0)
        kind = p.type
        pointed = kind.to if isinstance(kind, Pointer) else None
        is_list = rest and rest[0].name in ("n", f"n_{p.name}")
        optional = p.name in self.fn.doc.null
        if [q.name for q in rest[:2]] == ["user", "drop"] and kind.name in self.callbacks:
            del rest[:2]
            self.closure(self.callbacks[kind.name])
            return
        if optional:
            self.optional[p.name] = snake(p.name)
        if isinstance(kind, Named):
            self.scalar(p, optional)
        elif kind == TEXT:
            self.text(snake(p.name), optional)
        elif handle_of(kind):
            self.handle(snake(p.name), handle_of(kind), optional)
        elif is_list and (list_of_tensors(kind) or kind == Pointer(Named("tt_index"), True)):
            rest.pop(0)
            self.list(snake(p.name), kind)
        elif kind == Pointer(Named("tt_device"), True) and optional:
            self.device(snake(p.name))
        elif isinstance(pointed, Named) and pointed.name.endswith("_opts"):
            self.options(pointed.name)
        else:
            self.ok = False

    def scalar(self, p, optional):
        n = snake(p.name)
        kind = p.type.name
        if kind == "tt_dtype":
            self.params.append(f"{n}: Option<DType>" if optional else f"{n}: DType")
            self.args.append(f"{n}.map_or(0, |d| d as i32)" if optional else f"{n} as i32")
        elif kind == "int32_t" and p.name in self.fn.doc.numbers:
            self.params.append(f"{n}: i32")
            self.args.append(n)
        elif kind == "int32_t":
            self.params.append(f"{n}: bool")
            self.args.append(f"{n} as i32")
        else:
            self.ok &= kind in PLAIN
            self.params.append(f"{n}: {PLAIN.get(kind)}")
            self.args.append(n)

    def text(self, n, optional):
        if n == "path" and self.receiver != "Module":  # of a file
            self.file(n, optional)
        elif optional:
            self.params.append(f"{n}: Option<&str>")
            self.before.append(f"let {n} = {n}.map(c_string).transpose()?;")
            self.args.append(f"{n}.as_ref().map_or({NULL}, |s| s.as_ptr())")
        else:
            self.params.append(f"{n}: &str")
            self.before.append(f"let {n} = c_string({n})?;")
            self.args.append(f"{n}.as_ptr()")

    def file(self, n, optional):
        if optional:
            self.params.append(f"{n}: Option<&std::path::Path>")
            self.before.append(f"let {n} = {n}.map(c_path).transpose()?;")
            self.args.append(f"{n}.as_ref().map_or({NULL}, |s| s.as_ptr())")
        else:
            self.params.append(f"{n}: impl AsRef<std::path::Path>")
            self.before.append(f"let {n} = c_path({n})?;")
            self.args.append(f"{n}.as_ptr()")

    def handle(self, n, kind, optional):
        self.params.append(f"{n}: Option<&{kind}>" if optional else f"{n}: &{kind}")
        self.args.append(f"opt_raw({n})" if optional else f"{n}.raw()")

    def list(self, n, kind):
        tensors = list_of_tensors(kind)
        reads = tensors and kind.to.const
        cast = " as *const *const _" if reads else ""
        if reads:
            listed = "&[impl Borrow<Tensor>]"
            made = "raw_list"
        elif tensors:
            listed = "impl IntoIterator<Item = impl AsRef<Tensor>>"
            made = "raw_items"
        else:
            listed = "&[Index]"
            made = "index_list"
        self.params.append(f"{n}: {listed}")
        self.before.append(f"let {n} = {made}({n});")
        self.args.append(f"{n}.as_ptr(){cast}, {n}.len() as i64")

    def device(self, n):
        self.params.append(f"{n}: Option<Device>")
        self.before.append(f"let {n} = {n}.map(Device::raw);")
        self.args.append(f"{n}.as_ref().map_or({NULL}, |d| d)")

    def options(self, struct):
        words = struct.removeprefix("tt_").removeprefix("nn_").split("_")
        self.opts = "".join(word.capitalize() for word in words)
        self.args.append("OPTS")

    def closure(self, callback):
        """What C calls. What is called on one thread only may change what it captures. A graph may
        run a module's hook on any thread, so that its thread is checked."""
        kept = "F"
        made = "f"
        bounds = " + Send + Sync + 'static"
        if callback.one_thread:
            checked = callback.of_module and "backward" in self.fn.name
            kept = "Local<F>"
            made = f"Local::new(f, {str(checked).lower()})"
            bounds = " + Send + 'static"
        if self.functions.get(self.fn.name, "local"):
            bounds = ""
        self.generic = f"<F: {callback.bound}{bounds}>"
        self.params.append("f: F")
        call = f"Some(callbacks::{callback.fn.name}::<F>)"
        self.args.append(f"{call}, user({made}), Some(drop_user::<{kept}>)")

    # ---- text ----

    def place(self):
        """(Rust type that it belongs to or None, name there)"""
        given = self.functions.get(self.fn.name, "name")
        bare = self.fn.name.removeprefix("tt_")
        for kind, prefix in HANDLES.values():
            if bare.startswith(prefix + "_") and kind in (self.receiver, self.returns):
                return kind, given or bare[len(prefix) + 1 :]
        return self.receiver, given or bare

    def lines(self):
        name = self.place()[1]
        lines = self.form(name, NULL)
        if self.opts:
            self.params.append(f"opts: {self.opts}")
            named = f"{name[:-1]}_with_" if name.endswith("_") else f"{name}_with"
            lines += self.form(named, "&opts.0")
        return lines

    def doc(self, indent):
        text = docs.escaped(docs.described(self.fn.doc, self.optional))
        also = self.functions.get(self.fn.name, "also")
        lines = docs.lines(f"{text} {also}" if also else text, indent)
        if self.unsafe:
            lines += [f"{indent}///", f"{indent}/// # Safety"] + docs.lines(self.unsafe, indent)
        return lines

    def form(self, name, opts):
        indent = "    " if self.place()[0] else ""
        args = [opts if arg == "OPTS" else arg for arg in self.args]
        params = (["&self"] if self.receiver else []) + self.params
        result = f"Result<{self.returns}>" if self.status else self.returns
        arrow = "" if result == "()" else f" -> {result}"
        unsafe = "unsafe " if self.unsafe else ""
        head = f"pub {unsafe}fn {name}{self.generic}({', '.join(params)}){arrow} {{"
        body = [*self.before, *self.body(args)]
        lines = [head, *(f"    {line}" for line in body), "}"]
        return self.doc(indent) + [indent + line for line in lines]

    def body(self, args):
        if not self.status:
            return unsafe_block(self.read_fact(args))
        call = f"sys::{self.fn.name}({', '.join(['c'] * self.ctx + args + self.outs)})"
        first = "0.0, " if self.helper == "call_array" else ""
        text = f"{self.helper}({first}|{', '.join(['c', *self.outs])}| {call})"
        if self.helper == "call_named" and handle_of(self.fn.params[-1].type.to):
            text = text.replace("out)", "out as *mut *mut _)")
            text += ".map(|(name, out): (_, usize)| (name, Tensor::from_raw(out as *mut _)))"
        then = self.functions.get(self.fn.name, "then")
        return with_then(unsafe_block(text, bool(self.unsafe)), then)

    def read_fact(self, args):
        given = ["crate::context::ctx()"] * self.ctx + args
        call = f"sys::{self.fn.name}({', '.join(given)})"
        if self.returns == "String":
            return f"text_of({call}).into_owned()"
        if self.returns == "Option<String>":
            return f"opt_text({call})"
        return f"{call} != 0" if self.returns == "bool" else call
