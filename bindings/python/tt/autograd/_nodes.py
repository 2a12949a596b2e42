"""What a node of the graph is called, and what it saved, in PyTorch's words."""
from __future__ import annotations

import math
import re
from typing import Any, Callable, Mapping

NAMES = {  # of an operator's node in PyTorch, where it is not made of the operator's name
    "clamp": "ClampBackward1",
    "clamp_between": "ClampBackward0",
    "copy_": "CopyBackwards",
    "copy_slices": "CopySlices",
    "div_floor": "DivBackward2",
    "div_true": "DivBackward0",
    "div_trunc": "DivBackward2",
    "gated": "GluBackward0",
    "gelu_exact": "GeluBackward0",
    "gelu_tanh": "GeluBackward0",
    "igamma_kernel": "IgammaBackward0",
    "igammac_kernel": "IgammacBackward0",
    "linear_rows": "AddmmBackward0",
    "logsigmoid": "LogSigmoidBackward0",
    "max_pool2d": "MaxPool2DWithIndicesBackward0",
    "max_pool3d": "MaxPool3DWithIndicesBackward0",
    "native_attention": "ScaledDotProductFlashAttentionForCpuBackward0",
    "native_cross_entropy": "NllLossBackward0",
    "native_ctc_loss": "CtcLossBackward0",
    "native_hardtanh": "HardtanhBackward0",
    "native_inv": "LinalgInvExBackward0",
    "native_log_softmax": "LogSoftmaxBackward0",
    "native_nll_loss": "NllLossBackward0",
    "native_pinv": "LinalgPinvBackward0",
    "native_softmax": "SoftmaxBackward0",
    "native_solve": "LinalgSolveExBackward0",
    "norm": "LinalgVectorNormBackward0",
    "polygamma_kernel": "PolygammaBackward0",
    "pow_number": "PowBackward0",
    "rest_floor": "RemainderBackward0",
    "rest_trunc": "FmodBackward0",
    "round_decimals": "RoundBackward1",
    "round_even": "RoundBackward0",
    "row_distances": "CdistBackward0",
    "scatter_fill": "ScatterBackward1",
    "scatter_put": "ScatterBackward0",
    "selu": "EluBackward0",
    "to_dtype": "ToCopyBackward0",
}
BY_INPUTS = {  # operator and number of differentiable inputs -> name, where NAMES is not right
    ("clamp_max", 2): "ClampMaxBackward1",
    ("clamp_min", 2): "ClampMinBackward1",
    ("lerp", 3): "LerpBackward1",
    ("max", 2): "MaximumBackward0",
    ("min", 2): "MinimumBackward0",
    ("pow", 1): "PowBackward2",
    ("pow", 2): "PowBackward1",
    ("rest_floor", 2): "RemainderBackward1",
    ("rest_trunc", 2): "FmodBackward1",
    ("rsub", 1): "RsubBackward1",
}
# operator -> last digits of its names: of a reduction to one number, and along a dimension
REDUCED = {
    "max": "10",
    "mean": "01",
    "median": "01",
    "min": "10",
    "nanmedian": "01",
    "prod": "01",
    "sum": "01",
}
SPECIAL = ("entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtri", "xlog1py", "zeta")
LINALG = ("native_det", "native_eig", "native_eigh", "native_qr", "native_slogdet", "native_svd")
# a number in place of their second tensor makes a node of the same name, with an empty edge
WITH_NUMBER = {"add", "div_floor", "div_true", "div_trunc", "mul", "sub"}


function_names: set[str] = set()  # of the Functions that were called


def needs_description(op: str) -> bool:
    """Returns whether the name of a node, made of op, depends on what tt_node_describe tells, which
    takes longer than a small operator."""
    return op in REDUCED or op == "matmul_stack" or op in function_names or op[:1].isupper()


def pytorchs_name(op: str, num_inputs: int, about: Mapping[str, Any] | None = None) -> str:
    """Returns PyTorch's name of an operator's node.

    about: what tt_node_describe tells of the node; None if it is not at hand.
    """
    if (op, num_inputs) in BY_INPUTS:
        return BY_INPUTS[op, num_inputs]
    if op == "matmul_stack":
        stacked = about is not None and len(about["results"][0]) > 2
        return "BmmBackward0" if stacked else "MmBackward0"
    if op in NAMES:
        return NAMES[op]
    if op in LINALG:
        op = op.replace("native", "linalg")
    elif op in SPECIAL:
        op = f"special_{op}"
    words = re.sub(r"(?<=\d)[a-z]", lambda letter: letter[0].upper(), op).split("_")
    form = "0" if op not in REDUCED or about is None else REDUCED[op]["dim" in about["saved"]]
    return "".join(word[:1].upper() + word[1:] for word in words) + "Backward" + form


# ---- saved values ----

SIZES = re.compile("_shape$")
# layers that keep the name input
WITH_INPUT = (
    "convolution",
    "convolution_backward",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
)
# operator -> name in tt: name in PyTorch, None if PyTorch has no such value
RENAMED: dict[str, dict[str, str | None]] = {
    "adaptive_avg_pool2d": {"output_size": None},
    "adaptive_max_pool2d": {"output_size": None},
    "as_strided": {"self_shape": None, "self_strides": None, "self_offset": None},
    "cat": {"tensors_shapes": None},
    "copy_": {"src_device": None},
    "cummax": {"self_shape": None},
    "cummin": {"self_shape": None},
    "diagonal_scatter": {"src_shape": None},
    "embedding": {"weight_shape": None},
    "erfinv": {"result": None},
    "fft_c2c": {"dim": None, "inverse": None, "scale": None},
    "fft_c2r": {"dim": None, "inverse": None, "scale": None, "length": "last_dim_size"},
    "fft_r2c": {"dim": None, "inverse": None, "scale": None, "self_shape": None},
    "fill": {"value_dtype": None},
    "gated": {"self": None, "gate": None},
    "gather": {"self_shape": None},
    "im2col": {"self_shape": None},
    "index_add": {"source_shape": None},
    "index_copy": {"source_shape": None},
    "linear_rows": {"input": "mat1", "weight": None},
    "log_ndtr": {"result": None},
    "matmul_stack": {"other": "mat2", "self_shape": None, "other_shape": None},
    "native_attention": {
        "mask": "attn_mask",
        "causal": "is_causal",
        "lse": "logsumexp",
        "out": "output",
        "rng": None,
    },
    "native_batch_norm": {"stats": None},
    "native_cross_entropy": {"input": None, "lse": None, "row_weight": None},
    "native_ctc_loss": {
        "loss": "result0",
        "log_alpha": "result1",
        "offsets": None,
        "max_target": None,
    },
    "native_det": {"self": "A", "det": "result"},
    "native_dropout": {"mask": "result1"},
    "native_eig": {"self_dtype": None},
    "native_group_norm": {"mean": "result1", "rstd": "result2", "num_groups": "group", "eps": None},
    "native_layer_norm": {
        "mean": "result1",
        "rstd": "result2",
        "normalized_shape": "normalized_shape",
        "eps": None,
    },
    "native_nll_loss": {"row_weight": None},
    "native_slogdet": {"self": "A"},
    "native_solve": {"self": "A"},
    "native_svd": {"u": "U", "s": "S", "vh": "Vh"},
    "norm": {"p": "ord"},
    "polygamma_kernel": {"order": "n"},
    "row_distances": {"pairs": None},
    "scatter_add": {"src_shape": None},
    "scatter_put": {"src_shape": None},
    "select_scatter": {"src_shape": None},
    "slice_scatter": {"src_shape": None},
    "softmax_backward": {"y": "output"},
    "log_softmax_backward": {"y": "output"},
    "sigmoid_backward": {"y": "output"},
    "tanh_backward": {"y": "output"},
    "threshold_backward": {"y": "self"},
    "to_dtype": {"self_dtype": None},
}
# operator -> name in PyTorch: its value from those of tt
Values = Mapping[str, Any]
COMPUTED: dict[str, dict[str, Callable[[Values], Any]]] = {
    "elu": {"scale": lambda s: 1, "input_scale": lambda s: 1},
    "embedding": {
        "weight_sym_argsize_0": lambda s: s["weight_shape"][0],
        "sparse": lambda s: False,
    },
    "fft_c2c": {"dim": lambda s: (s["dim"],), "forward": lambda s: not s["inverse"]},
    "fft_c2r": {"dim": lambda s: (s["dim"],)},
    "fft_r2c": {"dim": lambda s: (s["dim"],)},
    "gelu_exact": {"approximate": lambda s: "none"},
    "gelu_tanh": {"approximate": lambda s: "tanh"},
    "im2col": {
        "self_sym_argsize_minus_1": lambda s: s["self_shape"][-1],
        "self_sym_argsize_minus_2": lambda s: s["self_shape"][-2],
    },
    "linear_rows": {
        "mat2": lambda s: s["weight"] if s["weight"] is None else s["weight"].t(),
        "alpha": lambda s: 1,
        "beta": lambda s: 1,
    },
    "mean": {"self_sym_numel": lambda s: math.prod(s["self_shape"])},
}
OF_MATRICES = {  # of a product that is no stack
    "self_sym_sizes": lambda s: s["self_shape"],
    "mat2_sym_sizes": lambda s: s["other_shape"],
}


def value_names(op: str, saved: Values) -> dict[str, str]:
    """Returns the values that PyTorch's node has, too: name in PyTorch -> name in tt, or in
    COMPUTED."""
    renamed = RENAMED.get(op, {})
    found: dict[str, str] = {}
    for name in saved:
        usual = name
        if name == "grad":
            usual = "grad_output"
        elif name == "input" and op not in WITH_INPUT:
            usual = "self"
        theirs = renamed.get(name, SIZES.sub("_sym_sizes", usual))
        if theirs is not None:
            found[theirs] = name
    return found


def computed(op: str, about: Mapping[str, Any]) -> dict[str, Callable[[Values], Any]]:
    """Returns the values of PyTorch's node that follow from those of tt.

    about: what tt_node_describe tells of the node.
    """
    if op == "matmul_stack" and len(about["results"][0]) <= 2:
        return OF_MATRICES
    return COMPUTED.get(op, {})
