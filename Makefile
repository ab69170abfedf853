# make demo, make test: all that a newcomer needs. Everything is installed into .venv, from the versions in constraints.txt.
PY ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

.PHONY: help install demo test test-long test-slow check format bench pictures wheel clean

help:
	@echo "make demo       set up and run a whole campaign on built-in pictures, in four minutes on two cores"
	@echo "make test       set up and run the tests"
	@echo "make test-long  kills, fuzzing, instruction sets, the wheel"
	@echo "make test-slow  the whole demo, on processes and on Ray; machines without memory"
	@echo "make check      lint, format, types"
	@echo "make format     write what 'make check' wants"
	@echo "make bench      speed, as ratios within one run"
	@echo "make pictures   the report page as it looks, into build/pictures; needs chromium"
	@echo "make install    only prepare $(VENV)"
	@echo "make wheel      build the package into dist/"

install: $(VENV)/.ok

$(VENV)/.ok: pyproject.toml constraints.txt
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, $(PY) is $$($(PY) --version); try: make $(MAKECMDGOALS) PY=python3.12"; exit 1; }
	$(PY) -m venv $(VENV)
	$(PIP) --editable '.[train,data,xlsx,dev]'
	@touch $@

# what only tests of clusters need: a newcomer's demo does without its 250 MB
$(VENV)/.clusters: $(VENV)/.ok
	$(PIP) --editable '.[train,data,xlsx,ray,slurm,accelerate,dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.ok
	$(PIP) --editable '.[train,data,xlsx,ray,slurm,accelerate,dev,bench]'
	@touch $@

demo: install
	@$(BIN)/allot demo build/demo

test: $(VENV)/.clusters
	$(BIN)/python -m pytest -n auto

test-long: $(VENV)/.clusters
	$(BIN)/python -m pytest -n auto -m "long and not slow"

test-slow: $(VENV)/.clusters
	$(BIN)/python -m pytest -m slow

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/planner.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/charts.py
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/probing.py
	$(BIN)/python benchmarks/wide_table.py
	$(BIN)/python benchmarks/pictures.py
	$(BIN)/python benchmarks/times.py
	$(BIN)/python benchmarks/clusters.py

pictures: install
	$(BIN)/python docs/page_pictures.py build/pictures

wheel: install
	$(BIN)/python -m build --no-isolation --wheel

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
