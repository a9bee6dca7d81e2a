# SPDX-License-Identifier: Apache-2.0
"""The peers' side of a benchmark: a program that takes a turn for each line of standard input (Stepper in measuring.py)."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def print_line(value: object) -> None:
    print(json.dumps(value), flush=True)


def peak_bytes() -> int:
    """The largest resident memory of this process so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Clock:
    """Seconds since it was made, and what this process used of processors meanwhile."""

    def __init__(self) -> None:
        self.start, self.used = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self.start,
            "processor_seconds": time.process_time() - self.used,
        }


def serve_turns(
    ready: Mapping[str, Any],
    turn: Callable[[], object],
    steps: int = 1,
    summary: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Prints `ready`, what each turn took (the mean of its `steps`), and at the end of input the summary."""
    print_line(ready)
    for _ in sys.stdin:
        clock = Clock()
        turn()
        print_line({name: seconds / steps for name, seconds in clock.read().items()})
    print_line({**summary(), "peak_resident_bytes": peak_bytes()})
