# What can be done here: make demo, test, test-postgres-18, interop, chaos, simulate, fuzz, lint, clean.

CARGO ?= cargo
# .ci/run adds --locked.
CARGO_FLAGS ?=
ifneq ($(shell command -v cargo-nextest 2>/dev/null),)
RUN_TESTS = $(CARGO) nextest run $(CARGO_FLAGS) --workspace
else
RUN_TESTS = $(CARGO) test $(CARGO_FLAGS) --workspace --lib --bins --tests --examples
endif

.PHONY: demo test test-postgres-18 interop chaos fuzz simulate lint clean prerequisites peers

# Starts a PostgreSQL of its own and shows deliveries being made. The first build takes a few minutes.
demo: prerequisites
	@$(CARGO) build $(CARGO_FLAGS) --bin postrider
	@$(CARGO) run --quiet $(CARGO_FLAGS) --bin postrider -- demo

test: prerequisites peers
	scripts/with-postgres.sh $(RUN_TESTS)
	$(CARGO) test $(CARGO_FLAGS) --workspace --doc

# The same suite on another release than the distribution's.
test-postgres-18: prerequisites peers
	scripts/get-postgres.sh target/postgres-18
	POSTRIDER_PG_BIN="$(CURDIR)/target/postgres-18/bin" scripts/with-postgres.sh $(RUN_TESTS)

# Servers that others wrote, started for each test: Apache with mod_auth_openidc, Postfix.
interop: prerequisites peers
	scripts/with-postgres.sh $(CARGO) test $(CARGO_FLAGS) --test interop

# What peers and third parties can send us: URLs, addresses, HTTP answers, Retry-After. make fuzz SECONDS=600
fuzz:
	scripts/fuzz.sh $(or $(SECONDS),20)

# The actors on a model of the queue under faults, many seeds: make simulate SEEDS=100000; one of them again:
# make simulate SEED=1234
SIMULATE = $(CARGO) test $(CARGO_FLAGS) --release -p postrider-actors --features model --test simulation
simulate:
ifdef SEED
	SIMULATION_SEED=$(SEED) $(SIMULATE) replay -- --nocapture
else
	SIMULATION_SEEDS=$(or $(SEEDS),10000) $(SIMULATE) every_promise -- --nocapture --test-threads=1
endif

# Everything that can break breaks, and what was seen is judged. A minute or so; LONG=1 takes some ten. SEED=... plays
# a script again: the same faults at the same times, not the same interleaving.
chaos: prerequisites
	POSTRIDER_CHAOS_LONG="$(LONG)" POSTRIDER_CHAOS_SEED="$(SEED)" $(CARGO) test $(CARGO_FLAGS) --test chaos -- \
		--exact nothing_is_lost_unexplained_or_out_of_order_whatever_breaks --nocapture

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(CARGO_FLAGS) --workspace --no-deps
	@# The engine knows no database, no HTTP and no mail.
	@if $(CARGO) tree $(CARGO_FLAGS) -p postrider-actors -e normal --prefix none | grep -E '^(sqlx|hyper|axum|rustls)'; then \
		echo "postrider-actors must not depend on these" >&2; exit 1; fi
	@for script in scripts/*.sh tests/interop/*.sh .ci/run; do bash -n "$$script" || exit 1; done
	@if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh tests/interop/*.sh .ci/run; fi
	@if [ -f deny.toml ] && command -v cargo-deny >/dev/null; then $(CARGO) deny --offline check bans licenses sources; fi

clean:
	$(CARGO) clean

prerequisites:
	@scripts/install-prerequisites.sh

peers:
	@scripts/install-test-peers.sh
