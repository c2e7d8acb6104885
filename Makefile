# `make demo`, `make docs` and `make test` set up what they need, and no more: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
DOCS   := $(VENV)/.docs
DEV    := $(VENV)/.dev
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: demo test test-all lint docs release verify bench experiments sbom clean

demo: $(BASE)
	$(BIN)/bayeslink demo

# Kernels first: a test of an error would end their compilation, and the next begin it again.
test: lint
	$(BIN)/python -m bayeslink.kernels
	$(BIN)/pytest -n 2 -m "not full and not verify" --durations 10

test-all: $(DEV)
	$(BIN)/pytest -n 2 -m "full and not verify" --durations 10

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "To look at: site/index.html"

release: $(DEV)
	$(BIN)/python tools/release.py

verify: $(DEV)
	$(BIN)/pytest -n 2 -m verify
	$(BIN)/python benchmarks/hashes.py --check
	$(BIN)/python benchmarks/supply_chain.py

bench: $(DEV)
	for part in startup level_tables large_example scale; do $(BIN)/python benchmarks/$$part.py || exit 1; done

sbom: $(DEV)
	$(BIN)/python benchmarks/supply_chain.py sbom.json

experiments: $(DEV)
	$(BIN)/python -m experiments census
	$(BIN)/python -m experiments large
	$(BIN)/python -m experiments simulation

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bayeslink needs Python 3.11 or newer, found " + sys.version.split()[0] + ". Name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(BASE): EXTRA := review
$(DOCS): EXTRA := docs

# Numba first: kernels are compiled while pip unpacks the rest. Then bytecode, of what is imported alone.
$(BASE) $(DOCS): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) numba
	PYTHONPATH="$(CURDIR)/src" $(BIN)/python -m bayeslink.kernels & $(PIP) -e '.[$(EXTRA)]' && $(BIN)/python tools/bytecode.py && wait
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $(BASE) $(DOCS) $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache
