# SPDX-License-Identifier: Apache-2.0
"""Makes odd_tasks.json: files of GLUE and SuperGLUE whose rows are odd, and what T5's preprocessors make of them.

Texts are drawn from words, marks, tags, spaces and characters of several scripts. Where T5 reads a text as a regular
expression or stops (a pronoun at the beginning), there is no row, since Syntra differs on purpose.
"""

from __future__ import annotations

import json
import random
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

from fixture import output_directory
from make_tasks import glue_tasks, super_glue_tasks, texts_of, write_fixture

ROWS = 8
PARTS = (
    "the", "He", "café", "Ünïcode", "中文", "😀", "ﬁ", "ß", "İ", "e\u0301", "\u200b", "\u00a0", "\u3000", "\u2028",
    "\u0085", "\ufeff", "naïve—", "“quoted”", '"', '""', "'", "it's", "U.S.", "...", "?", "!", ",", "(", ")", "<br>",
    "<b>", "</b>", "<<b>br>", "<B>", "&amp;", "%s", "{0}", "}", "\\", "\\n", "\\t", "$1", "*", "|", "-1", "3.8",
    "@placeholder", "sentence1:",
)
BREAKS = ("\n", "\t", "\r\n", "\n@highlight\n", ".\n@highlight\n", "?\n@highlight\n", "\n\n@highlight\n@highlight\n")
# Words around pronouns, which T5 takes for patterns.
PLAIN = ("the", "a", "an", "Bob", "dog", "saw", "café", "house,", "tall", "Ann's", "Ünï", "and", "中文", "red")
PRONOUNS = ("he", "she", "they", "it", "her", "his", "their", "them", "him")
SCORES = (0, 5, 0.1, 0.3, 0.5, 0.7, 0.9, 2.5, 2.9, 3.1, 4.7, 4.9, 1.2999)
TWO = ("entailment", "not_entailment")
THREE = ("entailment", "neutral", "contradiction")

Row = dict[str, Any]


class Drawn:
    """The rows of the files, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self, shortest: int = 0) -> str:
        return "".join(self._random.choice(PARTS) + self._random.choice((" ", " ", "  ", ""))
                       for _ in range(self._random.randint(shortest, 9)))

    def text(self, shortest: int = 0) -> str:
        """With line ends."""
        return "".join(self._random.choice((*PARTS, *BREAKS)) + self._random.choice((" ", " ", "  ", ""))
                       for _ in range(self._random.randint(shortest, 12)))

    def tsv(self, header: str, rows: list[tuple[Any, ...]]) -> str:
        lines = [header.split()] if header else []
        return "".join("\t".join(map(str, row)) + "\n" for row in [*lines, *rows])

    def jsonl(self, rows: list[Row]) -> str:
        return "".join(json.dumps(row, ensure_ascii=self._random.random() < 0.5) + "\n" for row in rows)

    def labelled(self, fields: tuple[str, ...], labels: tuple[Any, ...], **others: int) -> str:
        return self.jsonl([{**{field: self.text() for field in fields}, "label": self._random.choice(labels), "idx": i,
                            **others} for i in range(ROWS)])

    def multirc(self) -> str:
        def question(number: int) -> Row:
            answers = [{"text": self.text(), "idx": 10 * number + i, "label": i % 2} for i in range(2)]
            return {"question": self.text(), "idx": number, "answers": answers}

        return self.jsonl([{"idx": i, "passage": {"text": self.text(4), "questions": [question(i)]}}
                           for i in range(ROWS)])

    def record(self) -> str:
        """Entities at both ends of the passage, over line ends, and twice."""
        rows = []
        for number in range(ROWS):
            text = self.text(4)
            last = len(text) - 1
            spans = [(0, 0), (last, last), (0, last), (last // 2, last // 2 + 1), (last // 3, 2 * last // 3)]
            spans = self._random.choices(spans, k=4)
            answers = [{"start": a, "end": b, "text": text[a:b + 1]} for a, b in spans[:2]]
            queries = [{"query": self.text(), "idx": number, "answers": answers}]
            passage = {"text": text, "entities": [{"start": a, "end": b} for a, b in spans]}
            rows.append({"idx": number, "source": "", "qas": queries, "passage": passage})
        return self.jsonl(rows)

    def wsc(self) -> str:
        """Referents with another case or a full stop; spaces that are none of T5's between words."""
        rows = []
        for number in range(ROWS):
            words = [self._random.choice(("y\u3000z", "\u00a0x")), *self._random.choices(PLAIN, k=8)]
            words[2:4] = first, second = self._random.choice((("dog", "Bob"), ("éclair", "Über")))
            words[5] = pronoun = self._random.choice(PRONOUNS)
            text = " ".join(words)
            index = len(" ".join(words[:2]).split())
            if number % 3 == 0:
                referent, index = second.lower(), index + 1
            else:
                referent = first.capitalize() if number % 2 else f"{first} {second}."
            target = {"span1_text": referent, "span1_index": index, "span2_text": pronoun, "span2_index": 5}
            rows.append({"text": text, "target": target, "label": number % 3 > 0, "idx": number})
        return self.jsonl(rows)

    def wnli(self) -> list[tuple[Any, ...]]:
        rows = []
        for number in range(ROWS):
            words = self._random.choices(PLAIN, k=8)
            at = self._random.randint(1, 6)
            named = self._random.choices(PLAIN, k=2)
            hypothesis = " ".join([*words[max(0, at - 2):at], *named, *words[at + 1:at + 3]])
            words[at] = self._random.choice(PRONOUNS) + self._random.choice(("", ",", "."))
            rows.append((number, " ".join(words), hypothesis[0].upper() + hypothesis[1:] + ".", number % 2))
        return rows

    def files(self) -> dict[str, str]:
        pick = self._random.choice
        pairs = [(i, self.line(), self.line()) for i in range(ROWS)]
        mnli = [(i, 0, 0, "", "", "", "", "", a, b, pick(THREE)) for i, a, b in pairs]
        header = "index promptID pairID genre 4 5 6 7 sentence1 sentence2 gold_label"
        return {
            "CoLA/dev.tsv": self.tsv("", [("", i % 2, "*", self.line(1)) for i in range(ROWS)]),
            "SST-2/dev.tsv": self.tsv("sentence label", [(self.line(), i % 2) for i in range(ROWS)]),
            "STS-B/dev.tsv": self.tsv("index sentence1 sentence2 score",
                                      [(i, self.line(), self.line(), score) for i, score in enumerate(SCORES)]),
            "QQP/dev.tsv": self.tsv("id question1 question2 is_duplicate", [(*pair, pair[0] % 2) for pair in pairs]),
            "MNLI/dev_matched.tsv": self.tsv(header, mnli),
            "MNLI/dev_mismatched.tsv": self.tsv(header, mnli[::-1]),
            "AX/diagnostic.tsv": self.tsv("index sentence1 sentence2", pairs),
            "QNLI/dev.tsv": self.tsv("index question sentence label", [(*pair, pick(TWO)) for pair in pairs]),
            "RTE/dev.tsv": self.tsv("index sentence1 sentence2 label", [(*pair, pick(TWO)) for pair in pairs]),
            "WNLI/dev.tsv": self.tsv("index sentence1 sentence2 label", self.wnli()),
            "BoolQ/val.jsonl": self.labelled(("question", "passage"), (True, False)),
            "CB/val.jsonl": self.labelled(("premise", "hypothesis"), THREE),
            "COPA/val.jsonl": self.labelled(("premise", "choice1", "choice2", "question"), (0, 1)),
            "RTE/val.jsonl": self.labelled(("premise", "hypothesis"), TWO),
            "WiC/val.jsonl": self.labelled(("word", "sentence1", "sentence2"), (True, False), start1=0, end1=1,
                                           start2=0, end2=1),
            "AX-b/AX-b.jsonl": self.labelled(("sentence1", "sentence2"), TWO),
            "AX-g/AX-g.jsonl": self.labelled(("premise", "hypothesis"), TWO),
            "MultiRC/val.jsonl": self.multirc(),
            "ReCoRD/train.jsonl": self.record(),
            "ReCoRD/val.jsonl": self.record(),
            "WSC/val.jsonl": self.wsc(),
        }


def main() -> None:
    output = output_directory(__doc__ or "") / "odd_tasks.json"
    files = Drawn(seed=1).files()
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as directory:
        for name, content in files.items():
            path = Path(place) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode())
        rows = chain(glue_tasks(Path(place), directory), super_glue_tasks(Path(place), directory))
        stored = '"files": ' + json.dumps(files, ensure_ascii=False, indent=1)
        write_fixture(output, [*texts_of(Path(__file__).name, rows), stored])


if __name__ == "__main__":
    main()
