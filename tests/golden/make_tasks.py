# SPDX-License-Identifier: Apache-2.0
"""Makes tasks.json: what T5's preprocessors make of the benchmark files in tests/tasks/sample.

The files are read by TensorFlow Datasets, as T5 reads them, without a download.
"""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds
from fixture import output_directory
from t5.data import glue_utils, preprocessors
from tensorflow_datasets.text import definite_pronoun_resolution, glue, super_glue

SAMPLE = Path(__file__).resolve().parents[1] / "tasks" / "sample"
PACKAGES = ("seqio", "t5", "tensorflow", "tensorflow-datasets")
GLUE = {"cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "qqp": "QQP", "mnli": "MNLI", "qnli": "QNLI",
        "rte": "RTE", "wnli": "WNLI"}
SUPERGLUE = {"boolq": "BoolQ", "cb": "CB", "copa": "COPA", "multirc": "MultiRC", "record": "ReCoRD", "rte": "RTE",
             "wic": "WiC", "axb": "AX-b", "axg": "AX-g"}

Record = dict[str, Any]
Rows = tuple[str, str, list[list[Any]]]  # a task, a file of it, what T5 makes of each row


def encoded(builder: Any, record: Record) -> Record:
    """A record as the dataset holds it: labels by index, -1 for none."""
    record = dict(record)
    features = builder.info.features
    is_class = "label" in features and isinstance(features["label"], tfds.features.ClassLabel)
    if is_class and record["label"] != -1:
        record["label"] = features["label"].encode_example(record["label"])
    if "answers" in record:
        for name in ("answers", "entities"):
            record[name] = tf.constant(record[name], tf.string)
    return record


def converted(preprocess: Any, records: Iterator[Record]) -> list[list[Any]]:
    """Inputs and targets of all examples, and the numbers of those of one query."""
    rows = []
    for record in records:
        for example in preprocess(tf.data.Dataset.from_tensors(record)).as_numpy_iterator():
            row: list[Any] = [example["inputs"].decode(), example["targets"].decode()]
            if "idx/query" in example:
                row.append(int(example["idx/query"]))
            rows.append(row)
    return rows


def records_of(builder: Any, file: Path, split: str) -> Iterator[Record]:
    for _, record in builder._generate_examples(str(file), split):
        yield encoded(builder, record)


def glue_tasks(files: Path, directory: str) -> Iterator[Rows]:
    for name, folder in GLUE.items():
        builder = glue.Glue(config=name, data_dir=directory)
        preprocess = glue_utils.get_glue_text_preprocessor(builder.builder_config)
        for file in sorted((files / folder).glob("*.tsv")):
            if name == "mrpc":
                continue  # from Microsoft's layout, below
            yield name, file.name, converted(preprocess, records_of(builder, file, file.stem))
    builder = glue.Glue(config="wnli", data_dir=directory)
    for file in (files / "WNLI" / "dev.tsv", files / "WNLI" / "test.tsv"):
        if not file.exists():
            continue
        found = records_of(builder, file, file.stem)
        yield "wnli_as_wsc", file.name, converted(preprocessors.wnli_simple, found)
    builder = glue.Glue(config="ax", data_dir=directory)
    preprocess = glue_utils.get_glue_text_preprocessor(builder.builder_config)
    file = files / "AX" / "diagnostic.tsv"
    yield "mnli", file.name, converted(preprocess, records_of(builder, file, "test"))


def mrpc_tasks(files: Path, directory: str) -> Iterator[Rows]:
    builder = glue.Glue(config="mrpc", data_dir=directory)
    preprocess = glue_utils.get_glue_text_preprocessor(builder.builder_config)
    folder = files / "MRPC_microsoft" / "MRPC"
    of_splits = {"train": str(folder / "msr_paraphrase_train.txt"), "dev_ids": str(folder / "dev_ids.tsv"),
                 "test": str(files / "MRPC" / "test.tsv")}
    for split in ("train", "dev", "test"):
        found = builder._generate_example_mrpc_files(mrpc_files=of_splits, split=split)
        yield "mrpc", f"{split}.tsv", converted(preprocess, (encoded(builder, record) for record in found))


def super_glue_tasks(files: Path, directory: str) -> Iterator[Rows]:
    for name, folder in SUPERGLUE.items():
        builder = super_glue.SuperGlue(config=name, data_dir=directory)
        preprocess = glue_utils.get_glue_text_preprocessor(builder.builder_config)
        if name == "axb":
            in_order = preprocess
            keys = {"premise": "sentence1", "hypothesis": "sentence2", "label": "label", "idx": "idx"}
            preprocess = lambda data: in_order(preprocessors.rekey(data, keys))  # noqa: E731
        for file in sorted((files / folder).glob("*.jsonl")):
            split = tfds.Split.TEST if file.stem not in ("train", "val") else file.stem
            task = "superglue_rte" if name == "rte" else name
            yield task, file.name, converted(preprocess, records_of(builder, file, split))
    builder = super_glue.SuperGlue(config="wsc.fixed", data_dir=directory)
    for file in sorted((files / "WSC").glob("*.jsonl")):
        split = tfds.Split.TEST if file.stem == "test" else file.stem
        records = list(records_of(builder, file, split))
        # Every example, for T5 fails on a dataset that its filter leaves empty.
        kept = [r for r in records if r["label"] == 1] if file.stem == "train" else records
        yield "wsc", file.name, converted(preprocessors.wsc_simple, iter(kept))
    builder = definite_pronoun_resolution.DefinitePronounResolution(data_dir=directory)
    file = files / "DPR" / "train.c.txt"
    if not file.exists():
        return
    found = (record for _, record in builder._generate_examples(str(file)))
    yield "wsc", "DPR", converted(preprocessors.definite_pronoun_resolution_simple, found)


def texts_of(script: str, rows: Iterator[Rows]) -> Iterator[str]:
    """The members of a fixture: where it comes from, then the rows of each file."""
    versions = [f"python {platform.python_version()}"] + [f"{name} {version(name)}" for name in PACKAGES]
    yield f'"script": {json.dumps(script)}'
    yield f'"versions": {json.dumps(", ".join(versions))}'
    for task, file, pairs in rows:
        text = ",\n".join(json.dumps(pair, ensure_ascii=False) for pair in pairs)
        yield f"{json.dumps(f'{task}/{file}')}: [\n{text}\n]"


def write_fixture(path: Path, members: Iterable[str]) -> None:
    path.write_text("{\n" + ",\n".join(members) + "\n}\n", encoding="utf-8")


def main() -> None:
    output = output_directory(__doc__ or "") / "tasks.json"
    with tempfile.TemporaryDirectory() as directory:
        parts = [part(SAMPLE, directory) for part in (glue_tasks, mrpc_tasks, super_glue_tasks)]
        write_fixture(output, texts_of(Path(__file__).name, chain(*parts)))


if __name__ == "__main__":
    main()
