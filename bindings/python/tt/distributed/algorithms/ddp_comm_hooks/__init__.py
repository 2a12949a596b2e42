"""Communication hooks of DistributedDataParallel, with the names of PyTorch."""
