# Two promises on a fresh machine: `make demo` shows Grange at work, `make test` proves it.
# Each sets up what it needs (Debian packages when root, a Python environment, a cargo build).

CARGO ?= cargo
JUDGES := $(CURDIR)/.setup/venv/bin/python

.PHONY: help demo test lint fmt tidy bench fuzz model swap-seeds mutants docs generate install

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## start Grange on embedded defaults and show what it does (DEMO_ONCE=1: run the story and exit)
	@scripts/setup build
	@$(CARGO) build --quiet --release --bin grange
	@scripts/demo

test: ## everything: format, lints, tidy, all tests with real PostgreSQL, NATS and S3
	@scripts/setup test
	@# Lints that fail do not keep the tests from running: one run shows everything that is wrong.
	@lint=0; $(MAKE) lint || lint=$$?; \
	GRANGE_TEST_PYTHON=$(JUDGES) scripts/with-services $(CARGO) test --workspace --locked --no-fail-fast && exit $$lint

lint: ## formatting and clippy, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format everything
	$(CARGO) fmt --all

tidy: ## arrows between crates, licences, leftovers
	$(CARGO) xtask tidy

bench: ## measure Grange beside its peers, ratios in one run
	@scripts/setup test
	@scripts/bench

fuzz: ## run every fuzz target for FUZZ_SECONDS (default 60) each
	@scripts/fuzz

model: ## explore every state of storing a file and of a SWAP collection, and print how many there are
	@GRANGE_MODEL=full $(CARGO) test --quiet --release --locked -p grange-model --test state_space -- --nocapture
	@$(CARGO) run --quiet --release --locked -p grange-swap --example explore_states

# Optimised, but with the checks of a test build.
swap-seeds: ## run real SWAP servers by SEEDS seeds (default 10000) from FIRST_SEED on, and print what happened
	@SEEDS=$(or $(SEEDS),10000) FIRST_SEED=$(or $(FIRST_SEED),0) $(CARGO) test --quiet --locked -p grange-swap --lib \
		--config 'profile.dev.package.grange-swap.opt-level=2' tests::seeds::every_seed -- --nocapture

mutants: ## change the code in many small ways and list the changes that no test notices
	@scripts/mutants

generate: ## write the files that are made from the types (example settings, reference pages)
	$(CARGO) build --quiet --bin grange
	scripts/generate

docs: ## build the book into docs/book (needs mdbook)
	mdbook build docs

install: ## install the grange program for this user
	$(CARGO) install --locked --profile dist --path crates/grange
