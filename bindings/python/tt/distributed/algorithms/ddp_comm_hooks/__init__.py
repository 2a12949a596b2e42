"""Hooks of DistributedDataParallel, by the names of PyTorch."""
