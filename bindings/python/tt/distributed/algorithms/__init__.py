"""Hooks for the communication of gradients, with the names of torch.distributed.algorithms."""
