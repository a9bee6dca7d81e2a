# SPDX-License-Identifier: Apache-2.0
"""Tests that PyTorch's sides of the benchmarks compute what the product does. They need PyTorch; without it the exit code is 77."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import math
import re
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

if importlib.util.find_spec("torch") is None:
    print("[  SKIPPED ] this Python has no torch")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attention_peers  # noqa: E402, beside this file
import gpu_goals  # noqa: E402
import gpu_peer  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
