# SPDX-License-Identifier: Apache-2.0
"""Two tiny models as transformers stores them, with the logits and the greedy text that it computes.

t5_v1_0   T5 v1.0: ReLU, tied embeddings, one model.safetensors in f32
flan_t5   T5 v1.1 and FLAN-T5: gated GELU, an output matrix of its own, fewer decoder than encoder layers, several
          files and their index, weights in bf16

Each directory also holds expected.json. The tokenizer is trained here and numbered as T5's. Run like the other
scripts of this folder, with sentencepiece and safetensors beside the packages of requirements.txt.
"""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

from fixture import output_directory, rounded

EXTRA_IDS = 12
VOCABULARY = 80
WORDS = ("the a cat dog bird sat ran flew on over under mat tree house blue red small big and then was is not "
         "it he she they saw heard old new").split()
INPUTS = ("the cat sat on the mat", "a big dog ran over <extra_id_0> and it saw the red <extra_id_1>", "birds flew")
TARGETS = ("the dog ran under", "<extra_id_0> a tree <extra_id_1> house", "they heard it then")
NEW_TOKENS = 12

CASES = {
    "t5_v1_0": {"feed_forward_proj": "relu", "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "tied": True,
                "dtype": torch.float32, "files": 1},
    "flan_t5": {"feed_forward_proj": "gated-gelu", "num_layers": 2, "num_decoder_layers": 1, "num_heads": 3,
                "tied": False, "dtype": torch.bfloat16, "files": 3},
}


def sentencepiece_model() -> bytes:
    generator = np.random.default_rng(3)
    lines = [" ".join(generator.choice(WORDS, 12)) for _ in range(400)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="unigram", vocab_size=100,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, pad_piece="<pad>", normalization_rule_name="identity",
        hard_vocab_limit=False, num_threads=1, minloglevel=2)
    return model.getvalue()


def make_model(case: dict, seed: int, pieces: int) -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=24, num_layers=case["num_layers"],
        num_decoder_layers=case["num_decoder_layers"], num_heads=case["num_heads"],
        feed_forward_proj=case["feed_forward_proj"], tie_word_embeddings=case["tied"], dropout_rate=0.1,
        relative_attention_num_buckets=16, relative_attention_max_distance=32, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config)
    if not case["tied"]:
        # transformers 5 ties the weights of a new model whatever its configuration says.
        model.lm_head.weight = torch.nn.Parameter(torch.zeros(VOCABULARY, 16))
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = generator.standard_normal(tuple(parameter.shape))
            if name.endswith("layer_norm.weight"):
                drawn = 1 + 0.2 * drawn
            elif name == "shared.weight":
                drawn = 0.1 * drawn  # small beside the layers' outputs, so that the text is not one word again and again
            elif name != "lm_head.weight":
                drawn = drawn * parameter.shape[1] ** -0.5
            if name in ("shared.weight", "lm_head.weight"):
                drawn[:3] *= 0.05  # what has no text is small, so that the greedy outputs are texts
                drawn[pieces:] *= 0.05
            parameter.copy_(torch.from_numpy(rounded(drawn)).to(case["dtype"]).float())
    return model.eval()


def write_weights(directory: Path, model: T5ForConditionalGeneration, case: dict) -> None:
    tensors = {name: value.detach().to(case["dtype"]).contiguous().clone()
               for name, value in model.named_parameters()}
    if case["files"] == 1:
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    weight_map = {}
    for part in range(case["files"]):
        file = f"model-{part + 1:05d}-of-{case['files']:05d}.safetensors"
        chosen = names[part::case["files"]]
        save_file({name: tensors[name] for name in chosen}, directory / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(chosen, file))
    (directory / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map}, indent=1) + "\n")


def write_config(directory: Path, model: T5ForConditionalGeneration, case: dict) -> None:
    """As transformers 4 and the published models have it: version 5 no longer says what is tied."""
    config = {key: value for key, value in model.config.to_dict().items()
              if key in T5Config().to_diff_dict() or key in (
                  "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads", "vocab_size",
                  "feed_forward_proj", "dropout_rate", "layer_norm_epsilon", "relative_attention_num_buckets",
                  "relative_attention_max_distance", "decoder_start_token_id", "eos_token_id", "pad_token_id",
                  "is_encoder_decoder", "initializer_factor", "model_type", "is_gated_act", "dense_act_fn")}
    config.update(architectures=["T5ForConditionalGeneration"], tie_word_embeddings=case["tied"], n_positions=64)
    (directory / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def write_case(root: Path, name: str, spiece: bytes, seed: int) -> None:
    case = CASES[name]
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spiece).get_piece_size()
    model = make_model(case, seed, pieces)
    write_weights(directory, model, case)
    write_config(directory, model, case)
    (directory / "spiece.model").write_bytes(spiece)
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": EXTRA_IDS}) + "\n")

    loaded = T5ForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    if (loaded.lm_head.weight.data_ptr() == loaded.shared.weight.data_ptr()) != case["tied"]:
        raise RuntimeError(f"{name}: not tied as configured")
    inputs = tokenizer(list(INPUTS), padding=True, return_tensors="pt")
    targets = tokenizer(list(TARGETS), padding=True, return_tensors="pt")
    decoder_ids = torch.zeros_like(targets.input_ids)
    decoder_ids[:, 1:] = targets.input_ids[:, :-1]
    with torch.no_grad():
        logits = loaded(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask,
                        decoder_input_ids=decoder_ids, decoder_attention_mask=targets.attention_mask).logits
        generated = loaded.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False, num_beams=1)
    expected = {
        "made_by": Path(__file__).name,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                     "sentencepiece": sentencepiece.__version__},
        "inputs": list(INPUTS), "targets": list(TARGETS),
        "encoder_ids": inputs.input_ids.tolist(), "encoder_segments": inputs.attention_mask.tolist(),
        "decoder_ids": decoder_ids.tolist(), "decoder_segments": targets.attention_mask.tolist(),
        "greedy_ids": [[int(i) for i in row[1:] if i != 0] for row in generated],
        "greedy_text": tokenizer.batch_decode(generated, skip_special_tokens=True),
        "logits": [[[float(f"{value:.6g}") for value in position] for position in row] for row in logits.tolist()],
    }
    (directory / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


def main() -> None:
    root = output_directory("Writes the Hugging Face fixtures.")
    torch.set_num_threads(1)
    spiece = sentencepiece_model()
    for seed, name in enumerate(CASES, start=41):
        write_case(root, name, spiece, seed)


if __name__ == "__main__":
    main()
