"""Commands are recognised through what stands around them, and never changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.command import parse, runnable
from bringup.facts import Command
from bringup.peel import leading_assignments, peel

FOUNDING = [
    "python", "-m", "sglang.launch_server", "--model-path", "/root/models/Qwen3.6-27B", "--port", "30000",
    "--tp-size", "2", "--mem-fraction-static", "0.85", "--context-length", "65536", "--reasoning-parser", "qwen3",
    "--tool-call-parser", "qwen3_coder", "--enable-torch-compile", "--speculative-algo", "NEXTN",
    "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
]  # fmt: skip


def read(text: str, **given: object) -> Command:
    return parse(text.split(), **given)  # type: ignore[arg-type]


def test_the_founding_command() -> None:
    found = parse(FOUNDING)
    assert (found.engine, found.model, found.port) == ("sglang", "/root/models/Qwen3.6-27B", 30000)
    assert found.argv == tuple(FOUNDING) == runnable(found)
    assert found.args == tuple(FOUNDING[3:])


@pytest.mark.parametrize(
    "around",
    [
        "env -i PATH=/bin", "env -u HF_TOKEN", "env -uHF_TOKEN -C /srv", "env --unset=X --chdir=/srv A=b", "env -- A=b",
        "A=1 B=2", "nohup", "setsid -f", "exec", "time", "nice", "nice -n 5", "nice -10", "ionice -c2 -n 7",
        "taskset 0x3", "taskset -c 0-3", "taskset -ac 0,1", "stdbuf -oL -eL", "stdbuf -o L", "timeout 10m",
        "timeout -k 5 --signal=KILL 10", "timeout -s INT 1h", "numactl -N 0 -m 0",
        "numactl --cpunodebind=0 --membind=0",
        "numactl --cpunodebind 0 --membind 0", "numactl --localalloc", "sudo", "sudo -u me -E", "sudo -E LD_X=1",
        "/usr/bin/env", "/usr/bin/nohup nice -n 5 taskset -c 0", "uv run", "uv run --python 3.11 --with vllm",
        "uv --directory /srv run --no-sync", "poetry run", "pdm run", "conda run -n llm --no-capture-output",
        "conda run -p /opt/env --live-stream", "micromamba run -n x", "pixi run", "dumb-init --", "tini -g --",
        "chrt -f 10", "strace -f -o /tmp/t", "systemd-run --user --scope -p MemoryMax=20G", "catchsegv",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("program", "engine"),
    [
        ("vllm serve M --port 1234", "vllm"),
        ("/opt/v/bin/vllm serve M --port=1234", "vllm"),
        ("python3.12 -u -m sglang.launch_server --model-path M --port 1234", "sglang"),
        ("llama-server -m M --port 1234", "llamacpp"),
    ],
)
def test_wrappers_are_peeled(around: str, program: str, engine: str) -> None:
    found = read(f"{around} {program}")
    assert (found.engine, found.model, found.port) == (engine, "M", 1234)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("uvx vllm serve M", "vllm"),
        ("uvx --from vllm==0.32 vllm serve M", "vllm"),
        ("uv run -m sglang.launch_server --model-path M", "sglang"),
        ("uv run python -m vllm.entrypoints.openai.api_server --model M", "vllm"),
        ("python -um vllm.entrypoints.openai.api_server --model M", "vllm"),
        ("python -W ignore -X dev -m vllm.entrypoints.cli.main serve M", "vllm"),
        ("python -msglang.launch_server --model-path M", "sglang"),
        ("python /v/bin/vllm serve M", "vllm"),
        ("python -Bs /v/lib/vllm/entrypoints/openai/api_server.py --model M", "vllm"),
        ("/v/bin/python3 /v/lib/sglang/launch_server.py --model-path M", "sglang"),
        ("sglang serve --model-path M", "sglang"),
        ("sglang serve M", "sglang"),
        ("transformers serve M", "transformers"),
        ("transformers serve --port 8000 --force-model M", "transformers"),
        ("llama-server --model M", "llamacpp"),
        ("./build/bin/llama-server -hf M", "llamacpp"),
        ("text-generation-launcher --model-id M", "tgi"),
        ("trtllm-serve M --tp_size 2", "trtllm"),
        ("trtllm-serve serve M", "trtllm"),
        ("mpirun -n 2 --allow-run-as-root trtllm-llmapi-launch trtllm-serve M", "trtllm"),
    ],
)
def test_engines_are_recognised(text: str, engine: str) -> None:
    found = read(text)
    assert (found.engine, found.model) == (engine, "M")


@pytest.mark.parametrize(
    "text",
    ["python -m http.server 8000", "nginx", "vllm bench serve", "vllm", "python", "python -c pass", "env", "uv run",
     "bash", "bash script.sh vllm serve", "echo vllm serve M", "docker ps", "./serve.sh --port 1"],
)  # fmt: skip
def test_anything_else_is_generic(text: str) -> None:
    assert read(text).engine == "generic"


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve M --port 1234",
        "exec vllm serve M --port 1234",
        "cd /srv && source .venv/bin/activate && exec vllm serve M --port 1234",
        "export CUDA_VISIBLE_DEVICES=0; vllm serve M --port 1234 > log 2>&1 &",
        "vllm serve M --port 1234 2>&1 | tee -a log",
        "vllm serve M --port 1234 >log",
        "vllm serve M --port 1234 < /dev/null &> log & disown",
        "vllm serve M --port 1234 >> log 2> err; echo done",
        "vllm serve \\\n  M \\\n  --port \\\n  1234",
        "set -euo pipefail\n# start it\nvllm serve 'M' \"--port\" 1234\n",
        "if true; then vllm serve M --port 1234; fi",
        "while ! test -f x; do sleep 1; done; (cd /x && vllm serve M --port=1234)",
        "PORT=1234; vllm serve M --port $PORT",
        "export PORT=1234 MODEL=M && vllm serve ${MODEL} --port \"${PORT}\"",
        "vllm serve ${MODEL:-M} --port ${PORT:-1234}",
        "nohup numactl -N 0 vllm serve M --port 1234 > log &",
        "for i in 1; do { time vllm serve M --port 1234; }; done",
        "vllm serve M --port 1234; echo $(date) `hostname` 'vllm serve other'",
        "vllm serve M --port 1234 'an open quote",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", [["bash", "-c"], ["bash", "-lc"], ["/bin/sh", "-ec"], ["zsh", "-l", "-i", "-c"]])
def test_shell_strings_are_read(shell: list[str], script: str) -> None:
    argv = [*shell, script]
    found = parse(argv)
    assert (found.engine, found.model, found.port) == ("vllm", "M", 1234)
    assert found.argv == runnable(found) == tuple(argv)


def test_a_number_before_a_redirection_is_a_descriptor_only_if_it_touches_it() -> None:
    assert peel(["sh", "-c", "llama-server --port 8 > log"]).words == ("llama-server", "--port", "8")
    assert peel(["sh", "-c", "llama-server --port 8 2>log"]).words == ("llama-server", "--port", "8")


def test_directories_and_variables_of_a_shell_string_carry_over() -> None:
    found = peel(["bash", "-c", "cd /a; cd b && export X=1; Y=2 vllm serve M"])
    assert (found.words, found.cwd, found.env) == (("vllm", "serve", "M"), "/a/b", {"X": "1", "Y": "2"})


def test_single_quotes_keep_a_dollar_and_unknown_variables_stay() -> None:
    words = peel(["bash", "-c", "A=1; llama-server '$A' \"$A\" $B $(cat x) \\$A"]).words
    assert words == ("llama-server", "$A", "1", "$B", "$(cat x)", "$A")


def test_env_splits_a_string() -> None:
    assert read("env -S").engine == "generic"
    assert parse(["env", "-S", "A=1 python -u -m sglang.launch_server --port 5"]).port == 5
    assert parse(["env", "-Svllm serve M"]).model == "M"
    assert parse(["env", "-C", "/x", "A=1", "vllm", "serve", "M"]).env == {}
    assert peel(["env", "-C", "/x", "A=1", "vllm"]).cwd == "/x"


# -- what the arguments say ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("vllm serve M --port 1 --port=2 --port 3", "port", 3),
        ("vllm serve M --port=2", "port", 2),
        ("vllm serve M --port seven", "port", 8000),
        ("vllm serve M --port 70000", "port", 8000),
        ("vllm serve M --port", "port", 8000),
        ("vllm serve M --port --host h", "host", "h"),
        ("vllm serve M --port ²", "port", 8000),
        ("vllm serve M --host 0.0.0.0", "host", "0.0.0.0"),
        ("vllm serve M --served-model-name a b", "served_name", "a"),
        ("vllm serve M --served-model a", "served_name", "a"),
        ("vllm serve M --served_model_name=a", "served_name", "a"),
        ("vllm serve --port 8000 M", "model", "M"),
        ("vllm serve --enforce-eager --enable-prefix-caching M", "model", "M"),
        ("vllm serve M --model other", "model", "M"),
        ("vllm serve --model M", "model", "M"),
        ("vllm serve M --api-key k1 k2", "api_key", "k1"),
        ("vllm serve --api-key k1 k2 --model M", "model", "M"),
        ("vllm serve M --task embed", "task", "embedding"),
        ("vllm serve M --runner pooling", "task", "embedding"),
        ("VLLM_API_KEY=sek vllm serve M", "api_key", "sek"),
        ("sglang serve --model-path M --served-model x", "served_name", "x"),
        ("sglang serve --model-path M --cuda-graph-bs 1 2 4", "model", "M"),
        ("sglang serve --model-path M --is-embedding", "task", "embedding"),
        ("sglang serve --model-path M", "port", 30000),
        ("llama-server -m M --embeddings", "task", "embedding"),
        ("llama-server -m M --reranking --embedding", "task", "rerank"),
        ("LLAMA_ARG_PORT=99 llama-server -m M", "port", 99),
        ("LLAMA_ARG_PORT=99 llama-server -m M --port 98", "port", 98),
        ("llama-server -m M -a name", "served_name", "name"),
        ("python app.py --port 81 --model M", "port", 81),
    ],
)  # fmt: skip
def test_arguments_are_read_as_the_engine_reads_them(text: str, field: str, value: object) -> None:
    assert getattr(read(text), field) == value


def test_the_environment_of_the_target_counts_less_than_the_command() -> None:
    environ = {"LLAMA_ARG_PORT": "1", "LLAMA_ARG_HOST": "h"}
    assert read("llama-server -m M", environ=environ).port == 1
    found = read("LLAMA_ARG_PORT=2 llama-server -m M", environ=environ)
    assert (found.port, found.host, found.env) == (2, "h", {"LLAMA_ARG_PORT": "2"})


# -- configuration files --------------------------------------------------------------------------------------


def with_config(text: str | None, command: str = "vllm serve M --config c.yaml") -> Command:
    asked: list[str] = []

    def read_text(path: str) -> str | None:
        asked.append(path)
        return text

    found = read(command, read_text=read_text)
    assert asked == ["c.yaml"]
    return found


def test_a_config_file_fills_what_the_command_line_leaves_open() -> None:
    text = "model: other\nport: 7000\nhost: h\nserved-model-name: [a, b]\nenforce-eager: true\napi_key: sek\n"
    found = with_config(text)
    assert (found.model, found.port, found.host) == ("M", 7000, "h")
    assert (found.served_name, found.api_key) == ("a", "sek")
    assert with_config(text, "vllm serve M --config c.yaml --port 5").port == 5
    assert with_config(text, "vllm serve --config=c.yaml").model == "other"
    assert with_config("model-path: X\n", "sglang serve --config c.yaml").model == "X"


@pytest.mark.parametrize(
    "text",
    [None, "", "- a\n- b\n", "port: [", "port: {a: 1}\n", "7", "port:\n", "port: true\n", "\x00", "a: &a [*a]\n",
     "!!int '': 1\n", "? [a]\n: b\n", "x: 2020-99-99\n", "host: -1\nport: -5\n", "[" * 3000],
)  # fmt: skip
def test_a_config_file_that_says_nothing_useful_harms_nothing(text: str | None) -> None:
    found = with_config(text)
    assert (found.engine, found.model, found.port) == ("vllm", "M", 8000)


# -- argv is what it was ----------------------------------------------------------------------------------------

WORD = st.one_of(
    st.text(alphabet=st.characters(), max_size=12),
    st.sampled_from(
        ["env", "-i", "-u", "-S", "-C", "--", "uv", "run", "python", "-m", "-c", "bash", "-lc", "A=1", "=", "A=", "-",
         "vllm", "serve", "sglang.launch_server", "timeout", "numactl", "taskset", "sudo", "conda", "--config",
         "--port", "--port=", "--model", "'", '"', "a 'b", "$(", "${", "`", "\\", "cd x && vllm serve M",
         "x > y 2>&1 | z", "\udcff", "", "\n", "export A=1; exec vllm", "#", "llama-server", "transformers", "trtllm-serve"]  # noqa: E501
    ),
)  # fmt: skip


@given(st.lists(WORD, max_size=14))
def test_any_words_are_parsed_and_kept(argv: list[str]) -> None:
    found = parse(argv, read_text=lambda _: "port: 1")
    env, rest = leading_assignments(argv)
    assert found.argv == tuple(argv)
    assert runnable(found) == rest == tuple(argv)[len(argv) - len(rest) :]
    assert found.env == env
    assert all(w.partition("=")[0] in env for w in argv[: len(argv) - len(rest)])


@given(st.text(max_size=60))
def test_any_shell_string_is_read_without_harm(script: str) -> None:
    parse(["bash", "-c", script])
    parse(["env", "-S", script])


@pytest.mark.parametrize("word", ["\udcff\udc80", "", "a\nb", "\t", "ünï", "a=b", "--x=\udcfe"])
def test_odd_words_are_kept_to_the_byte(word: str) -> None:
    argv = ["A=1", "vllm", "serve", "M", word]
    found = parse(argv)
    assert runnable(found) == ("vllm", "serve", "M", word)
    assert found.engine == "vllm"


def test_only_leading_assignments_are_the_environment() -> None:
    assert leading_assignments(["A=1", "B=", "x", "C=3"]) == ({"A": "1", "B": ""}, ("x", "C=3"))
    assert leading_assignments(["1A=1", "x"]) == ({}, ("1A=1", "x"))
    assert leading_assignments(["A=1"]) == ({"A": "1"}, ())
    assert parse(["A=1"]).engine == "generic"
    assert parse([]).engine == "generic"
