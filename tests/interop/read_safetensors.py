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
        table = self.tensors["embedding"]
        hidden = self.stack("encoder", table[encoder_ids], encoder_ids != 0)
        hidden = self.stack("decoder", table[decoder_ids], encoder_ids != 0, hidden)
        if self.config["tied_embeddings"]:
            return hidden @ table.T * self.config["width"] ** -0.5
        return hidden @ self.tensors["output_embedding"].T

    def norm(self, name: str, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.config["norm_epsilon"])
        return x * scale * self.tensors[f"{name}/norm"]

    def stack(self, name: str, x: Tensor, keys: Tensor, memory: Tensor | None = None) -> Tensor:
        """`keys` [B, S]: which positions of the source are not padding."""
        decoder = memory is not None
        (kind, settings), = self.config["decoder_mixer" if decoder else "mixer"].items()
        bias = self.relative_bias(name, x.shape[1], decoder) if settings.get("relative_bias") else 0
        for layer in range(self.config[f"{name}_layers"]):
            at = f"{name}/layer_{layer:02}"
            h = self.norm(f"{at}/mixer", x)
            if kind == "attention":
                x = x + self.attention(f"{at}/mixer", settings, h, None if decoder else keys, bias)
            else:
                x = x + self.convolution(f"{at}/mixer", settings, h, None if decoder else keys)
            if decoder:
                cross = self.config["cross_attention"]
                h = self.norm(f"{at}/cross_attention", x)
                scores = self.dot_product(f"{at}/cross_attention", cross["heads"], h, memory)
                x = x + self.mix(f"{at}/cross_attention", scores, keys[:, None, None, :], memory, cross["heads"])
            x = x + self.feed_forward(f"{at}/feed_forward", self.norm(f"{at}/feed_forward", x))
        return self.norm(name, x)

    def feed_forward(self, at: str, x: Tensor) -> Tensor:
        hidden = x @ self.tensors[f"{at}/input"]
        if self.config["feed_forward"]["activation"] == "GATED_GELU":
            hidden = torch.nn.functional.gelu(hidden, approximate="tanh") * (x @ self.tensors[f"{at}/gate"])
        else:
            hidden = torch.relu(hidden)
        return hidden @ self.tensors[f"{at}/output"]

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
        """Without `keys`, those of the source, it is causal."""
        length = x.shape[1]
        visible = torch.ones(length, length).tril().bool() if keys is None else keys[:, None, None, :]
        return self.mix(at, self.mixer_scores(at, settings, x) + bias, visible, x, settings["heads"])

    def convolution(self, at: str, settings: dict, x: Tensor, keys: Tensor | None) -> Tensor:
        """Lightweight or, where the filters depend on the position, dynamic; without `keys` causal."""
        def affine(name: str, x: Tensor) -> Tensor:
            return x @ self.tensors[f"{at}/{name}"] + self.tensors[f"{at}/{name}_bias"]

        width, taps, mesh = x.shape[-1], settings["kernel_size"], settings["form"] == "MESH"
        h = affine("input", x)
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
            h = affine("pointwise", h + self.tensors[f"{at}/filter_bias"])
        return affine("output", h)

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
