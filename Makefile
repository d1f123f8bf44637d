# Every recipe line also works by hand, from this folder.

# scripts/libtorch has made links of the torch that this asks for; torch-sys itself would link its torch_cuda too.
CARGO = env -u LIBTORCH_USE_PYTORCH cargo

.PHONY: help setup libtorch demo demo-seeds tau test parity lint bench soak fuzz aa diagnosis

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup: ## fetch libtorch, the demo's model and its prompts, once
	scripts/need cargo g++ make python3 pip venv
	scripts/libtorch
	scripts/demo-data

demo: setup ## train a drafter on a real model and show where the time went
	$(CARGO) build --release
	scripts/demo

demo-seeds: setup ## the demo over three seeds and 40 prompts
	$(CARGO) build --release
	scripts/demo --seeds

tau: setup ## how tau grows with training: three lengths, three seeds (an hour on two cores; scripts/tau-curve has options)
	$(CARGO) build --release
	scripts/tau-curve

libtorch:
	scripts/need cargo g++ python3 pip
	scripts/libtorch

test: libtorch ## all tests: with libtorch, then the read side without it; pandas, DuckDB and Perfetto's classes read our files
	tools=$$(scripts/test-tools) && \
	env $$tools $(CARGO) test --workspace --exclude dflash-benches && \
	env $$tools $(CARGO) test --no-default-features -p dflash -p dflash-profiler

parity: setup ## the trainer beside transformers, SpecForge, z-lab and torch: each error beside its tolerance (a minute)
	$(CARGO) test -q -p dflash-trainer --test oracles -- parity --nocapture

soak: ## 72 simulated hours of recording (an hour; HOURS=2: minutes), a minute of overflow, 1,000 starts of CPU sampling
	cargo run --release -p dflash-timeline --example soak -- $(or $(HOURS),72)
	cargo test --release -p dflash-profiler --test recording -- --ignored
	cargo test --release -p dflash-sys --test beside_cpp -- --ignored
	$(CARGO) test -p dflash --test integration -- --ignored a_thousand_starts

fuzz: ## recordings changed at random, and read; SECONDS=60: for so long instead of 600
	SECONDS=$(or $(SECONDS),600) cargo test -p dflash-timeline --test timeline -- --ignored --exact fuzz::for_long

lint: libtorch ## formatting, clippy, documentation, shell scripts
	cargo fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features -p dflash --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features --features train -p dflash -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
	scripts/lint-shell

bench: ## what a span costs beside its peers (benches/README.md); 3 minutes on a quiet machine
	scripts/need cargo g++
	cargo test --release -p dflash-benches --features tracy
	cargo run --release -p dflash-benches --features tracy --bin paired
	cargo run --release -p dflash-benches --features tracy --bin threads
	cargo run --release -p dflash-benches --features tracy --bin stream
	cargo bench -p dflash-benches --features tracy

aa: setup ## does diff cry wolf here? 20 pairs of 60 s runs of the same binary (scripts/aa --quick: 2 of 15 s)
	$(CARGO) build --release
	scripts/aa

diagnosis: ## the comparison's cost, and its rates of false and missed alarms, simulated (minutes)
	$(CARGO) test --release -p dflash-reports diagnosis_ -- --ignored --nocapture
