# The stable commands. Each sets up what it needs; a fresh Debian needs Python >= 3.11, git and make.
PY := .venv/bin/python
PORT ?= 8000
HOST ?= 127.0.0.1

SEEDS ?= 500
BASE ?= 1

.PHONY: serve test check contract sim zoo model gold setup setup-tests lock format

serve:            ## QueryData on http://127.0.0.1:8000 (PORT= to change)
	@tools/setup.sh run
	@exec $(PY) -m querydata serve --host $(HOST) --port $(PORT)

test: setup-tests ## everything that CI runs
	@$(MAKE) --no-print-directory check
	@$(PY) -m pytest --rows
	@$(MAKE) --no-print-directory sim SEEDS=5000 BASE=commit

check: setup      ## lint, types, layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-cache | tail -n 12

contract: setup   ## the contract suite of every port on every backend
	@$(PY) -m pytest tests/contract

sim: setup        ## SEEDS= seeds from BASE= (a number, or "commit") under the simulation; exit 1 on a violation
	@$(PY) -m oneturn.testing.simulation --seeds $(SEEDS) --base $(BASE)

zoo: setup        ## every planted bug is found; writes the table of them
	@$(PY) -m oneturn.testing.simulation.zoo --write docs/reference/zoo.md

model: setup      ## the protocol's model: exhausted as it is, refuted with each planted design error
	@$(PY) -m oneturn.testing.model

gold: setup       ## the embedded model against the gold file; GOLD="--classes --wrong --refused" for what is behind the figures
	@$(PY) -m tests.querydata.judge $(GOLD)

format: setup
	@$(PY) -m ruff check --fix . ; $(PY) -m ruff format .

setup:
	@tools/setup.sh dev

setup-tests: setup
	@tools/browser.sh

lock: setup
	@tools/lock.sh
