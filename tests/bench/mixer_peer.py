# SPDX-License-Identifier: Apache-2.0
"""One mixing layer in PyTorch, forward and backward: the peer of mixer_bench.

Each is written as its papers' users write it: library calls where there are any (scaled_dot_product_attention, fft,
conv1d), products elsewhere. Rows are full, so nothing is masked. Speaks as mixer_bench does.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from peer import serve_turns

HEADS, SIZE = 8, 64
INNER = HEADS * SIZE


class Projections(nn.Module):
    """Linear maps between the model's width and the heads'; what is between is the mixer."""

    def __init__(self, width: int, names: Iterable[str], inner: int = INNER) -> None:
        super().__init__()
        self.maps = nn.ModuleDict({name: nn.Linear(width, inner, bias=False) for name in names})
        self.output = nn.Linear(inner, width, bias=False)

    def heads(self, name: str, x: Tensor) -> Tensor:
        """[B, H, T, K]."""
        return self.maps[name](x).unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def join(self, mixed: Tensor) -> Tensor:
        return self.output(mixed.transpose(1, 2).flatten(-2))


class DotProduct(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.heads(name, x) for name in ("query", "key", "value"))
        return self.join(functional.scaled_dot_product_attention(query, key, value, scale=1.0))


class Random(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("value",))
        self.table = nn.Parameter(torch.randn(HEADS, length, length))

    def forward(self, x: Tensor) -> Tensor:
        return self.join(self.table.softmax(-1) @ self.heads("value", x))


class FactorizedRandom(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("value",))
        self.rows, self.columns = (nn.Parameter(torch.randn(HEADS, length, 8)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.join((self.rows @ self.columns.mT).softmax(-1) @ self.heads("value", x))


class Dense(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("hidden", "value"))
        self.positions = nn.Parameter(torch.randn(SIZE, length) / 8)

    def forward(self, x: Tensor) -> Tensor:
        scores = functional.relu(self.heads("hidden", x)) @ self.positions
        return self.join(scores.softmax(-1) @ self.heads("value", x))


class FactorizedDense(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("hidden", "value"))
        self.factors = nn.ParameterList([torch.randn(SIZE, n) / 8 for n in (length // 16, 16)])

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.relu(self.heads("hidden", x))
        near, far = (hidden @ factor for factor in self.factors)
        scores = (far[..., :, None] * near[..., None, :]).flatten(-2)
        return self.join(scores.softmax(-1) @ self.heads("value", x))


class Convolution(nn.Module):
    TAPS, FILTERS = 7, 8

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.input, self.output = nn.Linear(width, 2 * width), nn.Linear(width, width)


class LightConv(Convolution):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, length)
        self.filters = nn.Parameter(torch.randn(self.FILTERS, self.TAPS))

    def forward(self, x: Tensor) -> Tensor:
        gated = functional.glu(self.input(x)).transpose(1, 2)
        width = gated.shape[1]
        filters = self.filters.softmax(-1).repeat_interleave(width // self.FILTERS, 0)
        return self.output(functional.conv1d(gated, filters[:, None], padding=self.TAPS // 2, groups=width).mT)


class DynamicConv(Convolution):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, length)
        self.filters = nn.Linear(width, self.FILTERS * self.TAPS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gated = functional.glu(self.input(x))
        filters = self.filters(gated).unflatten(-1, (self.FILTERS, self.TAPS)).softmax(-1)
        half = self.TAPS // 2
        windows = functional.pad(gated, (0, 0, half, half)).unfold(1, self.TAPS, 1)
        windows = windows.unflatten(2, (self.FILTERS, -1))
        return self.output((windows @ filters[..., None]).squeeze(-1).flatten(-2))


class Fourier(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft2(x).real


class Linformer(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))
        self.key_rows, self.value_rows = (nn.Parameter(torch.randn(128, length) / 8) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.heads(name, x) for name in ("query", "key", "value"))
        return self.join(functional.scaled_dot_product_attention(
            query, self.key_rows @ key, self.value_rows @ value, scale=1.0))


class Mlp(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.input, self.output = nn.Linear(length, 256), nn.Linear(256, length)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(functional.gelu(self.input(x.mT), approximate="tanh")).mT


class GatedMlp(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.input, self.output, self.norm = nn.Linear(width, 2048), nn.Linear(1024, width), nn.LayerNorm(1024)
        self.map = nn.Conv1d(length, length, 1)

    def forward(self, x: Tensor) -> Tensor:
        gated, gate = functional.gelu(self.input(x)).chunk(2, -1)
        return self.output(gated * self.map(self.norm(gate)))


class LinearAttention(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))

    def features(self, name: str, x: Tensor) -> Tensor:
        return functional.elu(self.heads(name, x)) + 1

    def forward(self, x: Tensor) -> Tensor:
        query, key = self.features("query", x), self.features("key", x)
        mixed = query @ (key.mT @ self.heads("value", x))
        return self.join(mixed / (query @ key.sum(-2)[..., None] + 1e-6))


class Performer(LinearAttention):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, length)
        self.register_buffer("vectors", torch.randn(SIZE, 256))

    def features(self, name: str, x: Tensor) -> Tensor:
        rows = self.heads(name, x) / SIZE**0.25
        products = rows @ self.vectors
        largest = products.amax(-1 if name == "query" else (-1, -2), keepdim=True)
        return (products - largest - rows.square().sum(-1, keepdim=True) / 2).exp() + 1e-4


class Retention(nn.Module):
    """By the matrix of all weights, as RetNet is trained."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(width, INNER, bias=False) for _ in range(2))
        self.value, self.gate = (nn.Linear(width, 2 * INNER, bias=False) for _ in range(2))
        self.output = nn.Linear(2 * INNER, width, bias=False)
        places = torch.arange(length)
        decay = 1 - 2.0 ** (-5 - torch.arange(HEADS))
        self.register_buffer("decay", decay[:, None, None] ** (places[:, None] - places[None, :]).abs())
        angles = places[:, None] * 10000.0 ** -torch.linspace(0, 1, SIZE // 2)
        self.register_buffer("sine", angles.sin())
        self.register_buffer("cosine", angles.cos())

    def rotated(self, x: Tensor) -> Tensor:
        real, imaginary = x.unflatten(-1, (HEADS, -1)).transpose(1, 2).chunk(2, -1)
        return torch.cat([real * self.cosine - imaginary * self.sine, imaginary * self.cosine + real * self.sine], -1)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.rotated(self.query(x)) @ self.rotated(self.key(x)).mT * self.decay
        mixed = weights @ self.value(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        mixed = functional.layer_norm(mixed, mixed.shape[-1:]).transpose(1, 2).flatten(-2)
        return self.output(functional.silu(self.gate(x)) * mixed)


class AttentionFree(Projections):
    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))
        self.biases = nn.Parameter(torch.randn(length, length) / 100)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.maps[name](x) for name in ("query", "key", "value"))
        map_, weights = self.biases.exp(), (key - key.amax(1, keepdim=True)).exp()
        return self.output(torch.sigmoid(query) * (map_ @ (weights * value)) / (map_ @ weights))


class Hyena(nn.Module):
    """Long convolutions by fft, as its authors do; here in both directions."""

    UNITS, BANDS = 64, 16

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.width = width
        self.input, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.short = nn.Conv1d(3 * width, 3 * width, 3, padding=1, groups=3 * width)
        self.skip = nn.Parameter(torch.randn(width))
        sizes = (1 + 2 * self.BANDS, self.UNITS, self.UNITS, self.UNITS)
        self.networks = nn.ModuleList(nn.ModuleList(
            [nn.Linear(*pair) for pair in zip(sizes, sizes[1:], strict=False)]
            + [nn.Linear(self.UNITS, width, bias=False)]) for _ in range(2))
        self.frequencies = nn.ParameterList(torch.full((self.UNITS,), 14.0) for _ in range(2))
        distance = torch.arange(length)[:, None] / length
        angles = 2 * math.pi * distance * torch.arange(self.BANDS)
        self.register_buffer("distances", torch.cat([distance, angles.cos(), -angles.sin()], -1))
        decay = 0.01 ** (distance * torch.linspace(1 / 1.5, 1 / 0.3, width))
        # The position itself is read by the filter that looks back, not by both.
        self.register_buffer("decays", torch.stack([decay, decay * (distance > 0)]))

    def filters(self, network: nn.ModuleList, frequencies: Tensor, decay: Tensor) -> Tensor:
        units = self.distances
        for layer in network[:-1]:
            units = torch.sin(frequencies * layer(units))
        return network[-1](units) * decay

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        gate, inner_gate, values = self.short(self.input(x).mT).mT.split(self.width, -1)
        values = values * inner_gate
        spectrum = torch.fft.rfft(values, 2 * length, dim=1)
        back, ahead = (torch.fft.rfft(self.filters(*each), 2 * length, dim=0)
                       for each in zip(self.networks, self.frequencies, self.decays, strict=True))
        mixed = torch.fft.irfft(spectrum * (back + ahead.conj()), 2 * length, dim=1)[:, :length]
        return self.output((mixed + self.skip * values) * gate)


BLOCK = 64


def hiding(reads: Tensor) -> Tensor:
    """What is added to scores: 0, or minus infinity where a key is not read."""
    return torch.zeros(reads.shape).masked_fill(~reads, -math.inf)


class Blocks(Projections):
    """Attention of each block of queries to as many keys."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))

    def blocks(self, x: Tensor) -> Iterator[Tensor]:
        """Queries, keys and values, [B * H, N, BLOCK, K]."""
        return (self.heads(name, x).flatten(0, 1).unflatten(1, (-1, BLOCK)) for name in self.maps)

    def join_blocks(self, mixed: Tensor) -> Tensor:
        return self.join(mixed.flatten(1, 2).unflatten(0, (-1, HEADS)))


class LocalAttention(Blocks):
    """A block reads itself and its two neighbours, and of them what is near."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, length)
        query = torch.arange(length).view(-1, BLOCK, 1)
        key = torch.arange(-BLOCK, length + BLOCK).unfold(0, 3 * BLOCK, BLOCK)[:, None]
        self.register_buffer("hiding", hiding(((query - key).abs() < BLOCK) & (key >= 0) & (key < length)))

    @staticmethod
    def neighbours(x: Tensor) -> Tensor:
        x = functional.pad(x, (0, 0, 0, 0, 1, 1))
        return torch.cat([x[:, :-2], x[:, 1:-1], x[:, 2:]], 2)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.blocks(x)
        scores = query @ self.neighbours(key).mT + self.hiding
        return self.join_blocks(scores.softmax(-1) @ self.neighbours(value))


class BigBird(Projections):
    """By all scores: of so few blocks nearly all are read, and gathering those of each head takes longer."""

    RANDOM = 3

    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "key", "value"))
        blocks = torch.arange(length // BLOCK)
        near = ((blocks[:, None] - blocks).abs() < 2) | (blocks == 0) | (blocks == blocks[-1])
        drawn = torch.rand(HEADS, len(blocks), len(blocks)).masked_fill(near, 2)
        reads = near | ((drawn.argsort(-1).argsort(-1) < self.RANDOM) & (drawn < 1))
        reads[:, [0, -1]] = True
        self.register_buffer("hiding", hiding(reads.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)[None]))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.heads(name, x) for name in ("query", "key", "value"))
        return self.join(functional.scaled_dot_product_attention(query, key, value, self.hiding, scale=1.0))


class Sinkhorn(Blocks):
    """A block reads itself and a mixture of all blocks."""

    TEMPERATURE, ITERATIONS = 0.75, 8

    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, length)
        self.sorting = nn.Linear(width, HEADS * (length // BLOCK), bias=False)

    def places(self, x: Tensor) -> Tensor:
        """How much of each block is in each place, [B * H, N, N]."""
        logits = self.sorting(x.unflatten(1, (-1, BLOCK)).sum(2)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        weights = (logits.flatten(0, 1) / self.TEMPERATURE).softmax(-1) + 1e-12
        for _ in range(self.ITERATIONS):
            weights = weights / weights.sum(-2, keepdim=True)
            weights = weights / weights.sum(-1, keepdim=True)
        return weights

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.blocks(x)
        places = self.places(x)
        key, value = (torch.cat([each, (places @ each.flatten(2)).view_as(each)], 2) for each in (key, value))
        return self.join_blocks(functional.scaled_dot_product_attention(query, key, value, scale=1.0))


class Reformer(Projections):
    """Positions, sorted by bucket, read those of their bucket in their chunk and in the one before."""

    ROUNDS = 2

    def __init__(self, width: int, length: int) -> None:
        super().__init__(width, ("query", "value"))
        self.register_buffer("rotation", torch.randn(HEADS, SIZE, self.ROUNDS * (length // BLOCK)))
        self.register_buffer("itself", functional.pad(torch.eye(BLOCK, dtype=torch.bool), (BLOCK, 0)))

    def buckets(self, query: Tensor) -> Tensor:
        """[B, H, R, T]."""
        rotated = (query @ self.rotation).unflatten(-1, (self.ROUNDS, -1)).transpose(2, 3)
        return torch.cat([rotated, -rotated], -1).argmax(-1)

    @staticmethod
    def rows(x: Tensor, order: Tensor) -> Tensor:
        """Those of x [..., T, C] that `order` [..., R, T] names, [..., R, T, C]."""
        sequences = torch.arange(x[..., 0, 0].numel()).view(*x.shape[:-2], 1, 1)
        places = (order + x.shape[-2] * sequences).flatten()
        return x.flatten(0, -2).index_select(0, places).view(*order.shape, x.shape[-1])

    @staticmethod
    def with_last(x: Tensor, fill: float = 0.0) -> Tensor:
        """Chunks [..., N, C, K], each behind the one before it, [..., N, 2 C, K]."""
        return torch.cat([functional.pad(x, (0, 0, 0, 0, 1, 0), value=fill)[..., :-1, :, :], x], -2)

    def forward(self, x: Tensor) -> Tensor:
        query, value = self.heads("query", x), self.heads("value", x)
        bucket, order = self.buckets(query).sort(dim=-1, descending=True, stable=True)
        bucket = bucket.unflatten(-1, (-1, BLOCK))[..., None]
        key = functional.normalize(query, dim=-1)
        query, key, value = (self.rows(each, order).unflatten(3, (-1, BLOCK)) for each in (query, key, value))
        scores = (query @ self.with_last(key).mT).masked_fill(bucket != self.with_last(bucket, -1).mT, -1e9)
        scores = scores.masked_fill(self.itself, -1e5)
        weights = scores.softmax(-1)
        # The logarithms of the sums of exponentials, from the largest score and its weight.
        largest, place = scores.max(-1, keepdim=True)
        sums = largest - weights.gather(-1, place).log()
        mixed, back = weights @ self.with_last(value), order.argsort(-1)[..., None, :]
        mixed, sums = (self.rows(each.flatten(3, 4), back).squeeze(3) for each in (mixed, sums))
        return self.join((sums.softmax(2) * mixed).sum(2))


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "transformer": DotProduct, "random": Random, "factorized_random": FactorizedRandom, "dense": Dense,
    "factorized_dense": FactorizedDense, "light_conv": LightConv, "dynamic_conv": DynamicConv, "fourier": Fourier,
    "linformer": Linformer, "mlp": Mlp, "gated_mlp": GatedMlp, "linear_attention": LinearAttention,
    "performer": Performer, "retention": Retention, "attention_free": AttentionFree, "hyena": Hyena,
    "local_attention": LocalAttention, "big_bird": BigBird, "sinkhorn": Sinkhorn, "reformer": Reformer,
}


def flops_of(layer: nn.Module, x: Tensor, cotangent: Tensor) -> int:
    """Of the products of a pass, as PyTorch counts them.

    Attention counts as its products, without the scores that other backends compute again. The gradients of a grouped
    convolution, which PyTorch counts as if it had one group, count as two convolutions.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(x).backward(cotangent)
    counts = dict(counter.get_flop_counts().get("Global", {}))
    convolutions = counts.pop(torch.ops.aten.convolution, 0)
    counts.pop(torch.ops.aten.convolution_backward, 0)
    return sum(counts.values()) + 3 * convolutions


def main() -> None:
    parser = argparse.ArgumentParser(description="One mixing layer in PyTorch, forward and backward.")
    parser.add_argument("--mixer", required=True, choices=sorted(LAYERS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    layer = LAYERS[options.mixer](options.width, options.length)
    x = torch.randn(options.batch, options.length, options.width, requires_grad=True)
    cotangent = torch.randn(options.batch, options.length, options.width)
    run = torch.compile(layer) if options.compile else layer

    def step() -> None:
        x.grad = None
        layer.zero_grad(set_to_none=True)
        run(x).backward(cotangent)

    for _ in range(3):
        step()
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    serve_turns({"parameters": parameters, "flops": flops_of(layer, x, cotangent)}, step)


if __name__ == "__main__":
    main()
