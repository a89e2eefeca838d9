# The commands of the README, of CONTRIBUTING and of .ci/run. Everything lives in .venv.
PYTHON ?= python3
BIN := .venv/bin
CASES ?= 20000
SECONDS ?= 600
RUNS ?= 100000
RATE ?= 20000
MINUTES ?= 10
SEED ?= 1

# Tests start hundreds of processes, each of which would compile 400 modules again: keep their bytecode, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run test quick check lint types layers format equal fuzz failures simulate soak search grammar errors clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.'
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

install: .venv/installed  ## create .venv with the package and its dependencies

.venv/installed-run: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[live,spark$(shell command -v java >/dev/null || echo ,java)]'
	touch $@

run: .venv/installed-run  ## the main job: surveillance of a trading day, by files, live, and on Spark, all of which agree
	$(BIN)/python examples/surveillance/run.py

test: .venv/installed-dev  ## everything: style, types, layers, all tests
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto --dist loadgroup

quick: .venv/installed-dev  ## what needs no Spark, no server and no patience: style, types, layers, the fast tests, in 185 s of processor time (two minutes on two idle cores)
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	FAIRLEAD_QUICK=1 FAIRLEAD_KEPT_KERNELS=1 $(BIN)/python -m pytest -m "not spark and not server and not slow" -n auto --dist loadgroup

lint: .venv/installed-dev  ## ruff only
	$(BIN)/ruff check src tests examples benchmarks

types: .venv/installed-dev  ## mypy, strict
	$(BIN)/mypy

layers: .venv/installed-dev  ## which package may import which
	$(BIN)/lint-imports

format: .venv/installed-dev  ## format the code
	$(BIN)/ruff format src tests examples benchmarks
	$(BIN)/ruff check --fix src tests examples benchmarks

equal: .venv/installed-dev  ## the matchers, compiled or not, equal the reference on CASES=20000 generated cases with all constructs
	FAIRLEAD_CASES=$(CASES) $(BIN)/python -m pytest tests/matching/equality/test_equal_to_reference.py tests/matching/equality/test_all_constructs.py tests/matching/equality/test_keys.py -n auto --hypothesis-show-statistics

fuzz: .venv/installed-dev  ## random texts, states, plans and files for MINUTES=10, starting with the seed SEED=1
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

failures: .venv/installed-dev  ## servers, links, readers and writers fail for SECONDS=600 by the schedule SEED=1
	$(BIN)/python -m fairlead.testing.live --seconds $(SECONDS) --seed $(SEED)

simulate: .venv/installed-dev  ## the live part RUNS=100000 times with simulated failures, from the seed SEED=1
	$(BIN)/python -m fairlead.testing.simulator live --runs $(RUNS) --seed $(SEED) --jobs 2

soak: MINUTES = 30
soak: .venv/installed-dev  ## MINUTES=30 of load (RATE=20000 events a second), with failures and retention
	$(BIN)/python -m fairlead.testing.live.soak --minutes $(MINUTES) --rate $(RATE) --seed $(SEED)

search: .venv/installed-dev  ## search counterexamples for all options, clauses and 14 properties again
	$(BIN)/python -m fairlead.testing.counterexamples.search --cases 1000 --seed 1 --jobs 2 --write
	$(BIN)/python -m fairlead.testing.counterexamples.search --more --cases 100 --seed 1 --jobs 2 --write
	$(BIN)/python -m fairlead.testing.counterexamples.clause_search --cases 400 --seed 1 --write
	$(BIN)/python -m fairlead.testing.counterexamples.sequence_losses.sequence_search --cases 2000 --seed 1 --jobs 2 --write
	$(BIN)/python -m fairlead.testing.counterexamples.runtime_worlds

grammar: .venv/installed  ## generate the parser's tables, after a change of grammar.lark
	$(BIN)/python -m fairlead.language.parsing.table_builder > tables.json.part
	mv tables.json.part src/fairlead/language/parsing/tables.json

errors: .venv/installed  ## make docs/errors.md anew, after a change of error_codes.py
	$(BIN)/python -m fairlead.testing.error_page > errors.md.part
	mv errors.md.part docs/errors.md

clean:  ## remove what make created
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
