#!/usr/bin/env python3
"""Writes a tiny model with random weights, to compare the embedded model with llama.cpp.

    python3 tiny.py qwen2|qwen3 TEMPLATE.jinja MODEL.gguf

The files here have the chat templates of Qwen2.5-7B-Instruct and Qwen3-0.6B (Apache-2.0). Needs the Python package gguf.
"""

import sys

import gguf
import numpy
from gguf import GGMLQuantizationType as Type

ARCHITECTURE, TEMPLATE, TARGET = sys.argv[1:]
QWEN3 = ARCHITECTURE == "qwen3"
WIDTH, HEADS, KV_HEADS, INNER, LAYERS = 32, 2, 1, 64, 2
# Qwen3's heads may be wider than their share of the model.
HEAD = 32 if QWEN3 else WIDTH // HEADS

random = numpy.random.default_rng(7)
writer = gguf.GGUFWriter(TARGET, ARCHITECTURE)


def byte_tokens():
    """The 256 tokens of single bytes, as byte-level BPE writes them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in printable)
    names = {b: chr(b) for b in printable} | {b: chr(256 + n) for n, b in enumerate(others)}
    return [names[b] for b in range(256)]


def matrix(name, rows, columns, scale, rows_scale=None):
    values = (random.standard_normal((rows, columns)) * scale).astype(numpy.float32)
    if rows_scale is not None:
        values *= rows_scale[:, None]
    writer.add_tensor(name, gguf.quants.quantize(values, Type.Q8_0), raw_dtype=Type.Q8_0)


def vector(name, size, mean=1.0, scale=0.2):
    values = mean + random.standard_normal(size) * scale
    writer.add_tensor(name, values.astype(numpy.float32))


merges = ["t h", "h e", "Ġ t", "i n", "e r"]
tokens = byte_tokens() + [merge.replace(" ", "") for merge in merges]
control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
types = [1] * len(tokens) + [3] * len(control)
tokens += control

writer.add_name("tiny")
writer.add_block_count(LAYERS)
writer.add_context_length(4096)
writer.add_embedding_length(WIDTH)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(KV_HEADS)
writer.add_rope_freq_base(1e6)
writer.add_layer_norm_rms_eps(1e-6)
if QWEN3:
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("qwen2")
writer.add_token_list(tokens)
writer.add_token_types(types)
writer.add_token_merges(merges)
writer.add_bos_token_id(tokens.index("<|endoftext|>"))
writer.add_eos_token_id(tokens.index("<|im_end|>"))
writer.add_add_bos_token(False)
with open(TEMPLATE, encoding="utf-8") as file:
    writer.add_chat_template(file.read())

# llama.cpp's server reports no probabilities of parts of characters, so those are unlikely.
likely = [1.0 if token.isascii() and token not in control else 0.05 for token in tokens]
matrix("token_embd.weight", len(tokens), WIDTH, 1.0, numpy.array(likely, dtype=numpy.float32))
vector("output_norm.weight", WIDTH)
for layer in range(LAYERS):
    block = f"blk.{layer}."
    vector(block + "attn_norm.weight", WIDTH)
    vector(block + "ffn_norm.weight", WIDTH)
    matrix(block + "attn_q.weight", HEADS * HEAD, WIDTH, 0.3)
    matrix(block + "attn_k.weight", KV_HEADS * HEAD, WIDTH, 0.3)
    matrix(block + "attn_v.weight", KV_HEADS * HEAD, WIDTH, 0.3)
    matrix(block + "attn_output.weight", WIDTH, HEADS * HEAD, 0.3)
    if QWEN3:
        vector(block + "attn_q_norm.weight", HEAD)
        vector(block + "attn_k_norm.weight", HEAD)
    else:
        vector(block + "attn_q.bias", HEADS * HEAD, 0.0, 0.5)
        vector(block + "attn_k.bias", KV_HEADS * HEAD, 0.0, 0.5)
        vector(block + "attn_v.bias", KV_HEADS * HEAD, 0.0, 0.5)
    matrix(block + "ffn_gate.weight", INNER, WIDTH, 0.3)
    matrix(block + "ffn_up.weight", INNER, WIDTH, 0.3)
    matrix(block + "ffn_down.weight", WIDTH, INNER, 0.3)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
