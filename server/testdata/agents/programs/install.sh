#!/usr/bin/env bash
# install.sh DIR: puts the programs of TestAgentPrograms into DIR, in the versions of the
# files beside this one. It takes node with npm, and python3 with venv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
if cmp -s <(cat "$here"/package.json "$here"/*.txt) installed; then exit; fi
rm -rf installed node_modules clients aider
cp "$here/package.json" .
npm install --omit=dev --no-audit --no-fund --no-update-notifier --no-package-lock --ignore-scripts &
python() { # NAME: packages of NAME.txt, which name all that they need
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile -r "$here/$1.txt"
}
python clients
python aider
wait $!
# Two packages put their program into place in a script of their own.
node node_modules/@anthropic-ai/claude-code/install.cjs
node node_modules/opencode-ai/postinstall.mjs
cat "$here"/package.json "$here"/*.txt >installed
