# SPDX-License-Identifier: Apache-2.0
"""Makes beams.json: beam search over the models of make_huggingface.py, by transformers and by T5's rule.

The searching is done by tests/interop/run_beams.py. The models hardly ever write </s>, so a token that they often
write takes its place. Run like the other scripts of this folder, after make_huggingface.py.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from fixture import output_directory

HERE = Path(__file__).resolve().parent
ENDS = {"t5_v1_0": (8, 54), "flan_t5": (18, 33)}
SIZES, ALPHAS, EARLY_ALPHA = (2, 3, 4, 8), (0.0, 0.6, 1.0, 2.0), 2.0
INPUTS, LONGEST_INPUT, WORDS, EOS = 12, 15, (3, 67), 1
LONGEST = 10


def asked() -> list[dict[str, object]]:
    generator = random.Random(17)
    models = []
    for name, ends in ENDS.items():
        for end_id in ends:
            inputs = [[generator.randrange(*WORDS) for _ in range(1 + 7 * i % (LONGEST_INPUT - 1))] + [EOS]
                      for i in range(INPUTS)]
            rules = [(alpha, False) for alpha in ALPHAS] + [(EARLY_ALPHA, True)]
            settings = [{"size": size, "alpha": alpha, "outputs": size // 2, "early_stopping": early_stopping}
                        for size in SIZES for alpha, early_stopping in rules]
            models.append({"model": str(HERE / name), "end_id": end_id, "longest": LONGEST, "inputs": inputs,
                           "settings": settings})
    return models


def main() -> None:
    root = output_directory("Writes the beam search fixture.")
    with tempfile.TemporaryDirectory() as directory:
        question, answer = Path(directory) / "asked.json", Path(directory) / "answer.json"
        question.write_text(json.dumps(asked()), encoding="utf-8")
        subprocess.run([sys.executable, str(HERE.parent / "interop" / "run_beams.py"), question, answer], check=True)
        found = json.loads(answer.read_text(encoding="utf-8"))
    for model in found["models"]:
        model["asked"]["model"] = Path(model["asked"]["model"]).name
    text = json.dumps({"made_by": Path(__file__).name, **found}, separators=(",", ":"))
    (root / "beams.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
