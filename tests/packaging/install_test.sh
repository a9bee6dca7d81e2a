#!/usr/bin/env bash
# Installs a build into an empty folder, runs the program there, and builds and runs an example against the libraries.
#   install_test.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1 BUILD=$2
# shellcheck source=tests/packaging/common.sh
source "$SOURCE/tests/packaging/common.sh"
readonly PREFIX="$SCRATCH/in stalled"

expect 0 syntra-targets.cmake cmake --install "$BUILD" --prefix "$PREFIX"
expect_program "$PREFIX"

# The installation must not need the source tree.
for file in "$PREFIX"/lib*/cmake/syntra/*.cmake "$PREFIX"/lib*/*/cmake/syntra/*.cmake; do
  if [[ -f $file ]] && grep -q "$SOURCE" "$file"; then fail "$file refers to $SOURCE"; fi
done
expect 0 'Build files have been written' \
  cmake -G Ninja -S "$SOURCE/examples/train_step" -B "$SCRATCH/example" -DCMAKE_PREFIX_PATH="$PREFIX"
expect 0 'Linking CXX executable' cmake --build "$SCRATCH/example"
# It learns to copy. The loss of a random guess among 31 tokens is 3.4.
losses=$("$SCRATCH/example/train_step")
if ! awk '$2 == 800 && $4 < 1 {found = 1} END {exit !found}' <<<"$losses"; then
  fail "the example did not learn to copy:"$'\n'"$losses"
fi
