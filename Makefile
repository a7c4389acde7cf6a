# Everything a developer types. `make run` and `make test` are the whole set-up.

export GOTOOLCHAIN = go1.27.3
export CGO_ENABLED ?= 0

FUZZTIME ?= 20s

.PHONY: run test race bench lint fuzz build needs

run: ## the demo: sample capsules, simulated traffic, the console
	go run ./cmd/holdfast demo

build: ## bin/holdfast
	go build -trimpath -o bin/holdfast ./cmd/holdfast

test: needs ## every test, against real parts; under the race detector too where there is a C compiler
	go vet ./...
	go test -timeout 15m ./...
	@if command -v gcc >/dev/null; then $(MAKE) --no-print-directory race; \
	else echo "no C compiler: the tests were not run under the race detector"; fi

race: ## every test under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -timeout 20m ./...

bench: ## every benchmark, with allocations
	go test -run '^$$' -bench . -benchmem ./...

fuzz: ## every fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

lint: ## format, vet, staticcheck, advisories
	scripts/lint

needs: ## the programs that tests drive: installed as root, named when missing
	scripts/needs
