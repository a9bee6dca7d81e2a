# SPDX-License-Identifier: Apache-2.0
"""Tests of what the step benchmarks compute from times. They need neither a GPU nor PyTorch."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import time
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_goals  # noqa: E402, beside this file
import measuring  # noqa: E402


def load_program(name: str) -> ModuleType:
    loader = SourceFileLoader(name, str(HERE / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


gpu_step = load_program("gpu_step")
finetune = load_program("finetune")
mixers = load_program("mixers")

# Answers a line with how often it was asked, as seconds.
COUNTING_PROGRAM = """
import sys
print('{"ready": true}', flush=True)
for count, _ in enumerate(sys.stdin, start=1):
    print('{"seconds": %d, "processor_seconds": %d}' % (count, 10 * count), flush=True)
print('{"peak_resident_bytes": 7}')
"""


class Times(unittest.TestCase):
    def test_ratios_are_of_neighbours(self) -> None:
        self.assertEqual(measuring.median_ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0]), 2.0)
        with self.assertRaises(ValueError):
            measuring.median_ratio([1.0], [1.0, 2.0])

    def test_an_unsteady_peer_counts_at_its_fastest(self) -> None:
        self.assertEqual(measuring.speed_over([2.0, 2.2, 2.2], [1.0, 1.0, 1.0]), 2.2)
        self.assertEqual(measuring.speed_over([2.0, 2.4, 2.4], [1.0, 1.0, 1.0]), 2.0)

    def test_a_turn_is_the_mean_of_its_lines(self) -> None:
        command = [sys.executable, "-c", COUNTING_PROGRAM]
        stepper = measuring.Stepper(command, {}, lines_per_turn=2)
        self.assertEqual([stepper.step(), stepper.step()], [1.5, 3.5])
        self.assertEqual(stepper.close(), 7)

    def test_the_clock_chooses_what_is_measured(self) -> None:
        command = [sys.executable, "-c", COUNTING_PROGRAM]
        stepper = measuring.Stepper(command, {}, clock="processor_seconds")
        self.assertEqual([stepper.step(), stepper.step()], [10.0, 20.0])
        stepper.kill()

    def test_turns_give_ratios_of_neighbours(self) -> None:
        command = [sys.executable, "-c", COUNTING_PROGRAM]
        steppers = {name: measuring.Stepper(command, {}) for name in ("product", "peer")}
        steppers["peer"].step()
        steppers["peer"].seconds.clear()
        measured = finetune.take_turns(steppers, measuring.Watch(), 3)
        self.assertEqual(measured["speed_over"], {"peer": 1.5})  # of 2/1, 3/2 and 4/3
        self.assertEqual(measured["peak_resident_bytes"], {"product": 7, "peer": 7})

    def test_a_program_that_ends_early_is_an_error(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "ended early"):
            measuring.Stepper([sys.executable, "-c", "pass"], {})

    def test_models_that_differ_are_an_error(self) -> None:
        measuring.check_same_model(5, {"parameters": 5, "flops": 1000}, 1009.0)
        with self.assertRaisesRegex(RuntimeError, "parameters"):
            measuring.check_same_model(5, {"parameters": 6, "flops": 1000}, 1000.0)
        with self.assertRaisesRegex(RuntimeError, "FLOPs"):
            measuring.check_same_model(5, {"parameters": 5, "flops": 1000}, 1020.0)

    def test_results_are_named_after_machine_and_date(self) -> None:
        result = {"machine": "NVIDIA H200 (x)", "date": "2026-01-02T03:04:05Z"}
        with tempfile.TemporaryDirectory() as directory:
            path = measuring.write_result(result, "gpu_step", Path(directory))
            self.assertEqual(path.name, "gpu_step-nvidia-h200-x-2026-01-02T030405Z.json")
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), result)


class Mixers(unittest.TestCase):
    def test_rows_grow_as_far_as_their_cost_allows(self) -> None:
        limits = SimpleNamespace(longest_square=2048, longest_linear=32768, longest=8192)
        self.assertEqual(mixers.lengths_of("dense", limits), [512, 2048])
        self.assertEqual(mixers.lengths_of("retention", limits), [512, 2048, 8192, 32768])
        self.assertEqual(mixers.lengths_of("reformer", limits), [512, 2048, 8192])

    def test_every_mixer_has_a_peer(self) -> None:
        peers = (HERE / "mixer_peer.py").read_text(encoding="utf-8").partition("LAYERS")[2]
        self.assertEqual([name for name in mixers.MIXERS if f'"{name}"' not in peers], [])

    def test_the_exponent_goes_to_the_longest_row(self) -> None:
        class Programs:
            def product(self, mixer: str, batch: int, length: int) -> SimpleNamespace:
                seconds = {512: 1.0, 2048: 3.0, 32768: 64.0}[length]
                return SimpleNamespace(step=lambda: seconds, close=lambda: length)

        grown = mixers.grow(Programs(), "retention", [512, 2048, 32768])
        self.assertAlmostEqual(grown["exponent"], 1.0)
        self.assertEqual(grown["peak_resident_bytes"], [512, 2048, 32768])


def step_result(**changes: object) -> dict[str, Any]:
    """A run on an H200 with a Transformer of 10 steps/s, Syn(R) of 12.5, a peer of 4."""
    summary = {"seconds": [0.1], "kernel_seconds": 0.099, "peak_device_bytes": 30}
    setting = {"implementation": "hugging_face", "batch": 128}
    peer = {
        "name": "the peer",
        "setting": setting,
        "product_over_peer": 2.5,
        "seconds": {"product": [0.1], "peer": [0.25]},
        "peer_summary": {"peak_device_bytes": 60},
        "product_summary": summary,
    }
    random = {
        "seconds": {"transformer": [0.1], "variant": [0.08]},
        "over_transformer": 1.25,
        "summary": summary,
        "transformer_summary": summary,
    }
    plan = {"micro_batch_rows": 128, "flops_per_step": 1e12}
    return {
        "machine": "NVIDIA H200",
        "toy": False,
        "void": [],
        "peers": [peer],
        "variants": {"random": random},
        "plans": {"transformer": plan, "random": plan},
        "losses": {"bf16": {"difference_at_end": 0.01}},
        **changes,
    }


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    return {row.name: row.verdict for row in gpu_goals.judge(result)}


class Goals(unittest.TestCase):
    def test_what_was_measured_is_judged_and_the_rest_named(self) -> None:
        found = verdicts(step_result())
        self.assertEqual(found["Transformer over the peer"], "met")
        self.assertEqual(found["Transformer"], "met")
        self.assertEqual(found["Syn(R) over own Transformer"], "met")
        self.assertEqual(found["Transformer, kernels' share of a step"], "met")
        self.assertEqual(found["Transformer, peak memory over the peer's"], "met")
        self.assertEqual(found["Syn(D) over own Transformer"], "not measured")
        self.assertEqual(found["shared attention over the best SDPA without bias"], "not measured")

    def test_nothing_measured_is_no_error(self) -> None:
        result = step_result(peers=[], variants={}, plans={}, losses={})
        self.assertEqual(set(verdicts(result).values()), {"not measured"})
        self.assertIn("program", gpu_goals.figures(result))

    def test_ratios_to_a_slow_transformer_are_void(self) -> None:
        result = step_result()
        result["peers"][0]["product_over_peer"] = 1.9
        found = verdicts(result)
        self.assertEqual(found["Transformer over the peer"], "missed")
        self.assertEqual(
            found["Syn(R) over own Transformer"], "void: own Transformer misses its goal"
        )

    def test_speed_is_void_where_losses_differ(self) -> None:
        found = verdicts(step_result(losses={"fp32": {"difference_at_end": 0.006}}))
        self.assertEqual(found["Transformer over the peer"], "void: the losses differ")
        self.assertEqual(found["Syn(R), peak memory over the peer's"], "met")

    def test_absolute_goals_are_for_their_device(self) -> None:
        found = verdicts(step_result(machine="NVIDIA H100 80GB HBM3"))
        self.assertEqual(found["Transformer"], "not judged: for one H200")
        self.assertEqual(found["Syn(R) over own Transformer"], "met")

    def test_memory_is_compared_at_one_batch(self) -> None:
        result = step_result()
        result["peers"][0]["setting"]["batch"] = 64
        self.assertEqual(
            verdicts(result)["Transformer, peak memory over the peer's"], "not measured"
        )

    def test_the_goals_peer_is_the_hardest_of_hugging_face(self) -> None:
        result = step_result()
        easier = {**result["peers"][0], "product_over_peer": 3.0}
        plain = {**easier, "setting": {"implementation": "plain"}, "product_over_peer": 1.5}
        result["peers"] += [easier, plain]
        self.assertEqual(gpu_goals.goal_peer(result)["product_over_peer"], 2.5)
        self.assertEqual(gpu_goals.hardest_peer(result)["product_over_peer"], 1.5)

    def test_kernels_are_sums_of_both_passes_against_the_fastest(self) -> None:
        def line(name: str, op: str, seconds: float) -> dict[str, Any]:
            return {"name": name, "op": op, "seconds": seconds}

        own = [
            line("shared attention", "attention", 1.0),
            line("shared attention", "attention_grad", 2.0),
        ]
        again = [line("shared attention", "attention", 1.5)]
        torch = [
            {"name": "attention", "by": "cudnn", "seconds": 9.0},
            {"name": "attention", "by": "flash", "seconds": 10.0},
            {"name": "attention", "by": "math", "seconds": None},
        ]
        result = step_result(kernels={"own": own, "own_again": again, "torch": torch})
        found = {row.name: row.measured for row in gpu_goals.judge(result)}
        self.assertEqual(
            found["shared attention over the best SDPA without bias"], 9.0 / (1.5 + 2.0)
        )
        self.assertIn("| attention | math | - |", gpu_goals.figures(result))


class Budget(unittest.TestCase):
    def setUp(self) -> None:
        self.saved = 0
        self.run_of = SimpleNamespace(
            result={"failed": {}, "dropped": [], "part_seconds": {}},
            programs=SimpleNamespace(),
            remaining=lambda: 100.0,
            save=self.save,
        )

    def save(self) -> None:
        self.saved += 1

    def test_parts_that_do_not_fit_are_dropped_and_smaller_ones_run(self) -> None:
        done: list[str] = []
        parts = [
            gpu_step.Part("large", 80, lambda: done.append("large")),
            gpu_step.Part("small", 60, lambda: done.append("small")),
        ]
        gpu_step.attempt_in_time(parts, self.run_of, 30)
        self.assertEqual(done, ["small"])
        self.assertEqual(self.run_of.result["dropped"], ["large"])

    def test_a_part_that_fails_leaves_the_others(self) -> None:
        def fail() -> None:
            raise RuntimeError("no kernel")

        done: list[str] = []
        parts = [gpu_step.Part("a", 1, fail), gpu_step.Part("b", 1, lambda: done.append("b"))]
        gpu_step.attempt_in_time(parts, self.run_of, 0)
        self.assertEqual(self.run_of.result["failed"], {"a": "RuntimeError: no kernel"})
        self.assertEqual((done, self.saved), (["b"], 2))

    def test_a_part_that_hangs_is_stopped_and_leaves_the_others(self) -> None:
        def hang() -> None:
            measuring.Stepper([sys.executable, "-c", "import time; time.sleep(60)"], {})

        done: list[str] = []
        parts = [gpu_step.Part("a", 0.2, hang), gpu_step.Part("b", 1, lambda: done.append("b"))]
        start = time.monotonic()
        gpu_step.attempt_in_time(parts, self.run_of, 0)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("ended early (-9)", self.run_of.result["failed"]["a"])
        self.assertEqual(done, ["b"])


if __name__ == "__main__":
    unittest.main()
