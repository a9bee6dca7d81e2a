# SPDX-License-Identifier: Apache-2.0
"""The parameters of the models that the fixtures of whole models come from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import torch
from torch import nn

from fixture import rounded

NOTHING: Mapping[str, float] = MappingProxyType({})


def draw_parameters(model: nn.Module, generator: np.random.Generator, scales: Mapping[str, float] = NOTHING) -> None:
    """Draws every parameter, but for the biases of attention, which are zero. `scales`: by the end of a name."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = generator.standard_normal(tuple(parameter.shape))
            own = name.rpartition(".")[2]
            if own in scales:
                values = scales[own] * drawn
            elif name.endswith(("in_proj_bias", "out_proj.bias")):
                values = 0 * drawn
            elif name.endswith("bias"):
                values = 0.3 * drawn
            elif "norm" in name:
                values = 1 + 0.2 * drawn
            elif "relative_attention_bias" in name:
                values = 0.5 * drawn
            elif name.endswith("embedding"):
                values = drawn
            else:
                values = drawn * parameter.shape[1] ** -0.5
            parameter.copy_(torch.from_numpy(rounded(values)))
