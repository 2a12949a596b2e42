"""The functions of an opset in PyTorch. tt's export has none."""
