# SPDX-License-Identifier: Apache-2.0
"""Shared by the step benchmarks: processes that take turns, medians of ratios, tables, results."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import fcntl
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
MOST_PEER_SPREAD: Final = 0.15  # Beyond it the median of a few pairs says little.
FLOPS_TOLERANCE: Final = 0.01
PEAK_DRIFT: Final = 0.15
FOREIGN_SHARE: Final = 0.025  # of the machine: 5 % of a processor where there are two
# Reads PyTorch's version without importing it, which takes seconds.
TORCH_VERSION: Final = """
import importlib.util, pathlib, runpy
torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
print(runpy.run_path(torch / "version.py")["__version__"])
"""
MOST_MESSAGES: Final = 2000  # bytes of a command's messages that an error has
SETTLE_SECONDS: Final = 0.2  # Thread pools spin for a while after their work; let them go to sleep.


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the machine ------------------------------------------------------------------------------


def processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def children_by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = process_fields(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    return children


def process_fields(process: int) -> list[str]:
    """The fields of /proc/<process>/stat after the name, or none if the process is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def own_ticks() -> int:
    """Processor time of this process, its descendants and those of them that have ended."""
    children = children_by_parent()
    total, queue = 0, [os.getpid()]
    while queue:
        process = queue.pop()
        queue += children.get(process, [])
        fields = process_fields(process)
        total += sum(int(field) for field in fields[11:15])
    return total


def machine_ticks() -> tuple[int, int]:
    """Processor time of all processes, and time stolen by the hypervisor."""
    line = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0]
    values = [int(field) for field in line.split()[1:]]
    user, nice, system, steal = values[0], values[1], values[2], values[7]
    return user + nice + system, steal


@contextlib.contextmanager
def alone(lock: Path | None) -> Iterator[None]:
    """Holds a lock file (flock) that other heavy work on the machine waits for, if there is one."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclasses.dataclass
class Watch:
    """Sums the processor time that others used while `measuring`, which holds the lock."""

    lock: Path | None = None
    seconds: float = 0.0
    foreign: float = 0.0
    stolen: float = 0.0

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        tick: float = 1.0 / os.sysconf("SC_CLK_TCK")
        with alone(self.lock):
            start, own, (busy, stolen) = time.monotonic(), own_ticks(), machine_ticks()
            yield
            busy_now, stolen_now = machine_ticks()
            foreign = (busy_now - busy) - (own_ticks() - own)
            self.seconds += time.monotonic() - start
            self.foreign += max(0, foreign) * tick
            self.stolen += (stolen_now - stolen) * tick

    def share(self) -> float:
        """Of the time of all processors, what others used, the hypervisor's other machines among them."""
        return self.foreign_share() + self.stolen_share()

    def foreign_share(self) -> float:
        return self._of_all_processors(self.foreign)

    def stolen_share(self) -> float:
        return self._of_all_processors(self.stolen)

    def _of_all_processors(self, used: float) -> float:
        return used / (self.seconds * (os.cpu_count() or 1)) if self.seconds > 0 else 0.0


def first_line(*command: str | Path) -> str:
    """What a command prints first, run in the repository's root; empty if it cannot run."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return ""
    return result.stdout.strip().split("\n", 1)[0]


class FailedCommand(RuntimeError):
    """With what the command had printed."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def output_of(*command: str | Path, seconds: float | None = None, quiet: bool = False) -> str:
    """What a command prints, run in the repository's root for so long at most.

    Its messages pass to ours; with `quiet` only their end, in the error.
    """
    text = [str(part) for part in command]
    messages = subprocess.PIPE if quiet else None
    try:
        result = subprocess.run(text, stdout=subprocess.PIPE, stderr=messages, check=False, cwd=ROOT, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"").decode(errors="replace")
        raise FailedCommand(f"not done after {seconds:.0f} s: {' '.join(text)}", printed) from None
    printed = result.stdout.decode()
    if result.returncode != 0:
        said = (result.stderr or b"")[-MOST_MESSAGES:].decode(errors="replace")
        raise FailedCommand(f"failed ({result.returncode}): {' '.join(text)}\n{said}".rstrip(), printed)
    return printed


def machine_peak(program: Path, threads: int) -> dict[str, Any]:
    peak: dict[str, Any] = json.loads(output_of(program, str(threads)))
    return peak


def peak_drift(begin: Mapping[str, Any], end: Mapping[str, Any]) -> float:
    """The largest relative change of a rate of all threads."""
    changes: list[float] = [
        abs(end[kind]["all"] / begin[kind]["all"] - 1) for kind in ("fp32", "bf16") if begin[kind]
    ]
    return max(changes)


def versions(syntra: Path, python: Path) -> dict[str, str]:
    return {
        "syntra": first_line(syntra, "--version"),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "python": first_line(python, "--version"),
        "torch": first_line(python, "-c", TORCH_VERSION),
    }


# --- processes that step on demand ------------------------------------------------------------


class Stepper:
    """A process that prints a line when its first step is done, then steps once a line.

    It takes a turn of `lines_per_turn` lines at a time. `clock` is the field that is measured.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        lines_per_turn: int = 1,
        clock: str = "seconds",
    ) -> None:
        self.command = [str(part) for part in command]
        self.lines_per_turn = lines_per_turn
        self.clock = clock
        start = time.perf_counter()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        try:
            self.ready = self._read()
        except BaseException:
            self.kill()
            raise
        self.to_first_step = time.perf_counter() - start
        self.seconds: list[float] = []
        self.last: dict[str, Any] = {}  # what the last line was answered
        self.summary: dict[str, Any] = {}

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            why = ", killed: the machine may have too little memory" if code == -signal.SIGKILL else ""
            raise RuntimeError(f"ended early ({code}{why}): {' '.join(self.command)}")
        message: dict[str, Any] = json.loads(line)
        return message

    def step(self) -> float:
        """Takes a turn; the mean seconds of its lines."""
        time.sleep(SETTLE_SECONDS)
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then reading says how it ended
            self.process.stdin.write("step\n" * self.lines_per_turn)
            self.process.stdin.flush()
        answers = [self._read() for _ in range(self.lines_per_turn)]
        seconds = statistics.mean(float(answer[self.clock]) for answer in answers)
        self.seconds.append(seconds)
        self.last = answers[-1]
        return seconds

    def close(self) -> int:
        """Ends the process; its peak of resident memory in bytes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.summary = self._read()
        code = self.process.wait()
        self.kill()
        if code != 0:
            raise RuntimeError(f"failed: {' '.join(self.command)}")
        return int(self.summary["peak_resident_bytes"])

    def kill(self) -> None:
        """Nothing, if it has ended, but closing what led to it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # what it did not read is lost
            self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def closing(*steppers: Stepper) -> Iterator[None]:
    """Ends them whatever happens."""
    try:
        yield
    finally:
        for stepper in steppers:
            stepper.kill()


def fastest(tries: Mapping[str, Stepper]) -> tuple[str, dict[str, float]]:
    if len(tries) == 1:
        return next(iter(tries)), {}
    seconds = {}
    for name, stepper in tries.items():
        seconds[name] = stepper.step()
        say(f"  peer, {name}: {seconds[name]:.2f} s")
        stepper.seconds.clear()
    return min(seconds, key=lambda name: seconds[name]), seconds


def take_turns(steppers: Mapping[str, Stepper], watch: Watch, pairs: int) -> dict[str, Any]:
    """The medians of the ratios of neighbouring turns, the first of all over the product."""
    with watch.measuring():
        for turn in range(pairs):
            for name, stepper in steppers.items():
                say(f"  turn {turn + 1}, {name}: {stepper.step():.2f} s")
    seconds = {name: stepper.seconds for name, stepper in steppers.items()}
    ours = seconds["product"]
    return {
        "seconds": seconds,
        "median_seconds": {name: statistics.median(values) for name, values in seconds.items()},
        "speed_over": {
            name: median_ratio(values, ours)
            for name, values in seconds.items()
            if name != "product"
        },
        "peak_resident_bytes": {name: stepper.close() for name, stepper in steppers.items()},
    }


# --- ratios -----------------------------------------------------------------------------------


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def spread(seconds: Sequence[float]) -> float:
    return max(seconds) / min(seconds) - 1


def speed_over(peer: Sequence[float], product: Sequence[float]) -> float:
    """How many times as fast as the peer: the median ratio of neighbouring steps.

    A peer whose steps differ too much is taken at its fastest.
    """
    if spread(peer) > MOST_PEER_SPREAD:
        return min(peer) / statistics.median(product)
    return median_ratio(peer, product)


# --- the report -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """A goal and what was measured. Percentages are given as shares of 1."""

    name: str
    measured: float
    target: float
    at_most: bool = False
    percent: bool = False
    unit: str = "x"

    def met(self) -> bool:
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def cells(self, void: bool) -> tuple[str, ...]:
        def text(value: float) -> str:
            return f"{100 * value:.2f} %" if self.percent else f"{value:.4f}{self.unit}"

        relation = "<=" if self.at_most else ">="
        verdict = "void" if void else "met" if self.met() else "missed"
        return self.name, text(self.measured), f"{relation} {text(self.target)}", verdict


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def reasons_void(result: Mapping[str, Any]) -> list[str]:
    """What makes a whole run worthless. Not every benchmark has a peak that can drift."""
    reasons = []
    drift, foreign = result.get("peak_drift", 0.0), result["foreign_share"]
    if drift > PEAK_DRIFT:
        reasons.append(f"the machine's peak moved by {100 * drift:.0f} %")
    if foreign > FOREIGN_SHARE:
        reasons.append(f"others used {100 * foreign:.1f} % of the machine's processors")
    return reasons


def is_void(result: Mapping[str, Any]) -> bool:
    """Processor time, where that is the `clock`, counts whatever else runs."""
    return bool(reasons_void(result)) and result.get("clock") != "processor_seconds"


def void_line(result: Mapping[str, Any]) -> list[str]:
    """The last line of a report, if there is a reason for it."""
    reasons = reasons_void(result)
    said = "Void" if is_void(result) else "Disturbed, so processor time counts"
    return ["", f"{said}: " + "; ".join(reasons) + "."] if reasons else []


def goals_table(rows: Sequence[Row], result: Mapping[str, Any]) -> str:
    void = is_void(result)
    return table(["", "measured", "goal", ""], [row.cells(void) for row in rows])


def check_parameters(parameters: int, peer: Mapping[str, Any]) -> None:
    if peer["parameters"] != parameters:
        raise RuntimeError(f"the peer has {peer['parameters']} parameters, not {parameters}")


def check_same_model(parameters: int, peer: Mapping[str, Any], product_flops: float) -> None:
    check_parameters(parameters, peer)
    if abs(peer["flops"] / product_flops - 1) > FLOPS_TOLERANCE:
        raise RuntimeError(f"FLOPs differ: peer {peer['flops']}, product {product_flops}")


def callers_path(text: str) -> Path:
    """A path on the command line as an absolute one: what a benchmark starts runs in the repository's root."""
    return Path.cwd() / text


def benchmark_parser(description: str | None, programs: Sequence[str], peer: str = "") -> argparse.ArgumentParser:
    """A parser of the options that benchmarks share: the programs, by default those of build/, and where results go.

    `peer`: the packages that the peer's Python needs; without them there is no peer.
    """
    parser = argparse.ArgumentParser(description=description)
    for name in programs:
        built = ROOT / "build" / ("src/cli" if name == "syntra" else "tests/bench") / name
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=callers_path, default=built, help="the program of this name")
    if peer:
        python = Path(sys.executable)
        parser.add_argument("--python", type=callers_path, default=python, help=f"an interpreter that has {peer}")
    parser.add_argument("--results", type=callers_path, default=HERE / "results", help="the folder for the result")
    return parser


def add_pairs_option(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--pairs", type=int, default=default, help="turns of the program, and of the peer")


def add_lock_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lock", type=callers_path, help="held (flock) while it measures, where other work waits for the same file")


def config_file(name: str) -> Path:
    """One of this folder."""
    return HERE / "configs" / f"{name}.textproto"


def set_options(settings: Mapping[str, object]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def machine_facts(
    options: argparse.Namespace, watch: Watch, peak: Mapping[str, Any] | None = None, threads: int = 1
) -> dict[str, Any]:
    """What a result says of the machine and the programs, at its end. `peak`: that of `threads` at its beginning."""
    facts: dict[str, Any] = {
        "machine": processor_name(),
        "date": date_now(),
        "foreign_share": watch.share(),
        "versions": versions(options.syntra, options.python),
    }
    if peak is not None:
        facts |= {"peak": peak, "peak_drift": peak_drift(peak, machine_peak(options.machine_peak, threads))}
    return facts


def run_benchmark(
    name: str,
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    report: Callable[[dict[str, Any]], str],
) -> dict[str, Any]:
    """Measures, writes the result and prints its report; ends the program with a message where that fails."""
    try:
        result = measure(options)
    except (OSError, RuntimeError) as error:
        sys.exit(f"{name}: {error}")
    write_result(result, name, options.results)
    print(report(result))
    return result


def date_now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_result(result: Mapping[str, Any], benchmark: str, directory: Path) -> Path:
    """Writes <benchmark>-<machine>-<date>.json; `result` names its machine and date."""
    machine = "".join(c if c.isalnum() else " " for c in result["machine"]).lower().split()
    date = result["date"].replace(":", "")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{benchmark}-{'-'.join(machine)}-{date}.json"
    part = path.with_name(f"{path.name}.part")  # whoever is stopped here leaves the former file
    part.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def results_of(benchmark: str, directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The results that write_result wrote there, of one machine the newest first."""
    for path in sorted(directory.glob(f"{benchmark}-*.json"), reverse=True):
        yield path, json.loads(path.read_text(encoding="utf-8"))
