# SPDX-License-Identifier: Apache-2.0
"""How PyTorch computes attention as trainings call it: the cases with segments of gpu_kernel_bench.cc.

An operand has the shape that the product's kernel gives it, and parameters are fp32. A peer maps operands to
[B, H, T, K]. Segments are numbers from 1 on, 0 is padding: a query reads the keys of its own segment. What follows from
the segments alone ("allowed") is an operand, since all layers share it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

FACTOR_A: Final = 32  # columns of the first factor of factorized dense scores
PARAMETERS: Final = ("table", "bias", "positions")

Operands = Mapping[str, Tensor]
Peer = Callable[[Operands], Tensor]


@dataclasses.dataclass(frozen=True)
class Case:
    """Attention of `queries` positions to `keys`. `scores`: the operands that they are made of."""

    name: str
    scores: tuple[str, ...]
    queries: int
    keys: int
    causal: bool = False

    def shapes(self, batch: int, heads: int, head_size: int) -> dict[str, tuple[int, ...]]:
        """Of all operands but the segments."""
        columns = math.ceil(self.keys / FACTOR_A)
        all_shapes = {
            "query": (batch, heads, self.queries, head_size),
            "key": (batch, heads, self.keys, head_size),
            "u": (batch, heads, self.queries, head_size),
            "positions": (head_size, self.keys),
            "a": (batch, heads, self.queries, FACTOR_A),
            "b": (batch, heads, self.queries, columns),
            "table": (heads, self.queries, self.keys),
            "bias": (heads, self.queries + self.keys - 1),
        }
        chosen = {name: all_shapes[name] for name in self.scores}
        return {**chosen, "value": (batch, heads, self.keys, head_size)}

    def flops(self, batch: int, heads: int, head_size: int) -> float:
        """Of the products of pairs that are allowed, forward and, twice as many, backward."""
        pairs = self.queries * (self.queries + 1) / 2 if self.causal else self.queries * self.keys
        width = head_size * (1 + ("query" in self.scores) + ("u" in self.scores)) + ("a" in self.scores)
        return 3 * 2.0 * batch * heads * pairs * width

    def forward_bytes(self, batch: int, heads: int, head_size: int) -> float:
        """Of every operand and result once: bf16, but parameters, segments and log-sum-exp of 4 bytes."""
        total = 4 * batch * (self.queries + self.keys) + 4 * batch * heads * self.queries
        total += 2 * batch * heads * self.queries * head_size
        for name, shape in self.shapes(batch, heads, head_size).items():
            total += (4 if name in PARAMETERS else 2) * math.prod(shape)
        return float(total)

    def peers(self) -> dict[str, Peer]:
        """All that can compute it, besides SDPA (`fused`), which has several backends."""
        peers: dict[str, Peer] = {"plain": self.plain}
        if "query" in self.scores or "u" in self.scores:
            peers["flex"] = self.flex(flex_attention)
        if not {"query", "u", "a"} & set(self.scores):
            peers["shared weights"] = self.with_shared_weights
        return peers

    # --- the peers ---

    def plain(self, operands: Operands) -> Tensor:
        value = operands["value"]
        scores = self._shared_scores(operands, value.dtype)
        if "query" in operands or "u" in operands:
            query, key = dot_product_of(operands)
            scores = scores + query @ key.transpose(2, 3)
        if "a" in operands:
            a, b = operands["a"], operands["b"]
            scores = scores + (b[..., :, None] * a[..., None, :]).flatten(-2)[..., : self.keys]
        scores = scores.masked_fill(~operands["allowed"], float("-inf"))
        return torch.softmax(scores.float(), -1).to(value.dtype) @ value

    def fused(self, operands: Operands) -> Tensor:
        """SDPA, of queries and keys alone."""
        value = operands["value"]
        query, key = dot_product_of(operands)
        mask = operands["allowed"]
        if "table" in operands or "bias" in operands:
            hidden = torch.zeros_like(mask, dtype=value.dtype).masked_fill(~mask, float("-inf"))
            mask = self._shared_scores(operands, value.dtype) + hidden
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)

    def flex(self, attend: Callable[..., Any]) -> Peer:
        """By FlexAttention, compiled or not. Its blocks of what is allowed are made at the first call."""
        masks: list[Any] = []

        def peer(operands: Operands) -> Tensor:
            query, key = dot_product_of(operands)

            def score(s: Tensor, _: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
                if "table" in operands:
                    s = s + operands["table"][h, q, k]
                if "bias" in operands:
                    s = s + operands["bias"][h, k - q + self.queries - 1]
                return s

            if not masks:
                masks.append(self._blocks(operands["allowed"]))
            mixed: Tensor = attend(
                query, key, operands["value"], score_mod=score, block_mask=masks[0], scale=1.0
            )
            return mixed

        return peer

    def _blocks(self, allowed: Tensor) -> Any:
        def is_allowed(b: Tensor, _: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return allowed[b, 0, q, k]

        return create_block_mask(
            is_allowed, len(allowed), None, self.queries, self.keys, device=str(allowed.device)
        )

    def with_shared_weights(self, operands: Operands) -> Tensor:
        """Scores without an example's own part: exponentiated once, and each example's padding left out of
        their sums. Not for packed rows."""
        value = operands["value"]
        scores = self._shared_scores(operands, torch.float32)[0]
        if self.causal:
            order = torch.ones(self.queries, self.keys, dtype=torch.bool, device=value.device).tril()
            scores = scores.masked_fill(~order, float("-inf"))
        weights = torch.exp(scores - scores.amax(-1, keepdim=True)).to(value.dtype)
        there = (operands["key_segments"] != 0).to(value.dtype)
        sums = torch.einsum("hij,bj->bhi", weights, there)
        mixed = torch.einsum("hij,bhjk->bhik", weights, value * there[:, None, :, None])
        return mixed / sums[..., None]

    # --- what they share ---

    def allowed(self, query_segments: Tensor, key_segments: Tensor) -> Tensor:
        """[B, 1, T, S], of [B, T] and [B, S]."""
        rows = query_segments[:, None, :, None]
        same = (rows == key_segments[:, None, None, :]) & (rows != 0)
        return same.tril() if self.causal else same

    def _shared_scores(self, operands: Operands, dtype: torch.dtype) -> Tensor:
        """Table and relative bias, [1, H, T, S], or a zero."""
        scores = torch.zeros((), dtype=dtype, device=operands["value"].device)
        if "table" in operands:
            scores = scores + operands["table"].to(dtype)[None]
        if "bias" in operands:
            # Row i of the windows begins at offset i; that of query i at T - 1 - i.
            windows = operands["bias"].to(dtype).unfold(-1, self.keys, 1)
            scores = scores + windows.flip(1)[None]
        return scores


def dot_product_of(operands: Operands) -> tuple[Tensor, Tensor]:
    """Queries and keys; those of dense scores are u, and for all rows and heads the positions."""
    if "query" in operands:
        return operands["query"], operands["key"]
    u, positions = operands["u"], operands["positions"]
    keys = positions.to(u.dtype).transpose(0, 1)
    return u, keys.expand(*u.shape[:2], *keys.shape)


def cases(length: int) -> tuple[Case, ...]:
    """Those of gpu_kernel_bench.cc whose rows have segments, in its order."""
    targets = length * 114 // 512
    dot_product, dense = ("query", "key", "bias"), ("u", "positions", "bias")
    return (
        Case("encoder's dot product", dot_product, length, length),
        Case("encoder's random", ("table", "bias"), length, length),
        Case("encoder's random and dot product", ("query", "key", "table", "bias"), length, length),
        Case("encoder's dense", dense, length, length),
        Case("encoder's factorized dense", ("a", "b", "bias"), length, length),
        Case("decoder's dot product", dot_product, targets, targets, causal=True),
        Case("decoder's random", ("table", "bias"), targets, targets, causal=True),
        Case("decoder's dense", dense, targets, targets, causal=True),
        Case("decoder's factorized dense", ("a", "b", "bias"), targets, targets, causal=True),
        Case("cross-attention", ("query", "key"), targets, length),
    )
