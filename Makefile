# make demo   see a small model work on real files, with no key; fetches it once, 1.1 GB. DEMO=tape plays a tape instead
# make test   every check and every test
# make lint   the checks alone
# make coverage  every test, and which lines none of them ran; takes half as long again
# make bench  the figures of docs/benchmarks.md
# make test-peers  the clients against the server of the embedded model; fetches a small one once, 93 MB
# make soak   panpan killed, and its disk failing, at every moment of a turn; a campaign of 200 tasks killed at random; a cassette played 1,000 times; odd names; thousands of lines in their boxes; takes hours
# make docs   the site of docs/ in build/site, its links checked
# make eval   how often the embedded model does small tasks right; takes half an hour
# make build  the wheel
.PHONY: demo test test-peers coverage lint bytecode soak bench docs eval build dev

BIN = .venv/bin

# Without bytecode, every program that a test starts compiles all of panpan, and every worker all tests.
unexport PYTHONDONTWRITEBYTECODE

demo:
	@scripts/setup.sh $(if $(filter tape,$(DEMO)),tape,run)
	@$(BIN)/panpan demo $(if $(filter tape,$(DEMO)),,--local)

# Twice as many as there are processors: many tests wait for a program that they started.
WORKERS = $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))
PARALLEL = -q -n $(WORKERS) --dist worksteal
PEERS = tests/peers

# A test that fails is run again alone; the run ends with a list of those that passed then.
test: dev
	@$(MAKE) --no-print-directory -j2 lint bytecode
	$(BIN)/python -m scripts.run_tests $(PARALLEL)

coverage: dev
	@rm -f .coverage .coverage.*
	$(BIN)/python -m pytest $(PARALLEL) --cov=panpan --cov-report=term:skip-covered

test-peers: dev
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -o python_files='peer_*.py' $(PEERS)

lint: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m scripts.check_words

# Made once and beside the checks, or each worker would make it. What cannot be collected, the tests themselves report.
bytecode: dev
	@$(BIN)/python -m pytest --collect-only -qqq >/dev/null || true

soak: dev
	PANPAN_SOAK=1 $(BIN)/python -m pytest -q -n auto tests/crash tests/capabilities/cassettes/test_shuffled_tools.py \
		tests/shell_analysis/test_odd_names_by_running.py tests/permissions/test_boxes_by_running.py \
		tests/batch/test_campaign_soak.py tests/batch/test_cluster_soak.py

bench: dev
	$(BIN)/python -m benchmarks

docs: dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q

eval: dev
	$(BIN)/panpan local setup --yes
	$(BIN)/python -m evals

build: dev
	$(BIN)/python -m hatchling build

dev:
	@scripts/setup.sh dev
