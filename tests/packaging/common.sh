# Functions of the tests of this folder. Sourced with `set -euo pipefail`.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
export LC_ALL=C
SCRATCH=$(mktemp -d)
readonly SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# expect TEXT COMMAND...: checks that the command succeeds and prints TEXT.
expect() {
  local text=$1 output
  shift
  if ! output=$("$@" 2>&1 </dev/null); then fail "\"$*\" failed; it printed:"$'\n'"$output"; fi
  if [[ $output != *"$text"* ]]; then fail "\"$*\" did not print \"$text\" but:"$'\n'"$output"; fi
}

# expect_program ROOT: checks that the program and its files are below ROOT and work.
expect_program() {
  local root=$1 file
  expect 'syntra 0' "$root/bin/syntra" --version
  for file in man/man1/syntra.1 man/man1/syntra-pretrain.1 bash-completion/completions/syntra \
    zsh/site-functions/_syntra fish/vendor_completions.d/syntra.fish doc/syntra/LICENSE doc/syntra/copyright; do
    if [[ ! -s $root/share/$file ]]; then fail "share/$file was not installed"; fi
  done
  expect 'parameters' env -C "$root/share/syntra" "$root/bin/syntra" plan --config configs/quickstart.textproto
  expect '32000 pieces and 100 sentinels' env -C "$root/share/syntra" "$root/bin/syntra" check \
    --config configs/quickstart.textproto --set train.directory="$SCRATCH/run"
}
