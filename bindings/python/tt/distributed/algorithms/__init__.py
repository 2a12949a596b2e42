"""What changes how gradients travel, by the names of torch.distributed.algorithms."""
