# SPDX-License-Identifier: Apache-2.0
"""Encoder-decoders of torch's Transformer layers: LayerNorm before or after the sublayers, biases, absolute positions.

`transformer_2017.h5` is the model of Vaswani et al. 2017 at a small size: norms after the sublayers, sinusoids, scaled
embeddings. `transformer_pre_norm.h5` has norms before, learned positions and GELU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from drawn_model import draw_parameters
from fixture import output_directory
from make_t5 import Batch, Case, make_batch
from model_fixture import FixtureModel, Result, Tensors, losses, torch_layer, torch_norm, write_model

EPSILON = 1e-6


@dataclass(frozen=True)
class Body:
    """What differs from T5; the sizes are in `case`."""

    case: Case
    norm_first: bool
    gelu: bool
    positions: str  # text-proto of PositionConfig
    scaled: bool

    def text_proto(self) -> str:
        case = self.case
        return f"""\
width: {case.width}
encoder_layers: {case.layers}
decoder_layers: {case.layers}
feed_forward {{ width: {case.hidden} activation: {"GELU" if self.gelu else "RELU"} bias: true }}
mixer {{ attention {{ heads: {case.heads} head_size: {case.head_size} relative_bias: false }} }}
cross_attention {{ heads: {case.heads} head_size: {case.head_size} }}
vocabulary_size: {case.vocabulary}
tied_embeddings: {"true" if case.tied else "false"}
dropout: 0
norm: LAYER_NORM
norm_placement: {"BEFORE" if self.norm_first else "AFTER"}
norm_epsilon: {EPSILON}
positions {{ {self.positions} }}
scaled_embeddings: {"true" if self.scaled else "false"}
"""


BODIES = (
    Body(Case("transformer_2017.h5", seed=20, width=16, heads=4, head_size=4, hidden=24, layers=2, vocabulary=40,
              gated=False, tied=True, source_lengths=(11, 7, 3), target_lengths=(5, 8, 2), target_slots=8),
         norm_first=False, gelu=False, positions="sinusoidal {}", scaled=True),
    Body(Case("transformer_pre_norm.h5", seed=21, width=16, heads=4, head_size=4, hidden=24, layers=1, vocabulary=40,
              gated=False, tied=False, source_lengths=(9, 11, 2), target_lengths=(8, 1, 6), target_slots=8),
         norm_first=True, gelu=True, positions="learned { max_length: 12 }", scaled=False),
)


class Transformer(FixtureModel):
    def __init__(self, body: Body) -> None:
        super().__init__()
        case = body.case
        self.file, self.config, self.query_factor = case.file, body.text_proto(), math.sqrt(case.head_size)
        self.body = body
        self.embedding = nn.Parameter(torch.zeros(case.vocabulary, case.width))
        if not case.tied:
            self.output_embedding = nn.Parameter(torch.zeros(case.vocabulary, case.width))
        if not body.scaled:
            self.position_embedding = nn.Parameter(torch.zeros(12, case.width))
        arguments = {"d_model": case.width, "nhead": case.heads, "dim_feedforward": case.hidden, "dropout": 0.0,
                     "activation": nn.GELU("tanh") if body.gelu else nn.ReLU(), "layer_norm_eps": EPSILON,
                     "batch_first": True, "norm_first": body.norm_first}
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(**arguments) for _ in range(case.layers))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(**arguments) for _ in range(case.layers))
        if body.norm_first:
            self.norms = nn.ModuleDict({stack: nn.LayerNorm(case.width, EPSILON) for stack in ("encoder", "decoder")})

    def sinusoids(self, length: int) -> Tensor:
        """Vaswani et al. 2017, section 3.5, element by element."""
        width = self.body.case.width
        return torch.tensor([[(math.cos if column % 2 else math.sin)(place / 10000 ** (2 * (column // 2) / width))
                              for column in range(width)] for place in range(length)], dtype=torch.float64)

    def embed(self, ids: Tensor) -> Tensor:
        rows, length = self.embedding[ids], ids.shape[1]
        if self.body.scaled:
            return rows * math.sqrt(self.body.case.width) + self.sinusoids(length)
        return rows + self.position_embedding[:length]

    def forward(self, batch: Batch) -> Tensor:
        padding = torch.from_numpy(batch.encoder_segments == 0)
        x = self.embed(torch.from_numpy(batch.encoder_ids))
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=padding)
        memory = self.norms["encoder"](x) if self.body.norm_first else x
        x = self.embed(torch.from_numpy(batch.decoder_ids))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=later, memory_key_padding_mask=padding)
        hidden = self.norms["decoder"](x) if self.body.norm_first else x
        return hidden @ (self.embedding if self.body.case.tied else self.output_embedding).T

    def evaluate(self, batch: Batch) -> Result:
        logits = self(batch)
        return Result(logits * torch.from_numpy(batch.decoder_segments)[..., None], *losses(logits, batch.targets))

    def names(self, tensors: Tensors) -> Tensors:
        found = {name: value for name, value in tensors.items() if "embedding" in name}
        for stack in ("encoder", "decoder"):
            for layer in range(self.body.case.layers):
                found |= torch_layer(f"{stack}/layer_{layer:02}", f"{stack}.{layer}", tensors, stack == "decoder")
            if self.body.norm_first:
                found |= torch_norm(stack, f"norms.{stack}", tensors)
        return found


def write_body(body: Body, directory: Path) -> None:
    generator = np.random.default_rng(body.case.seed)
    batch = make_batch(body.case, generator)
    model = Transformer(body).double()  # in training mode, in which torch does not fuse layers
    scale = body.case.width**-0.5
    draw_parameters(model, generator, {"embedding": scale, "output_embedding": scale})
    if not model.query_factor.is_integer():
        raise RuntimeError("a factor that is no power of two would be rounded")
    write_model(model, batch, Path(__file__).name, directory, generator)


def main() -> None:
    directory = output_directory("Writes the fixtures of torch's Transformer.")
    torch.set_num_threads(1)
    for body in BODIES:
        write_body(body, directory)


if __name__ == "__main__":
    main()
