# Two commands: `make demo` and `make test`. Both set everything up first, in .venv, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test setup lint benchmark clean

demo: $(STAMP)
	@echo "demo: build data, train, index, search (about three minutes)"
	@$(BIN)/neuroseqret demo

test: lint
	@echo "test: all tests on $$(nproc 2>/dev/null || echo 2) cores"
	@$(BIN)/python -m pytest -n auto

lint: $(STAMP)
	@echo "lint: ruff, mypy, import contracts"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo

setup: $(STAMP)

# constraints.txt pins every version, so that each machine gets the same; a change to it or to the metadata reinstalls.
$(STAMP): pyproject.toml constraints.txt
	@echo "setup: installing into $(VENV) (once; a few minutes)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "setup: Python 3.10 or newer is needed; set PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
