# What one does with this repository. "make" alone lists it.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOTESTSUM = gotest.tools/gotestsum@v1.13.0
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.16.0

# The module that people import, and those that only tests need. each runs a command in all of them, then another one.
MODULES = $(dir $(wildcard go.mod */*/go.mod))
each = @failed=0; for dir in $(MODULES); do echo "module $$dir"; (cd $$dir && $(1)) || failed=1; done; $(2) exit $$failed

.DEFAULT_GOAL := help
.PHONY: help run build profile check test faults test-net test-unsettled race bench bench-scale bench-go bench-compare differential conformance simulate soak fuzz mutate lint cross release-check release

help: ## list what there is
	@awk '/^[a-z-]+:.*## / { i = index($$0, ":"); printf "  make %-15s %s\n", substr($$0, 1, i-1), substr($$0, index($$0, "## ")+3) }' Makefile

# The arguments override what is in the variable.
run: export ZSETD_OPTIONS := --http-port $(or $(HTTP),8379) $(ZSETD_OPTIONS)
run: ## build the server and start it, with its console; ARGS="--port 7000" gives it parameters, HTTP=0 no console, HTTP=n another port
	@[ -e bin/run/zsetd ] && [ -z "$$(find . -name '*.go' -newer bin/run/zsetd)" ] || echo "$(compiling)"
	@$(GO) build -o bin/run/zsetd ./cmd/zsetd
	bin/run/zsetd $(ARGS)

# make run leaves the profile out: the tests and other builds have compiled the same packages. It leaves bin/zsetd to make build.
compiling = compiling zsetd: one or two minutes on two cores with an empty build cache, seconds with a full one; the next start is immediate

# The profile makes the compiler compile all packages once more, for the program. Tests and checks do without.
export GOFLAGS += -pgo=off
release: export GOFLAGS := $(filter-out -pgo=off,$(GOFLAGS))

# Without cgo no libc is in the process, which would take 1.3 MB of memory.
build: ## build bin/zsetd
	CGO_ENABLED=0 $(GO) build -pgo=auto -o bin/zsetd ./cmd/zsetd

profile: ## write cmd/zsetd/default.pgo, the CPU profile under the works of make bench by which the compiler optimizes the program; two minutes
	@cd server/e2e && $(GO) run ./bench -profile ../../cmd/zsetd/default.pgo

# go test with a line for each test as it ends, and the skipped and failed ones again at the end; "make test" then lists
# the reasons of skipped ones instead. The directory is the working directory.
gotest = $(GO) run $(GOTESTSUM) --format testname $(summary) --raw-command -- $(GO) test -json

check: ## run the core tests, which install nothing: sorted set, values, file, protocol, commands on data, engine, program, documents, transcripts; a minute or two once compiled
	@$(GO) test ./cmd/... ./protocol/... ./snapshot/... ./zset/... ./server/internal/base/... ./server/internal/values/... ./server/internal/tests/transcript \
		./server/internal/commands/admin ./server/internal/commands/data ./server/internal/commands/pubsub ./server/internal/engine ./server/internal/tests/lint
	@$(GO) test ./server -run '^(TestTranscripts|TestDo[A-Z].*|Test.*Document|Example.*)$$'

test: summary = --hide-summary=skipped
test: ## run all tests, and list why some were skipped; first install redis-server, clients of other languages, Chromium and promtool, where apt (as root) and npm can
	@.ci/redis
	@.ci/clients
	@.ci/chromium
	@.ci/promtool
	@rm -rf bin/tests && mkdir -p bin/tests
	$(call each,GOTESTSUM_JSONFILE="$(CURDIR)/bin/tests/module-$$(basename $$dir).json" $(gotest) -timeout 40m ./...,cd server/e2e && $(GO) run ./skips ../../bin/tests/module-*.json;)

# These have ceilings in milliseconds and megabytes, which a busy machine can break. "make test" skips them.
faults: ## run the tests that measure time and memory; they want a machine that has nothing else to do
	@.ci/redis
	cd server/e2e && ZSETD_MEASURE=1 $(gotest) -count 1 ./faults
	cd server/e2e && ZSETD_MEASURE=1 $(gotest) -count 1 -run '^TestMeasure' ./browser
	ZSETD_MEASURE=1 $(gotest) -count 1 -run '^TestMeasure' ./zset ./server/internal/values/keyspace ./server/internal/engine ./server/internal/commands/scripting ./server/internal/peers/transport

# A test that cannot have another result in these two runs leaves itself out: see server/servertest/rerun.
test-net: export GOFLAGS += -tags=zsetd_net
test-net: ## run the tests with the transport that Linux does not use for plain sockets, and others for all
	$(gotest) -timeout 40m ./cmd/... ./server ./server/internal/tests/differential ./server/internal/lua/differential ./server/internal/commands/... ./server/internal/engine/... ./server/internal/peers/...
	cd server/e2e && $(gotest) .

test-unsettled: export GOFLAGS += -tags=zsetd_unsettled
test-unsettled: ## run the tests of the server while clients go from loop to loop all the time
	$(gotest) -timeout 20m ./server ./server/internal/peers/transport

# Only the race detector needs cgo.
export CGO_ENABLED = 0
race: export CGO_ENABLED = 1

# With -race the compiler also checks conversions and arithmetic of unsafe pointers
# (-d=checkptr).
race: ## run the tests that start goroutines under the race detector
	$(gotest) -race -timeout 30m ./cmd/... ./server ./server/internal/tests/differential ./server/internal/lua/differential ./server/archive ./server/console ./server/servertest ./server/internal/commands/... ./server/internal/engine/... ./server/internal/peers/... ./snapshot
	$(gotest) -race -run 'Model' ./server/internal/values/keyspace ./zset ./zset/table
	cd server/e2e && $(gotest) -race -timeout 30m .

bench: build ## measure zsetd beside Redis 8.6 and redis-server; SHORT=1 takes three minutes, README=1 writes the tables, WORK="zadd|ping" chooses
	@.ci/redis
	@.ci/clients
	@eval "$$(.ci/judges bench)" && cd server/e2e && $(GO) run ./bench -zsetd ../../bin/zsetd -redis "$${ZSETD_BENCH_REDIS8:-redis-server}" -also redis-server,valkey-server $(if $(SHORT),-short) $(if $(WORK),-work '$(WORK)') \
		$(if $(README),-results bench/RESULTS.md -summary ../../README.md -plot bench/bench.svg,-plot ../../bin/bench.svg)

bench-scale: build ## measure how cost grows with members, sets, clients, commands in a request, and cores; SHORT=1 takes a minute, README=1 writes the tables, MEMBERS=1000000 takes less memory, WORK="sets|cores" chooses
	@.ci/redis
	@eval "$$(.ci/judges bench)" && cd server/e2e && $(GO) run ./bench -zsetd ../../bin/zsetd -redis "$${ZSETD_BENCH_REDIS8:-redis-server}" -scale $(if $(SHORT),-short) $(if $(WORK),-work '$(WORK)') $(if $(MEMBERS),-members $(MEMBERS)) \
		$(if $(README),-results bench/RESULTS.md -plot bench/scale.svg,-plot ../../bin/scale.svg)

bench-go: ## run the Go benchmarks
	$(call each,$(GO) test -run '^$$' -bench . -benchmem ./...)

bench-compare: ## compare the Go benchmarks with another version's: make bench-compare REF=main
	@.ci/bench-compare "$(REF)"

differential: ## send a million random commands, and programs of Lua, to zsetd and to Redis 8.6; N=n another number, SEED=n repeats a run (CI: N=200000 SEED=1), JUDGE=valkey another server
	@.ci/redis
	eval "$$(.ci/judges)" && $(GO) test -p 1 ./server/internal/tests/differential ./server/internal/lua/differential -count 1 -v -timeout 30m -run 'TestDiffer' -differential.n $(or $(N),1000000) -differential.seed $(or $(SEED),0) $(if $(JUDGE),-differential.judge $(JUDGE))

conformance: build ## run Redis's own test suite against zsetd and Redis; SUITE="valkey-9.1 redis-7.0" chooses others, README=1 writes the tables, FILES="unit/multi ..." chooses
	@.ci/conformance $(SUITE:%=-suite %) $(if $(ONCE),-once) $(if $(VERBOSE),-v) $(if $(README),-readme) $(FILES)

simulate: ## run a primary, replicas, clients and faults in one process, on a simulated clock and network; SEED=n repeats a run, SEEDS=n takes so many from there on (CI: 6)
	$(GO) test ./server/internal/tests/simulation -count 1 -timeout 24h -run TestSimulation -seed $(or $(SEED),1) -seeds $(or $(SEEDS),1) $(if $(SEEDS),,-v)

fuzz: ## run the fuzz targets, each for TIME=1m; TARGET=regexp chooses, PARALLEL=1 leaves the other cores alone
	@GO='$(GO)' .ci/fuzz $(or $(TIME),1m) '$(or $(TARGET),.)' $(PARALLEL)

soak: ## keep servers busy with everything for an hour and compare them with a model; TIME=3m, SEED=n repeats what is drawn, RACE=1, RATE=n limits commands a second
	cd server/e2e && $(GO) run ./soak -v -time $(or $(TIME),1h) -seed $(or $(SEED),0) -rate $(or $(RATE),0) $(if $(RACE),-race)

mutate: ## plant N=50 faults in the code, one at a time, and list those that no test notices; SEED=n repeats a sample, PACKAGE=regexp chooses packages that get faults, TESTS=regexp those whose tests run
	@.ci/redis
	@.ci/clients
	@.ci/chromium
	@.ci/promtool
	@mkdir -p bin
	eval "$$(.ci/judges)" && cd server/e2e && $(GO) run ./mutate -root ../.. -dir "$${XDG_CACHE_HOME:-$$HOME/.cache}/zsetd-mutate" -places ../../bin/mutate.txt \
		-n $(or $(N),50) -seed $(or $(SEED),0) $(if $(PACKAGE),-package '$(PACKAGE)') $(if $(TESTS),-tests '$(TESTS)')

lint: ## check format, vet, staticcheck, and that go.mod is tidy
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not as gofmt writes it: $$out"; exit 1; }
	$(call each,$(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) mod tidy -diff)

# The compiler finds the same errors in three quarters of the time.
unoptimized = '-gcflags=all=-N -l'

cross: ## compile for other systems
	GOOS=darwin GOARCH=arm64 $(GO) build $(unoptimized) ./...
	GOOS=linux GOARCH=arm64 $(GO) build $(unoptimized) ./...
	GOOS=windows GOARCH=amd64 $(GO) vet $(unoptimized) ./... # the tests, too, of the system that differs most

# goreleaser and the programs for six systems are compiled once for each build cache.
release-check: ## check .goreleaser.yaml and the workflows of .github, build all of a release but the images, and install, upgrade and remove its packages; SHORT=1 builds for Linux only
	@.ci/packages
	$(GO) run $(ACTIONLINT)
	@GOBIN='$(CURDIR)/bin' $(GO) install $(GORELEASER) || { echo "goreleaser cannot be had: the release is not built" >&2; exit 0; }; \
	bin/goreleaser check && cd server/e2e && ZSETD_GORELEASER='$(CURDIR)/bin/goreleaser' $(gotest) -count 1 -timeout 40m $(if $(SHORT),-short) -run TestRelease ./packages

release: ## build and publish the release of the tag that is checked out; .github/workflows/release.yml calls it
	$(GO) run $(GORELEASER) release --clean
