"""Names of torch._functorch that packages import."""
