#!/usr/bin/env python3
"""Make a tiny Qwen3 checkpoint, or one of its broken variants, with nothing but the standard library.

    python3 scripts/engines/make_models.py KIND OUTDIR [--layers N] [--hidden N] [--seed N]
    python3 scripts/engines/make_models.py --cached KIND      makes it in the cache once, prints its directory

The result depends on the arguments alone, byte for byte. It is a real checkpoint: five or more safetensors
shards with an index, a byte-level tokenizer and a chat template, about 1.5 MB, that SGLang, vLLM and
transformers all load and answer from. The weights are random, so the answers are letters without sense; the
rows of the output layer are zero for all that is not printable ASCII, so that a greedy answer is text and
never ends before `max_tokens`.

Files are written by hand rather than with transformers, because a tokenizer that one of its major versions
saves cannot be read by the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_cache import cache_dir, locked

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 320  # 256 bytes and the special tokens, rounded up to what tensor parallelism can split
CONTEXT = 2048
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
ONE = b"\x80\x3f"  # 1.0 as bfloat16
# A bfloat16's upper byte: the sign and seven bits of the exponent. These two give 2^-7 <= |x| < 2^-5.
UPPER = bytes(0x3C if b < 128 else 0xBC for b in range(256))


@dataclass(frozen=True)
class Shape:
    """The sizes of the model."""

    layers: int = 4
    hidden: int = 128
    seed: int = 0

    head: int = 32

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.hidden // self.head

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return max(1, self.heads // 2)

    @property
    def inner(self) -> int:
        """Width of the feed-forward layers."""
        return 2 * self.hidden


@dataclass(frozen=True)
class Tensor:
    """A named bfloat16 tensor."""

    name: str
    shape: tuple[int, ...]
    data: bytes


def byte_alphabet() -> list[str]:
    """The printable character that stands for each byte in a byte-level tokenizer (GPT-2's table)."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(spare)) for b in range(256)]


def noise(rng: random.Random, count: int) -> bytes:
    """`count` small random bfloat16 numbers, symmetric around zero."""
    out = bytearray(2 * count)
    out[0::2] = rng.randbytes(count)
    out[1::2] = rng.randbytes(count).translate(UPPER)
    return bytes(out)


def printable_rows(data: bytes, width: int) -> bytes:
    """Zero every row of the output layer that is not a printable ASCII character."""
    step = 2 * width
    zero = bytes(step)
    rows = (data[i * step : (i + 1) * step] if 32 <= i < 127 else zero for i in range(VOCABULARY))
    return b"".join(rows)


def layer_tensors(shape: Shape, index: int) -> list[Tensor]:
    """The tensors of one decoder layer."""
    rng = random.Random(f"{shape.seed} layer {index}")
    h, q, kv = shape.hidden, shape.heads * shape.head, shape.kv_heads * shape.head
    prefix = f"model.layers.{index}."
    matrices = {
        "self_attn.q_proj": (q, h),
        "self_attn.k_proj": (kv, h),
        "self_attn.v_proj": (kv, h),
        "self_attn.o_proj": (h, q),
        "mlp.gate_proj": (shape.inner, h),
        "mlp.up_proj": (shape.inner, h),
        "mlp.down_proj": (h, shape.inner),
    }
    norms = {
        "input_layernorm": h,
        "post_attention_layernorm": h,
        "self_attn.q_norm": shape.head,
        "self_attn.k_norm": shape.head,
    }
    tensors = [Tensor(f"{prefix}{n}.weight", s, noise(rng, s[0] * s[1])) for n, s in matrices.items()]
    return tensors + [Tensor(f"{prefix}{n}.weight", (size,), ONE * size) for n, size in norms.items()]


def outer_tensors(shape: Shape) -> list[Tensor]:
    """Embedding, final norm and output layer."""
    rng = random.Random(f"{shape.seed} outer")
    size = (VOCABULARY, shape.hidden)
    count = VOCABULARY * shape.hidden
    return [
        Tensor("model.embed_tokens.weight", size, noise(rng, count)),
        Tensor("model.norm.weight", (shape.hidden,), ONE * shape.hidden),
        Tensor("lm_head.weight", size, printable_rows(noise(rng, count), shape.hidden)),
    ]


def write_safetensors(path: Path, tensors: Sequence[Tensor]) -> None:
    """Write one shard: the header's length, a JSON header, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + len(tensor.data)
        header[tensor.name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for tensor in tensors:
            out.write(tensor.data)


def shard_name(index: int, count: int) -> str:
    """The usual name of a shard; shards count from one."""
    return f"model-{index:05d}-of-{count:05d}.safetensors"


def write_weights(out: Path, shape: Shape) -> None:
    """Write one shard per layer, one for the rest, and the index over them."""
    count = shape.layers + 1
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(1, count + 1):
        tensors = outer_tensors(shape) if number == 1 else layer_tensors(shape, number - 2)
        name = shard_name(number, count)
        write_safetensors(out / name, tensors)
        weight_map.update({t.name: name for t in tensors})
        total += sum(len(t.data) for t in tensors)
    write_json(out / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_json(path: Path, value: object) -> None:
    """Write a JSON file the way checkpoints have them."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def config(shape: Shape) -> dict[str, object]:
    """The model's config.json, in the spelling that every version of transformers reads."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 256,
        "eos_token_id": 258,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.inner,
        "max_position_embeddings": CONTEXT,
        "max_window_layers": shape.layers,
        "model_type": "qwen3",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": VOCABULARY,
    }


def tokenizer() -> dict[str, object]:
    """A byte-level tokenizer without merges: one token per byte."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [
        {
            "id": 256 + i,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, text in enumerate(SPECIAL)
    ]
    vocabulary = {text: i for i, text in enumerate([*byte_alphabet(), *SPECIAL])}
    model: dict[str, object] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocabulary,
        "merges": [],
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": model,
    }


def tokenizer_config() -> dict[str, object]:
    """Names the tokenizer's class the way both transformers 4 and 5 know it."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
        "chat_template": TEMPLATE,
    }


def make_whole(out: Path, shape: Shape) -> None:
    """Write the checkpoint that works."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "config.json", config(shape))
    write_json(out / "generation_config.json", {"eos_token_id": 258, "pad_token_id": 256})
    write_json(out / "tokenizer.json", tokenizer())
    write_json(out / "tokenizer_config.json", tokenizer_config())
    write_weights(out, shape)


def last_shard(out: Path) -> Path:
    """The shard that a broken variant breaks."""
    return sorted(out.glob("*.safetensors"))[-1]


def truncate_shard(out: Path) -> None:
    """Cut the last shard in the middle, as an interrupted download or copy does."""
    shard = last_shard(out)
    os.truncate(shard, shard.stat().st_size // 2)


def remove_shard(out: Path) -> None:
    """Leave out a shard that the index names."""
    last_shard(out).unlink()


def edit_config(out: Path, **changes: object) -> None:
    """Change keys of config.json."""
    path = out / "config.json"
    write_json(path, {**json.loads(path.read_text()), **changes})


def unknown_architecture(out: Path) -> None:
    """Name a model class that nobody has, with a model type that is known."""
    edit_config(out, architectures=["FrobnicatorForCausalLM"])


def unknown_model_type(out: Path) -> None:
    """Name a model type that nobody has."""
    edit_config(out, model_type="frobnicator", architectures=["FrobnicatorForCausalLM"])


def wrong_shape(out: Path) -> None:
    """Let the config ask for wider feed-forward layers than the shards hold."""
    config_now = json.loads((out / "config.json").read_text())
    edit_config(out, intermediate_size=2 * config_now["intermediate_size"])


def config_not_json(out: Path) -> None:
    """Put what a failed download often leaves in the place of config.json."""
    (out / "config.json").write_text("<!DOCTYPE html>\n<html><body>Not found</body></html>\n")


def no_tokenizer(out: Path) -> None:
    """Remove every tokenizer file."""
    for path in out.glob("tokenizer*"):
        path.unlink()


def nothing(_out: Path) -> None:
    """Break nothing."""


KINDS: dict[str, Callable[[Path], None]] = {
    "qwen3": nothing,
    "qwen3-truncated-shard": truncate_shard,
    "qwen3-missing-shard": remove_shard,
    "qwen3-unknown-architecture": unknown_architecture,
    "qwen3-unknown-model-type": unknown_model_type,
    "qwen3-wrong-shape": wrong_shape,
    "qwen3-config-not-json": config_not_json,
    "qwen3-no-tokenizer": no_tokenizer,
}


def make(kind: str, out: Path, shape: Shape | None = None) -> None:
    """Make one kind of checkpoint in an empty or absent directory."""
    if out.is_dir() and any(out.iterdir()):
        raise SystemExit(f"{out} is not empty")
    make_whole(out, shape or Shape())
    KINDS[kind](out)


def cached(kind: str, shape: Shape) -> Path:
    """Make the checkpoint in the cache unless it is there; a change of this file makes a new one."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + repr(shape).encode()).hexdigest()[:10]
    final = cache_dir() / "models" / digest / kind
    if final.is_dir():
        return final
    with locked("models"):
        if not final.is_dir():
            partial = final.with_name(f".{kind}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            make(kind, partial, shape)
            partial.rename(final)
    return final


def main(argv: Sequence[str] | None = None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Make a tiny checkpoint, whole or broken.")
    parser.add_argument("kind", choices=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("out", nargs="?", type=Path, metavar="OUTDIR")
    parser.add_argument("--cached", action="store_true", help="make it in the cache and print its directory")
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--hidden", type=int, default=Shape.hidden, help="a multiple of 64")
    parser.add_argument("--seed", type=int, default=Shape.seed)
    args = parser.parse_args(argv)
    if args.cached == (args.out is not None):
        parser.error("give either OUTDIR or --cached")
    shape = Shape(args.layers, args.hidden, args.seed)
    if args.cached:
        print(cached(args.kind, shape))
    else:
        make(args.kind, args.out, shape)
    return 0


if __name__ == "__main__":
    sys.exit(main())
