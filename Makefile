# `make demo` and `make test` set up all they need: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint verify bench experiments sbom clean

demo: $(STAMP)
	$(BIN)/bayeslink demo

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup -m "not verify"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

verify: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadgroup -m verify
	$(BIN)/python benchmarks/hashes.py --check
	$(BIN)/python benchmarks/supply_chain.py

bench: $(STAMP)
	for part in startup level_tables large_example scale; do $(BIN)/python benchmarks/$$part.py || exit 1; done

sbom: $(STAMP)
	$(BIN)/python benchmarks/supply_chain.py sbom.json

experiments: $(STAMP)
	$(BIN)/bayeslink reproduce census
	$(BIN)/bayeslink reproduce large
	$(BIN)/bayeslink reproduce simulation

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bayeslink needs Python 3.11 or newer, found " + sys.version.split()[0] + ". Name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
