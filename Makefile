# `make test` is everything: it brings what it needs where it may, or says what is missing.
.PHONY: test vet lint unit e2e escape bench fuzz vuln fmt dist

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
ARCHS   ?= amd64 arm64
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
TOOL    := go tool -modfile=$(CURDIR)/.ci/tools/go.mod

test:
	@.ci/test need vet lint unit e2e

# escape: every way out of the sandbox that is known, tried in every place; prints the table.
vet lint unit e2e escape vuln:
	@.ci/test $@

bench:
	go test -run '^$$' -bench . -benchmem ./...
	cd e2e && go run ./cmd/parts && go test -run '^$$' -bench . -timeout 40m .

fuzz:
	@.ci/fuzz

fmt:
	$(TOOL) gofumpt -w main.go internal e2e

# What a release tag carries. The same commit and Go give the same bytes.
dist: export GOTOOLCHAIN = $(shell sed -n 's/^toolchain //p' go.mod)
dist:
	@mkdir -p dist
	@for arch in $(ARCHS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch GOFLAGS= go build -trimpath -buildvcs=false \
	    -ldflags '-s -w -X issuesmith/internal/app.release=$(VERSION) -X issuesmith/internal/app.commit=$(COMMIT)' \
	    -o dist/issuesmith-linux-$$arch . || exit 1; \
	done
	@cd dist && sha256sum $(ARCHS:%=issuesmith-linux-%) > SHA256SUMS && cat SHA256SUMS
