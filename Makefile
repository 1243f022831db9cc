# The two commands of the README. Both set up everything they need in .venv, from pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-pypto test test-timing test-long bench clean

demo: $(VENV)/.demo
	$(BIN)/opratchet tune examples/norm/rmsnorm --out build/demo/rmsnorm --lang en --max-rounds 4 --fresh

# The same on PyPTO's own cost model; the first time it builds PyPTO's calculator, which takes a minute or two.
demo-pypto: $(VENV)/.pypto
	$(BIN)/opratchet tune examples/custom/softmax --out build/demo/softmax --lang en --max-experiments 24 --fresh

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not timing and not long" -n 2 --dist worksteal --durations 15

# What depends on how long things really take; for a quiet machine, one after another.
test-timing: $(VENV)/.test
	$(BIN)/python -m pytest -m "timing and not long"

# Every kernel of the corpus of exploits, and a run killed at every event: half an hour.
test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m long

bench: $(VENV)/.demo
	$(BIN)/python benchmarks/operators.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[tilelang]'
	touch $@

$(VENV)/.pypto: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[pypto]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[tilelang,pypto,dev]'
	touch $@ $(VENV)/.demo $(VENV)/.pypto

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
