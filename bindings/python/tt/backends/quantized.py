"""The engines of quantized operators. tt has none."""

__all__ = ["engine", "supported_engines"]
engine = "none"
supported_engines = ["none"]
