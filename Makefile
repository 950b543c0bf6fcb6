# make demo   see panpan fix a real bug, with no key and no network
# make test   every check and every test
# make lint   the checks alone
# make bench  the figures of the README
# make build  the wheel
.PHONY: demo test lint check bench build setup

BIN = .venv/bin

demo:
	@scripts/setup.sh run
	@$(BIN)/panpan demo

test: lint
	@rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -q -n auto --dist worksteal --cov=panpan --cov-report=term:skip-covered

lint:
	@scripts/setup.sh dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench:
	@scripts/setup.sh dev
	$(BIN)/python -m benchmarks

build:
	@scripts/setup.sh dev
	$(BIN)/python -m hatchling build
