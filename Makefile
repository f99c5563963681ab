# Everything a fresh Debian or Ubuntu machine with Python >= 3.11 needs.
#   make demo   races agents on a generated world, a few minutes
#   make test   ruff, mypy, import order, pytest
# Both set up first what is missing, and say what they install.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   ?= python:3.11-slim
LUCENE_PYSERINI := pyserini==1.6.0
# First and by pip: other ways of choosing it bring gigabytes of CUDA.
TORCH  := torch==2.13.0

.PHONY: help demo test check lint types imports pytest format base image lucene training lock clean system

help: ## Show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: system $(VENV)/.base ## Race honest and dishonest agents on a generated world
	$(BIN)/arena demo

test: lint types imports pytest ## All checks and all tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

pytest: system $(VENV)/.dev
	$(BIN)/python -m pytest

format: $(VENV)/.dev ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

system:
	@PYTHON="$(PYTHON)" sh .ci/system.sh

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sn15-arena needs Python >= 3.11; name one with: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@PYTHON="$(PYTHON)" sh .ci/system.sh
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: $(VENV)/.created requirements/base.txt pyproject.toml
	@echo "Installing the locked packages into $(VENV) …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/base.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

training: $(VENV)/.base requirements/training.txt ## Install what trains and serves models
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/training.txt

base: ## Make a base image with debootstrap, where no registry is in reach (as root)
	bash .ci/make-base.sh sn15-arena/base:local

image: $(VENV)/.base ## Build the Docker sandbox image (BASE=… names another base)
	$(BIN)/python -m sandbox.isolation.docker build --base $(BASE)

lucene: $(VENV)/.base ## Install the optional Lucene engine (its wheel without torch)
	$(BIN)/python -m pip install --quiet -r requirements/lucene.txt
	$(BIN)/python -m pip install --quiet --no-deps $(LUCENE_PYSERINI)

lock: $(VENV)/.created ## Write the lock files anew from pyproject.toml
	$(BIN)/python -m pip install --quiet uv==0.13.8
	$(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate pyproject.toml --extra dev --extra training -o requirements/dev.txt
	$(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate pyproject.toml --extra training -o requirements/training.txt
	$(BIN)/uv pip compile -q --python-version 3.11 --no-header --no-annotate pyproject.toml --extra lucene -o requirements/lucene.txt
	@# torch and what it brings are installed before, by pip
	sed -i -E "/^(torch|triton|nvidia-.*|cuda-.*)==/d" requirements/dev.txt requirements/training.txt

clean: ## Remove the virtual environment and all caches (not var/, where data lies)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
