"""Engines of quantized operators, of which tt has none."""

__all__ = ["engine", "supported_engines"]
engine = "none"
supported_engines = ["none"]
