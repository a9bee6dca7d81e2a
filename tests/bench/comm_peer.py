# SPDX-License-Identifier: Apache-2.0
"""Sums of a vector over ranks by Gloo: prints a line of JSON for each size, with the seconds of each turn."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

from measuring import end_on_sigterm
from peer import print_line


def run(rank: int, ranks: int, meeting: str, megabytes: list[int], turns: int) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    for size in megabytes:
        vector = torch.empty(size * 1_000_000 // 4)
        times = []
        for turn in range(-1, turns):  # the first one warms up
            vector.fill_(1 + rank)
            distributed.barrier()
            begin = time.perf_counter()
            distributed.all_reduce(vector)
            seconds = torch.tensor([time.perf_counter() - begin])
            distributed.all_reduce(seconds, distributed.ReduceOp.MAX)
            if not bool((vector == ranks * (ranks + 1) // 2).all()):
                sys.exit("a sum over the ranks is wrong")
            if turn >= 0:
                times.append(float(seconds))
        if rank == 0:
            print_line({"megabytes": size, "seconds": {"gloo": times}})
    distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description="Sums of a vector over ranks by Gloo.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"{folder}/meeting"
        arguments = (options.ranks, meeting, options.megabytes, options.turns)
        multiprocessing.spawn(run, arguments, nprocs=options.ranks)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
