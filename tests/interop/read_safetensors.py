# SPDX-License-Identifier: Apache-2.0
"""Reads what `syntra convert --to safetensors` writes and runs it with torch: any mixer, in some five hundred lines.

    model = SyntraModel("exported")
    logits = model(encoder_ids, decoder_ids)    # [B, S] and [B, T], 0 is padding; [B, T, V]

A model without an encoder reads the second alone. Rows hold one example each; nothing is packed and nothing dropped. A model
with bidirectional_prefix is run as if its prefix were empty. Needs torch and safetensors.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor


def random_words(key: tuple[int, int], counter: int, stream: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon et al. 2011)."""
    word = 0xFFFFFFFF
    a, b, c, d = counter & word, counter >> 32, stream & word, stream >> 32
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & word, (first >> 32) ^ d ^ high, first & word
        low, high = (low + 0x9E3779B9) & word, (high + 0xBB67AE85) & word
    return a, b, c, d


def random_key(name: str, head: int) -> tuple[int, int]:
    """What a head of the layer of this name draws its random blocks with: FNV-1a of the name, and Philox twice."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001B3 & (1 << 64) - 1
    low, high, stream, _ = random_words((0, 0), digest, head)
    return random_words((low, high), 0, stream)[:2]


class Halting:
    """Adaptive computation time: what the states behind the steps of a recurrence count."""

    def __init__(self, settings: dict) -> None:
        self.bound, self.halted, self.output = 1 - settings["epsilon"], torch.zeros(()), torch.zeros(())
        self.running = torch.ones((), dtype=torch.bool)

    def decide(self, logits: Tensor) -> None:
        p = torch.sigmoid(logits) * self.running
        stops = self.running & (self.halted + p > self.bound)
        self.weight = torch.where(stops, 1 - self.halted, p)
        self.halted, self.running = self.halted + self.weight, self.running & ~stops

    def take(self, state: Tensor) -> None:
        self.output = self.output + self.weight[..., None] * (state - self.output)


class SyntraModel:
    def __init__(self, directory: str | Path) -> None:
        directory = Path(directory)
        description = json.loads((directory / "model.json").read_text(encoding="utf-8"))
        if description["format"] != "syntra 1":
            raise ValueError("unknown format: " + description["format"])
        self.config = description["model"]
        index = directory / "model.safetensors.index.json"
        files = {"model.safetensors"}
        if index.exists():
            files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        self.tensors = {name: value.float() for file in files
                        for name, value in load_file(directory / file).items()}

    def __call__(self, encoder_ids: Tensor, decoder_ids: Tensor) -> Tensor:
        keys, memory = encoder_ids != 0, None
        if self.config["architecture"] == "ENCODER_ONLY":
            return self.classes(self.stack("encoder", self.embed(encoder_ids), keys), keys)
        if self.config["architecture"] == "ENCODER_MASKED_LM":
            return self.tokens(self.stack("encoder", self.embed(encoder_ids), keys)) * keys[..., None]
        if self.config["architecture"] == "ENCODER_DECODER":
            memory = self.stack("encoder", self.embed(encoder_ids), keys)
        return self.tokens(self.stack("decoder", self.embed(decoder_ids), keys, memory))

    def tokens(self, hidden: Tensor) -> Tensor:
        if self.config["tied_embeddings"]:
            scale = 1 if self.config["scaled_embeddings"] else self.config["width"] ** -0.5
            return hidden @ self.tensors["embedding"].T * scale
        return hidden @ self.tensors["output_embedding"].T

    def classes(self, hidden: Tensor, keys: Tensor) -> Tensor:
        if self.config["classifier"]["pooling"] == "FIRST":
            vector = hidden[:, :1]
        else:
            vector = (hidden * keys[..., None]).sum(1, keepdim=True) / keys.sum(1)[:, None, None]
        return vector @ self.tensors["classifier"].T

    def embed(self, ids: Tensor) -> Tensor:
        rows = self.tensors["embedding"][ids]
        return rows * self.config["width"] ** 0.5 if self.config["scaled_embeddings"] else rows

    def positions(self, length: int) -> Tensor | int:
        if "positions" not in self.config:
            return 0
        (kind, settings), = self.config["positions"].items()
        if kind == "learned":
            return self.tensors["position_embedding"][:length]
        return self.sinusoids(settings["layout"], length)

    def sinusoids(self, layout: str, length: int) -> Tensor:
        halves, count = layout == "HALVES", self.config["width"] // 2
        steps = torch.arange(count, dtype=torch.float64) / (max(count - 1, 1) if halves else count)
        angles = torch.arange(length)[:, None] * 10000 ** -steps
        waves = torch.cat([angles.sin(), angles.cos()], -1) if halves else torch.stack(
            [angles.sin(), angles.cos()], -1).flatten(-2)
        return waves.float()

    def norm(self, name: str, x: Tensor) -> Tensor:
        scale, epsilon = self.tensors[f"{name}/norm"], self.config["norm_epsilon"]
        if self.config["norm"] == "LAYER_NORM":
            return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, self.tensors[f"{name}/norm_bias"], epsilon)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * scale

    def add(self, name: str, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x after the sublayer, whose parameters are at `name`."""
        if self.config["norm_placement"] == "AFTER":
            return self.norm(name, x + sublayer(x))
        return x + sublayer(self.norm(name, x))

    def stack(self, name: str, x: Tensor, keys: Tensor, memory: Tensor | None = None) -> Tensor:
        """`keys` [B, S]: which positions of the source are not padding."""
        default = {"repeat": self.config.get(f"{name}_layers"), "feed_forward": self.config["feed_forward"],
                   "mixer": self.config["mixer" if memory is None else "decoder_mixer"]}
        groups = self.config.get(name, {}).get("layers", [default])
        table = self.tensors.get(f"{name}/relative_bias")
        bias = 0 if table is None else self.relative_bias(name, table, self.config["relative_bias"], x.shape[1])
        positions = self.positions(x.shape[1])
        if not groups[0].get("recurrence", {}).get("positions"):
            x = x + positions
        count, owners = 0, {}  # of shared parameters
        for group in groups:
            recurrence = group.get("recurrence", {})
            halting = Halting(recurrence["halting"]) if "halting" in recurrence else None
            for step in range(group["repeat"]):
                at = f"{name}/layer_{count - step if recurrence else count:02}"
                at, count = owners.setdefault(group.get("weights") or at, at), count + 1
                if recurrence:
                    x = x + self.step_signal(at, recurrence["step_signal"], step, group["repeat"])
                    x = x + positions if recurrence["positions"] else x
                if halting:
                    halting.decide(x @ self.tensors[f"{at}/halting/weight"] + self.tensors[f"{at}/halting/bias"])
                x = self.layer(at, group, x, None if name == "decoder" else keys, bias, keys, memory)
                if halting:
                    halting.take(x)
            x = halting.output if halting else x
        return x if self.config["norm_placement"] == "AFTER" else self.norm(name, x)

    def step_signal(self, at: str, kind: str, step: int, steps: int) -> Tensor | int:
        if kind == "LEARNED":
            return self.tensors[f"{at}/step_embedding"][step]
        layout = self.config.get("positions", {}).get("sinusoidal", {}).get("layout")
        return self.sinusoids(layout, steps)[step] if kind == "SINUSOIDAL" else 0

    def layer(self, at: str, group: dict, x: Tensor, own: Tensor | None, bias: Tensor | int, keys: Tensor,
              memory: Tensor | None) -> Tensor:
        (kind, settings), = group["mixer"].items()
        bias = bias if settings.get("relative_bias") else 0
        x = self.add(f"{at}/mixer", x, lambda h: self.mixer(kind, f"{at}/mixer", settings, h, own, bias))
        if memory is not None:
            x = self.add(f"{at}/cross_attention", x, lambda h: self.cross_attention(
                f"{at}/cross_attention", h, memory, keys))
        return self.add(f"{at}/feed_forward", x, lambda h: self.feed_forward(
            f"{at}/feed_forward", group["feed_forward"]["activation"], h))

    def mixer(self, kind: str, at: str, settings: dict, x: Tensor, keys: Tensor | None, bias: Tensor | int) -> Tensor:
        """Without `keys`, those of the source, it is causal."""
        if kind in ("attention", "local_attention", "big_bird"):
            return getattr(self, kind)(at, settings, x, keys, bias)
        return getattr(self, kind)(at, settings, x, keys)

    def cross_attention(self, at: str, x: Tensor, memory: Tensor, keys: Tensor) -> Tensor:
        heads = self.config["cross_attention"]["heads"]
        scores = self.dot_product(at, heads, x, memory)
        return self.mix(at, scores, keys[:, None, None, :], memory, heads)

    def affine(self, name: str, x: Tensor) -> Tensor:
        """x W, and + b where there is one."""
        return x @ self.tensors[name] + self.tensors.get(f"{name}_bias", 0)

    def feed_forward(self, at: str, activation: str, x: Tensor) -> Tensor:
        hidden = self.affine(f"{at}/input", x)
        if activation == "RELU":
            hidden = torch.relu(hidden)
        else:
            hidden = torch.nn.functional.gelu(hidden, approximate="tanh")
        if activation == "GATED_GELU":
            hidden = hidden * self.affine(f"{at}/gate", x)
        return self.affine(f"{at}/output", hidden)

    def heads(self, x: Tensor, heads: int) -> Tensor:
        """[B, T, H * K] to [B, H, T, K]."""
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def dot_product(self, at: str, heads: int, queries: Tensor, keys: Tensor) -> Tensor:
        q = self.heads(queries @ self.tensors[f"{at}/query"], heads)
        return q @ self.shared(keys @ self.tensors[f"{at}/key"], heads, q.shape[-1]).mT

    def shared(self, x: Tensor, heads: int, size: int) -> Tensor:
        """Keys or values, as wide as `size`, for all heads; neighbours may share one. [B, H, T, size]."""
        own = self.heads(x, x.shape[-1] // size)
        return own.repeat_interleave(heads // own.shape[1], dim=1)

    def mix(self, at: str, scores: Tensor, visible: Tensor, x: Tensor, heads: int) -> Tensor:
        weights, output = scores.masked_fill(~visible, -1e9).softmax(-1), self.tensors[f"{at}/output"]
        mixed = weights @ self.shared(x @ self.tensors[f"{at}/value"], heads, output.shape[0] // heads)
        return mixed.transpose(1, 2).flatten(-2) @ output

    def attention(self, at: str, settings: dict, x: Tensor, keys: Tensor | None, bias: Tensor | int) -> Tensor:
        scores = self.mixer_scores(at, settings, x) + bias
        return self.mix(at, scores, self.visible(x, keys), x, settings["heads"])

    @staticmethod
    def visible(x: Tensor, keys: Tensor | None) -> Tensor:
        """Which keys a query may see: those of the source or, without them, its own and earlier positions."""
        if keys is None:
            return torch.ones(x.shape[1], x.shape[1]).tril().bool()
        return keys[:, None, None, :]

    def light_conv(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        return self.convolution(at, settings, x, keys, dynamic=False)

    def dynamic_conv(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        return self.convolution(at, settings, x, keys, dynamic=True)

    def convolution(self, at: str, settings: dict, x: Tensor, keys: Tensor | None, *, dynamic: bool) -> Tensor:
        """Dynamic filters depend on the position; without `keys` causal."""
        width, taps, mesh = x.shape[-1], settings["kernel_size"], settings["form"] == "MESH"
        h = self.affine(f"{at}/input", x)
        if settings["glu"]:
            h = h[..., :width] * torch.sigmoid(h[..., width:])
        filters = self.tensors[f"{at}/filters"]
        if dynamic:
            filters = h @ filters + (self.tensors[f"{at}/filters_bias"] if mesh else 0)
            filters = filters.unflatten(-1, (-1, taps))
        weights = filters.softmax(-1).repeat_interleave(width // filters.shape[-2], dim=-2)
        left = taps - 1 if keys is None else (taps - 1) // 2
        if keys is not None:
            h = h * keys[..., None]
        windows = torch.nn.functional.pad(h, (0, 0, left, taps - 1 - left)).unfold(1, taps, 1)  # [B, T, D, taps]
        h = (windows * weights).sum(-1)
        if mesh:
            h = self.affine(f"{at}/pointwise", h + self.tensors[f"{at}/filter_bias"])
        return self.affine(f"{at}/output", h)

    def fourier(self, at: str, settings: dict, x: Tensor, keys: Tensor) -> Tensor:
        """Rows count as max_length long, zeros at their ends."""
        period, (_, length, width) = settings["max_length"], x.shape
        waves = torch.fft.fft(torch.fft.fft(x * keys[..., None]), n=period, dim=1).real[:, :length]
        return waves / (period * width) ** 0.5 if settings["orthonormal"] else waves

    def linformer(self, at: str, settings: dict, x: Tensor, keys: Tensor) -> Tensor:
        heads, length = settings["heads"], x.shape[1]

        def projected(name: str, values: str) -> Tensor:
            rows = self.heads((x * keys[..., None]) @ self.tensors[f"{at}/{values}"], heads)
            return self.tensors[f"{at}/{name}"][..., :length] @ rows

        q = self.heads(x @ self.tensors[f"{at}/query"], heads)
        weights = (q @ projected("project_key", "key").mT).softmax(-1)
        mixed = weights @ projected("project_key" if settings["share_values"] else "project_value", "value")
        return mixed.transpose(1, 2).flatten(-2) @ self.tensors[f"{at}/output"]

    def mlp(self, at: str, settings: dict, x: Tensor, keys: Tensor) -> Tensor:
        length, own = x.shape[1], {name: self.tensors[f"{at}/{name}"] for name in (
            "input", "input_bias", "output", "output_bias")}
        hidden = own["input"][:, :length] @ (x * keys[..., None]) + own["input_bias"]
        units = torch.nn.functional.gelu(hidden, approximate="tanh")
        return own["output"][:length] @ units + own["output_bias"][:length]

    def gated_mlp(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        """Without `keys` causal."""
        length, own = x.shape[1], {name: self.tensors[f"{at}/{name}"] for name in (
            "gate_norm", "gate_norm_bias", "map", "map_bias")}
        gated, gate = torch.nn.functional.gelu(self.affine(f"{at}/input", x)).chunk(2, -1)
        gate = torch.nn.functional.layer_norm(gate, gate.shape[-1:], own["gate_norm"], own["gate_norm_bias"])
        matrix = own["map"][:, :length, :length]
        matrix, gate = (matrix.tril(), gate) if keys is None else (matrix, gate * keys[..., None])
        mixed = matrix @ self.heads(gate, settings["heads"]) + own["map_bias"][:length].transpose(0, 1)
        mixed = mixed.transpose(1, 2).flatten(-2)
        if settings["attention_size"]:
            mixed = mixed + self.tiny_attention(f"{at}/attention", settings["attention_size"], x, keys)
        return self.affine(f"{at}/output", gated * mixed)

    def tiny_attention(self, at: str, size: int, x: Tensor, keys: Tensor | None) -> Tensor:
        visible = self.visible(x, keys)
        return self.mix(at, self.dot_product(at, 1, x, x) * size**-0.5, visible, x, 1)

    def linear_attention(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        """Without `keys`, as all that follow, causal."""
        def features(side: str) -> Tensor:
            return torch.nn.functional.elu(self.heads(x @ self.tensors[f"{at}/{side}"], settings["heads"])) + 1

        return self.weighted(at, settings, features("query"), features("key"), x, keys)

    def performer(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        def features(side: str) -> Tensor:
            rows = self.heads(x @ self.tensors[f"{at}/{side}"], settings["heads"]) / settings["head_size"] ** 0.25
            products = rows @ self.tensors[f"{at}/features"]
            if settings["kernel"] == "RELU":
                return torch.relu(products) + 1e-3
            exponents = products - rows.square().sum(-1, keepdim=True) / 2
            if side == "query":
                exponents = exponents - products.amax(-1, keepdim=True)
            elif keys is not None:
                padding = ~keys[:, None, :, None]
                exponents = exponents - products.masked_fill(padding, -math.inf).amax((-1, -2), keepdim=True)
            return exponents.exp() + 1e-4

        return self.weighted(at, settings, features("query"), features("key"), x, keys)

    def weighted(self, at: str, settings: dict, query: Tensor, key: Tensor, x: Tensor, keys: Tensor | None) -> Tensor:
        """The weights of values are products of features, over their sum."""
        weights = query @ key.mT * self.visible(x, keys)
        mixed = weights @ self.heads(x @ self.tensors[f"{at}/value"], settings["heads"])
        mixed = mixed / (weights.sum(-1, keepdim=True) + 1e-6)
        return mixed.transpose(1, 2).flatten(-2) @ self.tensors[f"{at}/output"]

    def retention(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        heads, half, places = settings["heads"], settings["head_size"] // 2, torch.arange(x.shape[1])
        angles = places[:, None] * 10000.0 ** -torch.linspace(0, 1, half, dtype=torch.float64)
        turn = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)

        def rotated(side: str) -> Tensor:
            real, imaginary = self.heads(x @ self.tensors[f"{at}/{side}"], heads).split(half, -1)
            turned = torch.complex(real, imaginary) * turn
            return torch.cat([turned.real, turned.imag], -1)

        distances = (places[:, None] - places[None, :]).abs()
        decay = (1 - 2.0 ** (-5 - torch.arange(heads)))[:, None, None] ** distances
        weights = rotated("query") @ rotated("key").mT * decay * self.visible(x, keys)
        mixed = weights @ self.heads(x @ self.tensors[f"{at}/value"], heads)
        mixed = torch.nn.functional.layer_norm(mixed, mixed.shape[-1:], eps=1e-6).transpose(1, 2).flatten(-2)
        gate = torch.nn.functional.silu(x @ self.tensors[f"{at}/gate"])
        return (gate * mixed) @ self.tensors[f"{at}/output"]

    def attention_free(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        length, places = x.shape[1], torch.arange(x.shape[1])
        biases = torch.zeros(length, length)
        if settings["window"] and settings["rank"]:
            biases = self.tensors[f"{at}/query_biases"][:length] @ self.tensors[f"{at}/key_biases"][:length].T
        elif settings["window"]:
            biases = self.tensors[f"{at}/biases"][:length, :length]
        biases = biases * ((places[:, None] - places[None, :]).abs() < settings["window"])
        visible = self.visible(x, keys)
        visible = visible.expand(len(x), 1, length, length)[:, 0]
        key, value, query = (x @ self.tensors[f"{at}/{side}"] for side in ("key", "value", "query"))
        scores = (key[:, None] + biases[..., None]).masked_fill(~visible[..., None], -1e9)  # of query, key, column
        mixed = (scores.softmax(2) * value[:, None]).sum(2)
        return (torch.sigmoid(query) * mixed) @ self.tensors[f"{at}/output"]

    def hyena(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        order, taps, (length, width) = settings["order"], settings["kernel_size"], x.shape[1:]
        left = taps - 1 if keys is None else (taps - 1) // 2
        real = 1 if keys is None else keys[..., None]
        padded = torch.nn.functional.pad(self.affine(f"{at}/input", x) * real, (0, 0, left, taps - 1 - left))
        local = (padded.unfold(1, taps, 1) * self.tensors[f"{at}/short_filters"]).sum(-1)
        parts = (local + self.tensors[f"{at}/short_filters_bias"]).split(width, -1)
        back = self.filters(f"{at}/filters_back", settings, length, width)
        lag = torch.arange(length)[:, None] - torch.arange(length)[None, :]  # query - key
        mixed = parts[order]
        for index in range(order - 1):
            mixed = mixed * parts[order - 1 - index]
            matrix = back[lag.clamp(min=0), index] * (lag >= 0)[..., None]
            if keys is not None:
                ahead = self.filters(f"{at}/filters_ahead", settings, length, width)
                matrix = matrix + ahead[(-lag).clamp(min=0), index] * (lag < 0)[..., None]
            mixed = torch.einsum("tsd,bsd->btd", matrix, mixed * real) + mixed * self.tensors[f"{at}/skip_{index}"]
        return self.affine(f"{at}/output", mixed * parts[0])

    def filters(self, at: str, settings: dict, length: int, width: int) -> Tensor:
        """Of Hyena's long convolutions by distance, [T, order - 1, D]."""
        distance = torch.arange(length)[:, None] / settings["max_length"]
        angles = 2 * math.pi * distance * torch.arange(settings["bands"])
        units = torch.cat([distance, angles.cos(), -angles.sin()], -1)
        for layer in ("first", "second", "third"):
            units = torch.sin(self.affine(f"{at}/{layer}", units) * self.tensors[f"{at}/frequencies"])
        decay = 0.01 ** (distance * torch.linspace(1 / 1.5, 1 / 0.3, width))
        return (units @ self.tensors[f"{at}/last"]).unflatten(-1, (-1, width)) * decay[:, None, :]

    def local_attention(self, at: str, settings: dict, x: Tensor, keys: Tensor | None, bias: Tensor | int) -> Tensor:
        i, j = torch.arange(x.shape[1])[:, None], torch.arange(x.shape[1])
        near = ((j - i).abs() < settings["radius"] * settings["dilation"]) & ((j - i) % settings["dilation"] == 0)
        heads, count, visible = settings["heads"], settings["global_tokens"], self.visible(x, keys)
        reads = visible & (near | (torch.minimum(i, j) < count))
        mixed = self.mix(at, self.dot_product(at, heads, x, x) + bias, reads, x, heads)
        if settings["global_projections"]:
            self.tensors.setdefault(f"{at}/global/output", self.tensors[f"{at}/output"])
            scores = self.dot_product(f"{at}/global", heads, x, x) + bias
            mixed = torch.cat([self.mix(f"{at}/global", scores, visible, x, heads)[:, :count], mixed[:, count:]], 1)
        return mixed

    def big_bird(self, at: str, settings: dict, x: Tensor, keys: Tensor, bias: Tensor | int) -> Tensor:
        size, heads = settings["block_size"], settings["heads"]
        last = (settings["max_length"] - 1) // size
        reads = torch.zeros(heads, last + 1, last + 1, dtype=torch.bool)
        for head in range(heads):
            key = random_key(at, head)
            for block in range(last + 1):
                near = {each for each in (0, last, block - 1, block, block + 1) if 0 <= each <= last}
                others = sorted(set(range(last + 1)) - near, key=lambda each: random_words(key, each, block)[0])
                reads[head, block, list(near) + others[:settings["random_blocks"]]] = True
        reads[:, [0, last]] = True
        pairs = reads.repeat_interleave(size, 1).repeat_interleave(size, 2)[:, :x.shape[1], :x.shape[1]]
        return self.mix(at, self.dot_product(at, heads, x, x) + bias, self.visible(x, keys) & pairs, x, heads)

    def sinkhorn(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        """A row after the other, each as its blocks of what is not padding; without `keys` causal."""
        size, heads = settings["block_size"], settings["heads"]

        def of_row(x: Tensor) -> Tensor:
            blocks = torch.nn.functional.pad(x, (0, 0, 0, -len(x) % size)).unflatten(0, (-1, size))
            sums, before = blocks.sum(1), torch.ones(len(blocks), len(blocks))
            if keys is None:
                sums, before = sums.cumsum(0) - sums, before.tril(-1)
            logits = (sums @ self.tensors[f"{at}/sorting"]).unflatten(-1, (heads, -1)).transpose(0, 1)
            logits = logits[..., :len(blocks)] / settings["temperature"]
            sorting = logits.masked_fill(before == 0, -1e9).softmax(-1) + 1e-12
            sorting, nothing = sorting * before, 1 - before
            for _ in range(settings["iterations"]):
                columns = sorting.cumsum(-2) if keys is None else sorting.sum(-2, keepdim=True)
                sorting = sorting / (columns + nothing)
                sorting = sorting / (sorting.sum(-1, keepdim=True) + nothing)

            def both(side: str) -> Tensor:
                own = self.heads(blocks @ self.tensors[f"{at}/{side}"], heads)  # [N, H, b, K]
                return torch.cat([own, torch.einsum("hij,jhck->ihck", sorting, own)], 2)

            there = (torch.arange(len(blocks) * size) < len(x)).unflatten(0, (-1, size))
            there = torch.cat([there, there[:1].expand_as(there)], -1)[:, None, None, :]
            if keys is None:
                own = torch.ones(size, size).tril().bool().expand(len(blocks), 1, -1, -1)
                other = before.any(-1)[:, None, None, None].expand_as(own)
                there = there & torch.cat([own, other], -1)
            query = self.heads(blocks @ self.tensors[f"{at}/query"], heads)
            mixed = (query @ both("key").mT).masked_fill(~there, -1e9).softmax(-1) @ both("value")
            return mixed.transpose(1, 2).reshape(-1, heads * settings["head_size"])[:len(x)]

        lengths = [x.shape[1]] * len(x) if keys is None else keys.sum(-1).tolist()
        rows = [of_row(row[:length]) for row, length in zip(x, lengths, strict=True)]
        return torch.stack([torch.nn.functional.pad(row, (0, 0, 0, x.shape[1] - len(row))) for row in rows]
                           ) @ self.tensors[f"{at}/output"]

    def reformer(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        heads, rounds, length = settings["heads"], settings["rounds"], x.shape[1]
        query, value = (self.heads(x @ self.tensors[f"{at}/{side}"], heads) for side in ("query", "value"))
        unit = query / (query.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        scores = query @ unit.mT - 1e5 * torch.eye(length)
        outcomes, sums = [], []
        for rotation in self.tensors[f"{at}/rotation"].chunk(rounds, -1):
            rotated = query @ rotation
            bucket = torch.cat([rotated, -rotated], -1).argmax(-1)  # [B, H, T]
            same = bucket[..., :, None] == bucket[..., None, :]
            if keys is None:  # of its bucket, as many before it as a chunk has
                place, farthest = same.tril().sum(-1), settings["chunk_length"]
            else:
                order = torch.where(keys[:, None], -bucket, 1).argsort(dim=-1, stable=True)
                place, farthest = order.argsort(-1) // settings["chunk_length"], 1
            behind = place[..., :, None] - place[..., None, :]
            reads = same & (behind >= 0) & (behind <= farthest)
            own = scores.masked_fill(~(reads & self.visible(x, keys)), -1e9)
            outcomes.append(own.softmax(-1) @ value)
            sums.append(own.logsumexp(-1, keepdim=True))
        mixed = (torch.stack(sums).softmax(0) * torch.stack(outcomes)).sum(0)
        return mixed.transpose(1, 2).flatten(-2) @ self.tensors[f"{at}/output"]

    def mixer_scores(self, at: str, attention: dict, x: Tensor) -> Tensor:
        """The sum of the terms, weighed by the gate: [B or 1, H or 1, T, T]."""
        terms = attention["term"]
        weights = torch.ones(len(terms))
        if attention["gate"] == "SIGMOID":
            a = torch.sigmoid(self.tensors[f"{at}/gate"][0])
            weights = torch.stack([1 - a, a])
        elif attention["gate"] == "SOFTMAX":
            weights = self.tensors[f"{at}/gate"].softmax(-1)
        has_query = any("dot_product" in term for term in terms)
        scores: Tensor | int = 0
        for weight, term in zip(weights, terms, strict=True):
            (kind, settings), = ((key, value) for key, value in term.items() if key != "name")
            own = f"{at}/{term['name'] or kind}"  # where the term's parameters are
            scores = scores + weight * getattr(self, kind + "_term")(at, own, settings, attention, x, has_query)
        return scores

    def dot_product_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                         has_query: bool) -> Tensor:
        return self.dot_product(at if own.endswith("/dot_product") else own, attention["heads"], x, x)

    def random_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                    has_query: bool) -> Tensor:
        length = x.shape[1]
        return self.tensors[f"{own}/table"][None, :, :length, :length]

    def factorized_random_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                               has_query: bool) -> Tensor:
        query, key = (self.tensors[f"{own}/{side}"][:, :x.shape[1]] for side in ("query", "key"))
        if settings["broadcast_over_queries"]:
            return (query * key).sum(-1)[None, :, None, :]
        return (query @ key.mT)[None]

    def dense_hidden(self, at: str, own: str, settings: dict, attention: dict, x: Tensor, has_query: bool) -> Tensor:
        """relu(x W1 + b1), [B, H, T, F]."""
        size = settings["hidden"] or attention["head_size"]
        shared = settings["share_query"] and has_query and size == attention["head_size"]
        units = x @ self.tensors[f"{at}/query" if shared else f"{own}/hidden"]
        if settings["bias"]:
            units = units + self.tensors[f"{own}/hidden_bias"]
        return self.heads(torch.relu(units), attention["heads"])

    def dense_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                   has_query: bool) -> Tensor:
        hidden = self.dense_hidden(at, own, settings, attention, x, has_query)
        scores = hidden @ self.tensors[f"{own}/positions"][..., :x.shape[1]]
        if settings["bias"]:
            scores = scores + self.tensors[f"{own}/positions_bias"][..., :x.shape[1]]
        return scores

    def factorized_dense_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                              has_query: bool) -> Tensor:
        hidden = self.dense_hidden(at, own, settings, attention, x, has_query)

        def factor(name: str) -> Tensor:
            values = hidden @ self.tensors[f"{own}/{name}"]
            if settings["bias"]:
                shift = self.tensors[f"{own}/{name}_bias"]
                values = values + shift.unflatten(-1, (attention["heads"], 1, -1))
            return values

        keys = torch.arange(x.shape[1])
        return factor("a")[..., keys % settings["a"]] * factor("b")[..., keys // settings["a"]]

    def relative_bias_term(self, at: str, own: str, settings: dict, attention: dict, x: Tensor,
                           has_query: bool) -> Tensor:
        return self.relative_bias(at.split("/")[0], self.tensors[f"{own}/table"], settings, x.shape[1])

    def relative_bias(self, stack: str, table: Tensor, config: dict, length: int) -> Tensor:
        """T5's buckets: half of the distances one by one, the rest in logarithmic steps. [H, T, T]."""
        causal = stack == "decoder" and not self.config.get("bidirectional_prefix")
        distance = torch.arange(length)[None, :] - torch.arange(length)[:, None]  # key - query
        count, offset = config["buckets"], torch.zeros_like(distance)
        if causal:
            distance = (-distance).clamp(min=0)
        else:
            count //= 2
            offset = (distance > 0) * count
            distance = distance.abs()
        exact = count // 2
        steps = torch.log(distance.clamp(min=1) / exact) / math.log(config["max_distance"] / exact)
        far = (exact + (steps * (count - exact)).long()).clamp(max=count - 1)
        buckets = torch.where(distance < exact, distance, far) + offset
        return table[:, buckets]


def main() -> None:
    """INPUT OUTPUT: JSON files with lists, of models and ids, and of their logits."""
    answers = []
    for asked in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        with torch.no_grad():
            logits = SyntraModel(asked["model"])(torch.tensor(asked["encoder_ids"]),
                                                 torch.tensor(asked["decoder_ids"]))
        answers.append({"logits": logits.tolist()})
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
