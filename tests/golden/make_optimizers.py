# SPDX-License-Identifier: Apache-2.0
"""Ten steps of Adafactor, AdamW and RMS-scaled AdamW on small tensors, and learning-rate schedules.

Each optimizer is written here in float64 from its definition and compared, where both mean the same, with
transformers and torch. Steps count from 0 as in the training loop: t below is the step's number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers.optimization import Adafactor as TransformersAdafactor, get_inverse_sqrt_schedule

from fixture import Array, Fixture, output_directory, rounded

STEPS = 10
BETA1, BETA2, WEIGHT_DECAY = 0.9, 0.999, 0.1
ADAMW_EPSILON, ADAMW_RMS_EPSILON = 1e-8, 1e-6  # the defaults of torch and of nanoT5
DECAY_EXPONENT, CLIP_THRESHOLD, MIN_FACTORED_SIZE = 0.8, 1.0, 4
SQUARE_FLOOR = 1e-30  # Adafactor: added to squared gradients
SCALE_FLOOR = 1e-3  # least RMS of a parameter that scales its step

SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (6, 9),  # factored
    "smallest_factored": (5, 4),  # the second largest dimension equals MIN_FACTORED_SIZE
    "heads": (3, 8, 5),  # factored over the last two dimensions, the first is kept
    "middle": (7, 2, 6),  # factored over the first and the last dimension
    "small": (4, 2),  # not factored: 2 < 4
    "vector": (11,),
    "gate": (1,),  # starts at zero
}

Tensors = dict[str, Array]
Trajectories = dict[str, Array]  # [step, ...]: the values after each step


class Adafactor:
    """Shazeer and Stern 2018 without momentum, the parameter scale and clipping over the whole tensor."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._axes = factored_axes(shape)
        self._second_moment = np.zeros(shape)
        self._over_first = np.zeros(())
        self._over_second = np.zeros(())

    def step(self, parameter: Array, gradient: Array, rate: float, t: int) -> Array:
        beta2 = 1.0 - (t + 1.0) ** -DECAY_EXPONENT
        square = gradient**2 + SQUARE_FLOOR
        if self._axes is None:
            self._second_moment = beta2 * self._second_moment + (1.0 - beta2) * square
            update = gradient / np.sqrt(self._second_moment)
        else:
            first, second = self._axes
            self._over_first = beta2 * self._over_first + (1.0 - beta2) * square.mean(first, keepdims=True)
            self._over_second = (beta2 * self._over_second
                                 + (1.0 - beta2) * square.mean(second, keepdims=True))
            overall = self._over_first.mean(second, keepdims=True)
            update = gradient / np.sqrt(self._over_first / overall) / np.sqrt(self._over_second)
        update = update / max(1.0, rms(update) / CLIP_THRESHOLD)
        return parameter - rate * max(SCALE_FLOOR, rms(parameter)) * update


class AdamW:
    """Loshchilov and Hutter 2019: the decay is rate * weight_decay, taken from the old value."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._first_moment = np.zeros(shape)
        self._second_moment = np.zeros(shape)

    def step(self, parameter: Array, gradient: Array, rate: float, t: int) -> Array:
        self._first_moment = BETA1 * self._first_moment + (1.0 - BETA1) * gradient
        self._second_moment = BETA2 * self._second_moment + (1.0 - BETA2) * gradient**2
        mean = self._first_moment / (1.0 - BETA1 ** (t + 1))
        deviation = np.sqrt(self._second_moment / (1.0 - BETA2 ** (t + 1)))
        return parameter * (1.0 - rate * WEIGHT_DECAY) - rate * mean / (deviation + ADAMW_EPSILON)


class AdamWRms:
    """AdamW of nanoT5: the step is scaled by the parameter's RMS; epsilon stands beside the square root of the
    uncorrected second moment; the decay, with the plain rate, is taken from the already moved value."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._first_moment = np.zeros(shape)
        self._second_moment = np.zeros(shape)

    def step(self, parameter: Array, gradient: Array, rate: float, t: int) -> Array:
        self._first_moment = BETA1 * self._first_moment + (1.0 - BETA1) * gradient
        self._second_moment = BETA2 * self._second_moment + (1.0 - BETA2) * gradient**2
        correction = math.sqrt(1.0 - BETA2 ** (t + 1)) / (1.0 - BETA1 ** (t + 1))
        scaled = rate * correction * max(SCALE_FLOOR, rms(parameter))
        moved = parameter - scaled * self._first_moment / (np.sqrt(self._second_moment) + ADAMW_RMS_EPSILON)
        return moved - rate * WEIGHT_DECAY * moved


Optimizer = Adafactor | AdamW | AdamWRms


def rms(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2)))


def factored_axes(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The two largest dimensions, the earlier first among equals; None where the smaller is too small."""
    if len(shape) < 2:
        return None
    first, second = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2]
    return (first, second) if shape[second] >= MIN_FACTORED_SIZE else None


def run(make: Callable[[tuple[int, ...]], Optimizer], initial: Tensors, gradients: Tensors,
        rates: Array) -> Trajectories:
    found: Trajectories = {}
    for name, start in initial.items():
        optimizer = make(start.shape)
        parameter, history = start, []
        for t in range(STEPS):
            parameter = optimizer.step(parameter, gradients[name][t], float(rates[t]), t)
            history.append(parameter)
        found[name] = np.stack(history)
    return found


def run_torch(make: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer], initial: Tensors,
              gradients: Tensors, rates: Array) -> Trajectories:
    parameters = {name: torch.nn.Parameter(torch.from_numpy(start.copy())) for name, start in initial.items()}
    optimizer = make(list(parameters.values()))
    history: dict[str, list[Array]] = {name: [] for name in initial}
    for t in range(STEPS):
        optimizer.param_groups[0]["lr"] = float(rates[t])
        for name, parameter in parameters.items():
            parameter.grad = torch.from_numpy(gradients[name][t].copy())
        optimizer.step()
        for name, parameter in parameters.items():
            history[name].append(parameter.detach().numpy().copy())
    return {name: np.stack(values) for name, values in history.items()}


def check_equal(what: str, ours: Trajectories, theirs: Trajectories) -> None:
    for name, expected in theirs.items():
        error = float(np.abs(ours[name] - expected).max())
        if error > 1e-9 * rms(expected):
            raise RuntimeError(f"{what}: {name} differs by {error}")


def make_gradients(generator: np.random.Generator) -> Tensors:
    """[step, ...] each, over four orders of magnitude, with zeros where training has them."""
    scales = 10.0 ** generator.uniform(-3.0, 1.0, STEPS)
    gradients = {}
    for name, shape in SHAPES.items():
        drawn = generator.standard_normal((STEPS, *shape))
        gradients[name] = rounded(drawn * scales.reshape(STEPS, *[1] * len(shape)))
    gradients["matrix"][:, 2, :] = 0.0  # the row of a token that never occurs
    gradients["vector"][0] = 0.0  # nothing in the first step
    gradients["gate"][4] = 0.0
    return gradients


def write_optimizers(fixture: Fixture) -> None:
    generator = np.random.default_rng(20)
    initial = {name: rounded(10.0 ** generator.uniform(-2.0, 0.5) * generator.standard_normal(shape))
               for name, shape in SHAPES.items()}
    initial["gate"] = np.zeros(SHAPES["gate"])
    gradients = make_gradients(generator)
    rates = rounded(generator.uniform(0.02, 0.3, STEPS))

    def subset(names: tuple[str, ...]) -> tuple[Tensors, Tensors]:
        return {name: initial[name] for name in names}, {name: gradients[name] for name in names}

    def transformers_adafactor(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = TransformersAdafactor(
            parameters, lr=1.0, eps=(SQUARE_FLOOR, SCALE_FLOOR), clip_threshold=CLIP_THRESHOLD,
            decay_rate=-DECAY_EXPONENT, scale_parameter=True, relative_step=False)
        return optimizer

    def torch_adafactor(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adafactor(parameters, lr=1.0, beta2_decay=-DECAY_EXPONENT,
                                     eps=(math.sqrt(SQUARE_FLOOR), SCALE_FLOOR), d=CLIP_THRESHOLD,
                                     weight_decay=0.0)

    def torch_adamw(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=1.0, betas=(BETA1, BETA2), eps=ADAMW_EPSILON,
                                 weight_decay=WEIGHT_DECAY)

    adafactor = run(Adafactor, initial, gradients, rates)
    # The others factor every tensor of two or more dimensions, and always its last two.
    same_rule = subset(("matrix", "smallest_factored", "heads", "vector", "gate"))
    check_equal("Adafactor of transformers", adafactor, run_torch(transformers_adafactor, *same_rule, rates))
    # That of torch caps the rate at 1 / sqrt(t + 1), which `rates` stays below, and has no floor for rows
    # that are always zero.
    positive = subset(("smallest_factored", "heads", "gate"))
    check_equal("Adafactor of torch", adafactor, run_torch(torch_adafactor, *positive, rates))

    adamw_rates = rounded(0.1 * rates)
    adamw = run(AdamW, initial, gradients, adamw_rates)
    check_equal("AdamW of torch", adamw, run_torch(torch_adamw, initial, gradients, adamw_rates))
    adamw_rms = run(AdamWRms, initial, gradients, adamw_rates)

    def moments(epsilon: float) -> str:
        return (f"beta1: {BETA1}\nbeta2: {BETA2}\nepsilon: {epsilon}\n"
                f"weight_decay: {WEIGHT_DECAY}\n")

    factored = (f"decay_exponent: {DECAY_EXPONENT}\nclip_threshold: {CLIP_THRESHOLD}\n"
                f"min_factored_size: {MIN_FACTORED_SIZE}\n")
    fixture.arrays("/optimizers/initial", initial)
    fixture.arrays("/optimizers/gradients", gradients)
    for kind, options, used_rates, trajectory in (
            ("ADAFACTOR", factored, rates, adafactor),
            ("ADAMW", moments(ADAMW_EPSILON), adamw_rates, adamw),
            ("ADAMW_RMS", moments(ADAMW_RMS_EPSILON), adamw_rates, adamw_rms)):
        group = f"/optimizers/{kind.lower()}"
        fixture.attribute(group, "config", f"kind: {kind}\n{options}")
        fixture.doubles(f"{group}/rates", used_rates)
        fixture.arrays(f"{group}/parameters", trajectory)


@dataclass(frozen=True)
class Schedule:
    name: str
    kind: str
    rate: float
    warmup_steps: int
    final_rate: float
    total_steps: int

    def text_proto(self) -> str:
        return (f"schedule {{ kind: {self.kind} rate: {self.rate} warmup_steps: {self.warmup_steps} "
                f"final_rate: {self.final_rate} }}\n")

    def value(self, step: int) -> float:
        if self.kind == "RSQRT":
            return self.rate / math.sqrt(max(step, self.warmup_steps, 1))
        if step < self.warmup_steps:
            return self.rate * step / self.warmup_steps
        if self.kind == "CONSTANT":
            return self.rate
        if self.kind == "INVERSE_SQRT":
            return self.rate * math.sqrt(max(self.warmup_steps, 1) / max(step, 1))
        last = self.total_steps - 1
        progress = min(1.0, (step - self.warmup_steps) / max(1, last - self.warmup_steps))
        if self.kind == "COSINE":
            progress = 0.5 - 0.5 * math.cos(math.pi * progress)
        return self.rate + (self.final_rate - self.rate) * progress


SCHEDULES = (
    Schedule("rsqrt_t5", "RSQRT", 1.0, 10000, 0.0, 524288),
    Schedule("rsqrt_no_warmup", "RSQRT", 0.5, 0, 0.0, 1000),
    Schedule("constant", "CONSTANT", 0.001, 0, 0.0, 1000),
    Schedule("constant_warmup", "CONSTANT", 0.001, 100, 0.0, 1000),
    Schedule("linear", "LINEAR", 0.02, 0, 0.0, 1000),
    Schedule("linear_warmup", "LINEAR", 0.02, 100, 0.001, 1000),
    Schedule("cosine", "COSINE", 0.02, 0, 0.0, 1000),
    Schedule("cosine_warmup", "COSINE", 0.02, 100, 0.00001, 1000),
    Schedule("inverse_sqrt", "INVERSE_SQRT", 0.0007, 100, 0.0, 1000),
    Schedule("inverse_sqrt_no_warmup", "INVERSE_SQRT", 0.0007, 0, 0.0, 1000),
)


def compare_with_transformers(schedule: Schedule) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=schedule.rate)
    theirs = get_inverse_sqrt_schedule(optimizer, schedule.warmup_steps)
    for step in range(schedule.total_steps):
        if not math.isclose(theirs.get_last_lr()[0], schedule.value(step), rel_tol=1e-12):
            raise SystemExit(f"{schedule.name} differs from transformers' at step {step}")
        optimizer.step()
        theirs.step()


def write_schedules(fixture: Fixture) -> None:
    compare_with_transformers(next(each for each in SCHEDULES if each.name == "inverse_sqrt"))
    for schedule in SCHEDULES:
        last = schedule.total_steps - 1
        steps = np.array(sorted({0, 1, 2, 50, 99, 100, 101, 500, 9999 % schedule.total_steps,
                                 10000 % schedule.total_steps, 10001 % schedule.total_steps, last // 2,
                                 last - 1, last}))
        group = f"/schedules/{schedule.name}"
        fixture.attribute(group, "config", schedule.text_proto())
        fixture.attribute(group, "total_steps", str(schedule.total_steps))
        fixture.array(f"{group}/steps", steps)
        fixture.doubles(f"{group}/rates", np.array([schedule.value(int(step)) for step in steps]))


def main() -> None:
    directory = output_directory("Writes the fixture of the optimizers and schedules.")
    torch.set_num_threads(1)
    with Fixture(directory / "optimizers.h5", Path(__file__).name, ("torch", "transformers")) as fixture:
        write_optimizers(fixture)
        write_schedules(fixture)


if __name__ == "__main__":
    main()
