# SPDX-License-Identifier: Apache-2.0
"""T5 v1.0 and v1.1 by Hugging Face transformers: logits, losses and the gradient of every parameter.

Everything is computed in float64 from values that are exact in float32. Two losses over the target tokens
that are not padding:
  loss        mean of -log p                                              (TARGET_TOKENS, z_loss 0)
  loss_slots  sum of (-log p + 1e-4 (log Z)^2) / (batch * target length)  (TARGET_SLOTS, z_loss 1e-4)
In the files with dropout both losses are those of training, the logits those of evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention, T5LayerNorm

from differences import check_gradient, gradients_of
from fixture import Array, Fixture, output_directory, rounded
from philox import keeps

Ids = NDArray[np.int64]

Z_LOSS = 1e-4
BUCKETS = 32
MAX_DISTANCE = 128
EOS = 1

# First distance of every bucket, written out so that a logarithm rounded the wrong way is noticed.
BIDIRECTIONAL_BORDERS = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
CAUSAL_BORDERS = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


@dataclass(frozen=True)
class Rates:
    """Of dropout, all exact in float."""
    outside: float = 0
    attention: float = 0
    cross_attention: float = 0
    per_element: bool = False  # else all positions share a mask, as in Mesh TensorFlow


@dataclass(frozen=True)
class Case:
    file: str
    seed: int
    width: int
    heads: int
    head_size: int
    hidden: int
    layers: int
    vocabulary: int
    gated: bool
    tied: bool
    source_lengths: tuple[int, ...]  # of the rows; the longest is the tensor's length
    target_lengths: tuple[int, ...]
    target_slots: int
    dropout: Rates = Rates()

    def text_proto(self) -> str:
        rates = self.dropout
        attention, cross_attention = (f" dropout: {rate}" if rate > 0 else ""
                                      for rate in (rates.attention, rates.cross_attention))
        noise = "dropout_noise: PER_ELEMENT\n" if rates.per_element else ""
        return f"""\
width: {self.width}
encoder_layers: {self.layers}
decoder_layers: {self.layers}
feed_forward {{ width: {self.hidden} activation: {"GATED_GELU" if self.gated else "RELU"} }}
mixer {{ attention {{ heads: {self.heads} head_size: {self.head_size}{attention} }} }}
cross_attention {{ heads: {self.heads} head_size: {self.head_size}{cross_attention} }}
vocabulary_size: {self.vocabulary}
tied_embeddings: {"true" if self.tied else "false"}
dropout: {rates.outside}
{noise}norm_epsilon: 1e-6
relative_bias {{ buckets: {BUCKETS} max_distance: {MAX_DISTANCE} }}
"""


CASES = (
    Case("t5_v1_0.h5", seed=10, width=16, heads=4, head_size=4, hidden=24, layers=2, vocabulary=64,
         gated=False, tied=True, source_lengths=(21, 13, 6), target_lengths=(5, 9, 2), target_slots=9),
    Case("t5_v1_1.h5", seed=11, width=16, heads=3, head_size=4, hidden=24, layers=2, vocabulary=64,
         gated=True, tied=False, source_lengths=(17, 21, 3), target_lengths=(8, 1, 6), target_slots=9),
    Case("t5_long.h5", seed=12, width=8, heads=2, head_size=4, hidden=12, layers=1, vocabulary=32,
         gated=False, tied=True, source_lengths=(150,), target_lengths=(120,), target_slots=120),
    Case("t5_dropout.h5", seed=13, width=12, heads=3, head_size=4, hidden=20, layers=2, vocabulary=32,
         gated=False, tied=True, source_lengths=(11, 7, 4), target_lengths=(5, 9, 2), target_slots=9,
         dropout=Rates(0.25, 0.375, 0.125)),
    Case("t5_dropout_elements.h5", seed=14, width=12, heads=3, head_size=4, hidden=20, layers=2, vocabulary=32,
         gated=True, tied=False, source_lengths=(11, 7, 4), target_lengths=(5, 9, 2), target_slots=9,
         dropout=Rates(0.125, 0.25, 0.375, per_element=True)),
)


@dataclass(frozen=True)
class Batch:
    encoder_ids: Ids
    decoder_ids: Ids
    targets: Ids
    encoder_segments: Ids
    decoder_segments: Ids
    dropout_keys: Ids  # of the rows


@dataclass(frozen=True)
class Result:
    logits: torch.Tensor
    loss: torch.Tensor
    loss_slots: torch.Tensor
    cross_entropy_sum: torch.Tensor
    z_loss_sum: torch.Tensor


def make_batch(case: Case, generator: np.random.Generator) -> Batch:
    def rows(lengths: tuple[int, ...], slots: int) -> Ids:
        ids = np.zeros((len(lengths), slots), dtype=np.int64)
        for row, length in enumerate(lengths):
            ids[row, : length - 1] = generator.integers(2, case.vocabulary, length - 1)
            ids[row, length - 1] = EOS
        return ids

    encoder_ids = rows(case.source_lengths, max(case.source_lengths))
    targets = rows(case.target_lengths, case.target_slots)
    decoder_ids = np.zeros_like(targets)
    decoder_ids[:, 1:] = targets[:, :-1]
    keys = np.array([[5 + 7 * row, 9] for row in range(len(targets))])
    return Batch(encoder_ids, decoder_ids, targets, (encoder_ids > 0).astype(np.int64),
                 (targets > 0).astype(np.int64), keys)


def make_model(case: Case, generator: np.random.Generator) -> T5ForConditionalGeneration:
    """A model whose every parameter is drawn here; norms and biases away from their usual first values."""
    config = T5Config(
        vocab_size=case.vocabulary, d_model=case.width, d_kv=case.head_size, d_ff=case.hidden,
        num_layers=case.layers, num_decoder_layers=case.layers, num_heads=case.heads,
        relative_attention_num_buckets=BUCKETS, relative_attention_max_distance=MAX_DISTANCE,
        dropout_rate=0.0, layer_norm_epsilon=1e-6,
        feed_forward_proj="gated-gelu" if case.gated else "relu", tie_word_embeddings=case.tied,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=EOS, attn_implementation="eager")
    model = T5ForConditionalGeneration(config)
    if not case.tied:
        # This version of transformers ties the weights even where the configuration says not to.
        model.lm_head.weight = torch.nn.Parameter(torch.zeros(case.vocabulary, case.width))
    model = model.double().eval()
    if model.config.scale_decoder_outputs != case.tied:
        raise RuntimeError("the logits' factor width^-0.5 must go with tied embeddings")
    if (model.lm_head.weight is model.shared.weight) != case.tied:
        raise RuntimeError("embeddings are not tied as configured")
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = case.dropout.outside
        elif isinstance(module, T5Attention):
            cross = name.endswith("EncDecAttention")
            module.dropout = case.dropout.cross_attention if cross else case.dropout.attention
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = generator.standard_normal(tuple(parameter.shape))
            if name.endswith("layer_norm.weight"):
                values = 1.0 + 0.2 * drawn
            elif name == "shared.weight":
                values = drawn
            elif "relative_attention_bias" in name:
                values = 0.5 * drawn
            else:
                values = drawn * parameter.shape[1] ** -0.5
            parameter.copy_(torch.from_numpy(rounded(values)))
    return model


def double_norm(self: T5LayerNorm, x: torch.Tensor) -> torch.Tensor:
    mean_square = x.pow(2).mean(-1, keepdim=True)
    return self.weight * (x * torch.rsqrt(mean_square + self.variance_epsilon))


@contextmanager
def norms_in_double() -> Iterator[None]:
    """transformers takes the mean square in float32 even in a float64 model; here it stays in float64."""
    original: Callable[..., torch.Tensor] = T5LayerNorm.forward
    T5LayerNorm.forward = double_norm
    try:
        yield
    finally:
        T5LayerNorm.forward = original


class Masks:
    """Stands for torch's dropout: masks that are functions of the rows' keys, for each call another."""

    def __init__(self, per_element: bool, keys: Ids) -> None:
        self._per_element = per_element
        self._keys = keys
        self._site = 0

    def __call__(self, x: torch.Tensor, p: float, training: bool, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return x
        kept = self._of_probabilities(x, p) if x.dim() == 4 else self._of_vectors(x, p)
        self._site += 1
        return x * kept / (1 - p)

    def _of_vectors(self, x: torch.Tensor, p: float) -> torch.Tensor:
        """[B, T, D]; unless each element has its own, all positions have the same mask."""
        rows, positions, width = x.shape
        return self._drawn((rows, positions if self._per_element else 1, width), p)

    def _of_probabilities(self, x: torch.Tensor, p: float) -> torch.Tensor:
        """[B, heads, queries, keys]; all queries of a head drop the same keys, as in Mesh TensorFlow."""
        return self._drawn((x.shape[0], x.shape[3], x.shape[1]), p).transpose(1, 2)[:, :, None]

    def _drawn(self, shape: tuple[int, int, int], p: float) -> torch.Tensor:
        rows, count, width = shape
        drawn = [[keeps((int(key[0]), int(key[1])), element, self._site, p) for element in range(count * width)]
                 for key in self._keys]
        return torch.tensor(drawn, dtype=torch.float64).reshape(rows, count, width)


def evaluate_training(case: Case, model: T5ForConditionalGeneration, batch: Batch) -> Result:
    """With dropout, if the case has any."""
    model.train()
    try:
        with mock.patch("torch.nn.functional.dropout", Masks(case.dropout.per_element, batch.dropout_keys)):
            return evaluate(model, batch)
    finally:
        model.eval()


def evaluate(model: T5ForConditionalGeneration, batch: Batch) -> Result:
    logits: torch.Tensor = model(
        input_ids=torch.from_numpy(batch.encoder_ids),
        attention_mask=torch.from_numpy(batch.encoder_segments),
        decoder_input_ids=torch.from_numpy(batch.decoder_ids),
        decoder_attention_mask=torch.from_numpy(batch.decoder_segments),
        use_cache=False).logits
    targets = torch.from_numpy(batch.targets)
    counted = targets > 0
    cross_entropy_sum = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
    z_loss_sum = Z_LOSS * torch.logsumexp(logits, dim=-1)[counted].square().sum()
    return Result(logits, cross_entropy_sum / counted.sum(),
                  (cross_entropy_sum + z_loss_sum) / targets.numel(), cross_entropy_sum, z_loss_sum)


def check_padding_has_no_influence(case: Case, model: T5ForConditionalGeneration, batch: Batch,
                                   expected: Result, generator: np.random.Generator) -> None:
    def refilled(ids: Ids, segments: Ids) -> Ids:
        return np.where(segments > 0, ids, generator.integers(2, case.vocabulary, ids.shape))

    other = Batch(refilled(batch.encoder_ids, batch.encoder_segments),
                  refilled(batch.decoder_ids, batch.decoder_segments), batch.targets,
                  batch.encoder_segments, batch.decoder_segments, batch.dropout_keys)
    with torch.no_grad():
        found = evaluate_training(case, model, other)
    if not math.isclose(found.loss.item(), expected.loss.item(), rel_tol=1e-14):
        raise RuntimeError(f"{case.file}: padding changes the loss")


def syntra_names(case: Case) -> dict[str, tuple[str, bool]]:
    """For every parameter of Syntra: its name in transformers, and whether it is stored transposed there."""
    names: dict[str, tuple[str, bool]] = {"embedding": ("shared.weight", False)}
    if not case.tied:
        names["output_embedding"] = ("lm_head.weight", False)

    def attention(target: str, source: str, module: str) -> None:
        names[f"{target}/norm"] = (f"{source}.layer_norm.weight", False)
        for ours, theirs in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o")):
            names[f"{target}/{ours}"] = (f"{source}.{module}.{theirs}.weight", True)

    def feed_forward(target: str, source: str) -> None:
        names[f"{target}/norm"] = (f"{source}.layer_norm.weight", False)
        inputs = (("input", "wi_0"), ("gate", "wi_1")) if case.gated else (("input", "wi"),)
        for ours, theirs in (*inputs, ("output", "wo")):
            names[f"{target}/{ours}"] = (f"{source}.DenseReluDense.{theirs}.weight", True)

    for stack in ("encoder", "decoder"):
        names[f"{stack}/relative_bias"] = (
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", True)
        for layer in range(case.layers):
            target, source = f"{stack}/layer_{layer:02d}", f"{stack}.block.{layer}.layer"
            attention(f"{target}/mixer", f"{source}.0", "SelfAttention")
            if stack == "decoder":
                attention(f"{target}/cross_attention", f"{source}.1", "EncDecAttention")
            feed_forward(f"{target}/feed_forward", f"{source}.{2 if stack == 'decoder' else 1}")
        names[f"{stack}/norm"] = (f"{stack}.final_layer_norm.weight", False)
    return names


def write_case(case: Case, directory: Path) -> None:
    generator = np.random.default_rng(case.seed)
    batch = make_batch(case, generator)
    model = make_model(case, generator)
    with torch.no_grad():
        in_float = evaluate(model, batch).loss.item()
    with norms_in_double():
        evaluation = evaluate(model, batch)
        if not math.isclose(in_float, evaluation.loss.item(), rel_tol=1e-6):
            raise RuntimeError(f"{case.file}: norms in float64 change the loss")
        result = evaluate_training(case, model, batch)
        if (result.loss.item() == evaluation.loss.item()) != (case.dropout == Rates()):
            raise RuntimeError(f"{case.file}: dropout must change the loss, and nothing else may")
        check_padding_has_no_influence(case, model, batch, result, generator)
        parameters = dict(model.named_parameters())
        gradients = gradients_of(result.loss, parameters)
        gradients_slots = gradients_of(result.loss_slots, parameters)
        values = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        check_gradient(case.file, model, lambda: evaluate_training(case, model, batch).loss_slots.item(),
                       gradients_slots, generator)

    names = syntra_names(case)
    if sorted(theirs for theirs, _ in names.values()) != sorted(values):
        raise RuntimeError(f"{case.file}: not every parameter has a name in Syntra")

    def renamed(tensors: dict[str, torch.Tensor]) -> dict[str, Array]:
        return {ours: (tensors[theirs].T if transposed else tensors[theirs]).numpy()
                for ours, (theirs, transposed) in names.items()}

    with Fixture(directory / case.file, Path(__file__).name, ("torch", "transformers")) as fixture:
        fixture.attribute("/", "config", case.text_proto())
        inputs = dict(vars(batch))
        if case.dropout == Rates():
            del inputs["dropout_keys"]
        fixture.arrays("/inputs", inputs)
        fixture.arrays("/parameters", renamed(values))
        # Rows of padding are not comparable between implementations; they are stored as zeros.
        fixture.array("/outputs/logits",
                      evaluation.logits.detach().numpy() * batch.decoder_segments[:, :, None])
        for name in ("loss", "loss_slots", "cross_entropy_sum", "z_loss_sum"):
            fixture.scalar(f"/outputs/{name}", getattr(result, name).item())
        fixture.arrays("/gradients", renamed(gradients))
        fixture.arrays("/gradients_slots", renamed(gradients_slots))
        if case.file == "t5_long.h5":
            write_buckets(fixture)


def write_buckets(fixture: Fixture) -> None:
    """Buckets of key position - query position, checked against the list of borders."""
    distances = np.arange(-200, 201)

    def buckets(bidirectional: bool) -> Ids:
        found: Ids = T5Attention._relative_position_bucket(
            torch.from_numpy(distances), bidirectional, BUCKETS, MAX_DISTANCE).numpy()
        return found

    def from_borders(magnitudes: Ids, borders: list[int]) -> Ids:
        return np.searchsorted(np.array(borders), magnitudes, side="right") - 1

    bidirectional, causal = buckets(True), buckets(False)
    expected = (from_borders(np.abs(distances), BIDIRECTIONAL_BORDERS)
                + np.where(distances > 0, BUCKETS // 2, 0))
    if not np.array_equal(bidirectional, expected):
        raise RuntimeError("bidirectional buckets differ from the list of borders")
    if not np.array_equal(causal, from_borders(np.maximum(-distances, 0), CAUSAL_BORDERS)):
        raise RuntimeError("causal buckets differ from the list of borders")
    fixture.array("/buckets/distance", distances)
    fixture.array("/buckets/bidirectional", bidirectional)
    fixture.array("/buckets/causal", causal)


def main() -> None:
    directory = output_directory("Writes the T5 fixtures.")
    torch.set_num_threads(1)
    for case in CASES:
        write_case(case, directory)


if __name__ == "__main__":
    main()
