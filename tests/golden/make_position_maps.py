# SPDX-License-Identifier: Apache-2.0
"""Mixers that map positions by matrices, straight from the formulas of their papers.

FNet (Lee-Thorp et al. 2021) by torch's FFT; Linformer (Wang et al. 2020) head by head; the token-mixing network of
MLP-Mixer (Tolstikhin et al. 2021) by torch's linear layers; gMLP and aMLP (Liu et al. 2021) position by position.
A layer knows max_length positions, more than its rows have. Positions behind a sequence are zeros. All are held to
packages: transformers, linformer, mlp-mixer-pytorch, g-mlp-pytorch.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional

import packages
from fixture import output_directory
from mixer_fixture import KEYS, LENGTHS, MAX_LENGTH, WIDTH, Example, ExampleCase, Shapes, Tensors, write_examples
from philox import keeps


def case(name: str, settings: str, shapes: Shapes, example: Example, package: Example | None,
         causal: bool = False, trains: bool = False) -> ExampleCase:
    kind, _, fields = settings.partition(" ")
    return ExampleCase(name, f"{kind} {{ max_length: {MAX_LENGTH} {fields} }}", shapes, example, package, causal,
                       trains=trains)


# --- FNet, equation 3 ---------------------------------------------------------------------------


def fourier(name: str, settings: str, factor: float) -> ExampleCase:
    def example(_: Tensors, x: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(x, (0, 0, 0, MAX_LENGTH - len(x)))
        return factor * torch.fft.fft2(padded).real[:len(x)]

    return case(name, f"fourier {settings}", {}, example, lambda _, x: factor * packages.fourier(x, MAX_LENGTH))


# --- Linformer, equation 7 ----------------------------------------------------------------------


def linformer(name: str, own_heads: bool, share_values: bool, dropout: float = 0) -> ExampleCase:
    """With dropout, all queries of a head drop the same rows of the projected values."""
    heads, size, rows = 3, 4, 5
    inner = heads * size
    projection = (heads, rows, MAX_LENGTH) if own_heads else (rows, MAX_LENGTH)
    shapes: Shapes = {"query": (WIDTH, inner), "key": (WIDTH, inner), "value": (WIDTH, inner),
                      "project_key": projection, "output": (inner, WIDTH)}
    if not share_values:
        shapes["project_value"] = projection

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        mixed = []
        key_of_row = KEYS[LENGTHS.index(len(x))]
        for head in range(heads):
            def map_of(side: str, head: int = head) -> torch.Tensor:
                matrix = values[f"project_{side}"]
                return (matrix[head] if own_heads else matrix)[:, :len(x)]

            columns = slice(head * size, (head + 1) * size)
            query, key, value = (x @ values[side][:, columns] for side in ("query", "key", "value"))
            value = map_of("key" if share_values else "value") @ value
            weights = (query @ (map_of("key") @ key).T).softmax(-1)
            kept = [keeps(key_of_row, row * heads + head, 0, dropout) for row in range(rows)]
            mixed.append(weights * torch.tensor(kept) / (1 - dropout) @ value)
        return torch.cat(mixed, -1) @ values["output"]

    settings = f"heads: {heads} head_size: {size} projected_length: {rows}"
    settings += f" share_heads: {str(not own_heads).lower()} share_values: {str(share_values).lower()}"
    if dropout > 0:
        return case(name, f"linformer {settings} dropout: {dropout}", shapes, example, None, trains=True)
    return case(name, f"linformer {settings}", shapes, example, lambda values, x: packages.linformer(values, x, heads))


# --- MLP-Mixer, equation 1 ----------------------------------------------------------------------


def mlp(name: str) -> ExampleCase:
    hidden = 6
    shapes: Shapes = {"input": (hidden, MAX_LENGTH), "input_bias": (hidden, 1),
                      "output": (MAX_LENGTH, hidden), "output_bias": (MAX_LENGTH, 1)}

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        columns = functional.pad(x, (0, 0, 0, MAX_LENGTH - len(x))).T
        units = functional.linear(columns, values["input"], values["input_bias"][:, 0])
        units = functional.gelu(units, approximate="tanh")
        return functional.linear(units, values["output"], values["output_bias"][:, 0]).T[:len(x)]

    return case(name, f"mlp width: {hidden}", shapes, example, packages.token_mlp)


# --- gMLP and aMLP, sections 2 and 4.4 ----------------------------------------------------------


def gated_mlp(name: str, heads: int = 1, attention: int = 0, causal: bool = False) -> ExampleCase:
    width = 12
    half = width // 2
    shapes: Shapes = {"input": (WIDTH, width), "input_bias": (width,), "gate_norm": (half,), "gate_norm_bias": (half,),
                      "map": (heads, MAX_LENGTH, MAX_LENGTH), "map_bias": (MAX_LENGTH, heads, 1),
                      "output": (half, WIDTH), "output_bias": (WIDTH,)}
    if attention:
        shapes |= {f"attention/{side}": (WIDTH, attention) for side in ("query", "key", "value")}
        shapes["attention/output"] = (attention, half)

    def gate(values: Tensors, gates: torch.Tensor) -> torch.Tensor:
        """Each position's sum over the gates of all positions, or of those up to it."""
        rows = []
        for i in range(len(gates)):
            seen = i + 1 if causal else len(gates)
            columns = [values["map"][head, i, :seen] @ part[:seen] + values["map_bias"][i, head, 0]
                       for head, part in enumerate(gates.chunk(heads, -1))]
            rows.append(torch.cat(columns))
        return torch.stack(rows)

    def example(values: Tensors, x: torch.Tensor) -> torch.Tensor:
        u, v = functional.gelu(x @ values["input"] + values["input_bias"]).chunk(2, -1)
        v = gate(values, functional.layer_norm(v, (half,), values["gate_norm"], values["gate_norm_bias"]))
        if attention:
            query, key, value = (x @ values[f"attention/{side}"] for side in ("query", "key", "value"))
            mixed = functional.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=causal)[0]
            v = v + mixed @ values["attention/output"]
        return (u * v) @ values["output"] + values["output_bias"]

    settings = f"gated_mlp width: {width} heads: {heads} attention_size: {attention}"
    return case(name, settings, shapes, example,
                lambda values, x: packages.gated_mlp(values, x, heads, attention, causal), causal)


CASES = (
    fourier("fourier", "", 1.0),
    fourier("fourier_orthonormal", "orthonormal: true", (MAX_LENGTH * WIDTH) ** -0.5),
    linformer("linformer", own_heads=False, share_values=False),
    linformer("linformer_own_heads", own_heads=True, share_values=False),
    linformer("linformer_one_map", own_heads=False, share_values=True),
    linformer("linformer_dropout", own_heads=True, share_values=False, dropout=0.25),
    mlp("mlp"),
    gated_mlp("gated_mlp"),
    gated_mlp("gated_mlp_heads", heads=3),
    gated_mlp("gated_mlp_causal", causal=True),
    gated_mlp("gated_mlp_attention", attention=4),
    gated_mlp("gated_mlp_attention_causal", heads=2, attention=4, causal=True),
)


def main() -> None:
    directory = output_directory("Writes the fixture of mixers that map positions by matrices.")
    write_examples(directory / "position_maps.h5", Path(__file__).name, CASES, packages.POSITION_MAPS)


if __name__ == "__main__":
    main()
