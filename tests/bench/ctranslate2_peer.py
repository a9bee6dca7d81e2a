# SPDX-License-Identifier: Apache-2.0
"""A peer of the translation benchmark: CTranslate2.

Converts a model that `syntra convert` exported, decodes all inputs once and prints a line of JSON.
Then it decodes them once for each line of standard input and prints the seconds. At the end of input
it prints the outputs. Inputs come as ids from a file, so that tokenizers are not measured.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import ctranslate2
from ctranslate2.converters import TransformersConverter

from peer import serve_turns


class Translation:
    """Outputs of all inputs, which the library sorts by length into batches."""

    def __init__(self, options: argparse.Namespace) -> None:
        task = json.loads(options.examples.read_text(encoding="utf-8"))
        pieces = json.loads((options.converted / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self.id_of = {piece: index for index, piece in enumerate(pieces)}
        self.inputs = [[pieces[index] for index in ids] for ids in task["inputs"]]
        self.settings = {
            "beam_size": options.beams,
            "max_batch_size": options.batch,
            "max_decoding_length": task["longest"],
        }
        self.translator = ctranslate2.Translator(
            str(options.converted), device="cpu", intra_threads=options.threads, compute_type=options.type
        )
        self.outputs: list[list[int]] = []

    def run(self) -> None:
        results = self.translator.translate_batch(self.inputs, **self.settings)
        self.outputs = [[self.id_of[piece] for piece in result.hypotheses[0]] for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="as syntra convert exports it")
    parser.add_argument("--converted", type=Path, required=True, help="the folder for CTranslate2's own format")
    parser.add_argument("--examples", type=Path, required=True, help="ids, as finetune_bench prints")
    parser.add_argument("--type", default="float32", help="of the weights and products")
    parser.add_argument("--beams", type=int, default=1, help="1: greedy decoding")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    if not options.converted.exists():
        TransformersConverter(str(options.model)).convert(str(options.converted))
    translation = Translation(options)
    translation.run()
    facts = {"ready": True, "ctranslate2": ctranslate2.__version__}
    serve_turns(facts, translation.run, summary=lambda: {"outputs": translation.outputs})


if __name__ == "__main__":
    main()
