# SPDX-License-Identifier: Apache-2.0
"""Tests that PyTorch's sides of the benchmarks compute what the product does. They need PyTorch; without it the exit code is 77."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

if importlib.util.find_spec("torch") is None:
    print("[  SKIPPED ] this Python has no torch")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import attention_peers  # noqa: E402, beside this file
import gpu_goals  # noqa: E402
import gpu_peer  # noqa: E402
import mixer_peer  # noqa: E402
import plain_t5  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

needs_transformers = unittest.skipUnless(importlib.util.find_spec("transformers"), "this Python has no transformers")


class AttentionPeers(unittest.TestCase):
    """PyTorch's attention, held to loops over numbers. Rows have padding; the first has two segments, which not all
    peers take."""

    BATCH, HEADS, HEAD_SIZE = 2, 2, 4

    def operands(self, case: Any, packed: bool) -> dict[str, Any]:
        torch.manual_seed(1)
        shapes = case.shapes(self.BATCH, self.HEADS, self.HEAD_SIZE)
        operands = {name: torch.randn(shape) for name, shape in shapes.items()}
        for side, length in (("query", case.queries), ("key", case.keys)):
            segments = torch.ones(self.BATCH, length, dtype=torch.int32)
            if packed:
                segments[0, length // 2 :] = 2
            segments[:, length - length // 4 :] = 0
            operands[f"{side}_segments"] = segments
        operands["allowed"] = case.allowed(operands["query_segments"], operands["key_segments"])
        return operands

    @staticmethod
    def score(case: Any, o: dict[str, Any], b: int, h: int, i: int, j: int) -> float:
        total = 0.0
        if "query" in o:
            total += sum(float(x * y) for x, y in zip(o["query"][b, h, i], o["key"][b, h, j], strict=True))
        if "u" in o:
            total += sum(float(x * y) for x, y in zip(o["u"][b, h, i], o["positions"][:, j], strict=True))
        if "a" in o:
            factor = o["a"].shape[-1]
            total += float(o["a"][b, h, i, j % factor] * o["b"][b, h, i, j // factor])
        if "table" in o:
            total += float(o["table"][h, i, j])
        if "bias" in o:
            total += float(o["bias"][h, j - i + case.queries - 1])
        return total

    def rows_by_loops(self, case: Any, o: dict[str, Any]) -> dict[tuple[int, int, int], list[float]]:
        """Of the queries that may read any key."""
        rows = {}
        for b, h, i in itertools.product(range(self.BATCH), range(self.HEADS), range(case.queries)):
            own = int(o["query_segments"][b, i])
            keys = [
                j
                for j in range(case.keys)
                if own != 0 and own == int(o["key_segments"][b, j]) and not (case.causal and j > i)
            ]
            if not keys:
                continue
            weights = [math.exp(self.score(case, o, b, h, i, j)) for j in keys]
            rows[b, h, i] = [
                sum(w * float(o["value"][b, h, j, k]) for w, j in zip(weights, keys, strict=True)) / sum(weights)
                for k in range(self.HEAD_SIZE)
            ]
        return rows

    def test_they_compute_what_loops_do(self) -> None:
        compared = set()
        for case, packed in itertools.product(attention_peers.cases(36), (False, True)):
            operands = self.operands(case, packed)
            expected = self.rows_by_loops(case, operands)
            self.assertGreater(len(expected), case.queries)
            peers = case.peers()
            if "query" in operands or "u" in operands:
                peers["SDPA"] = case.fused
            if packed:
                peers.pop("shared weights", None)
            for by, peer in peers.items():
                with self.subTest(case=case.name, by=by, packed=packed):
                    y = peer(operands)
                    for place, row in expected.items():
                        for found, value in zip(y[place].tolist(), row, strict=True):
                            self.assertAlmostEqual(found, value, places=4)
                    compared.add(by)
        self.assertEqual(compared, {"plain", "flex", "shared weights", "SDPA"})

    def test_their_products_are_counted(self) -> None:
        for case in attention_peers.cases(36):
            if case.causal or "a" in case.scores:  # products that are not asked for, or that are no products
                continue
            operands = self.operands(case, packed=False)
            with FlopCounterMode(display=False) as counter:
                case.plain(operands)
            flops = case.flops(self.BATCH, self.HEADS, self.HEAD_SIZE)
            self.assertEqual(3 * counter.get_total_flops(), flops, case.name)

    def test_they_are_the_products_cases(self) -> None:
        source = (HERE / "gpu_kernel_bench.cc").read_text(encoding="utf-8")
        named = re.findall(r'\{"([^"]+)",\s+with_segments', source)
        self.assertEqual([case.name for case in attention_peers.cases(512)], named)
        self.assertEqual(list(gpu_goals.TRAINING_KERNELS), named)


class Dropout(unittest.TestCase):
    """The peers drop where T5 does: embeddings, attention's weights, hidden values, outputs of parts, of the last norms."""

    LAYERS = 2

    def places(self, implementation: str, rate: float) -> list[float]:
        """The rates with which a forward pass drops, in whatever order."""
        sizes = dataclasses.replace(gpu_peer.SIZES["tiny"], dropout=rate, layers=self.LAYERS)
        model, batch = gpu_peer.make_model(implementation, sizes, "fused"), gpu_peer.random_batch(sizes)
        rates: list[float] = []
        drop, attend = functional.dropout, functional.scaled_dot_product_attention

        def dropout(x: Any, p: float, *settings: Any, **named: Any) -> Any:
            rates.append(p)
            return drop(x, p, *settings, **named)

        def attention(*operands: Any, dropout_p: float = 0.0, **settings: Any) -> Any:
            rates.append(dropout_p)
            return attend(*operands, dropout_p=dropout_p, **settings)

        with (
            mock.patch.object(functional, "dropout", dropout),
            mock.patch.object(functional, "scaled_dot_product_attention", attention),
            torch.no_grad(),
        ):
            model(batch)
        return rates

    def test_all_places_have_the_rate(self) -> None:
        stacks, encoder_layer, decoder_layer = 2 * 2, 4, 6
        places = stacks + self.LAYERS * (encoder_layer + decoder_layer)
        self.assertEqual(self.places("plain", 0.1), [0.1] * places)
        if importlib.util.find_spec("transformers"):
            self.assertEqual(self.places("hugging_face", 0.1), [0.1] * places)


class Models(unittest.TestCase):
    """plain_t5, the peer of training steps, held to transformers' T5 with the same parameters."""

    SIZES = dataclasses.replace(plain_t5.SIZES["tiny"], vocabulary=50)

    def parameters_of(self, model: plain_t5.EncoderDecoder) -> dict[str, torch.Tensor]:
        """By transformers' names."""
        found = {}
        for name, parameter in model.named_parameters():
            stack, _, own = name.partition(".")
            last = {"encoder": 1, "decoder": 2}.get(stack, 0)
            own = re.sub(r"layers\.(\d+)\.mixer_norm\.scale", r"block.\1.layer.0.layer_norm.weight", own)
            own = re.sub(r"layers\.(\d+)\.cross_norm\.scale", r"block.\1.layer.1.layer_norm.weight", own)
            own = re.sub(r"layers\.(\d+)\.feed_forward_norm\.scale", rf"block.\1.layer.{last}.layer_norm.weight", own)
            own = re.sub(r"layers\.(\d+)\.mixer\.(.)\w+", r"block.\1.layer.0.SelfAttention.\2", own)
            own = re.sub(r"layers\.(\d+)\.cross\.(.)\w+", r"block.\1.layer.1.EncDecAttention.\2", own)
            own = re.sub(r"layers\.(\d+)\.feed_forward\.(.)\w+", rf"block.\1.layer.{last}.DenseReluDense.w\2", own)
            own = own.replace("relative_bias", "block.0.layer.0.SelfAttention.relative_attention_bias")
            own = own.replace("norm.scale", "final_layer_norm.weight")
            found["shared.weight" if stack == "embedding" else f"{stack}.{own}"] = parameter
        return found

    def drawn(self, attention: str, padded: bool = False) -> tuple[plain_t5.EncoderDecoder, Any]:
        """Both models, with parameters for which everything matters."""
        torch.manual_seed(1)
        model, theirs = plain_t5.EncoderDecoder(self.SIZES, attention, padded=padded), gpu_peer.HuggingFaceT5(self.SIZES)
        own = self.parameters_of(model)
        given = {name: parameter for name, parameter in theirs.model.named_parameters()}
        self.assertEqual(set(own), set(given))
        with torch.no_grad():
            for name, parameter in own.items():
                drawn = torch.randn(parameter.shape)
                scale = 0.5 if "bias" in name or name == "shared.weight" else parameter.shape[-1] ** -0.5
                parameter.copy_(1 + 0.2 * drawn if "layer_norm" in name else scale * drawn)
                given[name].copy_(parameter)
        return model, theirs.model

    def hold(self, model: plain_t5.EncoderDecoder, loss: torch.Tensor, theirs: Any, expected: torch.Tensor) -> None:
        """To the same loss and gradients."""
        loss.backward()
        expected.backward()
        self.assertAlmostEqual(loss.item(), expected.item(), places=4)
        for name, parameter in self.parameters_of(model).items():
            gradient = theirs.get_parameter(name).grad
            difference = (parameter.grad - gradient).abs().max() / gradient.abs().max()
            self.assertLess(float(difference), 1e-4, name)

    @needs_transformers
    def test_losses_and_gradients_are_those_of_transformers(self) -> None:
        for attention in ("plain", "fused_cross", "fused"):
            with self.subTest(attention=attention):
                model, theirs = self.drawn(attention)
                batch = plain_t5.random_batch(self.SIZES)
                inputs, decoder_inputs, targets = batch
                expected = theirs(input_ids=inputs, decoder_input_ids=decoder_inputs, labels=targets).loss
                self.hold(model, model(batch), theirs, expected)

    @needs_transformers
    def test_padding_is_not_read_and_does_not_count(self) -> None:
        model, theirs = self.drawn("plain", padded=True)
        inputs, decoder_inputs, targets = plain_t5.random_batch(self.SIZES)
        inputs[0, 40:] = 0
        targets[1, 9:] = 0
        expected = theirs(input_ids=inputs, attention_mask=inputs != 0, decoder_input_ids=decoder_inputs,
                          labels=targets.masked_fill(targets == 0, -100)).loss
        self.hold(model, model((inputs, decoder_inputs, targets)), theirs, expected)

    def test_random_attention_is_its_formula(self) -> None:
        torch.manual_seed(1)
        sizes, length = dataclasses.replace(self.SIZES, width=6, heads=2, head_size=3), 4
        layer = plain_t5.RandomAttention(sizes, length, length + 2)
        torch.nn.init.normal_(layer.table)
        x, bias = torch.randn(2, length, 6), torch.randn(1, 2, length, length)
        rows = []
        for h in range(2):
            weights = torch.softmax(layer.table[h, :length, :length] + bias[0, h], -1)
            rows.append(torch.stack([weights @ layer.value(example)[:, 3 * h : 3 * h + 3] for example in x]))
        expected = layer.output(torch.cat(rows, -1))
        torch.testing.assert_close(layer(x, x, bias), expected)


class Mixers(unittest.TestCase):
    """The layers of mixer_peer, held to those of tests/interop, which are written straight from formulas."""

    BATCH, WIDTH = 2, 32
    HEADS = {"heads": mixer_peer.HEADS, "head_size": mixer_peer.SIZE}
    BLOCKS = {**HEADS, "block_size": mixer_peer.BLOCK}
    CONVOLUTION = {"kernel_size": 7, "form": "DEPTHWISE", "glu": True}

    @staticmethod
    def attention(kind: str, **settings: object) -> tuple[str, dict[str, Any]]:
        term = {kind: {"hidden": 0, "share_query": False, "bias": False, **settings}, "name": ""}
        return "attention", {**Mixers.HEADS, "gate": "NONE", "term": [term]}

    def kinds(self, length: int) -> dict[str, tuple[str, dict[str, Any]]]:
        """The mixers of tests/interop and their settings."""
        return {
            "transformer": self.attention("dot_product"),
            "random": self.attention("random"),
            "factorized_random": self.attention("factorized_random", broadcast_over_queries=False),
            "dense": self.attention("dense"),
            "factorized_dense": self.attention("factorized_dense", a=length // 16),
            "light_conv": ("light_conv", self.CONVOLUTION),
            "dynamic_conv": ("dynamic_conv", self.CONVOLUTION),
            "fourier": ("fourier", {"max_length": length, "orthonormal": False}),
            "linformer": ("linformer", {**self.HEADS, "share_values": False}),
            "mlp": ("mlp", {}),
            "gated_mlp": ("gated_mlp", {"heads": 1, "attention_size": 0}),
            "local_attention": ("local_attention", {**self.HEADS, "radius": mixer_peer.BLOCK, "dilation": 1, "global_tokens": 0,
                                                    "global_projections": False}),
            "sinkhorn": ("sinkhorn", {**self.BLOCKS, "temperature": 0.75, "iterations": 8}),
            "reformer": ("reformer", {**self.HEADS, "rounds": 2, "chunk_length": mixer_peer.BLOCK}),
            "linear_attention": ("linear_attention", self.HEADS),
            "performer": ("performer", {**self.HEADS, "kernel": "SOFTMAX"}),
            "retention": ("retention", self.HEADS),
            "attention_free": ("attention_free", {"window": length, "rank": 0}),
            "hyena": ("hyena", {"order": 2, "kernel_size": 3, "max_length": length, "bands": 16}),
        }

    NAMES = {  # what is called otherwise
        "factorized_random": {"rows": "query", "columns": "key"},
        "factorized_dense": {"factors.0": "a", "factors.1": "b"},
        "linformer": {"key_rows": "project_key", "value_rows": "project_value"},
        "gated_mlp": {"norm": "gate_norm", "norm_bias": "gate_norm_bias"},
        "performer": {"vectors": "features"},
        "hyena": {"short": "short_filters", "short_bias": "short_filters_bias", "skip": "skip_0"}
        | {f"frequencies.{n}": f"filters_{side}/frequencies" for n, side in enumerate(("back", "ahead"))}
        | {f"networks.{n}.{i}{bias}": f"filters_{side}/{layer}{bias}" for n, side in enumerate(("back", "ahead"))
           for i, layer in enumerate(("first", "second", "third", "last")) for bias in ("", "_bias")},
    }

    def tensors_of(self, mixer: str, layer: torch.nn.Module) -> dict[str, torch.Tensor]:
        """Parameters and what was drawn, by the names of tests/interop, whose matrices are [in, out]."""
        found = {}
        for name, value in [*layer.named_parameters(), *layer.named_buffers()]:
            own = name.removeprefix("maps.").replace(".bias", "_bias")
            if own.endswith(".weight") and value.dim() == 2 and mixer != "mlp":
                value = value.T
            own = own.removesuffix(".weight")
            own = self.NAMES.get(mixer, {}).get(own, own)
            of_term = mixer in ("random", "factorized_random", "dense", "factorized_dense") and own not in ("value", "output")
            found[f"at/{mixer}/{own}" if of_term else f"at/{own}"] = value
        if mixer == "mlp":
            found |= {name: value[:, None] for name, value in found.items() if name.endswith("_bias")}
        elif mixer == "gated_mlp":
            found |= {"at/map": found["at/map"].movedim(-1, 0), "at/map_bias": found["at/map_bias"][:, None, None]}
        elif mixer == "hyena":
            found["at/short_filters"] = found["at/short_filters"][:, 0]
        return found

    @unittest.skipUnless(importlib.util.find_spec("safetensors"), "this Python has no safetensors")
    def test_they_compute_what_formulas_do(self) -> None:
        from read_safetensors import SyntraModel  # noqa: PLC0415, in tests/interop

        kinds = {length: self.kinds(length) for length in (128, 512)}
        self.assertEqual({*kinds[512], "big_bird"}, set(mixer_peer.LAYERS))
        for mixer in kinds[512]:
            with self.subTest(mixer=mixer):
                length = 128 if mixer == "attention_free" else 512  # its formula takes a weight for each pair and column
                torch.manual_seed(1)
                layer = mixer_peer.LAYERS[mixer](self.WIDTH, length)
                reader = SyntraModel.__new__(SyntraModel)
                reader.tensors = self.tensors_of(mixer, layer)
                kind, settings = kinds[length][mixer]
                x = torch.randn(self.BATCH, length, self.WIDTH, requires_grad=True)
                cotangent, there = torch.randn_like(x), torch.ones(self.BATCH, length, dtype=torch.bool)
                results = []
                for y in (layer(x), reader.mixer(kind, "at", settings, x, there, 0)):
                    results.append((y, *torch.autograd.grad(y, x, cotangent)))
                for found, expected in zip(*results, strict=True):
                    self.assertLess(float(((found - expected).abs().max() / expected.abs().max()).detach()), 1e-4)

    def test_blocks_of_big_bird_are_near_ends_or_drawn(self) -> None:
        hiding = mixer_peer.LAYERS["big_bird"](self.WIDTH, 640).hiding[0]
        size = mixer_peer.BLOCK
        reads = hiding.unflatten(1, (-1, size)).unflatten(3, (-1, size)) == 0  # [H, N, size, N, size]
        of_blocks = reads[:, :, 0, :, 0]
        self.assertTrue((reads == of_blocks[:, :, None, :, None]).all())
        for block in range(1, 9):
            always = {0, block - 1, block, block + 1, 9}
            for head in of_blocks:
                found = set(head[block].nonzero().flatten().tolist())
                self.assertLessEqual(always, found)
                self.assertEqual(len(found), len(always) + 3)
        self.assertTrue(of_blocks[:, [0, 9]].all())


class Checkpoints(unittest.TestCase):
    def test_each_save_is_a_new_file_behind_those_of_an_earlier_process(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            contents = []
            for _ in range(2):
                command = [sys.executable, str(HERE / "checkpoint_peer.py"), "--operation", "save", "--directory", folder,
                           "--tensors", "1", "--bytes", "8"]
                subprocess.run(command, input="step\nstep\n", text=True, capture_output=True, check=True)
                contents.append(set(os.listdir(folder)))
            self.assertEqual([len(names) for names in contents], [2, 2])
            self.assertTrue(contents[0].isdisjoint(contents[1]))


if __name__ == "__main__":
    unittest.main()
