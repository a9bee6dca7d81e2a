# SPDX-License-Identifier: Apache-2.0
"""Universal Transformers of torch's Transformer layers: steps with one layer, signals, adaptive computation time.

`universal_fixed.h5` is the model of Dehghani et al. 2019 at a small size: every position takes all steps.
`universal_halting.h5` has Tensor2Tensor's body (norms before the sublayers, learned steps), a layer of its own before
the recurrence, and halting; `universal_decoder.h5` is a halting decoder without an encoder, several examples in a row.
The loop of adaptive computation time is that of Tensor2Tensor's universal_transformer_util.py, variable by variable: it
ends when all positions have halted. The ponder loss, in which padding does not count, is added to the losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import make_decoders
import make_t5
from drawn_model import draw_parameters
from fixture import Array, output_directory
from model_fixture import FixtureModel, Result, Tensors, losses, torch_layer, torch_norm, write_model

WIDTH, HEADS, HEAD_SIZE, HIDDEN, STEPS, VOCABULARY = 16, 4, 4, 24, 3, 40
EPSILON = 1e-6
THRESHOLD = 1 - 0.2
LOSS_WEIGHT = 0.3

Batch = make_t5.Batch | make_decoders.Batch


@dataclass(frozen=True)
class Body:
    file: str
    seed: int
    stacks: tuple[str, ...]
    norm_first: bool
    halves: bool  # Tensor2Tensor's sinusoids
    learned_steps: bool
    layer_before: bool
    halts: bool

    def text_proto(self) -> str:
        halting = f"halting {{ epsilon: {1 - THRESHOLD:.2f} loss_weight: {LOSS_WEIGHT} }} " if self.halts else ""
        signal = "LEARNED" if self.learned_steps else "SINUSOIDAL"
        layers = "{ " + ("layers {} " if self.layer_before else "") + (
            f"layers {{ repeat: {STEPS} recurrence {{ step_signal: {signal} {halting}}} }} }}")
        decoder_only = "encoder" not in self.stacks
        return "".join(("architecture: DECODER_ONLY\n" if decoder_only else "", f"""\
width: {WIDTH}
feed_forward {{ width: {HIDDEN} bias: true }}
mixer {{ attention {{ heads: {HEADS} head_size: {HEAD_SIZE} relative_bias: false }} }}
vocabulary_size: {VOCABULARY}
norm: LAYER_NORM
norm_placement: {"BEFORE" if self.norm_first else "AFTER"}
norm_epsilon: {EPSILON}
positions {{ sinusoidal {{ layout: {"HALVES" if self.halves else "INTERLEAVED"} }} }}
scaled_embeddings: true
""", "".join(f"{stack} {layers}\n" for stack in self.stacks),
            "" if decoder_only else f"cross_attention {{ heads: {HEADS} head_size: {HEAD_SIZE} }}\n"))


BODIES = (
    Body("universal_fixed.h5", 40, ("encoder", "decoder"), norm_first=False, halves=False, learned_steps=False,
         layer_before=False, halts=False),
    Body("universal_halting.h5", 144, ("encoder", "decoder"), norm_first=True, halves=True, learned_steps=True,
         layer_before=True, halts=True),
    Body("universal_decoder.h5", 125, ("decoder",), norm_first=False, halves=False, learned_steps=False,
         layer_before=False, halts=True),
)


def sinusoids(places: Tensor, halves: bool) -> Tensor:
    """Element by element: Vaswani et al. 2017, section 3.5, or get_timing_signal_1d of Tensor2Tensor."""
    def element(place: float, column: int) -> float:
        if halves:
            wave = place * math.exp(-(column % (WIDTH // 2)) * math.log(10000) / (WIDTH // 2 - 1))
            return math.sin(wave) if column < WIDTH // 2 else math.cos(wave)
        wave = place / 10000 ** (2 * (column // 2) / WIDTH)
        return math.cos(wave) if column % 2 else math.sin(wave)

    rows = [[element(place, column) for column in range(WIDTH)] for place in places.flatten().tolist()]
    return torch.tensor(rows, dtype=torch.float64).unflatten(0, tuple(places.shape))


class Stack(nn.Module):
    def __init__(self, body: Body, name: str) -> None:
        super().__init__()
        kind = nn.TransformerDecoderLayer if (
            name == "decoder" and "encoder" in body.stacks) else nn.TransformerEncoderLayer
        self.body = body
        self.layers = nn.ModuleList(
            kind(WIDTH, HEADS, HIDDEN, 0.0, nn.ReLU(), EPSILON, batch_first=True, norm_first=body.norm_first)
            for _ in range(2 if body.layer_before else 1))
        if body.learned_steps:
            self.step_embedding = nn.Parameter(torch.zeros(STEPS, WIDTH))
        if body.halts:
            self.halting_weight = nn.Parameter(torch.zeros(WIDTH))
            self.halting_bias = nn.Parameter(torch.zeros(1))
        if body.norm_first:
            self.norm = nn.LayerNorm(WIDTH, EPSILON)

    def preprocess(self, state: Tensor, step: int, positions: Tensor) -> Tensor:
        if self.body.learned_steps:
            signal = self.step_embedding[step]
        else:
            signal = sinusoids(torch.tensor([step]), self.body.halves)
        return state + positions + signal

    def forward(self, x: Tensor, positions: Tensor, **reads: Tensor) -> tuple[Tensor, Tensor | None]:
        """The output, and the ponder times and remainders of the positions, added up."""
        pondered = None
        if self.body.layer_before:
            x = self.layers[0](x + positions, **reads)
        if self.body.halts:
            x, pondered = self.adaptive(x, positions, **reads)
        else:
            for step in range(STEPS):
                x = self.layers[-1](self.preprocess(x, step, positions), **reads)
        return self.norm(x) if self.body.norm_first else x, pondered

    def adaptive(self, state: Tensor, positions: Tensor, **reads: Tensor) -> tuple[Tensor, Tensor]:
        halting_probability, remainders, n_updates = (torch.zeros(state.shape[:2], dtype=state.dtype) for _ in range(3))
        previous_state, step = torch.zeros_like(state), 0
        self.margin, self.halted_at = 1.0, set()
        while bool(((halting_probability < THRESHOLD) & (n_updates < STEPS)).any()):
            state = self.preprocess(state, step, positions)
            p = torch.sigmoid(state @ self.halting_weight + self.halting_bias)
            still_running = (halting_probability < 1.0).to(state.dtype)
            reached = halting_probability + p * still_running
            self.margin = min(self.margin, (reached - THRESHOLD)[still_running > 0].abs().min().item())
            new_halted = (reached > THRESHOLD) * still_running
            if bool((new_halted * self.used).any()):
                self.halted_at.add(step)
            still_running = (reached <= THRESHOLD) * still_running
            halting_probability = halting_probability + p * still_running
            remainders = remainders + new_halted * (1 - halting_probability)
            halting_probability = halting_probability + new_halted * remainders
            n_updates = n_updates + still_running + new_halted
            update_weights = (p * still_running + new_halted * remainders)[..., None]
            transformed_state = self.layers[-1](state, **reads)
            previous_state = transformed_state * update_weights + previous_state * (1 - update_weights)
            state, step = transformed_state, step + 1
        self.all_halt = bool((halting_probability[self.used] == 1).all())
        return previous_state, n_updates + remainders


@dataclass(frozen=True)
class PonderedResult(Result):
    ponder_loss: Tensor


class Universal(FixtureModel):
    query_factor = math.sqrt(HEAD_SIZE)

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.file, self.config = body.file, body.text_proto()
        self.body = body
        self.embedding = nn.Parameter(torch.zeros(VOCABULARY, WIDTH))
        self.stacks = nn.ModuleDict({name: Stack(body, name) for name in body.stacks})

    def embed(self, ids: Array) -> Tensor:
        return self.embedding[torch.from_numpy(ids)] * math.sqrt(WIDTH)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits, and the ponder loss."""
        ponder_loss = torch.zeros((), dtype=torch.float64)
        reads: dict[str, Tensor] = {}
        length = batch.decoder_ids.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        if isinstance(batch, make_t5.Batch):
            padding = torch.from_numpy(batch.encoder_segments == 0)
            places = sinusoids(torch.arange(padding.shape[1]), self.body.halves)
            self.stacks["encoder"].used = ~padding
            memory, pondered = self.stacks["encoder"](self.embed(batch.encoder_ids), places,
                                                      src_key_padding_mask=padding)
            if pondered is not None:
                ponder_loss = ponder_loss + LOSS_WEIGHT * pondered[self.stacks["encoder"].used].mean()
            reads = {"memory": memory, "memory_key_padding_mask": padding, "tgt_mask": later}
            places = sinusoids(torch.arange(length), self.body.halves)
        else:
            segments = torch.from_numpy(batch.decoder_segments)
            others = segments[:, :, None] != segments[:, None, :]
            reads = {"src_mask": (others | later).repeat_interleave(HEADS, dim=0)}
            places = sinusoids(torch.from_numpy(batch.decoder_positions), self.body.halves)
        self.stacks["decoder"].used = torch.from_numpy(batch.decoder_segments) > 0
        hidden, pondered = self.stacks["decoder"](self.embed(batch.decoder_ids), places, **reads)
        if pondered is not None:
            ponder_loss = ponder_loss + LOSS_WEIGHT * pondered[self.stacks["decoder"].used].mean()
        return hidden @ self.embedding.T, ponder_loss

    def evaluate(self, batch: Batch) -> Result:
        logits, ponder_loss = self(batch)
        loss, loss_slots, *sums = losses(logits, batch.targets)
        used = torch.from_numpy(batch.decoder_segments)[..., None] > 0
        values = (torch.where(used, logits, 0), loss + ponder_loss, loss_slots + ponder_loss, *sums)
        return PonderedResult(*values, ponder_loss) if self.body.halts else Result(*values)

    def names(self, tensors: Tensors) -> Tensors:
        found = {"embedding": tensors["embedding"]}
        for stack in self.body.stacks:
            layers = 2 if self.body.layer_before else 1
            crosses = stack == "decoder" and "encoder" in self.body.stacks
            for layer in range(layers):
                found |= torch_layer(f"{stack}/layer_{layer:02}", f"stacks.{stack}.layers.{layer}", tensors, crosses)
            shared = f"{stack}/layer_{layers - 1:02}"
            if self.body.learned_steps:
                found[f"{shared}/step_embedding"] = tensors[f"stacks.{stack}.step_embedding"]
            if self.body.halts:
                for name in ("weight", "bias"):
                    found[f"{shared}/halting/{name}"] = tensors[f"stacks.{stack}.halting_{name}"]
            if self.body.norm_first:
                found |= torch_norm(stack, f"stacks.{stack}.norm", tensors)
        return found


def check_halting(model: Universal) -> None:
    """Positions halt at every step, and one at none; none is so near the bound that rounding could decide."""
    for name, stack in model.stacks.items():
        if stack.halted_at != set(range(STEPS)) or stack.all_halt or stack.margin < 1e-3:
            raise RuntimeError(f"{model.body.file}, {name}: halts at {stack.halted_at}, {stack.margin} from the bound")


def make_batch(body: Body, generator: np.random.Generator) -> Batch:
    if "encoder" not in body.stacks:
        return make_decoders.make_batch([[(0, 12)], [(3, 4), (0, 2), (1, 1)], [(2, 3), (4, 3)]], generator)
    return make_t5.make_batch(
        make_t5.Case(body.file, seed=body.seed, width=WIDTH, heads=HEADS, head_size=HEAD_SIZE, hidden=HIDDEN,
                     layers=STEPS, vocabulary=VOCABULARY, gated=False, tied=True, source_lengths=(11, 7, 3),
                     target_lengths=(5, 8, 2), target_slots=8), generator)


def write(body: Body, directory: Path) -> None:
    generator = np.random.default_rng(body.seed)
    batch = make_batch(body, generator)
    model = Universal(body).double()  # in training mode, in which torch does not fuse layers
    draw_parameters(model, generator, {"embedding": WIDTH**-0.5, "halting_weight": 0.15})
    if body.halts:
        model(batch)
        check_halting(model)
    write_model(model, batch, Path(__file__).name, directory, generator)


def main() -> None:
    directory = output_directory("Writes the fixtures of Universal Transformers.")
    torch.set_num_threads(1)
    for body in BODIES:
        write(body, directory)


if __name__ == "__main__":
    main()
