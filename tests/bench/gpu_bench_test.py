# SPDX-License-Identifier: Apache-2.0
"""Tests of what the GPU's benchmarks predict, measure and judge. They need neither a GPU nor PyTorch."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import gpu_goals
import measuring
import reporting
from programs import load_program

HERE = Path(__file__).resolve().parent

gpu_step = load_program("gpu_step")
gpu_model = load_program("gpu_model")


class Model(unittest.TestCase):
    CEILINGS = gpu_model.Ceilings("toy", flops_per_second=100.0, bytes_per_second=10.0)

    def call(self, op: str, flops: float, moved: float, operands: str = "f32[1] -> f32[1]", calls: int = 1) -> dict[str, Any]:
        return {"op": op, "operands": operands, "calls": calls, "flops_per_call": flops, "bytes_per_call": moved}

    def test_the_longer_of_products_and_memory_decides(self) -> None:
        products = gpu_model.predict_calls(self.call("matmul", 400.0, 10.0, calls=2), self.CEILINGS)
        self.assertEqual((products.flops, products.bytes, products.least), (800.0, 20.0, 8.0))
        self.assertAlmostEqual(products.expected, 8.0 / 0.8, places=5)
        memory = gpu_model.predict_calls(self.call("copy", 0.0, 40.0), self.CEILINGS)
        self.assertEqual(memory.least, 4.0)

    def test_attention_that_reads_no_queries_is_shared(self) -> None:
        shared = self.call("attention", 1.0, 1.0, "bf16[2, 3, 4], f32[1, 3, 3] -> bf16[2, 3, 4], f32[2, 1, 3]")
        self.assertEqual(gpu_model.kind_of(shared).name, "shared attention")
        three = self.call("attention", 1.0, 1.0, "bf16[2, 3, 4], bf16[2, 3, 4], bf16[2, 3, 4] -> bf16[2, 3, 4]")
        self.assertEqual(gpu_model.kind_of(three).name, "attention")

    def test_measured_times_stand_beside_predictions(self) -> None:
        sums = gpu_model.predict([self.call("copy", 0.0, 40.0), self.call("matmul", 500.0, 0.0)], self.CEILINGS)
        self.assertEqual(list(sums), ["matmul", "copy"])
        printed = gpu_model.ops_table(sums, {"ops": {"copy": 7.0, "matmul": 6.0}, "median": 14.0}).splitlines()
        self.assertEqual([line.split(" | ")[-1] for line in printed[2:]], ["6000.00 |", "7000.00 |", "14000.00 |"])

    def test_a_variant_that_fails_leaves_its_prediction_and_the_others(self) -> None:
        def measure(_: Path, settings: list[str], __: int) -> dict[str, Any]:
            if "base_dense.textproto" in " ".join(map(str, settings)):
                raise measuring.FailedCommand("not done after 120 s", "")
            return {"median": 2.0, "ops": {}}

        written = []
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(gpu_model, "plan_of", lambda *_: {"ops": [self.call("copy", 0.0, 40.0)]}),
            mock.patch.object(gpu_model, "measure", measure),
            mock.patch.object(gpu_model, "write_result", lambda *result: written.append(result[0])),
            mock.patch.object(sys, "argv", ["gpu_model", "--measure", "--results", folder, "--syntra", sys.executable]),
            mock.patch("builtins.print"),
            self.assertRaisesRegex(SystemExit, "FAILED: dense: FailedCommand: not done"),
        ):
            gpu_model.main()
        self.assertEqual(len(written), len(gpu_goals.VARIANTS))
        variants = written[-1]["variants"]
        self.assertNotIn("measured", variants["dense"])
        self.assertEqual(variants["joint_cross_attention"]["measured"]["median"], 2.0)

    def test_without_a_gpu_it_says_that_it_predicts(self) -> None:
        result = {"machine": "toy", "variants": {"transformer": {"least": 1.0, "expected": 2.0}}}
        result["ceilings"] = vars(self.CEILINGS)
        self.assertIn("this is a prediction", gpu_model.report(result, {}, []))


def step_result(**changes: object) -> dict[str, Any]:
    """A run on an H200 with a Transformer of 10 steps/s, Syn(R) of 12.5, a peer of 4."""
    summary = {"seconds": [0.1], "peak_device_bytes": 30}
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
        "ceilings": [],
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
            return {"name": name, "op": op, "seconds": seconds, "flops": 4e9, "bytes": 3e6}

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
        self.assertIn("| shared attention | Syntra, attention | 1000000 | 4.0 | 3 | - |", gpu_goals.figures(result))
        # The products alone would take 0.4 s, the bytes 0.3 s.
        result["ceilings"] = [{"flops_per_second": 1e10, "bytes_per_second": 1e7}]
        self.assertIn("| shared attention | Syntra, attention | 1000000 | 4.0 | 3 | 40 % |", gpu_goals.figures(result))


    def test_a_goal_over_torch_compile_is_not_met_over_eager_pytorch(self) -> None:
        own = [{"name": "residual and norm", "op": "add_norm_grad", "seconds": 1.0, "flops": 1.0, "bytes": 1.0}]
        for by, verdict in (("torch.compile", "met"), ("eager", "not measured")):
            torch = [{"name": f"residual and norm, {what}", "by": by, "seconds": seconds}
                     for what, seconds in (("forward", 1.0), ("both passes", 3.0))]
            result = step_result(kernels={"own": own, "own_again": own, "torch": torch})
            self.assertEqual(verdicts(result)["residual and norm, backward over torch.compile"], verdict)


class Peers(unittest.TestCase):
    def test_kernels_that_differ_are_an_error(self) -> None:
        own = [{"flops": 10.0, "bytes": 7.0}, {"flops": 20.0, "bytes": 9.0}]
        gpu_step.check_same_kernel(own, {"flops": 30.0, "bytes": 7.0})
        with self.assertRaisesRegex(RuntimeError, "operands"):
            gpu_step.check_same_kernel(own, {"flops": 30.0, "bytes": 8.0})
        with self.assertRaisesRegex(RuntimeError, "FLOPs"):
            gpu_step.check_same_kernel(own, {"flops": 31.0, "bytes": 7.0})

    def run_with(self, programs: SimpleNamespace) -> Any:
        options = SimpleNamespace(minutes=1.0, device="cuda")
        run = gpu_step.Run(options, programs, {"toy": False}, time.monotonic())
        run.save = lambda: None
        return run

    def test_an_implementation_that_cannot_be_compared_is_left_out(self) -> None:
        def describe(implementation: str) -> dict[str, int]:
            if implementation == "hugging_face":
                raise measuring.FailedCommand("not done after 60 s", "")
            return {"parameters": 5 if implementation == "plain" else 6, "flops": 100}

        plan = {"parameters": 5, "flops_per_step": 100}
        run = self.run_with(SimpleNamespace(plan=lambda _: plan, describe_peer=describe))
        run.plans()
        self.assertEqual(run.result["implementations"], ["plain"])
        self.assertEqual(list(run.result["left_out"]), ["hugging_face", "plain_random"])
        self.assertIn("parameters", run.result["left_out"]["plain_random"])

    def test_kernels_that_came_before_a_failure_stay(self) -> None:
        good = {"name": "a", "op": "attention", "seconds": 1.0}
        bad = {"name": "b", "error": "out of memory"}
        printed = "".join(json.dumps(line) + "\n" for line in ({"device": "gpu"}, good, bad))

        def own_kernels() -> list[dict[str, Any]]:
            raise measuring.FailedCommand("failed (1)", printed + '{"na')

        run = self.run_with(SimpleNamespace(own_kernels=own_kernels, reference=lambda _: [good]))
        with self.assertRaisesRegex(RuntimeError, r"failed \(1\); failed \(1\)"):
            run.kernels()
        self.assertEqual(run.result["kernels"], {"own": [good, bad], "torch": [good], "own_again": [good, bad]})
        self.assertEqual(gpu_goals.own_kernel(run.result, "a", "attention"), 1.0)
        with self.assertRaises(LookupError):
            gpu_goals.own_kernel(run.result, "b", "attention")

    def test_pytorch_is_not_asked_for_what_has_no_counterpart(self) -> None:
        run = self.run_with(SimpleNamespace(reference=lambda *_: self.fail("PyTorch was asked")))
        with self.assertRaises(LookupError):
            run.training_kernel("a")
        run.result["kernels"] = {"own": [{"name": "a", "op": "attention", "seconds": 1.0}]}
        with self.assertRaises(LookupError):
            run.training_kernel("a")

    def test_times_of_another_kernel_are_kept_but_not_compared(self) -> None:
        own = [{"name": "a", "seconds": 1.0, "flops": 10.0, "bytes": 7.0}] * 2
        peer = {"name": "a", "by": "flex", "seconds": 1.0, "flops": 20.0, "bytes": 8.0}
        run = self.run_with(SimpleNamespace(reference=lambda *_: [peer]))
        run.result["kernels"] = {"own": own, "own_again": [], "torch": []}
        with self.assertRaisesRegex(RuntimeError, "operands"):
            run.training_kernel("a")
        self.assertEqual(run.result["training_kernels"]["a"][0]["seconds"], 1.0)
        with self.assertRaises(LookupError):
            gpu_goals.torch_kernel(run.result, "a")

    def test_the_products_rate_is_the_peers(self) -> None:
        config = (HERE / "configs/dropout.textproto").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"dropout: ([0-9.]+)", config), [str(gpu_step.DROPOUT)] * 3)


class Budget(unittest.TestCase):
    def setUp(self) -> None:
        self.saved = 0
        self.run_of = SimpleNamespace(
            result={"done": [], "failed": {}, "dropped": [], "part_seconds": {}, "ceilings": [], "left_out": {}},
            options=SimpleNamespace(parts=("step",)),
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
        self.assertEqual(self.run_of.result["done"], ["small"])

    def test_a_part_that_fails_leaves_the_others(self) -> None:
        def fail() -> None:
            raise RuntimeError("no kernel")

        done: list[str] = []
        parts = [gpu_step.Part("a", 1, fail), gpu_step.Part("b", 1, lambda: done.append("b"))]
        gpu_step.attempt_in_time(parts, self.run_of, 0)
        self.assertEqual(self.run_of.result["failed"], {"a": "RuntimeError: no kernel"})
        self.assertEqual((done, self.saved), (["b"], 2))
        parts[0] = gpu_step.Part("a", 1, lambda: done.append("a"))
        gpu_step.attempt_in_time(parts[:1], self.run_of, 0)
        self.assertEqual((self.run_of.result["failed"], self.run_of.result["done"]), ({}, ["b", "a"]))

    def test_a_part_that_hangs_is_stopped_and_leaves_the_others(self) -> None:
        def hang() -> None:
            measuring.Stepper([sys.executable, "-c", "import time; time.sleep(60)"], {})

        done: list[str] = []
        parts = [gpu_step.Part("a", 0.2, hang), gpu_step.Part("b", 1, lambda: done.append("b"))]
        start = time.monotonic()
        gpu_step.attempt_in_time(parts, self.run_of, 0)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("ended early (-9, killed", self.run_of.result["failed"]["a"])
        self.assertEqual(done, ["b"])

    def test_a_call_goes_on_where_the_last_one_ended(self) -> None:
        done: list[str] = []

        def part(name: str, group: str = "step") -> Any:
            return gpu_step.Part(name, 1, lambda: done.append(name), group)

        run = self.run_of
        run.ceilings = lambda: run.result["ceilings"].append({"flops_per_second": 1.0})
        run.plans = lambda: done.append("plans")
        parts = [part("failed"), part("a"), part("b"), part("k", "kernels")]
        with mock.patch.object(gpu_step, "parts_of", lambda _: parts):
            run.result |= {"done": ["plans", "a"], "failed": {"failed": "no kernel"}}
            gpu_step.measure(run)
            self.assertEqual(done, ["b", "failed"])
            run.options.parts = ("kernels",)
            gpu_step.measure(run)
        self.assertEqual(done, ["b", "failed", "k"])
        self.assertEqual(len(run.result["ceilings"]), 4)

    def test_the_exit_code_is_that_of_the_parts_of_this_call(self) -> None:
        def fail() -> None:
            raise RuntimeError("no kernel")

        run = self.run_of
        run.ceilings = run.plans = lambda: None
        parts = [gpu_step.Part("a", 1, lambda: None), gpu_step.Part("k", 1, fail, "kernels"), gpu_step.Part("l", 200, fail, "kernels")]
        with mock.patch.object(gpu_step, "parts_of", lambda _: parts):
            for groups, code in (("kernels",), 75), (("step",), 0), (("step", "kernels"), 75):
                run.options.parts = groups
                self.assertEqual(gpu_step.exit_code(run.result, gpu_step.measure(run)), code)
            del parts[2]
            run.options.parts = ("kernels",)
            self.assertEqual(gpu_step.exit_code(run.result, gpu_step.measure(run)), 1)
            run.plans = fail
            run.result["done"].remove("plans")
            run.options.parts = ("step",)
            self.assertEqual(gpu_step.exit_code(run.result, gpu_step.measure(run)), 1)

    def test_losses_follow_the_first_peer_and_what_no_goal_needs_is_last(self) -> None:
        options = SimpleNamespace(minutes=1.0, eager=False, peer_batch=2)
        result = {"done": ["plans"], "implementations": ["plain"], "plans": {"transformer": {"micro_batch_rows": 2}}}
        names = [part.name for part in gpu_step.parts_of(gpu_step.Run(options, None, {**result, "device": {}}, 0.0))]
        self.assertIn("peer: plain PyTorch T5", names[0])
        self.assertEqual(names[1:3], ["losses in bf16", "losses in fp32"])
        self.assertEqual(names[-1], "variant: joint_cross_attention")

    def test_losses_are_in_memory_where_there_is_room_and_no_other_wish(self) -> None:
        def chosen(free: int, **environment: str) -> str | None:
            with (
                tempfile.TemporaryDirectory() as folder,
                mock.patch.object(gpu_step, "MEMORY_FOLDER", Path(folder)),
                mock.patch.object(gpu_step.shutil, "disk_usage", lambda _: SimpleNamespace(free=free)),
                mock.patch.dict(os.environ, environment),
            ):
                if not environment:
                    os.environ.pop("TMPDIR", None)
                found = gpu_step.roomy_memory()
                self.assertIn(found, (None, folder))
                return found

        self.assertIsNotNone(chosen(11 << 30))
        self.assertIsNone(chosen(9 << 30))
        self.assertIsNone(chosen(11 << 30, TMPDIR="/somewhere"))

    def test_single_kernels_need_no_plans(self) -> None:
        self.assertEqual({part.group for part in gpu_step.parts_of(gpu_step.Run(SimpleNamespace(minutes=1.0), None, {}, 0.0))}, {"kernels"})

    def test_only_a_result_of_the_same_run_is_continued(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for date, commit in (("1", "a"), ("2", "a"), ("3", "b")):
                result = {"machine": "gpu", "date": date, "commit": commit, "done": []}
                reporting.write_result(result, "gpu_step", Path(folder))
            self.assertEqual(gpu_step.earlier_result(Path(folder), {"commit": "a"})["date"], "2")
            self.assertEqual(gpu_step.earlier_result(Path(folder), {"commit": "c"}), {})

    def test_what_moved_between_calls_is_void(self) -> None:
        result = {"ceilings": [{"bytes_per_second": rate} for rate in (1.0, 1.1, 1.3)], "device": {}}
        gpu_step.note_what_is_void(result, measuring.Watch(seconds=1.0))
        self.assertEqual(result["void"], ["the machine's peak moved by 30 %"])
        once = {"ceilings": result["ceilings"][:1], "device": {}}
        gpu_step.note_what_is_void(once, measuring.Watch(seconds=1.0, stolen=1.0 * (os.cpu_count() or 1)))
        self.assertEqual((once["stolen_share"], once["void"]), (1.0, ["the machine's ceilings were not measured twice"]))
        gpu_step.note_what_is_void(once, measuring.Watch())
        self.assertEqual(once["void"], ["the machine's ceilings were not measured twice"])

if __name__ == "__main__":
    unittest.main()
