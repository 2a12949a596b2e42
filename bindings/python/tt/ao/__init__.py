"""Quantisation, by the names of torch.ao."""
