# SPDX-License-Identifier: Apache-2.0
"""A whole model with a batch, its parameters, and its results by an independent implementation.

The losses are those of make_t5.py. Gradients are checked against central differences. Everything is float64. torch's
attention has biases, which are zero here; it divides scores by the root of the head size, which is stored as part of
the query weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from differences import check_gradient, gradients_of
from fixture import Array, Fixture
from make_t5 import Ids, Result, Z_LOSS

Tensors = dict[str, Tensor]


def losses(logits: Tensor, target_ids: Ids, first_target: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The losses of a Result. `first_target`: the target of row 0 of the output matrix."""
    targets = torch.from_numpy(target_ids)
    counted = targets > 0
    entropy = nn.functional.cross_entropy(logits[counted], targets[counted] - first_target, reduction="sum")
    z_loss = Z_LOSS * torch.logsumexp(logits, dim=-1)[counted].square().sum()
    return entropy / counted.sum(), (entropy + z_loss) / targets.numel(), entropy, z_loss


class FixtureModel(nn.Module):
    """What a fixture of a whole model is made from."""

    file: str
    config: str
    packages: tuple[str, ...] = ("torch",)
    query_factor = 1.0  # of the query weights that it has over ours
    embedding: nn.Parameter

    def evaluate(self, batch: Any) -> Result:
        """Logits are zero in rows that stand for nothing."""
        raise NotImplementedError

    def names(self, tensors: Tensors) -> Tensors:
        """`tensors`, parameters or gradients by the model's names, by Syntra's."""
        raise NotImplementedError


def torch_norm(ours: str, theirs: str, tensors: Tensors) -> Tensors:
    return {f"{ours}/norm": tensors[f"{theirs}.weight"], f"{ours}/norm_bias": tensors[f"{theirs}.bias"]}


def torch_attention(ours: str, theirs: str, tensors: Tensors) -> Tensors:
    projections = tensors[f"{theirs}.in_proj_weight"].chunk(3)
    found = {f"{ours}/{name}": matrix.T for name, matrix in zip(("query", "key", "value"), projections, strict=True)}
    return found | {f"{ours}/output": tensors[f"{theirs}.out_proj.weight"].T}


def torch_feed_forward(ours: str, theirs: str, tensors: Tensors) -> Tensors:
    found = {}
    for name, linear in (("input", "linear1"), ("output", "linear2")):
        found[f"{ours}/{name}"] = tensors[f"{theirs}.{linear}.weight"].T
        found[f"{ours}/{name}_bias"] = tensors[f"{theirs}.{linear}.bias"]
    return found


def torch_layer(ours: str, theirs: str, tensors: Tensors, crosses: bool) -> Tensors:
    """A TransformerEncoderLayer or, where it `crosses`, a TransformerDecoderLayer."""
    found = torch_attention(f"{ours}/mixer", f"{theirs}.self_attn", tensors)
    sublayers = ["mixer", "feed_forward"]
    if crosses:
        found |= torch_attention(f"{ours}/cross_attention", f"{theirs}.multihead_attn", tensors)
        sublayers.insert(1, "cross_attention")
    for number, sublayer in enumerate(sublayers, 1):
        found |= torch_norm(f"{ours}/{sublayer}", f"{theirs}.norm{number}", tensors)
    return found | torch_feed_forward(f"{ours}/feed_forward", theirs, tensors)


def write_model(model: FixtureModel, batch: Any, script: str, directory: Path, generator: np.random.Generator) -> None:
    result = model.evaluate(batch)

    # The embedding has a second name in T5's stack.
    parameters = dict(model.named_parameters(remove_duplicate=True))
    if "embedding" not in parameters:
        parameters["embedding"] = model.embedding

    def renamed(tensors: Tensors, query_factor: float) -> dict[str, Array]:
        return {ours: (value * (query_factor if ours.endswith("/query") else 1)).detach().contiguous().numpy()
                for ours, value in model.names(tensors).items()}

    slots = gradients_of(result.loss_slots, parameters)
    with Fixture(directory / model.file, script, model.packages) as fixture:
        fixture.attribute("/", "config", model.config)
        fixture.arrays("/inputs", vars(batch))
        fixture.arrays("/parameters", renamed(parameters, 1 / model.query_factor))
        fixture.array("/outputs/logits", result.logits.detach().numpy())
        for name, value in vars(result).items():
            if name != "logits":
                fixture.scalar(f"/outputs/{name}", value.item())
        fixture.arrays("/gradients", renamed(gradients_of(result.loss, parameters), model.query_factor))
        fixture.arrays("/gradients_slots", renamed(slots, model.query_factor))
    unique = {name: slots[name] for name, _ in model.named_parameters()}
    check_gradient(model.file, model, lambda: model.evaluate(batch).loss_slots.item(), unique, generator)
