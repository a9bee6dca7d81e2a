# SPDX-License-Identifier: Apache-2.0
"""Makes metrics.json and unicode.json: what T5's own functions, and Python's str, make of random and nasty cases.

T5's modules are those of the package t5, loaded without its dependencies on TensorFlow; underneath are scikit-learn,
SciPy, sacrebleu and rouge_score. Where SciPy says NaN, the fixture says 0: a constant row correlates with nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import math
import platform
import random
import re
import string
import sys
import types
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fixture import output_directory

PACKAGES = ("numpy", "rouge_score", "sacrebleu", "scikit-learn", "scipy", "t5")

Values = dict[str, float]
Case = dict[str, Any]


def load_t5() -> tuple[Any, Any]:
    """t5.evaluation.metrics and t5.data.postprocessors, without what the packages around them import."""
    found = importlib.util.find_spec("t5")
    assert found is not None and found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    for name in ("t5", "t5.data", "t5.evaluation"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    as_text = types.SimpleNamespace(as_text=lambda text: text)
    for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v2"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["tensorflow"].compat = sys.modules["tensorflow.compat"]  # type: ignore[attr-defined]
    sys.modules["tensorflow.compat"].v2 = sys.modules["tensorflow.compat.v2"]  # type: ignore[attr-defined]
    sys.modules["tensorflow.compat.v2"].compat = as_text  # type: ignore[attr-defined]
    return importlib.import_module("t5.evaluation.metrics"), importlib.import_module("t5.data.postprocessors")


METRICS, POSTPROCESSORS = load_t5()


def in_percent(values: Values, names: tuple[str, ...]) -> Values:
    """T5's values by our names, in T5's order."""
    numbers = [float(value) for value in values.values()]
    assert len(numbers) == len(names)
    return {name: 0.0 if math.isnan(number) else number for name, number in zip(names, numbers)}


# --- labels ------------------------------------------------------------------------------------

def label_rows(random_numbers: random.Random, classes: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """What the case is, expected, predicted; -1 is a text that is no label."""
    for count in (1, 2, 3, 10, 277):
        for skill in (0.0, 0.5, 0.95):
            expected = [random_numbers.randrange(classes) for _ in range(count)]
            predicted = [e if random_numbers.random() < skill else random_numbers.randrange(-1, classes)
                         for e in expected]
            yield f"random, {count} examples, skill {skill}", expected, predicted
    half = [i % classes for i in range(12)]
    yield "perfect", half, half
    yield "all wrong", half, [(e + 1) % classes for e in half]
    yield "all invalid", half, [-1] * 12
    yield "one valid", half, [-1] * 11 + [half[11]]
    for label in range(classes):
        yield f"always {label}", half, [label] * 12
        yield f"only {label} expected", [label] * 12, half
        yield f"only {label}, all right", [label] * 12, [label] * 12
        yield f"only {label}, all invalid", [label] * 12, [-1] * 12


def label_cases(random_numbers: random.Random) -> Iterator[Case]:
    matthews = METRICS.sklearn_metrics_wrapper("matthews_corrcoef", metric_post_process_fn=lambda x: 100 * x)
    for classes in (2, 3, 5):
        functions: dict[str, Callable[..., Values]] = {
            "accuracy": METRICS.accuracy, "matthews": matthews, "macro_f1": METRICS.mean_multiclass_f1(classes)}
        if classes == 2:
            functions["f1"] = METRICS.f1_score_with_invalid
        for what, expected, predicted in label_rows(random_numbers, classes):
            yield {"what": what, "classes": classes, "expected": expected, "predicted": predicted,
                   "metrics": {metric: in_percent(function(expected, predicted), (metric,))
                               for metric, function in functions.items()}}


def multirc_cases(random_numbers: random.Random) -> Iterator[Case]:
    exact = METRICS.mean_group_metric(METRICS.all_match)
    for what, expected, predicted in label_rows(random_numbers, 2):
        for questions in (1, len(expected) // 3 + 1):
            # Some answers stand alone, under no name; T5 gets a name for each of them.
            groups = [random_numbers.choice(["", *(f"q{i}" for i in range(questions))]) for _ in expected]
            targets = [{"value": e, "group": g or f"alone {i}"}
                       for i, (e, g) in enumerate(zip(expected, groups))]
            found = [{"value": p} for p in predicted]
            values = METRICS.multirc_f1_over_all_answers(targets, found) | exact(targets, found)
            yield {"what": f"{what}, {questions} questions", "classes": 2, "expected": expected,
                   "predicted": predicted, "groups": groups,
                   "metrics": {"multirc": in_percent(values, ("f1a", "em"))}}


# --- scores ------------------------------------------------------------------------------------

def score_rows(random_numbers: random.Random) -> Iterator[tuple[str, list[float], list[float]]]:
    for count in (2, 3, 10, 300):
        for noise in (0.0, 0.5, 3.0):
            expected = [round(random_numbers.uniform(0, 25)) / 5 for _ in range(count)]
            predicted = [min(5.0, max(0.0, round(5 * random_numbers.gauss(e, noise)) / 5)) for e in expected]
            yield f"steps of 0.2, many ties, {count} examples, noise {noise}", expected, predicted
            some = [-1.0 if random_numbers.random() < 0.2 else p for p in predicted]
            yield f"a fifth no numbers, {count} examples, noise {noise}", expected, some
        yield (f"no ties, {count} examples", [round(random_numbers.gauss(0, 1), 4) for _ in range(count)],
               [round(random_numbers.gauss(0, 1), 4) for _ in range(count)])
    steps = [i / 5 for i in range(25)]
    yield "the same", steps, steps
    yield "backwards", steps, steps[::-1]
    yield "a line", steps, [1000 + 0.001 * e for e in steps]
    yield "a monotone curve", steps, [math.exp(5 * e) for e in steps]
    yield "one far away", steps, steps[:-1] + [1e6]
    yield "constant predictions", steps, [3.8] * 25
    yield "constant expectations", [3.8] * 25, steps
    yield "both constant", [3.8] * 25, [1.0] * 25
    yield "no numbers", steps, [-1.0] * 25
    yield "two values", steps, [float(i % 2) for i in range(25)]
    yield "large and small", steps, [(-1) ** i * 10.0 ** (i - 12) for i in range(25)]


def score_cases(random_numbers: random.Random) -> Iterator[Case]:
    functions = {"pearson": METRICS.pearson_corrcoef, "spearman": METRICS.spearman_corrcoef}
    for what, expected, predicted in score_rows(random_numbers):
        yield {"what": what, "expected": expected, "predicted": predicted,
               "metrics": {metric: in_percent(function(expected, predicted), (metric,))
                           for metric, function in functions.items()}}


# --- texts -------------------------------------------------------------------------------------

PARTS = ["a", "an", "the", "A", "The", "THE", "cat", "Cat", "dog", "café", "CAFÉ", "cafe\u0301", "a\u0301", "aé",
         "an_the", "o'clock", "Bob's", "Bob", "U.S.", "3.5", "1,000", "İstanbul", "ΟΔΟΣ", "Σ", "ΑΣ.", "ß", "STRASSE",
         "ǅ", "日本", "東京", "‘a", "Moose!‘", "—a—", "…the", "«an»", "“the”", "the–end", "K", "Å", "²", "½", "٣", "_",
         "__a__", "$$$$", "...", "!", "\"", "`", "^", "~", "\u200b", "a\u200bthe", "😀", "the😀", "my", "her", "his",
         "each", "that", "whose", "this", "some", "few", "our", "your", "these", "fuzzy", "bunny", "hungry"]
SPACES = [" ", " ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\x1c", "\x1f", "\x85", "\u2028"]


def random_text(random_numbers: random.Random, most: int) -> str:
    text = random_numbers.choice(["", "", " ", "\n"])
    for _ in range(random_numbers.randrange(most + 1)):
        text += random_numbers.choice(PARTS) + random_numbers.choice(SPACES)
    return text if random_numbers.random() < 0.5 else text.strip()


def near(random_numbers: random.Random, text: str) -> str:
    """`text`, or something like it."""
    choice = random_numbers.randrange(6)
    if choice == 0:
        return random_text(random_numbers, 4)
    if choice == 1:
        return text.upper()
    if choice == 2:
        return "The " + text + "!"
    words = text.split()
    random_numbers.shuffle(words)
    return text if choice == 3 else " ".join(words[: random_numbers.randrange(len(words) + 1)])


def squad_cases(random_numbers: random.Random) -> Iterator[Case]:
    squad = METRICS.deduplicate_metric(METRICS.squad)
    for count in (1, 1, 1, 2, 5, 40):
        for most in (1, 3, 8):
            accepted = [[random_text(random_numbers, most) for _ in range(random_numbers.choice([1, 1, 2, 4]))]
                        for _ in range(count)]
            texts = [near(random_numbers, random_numbers.choice(answers)) for answers in accepted]
            groups = [random_numbers.choice(["", "", f"q{i}", f"q{i // 2}"]) for i in range(count)]
            targets = [{"value": answers, "group": g or f"alone {i}"}
                       for i, (answers, g) in enumerate(zip(accepted, groups))]
            values = squad(targets, [{"value": text} for text in texts])
            yield {"what": f"{count} answers of up to {most} words", "texts": texts, "accepted": accepted,
                   "groups": groups,
                   "metrics": {"squad": in_percent({"f1": values["f1"], "em": values["em"]}, ("f1", "em"))}}


def sequence_cases(random_numbers: random.Random) -> Iterator[Case]:
    for count in (1, 4, 50):
        accepted = [random_text(random_numbers, 2) for _ in range(count)]
        texts = [near(random_numbers, text) for text in accepted]
        values = in_percent(METRICS.sequence_accuracy(accepted, texts), ("sequence_accuracy",))
        yield {"what": f"{count} texts", "texts": texts, "accepted": [[text] for text in accepted],
               "metrics": {"sequence_accuracy": values}}


# What the tokenizers of BLEU treat in a way of their own.
SIGNS = [".", ",", "...", "3.5", "1,000.", "1990.", "x-y", "3-x", "3-4", "-", "don't", "'", "&quot;", "&amp;lt;",
         "&lt;", "&", "<skipped>", "end-\n", "$5", "5€", "€", "a/b", "(c)", "[d]", "{e}", "f_g", "#1", "100%", "a.b",
         "a.1", "1.a", "«g»", "„h“", "i…", "j–k", "1–2", "½.", "٣,٤", "x²,", "²,3", "©", "a+b=c", "\u00a0", "。",
         "第1。2"]


def sentence(random_numbers: random.Random, most: int) -> str:
    words = [random_numbers.choice(SIGNS if random_numbers.random() < 0.3 else PARTS)
             for _ in range(random_numbers.randrange(most + 1))]
    return "".join(word + random_numbers.choice(["", " ", " ", " ", " ", "\n", " . ", ".", ", "]) for word in words)


def text_rows(random_numbers: random.Random) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """What the case is, the accepted texts of each example, and the predictions."""
    for count in (1, 1, 2, 5, 20):
        for most in (3, 8, 30):
            for several in (1, 3):
                accepted = [[sentence(random_numbers, most) for _ in range(random_numbers.randrange(1, several + 1))]
                            for _ in range(count)]
                texts = [near(random_numbers, random_numbers.choice(answers)) for answers in accepted]
                yield f"{count} texts of up to {most} words, up to {several} accepted", accepted, texts
    yield "too short for four words", [["the cat"], ["a dog"]], ["the cat", "a dog"]
    yield "no four words right", [["the cat sat on the mat"]], ["cat sat on mat the the"]
    yield "only single words right", [["one two three four five"]], ["five four three two one"]
    yield "nothing right", [["the cat sat on the mat"]], ["one two three four five"]
    yield "empty predictions", [["the cat sat on the mat"], ["dog"]], ["", ""]
    yield "empty expectations", [[""], [""]], ["the cat sat on the mat", ""]
    yield "lengths as near", [["one two three four", "one two three four five six"]], ["one two three four five"]
    yield "a word over and over", [["the the cat cat sat", "the cat sat sat"]], ["the the the cat cat cat sat sat sat"]
    yield "sentences", [["a b c . d e f . g h\na c e"]], ["d f . a b\nc e a . h g"]
    yield "sentences in another order", [["one two . three four . five six"]], ["five six . one two . three four"]


class MeanAggregator:
    """In the place of rouge_score's BootstrapAggregator: the mean, of which that one takes random samples."""

    def __init__(self) -> None:
        self.scores: list[dict[str, Any]] = []

    def add_scores(self, scores: dict[str, Any]) -> None:
        self.scores.append(scores)

    def aggregate(self) -> dict[str, Any]:
        def mid(key: str) -> Any:
            mean = sum(scores[key].fmeasure for scores in self.scores) / len(self.scores)
            return types.SimpleNamespace(fmeasure=mean)
        return {key: types.SimpleNamespace(low=mid(key), mid=mid(key), high=mid(key)) for key in self.scores[0]}


class NearestScorer(METRICS.rouge_scorer.RougeScorer):  # type: ignore[misc,name-defined]
    """Scores against the nearest of the texts that a line end and "|||" part."""

    def score(self, target: str, prediction: str) -> Any:
        if "\n|||" in target:
            return self.score_multi(target.split("\n|||"), prediction)
        return super().score(target, prediction)


def text_cases(random_numbers: random.Random) -> Iterator[Case]:
    METRICS.scoring = types.SimpleNamespace(BootstrapAggregator=MeanAggregator)
    METRICS.rouge_scorer = types.SimpleNamespace(RougeScorer=NearestScorer)
    for what, accepted, texts in text_rows(random_numbers):
        # sacrebleu takes the first text of all examples, then the second of all; None where there is none.
        streams = [list(stream) for stream in itertools.zip_longest(*accepted)]
        bleu = {name: in_percent(METRICS.bleu(streams, texts, tokenizer=tokenizer), (name,))
                for name, tokenizer in (("bleu", "intl"), ("bleu_13a", "13a"))}
        chrf = METRICS.sacrebleu.CHRF().corpus_score(texts, streams).score
        rouge = METRICS.rouge(["\n|||".join(answers) for answers in accepted], texts)
        yield {"what": what, "texts": texts, "accepted": accepted,
               "metrics": {**bleu, "chrf": {"chrf": chrf},
                           "rouge": in_percent(rouge, ("rouge1", "rouge2", "rougeLsum"))}}


def words_of_texts() -> Iterator[tuple[str, list[str], list[str]]]:
    """A text, and its words by sacrebleu's tokenizers "intl" and "13a"."""
    tokenizers = [METRICS.sacrebleu.BLEU(tokenize=name).tokenizer for name in ("intl", "13a")]
    for a, b in itertools.product(SIGNS, ["", "x", "3", " ", ".", ",", "-", "\n"]):
        for text in (a + b, b + a, a + b + a):
            international, mteval_13a = (tokenizer(text.rstrip()).split() for tokenizer in tokenizers)
            yield text, international, mteval_13a


DETERMINERS = ["a", "an", "few", "her", "his", "each", "every", "many", "much", "my", "our", "some", "that", "the",
               "their", "these", "this", "those", "which", "whose", "your"]
NO_DETERMINERS = ["all", "any", "both", "its", "no", "one", "what", "Bob's", "a's"]


def named_referents(random_numbers: random.Random) -> Iterator[tuple[str, str, int]]:
    pairs = [(f"{word} cat", "big cat") for word in DETERMINERS + NO_DETERMINERS]
    for _ in range(300):
        referent = random_text(random_numbers, 4)
        pairs.append((near(random_numbers, referent), referent))
    for prediction, referent in pairs:
        example = {"targets_pretokenized": referent}
        yield prediction, referent, POSTPROCESSORS.wsc_simple(prediction, example)


def normalized_answers(random_numbers: random.Random) -> Iterator[tuple[str, str]]:
    normalize = METRICS.qa_utils.normalize_squad
    texts = [*PARTS, *(a + s + b for s in SPACES for a, b in (("a", "cat"), ("x", "the"))),
             *(f"{sign}a{sign}the{sign}" for sign in string.punctuation + "‘’´–—…«»“”¿¡·"),
             *(random_text(random_numbers, 10) for _ in range(150))]
    for text in texts:
        yield text, normalize(text)


def scores_of_texts() -> Iterator[tuple[str, float]]:
    texts = ["3.8", "0.0", "5.0", "5", ".5", "5.", "-1", "-1.0", "+2.5", "++2", "+-2", "-+2", "--2", " 3.8 ",
             "\t3.8\n", "\u00a03.8\u3000", "\x1c5", "\u20285\x1c", "\x855", "\u200b5", "", " ", ".", "-", "+", "e5",
             "1e5", "1E5", "1e+5", "1e-5", "1e", "1e5.0", "3,8", "3.8.1", "3 .8", "three", "0x10", "1_0", "1__0", "_1",
             "1_", "1_.5", "1._5", "1_0.2_5", "1e1_0", "३.८", "𝟓.𝟎", "３.８", "٣.٨", "²", "½", "inf", "-inf", "Infinity",
             "nan", "NaN", "nan(1)", "1e999", "1e308", "1e-320", "1e-400", "0.1", "2.675", "4.35", "3.8f", "3.8\0",
             "1" + "0" * 30, "0." + "3" * 40, "3.8%"]
    for text in texts:
        number = POSTPROCESSORS.string_to_float(text)
        yield text, number if math.isfinite(number) else -1.0


# --- Python's characters -----------------------------------------------------------------------

def ranges(accept: Callable[[str], object]) -> list[list[int]]:
    """Code points from first to last, surrogates left out."""
    found: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF or not accept(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def characters() -> dict[str, object]:
    word = re.compile(r"\w")
    lower = {chr(code): chr(code).lower() for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF}
    return {
        "script": Path(__file__).name,
        "versions": f"python {platform.python_version()}, unicode {unicodedata.unidata_version}",
        "unassigned": ranges(lambda c: unicodedata.category(c) == "Cn"),
        "word": ranges(word.match), "space": ranges(str.isspace),
        "punctuation": ranges(lambda c: c in string.punctuation),
        "lower": {c: l for c, l in lower.items() if c != l},
    }


def write(path: Path, members: dict[str, object]) -> None:
    """JSON with each entry of a list on a line of its own."""
    lines = []
    for name, value in members.items():
        text = json.dumps(value)
        if isinstance(value, list) and name not in ("unassigned", "word"):
            text = "[\n" + ",\n".join(json.dumps(one) for one in value) + "\n]"
        lines.append(f"{json.dumps(name)}: {text}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    warnings.simplefilter("ignore")
    directory = output_directory(__doc__ or "")
    numbers = random.Random(12)
    versions = [f"python {platform.python_version()}"] + [f"{name} {version(name)}" for name in PACKAGES]
    cases = [*label_cases(numbers), *multirc_cases(numbers), *score_cases(numbers), *squad_cases(numbers),
             *sequence_cases(numbers), *text_cases(numbers)]
    write(directory / "metrics.json", {
        "script": Path(__file__).name, "versions": ", ".join(versions), "cases": cases,
        "squad_text": [*normalized_answers(numbers)], "wsc_text": [*named_referents(numbers)],
        "score_text": [*scores_of_texts()], "bleu_words": [*words_of_texts()]})
    write(directory / "unicode.json", characters())


if __name__ == "__main__":
    main()
