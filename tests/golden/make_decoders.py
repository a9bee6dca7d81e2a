# SPDX-License-Identifier: Apache-2.0
"""Decoders without an encoder: Hugging Face's T5 stack, and a GPT of torch's Transformer layers.

A row holds examples one behind the other. Of each the decoder reads 0, then inputs and targets but for the last one;
`targets` is -1 where an input would be. `decoder_t5.h5` has one example in each row, `decoder_gpt.h5` and
`decoder_prefix.h5` several, kept apart by a mask; in the last one inputs read each other in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Stack

from drawn_model import draw_parameters
from fixture import output_directory
from make_t5 import BUCKETS, EOS, MAX_DISTANCE, Ids, norms_in_double
from model_fixture import (
    FixtureModel, Result, Tensors, losses, torch_attention, torch_feed_forward, torch_norm, write_model)

WIDTH, HEADS, HEAD_SIZE, HIDDEN, LAYERS, VOCABULARY = 16, 4, 4, 24, 2, 40
LONGEST = 12


@dataclass(frozen=True)
class Batch:
    decoder_ids: Ids
    decoder_segments: Ids
    decoder_positions: Ids
    targets: Ids


@dataclass(frozen=True)
class PrefixBatch(Batch):
    decoder_prefix_ends: Ids  # of the positions that read inputs: the position behind them; else 0


def make_batch(rows: list[list[tuple[int, int]]], generator: np.random.Generator) -> Batch:
    """Of each row the examples, as numbers of inputs and targets."""
    batch = Batch(*(np.zeros((len(rows), LONGEST), dtype=np.int64) for _ in range(4)))
    for row, examples in enumerate(rows):
        begin = 0
        for segment, (inputs, targets) in enumerate(examples, 1):
            sequence = np.append(generator.integers(2, VOCABULARY, inputs + targets - 1), EOS)
            slots = slice(begin, begin + inputs + targets)
            batch.decoder_ids[row, slots] = np.append(0, sequence[:-1])
            batch.decoder_segments[row, slots] = segment
            batch.decoder_positions[row, slots] = np.arange(inputs + targets)
            batch.targets[row, slots] = np.append(np.full(inputs, -1), sequence[inputs:])
            begin = slots.stop
    return batch


def with_prefixes(batch: Batch, rows: list[list[tuple[int, int]]]) -> PrefixBatch:
    """The position of an example's last input is that whose output is its first target."""
    ends = np.zeros_like(batch.decoder_ids)
    for row, examples in enumerate(rows):
        begin = 0
        for inputs, targets in examples:
            end = begin + inputs + 1
            ends[row, begin:end] = end
            begin += inputs + targets
    return PrefixBatch(**vars(batch), decoder_prefix_ends=ends)


def t5_layers(side: str, tensors: Tensors) -> Tensors:
    """The parameters of the layers of a T5Stack under our names; of what all layers share, the relative bias."""
    found = {f"{side}/norm": tensors["stack.final_layer_norm.weight"]}
    first = "stack.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    found[f"{side}/relative_bias"] = tensors[first].T
    for layer in range(LAYERS):
        ours, theirs = f"{side}/layer_{layer:02}", f"stack.block.{layer}.layer"
        for sublayer, number in (("mixer", 0), ("feed_forward", 1)):
            found[f"{ours}/{sublayer}/norm"] = tensors[f"{theirs}.{number}.layer_norm.weight"]
        for name in ("query", "key", "value", "output"):
            found[f"{ours}/mixer/{name}"] = tensors[f"{theirs}.0.SelfAttention.{name[0]}.weight"].T
        for name, matrix in (("input", "wi"), ("output", "wo")):
            found[f"{ours}/feed_forward/{name}"] = tensors[f"{theirs}.1.DenseReluDense.{matrix}.weight"].T
    return found


def torch_layers(side: str, tensors: Tensors) -> Tensors:
    """The parameters of torch's TransformerEncoderLayers and the norm behind them under our names."""
    found = torch_norm(side, "norm", tensors)
    for layer in range(LAYERS):
        ours, theirs = f"{side}/layer_{layer:02}", f"layers.{layer}"
        for sublayer, norm in (("mixer", "norm1"), ("feed_forward", "norm2")):
            found |= torch_norm(f"{ours}/{sublayer}", f"{theirs}.{norm}", tensors)
        found |= torch_attention(f"{ours}/mixer", f"{theirs}.self_attn", tensors)
        found |= torch_feed_forward(f"{ours}/feed_forward", theirs, tensors)
    return found


class Decoder(FixtureModel):
    packages = ("torch", "transformers")
    rows: list[list[tuple[int, int]]]

    def evaluate(self, batch: Batch) -> Result:
        logits = self(batch)
        used = torch.from_numpy(batch.decoder_segments)[..., None] > 0
        return Result(torch.where(used, logits, 0), *losses(logits, batch.targets))


class T5(Decoder):
    """T5's decoder, whose attention to an encoder is left out where no encoder is given."""

    file = "decoder_t5.h5"
    rows = [[(0, 12)], [(5, 4)], [(3, 1)]]
    reads_ahead = False
    config = f"""\
architecture: DECODER_ONLY
width: {WIDTH}
decoder_layers: {LAYERS}
feed_forward {{ width: {HIDDEN} }}
mixer {{ attention {{ heads: {HEADS} head_size: {HEAD_SIZE} }} }}
vocabulary_size: {VOCABULARY}
relative_bias {{ buckets: {BUCKETS} max_distance: {MAX_DISTANCE} }}
"""

    def __init__(self) -> None:
        super().__init__()
        config = T5Config(
            vocab_size=VOCABULARY, d_model=WIDTH, d_kv=HEAD_SIZE, d_ff=HIDDEN, num_layers=LAYERS, num_heads=HEADS,
            relative_attention_num_buckets=BUCKETS, relative_attention_max_distance=MAX_DISTANCE, dropout_rate=0.0,
            layer_norm_epsilon=1e-6, is_decoder=not self.reads_ahead, use_cache=False, attn_implementation="eager")
        self.stack = T5Stack(config)
        self.stack.set_input_embeddings(nn.Embedding(VOCABULARY, WIDTH))
        for block in () if self.reads_ahead else self.stack.block:
            del block.layer[1]  # the attention to an encoder
            block.is_decoder = False  # it would look for that layer
        self.embedding = self.stack.get_input_embeddings().weight

    def forward(self, batch: Batch) -> Tensor:
        ids = torch.from_numpy(batch.decoder_ids)
        hidden = self.stack(input_ids=ids, attention_mask=self.mask(batch)).last_hidden_state
        return hidden @ self.embedding.T * WIDTH ** -0.5

    def mask(self, batch: Batch) -> Tensor:
        return torch.from_numpy(batch.decoder_segments)

    def names(self, tensors: Tensors) -> Tensors:
        return {"embedding": tensors["embedding"]} | t5_layers("decoder", tensors)


class PrefixLm(T5):
    """T5's encoder, whose relative bias knows both directions, with the mask of a prefix language model."""

    file = "decoder_prefix.h5"
    rows = [[(7, 5)], [(3, 4), (0, 2), (1, 1)], [(2, 3), (5, 2)]]
    reads_ahead = True
    config = T5.config + "bidirectional_prefix: true\n"

    def mask(self, batch: Batch) -> Tensor:
        assert isinstance(batch, PrefixBatch)
        segments, ends = torch.from_numpy(batch.decoder_segments), torch.from_numpy(batch.decoder_prefix_ends)
        earlier = torch.ones(LONGEST, LONGEST, dtype=torch.bool).tril()
        read = earlier | (torch.arange(LONGEST) < ends[:, :, None])
        read &= segments[:, :, None] == segments[:, None, :]
        return torch.zeros(read.shape, dtype=torch.float64).masked_fill(~read, -torch.inf)[:, None]


class Gpt(Decoder):
    """Norms before the sublayers, learned positions, GELU, biases; an output matrix of its own."""

    file = "decoder_gpt.h5"
    rows = [[(0, 12)], [(3, 4), (0, 2), (1, 1)], [(2, 3), (4, 3)]]
    query_factor = math.sqrt(HEAD_SIZE)
    config = f"""\
architecture: DECODER_ONLY
width: {WIDTH}
decoder_layers: {LAYERS}
feed_forward {{ width: {HIDDEN} activation: GELU bias: true }}
mixer {{ attention {{ heads: {HEADS} head_size: {HEAD_SIZE} relative_bias: false }} }}
vocabulary_size: {VOCABULARY}
tied_embeddings: false
norm: LAYER_NORM
norm_epsilon: 1e-6
positions {{ learned {{ max_length: {LONGEST} }} }}
"""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(VOCABULARY, WIDTH))
        self.output_embedding = nn.Parameter(torch.zeros(VOCABULARY, WIDTH))
        self.position_embedding = nn.Parameter(torch.zeros(LONGEST, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, nn.GELU("tanh"), 1e-6, True, True)
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, 1e-6)

    def forward(self, batch: Batch) -> Tensor:
        x = self.embedding[torch.from_numpy(batch.decoder_ids)]
        x = x + self.position_embedding[torch.from_numpy(batch.decoder_positions)]
        segments = torch.from_numpy(batch.decoder_segments)
        others = segments[:, :, None] != segments[:, None, :]
        later = torch.ones(LONGEST, LONGEST, dtype=torch.bool).triu(1)
        hidden = (others | later).repeat_interleave(HEADS, dim=0)
        for layer in self.layers:
            x = layer(x, src_mask=hidden)
        logits: Tensor = self.norm(x) @ self.output_embedding.T
        return logits

    def names(self, tensors: Tensors) -> Tensors:
        return {name: value for name, value in tensors.items() if "embedding" in name} | torch_layers("decoder", tensors)


def check_later_tokens_are_hidden(model: Decoder, batch: Batch, logits: Tensor) -> None:
    other = batch.decoder_ids.copy()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    found = model(replace(batch, decoder_ids=other))
    if not torch.allclose(found[:, :-1], logits[:, :-1], rtol=1e-12):
        raise RuntimeError(f"{model.file}: a token changes what is before it")


def check_inputs_read_each_other(model: Decoder, batch: Batch, logits: Tensor) -> None:
    """The last input of the first row changes the logits at its first position, and its last target does not."""
    (inputs, _), = PrefixLm.rows[0]
    other = batch.decoder_ids.copy()
    other[0, inputs] = (other[0, inputs] + 1) % VOCABULARY
    found = model(replace(batch, decoder_ids=other))
    if torch.allclose(found[0, 0], logits[0, 0], rtol=1e-6) or not torch.equal(found[1:], logits[1:]):
        raise RuntimeError(f"{model.file}: inputs do not read what is behind them")


def write(make: Callable[[], T5 | Gpt], seed: int, directory: Path) -> None:
    generator = np.random.default_rng(seed)
    model = make().double()  # in training mode, in which torch does not fuse layers
    draw_parameters(model, generator)
    batch = make_batch(model.rows, generator)
    if isinstance(model, PrefixLm):
        batch = with_prefixes(batch, model.rows)
        check_inputs_read_each_other(model, batch, model(batch))
    check_later_tokens_are_hidden(model, batch, model(batch))
    write_model(model, batch, Path(__file__).name, directory, generator)


def main() -> None:
    directory = output_directory("Writes the fixtures of decoders without an encoder.")
    torch.set_num_threads(1)
    with norms_in_double():
        write(T5, 30, directory)
        write(Gpt, 31, directory)
        write(PrefixLm, 32, directory)


if __name__ == "__main__":
    main()
