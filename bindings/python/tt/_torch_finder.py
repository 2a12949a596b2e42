"""Imports of torch.NAME as tt.NAME, and the version of a distribution torch, after as_torch()."""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any, Iterable, Sequence

from ._absent import absent_class

# Modules of PyTorch for which tt has nothing: the names that packages import from them. They are
# there after as_torch(), and raise where they are used.
ABSENT = {
    "distributed.algorithms._checkpoint": "",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": (
        "CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper "
        "offload_wrapper"
    ),
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": (
        "PowerSGDState batched_powerSGD_hook powerSGD_hook"
    ),
    "distributed.algorithms.model_averaging": "",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner _load_state_dict",
    "distributed.checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "distributed.checkpoint.state_dict": (
        "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict "
        "set_model_state_dict set_optimizer_state_dict set_state_dict"
    ),
    "distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "distributed.fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "distributed.launcher": "",
    "distributed.launcher.api": "LaunchConfig elastic_launch",
    "distributed.pipelining": "ScheduleGPipe SplitPoint pipeline",
    "distributed._tensor.experimental": "implicit_replication",
    "distributed.tensor.experimental": "context_parallel implicit_replication",
    "distributed.tensor.parallel": (
        "ColwiseParallel PrepareModuleInput PrepareModuleOutput RowwiseParallel SequenceParallel "
        "loss_parallel parallelize_module"
    ),
    "distributed.utils": "_sync_module_states",
    "jit._recursive": "concrete_type_store",
    "utils.cpp_extension": "BuildExtension CUDAExtension CppExtension load load_inline",
}


# module of tt -> modules of PyTorch inside it that have its names
ALIASES = {
    "accelerator": "memory random",
    "autograd": "profiler_util",
    "cpu.amp": "autocast_mode grad_scaler",
    "cuda": "comm memory nccl profiler random",
    "cuda.amp": "autocast_mode common grad_scaler",
    "distributed.optim": "zero_redundancy_optimizer",
    "distributions": (
        "beta binomial cauchy chi2 dirichlet fishersnedecor geometric gumbel half_cauchy "
        "half_normal inverse_gamma kumaraswamy log_normal logistic_normal mixture_same_family "
        "multinomial negative_binomial one_hot_categorical pareto poisson relaxed_bernoulli "
        "relaxed_categorical studentT transformed_distribution von_mises weibull"
    ),
    "export": "dynamic_shapes exported_program graph_signature",
    "mps": "event",
    "multiprocessing": "pool queue reductions",
    "nn.modules": "adaptive channelshuffle distance fold lazy linear_cross_entropy",
    "nn.parallel": "comm data_parallel parallel_apply replicate scatter_gather",
    "nn.utils": "spectral_norm weight_norm",
    "onnx": "errors utils",
    "optim": "adadelta adagrad adamax asgd nadam radam rmsprop rprop",
    "profiler": "itt profiler",
    "quantization": "fake_quantize observer qconfig quantize stubs",
    "signal.windows": "windows",
    "utils.benchmark": "utils utils.common utils.compare utils.timer",
    "utils.tensorboard": "summary writer",
    "xpu": "memory random streams",
}


class Alias(ModuleType):
    """A module of PyTorch that has the names of a module of tt."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name, module.__doc__)
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__path__: list[str] = []
        self.__module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__module, name)

    def __dir__(self) -> Iterable[str]:
        return dir(self.__module)


def add_aliases() -> None:
    """Makes the modules of ALIASES importable as torch.NAME, and attributes of their packages
    unless these have a function of the same name."""
    for place, names in ALIASES.items():
        package = "torch." + place
        module = sys.modules[package]
        if not hasattr(module, "__path__"):
            module.__path__ = []
        for name in names.split():
            if f"{package}.{name}" in sys.modules:
                continue
            alias = sys.modules[f"{package}.{name}"] = Alias(f"{package}.{name}", module)
            parent = sys.modules[f"{package}.{name}".rpartition(".")[0]]
            last = name.rpartition(".")[2]
            if not hasattr(parent, last):
                setattr(parent, last, alias)


class TorchDistribution(Distribution):
    """The distribution "torch" of importlib.metadata."""

    def __init__(self, version: str) -> None:
        self.text = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


class TorchFinder(DistributionFinder, Loader):
    """Finds torch.NAME, which is the module tt.NAME itself, not a copy of it."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.specs: dict[str, Any] = {}  # of modules of tt that are being imported as torch's

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("tt.") and fullname[len("tt.") :] in ABSENT:
            import_module("torch" + fullname[len("tt") :])  # `from torch.utils import NAME`
            return ModuleSpec(fullname, self, is_package=True)
        if not fullname.startswith("torch."):
            return None
        name = "tt" + fullname[len("torch") :]
        if fullname[len("torch.") :] in ABSENT:
            return ModuleSpec(fullname, self, is_package=True)
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, and imports another one that is not
            return None
        self.specs[fullname] = module.__spec__
        return ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        library, _, name = spec.name.partition(".")
        return sys.modules.get(("torch." if library == "tt" else "tt.") + name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        fullname = module.__spec__.name
        if fullname.startswith("tt."):
            return
        if fullname in self.specs:
            module.__spec__ = self.specs.pop(fullname)
            return
        place = fullname[len("torch.") :]
        for name in ABSENT[place].split():
            setattr(module, name, absent_class(f"{place}.{name}", "tt has nothing of this name"))

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        if context is not None and context.name == "torch":
            yield TorchDistribution(self.version)
