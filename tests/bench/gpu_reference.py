# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch on the GPU: the machine's ceilings, and the kernels that the goals name.

Prints one line of JSON for each figure. "ceilings": FLOP/s of a bf16 product of 8192^3, and bytes per
second of a copy (read and written). "kernels": seconds of attention and of the residual norm with
T5-base's dimensions in bf16, for every backend that supports the call; null if none does. "case": the
same of one case of attention as trainings call it (attention_peers.py), with the FLOPs of both passes
and the bytes of the forward pass.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

import attention_peers
from peer import print_line

SAMPLES: Final = 11
RUNS: Final = 10  # of a sample
HEAD_START_CYCLES: Final = 20_000_000  # about 10 ms: longer than it takes to launch a sample's runs
BACKENDS: Final = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}

Work = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Sizes:
    batch: int
    length: int
    heads: int = 12
    head_size: int = 64
    width: int = 768
    product: int = 8192
    copied: int = 4 << 30  # bytes


SIZES: Final = {
    "base": Sizes(128, 512),
    "tiny": Sizes(2, 128, heads=2, head_size=16, width=64, product=256, copied=1 << 20),
}


class Measurement:
    def __init__(self, device: str, sizes: Sizes, compiled: bool) -> None:
        self.device = device
        self.sizes = sizes
        self.compiled = compiled

    def random(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return (0.3 * torch.randn(shape, device=self.device)).to(dtype)

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(function, dynamic=False) if self.compiled else function

    def seconds(self, work: Work) -> float:
        """The median over samples of the mean seconds of a run."""
        for _ in range(3):
            work()
        return statistics.median(self._mean_seconds(work) for _ in range(SAMPLES))

    def _mean_seconds(self, work: Work) -> float:
        if self.device == "cpu":
            begin = time.perf_counter()
            for _ in range(RUNS):
                work()
            return (time.perf_counter() - begin) / RUNS
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The GPU waits until all is launched, so that the time is its own.
        torch.cuda._sleep(HEAD_START_CYCLES)  # noqa: SLF001, no public name
        start.record()
        for _ in range(RUNS):
            work()
        end.record()
        end.synchronize()
        return float(1e-3 * start.elapsed_time(end) / RUNS)

    def report(self, name: str, by: str, make: Callable[[], Work], **facts: float) -> None:
        """Prints the seconds of what `make` returns; backends refuse calls in many ways."""
        try:
            seconds = self.seconds(make())
        except Exception as error:  # noqa: BLE001
            print_line({"name": name, "by": by, "seconds": None, "error": str(error)[:300], **facts})
            return
        print_line({"name": name, "by": by, "seconds": seconds, **facts})


def differentiated(forward: Callable[[], Tensor], operands: Iterable[Tensor]) -> Work:
    """Forward and backward of one result."""
    inputs = tuple(operands)
    gradient = torch.randn_like(forward())

    def work() -> object:
        return torch.autograd.grad(forward(), inputs, gradient)

    return work


def measure_ceilings(measurement: Measurement) -> None:
    size = measurement.sizes.product
    a, b = measurement.random(size, size), measurement.random(size, size)
    product = torch.empty_like(a)
    seconds = measurement.seconds(lambda: torch.mm(a, b, out=product))
    rate = 2.0 * size**3 / seconds
    source = measurement.random(measurement.sizes.copied // 2)
    copy = torch.empty_like(source)
    seconds = measurement.seconds(lambda: copy.copy_(source))
    print_line(
        {"flops_per_second": rate, "bytes_per_second": 2.0 * measurement.sizes.copied / seconds}
    )


def measure_attention(measurement: Measurement) -> None:
    sizes = measurement.sizes
    shape = (sizes.batch, sizes.heads, sizes.length, sizes.head_size)
    query, key, value = (measurement.random(*shape).requires_grad_() for _ in range(3))
    bias = measurement.random(1, sizes.heads, sizes.length, sizes.length).requires_grad_()

    def with_backend(backend: SDPBackend, mask: Tensor | None) -> Work:
        def forward() -> Tensor:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)

        operands = (query, key, value) if mask is None else (query, key, value, mask)
        return differentiated(forward, operands)

    for by, backend in BACKENDS.items():
        measurement.report("attention", by, partial(with_backend, backend, None))
        measurement.report("attention with table", by, partial(with_backend, backend, bias))

    attend = measurement.compile(flex_attention)

    def by_flex(dtype: torch.dtype) -> Work:
        table = bias.detach()[0].to(dtype).requires_grad_()

        def score(s: Tensor, _: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return s + table[h, q, k]

        def forward() -> Tensor:
            mixed: Tensor = attend(query, key, value, score_mod=score, scale=1.0)
            return mixed

        return differentiated(forward, (query, key, value, table))

    for by, dtype in (("flex, bf16 table", torch.bfloat16), ("flex, fp32 table", torch.float32)):
        measurement.report("attention with table", by, partial(by_flex, dtype))


def operands_of(case: attention_peers.Case, measurement: Measurement) -> dict[str, Tensor]:
    """Of rows without padding."""
    sizes = measurement.sizes
    operands = {}
    for name, shape in case.shapes(sizes.batch, sizes.heads, sizes.head_size).items():
        is_parameter = name in attention_peers.PARAMETERS
        dtype = torch.float32 if is_parameter else torch.bfloat16
        operands[name] = measurement.random(*shape, dtype=dtype).requires_grad_()
    for side, length in (("query", case.queries), ("key", case.keys)):
        segments = torch.ones(sizes.batch, length, dtype=torch.int32, device=measurement.device)
        operands[f"{side}_segments"] = segments
    operands["allowed"] = case.allowed(operands["query_segments"], operands["key_segments"])
    return operands


def measure_case(measurement: Measurement, name: str) -> None:
    sizes = measurement.sizes
    case = next(each for each in attention_peers.cases(sizes.length) if each.name == name)
    operands = operands_of(case, measurement)
    trained = [operand for operand in operands.values() if operand.requires_grad]
    dimensions = (sizes.batch, sizes.heads, sizes.head_size)
    facts = {"flops": case.flops(*dimensions), "bytes": case.forward_bytes(*dimensions)}

    def both_passes(peer: attention_peers.Peer) -> Work:
        return differentiated(lambda: peer(operands), trained)

    def with_backend(backend: SDPBackend) -> Work:
        def forward(given: attention_peers.Operands) -> Tensor:
            with sdpa_kernel(backend):
                return case.fused(given)

        return both_passes(forward)

    for by, peer in case.peers().items():
        made = case.flex(measurement.compile(flex_attention)) if by == "flex" else measurement.compile(peer)
        measurement.report(name, by, partial(both_passes, made), **facts)
    if "query" in operands or "u" in operands:
        for by, backend in BACKENDS.items():
            measurement.report(name, f"SDPA, {by}", partial(with_backend, backend), **facts)


def residual_norm(x: Tensor, y: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    total = x + y
    inverse = torch.rsqrt(total.float().square().mean(-1, keepdim=True) + 1e-6)
    return total, (total * inverse).to(x.dtype) * scale.to(x.dtype)


def measure_norm(measurement: Measurement) -> None:
    """The backward pass is what both together take longer than the forward pass."""
    sizes = measurement.sizes
    shape = (sizes.batch, sizes.length, sizes.width)
    x, y, d_sum, d_normed = (measurement.random(*shape) for _ in range(4))
    scale = measurement.random(sizes.width, dtype=torch.float32).requires_grad_()
    x.requires_grad_()
    norm = measurement.compile(residual_norm)

    def forward() -> object:
        return norm(x, y, scale)

    def both() -> object:
        return torch.autograd.grad(norm(x, y, scale), (x, scale), (d_sum, d_normed))

    by = "torch.compile" if measurement.compiled else "eager"
    measurement.report("residual and norm, forward", by, lambda: forward)
    measurement.report("residual and norm, both passes", by, lambda: both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("ceilings", "kernels", "case"))
    parser.add_argument("--case", choices=[case.name for case in attention_peers.cases(512)])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="base")
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU is visible to PyTorch")
    torch.manual_seed(0)
    measurement = Measurement(options.device, SIZES[options.sizes], not options.eager)
    if options.part == "ceilings":
        measure_ceilings(measurement)
    elif options.part == "case":
        measure_case(measurement, options.case)
    else:
        measure_attention(measurement)
        measure_norm(measurement)


if __name__ == "__main__":
    main()
