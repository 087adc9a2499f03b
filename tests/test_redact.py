"""Secrets do not reach a record or a screen; words that only sound like secrets do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.redact import MASK, redact_argv, redact_env, redact_text, secret_name, secrets_in

SECRET = "s3cr3t-Value9"


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN={}", "export HF_TOKEN={} && vllm serve M", "HUGGING_FACE_HUB_TOKEN={} x", "WANDB_API_KEY={}",
        "OPENAI_API_KEY='{}'", "AWS_SECRET_ACCESS_KEY={}", "vllm serve M --api-key {}", "vllm serve M --api-key={}",
        "vllm serve M --api-key {} {} --port 1", "vllm serve --api-key '{}' \"{}\"", "--api_key {}", "--hf-token {}",
        "Authorization: Bearer {}", "curl -H 'Authorization: Bearer {}' u", "ServerArgs(api_key='{}', port=1)",
        "server_args={{'api_key': '{}', 'port': 1}}", "'api_key': ['{}', '{}']", "admin_api_key='{}'", "api_key=\"{}\"",
        "https://user:{}@host/repo", "http://user:{}@proxy:3128", "ssl_keyfile_password='{}'", "password: {}",
        "DB_PASSWORD={}", "hf_token={}", '"auth_token": "{}"', "--admin-api-key {}", "--ssl-keyfile-password {}",
        "client_secret={}", "GITHUB_TOKEN={} pip install x", "bash -c 'HF_TOKEN={} vllm serve M --api-key {}'",
    ],
)  # fmt: skip
def test_secrets_are_masked_in_text(text: str) -> None:
    shown = redact_text(text.format(*[SECRET] * 3))
    assert SECRET not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "shape",
    ["hf_" + "a" * 34, "sk-" + "b" * 40, "ghp_" + "c" * 36, "nvapi-" + "d" * 60, "github_pat_" + "e" * 40],
)
def test_shapes_are_masked_wherever_they_stand(shape: str) -> None:
    assert redact_text(f"401 for {shape}, try again") == f"401 for {MASK}, try again"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=512", "max_token=5, min_token: 3", "eos_token='</s>'", "bos_token_id=1", "pad_token: <pad>",
        "tokenizer='Qwen/Qwen3'", "tokenizer_path='models/x', tokenizer_mode='auto'", "token usage: 0.00",
        "Prefill batch, #new-seq: 1, #new-token: 26, #cached-token: 0, token usage: 0.00, #running-req: 0",
        "max_total_num_tokens=8192, chunked_prefill_size=2048", "api_key=None, admin_api_key=None", "'api_key': None",
        "stop_token_ids=[1, 2]", "speculative_token_map=None", "--max-num-batched-tokens 4096", "sort_key=name",
        "image_token='<img>'", "the api key is required", "set HF_TOKEN to your token", "password required",
        "KeyError: 'model.layers.0'", "ssl_keyfile=/etc/x.pem", "special_tokens_map.json", "token: 3",
        "GET http://127.0.0.1:8000/v1/models", "http://[::1]:8000/health", "time 12:30:11 user@host", "key: value",
        "--tokenizer-mode auto", "hf_config_path=None", "{'key': 'v', 'token': 7}", "mask_token: [MASK]",
        "num_prompt_tokens: 5", "api_keys: []",
    ],
)  # fmt: skip
def test_words_that_only_sound_like_secrets_stay(text: str) -> None:
    assert redact_text(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    line = f"ServerArgs(model_path='m', api_key='{SECRET}', port=30000, max_running_requests=None)"
    assert redact_text(line) == f"ServerArgs(model_path='m', api_key={MASK}, port=30000, max_running_requests=None)"
    assert redact_text(f"vllm serve M --hf-token {SECRET} tail") == f"vllm serve M --hf-token {MASK} tail"
    assert redact_text(f"x --api-key {SECRET} > log --port 1") == f"x --api-key {MASK} > log --port 1"
    assert redact_text(f"https://me:{SECRET}@h/x") == f"https://{MASK}@h/x"


def test_known_secrets_are_masked_in_any_form() -> None:
    assert redact_text(f"saw {SECRET}!", [SECRET]) == f"saw {MASK}!"
    assert redact_text("a b", ["a"]) == "a b"  # too short to be looked for in text


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "a", "b", "--port", "1"], ["--api-key", MASK, MASK, "--port", "1"]),
        (["--api-key=a", "x"], [f"--api-key={MASK}", "x"]),
        (["HF_TOKEN=a", "vllm", "serve", "M"], [f"HF_TOKEN={MASK}", "vllm", "serve", "M"]),
        (["--hf-token", "a", "M"], ["--hf-token", MASK, "M"]),
        (["--api-key", "--port", "1"], ["--api-key", "--port", "1"]),
        (["--api-key"], ["--api-key"]),
        (["--api-key="], ["--api-key="]),
        (["--max-tokens", "5", "--eos-token", "x"], ["--max-tokens", "5", "--eos-token", "x"]),
        (["bash", "-c", "HF_TOKEN=abcd vllm serve M"], ["bash", "-c", f"HF_TOKEN={MASK} vllm serve M"]),
        (["--tokenizer", "t", "--host", "h"], ["--tokenizer", "t", "--host", "h"]),
        ([], []),
    ],
)
def test_commands_are_shown_without_their_secrets(argv: list[str], shown: list[str]) -> None:
    assert redact_argv(argv) == shown


def test_a_secret_of_one_word_is_masked_in_the_others() -> None:
    argv = ["sh", "-c", f"echo {SECRET}", "--api-key", SECRET]
    assert redact_argv(argv) == ["sh", "-c", f"echo {MASK}", "--api-key", MASK]
    assert redact_argv(["echo", f"<{SECRET}>"], [SECRET, SECRET[:6]]) == ["echo", f"<{MASK}>"]


def test_secrets_of_a_command_are_found() -> None:
    argv = ["HF_TOKEN=one", "vllm", "serve", "M", "--api-key", "two", "three", "--ssl-keyfile-password=four"]
    assert secrets_in(argv, {"API_KEY": "five", "PATH": "/bin", "EMPTY_TOKEN": ""}) == {
        "one", "two", "three", "four", "five",
    }  # fmt: skip


def test_an_environment_is_shown_without_its_secrets() -> None:
    env = {
        "HF_TOKEN": "x",
        "PATH": "/bin",
        "PROXY": f"http://u:{SECRET}@p",
        "EMPTY_KEY": "",
        "TOKENIZERS_PARALLELISM": "1",
    }
    assert redact_env(env) == {
        "HF_TOKEN": MASK, "PATH": "/bin", "PROXY": f"http://{MASK}@p", "EMPTY_KEY": "", "TOKENIZERS_PARALLELISM": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "--api-key", "api_key", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "--hf-token"]
)
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize(
    "name", ["--max-tokens", "eos_token", "tokenizer", "--tokenizer", "bos_token_id", "num_token", "monkey"]
)
def test_names_of_no_secrets(name: str) -> None:
    assert not secret_name(name)


@given(st.text(max_size=200), st.lists(st.text(max_size=10), max_size=3))
def test_redacting_never_fails_and_settles(text: str, known: list[str]) -> None:
    once = redact_text(text, known)
    assert redact_text(once) == once
    redact_argv(text.split(" "))
