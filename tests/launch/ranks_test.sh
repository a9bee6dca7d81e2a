#!/usr/bin/env bash
# An mpirun that stays when its ranks have ended is killed by launch/ranks; one that ends gives its exit code at once.
#   ranks_test.sh SOURCE
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1
SCRATCH=$(mktemp -d)
readonly SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT

# mpirun COMMAND...: stands in for Open MPI's.
mpirun() {
  printf '#!/usr/bin/env bash\n%s\n' "$1" >"$SCRATCH/mpirun"
  chmod +x "$SCRATCH/mpirun"
}

# expect CODE TEXT: what launch/ranks ends with and prints.
expect() {
  local code=0 printed
  printed=$(PATH=$SCRATCH:$PATH "$SOURCE/launch/ranks" 2 program 2>&1 </dev/null) || code=$?
  if ((code != $1)) || [[ $printed != *"$2"* ]]; then
    printf 'FAILED: code %s, printed "%s"; expected %s and "%s"\n' "$code" "$printed" "$1" "$2" >&2
    exit 1
  fi
}

mpirun 'sleep 1 & echo "ranks"; wait; exit 6'
expect 6 ranks
# The last child ends, and mpirun waits without one.
mkfifo "$SCRATCH/silence"
mpirun "sleep 2 & wait; read -r line <>$SCRATCH/silence"
expect 137 'mpirun does not end, though its ranks have'
