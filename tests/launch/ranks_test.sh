#!/usr/bin/env bash
# An mpirun that stays when its ranks have ended is killed by launch/ranks; one that ends gives its exit code at once.
#   ranks_test.sh SOURCE
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1
SCRATCH=$(mktemp -d)
readonly SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT
mkfifo "$SCRATCH/silence"

# expect CODE TEXT COMMAND...: what launch/ranks ends with and prints where the commands stand in for Open MPI's mpirun.
expect() {
  local code=0 printed place
  place=$(mktemp -d -p "$SCRATCH")
  printf '%s\n' '#!/usr/bin/env bash' "${@:3}" >"$place/mpirun"
  chmod +x "$place/mpirun"
  printed=$(PATH=$place:$PATH "$SOURCE/launch/ranks" 2 program 2>&1 </dev/null) || code=$?
  if ((code != $1)) || [[ $printed != *"$2"* ]]; then
    printf 'FAILED: code %s, printed "%s"; expected %s and "%s"\n' "$code" "$printed" "$1" "$2" >&2
    exit 1
  fi
}

readonly OTHER_HOST='sleep 1000 &' RANK='OMPI_COMM_WORLD_RANK=0 sleep 2 &' WAITS="read -r line <>$SCRATCH/silence"
readonly KILLED='mpirun does not end, though the ranks of this host have'
expect 6 ranks "$RANK" 'echo "ranks"' 'wait' 'exit 6'
# The connection to another host was lost.
expect 7 '' 'exit 205'
expect 7 '' 'exit 255'
expect 137 '' "$RANK" 'exit 137'
# Longer than its patience, but it has had no ranks.
expect 5 '' 'sleep 12 &' 'wait' 'exit 5' &
no_ranks=$!
# Its rank ends, and it waits for another host, which a child of it talks to.
expect 7 "$KILLED" "$OTHER_HOST" "$RANK" "$WAITS" &
hangs=$!
# Its rank has ended before anybody looked, and it does not look after it.
expect 7 "$KILLED" "$OTHER_HOST" 'sleep 0.1 &' 'exec sleep 1000' &
is_stuck=$!
wait $no_ranks
wait $hangs
wait $is_stuck
