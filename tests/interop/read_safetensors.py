# SPDX-License-Identifier: Apache-2.0
"""Reads what `syntra convert --to safetensors` writes and runs it with torch: any mixer, in some hundred lines.

    model = SyntraModel("exported")
    logits = model(encoder_ids, decoder_ids)    # [B, S] and [B, T], 0 is padding; [B, T, V]

Rows hold one example each; nothing is packed and nothing dropped. Needs torch and safetensors.
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
        hidden = self.stack("encoder", self.embed(encoder_ids), encoder_ids != 0)
        hidden = self.stack("decoder", self.embed(decoder_ids), encoder_ids != 0, hidden)
        if self.config["tied_embeddings"]:
            scale = 1 if self.config["scaled_embeddings"] else self.config["width"] ** -0.5
            return hidden @ self.tensors["embedding"].T * scale
        return hidden @ self.tensors["output_embedding"].T

    def embed(self, ids: Tensor) -> Tensor:
        rows, length = self.tensors["embedding"][ids], ids.shape[1]
        if self.config["scaled_embeddings"]:
            rows = rows * self.config["width"] ** 0.5
        if "positions" not in self.config:
            return rows
        (kind, settings), = self.config["positions"].items()
        if kind == "learned":
            return rows + self.tensors["position_embedding"][:length]
        return rows + self.sinusoids(settings["layout"], length)

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
        decoder = memory is not None
        (kind, settings), = self.config["decoder_mixer" if decoder else "mixer"].items()
        bias = self.relative_bias(name, x.shape[1], decoder) if settings.get("relative_bias") else 0
        for layer in range(self.config[f"{name}_layers"]):
            at = f"{name}/layer_{layer:02}"
            x = self.add(f"{at}/mixer", x, lambda h, at=at: self.mixer(
                kind, f"{at}/mixer", settings, h, None if decoder else keys, bias))
            if decoder:
                x = self.add(f"{at}/cross_attention", x, lambda h, at=at: self.cross_attention(
                    f"{at}/cross_attention", h, memory, keys))
            x = self.add(f"{at}/feed_forward", x, lambda h, at=at: self.feed_forward(f"{at}/feed_forward", h))
        return x if self.config["norm_placement"] == "AFTER" else self.norm(name, x)

    def mixer(self, kind: str, at: str, settings: dict, x: Tensor, keys: Tensor | None, bias: Tensor | int) -> Tensor:
        """Without `keys`, those of the source, it is causal."""
        if kind == "attention":
            return self.attention(at, settings, x, keys, bias)
        return self.convolution(at, settings, x, keys)

    def cross_attention(self, at: str, x: Tensor, memory: Tensor, keys: Tensor) -> Tensor:
        heads = self.config["cross_attention"]["heads"]
        scores = self.dot_product(at, heads, x, memory)
        return self.mix(at, scores, keys[:, None, None, :], memory, heads)

    def affine(self, name: str, x: Tensor) -> Tensor:
        """x W, and + b where there is one."""
        return x @ self.tensors[name] + self.tensors.get(f"{name}_bias", 0)

    def feed_forward(self, at: str, x: Tensor) -> Tensor:
        hidden, activation = self.affine(f"{at}/input", x), self.config["feed_forward"]["activation"]
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
        return q @ self.heads(keys @ self.tensors[f"{at}/key"], heads).mT

    def mix(self, at: str, scores: Tensor, visible: Tensor, x: Tensor, heads: int) -> Tensor:
        weights = scores.masked_fill(~visible, -1e9).softmax(-1)
        mixed = weights @ self.heads(x @ self.tensors[f"{at}/value"], heads)
        return mixed.transpose(1, 2).flatten(-2) @ self.tensors[f"{at}/output"]

    def attention(self, at: str, settings: dict, x: Tensor, keys: Tensor | None, bias: Tensor | int) -> Tensor:
        length = x.shape[1]
        visible = torch.ones(length, length).tril().bool() if keys is None else keys[:, None, None, :]
        return self.mix(at, self.mixer_scores(at, settings, x) + bias, visible, x, settings["heads"])

    def convolution(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        """Lightweight or, where the filters depend on the position, dynamic; without `keys` causal."""
        width, taps, mesh = x.shape[-1], settings["kernel_size"], settings["form"] == "MESH"
        h = self.affine(f"{at}/input", x)
        if settings["glu"]:
            h = h[..., :width] * torch.sigmoid(h[..., width:])
        filters = self.tensors[f"{at}/filters"]
        if filters.shape[-1] != taps:
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

    def relative_bias(self, stack: str, length: int, causal: bool) -> Tensor:
        """T5's buckets: half of the distances one by one, the rest in logarithmic steps. [H, T, T]."""
        config = self.config["relative_bias"]
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
        return self.tensors[f"{stack}/relative_bias"][:, buckets]


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
