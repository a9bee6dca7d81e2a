# SPDX-License-Identifier: Apache-2.0
"""The programs that the GPU step benchmark starts, and how long they may run."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

from gpu_goals import STEPS_PER_TURN
from measuring import HERE, Stepper, config_file, output_of, set_options, signal_children

MOST_OWN_KERNELS: Final = 60.0  # seconds of all own kernels, so that one that hangs leaves time for PyTorch's
MOST_DESCRIBING: Final = 60.0  # of one peer


class Deadline:
    """The time that a part may take; its programs that still run when it is over are killed."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, signal_children, [signal.SIGKILL])
        self._timer.daemon = True
        self._timer.start()

    def remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def cancel(self) -> None:
        self._timer.cancel()

    def output(self, *command: str | Path, most: float = math.inf) -> str:
        """What a command prints, in the time that remains or `most` seconds."""
        return output_of(*command, seconds=min(most, self.remaining()))


@dataclasses.dataclass(frozen=True)
class PeerSetting:
    """How the peer computes. A batch below the product's counts by examples a second."""

    implementation: str
    batch: int
    compiled: bool = True
    precision: str = "bf16_master"
    attention: str = "fused"
    dropout: float = 0.0  # of both; configs/dropout.textproto has the product's

    def name(self) -> str:
        what = {
            "hugging_face": "Hugging Face T5, SDPA",
            "plain": f"plain PyTorch T5, attention {self.attention}",
            "plain_random": "plain PyTorch Syn(R)",
        }[self.implementation]
        mode = "torch.compile" if self.compiled else "eager"
        dropout = f", dropout {self.dropout}" if self.dropout > 0 else ""
        return f"{what}, {mode}, {self.precision}, batch {self.batch}{dropout}"


def settings_of(
    variant: str, *overlays: str, tiny: bool = False, **values: object
) -> list[str | Path]:
    """The product's configuration, as arguments; `values` are those of `train`."""
    files = ["base_transformer"]
    if variant != "transformer":
        files.append(f"base_{variant}")
    if tiny:
        files.append("tiny")
    arguments: list[str | Path] = []
    for file in (*files, *overlays):
        arguments += ["--config", config_file(file)]
    return [*arguments, *set_options({f"train.{name}": value for name, value in values.items()})]


def json_lines(output: str) -> list[dict[str, Any]]:
    """A program that was stopped may have left half a line."""
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]


class Programs:
    """Starts the programs that are measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.deadline: Deadline  # of the part that is being measured

    def settings(self, variant: str, *overlays: str, **values: object) -> list[str | Path]:
        if self.options.device == "cuda":
            values["device"] = "CUDA"
        return settings_of(variant, *overlays, tiny=self.options.tiny, **values)

    def plan(self, variant: str) -> dict[str, Any]:
        output = self.deadline.output(self.options.syntra, "plan", "--json", *self.settings(variant))
        plan: dict[str, Any] = json.loads(output)
        return plan

    def product(self, variant: str, *overlays: str) -> Stepper:
        arguments = self.settings(variant, *overlays)
        command = [self.options.syntra, "bench", "--json", "--wait-for-line", *arguments]
        return Stepper(command, {}, lines_per_turn=STEPS_PER_TURN)

    def sizes(self) -> list[str]:
        return ["--sizes", "tiny" if self.options.tiny else "base"]

    def describe_peer(self, implementation: str) -> dict[str, Any]:
        output = self.deadline.output(
            *(self.options.python, HERE / "gpu_peer.py", "--describe", *self.sizes()),
            *("--implementation", implementation),
            most=MOST_DESCRIBING,
        )
        facts: dict[str, Any] = json.loads(output)
        return facts

    def peer(self, setting: PeerSetting) -> Stepper:
        command = [self.options.python, HERE / "gpu_peer.py", *self.sizes()]
        command += ["--implementation", setting.implementation, "--precision", setting.precision]
        command += ["--attention", setting.attention, "--steps", str(STEPS_PER_TURN)]
        command += ["--device", self.options.device, "--batch", str(setting.batch)]
        command += ["--dropout", str(setting.dropout)]
        if setting.compiled:
            command.append("--compile")
        return Stepper(command, {})

    def reference(self, *part: str) -> list[dict[str, Any]]:
        command = [self.options.python, HERE / "gpu_reference.py", *part, *self.sizes()]
        command += ["--device", self.options.device, *(["--eager"] if self.options.eager else [])]
        return json_lines(self.deadline.output(*command))

    def own_kernels(self) -> list[dict[str, Any]]:
        sizes = ["2", "128"] if self.options.tiny else []
        return json_lines(self.deadline.output(self.options.kernel_bench, *sizes, most=MOST_OWN_KERNELS))
