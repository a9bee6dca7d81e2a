#!/usr/bin/env bash
# launch/ranks, launch/test and launch/quickstart with programs that stand in for those that they start. An mpirun that stays
# when its ranks have ended is killed by launch/ranks; one that ends gives its exit code at once. launch/test builds where the
# caller says, and leaves no compiler and no test behind. launch/quickstart shows the run that it trained.
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
  printed=$(PATH=$place:$PATH "$SOURCE/launch/ranks" 2 true 2>&1 </dev/null) || code=$?
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

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# stand_in NAME: makes a program of standard input, first in PATH.
stand_in() {
  mkdir -p "$SCRATCH/path"
  { printf '#!/usr/bin/env bash\n' && cat; } >"$SCRATCH/path/$1"
  chmod +x "$SCRATCH/path/$1"
}

# printed_by CODE COMMAND...: its output goes to $printed.
printed_by() {
  local code=0
  printed=$(PATH=$SCRATCH/path:$PATH CXX=true "${@:2}" 2>&1 </dev/null) || code=$?
  if ((code != $1)); then fail "${*:2}: code $code, expected $1; printed:"$'\n'"$printed"; fi
}

# prints TEXT...
prints() {
  local text
  for text in "$@"; do
    if [[ $printed != *"$text"* ]]; then fail "\"$text\" is missing in:"$'\n'"$printed"; fi
  done
}

readonly REPOSITORY=$SCRATCH/repository
mkdir -p "$REPOSITORY/build/src/cli" "$SCRATCH/elsewhere"
cp -r "$SOURCE/launch" "$REPOSITORY"
stand_in apt-get <<<'exit 0'
# Compiles for ever where SCRATCH/compiles is.
stand_in ninja <<END
if [[ -e "$SCRATCH/compiles" ]]; then
  echo \$\$ >"$SCRATCH/test.part" && mv "$SCRATCH/test.part" "$SCRATCH/test"
  exec sleep 1000
fi
END
# cmake ... -B DIRECTORY ...
stand_in cmake <<'END'
while (($#)) && [[ $1 != -B ]]; do shift; done
if (($#)); then touch "$2/CMakeCache.txt"; fi
END
stand_in dpkg-query <<<'echo installed'
stand_in df <<<'printf "header\n/dev/x 1 1 99999 1%% /\n"'
# Has one test, of the label fast, which lasts for ever where SCRATCH/endless is.
stand_in ctest <<END
label='' junit=''
while ((\$#)); do
  case \$1 in
    -L) label=\$2 ;;
    --output-junit) junit=\$2 ;;
  esac
  shift
done
if [[ \$label != '^fast\$' ]]; then exit; fi
if [[ -e "$SCRATCH/endless" ]]; then
  sleep 1000 &
  echo \$! >"$SCRATCH/test.part" && mv "$SCRATCH/test.part" "$SCRATCH/test"
  wait
fi
printf '<testcase name="one" status="run">\n</testcase>\n' >"\$junit"
END

refuses_what_cannot_be_at_once() {
  printed_by 2 "$SOURCE/launch/ranks" 2 "$SCRATCH/nowhere"
  prints "error: there is no program $SCRATCH/nowhere"
  printed_by 2 "$REPOSITORY/launch/quickstart" --steps=5
  prints 'there is no option --steps=5'
  mkdir -p "$SCRATCH/mine/results"
  touch "$SCRATCH/mine/results/thesis"
  printed_by 2 "$REPOSITORY/launch/test" "$SCRATCH/mine"
  prints "$SCRATCH/mine is no build directory"
  if [[ ! -e $SCRATCH/mine/results/thesis ]]; then fail 'a folder of the user is gone'; fi
}

# Before there are handlers, the request ends what it is for.
is_asked_early() {
  local started code=0
  stand_in mpirun <<<'exec env --default-signal=USR1 sleep 60'
  PATH=$SCRATCH/path:$PATH "$SOURCE/launch/ranks" 2 true >/dev/null 2>&1 </dev/null &
  started=$!
  sleep 0.5
  kill -TERM "$started"
  wait "$started" || code=$?
  if ((code != 75)); then fail "an early request: code $code"; fi
}

builds_where_the_caller_says() {
  printed_by 0 "$REPOSITORY/launch/test" "$SCRATCH/absolute"
  prints '1 passed, 0 failed, 0 skipped'
  cd "$SCRATCH/elsewhere"
  printed_by 0 "$REPOSITORY/launch/test" relative
  if [[ ! -s relative/results/fast.xml ]]; then fail "the tests are not in the caller's folder"; fi
  printed_by 0 "$REPOSITORY/launch/test"
  if [[ ! -s $REPOSITORY/build-test/results/fast.xml ]]; then fail "the tests are not in build-test"; fi
  cd "$SOURCE"
}

# ends_all FILE SIGNAL CODE: with SCRATCH/FILE neither compilers nor tests go on behind a signal. This shell starts launch/test deaf to
# INT, which env mends.
ends_all() {
  local started code=0
  touch "$SCRATCH/$1"
  rm -f "$SCRATCH/test"
  PATH=$SCRATCH/path:$PATH CXX=true env --default-signal=INT "$REPOSITORY/launch/test" >"$SCRATCH/log" 2>&1 </dev/null &
  started=$!
  for ((i = 0; i < 600; ++i)); do
    if [[ -e $SCRATCH/test ]]; then break; fi
    sleep 0.1
  done
  kill -s "$2" "$started"
  wait "$started" || code=$?
  if ((code != $3)); then fail "launch/test ended with $code behind $2:"$'\n'"$(cat "$SCRATCH/log")"; fi
  if kill -0 "$(cat "$SCRATCH/test")" 2>/dev/null && ! grep -q ') Z ' "/proc/$(cat "$SCRATCH/test")/stat"; then
    fail "what launch/test started goes on behind $2"
  fi
  rm "$SCRATCH/$1"
}

shows_the_run_that_it_trained() {
  stand_in mpirun <<'END'
while [[ $1 != build/* ]]; do shift; done
exec "$@"
END
  cat >"$REPOSITORY/build/src/cli/syntra" <<END
#!/usr/bin/env bash
directory=runs/quickstart
for word; do if [[ \$word == train.directory=* ]]; then directory=\${word#*=}; fi; done
case \$1 in
  config) printf 'data {\n  directory: "glue"\n}\ntrain {\n  directory: "%s"\n}\n' "\$directory" ;;
  pretrain) echo 'the run is done' ;;
  report) echo "report of \$2" ;;
  generate) echo "no text from \$3" >&2; exit "\$(cat "$SCRATCH/generated")" ;;
esac
END
  chmod +x "$REPOSITORY/build/src/cli/syntra"
  echo 0 >"$SCRATCH/generated"
  printed_by 0 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart"
  prints 'report of runs/quickstart'
  printed_by 0 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart" --set train.directory=runs/other
  prints 'report of runs/other' "go on: launch/quickstart '--set' 'train.directory=runs/other' --set train.steps="
  echo 5 >"$SCRATCH/generated"
  printed_by 5 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart"
  prints 'no text from runs/quickstart' 'error: runs/quickstart is trained, but "build/src/cli/syntra generate' 'ended with code 5'
  if [[ $printed == *'training ended'* ]]; then fail "training is blamed:"$'\n'"$printed"; fi
}

refuses_what_cannot_be_at_once
is_asked_early
builds_where_the_caller_says
ends_all endless INT 130
ends_all endless TERM 143
ends_all compiles TERM 143
shows_the_run_that_it_trained
