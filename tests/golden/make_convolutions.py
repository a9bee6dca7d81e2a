# SPDX-License-Identifier: Apache-2.0
"""Lightweight and dynamic convolutions (Wu et al. 2019), straight from the formulas.

  u = (x W + c)[:, :D] * sigmoid((x W + c)[:, D:]);  z[b,t,c] = sum_i P[g(c), i] u[b, t + i - left, c]

over the positions of t's segment; P is a softmax over the taps of learned filters, or of a map of u[b, t].
Where all of a row is one segment, torch's conv1d over the zero-padded row gives the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fixture import Array, Fixture, output_directory, rounded
from mixer_fixture import KEYS, Layer, Tensors, write_layer
from philox import keeps

BATCH, WIDTH, LENGTH = 2, 12, 7

SEGMENTS = {
    False: np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]),
    True: np.array([[1, 1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1, 1]]),
}


@dataclass(frozen=True)
class Case:
    name: str
    dynamic: bool
    taps: int
    heads: int = 3
    mesh: bool = False
    glu: bool = True
    causal: bool = False
    packed: bool = False
    weight_dropout: float = 0

    def filters(self) -> int:
        return WIDTH if self.mesh else self.heads

    def left(self) -> int:
        return self.taps - 1 if self.causal else (self.taps - 1) // 2

    def text_proto(self) -> str:
        kind = "dynamic_conv" if self.dynamic else "light_conv"
        form = "form: MESH" if self.mesh else f"heads: {self.heads}"
        glu = "" if self.glu else " glu: false"
        dropout = f" weight_dropout: {self.weight_dropout}" if self.weight_dropout else ""
        return f"width: {WIDTH}\nmixer {{ {kind} {{ kernel_size: {self.taps} {form}{glu}{dropout} }} }}\n"


CASES = (
    Case("light", dynamic=False, taps=5),
    Case("light_even_taps", dynamic=False, taps=4),
    Case("light_without_gate", dynamic=False, taps=3, glu=False),
    Case("light_longer_than_the_row", dynamic=False, taps=17),
    Case("light_causal_packed", dynamic=False, taps=3, heads=4, causal=True, packed=True),
    Case("light_mesh", dynamic=False, taps=5, mesh=True),
    Case("light_mesh_causal", dynamic=False, taps=5, mesh=True, causal=True),
    Case("dynamic", dynamic=True, taps=5),
    Case("dynamic_one_head", dynamic=True, taps=3, heads=1),
    Case("dynamic_causal_packed", dynamic=True, taps=3, heads=4, causal=True, packed=True),
    Case("dynamic_mesh", dynamic=True, taps=3, mesh=True, packed=True),
    Case("dynamic_mesh_causal", dynamic=True, taps=3, mesh=True, causal=True),
    Case("light_weight_dropout", dynamic=False, taps=5, weight_dropout=0.375),
    Case("dynamic_weight_dropout", dynamic=True, taps=3, causal=True, packed=True, weight_dropout=0.375),
)


def make_layer(case: Case, generator: np.random.Generator) -> Layer:
    def draw(deviation: float, *shape: int) -> Array:
        return rounded(deviation * generator.standard_normal(shape))

    inner = 2 * WIDTH if case.glu else WIDTH
    parameters = {"input": draw(WIDTH**-0.5, WIDTH, inner), "input_bias": draw(0.5, inner)}
    weights = case.filters() * case.taps
    if case.dynamic:
        parameters["filters"] = draw(WIDTH**-0.5, WIDTH, weights)
        if case.mesh:
            parameters["filters_bias"] = draw(0.5, weights)
    else:
        parameters["filters"] = draw(1.0, case.filters(), case.taps)
    if case.mesh:
        parameters["filter_bias"] = draw(0.5, WIDTH)
        parameters["pointwise"] = draw(WIDTH**-0.5, WIDTH, WIDTH)
        parameters["pointwise_bias"] = draw(0.5, WIDTH)
    parameters["output"] = draw(WIDTH**-0.5, WIDTH, WIDTH)
    parameters["output_bias"] = draw(0.5, WIDTH)
    segments = SEGMENTS[case.packed]
    inputs = {"x": draw(1.0, BATCH, LENGTH, WIDTH),
              "cotangent": draw(1.0, BATCH, LENGTH, WIDTH) * (segments > 0)[:, :, None]}
    return Layer(case.name, case.text_proto(), case.causal, inputs, segments, parameters,
                 trains=case.weight_dropout > 0)


def tap_weights(case: Case, values: Tensors, u: torch.Tensor) -> torch.Tensor:
    """P [B, T, D, taps], the weights of each column."""
    if case.dynamic:
        scores = u @ values["filters"]
        if case.mesh:
            scores = scores + values["filters_bias"]
        scores = scores.unflatten(-1, (case.filters(), case.taps))
    else:
        scores = values["filters"].expand(BATCH, LENGTH, -1, -1)
    weights = torch.softmax(scores, dim=-1)
    if case.weight_dropout > 0:
        weights = weights * mask(case)
    return weights.repeat_interleave(WIDTH // case.filters(), dim=2)


def mask(case: Case) -> torch.Tensor:
    """[B, T or 1, filters, taps]: 0 for weights that are dropped, else what makes up for them on average."""
    kept = np.array([[[[keeps(KEYS[b], (t * case.filters() + filter_) * case.taps + tap, 0, case.weight_dropout)
                        for tap in range(case.taps)] for filter_ in range(case.filters())]
                      for t in range(LENGTH if case.dynamic else 1)] for b in range(BATCH)])
    return torch.from_numpy(kept / (1 - case.weight_dropout))


def evaluate(case: Case, segments: NDArray[np.int64], values: Tensors) -> torch.Tensor:
    """y [B, T, D], zero at padding."""
    u = values["x"] @ values["input"] + values["input_bias"]
    if case.glu:
        u = u[..., :WIDTH] * torch.sigmoid(u[..., WIDTH:])
    weights = tap_weights(case, values, u)
    examples = []
    for b in range(BATCH):
        tokens = []
        for t in range(LENGTH):
            token = torch.zeros(WIDTH, dtype=torch.float64)
            for tap in range(case.taps):
                place = t + tap - case.left()
                if 0 <= place < LENGTH and segments[b, place] == segments[b, t]:
                    token = token + weights[b, t, :, tap] * u[b, place]
            tokens.append(token)
        examples.append(torch.stack(tokens))
    z = torch.stack(examples)
    if not case.dynamic and not case.packed and case.weight_dropout == 0:
        check_with_torch(case, segments, weights[0, 0], u, z)
    if case.mesh:
        z = (z + values["filter_bias"]) @ values["pointwise"] + values["pointwise_bias"]
    y = z @ values["output"] + values["output_bias"]
    return y * torch.from_numpy(segments > 0)[:, :, None]


def check_with_torch(case: Case, segments: NDArray[np.int64], weights: torch.Tensor, u: torch.Tensor,
                     z: torch.Tensor) -> None:
    """`z` against torch's convolution, where a row is one segment and padding."""
    real = torch.from_numpy(segments > 0)[:, :, None]
    columns = (u * real).transpose(1, 2)
    padded = torch.nn.functional.pad(columns, (case.left(), case.taps - 1 - case.left()))
    expected = torch.nn.functional.conv1d(padded, weights[:, None], groups=WIDTH).transpose(1, 2)
    if not torch.allclose(z * real, expected * real, rtol=0, atol=1e-12):
        raise RuntimeError(f"{case.name}: torch's conv1d gives another result")


def main() -> None:
    directory = output_directory("Writes the fixture of the convolution layers.")
    torch.set_num_threads(1)
    with Fixture(directory / "convolutions.h5", Path(__file__).name, ("torch",)) as fixture:
        for case in CASES:
            # A generator of its own: a new case leaves the others as they are.
            generator = np.random.default_rng(zlib.crc32(case.name.encode()))
            layer = make_layer(case, generator)
            write_layer(fixture, layer, lambda values, case=case, layer=layer: evaluate(case, layer.segments, values),
                        generator)


if __name__ == "__main__":
    main()
