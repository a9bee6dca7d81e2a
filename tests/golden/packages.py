# SPDX-License-Identifier: Apache-2.0
"""Mixers as the field's packages compute them, from the parameters of a fixture's layer.

The scripts of the mixers hold their own formulas to these: y [T, D] of one example or row x [T, D]. Where a package has
another convention, the parameters or a patch undo it; each function says which. What a package scales by K^-0.5 and
Syntra does not, the query takes back.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
from aft_pytorch import AFTFull
from g_mlp_pytorch.g_mlp_pytorch import gMLPBlock
from linformer import LinformerSelfAttention
from local_attention import LocalAttention
from mlp_mixer_pytorch.mlp_mixer_pytorch import FeedForward
from performer_pytorch import performer_pytorch
from reformer_pytorch.reformer_pytorch import LSHAttention
from sinkhorn_transformer.sinkhorn_transformer import SinkhornAttention, sinkhorn_sorting_operator
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torchscale.component.multiscale_retention import MultiScaleRetention
from transformers import BigBirdConfig, BigBirdModel, FNetConfig, LongformerConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention
from transformers.models.fnet.modeling_fnet import FNetBasicFourierTransform
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

# They are imported for parts of torchscale that nothing here uses.
UNUSED = ("fairscale", "fairscale.nn", "timm", "timm.models", "timm.models.layers")
with mock.patch.dict(sys.modules, dict.fromkeys(UNUSED, mock.MagicMock())):
    from torchscale.architecture.retnet import RetNetRelPos

Tensors = dict[str, Tensor]

POSITION_MAPS = ("transformers", "linformer", "mlp-mixer-pytorch", "g-mlp-pytorch")
LINEAR_MIXERS = ("performer-pytorch", "torchscale", "aft-pytorch")
SPARSE_ATTENTION = ("local-attention", "transformers", "sinkhorn-transformer", "reformer-pytorch")


def call(layer: nn.Module, parameters: Tensors, *inputs: Tensor) -> Tensor:
    """The layer's result with these for all of its parameters."""
    names = {name for name, _ in layer.named_parameters()}
    if names != set(parameters):
        raise RuntimeError(f"{type(layer).__name__} has other parameters: {sorted(names ^ set(parameters))}")
    result: Tensor = functional_call(layer, parameters, inputs)
    return result


def zeros(count: int) -> Tensor:
    return torch.zeros(count, dtype=torch.float64)


def heads_of(x: Tensor, heads: int) -> Tensor:
    """[T, H * K] to [H, T, K]."""
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)


def project(values: Tensors, x: Tensor, side: str, heads: int) -> Tensor:
    return heads_of(x @ values[side], heads)


def output(values: Tensors, mixed: Tensor) -> Tensor:
    """Of [H, T, K]."""
    return mixed.transpose(0, 1).flatten(-2) @ values["output"]


# --- maps over positions ------------------------------------------------------------------------


def fourier(x: Tensor, length: int) -> Tensor:
    """transformers' FNet."""
    padded = functional.pad(x, (0, 0, 0, length - len(x)))
    result: Tensor = FNetBasicFourierTransform(FNetConfig())(padded[None])[0][0, :len(x)]
    return result


def linformer(values: Tensors, x: Tensor, heads: int) -> Tensor:
    """The package's maps are the same for all heads: heads with their own are a layer each, and these add up."""
    maps = [values["project_key"], values.get("project_value", values["project_key"])]
    if maps[0].ndim == 3:
        parts = []
        for head in range(heads):
            own = {side: values[side].chunk(heads, -1)[head] for side in ("query", "key", "value")}
            own |= {"output": values["output"].chunk(heads, 0)[head]}
            own |= {"project_key": maps[0][head], "project_value": maps[1][head]}
            parts.append(linformer(own, x, 1))
        return torch.stack(parts).sum(0)
    rows, length = maps[0].shape
    size = values["query"].shape[1] // heads
    layer = LinformerSelfAttention(x.shape[-1], length, k=rows, heads=heads, dim_head=size)
    parameters = {"to_q.weight": values["query"].T * size**0.5, "to_k.weight": values["key"].T,
                  "to_v.weight": values["value"].T, "proj_k": maps[0].T, "proj_v": maps[1].T,
                  "to_out.weight": values["output"].T, "to_out.bias": zeros(x.shape[-1])}
    return call(layer, parameters, x[None])[0]


def token_mlp(values: Tensors, x: Tensor) -> Tensor:
    """MLP-Mixer. The authors' GELU is that by tanh, the package's is not."""
    hidden, length = values["input"].shape
    layer = FeedForward(length, hidden, dense=lambda *sizes: nn.Conv1d(*sizes, kernel_size=1))
    layer[1] = nn.GELU(approximate="tanh")
    parameters = {"0.weight": values["input"][..., None], "0.bias": values["input_bias"][:, 0],
                  "3.weight": values["output"][..., None], "3.bias": values["output_bias"][:, 0]}
    return call(layer, parameters, functional.pad(x, (0, 0, 0, length - len(x)))[None])[0, :len(x)]


def gated_mlp(values: Tensors, x: Tensor, heads: int, attention: int, causal: bool) -> Tensor:
    """gMLP and aMLP. The block is made for as many positions as there are: only its causal form cuts its map."""
    length, (width, inner) = len(x), values["input"].shape
    layer = gMLPBlock(dim=width, dim_ff=inner, seq_len=length, heads=heads, attn_dim=attention or None, causal=causal)
    parameters = {"proj_in.0.weight": values["input"].T, "proj_in.0.bias": values["input_bias"],
                  "sgu.norm.weight": values["gate_norm"], "sgu.norm.bias": values["gate_norm_bias"],
                  "sgu.weight": values["map"][:, :length, :length], "sgu.bias": values["map_bias"][:length, :, 0].T,
                  "proj_out.weight": values["output"].T, "proj_out.bias": values["output_bias"]}
    if attention:
        sides = torch.cat([values[f"attention/{side}"] for side in ("query", "key", "value")], -1)
        parameters |= {"attn.to_qkv.weight": sides.T, "attn.to_out.weight": values["attention/output"].T,
                       "attn.to_out.bias": zeros(inner // 2)}
    return call(layer, parameters, x[None])[0]


# --- without a softmax over pairs of positions --------------------------------------------------


def feature_attention(query: Tensor, key: Tensor, value: Tensor, causal: bool, least: Tensor | float) -> Tensor:
    """Of features [H, T, F]: performer-pytorch's.

    It adds nothing to the sums of weights. `least` [T, 1] comes from a first key whose value is zero.
    """
    query = torch.cat([query, torch.ones_like(query[..., :1]) * least], -1)
    key = functional.pad(key, (0, 1, 1, 0))
    key[:, 0, -1] = 1
    query, value = (functional.pad(rows, (0, 0, 1, 0), value=fill) for rows, fill in ((query, 1.0), (value, 0.0)))
    if causal:
        mixed = performer_pytorch.causal_linear_attention_noncuda(query[None], key[None], value[None], eps=0)
    else:
        mixed = performer_pytorch.linear_attention(query[None], key[None], value[None])
    return mixed[0, :, 1:]


def linear_attention(values: Tensors, x: Tensor, heads: int, causal: bool) -> Tensor:
    """The sums of performer-pytorch, with torch's elu."""
    query, key = (functional.elu(project(values, x, side, heads)) + 1 for side in ("query", "key"))
    return output(values, feature_attention(query, key, project(values, x, "value", heads), causal, 1e-6))


def performer(values: Tensors, x: Tensor, heads: int, kernel: str, causal: bool) -> Tensor:
    """performer-pytorch's features.

    It takes the gradient as if the largest features were constants. In a decoder it divides keys by the largest of all,
    later ones too.
    """
    query, key, value = (project(values, x, side, heads)[None] for side in ("query", "key", "value"))
    vectors = values["features"].T
    if kernel == "RELU":
        query, key = (performer_pytorch.generalized_kernel(rows, projection_matrix=vectors) for rows in (query, key))
        return output(values, feature_attention(query[0], key[0], value[0], causal, 1e-6))
    largest: Tensor | float = 1.0
    if causal:
        largest = (-(query.shape[-1] ** -0.25 * key @ vectors.T).amax((-1, -2), keepdim=True)).exp()
    with mock.patch.object(Tensor, "detach", lambda self: self):
        query = performer_pytorch.softmax_kernel(query, projection_matrix=vectors, is_query=True, eps=1e-4)
        key = performer_pytorch.softmax_kernel(key, projection_matrix=vectors, is_query=False, eps=1e-4 * largest)
    least = torch.ones(1, 1, 1, 1, dtype=torch.float64) * 1e-6 * largest / len(vectors)
    return output(values, feature_attention(query[0], key[0], value[0], causal, least[0]))


def retention(values: Tensors, x: Tensor, heads: int, causal: bool) -> Tensor:
    """torchscale's; its decays are float32.

    It pairs neighbouring columns, scales keys by K^-0.5, divides by sums of weights that exceed 1 (never here: values
    take back what queries are made smaller by), and since version 0.3 has an RMS norm for the paper's group norm.
    """
    width, inner = values["query"].shape
    value_width = values["value"].shape[-1]
    size, value_size = inner // heads, value_width // heads
    pairs = torch.arange(inner).unflatten(0, (heads, 2, -1)).mT.flatten()
    layer = MultiScaleRetention(SimpleNamespace(multiway=False, layernorm_eps=1e-6), width, value_width, heads)
    layer.group_norm = nn.LayerNorm(value_size, eps=1e-6, elementwise_affine=False)
    smaller = 2.0**-10
    parameters = {"q_proj.weight": values["query"].T[pairs] * size**0.5 * smaller,
                  "k_proj.weight": values["key"].T[pairs], "v_proj.weight": values["value"].T / smaller,
                  "g_proj.weight": values["gate"].T, "out_proj.weight": values["output"].T}
    sizes = SimpleNamespace(decoder_embed_dim=inner, decoder_retention_heads=heads, recurrent_chunk_size=1)
    tables = RetNetRelPos(sizes)
    places = torch.arange(len(x), dtype=torch.float64)
    distances = (places[:, None] - places).abs()
    mask = (tables.decay.double()[:, None, None] * distances).exp()
    angles = places[:, None] * tables.angle.double()
    return call(layer, parameters, x[None], ((angles.sin(), angles.cos()), mask.tril() if causal else mask))[0]


def attention_free(values: Tensors, x: Tensor, biases: Tensor) -> Tensor:
    """aft-pytorch's AFTFull; `biases` [T, T] are zero outside a window, minus infinity where nothing is read."""
    width, inner = values["query"].shape
    names = {"to_q": "query", "to_k": "key", "to_v": "value", "project": "output"}
    parameters = {f"{name}.weight": values[own].T for name, own in names.items()}
    parameters |= {f"{name}.bias": zeros(values[own].shape[1]) for name, own in names.items()}
    return call(AFTFull(len(x), width, inner), parameters | {"wbias": biases}, x[None])[0]


# --- sparse attention: rows with segments, of which those of padding do not count ------------------


def parts_of(segments: np.ndarray) -> list[slice]:
    """The examples of a row."""
    starts = [0, *(np.flatnonzero(np.diff(segments)) + 1), len(segments)]
    return [slice(*pair) for pair in zip(starts, starts[1:], strict=False) if segments[pair[0]]]


def local_attention(values: Tensors, x: Tensor, segments: np.ndarray, heads: int, radius: int, dilation: int,
                    causal: bool) -> Tensor:
    """local-attention's, example by example; with a dilation d by the d rows of every d-th position."""
    window = radius - 1
    layer = LocalAttention(window, causal=causal, exact_windowsize=True, autopad=True, scale=1.0,
                           use_rotary_pos_emb=False)
    i, j = np.indices((window, window * (2 if causal else 3)))
    bias = values.get("bias")
    if bias is not None:
        middle = bias.shape[1] // 2
        bias = bias[:, np.clip((j - window - i) * dilation + middle, 0, 2 * middle)]
    query, key, value = (project(values, x, side, heads) for side in ("query", "key", "value"))
    mixed = torch.zeros_like(query)
    for part in parts_of(segments):
        for first in range(part.start, min(part.start + dilation, part.stop)):
            own = slice(first, part.stop, dilation)
            real = torch.ones(1, len(x[own]), dtype=torch.bool)
            mixed[:, own] = layer(query[:, own], key[:, own], value[:, own], mask=real, attn_bias=bias)
    return output(values, mixed)


def longformer(values: Tensors, x: Tensor, segments: np.ndarray, heads: int, radius: int, global_tokens: int) -> Tensor:
    """transformers' Longformer, example by example, but softmax in float64.

    Global tokens have projections of their own there; without `global/` both are the same.
    """
    window, width = 2 * (radius - 1), x.shape[-1]
    config = LongformerConfig(hidden_size=width, num_attention_heads=heads, attention_window=[window],
                              attention_probs_dropout_prob=0.0)
    layer = LongformerSelfAttention(config, 0)
    size = values["query"].shape[1] // heads
    parameters: Tensors = {}
    for side, factor in (("query", size**0.5), ("key", 1.0), ("value", 1.0)):
        for name, weight in ((side, values[side]), (f"{side}_global", values.get(f"global/{side}", values[side]))):
            parameters |= {f"{name}.weight": weight.T * factor, f"{name}.bias": zeros(width)}
    rows = torch.zeros_like(x)
    for part in parts_of(segments):
        own = functional.pad(x[part], (0, 0, 0, -len(x[part]) % window))
        places = torch.arange(len(own))[None]
        is_padding, is_global = places >= len(x[part]), places + part.start < global_tokens
        mask = 10000.0 * (is_global.double() - is_padding.double())
        with mock.patch.object(functional, "softmax", lambda scores, dim, dtype=None: torch.softmax(scores, dim)):
            mixed = functional_call(layer, parameters, (own[None], mask, is_padding, is_global, bool(is_global.any())))
        rows[part] = mixed[0][0, :len(x[part])] @ values["output"]
    return rows


def big_bird(values: Tensors, x: Tensor, segments: np.ndarray, block_size: int, blocks: np.ndarray) -> Tensor:
    """transformers' BigBird with the random blocks of `blocks`, which tells [H, blocks, blocks] who reads whom."""
    heads, count, _ = blocks.shape
    i, j = np.indices((count, count))
    own = (abs(i - j) > 1) & (j > 0) & (j < count - 1) & blocks
    random = np.array([[np.flatnonzero(row) for row in head[1:-1]] for head in own])
    config = BigBirdConfig(hidden_size=x.shape[-1], num_attention_heads=heads, block_size=block_size, use_bias=False,
                           num_random_blocks=random.shape[-1])
    layer = BigBirdBlockSparseAttention(config).eval()
    factor = (values["query"].shape[1] // heads) ** 0.5
    parameters = {"query.weight": values["query"].T * factor, "key.weight": values["key"].T,
                  "value.weight": values["value"].T}
    length = count * block_size
    padded = functional.pad(x, (0, 0, 0, length - len(x)))[None]
    rows = torch.zeros_like(x)
    for part in parts_of(segments):
        mask = zeros(length)[None]
        mask[:, part] = 1
        blocked, band, rows_mask, columns_mask = BigBirdModel.create_masks_for_block_sparse_attn(mask, block_size)
        with mock.patch.object(layer, "_bigbird_block_rand_mask_with_head", return_value=random):
            mixed, _ = functional_call(layer, parameters, (padded, band, rows_mask, columns_mask, blocked, blocked))
        rows[part] = mixed[0, part] @ values["output"]
    return rows


def sinkhorn(values: Tensors, x: Tensor, heads: int, block_size: int, iterations: int, temperature: float) -> Tensor:
    """sinkhorn-transformer's normalization and attention, from Syntra's logits and least weight, without Gumbel noise.

    It stops at columns where Syntra goes on to rows. It mixes keys where it should mix values: keys and values side by
    side, the latter without a query, give both.
    """
    blocks = len(x) // block_size
    logits = (x.unflatten(0, (blocks, -1)).sum(1) @ values["sorting"]).unflatten(-1, (heads, -1)).transpose(0, 1)
    weights = (logits[..., :blocks] / temperature).softmax(-1) + 1e-12
    sorting = sinkhorn_sorting_operator(weights.log(), iterations)
    sorting = sorting / sorting.sum(-1, keepdim=True)
    query, key, value = (project(values, x, side, heads)[None] for side in ("query", "key", "value"))
    size = query.shape[-1]
    layer = SinkhornAttention(block_size, heads * size, size, heads, len(x))
    query = torch.cat([query * (2 * size) ** 0.5, torch.zeros_like(query)], -1)
    both = torch.cat([key, value], -1)
    with mock.patch.object(layer.sort_net, "forward", return_value=sorting):
        mixed = layer(query, both, both)
    return output(values, mixed[0, ..., size:])


def reformer(values: Tensors, x: Tensor, segments: np.ndarray, chunk_length: int, buckets: int, rounds: int,
             causal: bool) -> Tensor:
    """reformer-pytorch's without attention across buckets, with Syntra's rotations, number of buckets and epsilon.

    It sorts buckets in ascending order: opposite rotations in reverse number them backwards. Those of an example come
    behind all of the next one's, those of padding last.
    """
    heads, size, _ = values["rotation"].shape
    rotation = -values["rotation"].unflatten(-1, (rounds, buckets // 2)).flip(-1)
    layer = LSHAttention(bucket_size=chunk_length, n_hashes=rounds, attend_across_buckets=False, causal=causal,
                         random_rotations_per_head=True).eval()
    hash_alike = layer.hash_vectors
    query, value = (functional.pad(project(values, x, side, heads), (0, 0, 0, -len(x) % (2 * chunk_length)))
                    for side in ("query", "value"))
    padded = np.pad(segments, (0, query.shape[1] - len(x)))
    most = segments.max()
    groups = torch.from_numpy(np.where(padded > 0, most - padded, most)).repeat(rounds)

    def hash_vectors(_: int, rows: Tensor, **settings: object) -> Tensor:
        with mock.patch.object(torch, "randn", return_value=rotation):
            found = hash_alike(buckets, rows, **settings)
        return (found // buckets * (most + 1) + groups) * buckets + found % buckets

    def normalize(rows: Tensor, **_: object) -> Tensor:
        rows = rows / size**0.5
        return rows / (rows.square().sum(-1, keepdim=True) + 1e-6).sqrt()

    with mock.patch.object(layer, "hash_vectors", hash_vectors), mock.patch.object(functional, "normalize", normalize):
        mixed, _, _ = layer(query * size**0.5, value)
    return output(values, mixed[:, :len(x)])
