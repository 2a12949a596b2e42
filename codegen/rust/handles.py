"""Handles of the Rust crate and their regular methods: tt/src/gen/handles.rs, from the prototypes of tt.h.

A function is regular if each argument has one obvious Rust form. tt_module_child(ctx, module, i, out) becomes Module::child(i), a function
without a handle in front a function. What else is not regular is written by hand, or stands in bindings/rust/excluded.txt with a reason.
"""
import re

from codegen.model.headers import HeaderError, Named, Pointer
from codegen.rust.common import HEAD, escaped, snake

# C type -> (Rust type, prefix of its functions, what it is)
HANDLES = {
    "tt_tensor": (
        "Tensor",
        "tensor",
        "A tensor: dtype, shape, strides, and memory that others may share.",
    ),
    "tt_runtime": (
        "Runtime",
        "runtime",
        "What contexts share: allocator, threads, memory limit, devices, custom operators.",
    ),
    "tt_cancel": (
        "Cancel",
        "cancel",
        "A wish to stop, from any thread: see [`cancellable`](crate::cancellable).",
    ),
    "tt_generator": (
        "Generator",
        "generator",
        "A source of random numbers: Philox4x32-10, equal on every device.",
    ),
    "tt_state_dict": (
        "StateDict",
        "state_dict",
        "Named tensors: the state of a module or an optimizer, the contents of a checkpoint.",
    ),
    "tt_module": ("Module", "module", "A layer, or a tree of them."),
    "tt_safetensors": ("SafeTensors", "safetensors", "An open file of tensors."),
    "tt_node": ("Node", "node", "A recorded operator."),
    "tt_optimizer": (
        "Optimizer",
        "optim",
        "Parameters in groups, the rule that moves them, and its state.",
    ),
    "tt_scheduler": (
        "Scheduler",
        "scheduler",
        "A schedule of learning rates; it holds its optimizer.",
    ),
}
STAYS = {"Module", "Optimizer", "Scheduler"}  # on one thread: calls change what clones alias
OWN = {"StateDict"}  # its type is written by hand
NAMED = {"StateDict", "SafeTensors"}  # lists of tensors by name
# what looks regular and is not
BY_HAND = re.compile(
    r"_(retain|release)$|^tt_(ctx_(?!set_poll)|status_|dtype_|scope_|runtime_(new|live|manual_seed|rng_state|set_rng_state)|item|grad$|generator_state|profiler_|op_|set_grad_enabled|manual_seed$|"
    r"set_anomaly_enabled|requires_grad_|tensor_(data|storage_data|device_index)|state_dict_(set|structure)$)"
)
NULLABLE = {
    ("tt_tensor_set_grad", "grad"),
    ("tt_module_register_parameter", "tensor"),
    ("tt_module_register_buffer", "tensor"),
    ("tt_optim_set_state", "value"),
    ("tt_module_to", "device"),
    ("tt_module_to", "dtype"),
    ("tt_synchronize", "device"),
    ("tt_load_cuda", "path"),
    ("tt_tensor_grad", "out"),
    ("tt_tensor_grad_fn", "out"),
    ("tt_node_next", "out"),
    ("tt_module_get_tensor", "out"),
    ("tt_optim_get_state", "out"),
    ("tt_torch_save", "structure"),
    ("tt_state_dict_structure", "out"),
}
LOCAL = {"tt_optim_step_closure"}  # the closure is gone when they return
UNSAFE = {  # and what the caller has to see to
    "tt_load_cuda": "The library is one of tt's: what it holds is run as it is loaded.",
    "tt_module_to": "Nothing else may use the tensors of `self` and of what is below it while this runs, on no thread, clones included, and no slice of their "
    "memory, shapes or strides is alive: all these change. [`Module::copy_to`] asks for nothing.",
    "tt_tensor_set_data": "Nothing else may use `self` while this runs, clones included, and no slice of its memory, shape or strides is alive.",
    "tt_index_set": "Nothing else may read or write the memory of `self` while this runs: clones alias.",
    "tt_safetensors_map": "Nobody may write the file or cut it while it is mapped, by this or a tensor of it: what was cut off stops the process.",
}
NUMBERS = {"tt_set_num_threads"}  # their int32_t is no flag
PLAIN = {"int64_t": "i64", "uint64_t": "u64", "double": "f64", "uint32_t": "u32"}
TENSOR = Named("tt_tensor")
DOCS = {  # where C's words do not fit, or stand elsewhere
    "tt_set_num_threads": "Of the runtime: how many threads compute.",
    "tt_num_threads": "How many threads compute.",
    "tt_set_memory_limit": "Of the runtime, in bytes; 0: none.",
    "tt_grad_enabled": "Are gradients recorded?",
    "tt_cancel_new": "Not yet requested.",
    "tt_cancel_request": "Calls under it fail with `Status::Cancelled`, from the next kernel on.",
    "tt_generator_new": "One of its own, for options of operators.",
    "tt_load_cuda": "Opens a backend library; None: libtt_cuda.so.",
    "tt_ctx_set_poll": "`f` is asked between two kernels, on the thread of the running call: at most every 50 ms, and before other callbacks. An error that it "
    "gives ends the call.",
    "tt_synchronize": "Waits for a device, None: for all; reports work that failed.",
    "tt_state_dict_new": "An empty one.",
    "tt_safetensors_map": "As `open`, but the tensors lie in the file as mapped into memory.",
    "tt_anomaly_enabled": "Is anomaly mode on?",
    "tt_clip_grad_value_": "Limits each element of the parameters' gradients to +-clip_value.",
    "tt_clip_grad_norm_": "Scales the parameters' gradients so that the norm of all of them is at most max_norm; the norm that it was.",
    "tt_tensor_print": "As PyTorch prints it.",
    "tt_tensor_ndim": "How many dimensions.",
    "tt_tensor_numel": "How many elements.",
    "tt_tensor_size": "Of a dimension, which may be negative; 0 if out of range.",
    "tt_tensor_storage_bytes": "Of the whole storage.",
    "tt_tensor_is_contiguous": "Row-major, without gaps.",
    "tt_tensor_is_writable": "false: over memory that was imported as read-only.",
    "tt_tensor_is_leaf": "Not the result of a recorded operator.",
    "tt_tensor_requires_grad": "A leaf that gradients are accumulated for, or a result of one.",
    "tt_index_get": "By a mixed index, which [`idx!`](crate::idx) makes.",
    "tt_index_set": "Writes value where index_get reads.",
    "tt_retain_grad": "Keeps the gradient of a tensor that is no leaf, too.",
    "tt_tensor_grad": "None: not yet.",
    "tt_tensor_set_grad": "Replaces it.",
    "tt_tensor_grad_fn": "The operator that made it; None: a leaf.",
    "tt_remove_hook": "Takes a hook away, by what registering it gave.",
    "tt_state_dict_size": "How many tensors.",
    "tt_state_dict_name": "Of the i-th.",
    "tt_state_dict_get": "The i-th.",
    "tt_torch_load": "All tensors of a file of torch.save (.pt, .pth), by their paths, and its [structure](StateDict::structure). Nothing of the file is run.",
    "tt_torch_save": "Writes a file that torch.load reads: tensors as structure has them; None: an OrderedDict of them. After a crash it is the old file or the new one.",
    "tt_module_type": 'The class: "Linear".',
    "tt_module_call": "Forward of a module that takes one tensor and gives one.",
    "tt_module_train": "Training mode on or off, here and below.",
    "tt_module_training": "Is training mode on?",
    "tt_module_requires_grad_": "Gradients of the parameters on or off (frozen), here and below.",
    "tt_module_to": "Moves the tensors, here and below; dtypes of floating and complex ones. None keeps. Handles to the tensors stay valid.",
    "tt_module_register_parameter": "A leaf under a name without dots, in the place of what had it; None: declared, but absent.",
    "tt_module_register_buffer": "A tensor that is no parameter; not persistent: no part of the state dict.",
    "tt_module_register_module": "A child under a name without dots. It may have several parents.",
    "tt_module_num_children": "How many.",
    "tt_module_child_name": "Of the i-th child.",
    "tt_module_child": "The i-th.",
    "tt_module_get_tensor": 'By path, "layers.0.weight"; None: declared, but absent.',
    "tt_module_get_submodule": 'By path, "layers.0".',
    "tt_module_parameters": "Each parameter once, also if it has several names.",
    "tt_module_named_parameters": "Each parameter once, by its first name.",
    "tt_module_named_buffers": "Buffers by name.",
    "tt_module_state_dict": "Parameters and persistent buffers under all their names.",
    "tt_module_print": "The tree as PyTorch prints it.",
    "tt_module_remove_hook": "Takes a hook away, by what registering it gave.",
    "tt_node_remove_hook": "Takes a hook away, by what registering it gave.",
    "tt_safetensors_size": "How many tensors.",
    "tt_safetensors_name": "Of the i-th, in the order of the file.",
    "tt_safetensors_metadata_size": "How many pairs.",
    "tt_safetensors_metadata_key": "Of the i-th pair.",
    "tt_safetensors_metadata_value": "Of the i-th pair.",
    "tt_node_name": "The forward operator.",
    "tt_node_num_inputs": "How many.",
    "tt_node_next": "What made an input; None: a leaf or nothing.",
    "tt_optim_step": "One step on every parameter that has a gradient, all or nothing.",
    "tt_optim_zero_grad": "Gradients become absent, or else zero.",
    "tt_optim_num_groups": "How many.",
    "tt_optim_param": "Counted through all groups.",
    "tt_optim_get_state": "Shared with the optimizer (step: a copy); None if there is none yet.",
    "tt_optim_set_state": "A copy takes its place; None takes it away.",
    "tt_optim_num_tensors": "How many tensors the state has.",
    "tt_optim_num_numbers": "How many numbers the state has.",
    "tt_optim_load_tensor": "A part of the state by the name that `tensor_at` or `number_at` gave.",
    "tt_optim_load_number": "A part of the state by the name that `tensor_at` or `number_at` gave.",
    "tt_scheduler_step": "After the optimizer's step.",
    "tt_scheduler_last_epoch": "Steps taken, less one.",
    "tt_scheduler_num_numbers": "How many numbers the state has.",
    "tt_version": "Of the library that runs.",
    "tt_build_info": "One line: version, compiler, instruction sets, BLAS, SLEEF.",
    "tt_manifest": "Every operator, its schema and forms, as JSON.",
    "tt_optim_tensor_at": 'A tensor of the whole state: "state.3.exp_avg".',
    "tt_optim_number_at": 'A number of the whole state: "state.3.step", "param_groups.0.lr".',
    "tt_scheduler_number_at": 'A number of the whole state: "last_epoch", "base_lrs.0".',
    "tt_register_hook": "`f` may give what takes the gradient's place, before it is accumulated or passed on. The hook's number is for `remove_hook`.",
    "tt_register_accumulate_hook": "`f` sees a leaf after a gradient has been accumulated into it.",
    "tt_node_register_hook": "pre: `f` sees the gradients of the operator's outputs, before its formula; else those of its inputs, after it. What it gives, "
    "an empty list or as many tensors or None, takes their places.",
    "tt_module_register_forward_pre_hook": "`f` sees the inputs before forward. What it gives, an empty list or as many tensors or None, takes their places.",
    "tt_module_register_forward_hook": "`f` sees inputs and results after forward. What it gives, an empty list or as many tensors or None, takes the results' places.",
    "tt_optim_step_closure": "`f` clears the gradients, computes the loss and runs backward, recorded; then the step. The loss is given back.",
    "tt_lr_lambda": "`f(epoch, group)`: factor of the learning rate that the group had at the start. last_epoch: -1 starts.",
    "tt_lr_multiplicative": "`f(epoch, group)`: factor of the learning rate that the group has. last_epoch: -1 starts.",
    "tt_scheduler_load_number": "A part of the state by the name that `tensor_at` or `number_at` gave.",
}
RENAMED = {"size": "len", "type": "class"}


def handle_of(kind):
    """Rust type of a pointer to a handle."""
    return (
        HANDLES[kind.to.name][0]
        if isinstance(kind, Pointer) and isinstance(kind.to, Named) and kind.to.name in HANDLES
        else None
    )


def list_of_tensors(kind):
    return (
        isinstance(kind, Pointer)
        and isinstance(kind.to, Pointer)
        and kind.to.to == TENSOR
        and kind.const
    )


class Regular:
    """One function of tt.h and its Rust form; `ok` is false if it has none by rule."""

    def __init__(self, fn, callbacks):
        self.fn, self.ok, self.receiver, self.callbacks = fn, True, None, callbacks
        self.params, self.before, self.args, self.opts, self.generic = [], [], [], None, ""
        self.status = fn.returns == Named("tt_status")
        rest = list(fn.params)
        self.ctx = bool(rest) and rest[0].type == Pointer(
            Named("tt_ctx"), rest[0].type.const if isinstance(rest[0].type, Pointer) else False
        )
        rest = rest[1:] if self.ctx else rest
        if rest and handle_of(rest[0].type):
            self.receiver = handle_of(rest[0].type)
            self.args.append("self.raw()")
            rest = rest[1:]
        self.helper, self.returns, self.outs = (
            ("call", "()", []) if self.status else (None, self.fact(), [])
        )
        self.read_outs(rest)
        while rest and self.ok:
            self.read(rest)

    def fact(self):
        kind = self.fn.returns
        if kind == Named("void"):
            return "()"
        if kind == Named("int32_t"):
            return "bool" if "num_" not in self.fn.name else "i32"
        if kind == Pointer(Named("char"), True):
            return (
                "Option<String>"
                if len(self.fn.params) > 1 or (self.fn.name, "out") in NULLABLE
                else "String"
            )
        self.ok &= isinstance(kind, Named) and kind.name in PLAIN
        return PLAIN.get(getattr(kind, "name", ""), "")

    def read_outs(self, rest):
        """Takes the outs off the end of rest."""
        names = [p.name for p in rest]
        if names[-2:] in (["cap", "n"], ["cap", "n_outs"]):
            kind = rest[-3].type.to
            self.helper, self.returns = {
                Named("char"): ("call_text", "String"),
                Named("double"): ("call_array", "Vec<f64>"),
            }.get(kind, ("call_list", "Vec<Tensor>"))
            self.outs = ["items", "cap", "n"]
            del rest[-3:]
        elif names[-3:-1] == ["name", "cap"]:  # a name of at most 96 bytes, and what has it
            kind = rest[-1].type.to
            self.helper, self.returns = (
                "call_named",
                f"(String, {handle_of(kind) or PLAIN[kind.name]})",
            )
            self.outs = ["name", "cap", "out"]
            del rest[-3:]
        elif rest and isinstance(rest[-1].type, Pointer) and not rest[-1].type.const:
            last, kind = rest[-1], rest[-1].type.to
            if handle_of(kind):
                optional = (self.fn.name, last.name) in NULLABLE
                self.helper, self.returns = (
                    ("call_opt", f"Option<{handle_of(kind)}>")
                    if optional
                    else ("call1", handle_of(kind))
                )
            elif isinstance(kind, Named) and kind.name in PLAIN:
                self.helper, self.returns = "call_value", PLAIN[kind.name]
            else:
                return
            self.outs = ["out"]
            del rest[-1]

    def read(self, rest):
        p = rest.pop(0)
        n, kind, optional = snake(p.name), p.type, (self.fn.name, p.name) in NULLABLE
        many = rest and (rest[0].name == "n" or rest[0].name == f"n_{p.name}")
        if (
            isinstance(kind, Named)
            and kind.name in self.callbacks
            and [q.name for q in rest[:2]] == ["user", "drop"]
        ):
            self.closure(n, self.callbacks[kind.name])
            del rest[:2]
        elif isinstance(kind, Named):
            self.scalar(n, kind, optional)
        elif isinstance(kind, Pointer) and kind.to == Named("char"):
            self.params.append(f"{n}: {'Option<&str>' if optional else '&str'}")
            self.before.append(
                f"let {n} = {n}.map(c_string).transpose()?;"
                if optional
                else f"let {n} = c_string({n})?;"
            )
            self.args.append(
                f"{n}.as_ref().map_or(std::ptr::null(), |s| s.as_ptr())"
                if optional
                else f"{n}.as_ptr()"
            )
        elif handle_of(kind):
            self.params.append(
                f"{n}: Option<&{handle_of(kind)}>" if optional else f"{n}: &{handle_of(kind)}"
            )
            self.args.append(f"opt_raw({n})" if optional else f"{n}.raw()")
        elif many and (list_of_tensors(kind) or kind == Pointer(Named("tt_index"), True)):
            rest.pop(0)
            listed = list_of_tensors(kind)
            self.params.append(f"{n}: {'&[impl Borrow<Tensor>]' if listed else '&[Index]'}")
            self.before.append(f"let {n} = {'raw_list' if listed else 'index_list'}({n});")
            self.args.append(
                f"{n}.as_ptr(){' as *const *const _' if listed and kind.to.const else ''}, {n}.len() as i64"
            )
        elif kind == Pointer(Named("tt_device"), True) and optional:
            self.params.append(f"{n}: Option<Device>")
            self.before.append(f"let {n} = {n}.map(Device::raw);")
            self.args.append(f"{n}.as_ref().map_or(std::ptr::null(), |d| d)")
        elif (
            isinstance(kind, Pointer)
            and isinstance(kind.to, Named)
            and kind.to.name.endswith("_opts")
        ):
            self.opts = "".join(
                x.capitalize() for x in kind.to.name[3:].removeprefix("nn_").split("_")
            )
            self.args.append("OPTS")
        else:
            self.ok = False

    def closure(self, n, callback):
        kept = "Hook<F>" if callback.of_module else "F"
        user = (
            f"Hook::new(f, {'true' if 'backward' in self.fn.name else 'false'})"
            if callback.of_module
            else "f"
        )
        own = (
            self.receiver in ("Module", "Optimizer") and "backward" not in self.fn.name
        )  # else graphs run it, on any thread
        more = (
            ""
            if self.fn.name in LOCAL
            else " + Send + 'static"
            if own
            else " + Send + Sync + 'static"
        )
        self.generic = f"<F: {callback.bound}{more}>"
        self.params.append(f"{'f'}: F")
        self.args.append(
            f"Some(callbacks::{callback.fn.name}::<F>), user({user}), Some(drop_user::<{kept}>)"
        )

    def scalar(self, n, kind, optional):
        if kind.name == "tt_dtype":
            self.params.append(f"{n}: Option<DType>" if optional else f"{n}: DType")
            self.args.append(f"{n}.map_or(0, |d| d as i32)" if optional else f"{n} as i32")
        elif kind.name == "int32_t":
            flag = self.fn.name not in NUMBERS
            self.params.append(f"{n}: {'bool' if flag else 'i32'}")
            self.args.append(f"{n} as i32" if flag else n)
        else:
            self.ok &= kind.name in PLAIN
            self.params.append(f"{n}: {PLAIN.get(kind.name)}")
            self.args.append(n)

    def place(self):
        """(Rust type that it belongs to or None, name there)"""
        bare = self.fn.name[3:]
        for kind, prefix, _ in HANDLES.values():
            if bare.startswith(prefix + "_") and kind in (self.receiver, self.returns):
                bare = bare[len(prefix) + 1 :]
                return kind, RENAMED.get(bare, bare) if kind != "Tensor" else bare
        return self.receiver, bare

    def lines(self):
        name = self.place()[1]
        out = self.form(name, "std::ptr::null()")
        if self.opts:
            self.params.append(f"opts: {self.opts}")
            out += self.form(
                f"{name[:-1]}_with_" if name.endswith("_") else f"{name}_with", "&opts.0"
            )
        return out

    def form(self, name, opts):
        indent = "    " if self.place()[0] else ""
        args = [opts if a == "OPTS" else a for a in self.args]
        params = (["&self"] if self.receiver else []) + self.params
        unsafe = self.fn.name in UNSAFE
        doc = DOCS.get(self.fn.name, "") or escaped(self.fn.doc)
        if not doc:
            raise HeaderError(f"{self.fn.name}: rust_handles.DOCS says nothing of it")
        doc = doc[:1].upper() + doc[1:]
        if "full_backward" in self.fn.name:
            doc += " It belongs to the thread that registers it: where a backward runs on another one, it fails."
        out = [f"/// {doc}"] + (
            ["///", "/// # Safety", f"/// {UNSAFE[self.fn.name]}"] if unsafe else []
        )
        returns = f"Result<{self.returns}>" if self.status else self.returns
        out.append(
            f"pub {'unsafe ' if unsafe else ''}fn {name}{self.generic}({', '.join(params)}){'' if returns == '()' else ' -> ' + returns} {{"
        )
        out += [f"    {line}" for line in self.before] + [f"    {self.body(args)}", "}"]
        return [indent + line for line in out]

    def body(self, args):
        c = f"sys::{self.fn.name}({', '.join((['c'] if self.ctx and self.status else ['crate::context::ctx()'] if self.ctx else []) + args + self.outs)})"
        if self.status:
            first = "0.0, " if self.helper == "call_array" else ""
            text = f"{self.helper}({first}|{', '.join(['c'] + self.outs)}| {c})"
            if self.helper == "call_named" and handle_of(self.fn.params[-1].type.to):
                text = f"{text.replace('out)', 'out as *mut *mut _)')}.map(|(name, out): (_, usize)| (name, Tensor::from_raw(out as *mut _)))"
            return text if self.fn.name in UNSAFE else f"unsafe {{ {text} }}"
        if self.returns == "String":
            return f"unsafe {{ text_of({c}).into_owned() }}"
        if self.returns == "Option<String>":
            return f"unsafe {{ opt_text({c}) }}"
        return f"unsafe {{ {c}{' != 0' if self.returns == 'bool' else ''} }}"


def handle(raw, name, prefix, doc):
    """The type: clone is one reference more, drop one less."""
    out = [f"/// {doc}"] + (
        [
            "/// It stays on its thread: clones alias, and calls change it. [`Transfer`](crate::Transfer) is the way out."
        ]
        if name in STAYS
        else []
    )
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
        "    /// No tensors.",
        "    pub fn is_empty(&self) -> bool {",
        "        self.len() == 0",
        "    }",
        "    /// By name.",
        "    pub fn tensor(&self, name: &str) -> Result<Tensor> {",
        "        self.get(self.find(name)?)",
        "    }",
        "    /// All names, in order.",
        "    pub fn names(&self) -> Vec<String> {",
        "        (0..self.len()).filter_map(|i| self.name(i)).collect()",
        "    }",
        "}",
    ]


def generate(api, generated, callbacks):
    """generated: the headers whose functions have generators of their own."""
    out = [
        HEAD.format("include/tt.h")
        + "use crate::callback::{drop_user, user, Hook};\nuse crate::gen::callbacks;\nuse crate::prelude::*;\nuse crate::StateDict;\n"
    ]
    for raw, (name, prefix, doc) in HANDLES.items():
        out += (handle(raw, name, prefix, doc) if name not in OWN else []) + (
            named(name) if name in NAMED else []
        )
    methods = {}
    for fn in api.functions:
        if f" {fn.name}(" in generated or BY_HAND.search(fn.name):
            continue
        r = Regular(fn, callbacks)
        if r.ok:
            methods.setdefault(r.place()[0], []).extend(r.lines())
    for receiver, lines in methods.items():
        out += ["", f"impl {receiver} {{"] + lines + ["}"] if receiver else [""] + lines
    return {"bindings/rust/tt/src/gen/handles.rs": "\n".join(out) + "\n"}
