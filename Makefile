# One definition of green: people, hooks and CI all call these targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# More for the program behind a target: make test ARGS="-k ledger -n 0"
ARGS ?=

bin := .venv/bin
pip := $(bin)/python -m pip --disable-pip-version-check --no-input -qq
run := .venv/.run-stamp
dev := .venv/.dev-stamp
uv := .tools/bin/uv
compile := $(uv) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --group build

.PHONY: help setup sandbox test check format lint types contracts slow bench lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(dev) ## Install everything that running and testing need into .venv

sandbox: $(run) ## Try Signoff in the browser, with nothing configured
	$(bin)/signoff sandbox $(ARGS)

test: $(dev) ## Run all tests but the slow ones
	$(bin)/python -m pytest -n auto -m "not slow" $(ARGS)

check: lint types contracts ## Format, lint, types, contracts and every test: what CI runs
	$(bin)/python -m pytest -n auto $(ARGS)

format: $(dev) ## Lay out the code and mend what can be mended
	$(bin)/ruff check --fix-only --quiet
	$(bin)/ruff format

lint: $(dev) ## Check layout and style
	$(bin)/ruff format --check
	$(bin)/ruff check

types: $(dev) ## Check the types, strictly
	$(bin)/mypy

contracts: $(dev) ## Check who may import whom
	$(bin)/lint-imports --no-cache

slow: $(dev) ## Run the slow tests only
	$(bin)/python -m pytest -m slow $(ARGS)

bench: $(dev) ## Measure
	$(bin)/python -m tests.benchmarks $(ARGS)

lock: $(uv) ## Lock the dependencies anew (all to their newest: ARGS=--upgrade)
	$(compile) $(ARGS) --output-file requirements.lock pyproject.toml
	$(compile) $(ARGS) --group dev --all-extras --constraint requirements.lock \
		--output-file requirements-dev.lock pyproject.toml

clean: ## Remove what the other targets made
	rm -rf .venv .tools build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find bot graphs storage tests -type d -name __pycache__ -prune -exec rm -rf {} +

$(bin)/python:
	@.ci/make-venv .venv

$(uv):
	@.ci/make-venv .tools
	@.tools/bin/python -m pip --disable-pip-version-check --no-input -qq install uv

# The two locks hold the same versions, so whoever has the second needs the first no more.
$(run): requirements.lock pyproject.toml | $(bin)/python
	@echo "Installing what Signoff needs to run"
	@$(pip) install --require-hashes --no-deps -r requirements.lock
	@$(pip) install --no-deps --no-build-isolation -e .
	@touch $@

$(dev): requirements.lock requirements-dev.lock pyproject.toml | $(bin)/python
	@echo "Installing what Signoff needs to run and to be tested (about a minute)"
	@$(pip) install --require-hashes --no-deps -r requirements-dev.lock
	@$(pip) install --no-deps --no-build-isolation -e .
	@touch $(run) $@
