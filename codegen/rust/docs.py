"""Rustdoc from the texts of the headers and declarations."""
import re
import textwrap

from codegen.model import docs

WIDTH = 100
# What the texts call a C function or the ctx of a call.
OF_C = {
    "tt_copy_": "`copy_`",
    "tt_copy_non_blocking": "`copy_non_blocking`",
    "tt_event_elapsed": "`elapsed`",
    "tt_module_append": "[`Module::append`](crate::Module::append)",
    "tt_module_register_parameter": "[`Module::register_parameter`](crate::Module::register_parameter)",
    "tt_function_apply": "[`apply`](crate::apply)",
    "tt_function_def": "function",
    "tt_node_saved": "[`Node::saved`](crate::Node::saved)",
    "tt_nn_multihead_attention_forward": "[`Module::attend`](crate::Module::attend)",
    "tt_tensor_variable_data": "[`Tensor::variable_data`](crate::Tensor::variable_data)",
    "tt_optim_step_closure": "[`step_closure`](crate::Optimizer::step_closure)",
}


def status(name):
    """INVALID_ARG -> `Status::InvalidArg`"""
    return "`Status::" + "".join(part.capitalize() for part in name.split("_")) + "`"


def escaped(text):
    """Rustdoc takes brackets and stars outside of backticks for markup, but not those of a link."""
    parts = re.split(r"(`[^`]*`|\[`[^`]*`\](?:\([\w:]*\))?)", text)
    parts[::2] = [re.sub(r"([\[\]<>*])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def of_rust(text):
    """The text with Rust's names for those of C. An unknown one is a KeyError."""
    text = text.replace(" (0 in C)", "").replace("the ctx", "this thread")
    return re.sub(r"(?<![\w:`/])tt_(?!sys)\w+", lambda m: OF_C[m.group()], text)


def lines(text, indent="", hanging=0):
    """A doc comment, wrapped; hanging: the indentation of all lines but the first."""
    wrapped = textwrap.wrap(
        of_rust(text),
        WIDTH - len(indent) - len("/// "),
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"{indent}/// {line}" for line in wrapped]


def sentence(text):
    """A field's or constant's phrase as a sentence."""
    text = docs.in_language(text, "None", status)
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "…")) else text + "."


def described(doc, names=None):
    """names: optional parameters of the Rust function."""
    return docs.described(doc, "None", status, names)
