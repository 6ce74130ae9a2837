# `make demo` and `make test` need git, make and Python 3.11; everything else goes into .venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
VENV_JAX := .venv-jax
VENVS_OF_VERSIONS := .venv-versions .venv-lowest
READY := $(VENV)/.ready
READY_JAX := $(VENV_JAX)/.ready

DEMO_SCRIPT ?= sample_pipelines/blocking_numpy_function.py
DEMO_OUTPUT ?= reports/demo
PYTEST_ARGS ?=
VERSIONS ?=

# Tests start the command hundreds of times, and each start would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-faults test-samples test-versions test-jax dist lint format lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: $(READY) ## Diagnose a sample whose input pipeline is slow, and write its report
	$(VENV)/bin/pipediag analyze --force -o $(DEMO_OUTPUT) $(DEMO_SCRIPT)
	@echo "The report: $(CURDIR)/$(DEMO_OUTPUT)/report.html"

# A module at a time starts TensorFlow on each core, but samples, whose verdicts are judged, run alone.
# Status 5: no test was chosen.
test: $(READY) ## Run the tests, the fast ones first
	$(VENV)/bin/python -m pytest -n logical -m "not (jax or faults or tensorflow)" $(PYTEST_ARGS) || [ $$? = 5 ]
	$(VENV)/bin/python -m pytest -n logical --dist loadfile -m "tensorflow and not (jax or faults or verdict)" \
		$(PYTEST_ARGS) || [ $$? = 5 ]
	$(VENV)/bin/python -m pytest -m "verdict and not jax" $(PYTEST_ARGS) || [ $$? = 5 ]

test-faults: $(READY) ## Run scripts natively and under pipediag, and compare what is left of them
	$(VENV)/bin/python -m pytest -m faults $(PYTEST_ARGS)

test-samples: $(READY) ## Run every sample, also those that `make test` leaves out
	PIPEDIAG_ALL_SAMPLES=1 $(VENV)/bin/python -m pytest -m "not jax" tests/samples $(PYTEST_ARGS)

test-versions: $(READY) ## Run samples with the oldest and the newest versions, or with each (VERSIONS=all)
	PIPEDIAG_VERSIONS=$(VERSIONS) $(VENV)/bin/python -m pytest tests/versions $(PYTEST_ARGS)

test-jax: $(READY_JAX) ## Run the tests of Keras on JAX, in an environment of their own
	$(VENV_JAX)/bin/python -m pytest -m jax $(PYTEST_ARGS)

dist: $(READY) ## Build wheel and source distribution, and try each in an empty environment
	.ci/dist

lint: $(READY) ## Check style, types and the direction of imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

format: $(READY) ## Format the code and mend what ruff can mend
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# The files name neither a registry nor a folder of this machine, so that any index may serve them.
COMPILE = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(READY) ## Resolve the locked versions anew (make lock UPGRADE=--upgrade for the newest)
	$(COMPILE) $(UPGRADE) --group dev -o requirements/dev.txt pyproject.toml
	$(COMPILE) $(UPGRADE) --group dev-jax -c requirements/dev.txt \
		--override requirements/jax-overrides.txt -o requirements/jax.txt pyproject.toml

clean: ## Remove the environments and what tools left behind
	rm -rf $(VENV) $(VENV_JAX) $(VENVS_OF_VERSIONS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis \
		.import_linter_cache $(DEMO_OUTPUT)
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# Stamps: an environment is set up once, and again when its lock or the project's metadata changes.
$(READY): requirements/dev.txt
$(READY_JAX): requirements/jax.txt
$(READY) $(READY_JAX): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make needs Python 3.11 or newer; found: '$(PYTHON)'. Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(@D) from $(filter requirements/%,$^): a few minutes, once."
	@test -x $(@D)/bin/pip || "$(PYTHON)" -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-deps --require-hashes -r $(filter requirements/%,$^)
	@$(@D)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
