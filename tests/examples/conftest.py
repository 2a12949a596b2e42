"""Tests marked long (they train to the end) run on release builds only: under a sanitizer a second
becomes minutes."""
import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "long: trains to the end")


def pytest_runtest_setup(item):
    if item.get_closest_marker("long") and os.environ.get("TT_SANITIZED") == "1":
        pytest.skip("a sanitizer makes minutes of it")
