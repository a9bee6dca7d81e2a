# SPDX-License-Identifier: Apache-2.0
"""A fixture's gradients, and their check against central differences of what they are the gradients of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn


def gradients_of(loss: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    gradients = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True)
    return dict(zip(parameters, gradients, strict=True))


def check_gradient(name: str, model: nn.Module, loss: Callable[[], float], gradients: Mapping[str, Tensor],
                   generator: np.random.Generator) -> None:
    """The slope of `loss` along a random direction of the parameters; `name` is whose gradients these are.

    Leaves the parameters moved.
    """
    directions = {parameter: torch.from_numpy(generator.standard_normal(tuple(gradient.shape)))
                  for parameter, gradient in gradients.items()}
    expected = sum(float((gradients[parameter] * directions[parameter]).sum()) for parameter in gradients)
    values = []
    with torch.no_grad():
        for factor in (1e-6, -2e-6):
            for parameter, value in model.named_parameters():
                value.add_(directions[parameter], alpha=factor)
            values.append(loss())
    if not math.isclose((values[0] - values[1]) / 2e-6, expected, rel_tol=1e-6):
        raise RuntimeError(f"{name}: the gradients disagree with central differences")
