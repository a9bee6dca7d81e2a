# SPDX-License-Identifier: Apache-2.0
"""Mixers that need no softmax over pairs of positions, straight from the formulas of their papers.

Linear attention (Katharopoulos et al. 2020), Performer (Choromanski et al. 2021) and retention (Sun et al. 2023) by
their matrix of all weights; AFT (Zhai et al. 2021) by a softmax for each column; Hyena (Poli et al. 2023) by torch's
convolution. Attention whose heads share keys and values (Shazeer 2019; Ainslie et al. 2023) is torch's own. All but
Hyena are held to packages: performer-pytorch, torchscale, aft-pytorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional

import packages
from fixture import output_directory
from mixer_fixture import MAX_LENGTH, WIDTH, Example, ExampleCase, Shapes, Tensors, write_examples

HEADS, SIZE = 3, 4
INNER = HEADS * SIZE


def heads_of(x: torch.Tensor, heads: int = HEADS) -> torch.Tensor:
    """[T, H * K] to [H, T, K]."""
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)


def joined(x: torch.Tensor) -> torch.Tensor:
    """[H, T, K] to [T, H * K]."""
    return x.transpose(0, 1).flatten(-2)


def lower(matrix: torch.Tensor, causal: bool) -> torch.Tensor:
    return matrix.tril() if causal else matrix


# --- linear attention, equations 5 and 9; Performer, lemma 1 ------------------------------------


def weighted(name: str, settings: str, phi: Callable[[Tensors, torch.Tensor, bool], torch.Tensor], package: Example,
             causal: bool, features: int = 0) -> ExampleCase:
    """phi of a head's rows [T, K]; its last argument says whether they are queries."""
    shapes: Shapes = {side: (WIDTH, INNER) for side in ("query", "key", "value")}
    shapes["output"] = (INNER, WIDTH)
    if features:
        shapes["features"] = (SIZE, features)

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        mixed = []
        query, key, value = (heads_of(x @ values[side]) for side in ("query", "key", "value"))
        for head in range(HEADS):
            weights = lower(phi(values, query[head], True) @ phi(values, key[head], False).T, causal)
            mixed.append(weights @ value[head] / (weights.sum(-1, keepdim=True) + 1e-6))
        return torch.cat(mixed, -1) @ values["output"]

    kind, _, fields = settings.partition(" ")
    return ExampleCase(name, f"{kind} {{ heads: {HEADS} head_size: {SIZE} {fields} }}", shapes, example, package,
                       causal, frozenset({"features"} if features else ()))


def linear(name: str, causal: bool, chunk: int = 3) -> ExampleCase:
    return weighted(name, f"linear_attention chunk_length: {chunk}",
                    lambda _, rows, __: functional.elu(rows) + 1,
                    lambda values, x: packages.linear_attention(values, x, HEADS, causal), causal)


def performer(name: str, kernel: str, causal: bool) -> ExampleCase:
    features = 6

    def softmax_features(values: Tensors, rows: torch.Tensor, is_query: bool) -> torch.Tensor:
        rows = rows / SIZE**0.25
        products = rows @ values["features"]
        if is_query:
            products = products - products.amax(-1, keepdim=True)
        elif not causal:
            products = products - products.amax((-1, -2), keepdim=True)
        return (products - rows.square().sum(-1, keepdim=True) / 2).exp() + 1e-4

    def relu_features(values: Tensors, rows: torch.Tensor, _: bool) -> torch.Tensor:
        return functional.relu(rows / SIZE**0.25 @ values["features"]) + 1e-3

    phi = softmax_features if kernel == "SOFTMAX" else relu_features
    return weighted(name, f"performer features: {features} kernel: {kernel} chunk_length: 2", phi,
                    lambda values, x: packages.performer(values, x, HEADS, kernel, causal), causal, features)


# --- retention, equations 5 to 8 ----------------------------------------------------------------


def retention(name: str, causal: bool, chunk: int) -> ExampleCase:
    columns = 6
    shapes: Shapes = {"query": (WIDTH, INNER), "key": (WIDTH, INNER), "value": (WIDTH, HEADS * columns),
                      "gate": (WIDTH, HEADS * columns), "output": (HEADS * columns, WIDTH)}

    def rotated(rows: torch.Tensor) -> torch.Tensor:
        """Columns n and n + K / 2 as a complex number, turned by an angle that grows with the position."""
        half = SIZE // 2
        frequencies = 10000.0 ** -torch.linspace(0, 1, half, dtype=torch.float64)
        angles = torch.arange(rows.shape[1], dtype=torch.float64)[:, None] * frequencies
        # The product stores its sines and cosines as float32.
        turn = torch.complex(angles.cos().float().double(), angles.sin().float().double())
        turned = torch.complex(rows[..., :half], rows[..., half:]) * turn
        return torch.cat([turned.real, turned.imag], -1)

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (heads_of(x @ values[side]) for side in ("query", "key", "value"))
        places = torch.arange(len(x))
        distances = (places[:, None] - places[None, :]).abs()
        decay = 1 - 2.0 ** (-5 - torch.arange(HEADS, dtype=torch.float64))
        weights = rotated(query) @ rotated(key).mT * decay[:, None, None] ** distances
        normed = functional.layer_norm(lower(weights, causal) @ value, (columns,), eps=1e-6)
        return (functional.silu(x @ values["gate"]) * joined(normed)) @ values["output"]

    mixer = f"retention {{ heads: {HEADS} head_size: {SIZE} value_size: {columns} chunk_length: {chunk} }}"
    return ExampleCase(name, mixer, shapes, example, lambda values, x: packages.retention(values, x, HEADS, causal),
                       causal, tolerance=1e-6)


# --- AFT, equations 2 and 3 ---------------------------------------------------------------------


def attention_free(name: str, causal: bool, window: int = MAX_LENGTH, rank: int = 0) -> ExampleCase:
    shapes: Shapes = {side: (WIDTH, INNER) for side in ("query", "key", "value")}
    shapes["output"] = (INNER, WIDTH)
    if window:
        tables = {"query_biases": (MAX_LENGTH, rank), "key_biases": (MAX_LENGTH, rank)}
        shapes |= tables if rank else {"biases": (MAX_LENGTH, MAX_LENGTH)}

    def biases_of(values: Tensors, length: int) -> torch.Tensor:
        """[T, T], zero where positions are far apart, minus infinity where the key is not read."""
        biases = torch.zeros(MAX_LENGTH, MAX_LENGTH, dtype=torch.float64)
        if window:
            biases = values["query_biases"] @ values["key_biases"].T if rank else values["biases"]
        places = torch.arange(length)
        near = (places[:, None] - places[None, :]).abs() < window
        biases = torch.where(near, biases[:length, :length], 0.0)
        if causal:
            biases = biases.masked_fill(places[None, :] > places[:, None], -math.inf)
        return biases

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        biases = biases_of(values, len(x))
        key, value = x @ values["key"], x @ values["value"]
        # Of query t, key s and column c.
        weights = torch.softmax(key[None] + biases[:, :, None], 1)
        mixed = (weights * value[None]).sum(1)
        return (torch.sigmoid(x @ values["query"]) * mixed) @ values["output"]

    mixer = f"attention_free {{ width: {INNER} max_length: {MAX_LENGTH} window: {window} rank: {rank} }}"
    return ExampleCase(name, mixer, shapes, example,
                       lambda values, x: packages.attention_free(values, x, biases_of(values, len(x))), causal)


# --- Hyena, definition 3.1 and section 3.3 ------------------------------------------------------


def hyena(name: str, causal: bool, order: int = 2) -> ExampleCase:
    taps, units, bands, inner = 3, 4, 2, (order + 1) * WIDTH
    inputs, outputs = 1 + 2 * bands, (order - 1) * WIDTH
    shapes: Shapes = {"input": (WIDTH, inner), "input_bias": (inner,), "short_filters": (inner, taps),
                      "short_filters_bias": (inner,), "output": (WIDTH, WIDTH), "output_bias": (WIDTH,)}
    shapes |= {f"skip_{index}": (WIDTH,) for index in range(order - 1)}
    for direction in ("back",) if causal else ("back", "ahead"):
        at = f"filters_{direction}"
        shapes |= {f"{at}/frequencies": (units,), f"{at}/first": (inputs, units), f"{at}/second": (units, units),
                   f"{at}/third": (units, units), f"{at}/last": (units, outputs)}
        shapes |= {f"{at}/{layer}_bias": (units,) for layer in ("first", "second", "third")}

    def filters(values: Tensors, at: str, length: int) -> torch.Tensor:
        """The filters of all convolutions by distance, [T, order - 1, D]."""
        distance = torch.arange(length, dtype=torch.float64)[:, None] / MAX_LENGTH
        angles = 2 * math.pi * distance * torch.arange(bands)
        units_of = torch.cat([distance, angles.cos(), -angles.sin()], -1).float().double()
        for layer in ("first", "second", "third"):
            units_of = units_of @ values[f"{at}/{layer}"] + values[f"{at}/{layer}_bias"]
            units_of = torch.sin(units_of * values[f"{at}/frequencies"])
        rates = torch.linspace(1 / 1.5, 1 / 0.3, WIDTH, dtype=torch.float64)
        decay = (0.01 ** (distance * rates)).float().double()
        return (units_of @ values[f"{at}/last"]).unflatten(-1, (order - 1, WIDTH)) * decay[:, None, :]

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        length = len(x)
        projected = (x @ values["input"] + values["input_bias"]).T[None]
        left = taps - 1 if causal else (taps - 1) // 2
        padded = functional.pad(projected, (left, taps - 1 - left))
        local = functional.conv1d(padded, values["short_filters"][:, None, :], values["short_filters_bias"],
                                  groups=inner)[0].T
        parts = local.split(WIDTH, -1)
        mixed = parts[order]
        for index in range(order - 1):
            mixed = mixed * parts[order - 1 - index]
            back = filters(values, "filters_back", length)[:, index]
            rows = []
            for t in range(length):
                row = sum(back[t - s] * mixed[s] for s in range(t + 1))
                if not causal:
                    ahead = filters(values, "filters_ahead", length)[:, index]
                    row = row + sum((ahead[s - t] * mixed[s] for s in range(t + 1, length)), torch.zeros(WIDTH))
                rows.append(row)
            mixed = torch.stack(rows) + values[f"skip_{index}"] * mixed
        return (mixed * parts[0]) @ values["output"] + values["output_bias"]

    mixer = f"hyena {{ max_length: {MAX_LENGTH} order: {order} filter_width: {units} bands: {bands} }}"
    return ExampleCase(name, mixer, shapes, example, causal=causal)


# --- shared keys and values ---------------------------------------------------------------------


def shared_heads(name: str, key_value_heads: int, causal: bool) -> ExampleCase:
    heads = 6
    size = 2
    shapes: Shapes = {"query": (WIDTH, heads * size), "output": (heads * size, WIDTH)}
    shapes |= {side: (WIDTH, key_value_heads * size) for side in ("key", "value")}

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        query = heads_of(x @ values["query"], heads)
        key, value = (heads_of(x @ values[side], key_value_heads) for side in ("key", "value"))
        mixed = functional.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=causal, scale=1.0,
                                                        enable_gqa=True)
        return joined(mixed[0]) @ values["output"]

    mixer = f"attention {{ heads: {heads} head_size: {size} key_value_heads: {key_value_heads} relative_bias: false term {{ dot_product {{}} }} }}"
    return ExampleCase(name, mixer, shapes, example, causal=causal)


CASES = (
    linear("linear_attention", causal=False),
    linear("linear_attention_causal", causal=True),
    linear("linear_attention_long_chunk", causal=True, chunk=64),
    performer("performer", "SOFTMAX", causal=False),
    performer("performer_causal", "SOFTMAX", causal=True),
    performer("performer_relu", "RELU", causal=True),
    retention("retention", causal=False, chunk=2),
    retention("retention_causal", causal=True, chunk=3),
    retention("retention_long_chunk", causal=True, chunk=64),
    attention_free("attention_free", causal=False),
    attention_free("attention_free_causal", causal=True),
    attention_free("attention_free_local", causal=True, window=2, rank=3),
    attention_free("attention_free_simple", causal=False, window=0),
    hyena("hyena", causal=False),
    hyena("hyena_causal", causal=True),
    hyena("hyena_order_3", causal=True, order=3),
    shared_heads("multi_query", 1, causal=True),
    shared_heads("grouped_query", 2, causal=False),
)


def main() -> None:
    directory = output_directory("Writes the fixture of mixers without a softmax over pairs of positions.")
    write_examples(directory / "linear_mixers.h5", Path(__file__).name, CASES, packages.LINEAR_MIXERS)


if __name__ == "__main__":
    main()
