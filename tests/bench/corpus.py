# SPDX-License-Identifier: Apache-2.0
"""Corpora to measure tokenizers on: documents that do not repeat, cut into files of equal size.

The real documents come once. Behind them come documents put together from their sentences, in which a share of the words is
new: as large a share as of the last real documents. So a cache of words is no better off than in the real text; in a larger
real corpus new words grow ever rarer. Everything follows from the real documents and a seed.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

SENTENCE_END: Final = re.compile(r"(?<=[.!?]) ")
DOCUMENT_BYTES: Final = 2000  # of paragraphs that are joined, and of documents put together
LAST_SHARE: Final = 0.2  # of the real documents, by which new words are counted


def open_text(path: Path) -> Any:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def documents_of(path: Path) -> Iterator[str]:
    """Of .json or .jsonl, each record's text (or its prefix and completion); of others, paragraphs."""
    with open_text(path) as file:
        if ".json" in path.suffixes or ".jsonl" in path.suffixes:
            for line in file:
                record = json.loads(line)
                yield record["text"] if "text" in record else record["prefix"] + record["gold_completion"]
            return
        document = ""
        for paragraph in file.read().split("\n\n"):
            document += " ".join(paragraph.split()) + "\n"
            if len(document) >= DOCUMENT_BYTES:
                yield document
                document = ""


def share_of_new_words(documents: list[str]) -> float:
    """Of the words of the last documents, those that no document before has."""
    first = int(len(documents) * (1 - LAST_SHARE))
    seen = {word for document in documents[:first] for word in document.split()}
    new, words = 0, 0
    for document in documents[first:]:
        for word in document.split():
            words += 1
            if word not in seen:
                new += 1
                seen.add(word)
    return new / words


class Recombiner:
    """Endless documents of known sentences, with new words of the halves of rare ones."""

    def __init__(self, documents: list[str], new_words: float, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.new_words = new_words
        self.sentences = [s for document in documents for s in SENTENCE_END.split(document) if s.strip()]
        counts = Counter(word for document in documents for word in document.split())
        self.seen = set(counts)
        self.rare = [word for word, count in counts.items() if count == 1 and len(word) > 3]

    def new_word(self) -> str:
        while True:
            begin, end = self.random.choice(self.rare), self.random.choice(self.rare)
            word = begin[: len(begin) // 2] + end[len(end) // 2 :]
            if word not in self.seen:
                self.seen.add(word)
                return word

    def sentence(self) -> str:
        words = self.random.choice(self.sentences).split(" ")
        for i in range(len(words)):
            if self.random.random() < self.new_words:
                words[i] = self.new_word()
        return " ".join(words)

    def documents(self) -> Iterator[str]:
        while True:
            sentences: list[str] = []
            while sum(map(len, sentences)) < DOCUMENT_BYTES:
                sentences.append(self.sentence())
            yield " ".join(sentences)


def write_files(documents: Iterable[str], folder: Path, kind: str, size: int, most: int | None) -> list[dict[str, Any]]:
    """Writes json.gz files of `size` bytes of text each, at most `most`; what is left over is left out."""
    files: list[dict[str, Any]] = []
    part: list[str] = []
    count = 0
    for document in documents:
        part.append(document)
        count += len(document.encode())
        if count < size:
            continue
        path = folder / f"{kind}-{len(files):03}.json.gz"
        with gzip.open(path, "wt", compresslevel=6, encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in part)
        files.append({"path": str(path), "kind": kind, "documents": len(part), "bytes": count})
        part, count = [], 0
        if len(files) == most:
            break
    return files


def make_corpus(sources: list[Path], folder: Path, size: int, recombined: int) -> dict[str, Any]:
    documents = [document for path in sources for document in documents_of(path)]
    random.Random(0).shuffle(documents)
    folder.mkdir(parents=True, exist_ok=True)
    files = write_files(documents, folder, "real", size, None)
    if not files:
        raise RuntimeError(f"all documents together fill no file of {size} bytes; take more documents or smaller files")
    new_words = share_of_new_words(documents)
    files += write_files(Recombiner(documents, new_words).documents(), folder, "recombined", size, recombined)
    return {"new_words": new_words, "files": files}
