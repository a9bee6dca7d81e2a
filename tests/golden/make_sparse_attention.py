# SPDX-License-Identifier: Apache-2.0
"""Attention in which a query reads only some keys, as a matrix of all scores of which most are masked.

Local attention (sliding windows, dilation and global tokens of Beltagy et al. 2020) and BigBird (Zaheer et al. 2020)
by a rule for each pair of positions; Sinkhorn attention (Tay et al. 2020) block by block over what is not padding;
Reformer (Kitaev et al. 2020) by a mask for each round. A case's rows hold two packed examples, or one and padding.
Most are held to packages: local-attention, transformers, sinkhorn-transformer, reformer-pytorch. With dropout, all
queries of a head drop the same keys; of Sinkhorn's sorted keys, what they are mixed from.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import packages
from fixture import Array, Fixture, output_directory, rounded
from mixer_fixture import KEYS, Layer, Tensors, hold_to_package, write_layer
from philox import keeps, open_uniform, philox

BATCH, WIDTH, LENGTH, HEADS, HEAD_SIZE = 2, 12, 11, 3, 4
INNER = HEADS * HEAD_SIZE
PACKED = np.array([[1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]])
PADDED = np.array([[1] * LENGTH, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]])

# y [T, D] of a row x [T, D] with these segments.
Row = Callable[[Tensors, torch.Tensor, np.ndarray], torch.Tensor]
Shapes = dict[str, tuple[int, ...]]
GLOBAL = ("query", "key", "value")
PROJECTIONS: Shapes = dict.fromkeys(("query", "key", "value"), (WIDTH, INNER)) | {"output": (INNER, WIDTH)}


@dataclass(frozen=True)
class Case:
    name: str
    settings: str  # text-proto of the mixer, without heads
    row: Row
    shapes: Shapes
    causal: bool = False
    bias: bool = False
    packed: bool = True
    frozen: tuple[str, ...] = ()
    package: Row | None = None
    multiple: int = 1  # of positions that the package takes
    trains: bool = False

    def text_proto(self) -> str:
        kind, _, fields = self.settings.partition(" ")
        return f"width: {WIDTH}\nmixer {{ {kind} {{ heads: {HEADS} head_size: {HEAD_SIZE} {fields} }} }}\n"

    def segments(self) -> np.ndarray:
        return PACKED if self.packed else PADDED


def heads_of(x: torch.Tensor) -> torch.Tensor:
    """[T, H * K] as [H, T, K]."""
    return x.unflatten(-1, (HEADS, -1)).transpose(0, 1)


def key_of(segments: np.ndarray) -> tuple[int, int]:
    """Of the row with these segments: the second one has padding."""
    return KEYS[int((segments == 0).any())]


def kept(rate: float, segments: np.ndarray, site: int = 0) -> torch.Tensor:
    """[H, T]: the factors of dropout of each head's keys."""
    drawn = [[keeps(key_of(segments), j * HEADS + head, site, rate) for j in range(LENGTH)] for head in range(HEADS)]
    return torch.tensor(drawn, dtype=torch.float64) / (1 - rate)


def attend(scores: torch.Tensor, reads: np.ndarray, value: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """[H, T, K], zero for queries that read nothing; `reads` [H or 1, T, T]; the weights times `factors` [H, T]."""
    allowed = torch.from_numpy(np.broadcast_to(reads, scores.shape).copy())
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1) * factors[:, None]
    return torch.where(allowed.any(-1, keepdim=True), weights, 0) @ value


def dot_product(values: Tensors, x: torch.Tensor, reads: np.ndarray, factors: torch.Tensor,
                bias: torch.Tensor | float = 0.0) -> torch.Tensor:
    query, key, value = (heads_of(x @ values[side]) for side in ("query", "key", "value"))
    mixed = attend(query @ key.mT + bias, reads, value, factors)
    return mixed.transpose(0, 1).flatten(1) @ values["output"]


def bias_of(values: Tensors, there: bool) -> torch.Tensor | float:
    """The relative bias of all pairs, [H, T, T], if it is there."""
    i, j = np.indices((LENGTH, LENGTH))
    return values["bias"][:, j - i + LENGTH - 1] if there else 0.0


def dropout_field(rate: float) -> str:
    return f" dropout: {rate}" if rate > 0 else ""


def of_one_segment(segments: np.ndarray) -> np.ndarray:
    """[T, T]: whether two positions belong to one example."""
    return (segments[:, None] == segments) & (segments > 0)


# --- Local attention ----------------------------------------------------------------------------


def local(name: str, radius: int, dilation: int = 1, global_tokens: int = 0, bias: bool = True,
          causal: bool = False, own: bool = False, dropout: float = 0) -> Case:
    """Held to local-attention without global tokens; with them to Longformer, which has neither bias nor dilation."""
    i, j = np.indices((LENGTH, LENGTH))
    near = (np.abs(j - i) < radius * dilation) & ((j - i) % dilation == 0)
    touches_global = (i < global_tokens) | (j < global_tokens)
    window = (near | touches_global) & ((j <= i) | (not causal))

    def row(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        rows = dot_product(values, x, window & of_one_segment(segments), kept(dropout, segments), bias_of(values, bias))
        if not own:
            return rows
        of_globals = {side: values[f"global/{side}"] for side in GLOBAL} | {"output": values["output"]}
        read = dot_product(of_globals, x, ((j <= i) | (not causal)) & of_one_segment(segments),
                           kept(dropout, segments, site=1), bias_of(values, bias))
        return torch.cat([read[:global_tokens], rows[global_tokens:]])

    def package(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        if global_tokens:
            return packages.longformer(values, x, segments, HEADS, radius, global_tokens)
        return packages.local_attention(values, x, segments, HEADS, radius, dilation, causal)

    settings = f"local_attention radius: {radius} dilation: {dilation} global_tokens: {global_tokens}"
    without_package = dropout > 0 or (global_tokens and (bias or causal or dilation > 1))
    settings += f" relative_bias: {str(bias).lower()} global_projections: {str(own).lower()}" + dropout_field(dropout)
    shapes = PROJECTIONS | {f"global/{side}": PROJECTIONS[side] for side in GLOBAL if own}
    return Case(name, settings, row, shapes, causal, bias, package=None if without_package else package,
                trains=dropout > 0)


# --- BigBird, section 2 -------------------------------------------------------------------------


def head_key(name: str, head: int) -> tuple[int, int]:
    """The key of a head's random blocks in the layer of this name: FNV-1a of it, and Philox twice."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001B3 & (1 << 64) - 1
    low, high, stream, _ = philox(digest, head, (0, 0))
    return philox(0, stream, (low, high))[:2]


def big_bird(name: str, block_size: int, random_blocks: int, max_length: int, bias: bool = False,
             dropout: float = 0) -> Case:
    last = (max_length - 1) // block_size
    blocks = np.zeros((HEADS, last + 1, last + 1), bool)
    for head in range(HEADS):
        key = head_key("", head)
        for block in range(last + 1):
            reads = {0, last, block - 1, block, block + 1}
            others = sorted(set(range(last + 1)) - reads, key=lambda other: philox(other, block, key)[0])
            reads |= set(others[:random_blocks])
            blocks[head, block, [read for read in reads if 0 <= read <= last]] = True
    blocks[:, [0, last]] = True
    pairs = blocks.repeat(block_size, 1).repeat(block_size, 2)[:, :LENGTH, :LENGTH]

    def row(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        return dot_product(values, x, pairs & of_one_segment(segments), kept(dropout, segments), bias_of(values, bias))

    def package(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        return packages.big_bird(values, x, segments, block_size, blocks)

    settings = f"big_bird block_size: {block_size} random_blocks: {random_blocks} max_length: {max_length}"
    settings += f" relative_bias: {str(bias).lower()}" + dropout_field(dropout)
    return Case(name, settings, row, PROJECTIONS, bias=bias, package=None if bias or dropout > 0 else package,
                trains=dropout > 0)


# --- Sparse Sinkhorn attention, section 3 -------------------------------------------------------


def sinkhorn(name: str, block_size: int, iterations: int, temperature: float, causal: bool = False,
             noisy: bool = False, dropout: float = 0) -> Case:
    max_length = 13
    most = -(-max_length // block_size)

    def full_sorting(logits: torch.Tensor) -> torch.Tensor:
        sorting = (logits / temperature).softmax(-1) + 1e-12
        for _ in range(iterations):
            sorting = sorting / sorting.sum(-2, keepdim=True)
            sorting = sorting / sorting.sum(-1, keepdim=True)
        return sorting

    def gumbel(count: int, key: tuple[int, int]) -> torch.Tensor:
        """[H, N, most]: noise of a row's sorting, in which the block j of head h and place i has its number."""
        places = np.ndindex(HEADS, count, most)
        draws = [open_uniform(key, (h * most + i) * most + j, 0) for h, i, j in places]
        return -torch.log(-torch.log(torch.tensor(draws, dtype=torch.float64))).unflatten(0, (HEADS, count, most))

    def causal_sorting(logits: torch.Tensor) -> torch.Tensor:
        """Row by row, each from those before: `above` holds, for each iteration, the sums of the columns so far."""
        count = logits.shape[1]
        above = [torch.zeros(HEADS, 0, dtype=torch.float64)] * iterations
        rows = [torch.zeros(HEADS, count, dtype=torch.float64)]
        for i in range(1, count):
            weights = (logits[:, i, :i] / temperature).softmax(-1) + 1e-12
            for step, sums in enumerate(above):
                above[step] = functional.pad(sums, (0, 1)) + weights
                weights = weights / above[step]
                weights = weights / weights.sum(-1, keepdim=True)
            rows.append(functional.pad(weights, (0, count - i)))
        return torch.stack(rows, 1)

    def row(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        """Blocks of what is not padding; the last may be shorter."""
        blocks = x[:int((segments > 0).sum())].split(block_size)
        sums = [block.sum(0) for block in blocks]
        if causal:
            sums = [sum(sums[:i], torch.zeros(WIDTH, dtype=torch.float64)) for i in range(len(sums))]
        logits = (torch.stack(sums) @ values["sorting"]).unflatten(-1, (HEADS, most)).transpose(0, 1)
        if noisy:
            logits = logits + gumbel(len(blocks), key_of(segments))
        sorting = causal_sorting(logits) if causal else full_sorting(logits[..., :len(blocks)])

        def with_sorted(side: str) -> list[torch.Tensor]:
            """For each block [H, its length + that of the first, K]."""
            own = [heads_of(block @ values[side]) for block in blocks]
            if side == "value":
                factors = kept(dropout, segments)[:, :sum(map(len, blocks)), None].split(block_size, 1)
                own = [each * factor for each, factor in zip(own, factors, strict=True)]
            whole = torch.stack([functional.pad(each, (0, 0, 0, len(blocks[0]) - each.shape[1])) for each in own])
            mixed = torch.einsum("hij,jhck->ihck", sorting, whole)
            return [torch.cat(pair, 1) for pair in zip(own, mixed, strict=True)]

        rows = []
        for block, key, value in zip(blocks, with_sorted("key"), with_sorted("value"), strict=True):
            query = heads_of(block @ values["query"])
            reads = torch.ones(len(block), key.shape[1], dtype=torch.bool)
            if causal:
                reads[:, :len(block)] = reads[:, :len(block)].tril()
                reads[:, len(block):] = block is not blocks[0]
            mixed = functional.scaled_dot_product_attention(query, key, value, reads, scale=1.0)
            rows.append(mixed.transpose(0, 1).flatten(1) @ values["output"])
        result = torch.cat(rows)
        return functional.pad(result, (0, 0, 0, LENGTH - len(result)))

    def package(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        real = x[:int((segments > 0).sum())]
        mixed = packages.sinkhorn(values, real, HEADS, min(block_size, len(real)), iterations, temperature)
        return functional.pad(mixed, (0, 0, 0, LENGTH - len(real)))

    settings = (f"sinkhorn block_size: {block_size} max_length: {max_length} iterations: {iterations} "
                f"temperature: {temperature}" + (" gumbel_noise: true" if noisy else "") + dropout_field(dropout))
    return Case(name, settings, row, PROJECTIONS | {"sorting": (WIDTH, HEADS * most)}, causal, packed=False,
                package=None if causal or noisy or dropout > 0 else package,
                multiple=1 if block_size > LENGTH else block_size, trains=noisy or dropout > 0)


# --- Reformer, section 2 ------------------------------------------------------------------------


def reformer(name: str, chunk_length: int, buckets: int, rounds: int, causal: bool = False, held: bool = True,
             dropout: float = 0) -> Case:
    shapes = {side: shape for side, shape in PROJECTIONS.items() if side != "key"}
    shapes["rotation"] = (HEADS, HEAD_SIZE, rounds * buckets // 2)

    def one_round(query: torch.Tensor, value: torch.Tensor, rotation: torch.Tensor, segments: np.ndarray,
                  factors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What each position of one head gets, [T, K], and the sums of exponentials behind it, [T], as logarithms."""
        bucket = torch.cat([query @ rotation, -query @ rotation], -1).argmax(-1).numpy()
        same = of_one_segment(segments) & (bucket[:, None] == bucket)
        reads = same & (of_bucket_before(same) if causal else of_chunks(bucket, segments))
        key = query / (query.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        scores = (query @ key.T - 1e5 * torch.eye(LENGTH)).masked_fill(torch.from_numpy(~reads), -1e9)
        return scores.softmax(-1) * factors @ value, scores.logsumexp(-1)

    def of_bucket_before(same: np.ndarray) -> np.ndarray:
        """Whether a position is before another, and at most a chunk's length behind it among those of its bucket."""
        number = np.tril(same).sum(1)  # of each position in its bucket
        back = number[:, None] - number
        return np.tril(same) & (back <= chunk_length)

    def of_chunks(bucket: np.ndarray, segments: np.ndarray) -> np.ndarray:
        """Whether a position lies in another's chunk or in the one before, in the order of buckets."""
        # Segments and buckets from the last to the first, positions from the first to the last; padding is at the end.
        order = sorted(range(LENGTH), key=lambda i: (-segments[i], -bucket[i] if segments[i] else 0, i))
        chunk = np.empty(LENGTH, int)
        chunk[order] = np.arange(LENGTH) // chunk_length
        behind = chunk[:, None] - chunk
        return (behind == 0) | (behind == 1)

    def row(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        query, value = heads_of(x @ values["query"]), heads_of(x @ values["value"])
        mixed = []
        for head in range(HEADS):
            found = [one_round(query[head], value[head], rotation, segments, kept(dropout, segments)[head])
                     for rotation in values["rotation"][head].chunk(rounds, -1)]
            weights = torch.stack([sums for _, sums in found]).softmax(0)
            mixed.append((weights[..., None] * torch.stack([each for each, _ in found])).sum(0))
        return torch.cat(mixed, -1) @ values["output"]

    def package(values: Tensors, x: torch.Tensor, segments: np.ndarray) -> torch.Tensor:
        return packages.reformer(values, x, segments, chunk_length, buckets, rounds, causal)

    settings = f"reformer chunk_length: {chunk_length} buckets: {buckets} rounds: {rounds}" + dropout_field(dropout)
    return Case(name, settings, row, shapes, causal, frozen=("rotation",), package=package if held else None,
                trains=dropout > 0)


CASES = (
    local("local", radius=3),
    local("local_causal", radius=3, causal=True),
    local("local_without_bias", radius=4, bias=False),
    local("local_of_two_causal", radius=2, causal=True),
    local("local_dilated", radius=2, dilation=3),
    local("local_dilated_causal", radius=3, dilation=2, causal=True),
    local("local_of_all", radius=20),
    local("local_and_global", radius=2, global_tokens=2),
    local("local_and_global_causal", radius=3, global_tokens=2, causal=True),
    local("local_and_global_dilated", radius=2, dilation=4, global_tokens=1, bias=False),
    local("local_own_global", radius=2, global_tokens=2, own=True),
    local("local_own_global_causal", radius=3, global_tokens=3, causal=True, own=True),
    local("local_all_global_causal", radius=2, global_tokens=16, causal=True),
    big_bird("big_bird", block_size=1, random_blocks=2, max_length=14),
    big_bird("big_bird_whole_row", block_size=1, random_blocks=3, max_length=11),
    big_bird("big_bird_blocks", block_size=2, random_blocks=1, max_length=13),
    big_bird("big_bird_with_bias", block_size=2, random_blocks=1, max_length=13, bias=True),
    big_bird("big_bird_one_block", block_size=64, random_blocks=3, max_length=512),
    sinkhorn("sinkhorn", block_size=3, iterations=8, temperature=0.75),
    sinkhorn("sinkhorn_softmax", block_size=4, iterations=0, temperature=1.5),
    sinkhorn("sinkhorn_one_block", block_size=64, iterations=2, temperature=1.0),
    sinkhorn("sinkhorn_causal", block_size=2, iterations=4, temperature=0.75, causal=True),
    sinkhorn("sinkhorn_causal_softmax", block_size=3, iterations=0, temperature=1.0, causal=True),
    sinkhorn("sinkhorn_gumbel", block_size=3, iterations=8, temperature=0.75, noisy=True),
    sinkhorn("sinkhorn_causal_gumbel", block_size=2, iterations=4, temperature=0.75, causal=True, noisy=True),
    reformer("reformer", chunk_length=3, buckets=4, rounds=3),
    reformer("reformer_one_round", chunk_length=4, buckets=2, rounds=1),
    reformer("reformer_one_chunk", chunk_length=64, buckets=6, rounds=2),
    reformer("reformer_causal", chunk_length=2, buckets=2, rounds=3, causal=True, held=False),
    reformer("reformer_causal_one_chunk", chunk_length=64, buckets=4, rounds=2, causal=True),
    local("local_dropout", radius=3, causal=True, dropout=0.25),
    local("local_own_global_dropout", radius=2, global_tokens=2, own=True, dropout=0.375),
    big_bird("big_bird_dropout", block_size=2, random_blocks=1, max_length=13, dropout=0.25),
    sinkhorn("sinkhorn_dropout", block_size=3, iterations=8, temperature=0.75, dropout=0.25),
    reformer("reformer_dropout", chunk_length=3, buckets=4, rounds=3, held=False, dropout=0.25),
)

# Held to a package and not written.
ONLY_HELD = (
    local("local_and_global_without_bias", radius=3, global_tokens=2, bias=False),
    local("local_all_global_without_bias", radius=4, global_tokens=16, bias=False),
    local("local_own_global_without_bias", radius=3, global_tokens=2, bias=False, own=True),
)


def make_layer(case: Case, generator: np.random.Generator) -> Layer:
    def draw(*shape: int) -> Array:
        return rounded(generator.standard_normal(shape))

    segments = case.segments()
    # Every matrix keeps the size of what it maps, about.
    parameters = {name: 0.5 * draw(*shape) for name, shape in case.shapes.items()}
    inputs = {"x": draw(BATCH, LENGTH, WIDTH), "cotangent": draw(BATCH, LENGTH, WIDTH) * (segments > 0)[:, :, None]}
    if case.bias:
        inputs["bias"] = draw(HEADS, 2 * LENGTH - 1)
    return Layer(case.name, case.text_proto(), case.causal, inputs, segments, parameters, set(case.frozen),
                 case.trains)


def evaluate(case: Case, values: Tensors) -> torch.Tensor:
    """y [B, T, D], zero at padding."""
    segments = case.segments()
    rows = [case.row(values, x, own) for x, own in zip(values["x"], segments, strict=True)]
    return torch.stack(rows) * torch.from_numpy(segments > 0)[..., None]


def hold_rows(case: Case, layer: Layer) -> None:
    """The case's rows against the package's, where they are not padding."""
    package = case.package
    if package is None:
        return
    inputs = {name: array for name, array in layer.inputs.items() if name == "bias"}
    values = {name: torch.from_numpy(array) for name, array in (layer.parameters | inputs).items()}
    for x, segments in zip(layer.inputs["x"], case.segments(), strict=True):
        real = int((segments > 0).sum()) // case.multiple * case.multiple
        own = np.where(np.arange(LENGTH) < real, segments, 0)

        def rows(evaluate_row: Row, moved: Tensors, own: np.ndarray = own, real: int = real) -> torch.Tensor:
            return evaluate_row(moved, moved["x"], own)[:real]

        hold_to_package(case.name, partial(rows, case.row), partial(rows, package), values | {"x": torch.from_numpy(x)})


def main() -> None:
    directory = output_directory("Writes the fixture of sparse attention.")
    torch.set_num_threads(1)
    versions = ("torch", *packages.SPARSE_ATTENTION)
    with Fixture(directory / "sparse_attention.h5", Path(__file__).name, versions) as fixture:
        for case in (*CASES, *ONLY_HELD):
            # A generator of its own: a new case leaves the others as they are.
            generator = np.random.default_rng(zlib.crc32(case.name.encode()))
            layer = make_layer(case, generator)
            hold_rows(case, layer)
            if case in CASES:
                write_layer(fixture, layer, lambda values, case=case: evaluate(case, values), generator)


if __name__ == "__main__":
    main()
