"""Datasets, samplers and the loader, with the names of torch.utils.data."""
from .dataloader import DataLoader, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

TYPE_CHECKING = False
__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Loads the modules of private names when they are first used."""
        if name != "_utils":
            raise AttributeError(f"module 'tt.utils.data' has no attribute '{name}'")
        from importlib import import_module

        return import_module("._utils", __name__)


def __dir__() -> list[str]:
    return __all__
