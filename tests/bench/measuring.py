# SPDX-License-Identifier: Apache-2.0
"""How benchmarks measure: programs that run, programs that take turns, ratios of their times, and what else the machine does."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import math
import os
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
MOST_MESSAGES: Final = 2000  # bytes of a command's messages that an error has
MOST_ENDING: Final = 30.0  # seconds that a program may take to end when asked to
# The environment in which glibc keeps what PyTorch frees, in huge pages; few users set it.
MEMORY_IS_KEPT: Final = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "THP_MEM_ALLOC_ENABLE": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
BETWEEN_LOOKS: Final = 0.5  # seconds
SETTLE_SECONDS: Final = 0.2  # Thread pools spin for a while after their work; let them go to sleep.


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- programs that run once -------------------------------------------------------------------


def config_file(name: str) -> Path:
    """One of this folder."""
    return HERE / "configs" / f"{name}.textproto"


def set_options(settings: Mapping[str, object]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


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


def output_of(*command: str | Path, seconds: float = math.inf, quiet: bool = False) -> str:
    """What a command prints, run in the repository's root for so long at most.

    Its messages pass to ours; with `quiet` only their end, in the error.
    """
    text = [str(part) for part in command]
    messages = subprocess.PIPE if quiet else None
    with subprocess.Popen(text, stdout=subprocess.PIPE, stderr=messages, cwd=ROOT) as process:
        try:
            output, said = communicate(process, seconds)
        except subprocess.TimeoutExpired as error:
            process.kill()
            printed = (error.stdout or b"").decode(errors="replace")
            raise FailedCommand(f"not done after {seconds:.0f} s: {' '.join(text)}", printed) from None
        except BaseException:
            end(process)
            raise
    printed = output.decode()
    if process.returncode != 0:
        why = (said or b"")[-MOST_MESSAGES:].decode(errors="replace")
        raise FailedCommand(f"failed ({process.returncode}): {' '.join(text)}\n{why}".rstrip(), printed)
    return printed


def communicate(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """As Popen's, but it looks for signals now and then: Python notices one that comes just before a call that waits, or
    together with output, only after that call."""
    limit = time.monotonic() + seconds
    while True:
        try:
            return process.communicate(timeout=min(BETWEEN_LOOKS, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= limit:
                raise


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks it to end first: launch/ranks then ends its ranks, too."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=MOST_ENDING)
    finally:
        process.kill()


def end_on_sigterm() -> None:
    """From now on SIGTERM ends this program as an error does, so that it removes its files, and ends what it has started."""

    def exit_with_children(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        signal_children(number)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, exit_with_children)


def signal_children(number: int) -> None:
    """Those that have ended meanwhile are passed over."""
    for process in children_by_parent().get(os.getpid(), []):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def machine_peak(program: Path, threads: int) -> dict[str, Any]:
    peak: dict[str, Any] = json.loads(output_of(program, str(threads)))
    return peak


# --- what else the machine does ---------------------------------------------------------------


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


@contextlib.contextmanager
def fastest(tries: Mapping[str, Callable[[], Stepper]]) -> Iterator[tuple[str, Stepper, dict[str, float]]]:
    """Starts one after another, and ends those whose turn takes longer than another's: the name of the one that goes on,
    itself, and what each took. A single one takes no turn. All are ended whatever happens."""
    seconds: dict[str, float] = {}
    best: tuple[str, Stepper] | None = None
    with contextlib.ExitStack() as started:
        for name, start in tries.items():
            stepper = start()
            started.enter_context(closing(stepper))
            if len(tries) > 1:
                seconds[name] = stepper.step()
                say(f"  peer, {name}: {seconds[name]:.2f} s")
                stepper.seconds.clear()
            if best is None:
                best = name, stepper
            elif seconds[name] < seconds[best[0]]:
                best[1].close()
                best = name, stepper
            else:
                stepper.close()
        assert best is not None
        yield *best, seconds


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
