# The two commands: `make up` brings up a real server, `make test` sets up everything and passes the tests.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: up setup dev test engines test-engines lint format clean

up: setup
	@$(BIN)/bringup up

setup: $(VENV)/.installed

dev: $(VENV)/.dev

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("bringup needs Python 3.11 or newer, this is %d.%d: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || { echo "making a virtual environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@echo "installing the tools for tests and lint"
	@$(PIP) install --editable '.[dev]'
	@touch $@

test: dev
	$(BIN)/python -m pytest -m 'not engines'

# Real SGLang, vLLM and Transformers, each in a cached environment of its own (about 8 GB, 6 minutes the first time).
engines: dev
	$(BIN)/python scripts/engines/install.py all

test-engines: engines
	$(BIN)/python -m pytest -m engines

# Coverage counts what runs inside the tests; the verbs that tests start as processes of their own are not in it.
lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'not engines'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=75

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .hypothesis
