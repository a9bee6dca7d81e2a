# SPDX-License-Identifier: Apache-2.0
"""The peer of the ranks benchmark: PyTorch's DistributedDataParallel over Gloo, one thread a rank.

Prints a line of JSON with the seconds of each step of rank 0, which waits for the others in every step.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

from measuring import end_on_sigterm
from peer import print_line
from plain_t5 import SIZES, EncoderDecoder, Trainer, random_batch


def run(rank: int, ranks: int, meeting: str, rows: int, steps: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    sizes = dataclasses.replace(SIZES["small"], batch=rows)
    model: torch.nn.Module = EncoderDecoder(sizes, "plain")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if ranks > 1:
        distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    trainer = Trainer(model, "fp32", compiled=False, device="cpu")
    batch = random_batch(sizes)
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        trainer.step(batch)
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        print_line({"parameters": parameters, "seconds": seconds})
    if ranks > 1:
        distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description="DistributedDataParallel over Gloo.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4, help="of each rank")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options.ranks, f"{folder}/meeting", options.rows, options.steps)
        multiprocessing.spawn(run, arguments, nprocs=options.ranks)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
