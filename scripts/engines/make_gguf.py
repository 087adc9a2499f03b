#!/usr/bin/env python3
"""Write a tiny random GGUF model, or a broken one, with nothing but the standard library.

    python3 scripts/engines/make_gguf.py KIND OUT.gguf [--layers N] [--dim N] [--context N] [--seed N]
    KIND: tiny | truncated | garbage | unknown-architecture

The same arguments give the same bytes. The default is 0.2 MB; `--layers 24 --dim 1536` gives 1.0 GB,
for a load that takes long enough to be interrupted or to hit a memory limit.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from make_models import TEMPLATE, byte_alphabet

KINDS = ("tiny", "truncated", "garbage", "unknown-architecture")
MERGES = ("h e", "l l", "he ll", "hell o", "\u0120 w", "o r", "t h", "th e", "i n", "a n")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
HEADS, KV_HEADS = 4, 2
ALIGNMENT = 32
# Value types of the format's key-value section, and tensor types.
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
TENSOR_F32, TENSOR_F16 = 0, 1
MOSTLY_F16 = 1
NORMAL, CONTROL = 1, 3
# A half's upper byte: the sign, the exponent of 2^-4, and two random bits of the mantissa.
UPPER = bytes(0x2C | (b & 0x83) for b in range(256))


@dataclass(frozen=True)
class Shape:
    """The sizes of the model."""

    layers: int = 2
    dim: int = 64
    context: int = 2048
    seed: int = 0
    architecture: str = "llama"


@dataclass(frozen=True)
class Spec:
    """A tensor before its data: rows and columns, or a vector of ones when `rows` is None."""

    name: str
    columns: int
    rows: int | None = None

    @property
    def size(self) -> int:
        """Bytes of data."""
        return 4 * self.columns if self.rows is None else 2 * self.rows * self.columns


def tokens() -> list[str]:
    """The vocabulary: bytes, merged pieces, special tokens."""
    return [*byte_alphabet(), *(m.replace(" ", "") for m in MERGES), *SPECIAL]


def specs(shape: Shape) -> list[Spec]:
    """Every tensor of a llama model of this size."""
    vocabulary, dim, inner = len(tokens()), shape.dim, 2 * shape.dim
    kv = KV_HEADS * (dim // HEADS)
    out = [
        Spec("token_embd.weight", dim, vocabulary),
        Spec("output_norm.weight", dim),
        Spec("output.weight", dim, vocabulary),
    ]
    for i in range(shape.layers):
        prefix = f"blk.{i}."
        out += [
            Spec(prefix + "attn_norm.weight", dim),
            Spec(prefix + "ffn_norm.weight", dim),
            Spec(prefix + "attn_q.weight", dim, dim),
            Spec(prefix + "attn_k.weight", dim, kv),
            Spec(prefix + "attn_v.weight", dim, kv),
            Spec(prefix + "attn_output.weight", dim, dim),
            Spec(prefix + "ffn_gate.weight", dim, inner),
            Spec(prefix + "ffn_up.weight", dim, inner),
            Spec(prefix + "ffn_down.weight", inner, dim),
        ]
    return out


def text(value: str) -> bytes:
    """A string as the format has it."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name: str, kind: int, data: bytes) -> bytes:
    """One key-value pair."""
    return text(name) + struct.pack("<I", kind) + data


def array(kind: int, items: Sequence[bytes]) -> bytes:
    """An array value."""
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def metadata(shape: Shape) -> list[bytes]:
    """The key-value section."""
    vocabulary = tokens()
    arch = shape.architecture
    numbers = {
        "block_count": shape.layers,
        "context_length": shape.context,
        "embedding_length": shape.dim,
        "feed_forward_length": 2 * shape.dim,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "rope.dimension_count": shape.dim // HEADS,
        "vocab_size": len(vocabulary),
    }
    kinds = [CONTROL if t in SPECIAL else NORMAL for t in vocabulary]
    return [
        key("general.architecture", STRING, text(arch)),
        key("general.name", STRING, text("tiny-random")),
        key("general.file_type", U32, struct.pack("<I", MOSTLY_F16)),
        *(key(f"{arch}.{n}", U32, struct.pack("<I", v)) for n, v in numbers.items()),
        key(f"{arch}.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)),
        key(f"{arch}.rope.freq_base", F32, struct.pack("<f", 10000.0)),
        key("tokenizer.ggml.model", STRING, text("gpt2")),
        key("tokenizer.ggml.pre", STRING, text("gpt-2")),
        key("tokenizer.ggml.tokens", ARRAY, array(STRING, [text(t) for t in vocabulary])),
        key("tokenizer.ggml.token_type", ARRAY, array(I32, [struct.pack("<i", k) for k in kinds])),
        key("tokenizer.ggml.merges", ARRAY, array(STRING, [text(m) for m in MERGES])),
        key("tokenizer.ggml.bos_token_id", U32, struct.pack("<I", vocabulary.index("<|endoftext|>"))),
        key("tokenizer.ggml.eos_token_id", U32, struct.pack("<I", vocabulary.index("<|im_end|>"))),
        key("tokenizer.ggml.add_bos_token", BOOL, b"\0"),
        key("tokenizer.chat_template", STRING, text(TEMPLATE)),
    ]


def padded(size: int) -> int:
    """The next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def header(shape: Shape) -> bytes:
    """Everything before the data."""
    pairs = metadata(shape)
    tensors = specs(shape)
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs)
    offset = 0
    for spec in tensors:
        dims = [spec.columns] if spec.rows is None else [spec.columns, spec.rows]
        kind = TENSOR_F32 if spec.rows is None else TENSOR_F16
        out += text(spec.name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += padded(spec.size)
    return out + bytes(padded(len(out)) - len(out))


def halves(rng: random.Random, count: int) -> bytes:
    """`count` random halves with 2^-4 <= |x| < 2^-3."""
    out = bytearray(2 * count)
    out[0::2] = rng.randbytes(count)
    out[1::2] = rng.randbytes(count).translate(UPPER)
    return bytes(out)


def printable(rows: bytes, columns: int) -> bytes:
    """Zero the output layer's rows for all that is not printable ASCII, so that a greedy answer is text."""
    step = 2 * columns
    parts = [rows[i : i + step] for i in range(0, len(rows), step)]
    return b"".join(p if 32 <= i < 127 else bytes(step) for i, p in enumerate(parts))


def data(shape: Shape) -> Iterator[bytes]:
    """The tensors' data, one after another, each padded."""
    rng = random.Random(shape.seed)
    for spec in specs(shape):
        if spec.rows is None:
            block = struct.pack("<f", 1.0) * spec.columns
        else:
            block = halves(rng, spec.rows * spec.columns)
        if spec.name == "output.weight":
            block = printable(block, spec.columns)
        yield block + bytes(padded(len(block)) - len(block))


def write_model(out: Path, shape: Shape) -> None:
    """Write a whole model."""
    with open(out, "wb") as handle:
        handle.write(header(shape))
        for block in data(shape):
            handle.write(block)


def make(kind: str, out: Path, shape: Shape | None = None) -> None:
    """Make one kind of file."""
    shape = shape or Shape()
    if kind == "garbage":
        out.write_bytes(random.Random(shape.seed).randbytes(65536))
        return
    if kind == "unknown-architecture":
        shape = Shape(shape.layers, shape.dim, shape.context, shape.seed, "frobnicator")
    write_model(out, shape)
    if kind == "truncated":
        os.truncate(out, out.stat().st_size * 2 // 3)


def main(argv: Sequence[str] | None = None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Make a tiny GGUF file, whole or broken.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--dim", type=int, default=Shape.dim, help="a multiple of 64")
    parser.add_argument("--context", type=int, default=Shape.context)
    parser.add_argument("--seed", type=int, default=Shape.seed)
    args = parser.parse_args(argv)
    make(args.kind, args.out, Shape(args.layers, args.dim, args.context, args.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
