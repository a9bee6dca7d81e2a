# SPDX-License-Identifier: Apache-2.0
"""Tests of what the benchmarks compute from times. They need neither a GPU nor PyTorch."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import time
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import corpus  # noqa: E402, beside this file
import gpu_goals  # noqa: E402
import gpu_programs  # noqa: E402
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
gpu_model = load_program("gpu_model")
finetune = load_program("finetune")
mixers = load_program("mixers")
comm = load_program("comm")
ranks = load_program("ranks")
data = load_program("data")
checkpoint = load_program("checkpoint")
scale = load_program("scale")

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

    def test_what_a_command_printed_before_it_failed_is_kept(self) -> None:
        endings = {"sys.exit(3)": r"failed \(3\)", "time.sleep(60)": "not done after"}
        for ending, why in endings.items():
            program = f"import sys, time; print('{{}}', flush=True); print('{{', end='', flush=True); {ending}"
            with self.assertRaisesRegex(measuring.FailedCommand, why) as failed:
                measuring.output_of(sys.executable, "-c", program, seconds=1.0 if "sleep" in ending else None)
            self.assertEqual(gpu_programs.json_lines(failed.exception.output), [{}])

    def test_a_program_that_ends_early_is_an_error(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "ended early"):
            measuring.Stepper([sys.executable, "-c", "pass"], {})

    def test_a_program_that_is_killed_between_steps_says_so(self) -> None:
        stepper = measuring.Stepper([sys.executable, "-c", COUNTING_PROGRAM], {})
        stepper.step()
        stepper.process.kill()
        stepper.process.wait()
        with self.assertRaisesRegex(RuntimeError, r"ended early \(-9, killed: .* too little memory"):
            stepper.step()
        stepper.kill()

    def test_models_that_differ_are_an_error(self) -> None:
        measuring.check_same_model(5, {"parameters": 5, "flops": 1000}, 1009.0)
        with self.assertRaisesRegex(RuntimeError, "parameters"):
            measuring.check_same_model(5, {"parameters": 6, "flops": 1000}, 1000.0)
        with self.assertRaisesRegex(RuntimeError, "FLOPs"):
            measuring.check_same_model(5, {"parameters": 5, "flops": 1000}, 1020.0)

    def test_others_may_use_a_share_of_all_processors(self) -> None:
        watch = measuring.Watch(seconds=10.0, foreign=0.2, stolen=0.1)
        processors = os.cpu_count() or 1
        self.assertAlmostEqual(watch.share(), 0.03 / processors)
        self.assertAlmostEqual(watch.foreign_share(), 0.02 / processors)
        self.assertEqual(measuring.reasons_void({"foreign_share": 0.024}), [])
        found = measuring.reasons_void({"foreign_share": 0.026, "peak_drift": 0.2})
        self.assertEqual(found, ["the machine's peak moved by 20 %", "others used 2.6 % of the machine's processors"])

    def test_results_are_named_after_machine_and_date(self) -> None:
        result = {"machine": "NVIDIA H200 (x)", "date": "2026-01-02T03:04:05Z"}
        with tempfile.TemporaryDirectory() as directory:
            path = measuring.write_result(result, "gpu_step", Path(directory))
            self.assertEqual(path.name, "gpu_step-nvidia-h200-x-2026-01-02T030405Z.json")
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), result)


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
            mock.patch.object(sys, "argv", ["gpu_model", "--measure", "--results", folder]),
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


class Sums(unittest.TestCase):
    def test_turns_of_all_launches_are_compared(self) -> None:
        seconds: comm.Seconds = {}
        for factor in (1, 2):
            ours = {"all_reduce": [factor * 0.01], "reduce_scatter": [factor * 0.005], "mpi_all_reduce": [factor * 0.05]}
            comm.add_times(seconds, json.dumps({"megabytes": 64, "seconds": ours}) + "\n")
            comm.add_times(seconds, json.dumps({"megabytes": 64, "seconds": {"gloo": [factor * 0.03]}}))
        self.assertEqual(seconds["64"]["gloo"], [0.03, 0.06])
        bound = {"megabytes": 64, "seconds": {"mpi_all_reduce": [0.048, 0.096]}}
        rows = {row.name: row for row in comm.rows_of(seconds)}
        self.assertAlmostEqual(rows["all_reduce of 64 MB over mpi_all_reduce"].measured, 5)
        self.assertFalse(rows["all_reduce of 64 MB over gloo"].met())
        self.assertTrue(rows["reduce_scatter of 64 MB over mpi_all_reduce"].met())
        comm.add_times(seconds, json.dumps(bound), comm.BOUND)  # the faster setting counts
        rows = {row.name: row for row in comm.rows_of(seconds)}
        self.assertAlmostEqual(rows["all_reduce of 64 MB over mpi_all_reduce"].measured, 4.8)


class Ranks(unittest.TestCase):
    def test_steps_are_read_from_the_metrics(self) -> None:
        metrics = '{"step":1,"loss":3.0,"seconds":2.5}\n{"step":1,"validation_loss":3.0}\n{"step":2,"loss":3.0,"seconds":2}\n'
        self.assertEqual(ranks.our_seconds(metrics), [2.5, 2.0])

    def test_a_rank_has_as_many_rows_in_every_training(self) -> None:
        options = SimpleNamespace(ranks=2, rows=4, steps=3, syntra=Path("syntra"))
        batches = {}
        for name, training in ranks.TRAININGS.items():
            command = [str(part) for part in ranks.our_command(training, options, Path("folder"))]
            batches[name] = int(command[1]), [part for part in command if "batch_size=" in part]
        self.assertEqual(batches["one rank"], (1, ["train.batch_size=4", "train.micro_batch_size=4"]))
        self.assertEqual(batches["ranks"], (2, ["train.batch_size=8", "train.micro_batch_size=4"]))
        self.assertEqual(batches["ranks, two micro-batches, EXACT"], (2, ["train.batch_size=8", "train.micro_batch_size=2"]))

    def test_speeds_are_those_of_equal_work(self) -> None:
        seconds = {name: [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]] for name in ranks.TRAININGS}
        seconds["ranks"] = [[1.25], [2.5], [3.75]]
        seconds["PyTorch, ranks"] = [[2.5], [5.0], [7.5]]
        rows = [row.measured for row in ranks.rows_of({"seconds": seconds})]
        for measured, expected in zip(rows, [0.8, 1.0, 2.0, 0.0], strict=True):
            self.assertAlmostEqual(measured, expected)


class Checkpoints(unittest.TestCase):
    def test_a_save_costs_what_runs_with_saves_take_longer(self) -> None:
        lines = [{"step": step, "time": f"2026-11-24T00:00:{step * 2:02}.500Z", "loss": 1} for step in range(1, 10)]
        metrics = "\n".join(json.dumps(line) for line in [*lines, {"step": 9, "time": "x", "validation_loss": 1}])
        self.assertEqual(checkpoint.training_seconds(metrics), 12.0)  # from step 2 to step 8
        self.assertEqual(checkpoint.cost_of_a_save([14.0, 13.0, 20.0], [12.0, 12.0, 12.0]), 1.0)  # two saves each


class Data(unittest.TestCase):
    DOCUMENTS = tuple(f"The {n}th word is number{n}. It comes once, after word{n - 1}." for n in range(200))

    def test_documents_do_not_repeat_and_have_new_words(self) -> None:
        known = {word for document in self.DOCUMENTS for word in document.split()}
        made = corpus.Recombiner(list(self.DOCUMENTS), 0.1).documents()
        documents = [next(made) for _ in range(30)]
        again = corpus.Recombiner(list(self.DOCUMENTS), 0.1).documents()
        self.assertEqual(documents, [next(again) for _ in range(30)])
        self.assertEqual(len(set(documents)), 30)
        words = [word for document in documents for word in document.split()]
        new = [word for word in words if word not in known]
        self.assertEqual(len(set(new)), len(new))
        self.assertAlmostEqual(len(new) / len(words), 0.1, delta=0.02)

    def test_new_words_are_counted_in_the_last_documents(self) -> None:
        self.assertEqual(corpus.share_of_new_words(["a b"] * 9 + ["a c"]), 0.25)

    def test_files_are_of_one_size(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files = corpus.write_files(self.DOCUMENTS, Path(folder), "real", 1000, 3)
            self.assertEqual([file["kind"] for file in files], ["real"] * 3)
            texts = [text for file in files for text in corpus.documents_of(Path(file["path"]))]
            self.assertEqual(texts, list(self.DOCUMENTS[: len(texts)]))
            self.assertEqual(sum(len(text) for text in texts), sum(file["bytes"] for file in files))

    def test_rates_are_of_each_kind_of_file(self) -> None:
        files = [{"kind": "real", "bytes": 4e6}, {"kind": "real", "bytes": 4e6}, {"kind": "recombined", "bytes": 4e6}]
        times = dict.fromkeys(data.OURS + data.PEERS, [0.1, 0.1, 0.2])
        result = {"corpus": {"files": files}, "seconds": {**times, "sentencepiece": [1.0, 1.2, 4.0]}}
        rows = {row.name: row.measured for row in data.rows_of(result)}
        self.assertAlmostEqual(rows["real: encode over SentencePiece"], 11)
        self.assertAlmostEqual(rows["recombined: encode over SentencePiece"], 20)
        self.assertAlmostEqual(rows["real: json.gz to batches"], 20)
        self.assertAlmostEqual(rows["recombined: core-hours for all of C4 to token shards"], 800e3 / 20 / 3600)

    def test_encoders_that_differ_are_an_error(self) -> None:
        ids = {name: [1000] for name in data.OURS + data.PEERS}
        data.check_ids({**ids, "sentencepiece": [1001]})
        with self.assertRaisesRegex(RuntimeError, "tokenizers makes 1002"):
            data.check_ids({**ids, "tokenizers": [1002]})


class Scale(unittest.TestCase):
    def test_phases_are_medians_without_waiting_for_data(self) -> None:
        def step(backward: float, data: float) -> dict[str, float]:
            return {"seconds": 4 + backward + data, "data_seconds": data, "forward_seconds": 1,
                    "backward_seconds": backward, "reduce_seconds": 2, "optimizer_seconds": 0.5}

        found = scale.seconds_of([step(2, 0), step(3, 9), step(7, 1)])
        self.assertEqual(found, {"step": 7, "compute": 4, "sums": 2, "update": 0.5})

    def test_a_prediction_has_the_same_phases(self) -> None:
        prediction = {"step_seconds": 10, "forward_seconds": 1, "backward_seconds": 2, "exposed_sum_seconds": 3,
                      "update_seconds": 1.5, "gather_seconds": 2.5}
        found = scale.predicted_seconds({"prediction": prediction})
        self.assertEqual(found, {"step": 10, "compute": 3, "sums": 3, "update": 4})

    def test_both_directions_can_miss(self) -> None:
        for error, word in ((0.149, "within"), (-0.149, "within"), (0.151, "missed"), (-0.151, "missed")):
            self.assertEqual(scale.verdict({"error": error}), word)

    def test_runs_take_turns_and_give_errors(self) -> None:
        class Programs:
            def predict(self, ranks: int, sharding: str) -> dict[str, Any]:
                return {"prediction": dict.fromkeys(("step_seconds", "forward_seconds", "backward_seconds",
                                                     "exposed_sum_seconds", "update_seconds", "gather_seconds"), 1.1)}

            def train(self, ranks: int, sharding: str) -> list[dict[str, float]]:
                return [{"seconds": 1, "data_seconds": 0, "forward_seconds": 0, "backward_seconds": 0,
                         "reduce_seconds": 0, "optimizer_seconds": 0}]

        rows = scale.compare(Programs(), measuring.Watch(), 2)
        self.assertEqual([(row["ranks"], row["sharding"]) for row in rows],
                         [(1, "NONE"), (2, "NONE"), (4, "NONE"), (2, "OPTIMIZER_STATE"), (4, "OPTIMIZER_STATE")])
        for row in rows:
            self.assertAlmostEqual(row["error"], 0.1)
            self.assertEqual(len(row["rounds"]), 2)


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
                measuring.write_result(result, "gpu_step", Path(folder))
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
