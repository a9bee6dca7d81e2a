# SPDX-License-Identifier: Apache-2.0
"""What benchmarks make of what they measured: options, results and their files, what makes a result void, goals, tables."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import errno
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from measuring import HERE, ROOT, Watch, end_on_sigterm, first_line, machine_peak, output_of, say

FLOPS_TOLERANCE: Final = 0.01
PEAK_DRIFT: Final = 0.15
FOREIGN_SHARE: Final = 0.025  # of the machine: 5 % of a processor where there are two
SKIPPED: Final = 77  # the exit code where the machine or a Python lacks what a benchmark needs
# Prints those of the packages that are not installed. It imports none, which would take seconds.
LACKING: Final = """
import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
"""
# Reads PyTorch's version without importing it, which takes seconds.
TORCH_VERSION: Final = """
import importlib.util, pathlib, runpy
torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
print(runpy.run_path(torch / "version.py")["__version__"])
"""


# --- the run ----------------------------------------------------------------------------------


def callers_path(text: str) -> Path:
    """A path on the command line as an absolute one: what a benchmark starts runs in the repository's root."""
    return Path.cwd() / text


def benchmark_parser(description: str | None, programs: Sequence[str], packages: Sequence[str] = ()) -> argparse.ArgumentParser:
    """A parser of the options that benchmarks share: the programs, by default those of build/, and where results go.

    `packages`: those that the peer's Python needs; without any there is no peer.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.set_defaults(programs=programs, packages=packages)
    for name in programs:
        built = ROOT / "build" / ("src/cli" if name == "syntra" else "tests/bench") / name
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=callers_path, default=built, help="the program of this name")
    if packages:
        note = f"an interpreter that has {', '.join(packages)}"
        parser.add_argument("--python", type=callers_path, default=Path(sys.executable), help=note)
    parser.add_argument("--results", type=callers_path, default=HERE / "results", help="the folder for the result")
    return parser


def at_least(least: int) -> Callable[[str], int]:
    """Reads a number on the command line; with fewer nothing would be measured."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not at least {least}")
        return int(text)

    return number


def add_pairs_option(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--pairs", type=at_least(1), default=default, help="turns of the program, and of the peer")


def add_threads_option(parser: argparse.ArgumentParser) -> None:
    note = "of each program; with 1 processor time counts, which other work on the machine changes less"
    parser.add_argument("--threads", type=at_least(1), default=len(os.sched_getaffinity(0)), help=note)


def clock_of(threads: int) -> str:
    """The field of a turn's answer that counts."""
    return "processor_seconds" if threads == 1 else "seconds"


def add_lock_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lock", type=callers_path, help="held (flock) while it measures, where other work waits for the same file")


def begin(name: str, options: argparse.Namespace) -> None:
    """Before anything is measured: SIGTERM ends the program as an error does, what is needed is there, and the folder of the
    results can be written."""
    end_on_sigterm()
    check_what_is_needed(name, options)
    results: Path = options.results
    try:
        results.mkdir(parents=True, exist_ok=True)
        if not os.access(results, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        sys.exit(f"{name}: results cannot be written to {results}: {error.strerror} (--results names another folder)")


def check_what_is_needed(name: str, options: argparse.Namespace) -> None:
    for program in options.programs:
        path = vars(options)[program]
        if shutil.which(path) is None:
            sys.exit(f"{name}: there is no program {path} (ninja -C build {program} builds it)")
    if not options.packages:
        return
    try:
        lacking = output_of(options.python, "-c", LACKING, *options.packages, quiet=True).split()
    except (OSError, RuntimeError) as error:
        sys.exit(f"{name}: --python {options.python}: {error}")
    if lacking:
        say(f"skipped: {options.python} has no {', '.join(lacking)} (--python names another)")
        sys.exit(SKIPPED)


def run_benchmark(
    name: str,
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    report: Callable[[dict[str, Any]], str],
) -> dict[str, Any]:
    """Measures, writes the result and prints its report; ends the program with a message where that fails."""
    begin(name, options)
    try:
        result = measure(options)
    except (OSError, RuntimeError) as error:
        sys.exit(f"{name}: {error}")
    try:
        path = write_result(result, name, options.results)
    except OSError as error:
        print(report(result), flush=True)
        sys.exit(f"{name}: the result could not be written: {error}")
    print(report(result))
    say(f"written to {path}")
    return result


# --- what a result says of its machine --------------------------------------------------------


def processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def peak_drift(begin: Mapping[str, Any], end: Mapping[str, Any]) -> float:
    """The largest relative change of a rate of all threads."""
    changes: list[float] = [
        abs(end[kind]["all"] / begin[kind]["all"] - 1) for kind in ("fp32", "bf16") if begin[kind]
    ]
    return max(changes)


def versions(syntra: Path, python: Path | None) -> dict[str, str]:
    """`python`: the peer's, if there is a peer."""
    found = {
        "syntra": first_line(syntra, "--version"),
        "commit": first_line("git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty")  # of another user's checkout, too,
    }
    if python is not None:
        found |= {"python": first_line(python, "--version"), "torch": first_line(python, "-c", TORCH_VERSION)}
    return found


def machine_facts(
    options: argparse.Namespace, watch: Watch, peak: Mapping[str, Any] | None = None, threads: int = 1
) -> dict[str, Any]:
    """What a result says of the machine and the programs, at its end. `peak`: that of `threads` at its beginning."""
    facts: dict[str, Any] = {
        "machine": processor_name(),
        "date": date_now(),
        "foreign_share": watch.share(),
        "versions": versions(options.syntra, vars(options).get("python")),
    }
    if peak is not None:
        end = machine_peak(options.machine_peak, threads)
        facts |= {"peak": peak, "peak_end": end, "peak_drift": peak_drift(peak, end)}
    return facts


# --- result files -----------------------------------------------------------------------------


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


# --- whether a result means something ---------------------------------------------------------


def check_parameters(parameters: int, peer: Mapping[str, Any]) -> None:
    if peer["parameters"] != parameters:
        raise RuntimeError(f"the peer has {peer['parameters']} parameters, not {parameters}")


def check_same_model(parameters: int, peer: Mapping[str, Any], product_flops: float) -> None:
    check_parameters(parameters, peer)
    if abs(peer["flops"] / product_flops - 1) > FLOPS_TOLERANCE:
        raise RuntimeError(f"FLOPs differ: peer {peer['flops']}, product {product_flops}")


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


# --- goals ------------------------------------------------------------------------------------


def verdict(met: bool, void: bool) -> str:
    return "void" if void else "met" if met else "missed"


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
        return self.name, text(self.measured), f"{relation} {text(self.target)}", verdict(self.met(), void)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def goals_table(rows: Sequence[Row], result: Mapping[str, Any]) -> str:
    void = is_void(result)
    return table(["", "measured", "goal", ""], [row.cells(void) for row in rows])


def judged(rows: Sequence[Row], result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows for a result file."""
    void = is_void(result)
    return [{**dataclasses.asdict(row), "verdict": verdict(row.met(), void)} for row in rows]
