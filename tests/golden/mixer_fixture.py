# SPDX-License-Identifier: Apache-2.0
"""A mixing layer with its inputs, its parameters, and its results by an independent implementation.

Gradients are those of sum(y * cotangent), checked against central differences. Everything is float64. Where a package
of the field has the layer (packages.py), its values and gradients must be the same.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fixture import Array, Fixture, rounded

# Of the rows, where a layer draws random numbers.
KEYS = ((5, 9), (7, 9))

Tensors = dict[str, torch.Tensor]
# y [B, T, D], zero at padding, from the inputs and parameters by name.
Evaluate = Callable[[Tensors], torch.Tensor]


@dataclass
class Layer:
    """What a layer computes from: ready to be evaluated."""

    name: str
    config: str  # text-proto of a ModelConfig
    causal: bool
    inputs: dict[str, Array]  # "x", "cotangent" and others that have a gradient
    segments: NDArray[np.int64]
    parameters: dict[str, Array]
    frozen: set[str] = field(default_factory=set)
    trains: bool = False  # it draws random numbers, by the keys of the rows


def check_gradient(layer: Layer, evaluate: Evaluate, values: Tensors, gradients: Tensors,
                   generator: np.random.Generator) -> None:
    """The slope of sum(y * cotangent) along a random direction, by central differences."""
    cotangent = torch.from_numpy(layer.inputs["cotangent"])
    directions = {name: torch.from_numpy(generator.standard_normal(tuple(gradient.shape)))
                  for name, gradient in gradients.items()}
    expected = sum(float((gradients[name] * directions[name]).sum()) for name in gradients)
    step = 1e-6

    def objective(factor: float) -> float:
        moved = {name: value.detach() + factor * directions[name] if name in directions else value
                 for name, value in values.items()}
        with torch.no_grad():
            return float((evaluate(moved) * cotangent).sum())

    found = (objective(step) - objective(-step)) / (2 * step)
    if not math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-7):
        raise RuntimeError(f"{layer.name}: slope {found} by differences, {expected} by gradients")


def hold_to_package(name: str, own: Evaluate, package: Evaluate, values: Tensors, tolerance: float = 1e-9) -> None:
    """Values and gradients, each within `tolerance` of the package's largest."""
    results = []
    for evaluate in (own, package):
        moving = {each: value.detach().clone().requires_grad_() for each, value in values.items()}
        y = evaluate(moving)
        cotangent = torch.arange(1.0, y.numel() + 1, dtype=torch.float64).cos().view_as(y)
        gradients = torch.autograd.grad((y * cotangent).sum(), list(moving.values()), materialize_grads=True)
        results.append({"y": y.detach()} | dict(zip(moving, gradients, strict=True)))
    for each, expected in results[1].items():
        difference = float((results[0][each] - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
        if not difference <= tolerance:
            what = each if each == "y" else f"gradient of {each}"
            raise RuntimeError(f"{name}: the package's {what} differs by {difference}")


def write_layer(fixture: Fixture, layer: Layer, evaluate: Evaluate,
                generator: np.random.Generator) -> None:
    """Evaluates and differentiates the layer, and writes it with its results as a group of its name."""
    moving = {name: values for name, values in layer.inputs.items() if name != "cotangent"}
    values: Tensors = {}
    for name, array in (layer.parameters | moving).items():
        values[name] = torch.from_numpy(array).requires_grad_(name not in layer.frozen)

    y = evaluate(values)
    objective = (y * torch.from_numpy(layer.inputs["cotangent"])).sum()
    trained = [name for name in values if name not in layer.frozen]
    gradients = dict(zip(trained, torch.autograd.grad(objective, [values[name] for name in trained]),
                         strict=True))
    check_gradient(layer, evaluate, values, gradients, generator)

    fixture.attribute(layer.name, "config", layer.config)
    fixture.attribute(layer.name, "causal", "true" if layer.causal else "false")
    fixture.arrays(f"{layer.name}/inputs", layer.inputs)
    fixture.array(f"{layer.name}/inputs/segments", layer.segments)
    if layer.trains:
        fixture.array(f"{layer.name}/inputs/keys", np.array(KEYS))
    fixture.arrays(f"{layer.name}/parameters", layer.parameters)
    fixture.array(f"{layer.name}/outputs/y", y.detach().numpy())
    for group, inputs in (("gradients", False), ("input_gradients", True)):
        fixture.arrays(f"{layer.name}/{group}", {name: gradient.numpy() for name, gradient in gradients.items()
                                                 if (name in moving) == inputs})


# --- mixers that are written for one example ----------------------------------------------------

BATCH, WIDTH, LENGTH = 2, 12, 7
# The longest sequence that tables are for, more than rows have.
MAX_LENGTH = 9
SEGMENTS = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])
LENGTHS = (7, 5)

Shapes = dict[str, tuple[int, ...]]
# y [T, D] of x [T, D].
Example = Callable[[Tensors, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class ExampleCase:
    """A mixer by what it makes of one example without padding."""

    name: str
    mixer: str  # text-proto of a MixerConfig
    shapes: Shapes  # of the parameters
    example: Example
    package: Example | None = None
    causal: bool = False
    frozen: frozenset[str] = frozenset()
    tolerance: float = 1e-9  # relative, of what the package gives
    trains: bool = False

    def layer(self, generator: np.random.Generator) -> Layer:
        def draw(*shape: int) -> Array:
            return rounded(generator.standard_normal(shape))

        # Every matrix keeps the size of what it maps, about.
        parameters = {name: 0.5 * draw(*shape) for name, shape in self.shapes.items()}
        inputs = {"x": draw(BATCH, LENGTH, WIDTH), "cotangent": draw(BATCH, LENGTH, WIDTH) * (SEGMENTS > 0)[:, :, None]}
        config = f"width: {WIDTH}\nmixer {{ {self.mixer} }}\n"
        return Layer(self.name, config, self.causal, inputs, SEGMENTS, parameters, set(self.frozen), self.trains)

    def evaluate(self, values: Tensors) -> torch.Tensor:
        """y [B, T, D], zero at padding."""
        rows = [self.example(values, x[:length]) for x, length in zip(values["x"], LENGTHS, strict=True)]
        return torch.stack([functional.pad(row, (0, 0, 0, LENGTH - len(row))) for row in rows])


    def hold_to_package(self, layer: Layer) -> None:
        package = self.package
        if package is None:
            return
        values = {name: torch.from_numpy(array) for name, array in layer.parameters.items()}
        for x, length in zip(layer.inputs["x"], LENGTHS, strict=True):
            hold_to_package(self.name, lambda moved: self.example(moved, moved["x"]),
                            lambda moved: package(moved, moved["x"]), values | {"x": torch.from_numpy(x[:length])},
                            self.tolerance)


def write_examples(path: Path, script: str, cases: Iterable[ExampleCase], packages: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    with Fixture(path, script, ("torch", *packages)) as fixture:
        for case in cases:
            # A generator of its own: a new case leaves the others as they are.
            generator = np.random.default_rng(zlib.crc32(case.name.encode()))
            layer = case.layer(generator)
            case.hold_to_package(layer)
            write_layer(fixture, layer, case.evaluate, generator)
