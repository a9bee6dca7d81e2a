# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' programs as modules. They have no suffix, so that import does not find them."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType


def load_program(name: str) -> ModuleType:
    """The program of this name in this folder, not run."""
    loader = SourceFileLoader(name, str(Path(__file__).resolve().parent / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module
