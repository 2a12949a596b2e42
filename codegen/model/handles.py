"""The handles of the C API and their names in the bindings."""
from codegen.model.headers import Named, Pointer

# C type -> (class of the bindings, prefix of its functions)
HANDLES = {
    "tt_tensor": ("Tensor", "tensor"),
    "tt_runtime": ("Runtime", "runtime"),
    "tt_cancel": ("Cancel", "cancel"),
    "tt_generator": ("Generator", "generator"),
    "tt_state_dict": ("StateDict", "state_dict"),
    "tt_module": ("Module", "module"),
    "tt_safetensors": ("SafeTensors", "safetensors"),
    "tt_node": ("Node", "node"),
    "tt_optimizer": ("Optimizer", "optim"),
    "tt_scheduler": ("Scheduler", "scheduler"),
    "tt_grad_scaler": ("GradScaler", "grad_scaler"),
    "tt_dataset": ("Dataset", "dataset"),
    "tt_sampler": ("Sampler", "sampler"),
    "tt_loader": ("Loader", "loader"),
    "tt_group": ("Group", "group"),
    "tt_work": ("Work", "work"),
    "tt_ddp": ("Ddp", "ddp"),
    "tt_stream": ("Stream", "stream"),
    "tt_event": ("Event", "event"),
}
TENSOR = Named("tt_tensor")
TEXT = Pointer(Named("char"), True)


def handle_of(kind):
    """The class of a pointer to a handle, None for anything else."""
    if isinstance(kind, Pointer) and isinstance(kind.to, Named) and kind.to.name in HANDLES:
        return HANDLES[kind.to.name][0]
    return None


def list_of_tensors(kind):
    """const tt_tensor *const *, tt_tensor *const *"""
    return (
        isinstance(kind, Pointer)
        and isinstance(kind.to, Pointer)
        and kind.to.to == TENSOR
        and kind.const
    )
