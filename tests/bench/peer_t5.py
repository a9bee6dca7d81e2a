"""The peer of the CPU step benchmark: the same encoder-decoder in plain PyTorch.

Runs the first training step, prints one line of JSON, then runs one step for each line of standard
input and prints its seconds; at the end of input it prints a summary. With --describe it prints
the size of the model and the arithmetic of a step, as PyTorch counts it, and ends.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH: Final = 512
LAYERS: Final = 6
HEADS: Final = 8
HEAD_SIZE: Final = 64
FEED_FORWARD: Final = 2048
VOCABULARY: Final = 32128
BUCKETS: Final = 32
MAX_DISTANCE: Final = 128
BATCH: Final = 4
INPUT_LENGTH: Final = 512
TARGET_LENGTH: Final = 114

Batch = tuple[Tensor, Tensor, Tensor]


class RMSNorm(nn.Module):
    """T5's norm: no mean, no bias, statistics in fp32."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        inverse = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        return (x * inverse).to(x.dtype) * self.scale.to(x.dtype)


class Attention(nn.Module):
    """Multi-head attention without 1/sqrt(head size), as in T5."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        inner = HEADS * HEAD_SIZE
        self.query = nn.Linear(WIDTH, inner, bias=False)
        self.key = nn.Linear(WIDTH, inner, bias=False)
        self.value = nn.Linear(WIDTH, inner, bias=False)
        self.output = nn.Linear(inner, WIDTH, bias=False)
        self.fused = fused
        nn.init.normal_(self.query.weight, std=(WIDTH * HEAD_SIZE) ** -0.5)
        for linear in (self.key, self.value, self.output):
            nn.init.normal_(linear.weight, std=WIDTH**-0.5)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        def heads(rows: Tensor) -> Tensor:
            return rows.unflatten(-1, (HEADS, HEAD_SIZE)).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(memory)), heads(self.value(memory))
        if self.fused:
            mask = None if bias is None else bias.to(query.dtype)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, scale=1.0
            )
        else:
            scores = query @ key.transpose(2, 3)
            if bias is not None:
                scores = scores + bias
            mixed = torch.softmax(scores.float(), -1).to(value.dtype) @ value
        return self.output(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.output = nn.Linear(FEED_FORWARD, WIDTH, bias=False)
        nn.init.normal_(self.input.weight, std=WIDTH**-0.5)
        nn.init.normal_(self.output.weight, std=FEED_FORWARD**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(functional.relu(self.input(x)))


class Layer(nn.Module):
    """Norms before each part; `cross` adds attention to the encoder's output."""

    def __init__(self, cross: bool, attention: str) -> None:
        super().__init__()
        self.mixer_norm = RMSNorm()
        self.mixer = Attention(attention == "fused")
        self.cross_norm = RMSNorm() if cross else None
        self.cross = Attention(attention != "plain") if cross else None
        self.feed_forward_norm = RMSNorm()
        self.feed_forward = FeedForward()

    def forward(self, x: Tensor, bias: Tensor, memory: Tensor | None) -> Tensor:
        normed = self.mixer_norm(x)
        x = x + self.mixer(normed, normed, bias)
        if self.cross is not None and self.cross_norm is not None and memory is not None:
            x = x + self.cross(self.cross_norm(x), memory, None)
        return x + self.feed_forward(self.feed_forward_norm(x))


def bucket_table(length: int, bidirectional: bool) -> Tensor:
    """T5's bucket of each offset key - query, [length, length]."""
    offset = torch.arange(length)[None, :] - torch.arange(length)[:, None]
    buckets = BUCKETS // 2 if bidirectional else BUCKETS
    base = (offset > 0).long() * buckets if bidirectional else torch.zeros_like(offset)
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    exact = buckets // 2
    steps = torch.log(distance.clamp(min=1).double() / exact) / math.log(MAX_DISTANCE / exact)
    far = exact + (steps * (buckets - exact)).long()
    return base + torch.where(distance < exact, distance, far.clamp(max=buckets - 1))


class Stack(nn.Module):
    """Layers, the relative bias that they share, and the last norm."""

    def __init__(self, length: int, decoder: bool, attention: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(decoder, attention) for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.relative_bias = nn.Embedding(BUCKETS, HEADS)
        self.register_buffer("buckets", bucket_table(length, not decoder), persistent=False)
        hidden = torch.full((length, length), float("-inf")).triu(1) if decoder else None
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x: Tensor, memory: Tensor | None) -> Tensor:
        bias = self.relative_bias(self.buckets).permute(2, 0, 1)[None]
        if self.hidden is not None:
            bias = bias + self.hidden.to(bias.dtype)
        for layer in self.layers:
            x = layer(x, bias, memory)
        return self.norm(x)


class EncoderDecoder(nn.Module):
    """Token ids to the mean cross-entropy; the embedding is also the output table."""

    def __init__(self, attention: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder = Stack(INPUT_LENGTH, decoder=False, attention=attention)
        self.decoder = Stack(TARGET_LENGTH, decoder=True, attention=attention)

    def forward(self, batch: Batch) -> Tensor:
        inputs, decoder_inputs, targets = batch
        memory = self.encoder(self.embedding(inputs), None)
        hidden = self.decoder(self.embedding(decoder_inputs), memory) * WIDTH**-0.5
        logits = functional.linear(hidden, self.embedding.weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Trainer:
    """The model, its optimizer and one batch of random tokens.

    Precision: "fp32"; "bf16", autocast over fp32 parameters; "bf16_master", a bf16 model whose
    gradients update an fp32 copy of its parameters.
    """

    def __init__(self, precision: str, attention: str, compiled: bool) -> None:
        torch.manual_seed(0)
        self.model = EncoderDecoder(attention)
        self.masters: list[nn.Parameter] | None = None
        if precision == "bf16_master":
            self.masters = [
                nn.Parameter(parameter.detach().clone()) for parameter in self.model.parameters()
            ]
            self.model.bfloat16()
        self.autocast = precision == "bf16"
        trained = list(self.model.parameters()) if self.masters is None else self.masters
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, fused=True)
        self.loss = torch.compile(self.model, dynamic=False) if compiled else self.model
        self.batch: Batch = (
            torch.randint(2, VOCABULARY, (BATCH, INPUT_LENGTH)),
            torch.randint(2, VOCABULARY, (BATCH, TARGET_LENGTH)),
            torch.randint(2, VOCABULARY, (BATCH, TARGET_LENGTH)),
        )

    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def differentiate(self) -> Tensor:
        scope: AbstractContextManager[object] = (
            torch.autocast("cpu", torch.bfloat16) if self.autocast else nullcontext()
        )
        with scope:
            loss: Tensor = self.loss(self.batch)
        loss.backward()
        return loss

    def step(self) -> float:
        """Runs one step; returns the loss, which also waits for it."""
        self.model.zero_grad(set_to_none=True)
        loss = self.differentiate()
        if self.masters is None:
            self.optimizer.step()
            return loss.item()
        parameters = list(self.model.parameters())
        for master, parameter in zip(self.masters, parameters, strict=True):
            master.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, self.masters)  # noqa: SLF001, no public name
        return loss.item()


def describe() -> dict[str, int]:
    """Parameters and FLOPs of a step (the forward's products and twice as many backward)."""
    # Not at the top: it would count as the start-up time of a training step.
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    trainer = Trainer("fp32", "plain", compiled=False)
    with FlopCounterMode(display=False) as counter:
        trainer.differentiate()
    return {"parameters": trainer.parameters(), "flops": counter.get_total_flops()}


def print_line(value: object) -> None:
    print(json.dumps(value), flush=True)


def timed_steps(trainer: Trainer) -> Iterator[float]:
    """Runs a step for each line of standard input."""
    for _ in sys.stdin:
        start = time.perf_counter()
        trainer.step()
        yield time.perf_counter() - start


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
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    parser.add_argument("--describe", action="store_true", help="print sizes and end")
    options = parser.parse_args()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    if options.describe:
        print_line(describe())
        return
    trainer = Trainer(options.precision, options.attention, options.compile)
    trainer.step()
    print_line(
        {
            "ready": True,
            "threads": torch.get_num_threads(),
            "parameters": trainer.parameters(),
            "torch": torch.__version__,
        }
    )
    seconds: list[float] = []
    for step in timed_steps(trainer):
        seconds.append(step)
        print_line({"seconds": step})
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print_line({"seconds": seconds, "peak_resident_bytes": peak})


if __name__ == "__main__":
    main()
