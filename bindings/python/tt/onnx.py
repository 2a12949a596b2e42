"""torch.onnx's names. tt does not write ONNX files: each call raises UnimplementedError."""
from __future__ import annotations

from ._absent import absent_class, absent_function

__all__ = ["ExportOptions", "ONNXProgram", "export", "is_in_onnx_export"]
WHY = "tt does not write ONNX files yet: save state_dict() by tt.save"
ExportOptions = absent_class("onnx.ExportOptions", WHY)
ONNXProgram = absent_class("onnx.ONNXProgram", WHY)
export = absent_function("onnx.export", WHY)


def is_in_onnx_export() -> bool:
    """Returns False."""
    return False
