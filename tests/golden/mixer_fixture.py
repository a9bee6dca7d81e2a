# SPDX-License-Identifier: Apache-2.0
"""A mixing layer with its inputs, its parameters, and its results by an independent implementation.

Gradients are those of sum(y * cotangent), checked against central differences. Everything is float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from fixture import Array, Fixture

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
    fixture.arrays(f"{layer.name}/parameters", layer.parameters)
    fixture.array(f"{layer.name}/outputs/y", y.detach().numpy())
    for name, gradient in gradients.items():
        group = "input_gradients" if name in moving else "gradients"
        fixture.array(f"{layer.name}/{group}/{name}", gradient.numpy())
