# SPDX-License-Identifier: Apache-2.0
"""The peer of the finetuning benchmark: Hugging Face's T5, its `generate` and its Trainer.

Evaluates or trains once and prints a line of JSON. Then it does so once for each line of standard
input and prints the seconds. At the end of input it prints a summary. Examples come as ids from a
file, so that its tokenizer is not measured. Batches are made before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.utils.data import Dataset, SequentialSampler
from transformers import T5ForConditionalGeneration, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from measuring import end_on_sigterm
from peer import Clock, peak_bytes, print_line, serve_turns

IGNORED = -100  # A label that no loss counts.
Example = tuple[list[int], list[int]]


def padded(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])


def mask_of(rows: Sequence[Sequence[int]]) -> Tensor:
    return padded([[1] * len(row) for row in rows], 0)


def load(options: argparse.Namespace, **changes: Any) -> T5ForConditionalGeneration:
    model = T5ForConditionalGeneration.from_pretrained(
        options.model, dtype=torch.float32, attn_implementation=options.attention, **changes
    )
    assert isinstance(model, T5ForConditionalGeneration)
    return model


def facts(model: torch.nn.Module) -> dict[str, Any]:
    return {
        "ready": True,
        "threads": torch.get_num_threads(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


# --- evaluation -------------------------------------------------------------------------------


class Evaluation:
    """Outputs of all inputs, by beam search or greedy, in batches of inputs of like length unless told otherwise."""

    def __init__(self, options: argparse.Namespace) -> None:
        task = json.loads(options.examples.read_text(encoding="utf-8"))
        self.longest: int = task["longest"]
        self.beams: int = options.beams
        self.early_stopping: bool = options.early_stopping
        self.model = load(options).eval()
        inputs: list[list[int]] = task["inputs"]
        order = list(range(len(inputs)))
        if not options.in_order:
            order.sort(key=lambda i: len(inputs[i]))
        self.chunks = [order[at : at + options.batch] for at in range(0, len(order), options.batch)]
        rows = [[inputs[i] for i in chunk] for chunk in self.chunks]
        self.batches = [(padded(chunk, 0), mask_of(chunk)) for chunk in rows]
        self.outputs: list[list[int]] = [[] for _ in inputs]

    def run(self) -> None:
        end = self.model.config.eos_token_id
        for chunk, (ids, mask) in zip(self.chunks, self.batches, strict=True):
            generated = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=self.longest,
                do_sample=False,
                num_beams=self.beams,
                early_stopping=self.early_stopping,
            )
            for index, row in zip(chunk, generated[:, 1:].tolist(), strict=True):
                self.outputs[index] = row[: row.index(end)] if end in row else row


def evaluate(options: argparse.Namespace) -> None:
    evaluation = Evaluation(options)
    evaluation.run()
    serve_turns(facts(evaluation.model), evaluation.run, summary=lambda: {"outputs": evaluation.outputs})


# --- training ---------------------------------------------------------------------------------


class MicroBatches(Dataset[list[Example]]):
    """The examples of each step in `parts` parts, the shortest first: so little is padding."""

    def __init__(self, steps: Sequence[Sequence[Example]], parts: int) -> None:
        self.items: list[list[Example]] = []
        for examples in steps:
            by_length = sorted(examples, key=lambda example: len(example[0]))
            cuts = [len(by_length) * part // parts for part in range(parts + 1)]
            self.items += [by_length[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> list[Example]:
        return self.items[index]


def collate(items: Sequence[Sequence[Example]]) -> dict[str, Tensor]:
    (examples,) = items
    inputs = [example[0] for example in examples]
    return {
        "input_ids": padded(inputs, 0),
        "attention_mask": mask_of(inputs),
        "labels": padded([example[1] for example in examples], IGNORED),
    }


class Turns(TrainerCallback):
    """Times each step but the first, and waits for a line between two."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.clock = Clock()
        self.first = True

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.clock = Clock()

    def on_step_end(self, _arguments: Any, _state: Any, control: Any, **_: Any) -> None:
        seconds = self.clock.read()
        print_line(facts(self.model) if self.first else seconds)
        self.first = False
        if not sys.stdin.readline():
            control.should_training_stop = True


class OrderedTrainer(Trainer):
    """Takes the micro-batches in their order, and keeps their losses."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.losses: list[float] = []

    def _get_train_sampler(self, *_: Any) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)

    def compute_loss(self, *arguments: Any, **settings: Any) -> Any:
        loss = super().compute_loss(*arguments, **settings)
        self.losses.append(loss.item())
        return loss


def train(options: argparse.Namespace) -> None:
    steps = json.loads(options.examples.read_text(encoding="utf-8"))["examples"]
    model = load(options, dropout_rate=options.dropout)
    dataset = MicroBatches(steps, options.parts)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            max_steps=len(steps),
            per_device_train_batch_size=1,  # An item is a whole micro-batch.
            gradient_accumulation_steps=options.parts,
            learning_rate=options.rate,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=options.clip,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=False,
        )
        trainer = OrderedTrainer(
            model=model,
            args=arguments,
            train_dataset=dataset,
            data_collator=collate,
            callbacks=[Turns(model)],
        )
        trainer.remove_callback(PrinterCallback)  # It prints on standard output.
        trainer.train()
    batches = [collate([item]) for item in dataset.items]
    slots = [batch["input_ids"].numel() + batch["labels"].numel() for batch in batches]
    parts = options.parts
    print_line(
        {
            "losses": trainer.losses,
            "slots": [sum(slots[i : i + parts]) for i in range(0, len(slots), parts)],
            "peak_resident_bytes": peak_bytes(),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="as syntra convert exports it")
    parser.add_argument(
        "--examples", type=Path, required=True, help="ids, as finetune_bench prints"
    )
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="sdpa")
    parser.add_argument("--threads", type=int, required=True)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("evaluate")
    command.add_argument("--batch", type=int, required=True)
    command.add_argument("--beams", type=int, default=1, help="1: greedy decoding")
    command.add_argument("--early-stopping", action="store_true", help="once as many outputs as beams have ended")
    command.add_argument("--in-order", action="store_true", help="do not sort by length")
    command.set_defaults(run=evaluate)
    command = commands.add_parser("train")
    command.add_argument("--parts", type=int, default=1, help="micro-batches of a step")
    command.add_argument("--rate", type=float, required=True)
    command.add_argument("--clip", type=float, required=True)
    command.add_argument("--dropout", type=float, required=True, help="rate, in the place of the model's")
    command.set_defaults(run=train)
    options = parser.parse_args()
    end_on_sigterm()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    options.run(options)


if __name__ == "__main__":
    main()
