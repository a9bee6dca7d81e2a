# Functions of the tests of launch/ and packaging/: what they expect of a command, and a folder that goes with them. Sourced
# with `set -euo pipefail`.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
SCRATCH=$(mktemp -d)
readonly SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# ends CODE COMMAND...: checks that the command ends with CODE; what it prints goes to $output.
ends() {
  local code=$1 ended=0
  shift
  output=$("$@" 2>&1 </dev/null) || ended=$?
  if ((ended != code)); then fail "\"$*\" ended with $ended, expected $code; it printed:"$'\n'"$output"; fi
}

# prints TEXT...: checks that $output has each.
prints() {
  local text
  for text in "$@"; do
    if [[ $output != *"$text"* ]]; then fail "\"$text\" is missing in:"$'\n'"$output"; fi
  done
}

# expect CODE TEXT COMMAND...: both.
expect() {
  ends "$1" "${@:3}"
  prints "$2"
}
