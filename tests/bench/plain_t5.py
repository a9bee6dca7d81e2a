# SPDX-License-Identifier: Apache-2.0
"""The peer's model: T5's encoder-decoder and a training step of it in plain PyTorch."""

from __future__ import annotations

import dataclasses
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

BUCKETS: Final = 32
MAX_DISTANCE: Final = 128
TABLE_EXTENTS: Final = (512, 114)  # of the encoder's and the decoder's scores in configs/base_random.textproto

Batch = tuple[Tensor, Tensor, Tensor]  # inputs, decoder inputs, targets


@dataclasses.dataclass(frozen=True)
class Sizes:
    width: int
    layers: int  # of the encoder, and of the decoder
    heads: int
    head_size: int
    feed_forward: int
    batch: int
    input_length: int = 512
    target_length: int = 114
    vocabulary: int = 32128
    dropout: float = 0.0  # of embeddings, attention's weights, hidden values, outputs of parts and of the last norm


SIZES: Final = {
    "small": Sizes(512, 6, 8, 64, 2048, batch=4),
    "base": Sizes(768, 12, 12, 64, 3072, batch=128),
    # configs/tiny.textproto: shows on any machine that everything runs.
    "tiny": Sizes(64, 2, 2, 16, 128, batch=4, input_length=64, target_length=14),
}


class RMSNorm(nn.Module):
    """T5's norm: no mean, no bias, statistics in fp32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        inverse = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        normed: Tensor = (x * inverse).to(x.dtype) * self.scale.to(x.dtype)
        return normed


class Attention(nn.Module):
    """Multi-head attention without 1/sqrt(head size), as in T5."""

    def __init__(self, sizes: Sizes, fused: bool) -> None:
        super().__init__()
        width, inner = sizes.width, sizes.heads * sizes.head_size
        self.query = nn.Linear(width, inner, bias=False)
        self.key = nn.Linear(width, inner, bias=False)
        self.value = nn.Linear(width, inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.heads = (sizes.heads, sizes.head_size)
        self.dropout = sizes.dropout
        self.fused = fused
        nn.init.normal_(self.query.weight, std=(width * sizes.head_size) ** -0.5)
        for linear in (self.key, self.value, self.output):
            nn.init.normal_(linear.weight, std=width**-0.5)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        def heads(rows: Tensor) -> Tensor:
            return rows.view(*rows.shape[:2], *self.heads).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(memory)), heads(self.value(memory))
        if self.fused:
            mask = None if bias is None else bias.to(query.dtype)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=self.dropout, scale=1.0
            )
        else:
            scores = query @ key.transpose(2, 3)
            if bias is not None:
                scores = scores + bias
            weights = torch.softmax(scores.float(), -1).to(value.dtype)
            mixed = functional.dropout(weights, self.dropout) @ value
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output


class RandomAttention(nn.Module):
    """Random Synthesizer: a table of scores that all examples share, of which rows of `length` use
    the top left; no queries, no keys."""

    def __init__(self, sizes: Sizes, length: int, extent: int) -> None:
        super().__init__()
        width, inner = sizes.width, sizes.heads * sizes.head_size
        self.table = nn.Parameter(torch.empty(sizes.heads, extent, extent))
        self.length = length
        self.value = nn.Linear(width, inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.heads = (sizes.heads, sizes.head_size)
        nn.init.uniform_(self.table, -0.005, 0.005)
        for linear in (self.value, self.output):
            nn.init.normal_(linear.weight, std=width**-0.5)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        value = self.value(memory).view(*memory.shape[:2], *self.heads)
        scores = self.table[:, : self.length, : self.length]
        if bias is not None:
            scores = scores + bias[0]
        weights = torch.softmax(scores.float(), -1).to(value.dtype)
        output: Tensor = self.output(torch.einsum("hij,bjhk->bihk", weights, value).flatten(2))
        return output


class FeedForward(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.dropout = sizes.dropout
        self.input = nn.Linear(sizes.width, sizes.feed_forward, bias=False)
        self.output = nn.Linear(sizes.feed_forward, sizes.width, bias=False)
        nn.init.normal_(self.input.weight, std=sizes.width**-0.5)
        nn.init.normal_(self.output.weight, std=sizes.feed_forward**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.dropout(functional.relu(self.input(x)), self.dropout)
        output: Tensor = self.output(hidden)
        return output


class Layer(nn.Module):
    """Norms before each part; `cross` adds attention to the encoder's output."""

    def __init__(self, sizes: Sizes, cross: bool, mixer: nn.Module, attention: str) -> None:
        super().__init__()
        self.dropout = sizes.dropout
        self.mixer_norm = RMSNorm(sizes.width)
        self.mixer = mixer
        self.cross_norm = RMSNorm(sizes.width) if cross else None
        self.cross = Attention(sizes, attention != "plain") if cross else None
        self.feed_forward_norm = RMSNorm(sizes.width)
        self.feed_forward = FeedForward(sizes)

    def forward(
        self, x: Tensor, bias: Tensor, memory: Tensor | None, memory_bias: Tensor | None
    ) -> Tensor:
        normed = self.mixer_norm(x)
        x = x + functional.dropout(self.mixer(normed, normed, bias), self.dropout)
        if self.cross is not None and self.cross_norm is not None and memory is not None:
            crossed = self.cross(self.cross_norm(x), memory, memory_bias)
            x = x + functional.dropout(crossed, self.dropout)
        fed = self.feed_forward(self.feed_forward_norm(x))
        output: Tensor = x + functional.dropout(fed, self.dropout)
        return output


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

    def __init__(
        self, sizes: Sizes, length: int, decoder: bool, attention: str, random: bool
    ) -> None:
        super().__init__()

        def mixer() -> nn.Module:
            if random:
                return RandomAttention(sizes, length, TABLE_EXTENTS[decoder])
            return Attention(sizes, attention == "fused")

        self.layers = nn.ModuleList(
            Layer(sizes, decoder, mixer(), attention) for _ in range(sizes.layers)
        )
        self.dropout = sizes.dropout
        self.norm = RMSNorm(sizes.width)
        self.relative_bias = nn.Embedding(BUCKETS, sizes.heads)
        self.register_buffer("buckets", bucket_table(length, not decoder), persistent=False)
        hidden = torch.full((length, length), float("-inf")).triu(1) if decoder else None
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        own_bias: Tensor | None = None,
        memory_bias: Tensor | None = None,
    ) -> Tensor:
        # Some of SDPA's backends take no bias whose rows are not contiguous.
        bias = self.relative_bias(self.buckets).permute(2, 0, 1).contiguous()[None]
        if self.hidden is not None:
            bias = bias + self.hidden.to(bias.dtype)
        if own_bias is not None:
            bias = bias + own_bias
        x = functional.dropout(x, self.dropout)
        for layer in self.layers:
            x = layer(x, bias, memory, memory_bias)
        output: Tensor = functional.dropout(self.norm(x), self.dropout)
        return output


class EncoderDecoder(nn.Module):
    """Token ids to the mean cross-entropy; the embedding is also the output table.

    Attention: "plain", products and softmax; "fused_cross", SDPA where there is no bias; "fused",
    SDPA everywhere. `random`: self-attention of the Random Synthesizer. Targets of 0 do not count;
    with `padded`, nothing attends to inputs of 0.
    """

    def __init__(
        self, sizes: Sizes, attention: str, random: bool = False, padded: bool = False
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.padded = padded
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.encoder = Stack(sizes, sizes.input_length, False, attention, random)
        self.decoder = Stack(sizes, sizes.target_length, True, attention, random)

    def forward(self, batch: Batch) -> Tensor:
        inputs, decoder_inputs, targets = batch
        hide = None
        if self.padded:
            hide = torch.zeros_like(inputs, dtype=torch.float32)
            hide = hide.masked_fill(inputs == 0, float("-inf"))[:, None, None, :]
        memory = self.encoder(self.embedding(inputs), None, own_bias=hide)
        hidden = self.decoder(self.embedding(decoder_inputs), memory, memory_bias=hide)
        hidden = hidden * self.sizes.width**-0.5
        logits = functional.linear(hidden, self.embedding.weight)
        return functional.cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), ignore_index=0
        )


def random_batch(sizes: Sizes) -> Batch:
    def tokens(length: int) -> Tensor:
        return torch.randint(2, sizes.vocabulary, (sizes.batch, length))

    return tokens(sizes.input_length), tokens(sizes.target_length), tokens(sizes.target_length)


class Trainer:
    """A model that maps a batch to its loss, its AdamW, and training steps.

    Precision: "fp32"; "bf16", autocast over fp32 parameters; "bf16_master", a bf16 model whose
    gradients update an fp32 copy of its parameters.
    """

    def __init__(self, model: nn.Module, precision: str, compiled: bool, device: str) -> None:
        self.model = model.to(device)
        self.masters: list[Tensor] | None = None
        if precision == "bf16_master":
            self.masters = [
                nn.Parameter(parameter.detach().clone()) for parameter in self.model.parameters()
            ]
            self.model.bfloat16()
        self.autocast = precision == "bf16"
        self.device = device
        trained = list(self.model.parameters()) if self.masters is None else self.masters
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, fused=True)
        self.loss = torch.compile(self.model, dynamic=False) if compiled else self.model

    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def differentiate(self, batch: Batch) -> Tensor:
        scope: AbstractContextManager[object] = (
            torch.autocast(self.device, torch.bfloat16) if self.autocast else nullcontext()
        )
        with scope:
            loss: Tensor = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    def step(self, batch: Batch) -> Tensor:
        """Runs one step; returns the loss."""
        self.model.zero_grad(set_to_none=True)
        loss = self.differentiate(batch)
        if self.masters is None:
            self.optimizer.step()
            return loss.detach()
        parameters: list[Tensor] = list(self.model.parameters())
        for master, parameter in zip(self.masters, parameters, strict=True):
            master.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, self.masters)  # noqa: SLF001, no public name
        return loss.detach()


def describe(model: nn.Module, batch: Batch) -> dict[str, int]:
    """Parameters and FLOPs of a step (the forward's products and twice as many backward)."""
    # Not at the top: it would count as the start-up time of a training step.
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    with FlopCounterMode(display=False) as counter:
        model(batch).backward()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "flops": counter.get_total_flops()}
