"""Quantisation, with the names of torch.ao."""
