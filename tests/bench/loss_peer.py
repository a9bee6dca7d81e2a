# SPDX-License-Identifier: Apache-2.0
"""Repeats a Syntra training in plain PyTorch and prints its losses, one line of JSON.

Starts from the run's checkpoint of step 0, as safetensors, and uses the examples that `syntra inspect data --json`
prints, in order. It uses AdamW with a constant rate of 1e-4 and the mean loss of the target tokens.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from peer import print_line
from plain_t5 import SIZES, Batch, EncoderDecoder, Trainer


def stored_name(name: str) -> str:
    """What Syntra calls a parameter: "decoder/layer_00/cross_attention/query"."""
    name = name.removesuffix(".weight").removesuffix(".scale")
    name = re.sub(r"\.layers\.(\d+)\.", lambda match: f".layer_{int(match[1]):02}.", name)
    name = re.sub(r"_norm$", ".norm", name)
    return name.replace(".cross.", ".cross_attention.").replace(".", "/")


def read_safetensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, f32. Read by hand, so that no package is needed that PyTorch does not bring along."""
    tensors = {}
    for path in folder.glob("*.safetensors"):
        contents = torch.from_file(str(path), size=path.stat().st_size, dtype=torch.uint8)
        begin = 8 + int.from_bytes(bytes(contents[:8].tolist()), "little")
        header = json.loads(bytes(contents[8:begin].tolist()))
        for name, fields in header.items():
            if name == "__metadata__":
                continue
            if fields["dtype"] != "F32":
                raise ValueError(f"{path}: {name} is {fields['dtype']}, not F32")
            first, last = fields["data_offsets"]
            # The copy is aligned.
            values = contents[begin + first : begin + last].clone().view(torch.float32)
            tensors[name] = values.view(fields["shape"])
    return tensors


def load(model: nn.Module, exported: Path) -> None:
    """Fills all parameters; Syntra's weights are [in, out], PyTorch's [out, in]."""
    tensors = read_safetensors(exported)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            stored = stored_name(name)
            values = tensors[stored]
            turned = values.dim() == 2 and stored != "embedding"
            parameter.copy_(values.T if turned else values)


def batches(examples: list[dict[str, Any]], size: int, device: str) -> list[Batch]:
    def tensor(rows: list[dict[str, Any]], field: str) -> Tensor:
        return torch.tensor([row[field] for row in rows], device=device)

    cut = [examples[at : at + size] for at in range(0, len(examples), size)]
    return [
        (tensor(rows, "encoder_ids"), tensor(rows, "decoder_ids"), tensor(rows, "targets"))
        for rows in cut
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--exported", type=Path, required=True, help="by syntra convert --to safetensors, step 0"
    )
    parser.add_argument("--examples", type=Path, required=True, help="from syntra inspect data")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="base")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args()
    examples = json.loads(options.examples.read_text(encoding="utf-8"))["examples"]
    sizes = dataclasses.replace(SIZES[options.sizes], batch=options.batch)
    model = EncoderDecoder(sizes, "plain", padded=True)
    load(model, options.exported)
    trainer = Trainer(model, options.precision, compiled=False, device=options.device)
    losses = [trainer.step(batch) for batch in batches(examples, options.batch, options.device)]
    print_line({"losses": [loss.item() for loss in losses]})


if __name__ == "__main__":
    main()
