# SPDX-License-Identifier: Apache-2.0
"""Tests of what the benchmarks compute from times. They need no PyTorch. Those of the GPU's benchmarks are in gpu_bench_test.py."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import corpus
import gpu_programs
import measuring
import reporting
from programs import load_program

HERE = Path(__file__).resolve().parent

cpu_step = load_program("cpu_step")
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
        measured = measuring.take_turns(steppers, measuring.Watch(), 3)
        self.assertEqual(measured["speed_over"], {"peer": 1.5})  # of 2/1, 3/2 and 4/3
        self.assertEqual(measured["peak_resident_bytes"], {"product": 7, "peer": 7})

    def test_the_fastest_goes_on_alone(self) -> None:
        made: dict[str, measuring.Stepper] = {}

        def start(name: str, seconds: float) -> measuring.Stepper:
            self.assertLessEqual(sum(each.process.poll() is None for each in made.values()), 1)
            program = COUNTING_PROGRAM.replace("count, 10 * count", f"{seconds}, 0")
            made[name] = measuring.Stepper([sys.executable, "-c", program], {})
            return made[name]

        tries = {name: partial(start, name, seconds) for name, seconds in (("a", 2), ("b", 1), ("c", 3))}
        with measuring.fastest(tries) as (name, best, seconds):
            self.assertEqual((name, best, best.seconds), ("b", made["b"], []))
            self.assertEqual(seconds, {"a": 2.0, "b": 1.0, "c": 3.0})
            self.assertEqual([each.process.poll() is None for each in made.values()], [False, True, False])
        with measuring.fastest({"a": tries["a"]}) as (name, _, seconds):
            self.assertEqual((name, seconds), ("a", {}))

    def test_all_that_were_tried_are_ended_whatever_happens(self) -> None:
        made: list[measuring.Stepper] = []

        def start() -> measuring.Stepper:
            made.append(measuring.Stepper([sys.executable, "-c", COUNTING_PROGRAM], {}))
            return made[-1]

        def fail() -> measuring.Stepper:
            raise RuntimeError("no peer")

        with self.assertRaisesRegex(RuntimeError, "no peer"), measuring.fastest({"a": start, "b": fail}):
            self.fail("one could not be started")
        self.assertIsNotNone(made[0].process.poll())

    def test_what_a_command_printed_before_it_failed_is_kept(self) -> None:
        endings = {"sys.exit(3)": r"failed \(3\)", "time.sleep(60)": "not done after"}
        for ending, why in endings.items():
            program = f"import sys, time; print('{{}}', flush=True); print('{{', end='', flush=True); {ending}"
            with self.assertRaisesRegex(measuring.FailedCommand, why) as failed:
                measuring.output_of(sys.executable, "-c", program, seconds=1.0 if "sleep" in ending else math.inf)
            self.assertEqual(gpu_programs.json_lines(failed.exception.output), [{}])

    def test_the_messages_of_a_quiet_command_are_in_its_error(self) -> None:
        with self.assertRaisesRegex(measuring.FailedCommand, "no such thing$"):
            measuring.output_of(sys.executable, "-c", "import sys; sys.exit('no such thing')", quiet=True)

    def test_a_peer_serves_turns(self) -> None:
        program = "import peer; peer.serve_turns({'name': 'x'}, lambda: None, summary=lambda: {'count': 3})"
        stepper = measuring.Stepper([sys.executable, "-c", program], {"PYTHONPATH": str(HERE)})
        self.assertGreater(stepper.step(), 0)
        self.assertGreater(stepper.close(), 0)
        self.assertEqual((stepper.ready, stepper.summary["count"]), ({"name": "x"}, 3))

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
        reporting.check_same_model(5, {"parameters": 5, "flops": 1000}, 1009.0)
        with self.assertRaisesRegex(RuntimeError, "parameters"):
            reporting.check_same_model(5, {"parameters": 6, "flops": 1000}, 1000.0)
        with self.assertRaisesRegex(RuntimeError, "FLOPs"):
            reporting.check_same_model(5, {"parameters": 5, "flops": 1000}, 1020.0)

    def test_others_may_use_a_share_of_all_processors(self) -> None:
        watch = measuring.Watch(seconds=10.0, foreign=0.2, stolen=0.1)
        processors = os.cpu_count() or 1
        self.assertAlmostEqual(watch.share(), 0.03 / processors)
        self.assertAlmostEqual(watch.foreign_share(), 0.02 / processors)
        self.assertEqual(reporting.reasons_void({"foreign_share": 0.024}), [])
        found = reporting.reasons_void({"foreign_share": 0.026, "peak_drift": 0.2})
        self.assertEqual(found, ["the machine's peak moved by 20 %", "others used 2.6 % of the machine's processors"])

    def test_a_void_run_neither_meets_nor_misses_goals(self) -> None:
        rows = [reporting.Row("good", 2, 1), reporting.Row("bad", 2, 1, at_most=True)]
        for foreign, clock, words in ((0.0, "seconds", ("met", "missed")), (0.5, "seconds", ("void", "void")),
                                      (0.5, "processor_seconds", ("met", "missed"))):
            judged = reporting.judged(rows, {"foreign_share": foreign, "clock": clock})
            self.assertEqual(tuple(row["verdict"] for row in judged), words)
        share = {"seconds_of_a_save": 1.0}
        self.assertIn(", void)", checkpoint.report({"machine": "x", "date": "now", "bytes": 1, "tensors": 1, "foreign_share": 0.5,
                                                    "training": share, "compared": defaultdict(lambda: defaultdict(lambda: 1.0))}))

    def test_less_than_one_turn_is_refused(self) -> None:
        parser = argparse.ArgumentParser()
        reporting.add_pairs_option(parser, 7)
        self.assertEqual(parser.parse_args(["--pairs", "1"]).pairs, 1)
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaisesRegex(SystemExit, "2"):
            parser.parse_args(["--pairs", "0"])
        self.assertIn("argument --pairs: 0 is not at least 1", said.getvalue())

    def test_numbers_that_leave_nothing_to_measure_are_refused(self) -> None:
        for program, arguments in ((ranks, ["--steps", "1"]), (scale, ["--steps", "5"])):
            with (
                mock.patch.object(sys, "argv", ["x", *arguments]),
                contextlib.redirect_stderr(io.StringIO()) as said,
                self.assertRaisesRegex(SystemExit, "2"),
            ):
                program.main()
            self.assertIn(f"argument --steps: {arguments[1]} is not at least", said.getvalue())

    def test_machines_that_are_too_small_are_refused(self) -> None:
        options = SimpleNamespace(ranks=len(os.sched_getaffinity(0)) + 1)
        with self.assertRaisesRegex(RuntimeError, "need as many cores"):
            ranks.measure(options)
        with mock.patch.object(os, "sysconf", lambda _: 1 << 20), self.assertRaisesRegex(RuntimeError, "8 GiB .* there are 4.0"):
            cpu_step.measure(options)

    def test_what_is_missing_is_said_before_anything_is_measured(self) -> None:
        def run(*arguments: str) -> tuple[int | str | None, str]:
            parser = reporting.benchmark_parser("x", ["machine_peak"], packages=["json", "no_such_package"])
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                reporting.run_benchmark("x", parser.parse_args(arguments), lambda _: self.fail("it measured first"), lambda _: "")
            return ended.exception.code, said.getvalue()

        nowhere = "/nowhere/machine_peak"
        self.assertEqual(run("--machine-peak", nowhere), (f"x: there is no program {nowhere} (ninja -C build machine_peak builds it)", ""))
        code, said = run("--machine-peak", sys.executable)
        self.assertEqual((code, said), (77, f"skipped: {sys.executable} has no no_such_package (--python names another)\n"))
        code, _ = run("--machine-peak", sys.executable, "--python", "/nowhere/python")
        self.assertRegex(str(code), "^x: --python /nowhere/python: ")

    def test_a_run_is_not_lost_where_its_result_cannot_be_written(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "results"
            options = SimpleNamespace(results=folder, programs=(), packages=())

            def measure(_: object) -> dict[str, Any]:
                folder.rmdir()
                folder.touch()
                return {"machine": "x", "date": "now"}

            with mock.patch("builtins.print") as printed, self.assertRaisesRegex(SystemExit, "^x: the result could not be written"):
                reporting.run_benchmark("x", options, measure, lambda _: "the report")
            printed.assert_called_once_with("the report", flush=True)
            with self.assertRaisesRegex(SystemExit, f"^x: results cannot be written to {folder}: "):
                reporting.run_benchmark("x", options, lambda _: self.fail("it measured first"), lambda _: "")

    def test_sigterm_ends_what_was_started_and_removes_files(self) -> None:
        # What it starts has its standard error.
        program = """
import measuring, sys, tempfile
with tempfile.TemporaryDirectory(dir=sys.argv[1]):
    measuring.end_on_sigterm()
    sleeps = "import time; print('{}', flush=True); time.sleep(100)"
    stepper = measuring.Stepper([sys.executable, "-c", sleeps], {})
    measuring.output_of(sys.executable, "-c", "import sys; print('begun', file=sys.stderr, flush=True);" + sleeps)
"""
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", program, folder]
            environment = {**os.environ, "PYTHONPATH": str(HERE)}
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
                assert process.stderr is not None
                self.assertEqual(process.stderr.readline(), "begun\n")
                process.terminate()
                self.assertEqual(process.communicate(timeout=50)[1], "")
            self.assertEqual(process.returncode, 128 + signal.SIGTERM)
            self.assertEqual(os.listdir(folder), [])

    def test_a_child_that_has_ended_does_not_keep_others_from_their_signal(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        lives = subprocess.Popen(["sleep", "100"])
        with mock.patch.object(measuring, "children_by_parent", lambda: {os.getpid(): [ended.pid, lives.pid]}):
            measuring.signal_children(signal.SIGKILL)
        self.assertEqual(lives.wait(), -signal.SIGKILL)

    def test_the_commit_of_another_users_checkout_is_known(self) -> None:
        if not (measuring.ROOT / ".git").exists() or not shutil.which("git"):
            self.skipTest("this is no checkout")
        with mock.patch.dict(os.environ, GIT_TEST_ASSUME_DIFFERENT_OWNER="1"):
            self.assertRegex(reporting.versions(Path("/nowhere"), None)["commit"], "[0-9a-f]{7}")

    def test_results_are_named_after_machine_and_date(self) -> None:
        result = {"machine": "NVIDIA H200 (x)", "date": "2026-01-02T03:04:05Z"}
        with tempfile.TemporaryDirectory() as directory:
            path = reporting.write_result(result, "gpu_step", Path(directory))
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


class Finetuning(unittest.TestCase):
    def test_the_peer_has_the_products_settings(self) -> None:
        config = (HERE / "configs/finetune_steps.textproto").read_text(encoding="utf-8")
        for field, value in (("dropout", finetune.DROPOUT), ("rate", finetune.RATE), ("clip_norm", finetune.CLIP)):
            self.assertEqual({float(each) for each in re.findall(rf"\b{field}: ([0-9.]+)", config)}, {value}, field)

    def test_the_peers_dropout_is_not_that_of_its_model(self) -> None:
        given: list[str] = []
        programs = SimpleNamespace(scratch=Path(os.devnull).parent, peer=lambda *arguments: given.extend(map(str, arguments)))
        with mock.patch.object(Path, "write_text"):
            finetune.peer_of(programs, SimpleNamespace(ready={}), 4)
        self.assertIn("--dropout 0.1", " ".join(given))


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
            command = [str(part) for part in ranks.our_command(training, options, Path("folder"), Path("run"))]
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

    def test_only_its_own_files_are_removed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "syntra_bench").mkdir()
            options = SimpleNamespace(memory=place, disk=place, checkpoint_bench=Path("/nowhere"), python=Path("/nowhere"),
                                      lock=None, bytes=1, tensors=1, pairs=1)
            with self.assertRaises(FileNotFoundError):
                checkpoint.measure(options)
            self.assertEqual([path.name for path in place.iterdir()], ["syntra_bench"])


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

    def test_documents_that_fill_no_file_are_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "texts.jsonl"
            for texts in (self.DOCUMENTS, ()):
                source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
                with self.assertRaisesRegex(RuntimeError, "fill no file of 1000000 bytes"):
                    corpus.make_corpus([source], Path(folder), 1_000_000, 1)

    def test_shards_are_made_in_the_folder_that_is_removed(self) -> None:
        options = SimpleNamespace(data_bench=Path("data_bench"), python=Path("python"), tokenizer="model", tokenizer_json="json")
        with mock.patch.object(data, "Stepper", lambda command, _: [str(part) for part in command]):
            command = data.Programs(options, ["a.json.gz"], Path("scratch")).start("prepare")
        self.assertEqual(command[command.index("--scratch") + 1], "scratch")

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
        for error, within in ((0.149, True), (-0.149, True), (0.151, False), (-0.151, False)):
            self.assertEqual(scale.within({"error": error}), within)

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


if __name__ == "__main__":
    unittest.main()
