# `make demo` shows what it does, `make test` checks everything. Both first install all packages into .venv, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test torture life page docs dist fuzz sbom audit setup lint constraints clean

demo: $(STAMP)
	@echo "demo: read melodies, train, index, search (about three minutes)"
	@$(BIN)/neuroseqret demo

test: lint
	@echo "test: all tests on $$(nproc 2>/dev/null || echo 2) cores"
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto  # else each process compiles the package anew

# Run it again to continue; results are in results/torture/, and docs/reliability.md is made from them.
torture: $(STAMP)
	@echo "torture: kills, power cuts and failing calls, up to 10,000 rounds, for at most $(or $(MINUTES),30) minutes"
	@nice -n 10 $(BIN)/python tests/torture --minutes $(or $(MINUTES),30)

# One process that searches a million times beside 10,000 commits: ten minutes on two idle cores. Its latencies and what it
# holds are in results/life.json, and docs/reliability.md shows them.
life: $(STAMP)
	@echo "life: a million searches beside 10,000 commits"
	@$(BIN)/python tests/torture/long_life.py

lint: $(STAMP)
	@echo "lint: ruff, mypy, import contract"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo

# Pages, command and API reference in site/. Open site/index.html, or serve it to use the search box.
docs: $(STAMP)
	@echo "docs: building site/ (half a minute)"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "docs: done; read it with $(BIN)/python -m http.server --directory site"

# A wheel, a source distribution and the bill of materials in dist/.
dist: sbom
	@echo "dist: building a wheel and a source distribution"
	@$(BIN)/python -m build --no-isolation --outdir dist .

# The long form of the fuzzing, at low priority; run it again to continue. Results are in results/fuzz/.
fuzz: $(STAMP)
	@echo "fuzz: up to a million inputs, for at most $(or $(MINUTES),15) minutes"
	@nice -n 10 $(BIN)/python tests/fuzz/__main__.py --minutes $(or $(MINUTES),15)

# A software bill of materials of what is installed, in CycloneDX's format.
sbom: $(STAMP)
	@echo "sbom: writing dist/sbom.json"
	@mkdir -p dist
	@$(BIN)/python -m cyclonedx_py environment $(BIN)/python --of JSON -o dist/sbom.json

# With a network: ask for advisories against the pinned versions, and keep what is new for the tests.
audit: $(STAMP)
	@$(BIN)/python tests/security/advisories.py

setup: $(STAMP)

# Build the page from page/ into the package, after its own checks. Needs node 20 and npm; users of the wheel do not.
page:
	@echo "page: install, type check, unit tests, build"
	@cd page && npm install --no-save --silent && npm run --silent check && npm run --silent test && npm run --silent build

# constraints.txt pins every version, so that all machines install the same. Changing it or pyproject.toml reinstalls.
$(STAMP): pyproject.toml constraints.txt
	@echo "setup: installing into $(VENV) (once; a few minutes)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "setup: Python 3.10 or newer is needed; set PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

# Write constraints.txt again. uv resolves versions for all supported Pythons at once; torch is pinned by hand here.
constraints:
	@echo "constraints: resolving all versions"
	@echo "torch==2.13.0" > .torch-pin.txt
	@{ head -n 1 constraints.txt; uv pip compile --quiet --universal --python-version 3.10 pyproject.toml --extra dev \
	   -c .torch-pin.txt --no-header --no-annotate; } > .constraints.new && mv .constraints.new constraints.txt; \
	   failed=$$?; rm -f .torch-pin.txt .constraints.new; exit $$failed

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
