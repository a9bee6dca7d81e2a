# SPDX-License-Identifier: Apache-2.0
"""The peer of the CPU step benchmark: the same encoder-decoder in plain PyTorch.

Runs the first training step and prints one line of JSON. Then it runs one step for each line of
standard input and prints its seconds. At the end of input it prints a summary. With --describe it
only prints the number of parameters and the FLOPs of a step, as PyTorch counts them.
"""

from __future__ import annotations

import argparse
import dataclasses

import torch

from peer import print_line, serve_turns
from plain_t5 import SIZES, EncoderDecoder, Trainer, describe, random_batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("fp32", "bf16", "bf16_master"), default="fp32")
    parser.add_argument(
        "--attention",
        choices=("plain", "fused_cross", "fused"),
        default="plain",
        help="products and softmax; SDPA where there is no bias; SDPA everywhere",
    )
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--batch", type=int, default=4, help="rows of a batch")
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    parser.add_argument("--describe", action="store_true", help="print sizes and end")
    options = parser.parse_args()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    sizes = dataclasses.replace(SIZES[options.size], batch=options.batch)
    if options.describe:
        print_line(describe(EncoderDecoder(sizes, "plain"), random_batch(sizes)))
        return
    model = EncoderDecoder(sizes, options.attention)
    trainer = Trainer(model, options.precision, options.compile, "cpu")
    batch = random_batch(sizes)
    trainer.step(batch)
    ready = {
        "ready": True,
        "threads": torch.get_num_threads(),
        "parameters": trainer.parameters(),
        "torch": torch.__version__,
    }
    serve_turns(ready, lambda: trainer.step(batch))


if __name__ == "__main__":
    main()
