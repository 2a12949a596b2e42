"""Readers and writers, under the name of PyTorch's module."""
from __future__ import annotations

from . import FileSystemReader as FileSystemReader
from . import FileSystemWriter as FileSystemWriter
