# SPDX-License-Identifier: Apache-2.0
"""Writing of golden fixtures: HDF5 files with contiguous datasets and fixed-length string attributes.

The files hold no time stamps, so the same script with the same packages writes the same bytes.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def output_directory(description: str) -> Path:
    """Directory the fixtures go to: `--output`, by default the one that holds the scripts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent)
    directory: Path = parser.parse_args().output
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def rounded(values: Array) -> Array:
    """`values` at the precision in which they are stored, so that what is computed from them is exact."""
    return values.astype(np.float32).astype(np.float64)


class Fixture:
    """One fixture file, open for writing. Floats are stored as float32, integers as int32."""

    def __init__(self, path: Path, script: str, packages: tuple[str, ...]) -> None:
        # v108..v110: compact groups, readable by every HDF5 library since 1.10.
        self._file = h5py.File(path, "w", libver=("v108", "v110"))
        names = sorted({"h5py", "numpy", *packages})
        versions = [f"python {platform.python_version()}"] + [f"{name} {version(name)}" for name in names]
        self.attribute("/", "script", script)
        self.attribute("/", "versions", ", ".join(versions))

    def __enter__(self) -> Fixture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._file.close()

    def attribute(self, group: str, name: str, text: str) -> None:
        self._file.require_group(group).attrs[name] = np.bytes_(text.encode())

    def array(self, path: str, values: NDArray[np.generic]) -> None:
        kind = np.float32 if np.issubdtype(values.dtype, np.floating) else np.int32
        stored = values.astype(kind)
        if not np.isfinite(stored).all():
            raise ValueError(f"{path} holds values that are not finite")
        if kind == np.int32 and not np.array_equal(stored, values):
            raise ValueError(f"{path} does not fit int32")
        self._file.create_dataset(path, data=np.ascontiguousarray(stored))

    def arrays(self, group: str, values: Mapping[str, NDArray[np.generic]]) -> None:
        self._file.require_group(group)
        for name, array in values.items():
            self.array(f"{group}/{name}", array)

    def scalar(self, path: str, value: float) -> None:
        self._file.create_dataset(path, data=np.float64(value))

    def doubles(self, path: str, values: Array) -> None:
        """Values kept in float64: learning rates, which the optimizer computes in double."""
        self._file.create_dataset(path, data=np.ascontiguousarray(values, dtype=np.float64))
