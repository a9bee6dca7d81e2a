# SPDX-License-Identifier: Apache-2.0
"""INPUT OUTPUT: beam search by transformers and by T5's rule, over the logits of a T5 that transformers runs.

INPUT is a JSON file with a list of models, each with inputs, end_id, longest, and settings (size, alpha, outputs,
early_stopping); to OUTPUT go, for each setting and input, the outputs by T5's rule and, where the two rules rank alike, by transformers.

The rules differ in three things; all else is one search, written out here:

                                 T5 (mesh_tensorflow)                  transformers
  score of n tokens              log p / ((5 + n) / 6)^alpha           log p / n^length_penalty
  who may end at a step          the best 2 * size candidates          the best size candidates
  at the longest length          what has not ended follows what has,  what has not ended counts as ended
                                 where fewer have than are wanted

and in when an input is done (Rule.done). The search with transformers' rule must give what its generate gives, or
this program fails. So what it says of T5's rule is held to transformers by all but the table above.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import T5ForConditionalGeneration

LENGTH_PENALTIES = (0.0, 0.6, 2.0)
EARLY_STOPPING = (False, True, "never")
TOLERANCE = 1e-4

Ids = tuple[int, ...]
LogProbabilities = Callable[[Ids], list[float]]  # of what follows a prefix


@dataclass
class Output:
    ids: Ids  # without what ended them
    log_probability: float
    score: float


@dataclass
class Rule:
    size: int
    longest: int
    penalty: Callable[[int], float]
    may_end: int  # so many of the candidates
    cut_ends: bool  # at the longest length
    wanted: int  # so many outputs, if need be of beginnings that have not ended
    # From the finished outputs, the best beginning's log-probability and the length.
    done: Callable[[list[Output], float, int], bool]


def t5_rule(size: int, alpha: float, outputs: int, early_stopping: bool, longest: int) -> Rule:
    def penalty(length: int) -> float:
        return float(((5 + length) / 6) ** alpha)

    def done(finished: list[Output], alive: float, length: int) -> bool:
        if early_stopping and len(finished) >= size:
            return True
        return len(finished) >= outputs and finished[-1].score > alive / penalty(longest)

    return Rule(size, longest, penalty, 2 * size, False, outputs, done)


def transformers_rule(size: int, length_penalty: float, early_stopping: bool | str, longest: int) -> Rule:
    def penalty(length: int) -> float:
        return float(length ** length_penalty)

    def done(finished: list[Output], alive: float, length: int) -> bool:
        if len(finished) < size:
            return False
        reach = longest if early_stopping == "never" and length_penalty > 0 else length
        return early_stopping is True or alive / penalty(reach) <= finished[-1].score

    return Rule(size, longest, penalty, size, True, 0, done)


def search(following: LogProbabilities, end_id: int, rule: Rule) -> list[Output]:
    alive: list[tuple[float, Ids]] = [(0.0, ())]
    finished: list[Output] = []
    for length in range(1, rule.longest + 1):
        grown = [(total + value, ids, token) for total, ids in alive for token, value in enumerate(following(ids))]
        grown.sort(key=lambda candidate: -candidate[0])
        alive = []
        for rank, (total, ids, token) in enumerate(grown[:2 * rule.size]):
            if token == end_id or (rule.cut_ends and length == rule.longest):
                if rank < rule.may_end:
                    kept = ids if token == end_id else (*ids, token)
                    finished.append(Output(kept, total, total / rule.penalty(length)))
            elif len(alive) < rule.size:
                alive.append((total, (*ids, token)))
        finished.sort(key=lambda output: -output.score)
        del finished[rule.size:]
        if not alive or rule.done(finished, alive[0][0], length):
            break
    lacking = max(0, rule.wanted - len(finished))
    return finished + [Output(ids, total, total / rule.penalty(len(ids))) for total, ids in alive[:lacking]]


class Model:
    def __init__(self, directory: str) -> None:
        self.model = T5ForConditionalGeneration.from_pretrained(directory).float().eval()

    def following(self, encoder_ids: list[int]) -> LogProbabilities:
        """By whole forward passes, each prefix once."""
        ids = torch.tensor([encoder_ids])
        with torch.no_grad():
            encoded = self.model.get_encoder()(input_ids=ids)
        known: dict[Ids, list[float]] = {}

        def of(prefix: Ids) -> list[float]:
            if prefix not in known:
                with torch.no_grad():
                    logits = self.model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([(0, *prefix)])).logits
                known[prefix] = logits[0, -1].double().log_softmax(-1).tolist()
            return known[prefix]

        return of

    def generate(self, encoder_ids: list[int], end_id: int, rule: dict[str, Any]) -> list[Output]:
        with torch.no_grad():
            made = self.model.generate(
                torch.tensor([encoder_ids]), do_sample=False, eos_token_id=end_id, pad_token_id=0,
                decoder_start_token_id=0, num_return_sequences=rule["num_beams"], output_scores=True,
                return_dict_in_generate=True, **rule)
        outputs = []
        for row, score in zip(made.sequences.tolist(), made.sequences_scores.tolist(), strict=True):
            ids = row[1:1 + rule["max_new_tokens"]]
            outputs.append(Output(tuple(ids[:ids.index(end_id)] if end_id in ids else ids), 0, score))
        return outputs


def compare(ours: list[Output], theirs: list[Output], what: str) -> None:
    """transformers fills up with what never ended (-1e9), and pads what ended: an output ends at its end id."""
    theirs = [output for output in theirs if output.score > -1e8]
    same = len(ours) == len(theirs) and all(
        a.ids == b.ids[:len(a.ids)] and not any(b.ids[len(a.ids):]) and abs(a.score - b.score) <= TOLERANCE
        for a, b in zip(ours, theirs, strict=False))
    if not same:
        raise RuntimeError(f"{what}: the rule written out gives {ours}, transformers {theirs}")


def run(asked: dict[str, Any]) -> dict[str, Any]:
    model = Model(asked["model"])
    end_id, longest = asked["end_id"], asked["longest"]
    answers = []
    for encoder_ids in asked["inputs"]:
        following = model.following(encoder_ids)
        generated: dict[int, list[Output]] = {}
        for size in sorted({setting["size"] for setting in asked["settings"]}):
            for length_penalty in LENGTH_PENALTIES:
                for early_stopping in EARLY_STOPPING:
                    rule = {"num_beams": size, "length_penalty": length_penalty, "early_stopping": early_stopping,
                            "max_new_tokens": longest}
                    theirs = model.generate(encoder_ids, end_id, rule)
                    compare(search(following, end_id, transformers_rule(size, length_penalty, early_stopping, longest)),
                            theirs, f"input {encoder_ids}, {rule}")
                    if length_penalty == 0 and early_stopping == "never":
                        generated[size] = theirs
        for setting in asked["settings"]:
            rule = t5_rule(**setting, longest=longest)
            answer = {"t5": [[list(output.ids), round(output.log_probability, 6), round(output.score, 6)]
                             for output in search(following, end_id, rule)[:setting["outputs"]]]}
            # Without a penalty the two scores are one, and neither rule stops before the best output is found.
            if setting["alpha"] == 0 and not setting["early_stopping"]:
                best = generated[setting["size"]][0]
                answer["transformers"] = [list(best.ids), round(best.score, 6)]
            answers.append(answer)
    return {"asked": asked, "answers": answers}


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answer = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__},
              "models": [run(each) for each in asked]}
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
