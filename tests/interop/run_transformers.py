# SPDX-License-Identifier: Apache-2.0
"""DIRECTORY INPUT OUTPUT: what transformers makes of an exported T5.

INPUT is a JSON file with texts and decoder_ids; to OUTPUT go the texts' ids, the logits, and the greedy
continuation as ids and text.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoTokenizer, T5ForConditionalGeneration

asked = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
model, report = T5ForConditionalGeneration.from_pretrained(sys.argv[1], output_loading_info=True)
model = model.float().eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
inputs = tokenizer(asked["texts"], padding=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**inputs, decoder_input_ids=torch.tensor(asked["decoder_ids"])).logits
    generated = model.generate(**inputs, max_new_tokens=asked["new_tokens"], do_sample=False, num_beams=1)
Path(sys.argv[3]).write_text(json.dumps({
    "version": transformers.__version__,
    "missing": sorted(report["missing_keys"]), "unexpected": sorted(report["unexpected_keys"]),
    "tokenizer": type(tokenizer).__name__,
    "encoder_ids": inputs.input_ids.tolist(), "encoder_segments": inputs.attention_mask.tolist(),
    "logits": logits.tolist(),
    "greedy_ids": [row[1:] for row in generated.tolist()],
    "greedy_text": tokenizer.batch_decode(generated, skip_special_tokens=True),
}), encoding="utf-8")
