# Everything runs from a virtual environment that the first target makes. Python 3.11 or later and make are all it takes.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run
READY  := $(VENV)/.ready
POSTS  := $(VENV)/.slothpost
PRICES := $(VENV)/.pricebook
APPS   := apps/slothpost apps/pricebook

.DEFAULT_GOAL := help
.PHONY: help run slothpost pricebook test check format bench soak pythons wheel mutants clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What runs: the service and its demo.
$(RUN): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "there is no $(PYTHON): install Python 3.11 or later, or say make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: say make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]'
	@touch $@

# And what tests and checks it, in the same environment. Groups need a recent pip.
$(READY): $(RUN) $(APPS:%=%/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . $(APPS:%=--editable %) --group dev
	@touch $@

# Parts that only some tests need: installed where that is possible; the tests say loudly what they miss otherwise.
.PHONY: parts
parts: $(READY)
	@PATH="$$PATH:/usr/sbin"; missing=""; \
	command -v pgbouncer >/dev/null || missing="pgbouncer"; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing="$$missing chromium"; \
	for part in $$missing; do \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "installing $$part"; \
	        { apt-get install -qq -y $$part || { apt-get update -qq && apt-get install -qq -y $$part; }; } >/dev/null 2>&1 \
	            || echo "$$part could not be installed: its tests are SKIPPED"; \
	    else echo "there is no $$part: its tests are SKIPPED (apt-get install $$part)"; fi; \
	done
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || { \
	    echo "fetching promtool"; cd $(VENV) && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } \
	        && dpkg-deb -x prometheus_*.deb prometheus && rm prometheus_*.deb && ln -sf ../prometheus/usr/bin/promtool bin/promtool; \
	} >/dev/null 2>&1 || echo "there is no promtool: the tests of the alerts are SKIPPED (apt-get install prometheus)"

run: $(RUN) ## Start the service on SQLite, with thousands of made-up schedules to look at
	@$(BIN)/tickler serve --store sqlite:///demo.db --setup examples.demo:fill

$(POSTS): $(RUN) apps/slothpost/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]' --editable apps/slothpost
	@touch $@

slothpost: $(POSTS) ## Start slothpost with made-up activity, at http://127.0.0.1:8322 (SLOTHPOST_PORT for another)
	@$(BIN)/slothpost serve --demo

$(PRICES): $(RUN) apps/pricebook/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]' --editable apps/pricebook
	@touch $@

pricebook: $(PRICES) ## Start pricebook with made-up stores and changes, at http://127.0.0.1:8323 (PRICEBOOK_PORT for another)
	@$(BIN)/pricebook serve --demo

# Every process of a run would compile all modules anew where the environment forbids to keep them.
test: $(READY) parts ## Run the tests, on a real PostgreSQL and a real DynamoDB engine too
	PATH="$$PATH:$(abspath $(BIN))" PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadgroup -rs

check: $(READY) ## Lint, format, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy conftest.py
	$(BIN)/mypy apps/pricebook/tests/conftest.py
	$(BIN)/lint-imports

format: $(READY) ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure, beside peers and the raw limit
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group peers
	@command -v wrk >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing wrk" \
	    && { apt-get install -qq -y wrk || { apt-get update -qq && apt-get install -qq -y wrk; }; } >/dev/null 2>&1; } \
	    || echo "wrk could not be installed: the API is not measured (apt-get install wrk)"
	$(BIN)/python bench/run.py

soak: $(READY) ## The long tests: every zone and transition, many processes killed
	TICKLER_SOAK=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

pythons: $(READY) ## The quick tests on Python 3.12 and 3.13, where they can be had
	$(BIN)/python tests/pythons.py

wheel: $(READY) ## Build the wheel, and try it with each extra alone in an empty environment
	$(BIN)/python tests/build_wheel.py

mutants: $(READY) ## Break stores and tables on purpose and see a named test fail each time
	$(BIN)/python tests/mutants.py

clean: ## Remove what the other targets made
	rm -rf demo.db demo.db-wal demo.db-shm slothpost-demo.db* pricebook-demo.* $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
