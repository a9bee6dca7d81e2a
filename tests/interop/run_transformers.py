# SPDX-License-Identifier: Apache-2.0
"""INPUT OUTPUT: what transformers makes of exported T5s.

INPUT is a JSON file with a list of models, each with texts and decoder_ids; to OUTPUT go, for each, the texts' ids,
the logits, and the greedy continuations as ids and texts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoTokenizer, T5ForConditionalGeneration


def run(asked: dict) -> dict:
    model, report = T5ForConditionalGeneration.from_pretrained(asked["model"], output_loading_info=True)
    model = model.float().eval()
    tokenizer = AutoTokenizer.from_pretrained(asked["model"])
    inputs = tokenizer(asked["texts"], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=torch.tensor(asked["decoder_ids"])).logits
        generated = model.generate(**inputs, max_new_tokens=asked["new_tokens"], do_sample=False, num_beams=1)
    return {
        "version": transformers.__version__,
        "missing": sorted(report["missing_keys"]), "unexpected": sorted(report["unexpected_keys"]),
        "tokenizer": type(tokenizer).__name__,
        "encoder_ids": inputs.input_ids.tolist(), "encoder_segments": inputs.attention_mask.tolist(),
        "logits": logits.tolist(),
        "greedy_ids": [row[1:] for row in generated.tolist()],
        "greedy_text": tokenizer.batch_decode(generated, skip_special_tokens=True),
    }


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps([run(each) for each in asked]), encoding="utf-8")


if __name__ == "__main__":
    main()
