# SPDX-License-Identifier: Apache-2.0
"""The goals of the GPU step benchmark and how its result meets them."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reporting import Row, table

Result = Mapping[str, Any]

# The files configs/base_*.textproto and what people call them, the most important first.
VARIANTS: Final = {
    "transformer": "Transformer",
    "random": "Syn(R)",
    "factorized_random": "Syn(FR)",
    "random_vanilla": "Syn(R+V)",
    "factorized_dense": "Syn(FD)",
    "dense": "Syn(D)",
    "dense_vanilla": "Syn(D+V)",
    "joint_cross_attention": "Transformer, joint cross-attention",
}
# The attention of training, as gpu_kernel_bench.cc calls it: rows with segments, of 512 inputs and 114 targets.
TRAINING_KERNELS: Final = (
    "encoder's dot product",
    "encoder's random",
    "encoder's random and dot product",
    "encoder's dense",
    "encoder's factorized dense",
    "decoder's dot product",
    "decoder's random",
    "decoder's dense",
    "decoder's factorized dense",
    "cross-attention",
)
STEPS_PER_TURN: Final = 5
BUDGET_STEPS: Final = 65536
PEAK_FLOPS: Final = 989e12  # dense bf16 of H100 and H200, as published; MFU counts by it
ABSOLUTE_ON: Final = "H200"  # what goals in steps a second and bytes a second are for


# --- what was measured ------------------------------------------------------------------------


def hardest_peer(result: Result, implementation: str | None = None) -> Mapping[str, Any]:
    """The peer that the product beats by least, of one implementation or of all."""
    peers = [
        peer
        for peer in result["peers"]
        if implementation in (None, peer["setting"]["implementation"])
    ]
    if not peers:
        raise LookupError("no such peer ran")
    return min(peers, key=lambda peer: float(peer["product_over_peer"]))


def goal_peer(result: Result) -> Mapping[str, Any]:
    """The peer that the goals name, or what stands in for it where it cannot run."""
    try:
        return hardest_peer(result, "hugging_face")
    except LookupError:
        return hardest_peer(result)


def own_seconds(result: Result, variant: str) -> list[float]:
    """All turns of a variant of the product."""
    if variant != "transformer":
        return list(result["variants"][variant]["seconds"]["variant"])
    turns = [peer["seconds"]["product"] for peer in result["peers"]]
    turns += [other["seconds"]["transformer"] for other in result["variants"].values()]
    if not turns:
        raise LookupError("the Transformer did not run")
    return [seconds for each in turns for seconds in each]


def steps_per_second(result: Result, variant: str) -> float:
    return 1 / statistics.median(own_seconds(result, variant))


def own_summary(result: Result, variant: str) -> Mapping[str, Any]:
    """What a variant's process said last."""
    if variant != "transformer":
        summaries = [result["variants"][variant]["summary"]]
    else:
        summaries = [peer["product_summary"] for peer in result["peers"]]
        summaries += [other["transformer_summary"] for other in result["variants"].values()]
    summary: Mapping[str, Any] = summaries[0]
    return summary


def memory_share(result: Result, variant: str) -> float:
    """Peak of GPU memory over that of the leanest peer at the same batch."""
    batch = result["plans"]["transformer"]["micro_batch_rows"]
    peaks = [
        peer["peer_summary"]["peak_device_bytes"]
        for peer in result["peers"]
        if peer["setting"]["batch"] == batch
        and peer["setting"]["implementation"] == goal_peer(result)["setting"]["implementation"]
    ]
    if not peaks:
        raise LookupError("no peer ran at the product's batch")
    return float(own_summary(result, variant)["peak_device_bytes"] / min(peaks))


def measured(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without those that have no time, or say why it does not count."""
    return [line for line in lines if "error" not in line and line["seconds"] is not None]


def own_kernels(result: Result, name: str, op: str) -> list[Mapping[str, Any]]:
    """An own kernel, before and after PyTorch's."""
    both = measured([*result["kernels"]["own"], *result["kernels"]["own_again"]])
    found = [line for line in both if (line["name"], line["op"]) == (name, op)]
    if not found:
        raise LookupError(f"{name} was not measured")
    return found


def own_kernel(result: Result, name: str, op: str) -> float:
    """Seconds of an own kernel, the slower of its two medians."""
    return float(max(line["seconds"] for line in own_kernels(result, name, op)))


def own_attention(result: Result, name: str) -> float:
    return own_kernel(result, name, "attention") + own_kernel(result, name, "attention_grad")


def torch_lines(result: Result) -> list[Mapping[str, Any]]:
    """What PyTorch's kernels took, of the goals' cases and of training's."""
    training = [line for lines in result.get("training_kernels", {}).values() for line in lines]
    return [*result["kernels"]["torch"], *training]


def torch_kernel(result: Result, name: str, by: str = "") -> float:
    """Seconds of PyTorch's fastest kernel whose backend's name begins so."""
    seconds = [
        line["seconds"]
        for line in measured(torch_lines(result))
        if line["name"] == name and line["by"].startswith(by)
    ]
    if not seconds:
        raise LookupError(f"no PyTorch kernel for {name}")
    return float(min(seconds))


def torch_masked_attention(result: Result) -> float:
    """SDPA's fastest with a trained table."""
    found = []
    for backend in ("flash", "cudnn", "efficient", "math"):
        try:
            found.append(torch_kernel(result, "attention with table", backend))
        except LookupError:
            continue
    if not found:
        raise LookupError("SDPA took no trained table")
    return min(found)


def norm_terabytes_per_second(result: Result) -> float:
    of_norm = "residual and norm", "add_norm"
    return 1e-12 * float(own_kernels(result, *of_norm)[0]["bytes"]) / own_kernel(result, *of_norm)


def roofline_share(result: Result, line: Mapping[str, Any]) -> float | None:
    """The least time that the machine's ceilings allow for a kernel's FLOPs and bytes, over its own."""
    if not result["ceilings"] or "flops" not in line:
        return None
    ceilings = result["ceilings"][0]
    least = max(
        line["flops"] / ceilings["flops_per_second"], line["bytes"] / ceilings["bytes_per_second"]
    )
    return float(least / line["seconds"])


def norm_backward_ratio(result: Result) -> float:
    both = torch_kernel(result, "residual and norm, both passes", "torch.compile")
    backward = both - torch_kernel(result, "residual and norm, forward", "torch.compile")
    return backward / own_kernel(result, "residual and norm", "add_norm_grad")


# --- the goals --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Goal:
    name: str
    target: float
    value: Callable[[Result], float]  # throws LookupError where it was not measured
    at_most: bool = False
    percent: bool = False
    unit: str = "x"
    over_own: bool = False  # a ratio to the own Transformer: worth nothing while that is slow
    is_speed: bool = True  # counts only where the losses agree


def over_own(variant: str, target: float) -> Goal:
    return Goal(
        f"{VARIANTS[variant]} over own Transformer",
        target,
        lambda result: float(result["variants"][variant]["over_transformer"]),
        over_own=True,
    )


def rate(variant: str, target: float) -> Goal:
    return Goal(
        VARIANTS[variant],
        target,
        lambda result: steps_per_second(result, variant),
        unit=" steps/s",
    )


def budget(variant: str, target: float) -> Goal:
    """The hours of nanoT5's 65,536 steps of batch 128, extrapolated."""
    return Goal(
        f"65,536 steps of {VARIANTS[variant]}",
        target,
        lambda result: BUDGET_STEPS / steps_per_second(result, variant) / 3600,
        at_most=True,
        unit=" h",
    )


def training_kernel(name: str) -> Goal:
    return Goal(
        f"{name}, both passes over PyTorch's fastest",
        1.0,
        lambda r: torch_kernel(r, name) / own_attention(r, name),
    )


def memory(variant: str, target: float) -> Goal:
    return Goal(
        f"{VARIANTS[variant]}, peak memory over the peer's",
        target,
        lambda result: memory_share(result, variant),
        at_most=True,
        is_speed=False,
    )


def losses(precision: str, target: float) -> Goal:
    return Goal(
        f"loss after training in {precision}, difference from PyTorch",
        target,
        lambda result: float(result["losses"][precision]["difference_at_end"]),
        at_most=True,
        percent=True,
        is_speed=False,
    )


FIRST: Final = (
    Goal(
        "Transformer over the peer",
        2.0,
        lambda result: float(goal_peer(result)["product_over_peer"]),
    ),
    rate("transformer", 9.0),
)
LOSSES: Final = (losses("fp32", 0.005), losses("bf16", 0.02))
GOALS: Final = (
    *FIRST,
    over_own("random", 1.25),
    rate("random", 11.5),
    over_own("factorized_random", 1.25),
    over_own("factorized_dense", 1.12),
    over_own("dense", 1.03),
    over_own("random_vanilla", 0.97),
    over_own("dense_vanilla", 0.93),
    Goal(
        "Syn(R) over Syn(R) in PyTorch",
        2.0,
        lambda result: float(result["random_peer"]["product_over_peer"]),
    ),
    Goal(
        "Transformer with dropout 0.1 over the peer",
        2.0,
        lambda result: float(result["dropout_peer"]["product_over_peer"]),
    ),
    Goal(
        "shared attention over the best SDPA without bias",
        4.5,
        lambda r: torch_kernel(r, "attention") / own_attention(r, "shared attention"),
    ),
    Goal(
        "attention with a trained table over SDPA",
        3.0,
        lambda r: torch_masked_attention(r) / own_attention(r, "dot product with table"),
    ),
    Goal(
        "attention with a trained table over FlexAttention",
        1.3,
        lambda r: (
            torch_kernel(r, "attention with table", "flex")
            / own_attention(r, "dot product with table")
        ),
    ),
    Goal(
        "attention with a trained table over cuDNN without bias",
        0.85,
        lambda r: (
            torch_kernel(r, "attention", "cudnn") / own_attention(r, "dot product with table")
        ),
    ),
    *(training_kernel(name) for name in TRAINING_KERNELS),
    Goal("residual and norm, forward", 3.7, norm_terabytes_per_second, unit=" TB/s"),
    Goal("residual and norm, backward over torch.compile", 1.8, norm_backward_ratio),
    budget("transformer", 2.1),
    budget("random", 1.6),
    memory("transformer", 0.75),
    memory("random", 0.6),
    *LOSSES,
)


@dataclasses.dataclass(frozen=True)
class Judged:
    name: str
    measured: float | None
    target: float
    shown: str
    goal: str
    verdict: str

    def cells(self) -> tuple[str, ...]:
        return self.name, self.shown, self.goal, self.verdict


def row_of(goal: Goal, result: Result) -> Row | None:
    try:
        value = goal.value(result)
    except (LookupError, TypeError):  # a part that did not run, or a fact that is null
        return None
    return Row(goal.name, value, goal.target, goal.at_most, goal.percent, goal.unit)


def is_met(goal: Goal, result: Result) -> bool:
    row = row_of(goal, result)
    return row is not None and row.met()


def is_absolute(goal: Goal) -> bool:
    return goal.unit != "x"


def reason_not_judged(goal: Goal, result: Result) -> str | None:
    on_named_device = ABSOLUTE_ON in result["machine"]
    first = [each for each in FIRST if on_named_device or not is_absolute(each)]
    differing = [each for each in LOSSES if row_of(each, result) and not is_met(each, result)]
    if result["toy"]:
        return "not judged: a toy"
    if result["void"]:
        return "void"
    if is_absolute(goal) and not on_named_device:
        return f"not judged: for one {ABSOLUTE_ON}"
    if goal.is_speed and differing:
        return "void: the losses differ"
    if goal.over_own and not all(is_met(each, result) for each in first):
        return "void: own Transformer misses its goal"
    return None


def judge(result: Result) -> list[Judged]:
    judged = []
    for goal in GOALS:
        row = row_of(goal, result)
        # A row of the target itself says how the target is written.
        name, _, aim, _ = Row(
            goal.name, goal.target, goal.target, goal.at_most, goal.percent, goal.unit
        ).cells(void=False)
        if row is None:
            judged.append(Judged(name, None, goal.target, "-", aim, "not measured"))
            continue
        _, shown, _, verdict = row.cells(void=False)
        verdict = reason_not_judged(goal, result) or verdict
        judged.append(Judged(name, row.measured, goal.target, shown, aim, verdict))
    return judged


# --- figures ----------------------------------------------------------------------------------


def gibibytes(summary: Mapping[str, Any]) -> str:
    peak = summary.get("peak_device_bytes")
    return f"{peak / 2**30:.1f}" if peak else "-"


def figure(
    result: Result, name: str, variant: str, seconds: Sequence[float], summary: Mapping[str, Any]
) -> tuple[str, ...]:
    median = statistics.median(seconds)
    rate = result["plans"][variant]["flops_per_step"] / median
    ceiling = result["ceilings"][0]["flops_per_second"] if result["ceilings"] else None
    return (
        name,
        f"{1e3 * median:.1f}",
        f"{1 / median:.2f}",
        f"{1e-12 * rate:.1f}",
        f"{100 * rate / ceiling:.0f} %" if ceiling else "-",
        f"{100 * rate / PEAK_FLOPS:.1f} %",
        gibibytes(summary),
    )


def figures(result: Result) -> str:
    """Ceilings, then a table of all programs."""
    rows = []
    for variant, name in VARIANTS.items():
        try:
            seconds, summary = own_seconds(result, variant), own_summary(result, variant)
        except LookupError:
            continue
        rows.append(figure(result, f"Syntra, {name}", variant, seconds, summary))
    others = [(peer, "transformer") for peer in result["peers"]]
    if "random_peer" in result:
        others.append((result["random_peer"], "random"))
    if "dropout_peer" in result:
        peer = result["dropout_peer"]
        seconds, summary = peer["seconds"]["product"], peer["product_summary"]
        rows.append(figure(result, "Syntra, Transformer, dropout 0.1", "transformer", seconds, summary))
        others.append((peer, "transformer"))
    for peer, variant in others:
        seconds = peer["seconds"]["peer"]
        rows.append(figure(result, peer["name"], variant, seconds, peer["peer_summary"]))
    header = ("program", "ms", "steps/s", "TFLOP/s", "of 8192^3", "MFU of 989", "peak GiB")
    text = table(header, rows)
    if result["ceilings"]:
        ceilings = result["ceilings"][0]
        flops, bytes_moved = ceilings["flops_per_second"], ceilings["bytes_per_second"]
        text = (
            f"bf16 product of 8192^3: {1e-12 * flops:.0f} TFLOP/s, "
            f"copy: {1e-12 * bytes_moved:.2f} TB/s\n\n{text}"
        )
    return text + peer_figures(result) + kernel_figures(result)


def peer_figures(result: Result) -> str:
    lines = [
        f"Transformer over {peer['name']}: {peer['product_over_peer']:.2f}x"
        for peer in result["peers"]
    ]
    if lines:
        lines.append(f"The goals' peer: {goal_peer(result)['name']}")
    return "".join(f"\n\n{line}" for line in lines)


def kernel_figures(result: Result) -> str:
    if "kernels" not in result:
        return ""
    rows = []
    for line in measured(result["kernels"]["own"]):
        share = roofline_share(result, line)
        rows.append(
            (
                line["name"],
                f"Syntra, {line['op']}",
                f"{1e6 * line['seconds']:.0f}",
                f"{1e-9 * line['flops']:.1f}",
                f"{1e-6 * line['bytes']:.0f}",
                "-" if share is None else f"{100 * share:.0f} %",
            )
        )
    rows += [
        (line["name"], line["by"], f"{1e6 * line['seconds']:.0f}", "", "", "")
        for line in measured(torch_lines(result))
    ]
    lacking = [line for line in torch_lines(result) if not measured([line])]
    rows += [(line["name"], line["by"], "-", "", "", "") for line in lacking]
    failed = [f"Syntra, {line['name']}: {line['error']}" for line in result["kernels"]["own"] if "error" in line]
    return "\n\n".join(("", table(("kernel", "by", "us", "GFLOP", "MB", "of the roofline"), rows), *failed))
