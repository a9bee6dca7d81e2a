# SPDX-License-Identifier: Apache-2.0
"""The peer of the GPU step benchmark: the same model in PyTorch, which runs steps on demand.

Runs the first training step and prints one line of JSON. Then, for each line of standard input, it
runs --steps steps and prints their mean seconds. At the end of input it prints a summary. With
--describe it only prints the number of parameters and the FLOPs of a step; that needs no GPU.

Implementations: "hugging_face", transformers' T5 with SDPA; "plain", the same model in plain
PyTorch; "plain_random", its Random Synthesizer, whose weights are computed once for all examples.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Final

import torch
from torch import Tensor, nn

from peer import print_line, serve_turns
from plain_t5 import SIZES, Batch, EncoderDecoder, Sizes, Trainer, describe, random_batch

IMPLEMENTATIONS: Final = ("hugging_face", "plain", "plain_random")


class HuggingFaceT5(nn.Module):
    """Token ids to the mean cross-entropy, by transformers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        from transformers import AutoModelForSeq2SeqLM, T5Config  # noqa: PLC0415, optional

        config = T5Config(
            vocab_size=sizes.vocabulary,
            d_model=sizes.width,
            d_kv=sizes.head_size,
            d_ff=sizes.feed_forward,
            num_layers=sizes.layers,
            num_decoder_layers=sizes.layers,
            num_heads=sizes.heads,
            dropout_rate=sizes.dropout,
            feed_forward_proj="relu",
            use_cache=False,
        )
        try:
            self.attention = "sdpa"
            self.model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="sdpa")
        except ValueError:  # older releases of transformers have no SDPA for T5
            self.attention = "eager"
            self.model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")
        self.model.train()

    def forward(self, batch: Batch) -> Tensor:
        inputs, decoder_inputs, targets = batch
        loss: Tensor = self.model(
            input_ids=inputs, decoder_input_ids=decoder_inputs, labels=targets, use_cache=False
        ).loss
        return loss


def make_model(implementation: str, sizes: Sizes, attention: str) -> nn.Module:
    if implementation == "hugging_face":
        return HuggingFaceT5(sizes)
    return EncoderDecoder(sizes, attention, random=implementation == "plain_random")


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def device_memory(device: str) -> dict[str, int]:
    if device != "cuda":
        return {}
    return {
        "peak_device_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def serve(options: argparse.Namespace, sizes: Sizes) -> None:
    torch.manual_seed(0)
    with torch.device(options.device):
        model = make_model(options.implementation, sizes, options.attention)
        batch = random_batch(sizes)
    trainer = Trainer(model, options.precision, options.compile, options.device)
    trainer.step(batch)
    synchronize(options.device)
    facts = {"torch": torch.__version__, "parameters": trainer.parameters()}
    if isinstance(model, HuggingFaceT5):
        import transformers  # noqa: PLC0415, optional

        facts |= {"transformers": transformers.__version__, "attention": model.attention}

    def turn() -> None:
        for _ in range(options.steps):
            trainer.step(batch)
        synchronize(options.device)

    serve_turns({"ready": True, **facts}, turn, options.steps, lambda: device_memory(options.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--implementation", choices=IMPLEMENTATIONS, default="hugging_face")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="base")
    parser.add_argument("--batch", type=int, default=0, help="0: that of the sizes")
    parser.add_argument("--dropout", type=float, default=0.0, help="rate; not of plain_random")
    parser.add_argument("--precision", choices=("fp32", "bf16", "bf16_master"), default="bf16")
    parser.add_argument(
        "--attention",
        choices=("plain", "fused_cross", "fused"),
        default="fused",
        help="of the plain implementation: SDPA nowhere, where there is no bias, everywhere",
    )
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--steps", type=int, default=1, help="steps for each line of input")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--describe", action="store_true", help="print sizes and end")
    options = parser.parse_args()
    sizes = dataclasses.replace(SIZES[options.sizes], dropout=options.dropout)
    if options.batch > 0:
        sizes = dataclasses.replace(sizes, batch=options.batch)
    if options.describe:
        with torch.device("meta"):
            model = make_model(options.implementation, sizes, "plain")
            print_line(describe(model, random_batch(sizes)))
        return
    serve(options, sizes)


if __name__ == "__main__":
    main()
