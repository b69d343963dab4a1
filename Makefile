# rlock: what there is to do. `make` lists it.

PORT ?= 6379
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib/rlock
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

# What a test run needs to know. Tests mostly wait: so many at a time keep two cores busy.
export RLOCK_MODULE := $(TARGET)/release/librlock.so
export RLOCK_LEAST := $(TARGET)/release/librlock_least.so
export RLOCK_SERVER ?= redis-server
export RUST_TEST_THREADS ?= 16

.PHONY: help build run test test-matrix test-threads test-upgrade test-tls test-clients test-clients-plain test-packages test-monitoring interop soak walk explore torture torture-mutants durability hostile hostile-mutants fuzz mutants failover bench costs house words lint docs docs-check install dist dist-check lua bindings bindings-check clean tools drivers least module server miri asan valgrind valgrind-tool

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: module ## build the module and print where it is
	@echo "$(RLOCK_MODULE)"

run: module server ## start a server with the module in the foreground, on PORT (6379)
	@build-support/run-server "$(PORT)" "$(TARGET)/run"

test: module server ## run the unit tests, and the suite on the installed server
	cargo test --locked --workspace

test-matrix: module server ## run the suite on every server that can be had (or SERVERS="valkey-9.1 ...")
	@tests/servers/matrix "$(TARGET)/servers" $(SERVERS)

test-upgrade: module server ## go from the last release to this one, and back, while locks are held, waited for and watched (SERVER=valkey-9.1)
	@$(TORTURE_SERVER) tests/versions/run "$(TARGET)/versions"

test-threads: module drivers ## run the suite, and torture, on servers with io-threads (SERVERS="redis-8.2 valkey-9.1" SECONDS=60)
	@RLOCK_SERVER_OPTIONS="--io-threads 4" tests/servers/matrix "$(TARGET)/servers" $(THREADED)
	@for server in $(THREADED); do RLOCK_SERVER_OPTIONS="--io-threads 4" RLOCK_SERVER="$(TARGET)/servers/$$server/run" "$(TARGET)/debug/torture" --seconds=$(or $(SECONDS),60) || exit; done

# What is left out is so long that it would take hours.
miri: tools ## run the core's tests under Miri (an hour; ONLY=sessions::; needs a nightly toolchain with miri)
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "make miri needs: rustup toolchain install nightly --component miri,rust-src" >&2; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --locked --lib --target-dir "$(TARGET)/miri" -- $(or $(ONLY),lock::tests::) --skip family:: --skip hostile --skip crowds:: --skip _in_slices

valgrind: tools server valgrind-tool ## run the suite on a server under valgrind, and print what that reports of rlock (hours; ONLY="sessions:: permits::")
	@tests/valgrind/run "$(TARGET)" "$(RLOCK_SERVER)" $(ONLY)

asan: tools server ## run the suite with the module under AddressSanitizer (ONLY="sessions:: permits::"; needs gcc and a nightly toolchain)
	@tests/asan/run "$(TARGET)" "$(RLOCK_SERVER)" $(ONLY)

test-tls: module server drivers ## run the suite, and torture, over TLS (SERVER=valkey-8.0 SECONDS=60)
	@$(TORTURE_SERVER) tests/tls/run "$(TARGET)" $(or $(SECONDS),60)

test-clients: module server ## test the clients by the scenarios they share, and client libraries unmodified, where the toolchain is there (ONLY=python, ONLY=ioredis)
	@$(if $(ONLY_CLIENT),,clients/conformance/raw/run "$(TARGET)/clients" $(ONLY))
	@$(if $(ONLY),$(if $(ONLY_CLIENT),clients/conformance/run $(ONLY)),clients/conformance/test_proxy.py && clients/conformance/test_by_library.py && clients/conformance/run)

test-clients-plain: module server ## test the clients by the same scenarios on servers without the module (BACKEND=functions or script, ONLY=python, SERVER=redis-6.2; SHORT=1: a few groups)
	@RLOCK_BACKEND=$(or $(BACKEND),functions) $(TORTURE_SERVER) clients/conformance/run $(ONLY) $(if $(SHORT),$(PLAIN_SHORT))

test-packages: module server ## run the tests of the clients' own packages, and the model of the quorum (ONLY=node)
	@clients/test "$(TARGET)/packages" $(ONLY)

test-monitoring: module server ## watch a server by the real exporter and the real Prometheus, and test the alerts and the dashboard
	@mkdir -p "$(TARGET)/monitoring" && monitoring/test/run "$(TARGET)/monitoring"

interop: module server ## test against the real Redisson, if Maven and a JDK are there (SECONDS=30 for each contest)
	@RLOCK_INTEROP_SECONDS=$(or $(SECONDS),$(RLOCK_INTEROP_SECONDS)) tests/redisson/run "$(TARGET)/interop" $(ONLY)

soak: module server ## run for longer what the tests do in short (SECONDS=20 of contention, of permits among processes, and of library against module)
	RLOCK_SOAK_SECONDS=$(or $(SECONDS),20) tests/suite --nocapture many::contention permits::experiment
	RLOCK_DIFF_STEPS=$(shell expr $(or $(SECONDS),20) '*' 500) tests/suite --nocapture lua::differential::the_library

walk: ## walk all that a few clients can do to three keys, to the end (some minutes)
	cargo test --locked --profile bench --lib -- --nocapture --ignored long_walks whole_walks

explore: module server ## run the core against its model, and the library against the module, at random, otherwise each time (SEED=8 repeats one)
	PROPTEST_RNG_SEED=$(or $(SEED),$(shell date +%s)) cargo test --locked --lib random::
	RLOCK_DIFF_SEED=$(or $(SEED),$(shell date +%s)) RLOCK_DIFF_STEPS=$(or $(STEPS),20000) tests/suite --nocapture lua::differential::the_library

torture: module server drivers ## drive it by many clients under faults, and judge what they saw (SECONDS=60, SEED=8 repeats one; SERVER=valkey-9.1, TOPOLOGY=cluster, ONLY=full; CLIENTS="python go" tortures those of clients/, PLAIN=functions, script or mixed without the module, REDISSON=1 beside the real Redisson)
	@$(TORTURE_SERVER) $(if $(CLIENTS),$(TARGET)/debug/torture-clients --clients="$(CLIENTS)" --plain=$(PLAIN) --redisson=$(REDISSON),$(TARGET)/debug/torture --topology=$(TOPOLOGY) --only=$(ONLY)) --seed=$(SEED) --seconds=$(SECONDS) --round=$(ROUND) --round-seconds=$(ROUND_SECONDS)

failover: module server drivers ## replace masters under load, and count what is held twice (SHORT=1 for CI; SERVER=valkey-9.1, FAULTS=kill,stop, RULES=0,1, ROUNDS=5; CLUSTER=all: slots and masters of a cluster)
	@$(TORTURE_SERVER) $(TARGET)/debug/failover --short=$(SHORT) --faults=$(FAULTS) --rules=$(RULES) --rounds=$(ROUNDS) --cluster=$(CLUSTER)

durability: module server drivers ## kill servers under load and look at what they are after it, and compare replicas and AOFs whatever is done to them (SHORT=1 for CI; SECONDS=60, SEED=8 and ROUND=5 repeat one; SERVER=valkey-9.1, ONLY=crash or copies)
	@$(TORTURE_SERVER) $(TARGET)/debug/durability --short=$(SHORT) --seed=$(SEED) --seconds=$(SECONDS) --round=$(ROUND) --only=$(ONLY)

torture-mutants: server drivers ## whether torture notices 26 ways of breaking rlock (some minutes; SECONDS=150 at most for each)
	@$(TORTURE_SERVER) TORTURE=$(TARGET)/debug/torture tests/torture/mutants/run "$(TARGET)/mutants" $(or $(SECONDS),150) $(ONLY)

hostile: module server ## send what nobody should send over many connections, and look that the server stands (SECONDS=60 SEED=8 SERVER=valkey-9.1; COMMANDS=10000000 at most, ONLY=storm or looks)
	@cargo build --quiet --locked --release -p rlock-hostile
	@$(TORTURE_SERVER) $(TARGET)/release/hostile --seed=$(SEED) --seconds=$(SECONDS) --commands=$(COMMANDS) --only=$(ONLY)

hostile-mutants: server ## whether it notices ways of breaking rlock (some minutes; ONLY="panic-on-a-name")
	@cargo build --quiet --locked --release -p rlock-hostile
	@$(TORTURE_SERVER) HOSTILE=$(TARGET)/release/hostile tests/hostile/mutants/run "$(TARGET)/hostile-mutants" $(ONLY)

fuzz: ## drive the reading of arguments, of keys and of notes by libFuzzer (SECONDS=60 for each; ONLY=hashes; needs a C++ compiler)
	@tests/hostile/fuzz/run "$(TARGET)/fuzz" $(or $(SECONDS),60) $(ONLY)

mutants: ## whether the core's own tests notice that it is broken somewhere (SHARD=0/50: one way in fifty, an hour; needs cargo-mutants)
	@tests/mutants/run "$(TARGET)/core-mutants" $(or $(SHARD),0/50)

bench: module least server ## measure on the installed server and write bench/report.md (BENCH="--quick" and other flags; SERVER=valkey-9.1)
	@$(if $(findstring --quick,$(BENCH)),,build-support/ensure-package valgrind || echo "the report will have no counts of instructions")
	$(TORTURE_SERVER) cargo bench --locked --workspace --bench locks $(if $(findstring --quick,$(BENCH)),--profile dev) -- $(BENCH)

costs: $(if $(MODULES),,module) least server valgrind-tool ## count instructions and bytes (MODULES="before.so after.so" side by side)
	cargo bench --locked --bench locks -- --only costs $(addprefix --module ,$(MODULES))

lint: tools house words docs-check ## check format, lints, how src/ is put together, and the links of all pages
	cargo fmt --all --check
	cargo fmt --manifest-path clients/conformance/raw/redis-rs/Cargo.toml --check
	cargo fmt --manifest-path clients/Cargo.toml --all --check
	cargo fmt --manifest-path clients/model/Cargo.toml --check
	cargo fmt --manifest-path tests/tls/Cargo.toml --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --manifest-path clients/Cargo.toml --target-dir $(TARGET)/packages/rust --workspace --all-targets -- -D warnings
	cargo clippy --locked --manifest-path clients/model/Cargo.toml --target-dir $(TARGET)/packages/model --all-targets -- -D warnings
	@! command -v php >/dev/null || find clients -name '*.php' -print0 | xargs -0 -n 1 -P 2 php -l >/dev/null
	@for patch in $$(find tests -name '*.patch'); do git apply --check "$$patch" || exit; done

words: ## refuse old words in the pages, code, names and messages (needs python3)
	@build-support/words --test
	@build-support/words

house: tools ## print where src/ breaks a rule of how it is put together, and what is to become less
	@cargo run --quiet --locked -p rlock-house -- src docs/architecture.md

# mdBook is built into the folder of what is built, once.
MDBOOK := $(TARGET)/docs-tools/bin/mdbook
MDBOOK_VERSION := 0.5.4

docs: docs-check $(MDBOOK)-$(MDBOOK_VERSION) ## build the pages as a site into target/docs, and check its links (builds mdBook first, which takes 2 minutes)
	@build-support/docs/stage "$(TARGET)/docs-pages"
	@"$(MDBOOK)-$(MDBOOK_VERSION)" build "$(TARGET)/docs-pages" --dest-dir "$(TARGET)/docs"
	@build-support/docs/check "$(TARGET)/docs"

docs-check: ## check the links of all pages, that each promise names its tests and each field of INFO its alerts, and a picture against the report, without building anything (needs python3)
	@build-support/docs/test
	@build-support/docs/check
	@build-support/docs/promises
	@build-support/docs/alerts
	@docs/pictures/hand-overs --check

$(MDBOOK)-$(MDBOOK_VERSION): | tools
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install --quiet --locked --force --version $(MDBOOK_VERSION) --no-default-features --features search --root "$(TARGET)/docs-tools" --target-dir "$(TARGET)/docs-tools/build" mdbook
	@rm -rf "$(TARGET)/docs-tools/build"
	@mv "$(MDBOOK)" $@

# Run as root it builds nothing: there is no cargo in root's path, and what it would build
# would be root's. Service units let servers load libraries from /usr/lib and /lib alone.
install: ## copy the module that was built to LIBDIR (PREFIX/lib/rlock, PREFIX is /usr; DESTDIR is honoured)
	@test -r "$(RLOCK_MODULE)" || { echo "there is no $(RLOCK_MODULE) to install: say 'make build' first, as the user who has cargo; CARGO_TARGET_DIR=... says where it was built" >&2; exit 1; }
	@install -d "$(DESTDIR)$(LIBDIR)"
	@install -m 755 -s "$(RLOCK_MODULE)" "$(DESTDIR)$(LIBDIR)/librlock.so"
	@echo "installed; put this line in redis.conf (or valkey.conf):"
	@echo "loadmodule $(LIBDIR)/librlock.so"

dist: ## build what a release is made of, as far as this machine can, into target/dist/release (needs python3; fetches zig, and Debian's packages)
	@packaging/dist "$(TARGET)/dist"

dist-check: server ## use what dist made, as new users would: packages, old systems, arm64, images, two builds (ONLY="deb image"; as root it does the most)
	@packaging/check/run "$(TARGET)/dist" $(ONLY)

lua: ## put lua-compat/rlock.lua together from its parts
	@lua-compat/build

bindings: tools ## make the checked-in bindings anew (needs libclang)
	@build-support/regenerate/bindings write "$(TARGET)/regenerate"

bindings-check: tools ## check whether the checked-in bindings have drifted (needs libclang)
	@build-support/regenerate/bindings check "$(TARGET)/regenerate"

clean: ## remove all that was built and fetched
	cargo clean

THREADED = $(or $(SERVERS),redis-8.2 valkey-9.1)

# A server of the matrix by its name, or any by its path.
TORTURE_SERVER = $(if $(SERVER),tests/servers/with "$(TARGET)/servers" "$(SERVER)")

# Of the scenarios those groups that differ most without the module.
PLAIN_SHORT = --only basic --only waiting --only loss --only backend

# What ONLY names is a client of clients/, or else a library.
ONLY_CLIENT = $(if $(ONLY),$(wildcard clients/conformance/drivers/$(ONLY)/driver.json))

# What drives servers, all of it, beside what `make test` builds: so libraries are built once for both.
drivers: tools
	@cargo build --quiet --locked --workspace --bins --tests

module: tools
	@cargo build --release --locked

# What any module must pay, to hold this one against.
least: tools
	@cargo build --release --locked -p rlock-least

tools:
	@build-support/ensure-tools

server:
	@build-support/ensure-server

valgrind-tool:
	@build-support/ensure-package valgrind
