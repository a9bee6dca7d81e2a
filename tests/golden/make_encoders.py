# SPDX-License-Identifier: Apache-2.0
"""Encoders without a decoder: Hugging Face's T5 encoder, and torch's Transformer layers.

`encoder_mean.h5` tells the class by the mean of the output over the tokens, `encoder_first.h5` by the output for the
first token; `targets` is the class, from 1 on. `encoder_masked.h5` tells masked tokens; `targets` is -1 where none is.
Losses have an example for each token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Stack

from drawn_model import draw_parameters
from fixture import output_directory
from make_decoders import HEAD_SIZE, HEADS, HIDDEN, LAYERS, VOCABULARY, WIDTH, t5_layers, torch_layers
from make_t5 import BUCKETS, EOS, MAX_DISTANCE, Ids, norms_in_double
from model_fixture import FixtureModel, Result, Tensors, losses, write_model

CLASSES = 5
LENGTHS = (11, 4, 1, 8)


@dataclass(frozen=True)
class Batch:
    encoder_ids: Ids
    encoder_segments: Ids
    targets: Ids


def make_batch(generator: np.random.Generator) -> Batch:
    shape = (len(LENGTHS), max(LENGTHS))
    batch = Batch(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64),
                  generator.permutation(CLASSES)[:len(LENGTHS), None] + 1)
    for row, length in enumerate(LENGTHS):
        batch.encoder_ids[row, :length] = np.append(generator.integers(2, VOCABULARY, length - 1), EOS)
        batch.encoder_segments[row, :length] = 1
    return batch


def masked_tokens(batch: Batch, generator: np.random.Generator) -> Batch:
    """Every third token of a row, and at least one, whatever stands in its place."""
    targets = np.where(batch.encoder_segments > 0, -1, 0)
    targets[:, ::3] = generator.integers(2, VOCABULARY, targets[:, ::3].shape) * batch.encoder_segments[:, ::3]
    return Batch(batch.encoder_ids, batch.encoder_segments, targets)


class Encoder(FixtureModel):
    packages = ("torch", "transformers")
    first_target = 1

    def evaluate(self, batch: Batch) -> Result:
        logits = self(batch)
        used = torch.from_numpy(batch.targets)[..., None] != 0
        return Result(torch.where(used, logits, 0), *losses(logits, batch.targets, self.first_target))


class Mean(Encoder):
    """T5's encoder and the mean of its output."""

    file = "encoder_mean.h5"
    config = f"""\
architecture: ENCODER_ONLY
width: {WIDTH}
encoder_layers: {LAYERS}
feed_forward {{ width: {HIDDEN} }}
mixer {{ attention {{ heads: {HEADS} head_size: {HEAD_SIZE} }} }}
vocabulary_size: {VOCABULARY}
relative_bias {{ buckets: {BUCKETS} max_distance: {MAX_DISTANCE} }}
classifier {{ classes: {CLASSES} }}
"""

    def __init__(self) -> None:
        super().__init__()
        self.stack = T5Stack(T5Config(
            vocab_size=VOCABULARY, d_model=WIDTH, d_kv=HEAD_SIZE, d_ff=HIDDEN, num_layers=LAYERS, num_heads=HEADS,
            relative_attention_num_buckets=BUCKETS, relative_attention_max_distance=MAX_DISTANCE, dropout_rate=0.0,
            layer_norm_epsilon=1e-6, is_decoder=False, use_cache=False, attn_implementation="eager"))
        self.stack.set_input_embeddings(nn.Embedding(VOCABULARY, WIDTH))
        self.embedding = self.stack.get_input_embeddings().weight
        self.classifier = nn.Linear(WIDTH, CLASSES, bias=False)

    def forward(self, batch: Batch) -> Tensor:
        hidden, segments = self.hidden(batch), torch.from_numpy(batch.encoder_segments)
        mean = (hidden * segments[..., None]).sum(1) / segments.sum(1, keepdim=True)
        logits: Tensor = self.classifier(mean)[:, None]
        return logits

    def hidden(self, batch: Batch) -> Tensor:
        ids, segments = torch.from_numpy(batch.encoder_ids), torch.from_numpy(batch.encoder_segments)
        hidden: Tensor = self.stack(input_ids=ids, attention_mask=segments).last_hidden_state
        return hidden

    def names(self, tensors: Tensors) -> Tensors:
        found = {"embedding": tensors["embedding"], "classifier": tensors["classifier.weight"]}
        return found | t5_layers("encoder", tensors)


class Masked(Mean):
    """T5's encoder and the embedding as the matrix of the output, scaled as T5 scales it."""

    file = "encoder_masked.h5"
    first_target = 0
    config = Mean.config.replace("ENCODER_ONLY", "ENCODER_MASKED_LM").replace(
        f"classifier {{ classes: {CLASSES} }}\n", "")

    def __init__(self) -> None:
        super().__init__()
        del self.classifier

    def forward(self, batch: Batch) -> Tensor:
        return self.hidden(batch) @ self.embedding.T * WIDTH ** -0.5

    def names(self, tensors: Tensors) -> Tensors:
        return {"embedding": tensors["embedding"]} | t5_layers("encoder", tensors)


class First(Encoder):
    """torch's layers with norms before the sublayers, learned positions, GELU and biases; the first output."""

    file = "encoder_first.h5"
    query_factor = math.sqrt(HEAD_SIZE)
    config = f"""\
architecture: ENCODER_ONLY
width: {WIDTH}
encoder_layers: {LAYERS}
feed_forward {{ width: {HIDDEN} activation: GELU bias: true }}
mixer {{ attention {{ heads: {HEADS} head_size: {HEAD_SIZE} relative_bias: false }} }}
vocabulary_size: {VOCABULARY}
norm: LAYER_NORM
norm_epsilon: 1e-6
positions {{ learned {{ max_length: {max(LENGTHS)} }} }}
classifier {{ classes: {CLASSES} pooling: FIRST }}
"""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(VOCABULARY, WIDTH))
        self.position_embedding = nn.Parameter(torch.zeros(max(LENGTHS), WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, nn.GELU("tanh"), 1e-6, True, True)
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, 1e-6)
        self.classifier = nn.Linear(WIDTH, CLASSES, bias=False)

    def forward(self, batch: Batch) -> Tensor:
        x = self.embedding[torch.from_numpy(batch.encoder_ids)] + self.position_embedding
        padding = torch.from_numpy(batch.encoder_segments) == 0
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        logits: Tensor = self.classifier(self.norm(x)[:, :1])
        return logits

    def names(self, tensors: Tensors) -> Tensors:
        found = {name: value for name, value in tensors.items() if "embedding" in name}
        return found | {"classifier": tensors["classifier.weight"]} | torch_layers("encoder", tensors)


def write(make: Callable[[], Mean | First], seed: int, directory: Path) -> None:
    generator = np.random.default_rng(seed)
    model = make().double()
    draw_parameters(model, generator)
    batch = make_batch(generator)
    if isinstance(model, Masked):
        batch = masked_tokens(batch, generator)
    write_model(model, batch, Path(__file__).name, directory, generator)


def main() -> None:
    directory = output_directory("Writes the fixtures of encoders without a decoder.")
    torch.set_num_threads(1)
    with norms_in_double():
        write(Mean, 40, directory)
        write(First, 41, directory)
        write(Masked, 42, directory)


if __name__ == "__main__":
    main()
