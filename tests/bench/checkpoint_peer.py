# SPDX-License-Identifier: Apache-2.0
"""torch.save or torch.load of a state of many equal tensors, once a line of standard input.

As in a training, each save is a new file, and the newest two are kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from peer import serve_turns

KEPT = 2


def main() -> None:
    parser = argparse.ArgumentParser(description="torch.save or torch.load.")
    parser.add_argument("--operation", required=True, choices=("save", "load"))
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    options = parser.parse_args()

    def files() -> list[Path]:
        return sorted(options.directory.glob("state-*.pt"))

    def save() -> None:
        torch.save(state, options.directory / f"state-{time.time_ns()}.pt")  # behind those of an earlier process, too
        for old in files()[:-KEPT]:
            old.unlink()

    def load() -> None:
        newest = files()[-1]
        loaded = torch.load(newest)
        if len(loaded) != options.tensors:
            sys.exit(f"{newest}: {len(loaded)} tensors")

    if options.operation == "save":
        options.directory.mkdir(parents=True, exist_ok=True)
        state = {f"tensor_{i:03}": torch.randn(options.bytes // options.tensors // 4) for i in range(options.tensors)}
    run = save if options.operation == "save" else load
    run()
    serve_turns({"bytes": options.bytes}, run)


if __name__ == "__main__":
    main()
