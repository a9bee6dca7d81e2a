# SPDX-License-Identifier: Apache-2.0
"""Encodes the next json.gz file with SentencePiece or Hugging Face's tokenizers, once a line of standard input.

Reading the file is not timed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peer import peak_bytes, print_line

Encode = Callable[[list[str]], int]  # to the number of ids


def sentencepiece_encoder(model: Path) -> Encode:
    import sentencepiece  # noqa: PLC0415, the other tool may be missing

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return lambda texts: sum(len(ids) for ids in processor.encode(texts, num_threads=1))


def tokenizers_encoder(model: Path) -> Encode:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tokenizers  # noqa: PLC0415

    tokenizer = tokenizers.Tokenizer.from_file(str(model))
    return lambda texts: sum(
        len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Encodes files with another tokenizer.")
    parser.add_argument("--tool", required=True, choices=("sentencepiece", "tokenizers"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    encoder = sentencepiece_encoder if options.tool == "sentencepiece" else tokenizers_encoder
    encode = encoder(options.model)
    encode(["warm up"])
    print_line({"ready": True})
    for path, _ in zip(options.files, sys.stdin):  # noqa: B905, input may end before
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line in file]
        begin = time.process_time()
        ids = encode(texts)
        print_line({"seconds": time.process_time() - begin, "ids": ids})
    print_line({"peak_resident_bytes": peak_bytes()})


if __name__ == "__main__":
    main()
