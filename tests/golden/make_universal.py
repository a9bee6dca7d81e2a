# SPDX-License-Identifier: Apache-2.0
"""Universal Transformers of torch's Transformer layers: steps with one layer, signals, adaptive computation time.

`universal_fixed.h5` is the model of Dehghani et al. 2019 at a small size: every position takes all steps.
`universal_halting.h5` has Tensor2Tensor's body (norms before the sublayers, learned steps), a layer of its own before
the recurrence, and halting; `universal_decoder.h5` is a halting decoder without an encoder, several examples in a row.
The loop of adaptive computation time is that of Tensor2Tensor's universal_transformer_util.py, variable by variable: it
ends when all positions have halted. Losses are those of make_t5.py plus the ponder loss, in which padding does not
count, and all is computed in float64 as there. torch's attention has biases, which are zero here; it divides scores by
the root of the head size, which is stored as part of the query weights.
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
from differences import check_gradient
from drawn_model import draw_parameters
from fixture import Array, Fixture, output_directory
from make_t5 import Z_LOSS

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
class Result:
    logits: Tensor
    loss: Tensor
    loss_slots: Tensor
    cross_entropy_sum: Tensor
    z_loss_sum: Tensor
    ponder_loss: Tensor


class Universal(nn.Module):
    def __init__(self, body: Body) -> None:
        super().__init__()
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


def evaluate(model: Universal, batch: Batch) -> Result:
    logits, ponder_loss = model(batch)
    targets = torch.from_numpy(batch.targets)
    counted = targets > 0
    entropy = nn.functional.cross_entropy(logits[counted], targets[counted], reduction="sum")
    z_loss = Z_LOSS * torch.logsumexp(logits, dim=-1)[counted].square().sum()
    return Result(logits, entropy / counted.sum() + ponder_loss, (entropy + z_loss) / targets.numel() + ponder_loss,
                  entropy, z_loss, ponder_loss)


def check_halting(model: Universal) -> None:
    """Positions halt at every step, and one at none; none is so near the bound that rounding could decide."""
    for name, stack in model.stacks.items():
        if stack.halted_at != set(range(STEPS)) or stack.all_halt or stack.margin < 1e-3:
            raise RuntimeError(f"{model.body.file}, {name}: halts at {stack.halted_at}, {stack.margin} from the bound")


def renamed(model: Universal, tensors: dict[str, Tensor], query_factor: float) -> dict[str, Array]:
    """`tensors`, parameters or gradients by torch's names, by Syntra's."""
    found = {"embedding": tensors["embedding"]}

    def norm(ours: str, theirs: str) -> None:
        found[f"{ours}/norm"] = tensors[f"{theirs}.weight"]
        found[f"{ours}/norm_bias"] = tensors[f"{theirs}.bias"]

    def attention(ours: str, theirs: str) -> None:
        query, key, value = tensors[f"{theirs}.in_proj_weight"].chunk(3)
        found[f"{ours}/query"] = query.T * query_factor
        found[f"{ours}/key"], found[f"{ours}/value"] = key.T, value.T
        found[f"{ours}/output"] = tensors[f"{theirs}.out_proj.weight"].T

    for stack in model.body.stacks:
        layers = 2 if model.body.layer_before else 1
        crosses = stack == "decoder" and "encoder" in model.body.stacks
        for layer in range(layers):
            ours, theirs = f"{stack}/layer_{layer:02}", f"stacks.{stack}.layers.{layer}"
            sublayers = ["mixer", "cross_attention", "feed_forward"] if crosses else ["mixer", "feed_forward"]
            attention(f"{ours}/mixer", f"{theirs}.self_attn")
            if crosses:
                attention(f"{ours}/cross_attention", f"{theirs}.multihead_attn")
            for number, sublayer in enumerate(sublayers, 1):
                norm(f"{ours}/{sublayer}", f"{theirs}.norm{number}")
            for name, linear in (("input", "linear1"), ("output", "linear2")):
                found[f"{ours}/feed_forward/{name}"] = tensors[f"{theirs}.{linear}.weight"].T
                found[f"{ours}/feed_forward/{name}_bias"] = tensors[f"{theirs}.{linear}.bias"]
        shared = f"{stack}/layer_{layers - 1:02}"
        if model.body.learned_steps:
            found[f"{shared}/step_embedding"] = tensors[f"stacks.{stack}.step_embedding"]
        if model.body.halts:
            for name in ("weight", "bias"):
                found[f"{shared}/halting/{name}"] = tensors[f"stacks.{stack}.halting_{name}"]
        if model.body.norm_first:
            norm(stack, f"stacks.{stack}.norm")
    return {name: value.detach().contiguous().numpy() for name, value in found.items()}


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
    root = math.sqrt(HEAD_SIZE)
    result = evaluate(model, batch)
    if body.halts:
        check_halting(model)

    def gradients_of(loss: Tensor) -> dict[str, Tensor]:
        named = dict(model.named_parameters())
        return dict(zip(named, torch.autograd.grad(loss, list(named.values()), retain_graph=True), strict=True))

    slots = gradients_of(result.loss_slots)
    with Fixture(directory / body.file, Path(__file__).name, ("torch",)) as fixture:
        fixture.attribute("/", "config", body.text_proto())
        fixture.arrays("/inputs", vars(batch))
        fixture.arrays("/parameters", renamed(model, dict(model.named_parameters()), 1 / root))
        used = batch.decoder_segments[:, :, None] > 0
        fixture.array("/outputs/logits", np.where(used, result.logits.detach().numpy(), 0))
        for name in ("loss", "loss_slots", "cross_entropy_sum", "z_loss_sum", *(["ponder_loss"] if body.halts else [])):
            fixture.scalar(f"/outputs/{name}", getattr(result, name).item())
        fixture.arrays("/gradients", renamed(model, gradients_of(result.loss), root))
        fixture.arrays("/gradients_slots", renamed(model, slots, root))
    check_gradient(body.file, model, lambda: evaluate(model, batch).loss_slots.item(), slots, generator)


def main() -> None:
    directory = output_directory("Writes the fixtures of Universal Transformers.")
    torch.set_num_threads(1)
    for body in BODIES:
        write(body, directory)


if __name__ == "__main__":
    main()
