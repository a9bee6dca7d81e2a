# SPDX-License-Identifier: Apache-2.0
"""One self-attention layer for every kind of score term and gate, straight from the formulas.

  S[b,h,i,j] = sum over terms of g_t T_t[b,h,i,j]  (+ bias[h,j-i]);  P = softmax over the allowed j;
  y[b,i] = concat over h of (sum_j P[b,h,i,j] v[b,h,j]) W_output

With dropout, all queries of a head drop the same keys: P[b,h,i,j] is 0, or divided by the rate at which keys are kept.
Scores are computed one element at a time so that each term is its formula and nothing else. Key j is allowed
for query i iff both have the same segment, which is not 0, and, where causal, j <= i.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fixture import Array, Fixture, output_directory, rounded
from mixer_fixture import KEYS, Layer, Tensors, write_layer
from philox import keeps

Score = Callable[[int, int, int, int], torch.Tensor]  # (batch, head, query, key) -> scalar

BATCH, WIDTH, HEADS, HEAD_SIZE, TABLE = 2, 12, 3, 4, 8
MASKED = -1e9

# Two packed examples and padding; a full row. Lengths 6 (shorter than the tables) and 8 (all of them).
SEGMENTS = {
    6: np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]]),
    8: np.array([[1, 1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 1, 0, 0]]),
}


@dataclass(frozen=True)
class Dot:
    def text_proto(self) -> str:
        return "dot_product {}"


@dataclass(frozen=True)
class Random:
    trainable: bool = True

    def text_proto(self) -> str:
        return f"random {{ max_length: {TABLE}{'' if self.trainable else ' trainable: false'} }}"


@dataclass(frozen=True)
class FactorizedRandom:
    rank: int = 2
    broadcast: bool = False

    def text_proto(self) -> str:
        flag = " broadcast_over_queries: true" if self.broadcast else ""
        return f"factorized_random {{ max_length: {TABLE} rank: {self.rank}{flag} }}"


@dataclass(frozen=True)
class DenseMap:
    """What dense and factorized dense have in common: relu(x W1 + c1) followed by linear maps."""

    hidden: int = 0  # units per head; 0: the head size
    share_heads: bool = True
    bias: bool = False
    share_query: bool = True

    def units(self) -> int:
        return self.hidden or HEAD_SIZE

    def options(self) -> str:
        text = f" hidden: {self.hidden}" if self.hidden else ""
        text += "" if self.share_heads else " share_heads: false"
        text += " bias: true" if self.bias else ""
        return text + ("" if self.share_query else " share_query: false")


@dataclass(frozen=True)
class Dense(DenseMap):
    def text_proto(self) -> str:
        return f"dense {{ max_length: {TABLE}{self.options()} }}"


@dataclass(frozen=True)
class FactorizedDense(DenseMap):
    a: int = 4
    b: int = 2

    def text_proto(self) -> str:
        return f"factorized_dense {{ a: {self.a} b: {self.b}{self.options()} }}"


Term = Dot | Random | FactorizedRandom | Dense | FactorizedDense


@dataclass(frozen=True)
class Case:
    name: str
    terms: tuple[Term, ...]
    gate: str = "SUM"
    relative_bias: bool = False
    causal: bool = False
    length: int = 6
    by_segment_position: bool = False
    dropout: float = 0  # exact in float

    def text_proto(self) -> str:
        lines = [f"    heads: {HEADS}", f"    head_size: {HEAD_SIZE}"]
        lines += [f"    term {{ {term.text_proto()} }}" for term in self.terms]
        lines.append(f"    gate: {self.gate}")
        lines.append(f"    relative_bias: {'true' if self.relative_bias else 'false'}")
        if self.by_segment_position:
            lines.append("    index_by: SEGMENT_POSITION")
        if self.dropout > 0:
            lines.append(f"    dropout: {self.dropout}")
        return f"width: {WIDTH}\nmixer {{\n  attention {{\n" + "\n".join(lines) + "\n  }\n}\n"


PER_HEAD_WITH_BIAS = Dense(hidden=5, share_heads=False, bias=True)

CASES = (
    Case("dot", (Dot(),)),
    Case("dot_relative_bias", (Dot(),), relative_bias=True),
    Case("dot_causal_relative_bias", (Dot(),), relative_bias=True, causal=True),
    Case("random", (Random(),)),
    Case("random_relative_bias", (Random(),), relative_bias=True),
    Case("random_causal", (Random(),), causal=True),
    Case("random_full_length", (Random(),), length=8),
    Case("random_segment_position", (Random(),), by_segment_position=True),
    Case("fixed_random", (Random(trainable=False),)),
    Case("factorized_random", (FactorizedRandom(),)),
    Case("factorized_random_causal_relative_bias", (FactorizedRandom(rank=3),), relative_bias=True,
         causal=True),
    Case("factorized_random_broadcast", (FactorizedRandom(broadcast=True),)),
    Case("dense", (Dense(),)),
    Case("dense_causal", (Dense(),), causal=True),
    Case("dense_full_length", (Dense(),), length=8),
    Case("dense_segment_position", (Dense(),), by_segment_position=True),
    Case("dense_per_head_bias_hidden", (PER_HEAD_WITH_BIAS,)),
    Case("dense_shared_bias_relative_bias", (Dense(bias=True),), relative_bias=True),
    Case("factorized_dense", (FactorizedDense(),)),
    Case("factorized_dense_per_head", (FactorizedDense(hidden=5, share_heads=False, a=2, b=4),)),
    Case("factorized_dense_per_head_bias", (FactorizedDense(share_heads=False, bias=True),), length=8),
    Case("random_dot_sum", (Dot(), Random()), relative_bias=True),
    Case("random_dot_sigmoid", (Dot(), Random()), gate="SIGMOID", relative_bias=True),
    Case("random_dot_sigmoid_causal", (Dot(), Random()), gate="SIGMOID", causal=True),
    Case("random_dot_softmax", (Dot(), Random()), gate="SOFTMAX"),
    Case("dense_dot_sum", (Dot(), Dense())),
    Case("dense_dot_sigmoid", (Dot(), Dense()), gate="SIGMOID", relative_bias=True),
    Case("dense_dot_own_hidden", (Dot(), Dense(share_query=False)), gate="SIGMOID"),
    Case("dense_dot_shared_query_bias", (Dot(), Dense(bias=True))),
    Case("random_dense_sum", (Random(), Dense())),
    Case("random_dense_softmax", (Random(), Dense()), gate="SOFTMAX", causal=True),
    Case("factorized_random_dot_sum", (Dot(), FactorizedRandom())),
    Case("factorized_dense_dot_sigmoid", (Dot(), FactorizedDense()), gate="SIGMOID"),
    Case("three_terms_softmax", (Random(), Dense(), Dot()), gate="SOFTMAX", relative_bias=True),
    Case("three_terms_softmax_causal_segment_position", (Random(), Dense(), Dot()), gate="SOFTMAX",
         relative_bias=True, causal=True, by_segment_position=True),
    Case("random_dropout", (Random(),), dropout=0.375),
    Case("dense_causal_dropout", (Dense(),), causal=True, dropout=0.25),
    Case("factorized_dense_dropout", (FactorizedDense(),), dropout=0.25),
    Case("random_dot_sigmoid_dropout", (Dot(), Random()), gate="SIGMOID", relative_bias=True, dropout=0.375),
)


def has_dot(case: Case) -> bool:
    return any(isinstance(term, Dot) for term in case.terms)


def uses_query(case: Case, term: DenseMap) -> bool:
    return term.share_query and has_dot(case)


def make_layer(case: Case, generator: np.random.Generator) -> Layer:
    def draw(deviation: float, *shape: int) -> Array:
        return rounded(deviation * generator.standard_normal(shape))

    inner = HEADS * HEAD_SIZE
    parameters: dict[str, Array] = {}
    frozen: set[str] = set()
    if has_dot(case):
        parameters["query"] = draw((WIDTH * HEAD_SIZE) ** -0.5, WIDTH, inner) * 2.0
        parameters["key"] = draw(WIDTH**-0.5, WIDTH, inner)
    parameters["value"] = draw(WIDTH**-0.5, WIDTH, inner)
    parameters["output"] = draw(inner**-0.5, inner, WIDTH)
    for term in case.terms:
        if isinstance(term, Random):
            parameters["random/table"] = draw(1.0, HEADS, TABLE, TABLE)
            if not term.trainable:
                frozen.add("random/table")
        elif isinstance(term, FactorizedRandom):
            parameters["factorized_random/query"] = draw(1.0, HEADS, TABLE, term.rank)
            parameters["factorized_random/key"] = draw(1.0, HEADS, TABLE, term.rank)
        elif isinstance(term, DenseMap):
            name = "dense" if isinstance(term, Dense) else "factorized_dense"
            units = term.units()
            per_head = () if term.share_heads else (HEADS,)
            if not uses_query(case, term):
                parameters[f"{name}/hidden"] = draw(WIDTH**-0.5, WIDTH, HEADS * units)
            if term.bias:
                parameters[f"{name}/hidden_bias"] = draw(0.5, HEADS * units)
            maps = {"positions": TABLE} if isinstance(term, Dense) else {"a": term.a, "b": term.b}
            for output, size in maps.items():
                parameters[f"{name}/{output}"] = draw(1.0, *per_head, units, size)
                if term.bias:
                    parameters[f"{name}/{output}_bias"] = draw(0.5, *per_head, size)
    if case.gate == "SIGMOID":
        parameters["gate"] = draw(1.0, 1)
    elif case.gate == "SOFTMAX":
        parameters["gate"] = draw(1.0, len(case.terms))

    segments = SEGMENTS[case.length]
    inputs = {"x": draw(1.0, BATCH, case.length, WIDTH)}
    if case.relative_bias:
        inputs["bias"] = draw(0.5, HEADS, 2 * case.length - 1)
    # Zero at padding queries: what they attend to is a matter of convention that must not show.
    inputs["cotangent"] = draw(1.0, BATCH, case.length, WIDTH) * (segments > 0)[:, :, None]
    return Layer(case.name, case.text_proto(), case.causal, inputs, segments, parameters, frozen,
                 trains=case.dropout > 0)


def table_positions(case: Case, segments: NDArray[np.int64]) -> NDArray[np.int64]:
    """[B, T]: where a token stands in the tables: its row, or its place in its segment."""
    positions = np.tile(np.arange(case.length), (BATCH, 1))
    if case.by_segment_position:
        for row in range(BATCH):
            for token in range(1, case.length):
                same = segments[row, token] == segments[row, token - 1]
                positions[row, token] = positions[row, token - 1] + 1 if same else 0
    return positions


def heads_of(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """[B, T, D] x [D, H * n] -> [B, T, H, n]"""
    return (x @ weight).unflatten(-1, (HEADS, -1))


def linear_map(values: Tensors, name: str, units: torch.Tensor, head: int) -> torch.Tensor:
    """Rows `units` [..., F] through the map `name`, which all heads share if it has no head axis."""
    weight = values[name]
    bias = values.get(f"{name}_bias")
    result = units @ (weight if weight.dim() == 2 else weight[head])
    if bias is None:
        return result
    return result + (bias if bias.dim() == 1 else bias[head])


def score_function(case: Case, segments: NDArray[np.int64], term: Term, values: Tensors) -> Score:
    """T_t[b, h, i, j] of one term."""
    x = values["x"]
    place = table_positions(case, segments)

    if isinstance(term, Dot):
        query, key = heads_of(x, values["query"]), heads_of(x, values["key"])
        return lambda b, h, i, j: query[b, i, h].dot(key[b, j, h])

    if isinstance(term, Random):
        table = values["random/table"]
        return lambda b, h, i, j: table[h, place[b, i], place[b, j]]

    if isinstance(term, FactorizedRandom):
        first, second = values["factorized_random/query"], values["factorized_random/key"]
        if term.broadcast:
            return lambda b, h, i, j: first[h, place[b, j]].dot(second[h, place[b, j]])
        return lambda b, h, i, j: first[h, place[b, i]].dot(second[h, place[b, j]])

    name = "dense" if isinstance(term, Dense) else "factorized_dense"
    before = x @ values["query" if uses_query(case, term) else f"{name}/hidden"]
    if term.bias:
        before = before + values[f"{name}/hidden_bias"]
    hidden = torch.relu(before).unflatten(-1, (HEADS, -1))  # [B, T, H, F]

    if isinstance(term, Dense):
        positions = [linear_map(values, "dense/positions", hidden[:, :, h], h) for h in range(HEADS)]
        return lambda b, h, i, j: positions[h][b, i, place[b, j]]

    short_a = [linear_map(values, "factorized_dense/a", hidden[:, :, h], h) for h in range(HEADS)]
    short_b = [linear_map(values, "factorized_dense/b", hidden[:, :, h], h) for h in range(HEADS)]
    size = term.a

    def outer(b: int, h: int, i: int, j: int) -> torch.Tensor:
        column = int(place[b, j])
        return short_a[h][b, i, column % size] * short_b[h][b, i, column // size]

    return outer


def term_weights(case: Case, values: Tensors) -> list[torch.Tensor]:
    if case.gate == "SIGMOID":
        second = torch.sigmoid(values["gate"][0])
        return [1.0 - second, second]
    if case.gate == "SOFTMAX":
        return list(torch.softmax(values["gate"], dim=0))
    return [torch.ones((), dtype=torch.float64)] * len(case.terms)


def evaluate(case: Case, segments: NDArray[np.int64], values: Tensors) -> torch.Tensor:
    """y [B, T, D], zero at padding."""
    length = case.length
    scores = [score_function(case, segments, term, values) for term in case.terms]
    weights = term_weights(case, values)
    value = heads_of(values["x"], values["value"])
    factor = torch.tensor([[[keeps(KEYS[b], j * HEADS + h, 0, case.dropout) / (1 - case.dropout) for j in range(length)]
                            for h in range(HEADS)] for b in range(BATCH)], dtype=torch.float64)

    examples = []
    for b in range(BATCH):
        tokens = []
        for i in range(length):
            if segments[b, i] == 0:
                tokens.append(torch.zeros(WIDTH, dtype=torch.float64))
                continue
            heads = []
            for h in range(HEADS):
                row = []
                for j in range(length):
                    allowed = segments[b, i] == segments[b, j] and not (case.causal and j > i)
                    score = torch.stack([g * t(b, h, i, j)
                                         for g, t in zip(weights, scores, strict=True)]).sum()
                    if case.relative_bias:
                        score = score + values["bias"][h, j - i + case.length - 1]
                    row.append(score if allowed else score + MASKED)
                heads.append(torch.softmax(torch.stack(row), dim=0) * factor[b, h] @ value[b, :, h])
            tokens.append(torch.cat(heads) @ values["output"])
        examples.append(torch.stack(tokens))
    return torch.stack(examples)


def write_case(fixture: Fixture, case: Case, generator: np.random.Generator) -> None:
    layer = make_layer(case, generator)
    write_layer(fixture, layer, lambda values: evaluate(case, layer.segments, values), generator)


def main() -> None:
    directory = output_directory("Writes the fixture of the Synthesizer attention layers.")
    torch.set_num_threads(1)
    with Fixture(directory / "synthesizers.h5", Path(__file__).name, ("torch",)) as fixture:
        for case in CASES:
            # A generator of its own: a new case leaves the others as they are.
            write_case(fixture, case, np.random.default_rng(zlib.crc32(case.name.encode())))


if __name__ == "__main__":
    main()
