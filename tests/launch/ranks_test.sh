#!/usr/bin/env bash
# launch/ranks, launch/test and launch/quickstart with programs that stand in for those that they start. An mpirun that stays
# when its ranks have ended is killed by launch/ranks; one that ends gives its exit code at once. launch/test builds where the
# caller says, and leaves no compiler and no test behind. launch/quickstart shows the run that it trained.
#   ranks_test.sh SOURCE
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1
# shellcheck source=tests/launch/common.sh
source "$SOURCE/tests/launch/common.sh"
mkfifo "$SCRATCH/silence"

# ranks_end CODE TEXT COMMAND...: what launch/ranks ends with and prints where the commands stand in for Open MPI's mpirun. `hosts`: the
# option by which it is told some, if it is.
ranks_end() {
  local place
  place=$(mktemp -d -p "$SCRATCH")
  printf '%s\n' '#!/usr/bin/env bash' "${@:3}" >"$place/mpirun"
  chmod +x "$place/mpirun"
  PATH=$place:$PATH expect "$1" "$2" "$SOURCE/launch/ranks" 2 ${hosts:+"$hosts" nodes} true
}

readonly OTHER_HOST='sleep 1000 &' RANK='OMPI_COMM_WORLD_RANK=0 sleep 2 &' WAITS="read -r line <>'$SCRATCH/silence'"
readonly KILLED='all ranks of this host have ended, but mpirun has not'
ranks_end 6 ranks "$RANK" 'echo "ranks"' 'wait' 'exit 6'
# The connection to another host was lost.
ranks_end 7 '' 'exit 205'
ranks_end 141 '' 'exit 141'
for option in --host -host -H --hostfile -hostfile --machinefile -machinefile; do hosts=$option ranks_end 7 '' 'exit 141'; done
ranks_end 7 '' 'exit 14'
ranks_end 7 '' 'exit 255'
ranks_end 137 '' "$RANK" 'exit 137'
# Longer than its patience, but it has had no ranks.
ranks_end 5 '' 'sleep 12 &' 'wait' 'exit 5' &
no_ranks=$!
# Its rank ends, and it waits for another host, which a child of it talks to.
ranks_end 7 "$KILLED" "$OTHER_HOST" "$RANK" "$WAITS" &
hangs=$!
# Its rank has ended before anybody looked, and it does not look after it.
ranks_end 7 "$KILLED" "$OTHER_HOST" 'sleep 0.1 &' 'exec sleep 1000' &
is_stuck=$!
wait $no_ranks
wait $hangs
wait $is_stuck

# stand_in NAME: makes a program of standard input, first in PATH.
stand_in() {
  mkdir -p "$SCRATCH/path"
  { printf '#!/usr/bin/env bash\n' && cat; } >"$SCRATCH/path/$1"
  chmod +x "$SCRATCH/path/$1"
}

# wait_for FILE: until it is there, at most a minute.
wait_for() {
  for ((i = 0; i < 600; ++i)); do
    if [[ -e $1 ]]; then return; fi
    sleep 0.1
  done
  fail "$1 did not come"
}

# ends_here CODE COMMAND...: with those programs.
ends_here() { PATH=$SCRATCH/path:$PATH CXX=true ends "$@"; }

readonly REPOSITORY=$SCRATCH/repository
mkdir -p "$REPOSITORY/build/src/cli" "$SCRATCH/elsewhere"
cp -r "$SOURCE/launch" "$SOURCE/.ci" "$REPOSITORY"
stand_in apt-get <<<'exit 0'
# Compiles for ever where SCRATCH/compiles is, and has no room where SCRATCH/is_full is.
stand_in ninja <<END
if [[ -e "$SCRATCH/is_full" ]]; then
  sleep 1
  echo 'No space left on device'
  exit 1
fi
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
stand_in df <<<'printf "Avail\n99999\n"'
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
  ends_here 2 "$SOURCE/launch/ranks" 2 "$SCRATCH/nowhere"
  prints "error: there is no program $SCRATCH/nowhere"
  ends_here 2 "$REPOSITORY/launch/quickstart" --steps=5
  prints 'there is no option --steps=5'
  mkdir -p "$SCRATCH/mine/results"
  touch "$SCRATCH/mine/results/thesis"
  ends_here 2 "$REPOSITORY/launch/test" "$SCRATCH/mine"
  prints "$SCRATCH/mine is no build directory"
  ends_here 2 "$REPOSITORY/launch/test" ''
  prints 'error: a path must not be empty'
  if [[ ! -e $SCRATCH/mine/results/thesis ]]; then fail 'a folder of the user is gone'; fi
}

# Even root cannot make folders there.
says_what_cannot_be_written() {
  ends_here 4 "$REPOSITORY/launch/test" /proc/build
  prints 'error: /proc/build cannot be written'
  mv "$REPOSITORY/build" "$SCRATCH/build"
  ln -s /proc/build "$REPOSITORY/build"
  ends_here 4 "$REPOSITORY/launch/quickstart"
  prints 'error: /proc/build cannot be written'
  rm "$REPOSITORY/build"
  mv "$SCRATCH/build" "$REPOSITORY/build"
}

# Then the progress cannot be written, either.
says_that_the_disk_is_full() {
  touch "$SCRATCH/is_full"
  stand_in tail <<<'exit 1'
  ends_here 4 "$REPOSITORY/launch/test" "$SCRATCH/full"
  prints 'error: the disk is full; make room and start again'
  rm "$SCRATCH/is_full" "$SCRATCH/path/tail"
}

# The name of a network share may hold a blank. Only who may mount can try that.
knows_the_room_on_a_share() {
  local share=$SCRATCH/share
  mkdir "$share"
  if ! unshare --mount mount -t tmpfs none "$share" 2>/dev/null; then return; fi
  # shellcheck disable=SC2016  # for the inner shell
  expect 0 '' unshare --mount bash -euo pipefail -c \
    'mount -t tmpfs -o size=2g "//server/my share" "$1" && source "$2/launch/common.sh" && need_disk "$1" 1000 "a build"' - "$share" "$SOURCE"
}

# knows_its_commit: git asks whose files these are.
knows_its_commit() {
  if [[ ! -e $SOURCE/.git ]] || ! command -v git >/dev/null; then return; fi
  # shellcheck source=launch/common.sh
  output=$(source "$SOURCE/launch/common.sh" && GIT_TEST_ASSUME_DIFFERENT_OWNER=1 source_commit)
  if [[ ! $output =~ ^[0-9a-f]{40} ]]; then fail "its commit is $output"; fi
}

# Without standard output and errors Open MPI's mpirun never ends, and takes more and more memory.
gives_mpirun_what_it_writes_to() {
  stand_in mpirun <<END
if [[ -e /proc/self/fd/1 && -e /proc/self/fd/2 ]]; then touch "$SCRATCH/can_write"; fi
END
  (PATH=$SCRATCH/path:$PATH exec "$SOURCE/launch/ranks" 2 true <&- >&- 2>&-) || fail "it ended with $?"
  if [[ ! -e $SCRATCH/can_write ]]; then fail "mpirun has no standard output or errors"; fi
}

# Many ranks have more pipes than a process may open by default.
opens_enough_files() {
  stand_in mpirun <<'END'
echo "files: $(ulimit -Sn)"
END
  (
    ulimit -Sn 100
    ends_here 0 "$SOURCE/launch/ranks" 64 true
    prints 'files: 320'
    ulimit -Hn 100
    ends_here 4 "$SOURCE/launch/ranks" 64 true
    prints 'error: 64 ranks need 320 open files, but the limit is 100'
    ends_here 0 "$SOURCE/launch/ranks" 2 true
  )
}

# ended_with CODE PROCESS WHAT: waits for a process that this script started.
ended_with() {
  local code=0
  wait "$2" || code=$?
  if ((code != $1)); then fail "$3: code $code"; fi
}

# Before there are handlers, the request ends what it is for.
is_asked_early() {
  local started
  stand_in mpirun <<<"touch '$SCRATCH/launched'; exec env --default-signal=USR1 sleep 60"
  PATH=$SCRATCH/path:$PATH "$SOURCE/launch/ranks" 2 "$SCRATCH/path/mpirun" >/dev/null 2>&1 </dev/null &
  started=$!
  wait_for "$SCRATCH/launched"
  kill -TERM "$started"
  ended_with 75 "$started" 'an early request'
  # It would signal whatever gets mpirun's id.
  if grep -qsz "^$SCRATCH/path/[m]pirun" /proc/[0-9]*/cmdline; then fail 'what asks the ranks has outlived launch/ranks'; fi
}

# What mpirun says of it is not what the program would say.
is_stopped_at_once() {
  local started
  stand_in mpirun <<END
cd "$SCRATCH"
exec env --default-signal=USR1 bash -c 'trap "touch asked" USR1; trap "exit 1" TERM; touch waits; while :; do sleep 0.1; done'
END
  PATH=$SCRATCH/path:$PATH "$SOURCE/launch/ranks" 2 true >/dev/null 2>&1 </dev/null &
  started=$!
  wait_for "$SCRATCH/waits"
  kill -TERM "$started"
  wait_for "$SCRATCH/asked"
  kill -TERM "$started"
  ended_with 130 "$started" 'a second request'
}

# ^C also ends the `tee` behind it, so that nobody reads what it prints.
saves_without_a_reader() {
  local started
  stand_in mpirun <<END
exec env --default-signal=USR1 bash -c 'trap "exit 75" USR1; touch "$SCRATCH/unread"; while :; do sleep 0.1; done'
END
  PATH=$SCRATCH/path:$PATH "$SOURCE/launch/ranks" 2 true > >(exec true) 2>&1 </dev/null &
  started=$!
  wait_for "$SCRATCH/unread"
  kill -TERM "$started"
  ended_with 75 "$started" 'a request where nobody reads'
}

# SIGUSR2 ends a rank that has no handler for it yet.
saves_once_it_can() {
  local started
  stand_in rank <<END
cd "$SCRATCH"
touch starts
until [[ -e ready ]]; do sleep 0.1; done
trap : USR2
touch handles
until [[ -e saves ]]; do sleep 0.1; done
END
  stand_in mpirun <<END
exec env --default-signal=USR2 bash -c 'trap "echo >>$SCRATCH/saves" USR2
  OMPI_COMM_WORLD_RANK=0 rank &
  while kill -0 \$! 2>/dev/null; do wait; done
  exit "\$(wc -l <"$SCRATCH/saves")"'
END
  PATH=$SCRATCH/path:$PATH "$SOURCE/launch/ranks" 2 true >/dev/null 2>&1 </dev/null &
  started=$!
  wait_for "$SCRATCH/starts"
  kill -USR2 "$started"
  sleep 0.5
  touch "$SCRATCH/ready"
  wait_for "$SCRATCH/handles"
  kill -USR2 "$started"
  ended_with 1 "$started" 'of two requests to save, one of them too early'
}

# With its whole process group, as by a time limit or for want of memory.
saves_when_the_script_is_killed() {
  local code=0
  stand_in mpirun <<END
echo \$\$ >"$SCRATCH/mpirun"
exec env --default-signal=USR1 bash -c 'trap "touch $SCRATCH/saved; exit 75" USR1; while :; do sleep 0.1; done'
END
  { PATH=$SCRATCH/path:$PATH timeout -s KILL 2 "$SOURCE/launch/ranks" 2 true >/dev/null 2>&1 </dev/null || code=$?; } 2>/dev/null
  if ((code != 137)); then fail "timeout ended with $code"; fi
  wait_for "$SCRATCH/saved"
  if ! has_ended "$(cat "$SCRATCH/mpirun")"; then sleep 1; fi
  if ! has_ended "$(cat "$SCRATCH/mpirun")"; then fail 'mpirun goes on without launch/ranks'; fi
}

builds_where_the_caller_says() {
  ends_here 0 "$REPOSITORY/launch/test" "$SCRATCH/absolute"
  prints '1 passed, 0 failed, 0 skipped'
  cd "$SCRATCH/elsewhere"
  ends_here 0 "$REPOSITORY/launch/test" relative
  if [[ ! -s relative/results/fast.xml ]]; then fail "the tests are not in the caller's folder"; fi
  ends_here 0 "$REPOSITORY/launch/test"
  if [[ ! -s $REPOSITORY/build-test/results/fast.xml ]]; then fail "the tests are not in build-test"; fi
  cd "$SOURCE"
}

# Through a symbolic link, and with a CDPATH in which another folder is called launch.
finds_its_repository() {
  mkdir -p "$SCRATCH/other/launch" "$SCRATCH/links"
  ln -s "$REPOSITORY/launch/test" "$REPOSITORY/.ci/run" "$SCRATCH/links"
  cd "$REPOSITORY"
  ends_here 0 env CDPATH="$SCRATCH/other" launch/test
  ends_here 0 env CDPATH="$SCRATCH/other" .ci/run
  ends_here 0 env CDPATH="$SCRATCH/other" launch/test --help
  prints 'builds with warnings as errors and runs every test'
  cd "$SCRATCH/links"
  ends_here 0 ./run
  ends_here 0 ./test relative
  if [[ ! -s relative/results/fast.xml ]]; then fail "the tests are not in the caller's folder"; fi
  ends_here 0 ./test --help
  prints 'builds with warnings as errors and runs every test'
  cd "$SOURCE"
}

# has_ended PROCESS: whether it is gone, or nobody has asked for its code yet.
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -qs ') Z ' "/proc/$1/stat" || [[ ! -e /proc/$1 ]]; }

# ends_all FILE SIGNAL CODE: with SCRATCH/FILE neither compilers nor tests go on behind a signal. This shell starts launch/test deaf to
# INT, which env mends.
ends_all() {
  local started tries code=0
  touch "$SCRATCH/$1"
  rm -f "$SCRATCH/test"
  PATH=$SCRATCH/path:$PATH CXX=true env --default-signal=INT "$REPOSITORY/launch/test" >"$SCRATCH/log" 2>&1 </dev/null &
  started=$!
  wait_for "$SCRATCH/test"
  kill -s "$2" "$started"
  wait "$started" || code=$?
  if ((code != $3)); then fail "launch/test ended with $code behind $2:"$'\n'"$(cat "$SCRATCH/log")"; fi
  for ((tries = 0; tries < 50; ++tries)); do
    if has_ended "$(cat "$SCRATCH/test")"; then break; fi
    sleep 0.1 # a killed process of a busy machine is not gone at once
  done
  if ((tries == 50)); then fail "what launch/test started goes on behind $2"; fi
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
  config) printf '%s\n' "\${@:4}" >"$SCRATCH/words"; printf 'data {\n  directory: "glue"\n}\ntrain {\n  directory: "%s"\n}\n' "\$directory" ;;
  pretrain) echo 'the run is done' ;;
  report) echo "report of \$2" ;;
  generate) echo "no text from \$3" >&2; exit "\$(cat "$SCRATCH/generated")" ;;
esac
END
  chmod +x "$REPOSITORY/build/src/cli/syntra"
  echo 0 >"$SCRATCH/generated"
  ends_here 0 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart"
  prints 'report of runs/quickstart'
  ends_here 0 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart" --set train.directory=runs/other
  prints 'report of runs/other' "go on: launch/quickstart '--set' 'train.directory=runs/other' --set train.steps="
  # The caller's files; those of the repository keep their names.
  cd "$SCRATCH/elsewhere"
  touch mine.textproto 'mine too' train.steps=5
  ends_here 0 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart" mine.textproto --config 'mine too' --config=mine.textproto \
    --set train.steps=5 --set=train.steps=5 configs/mine.textproto
  output=$(paste -sd '|' "$SCRATCH/words")
  local here=$SCRATCH/elsewhere
  if [[ $output != "$here/mine.textproto|--config|$here/mine too|--config=$here/mine.textproto|--set|train.steps=5|--set=train.steps=5|configs/"* ]]; then
    fail "the program was given $output"
  fi
  cd "$SOURCE"
  echo 5 >"$SCRATCH/generated"
  ends_here 5 env SYNTRA_RANKS=1 "$REPOSITORY/launch/quickstart"
  prints 'no text from runs/quickstart' 'error: runs/quickstart is trained, but "build/src/cli/syntra generate' 'ended with code 5'
  if [[ $output == *'training ended'* ]]; then fail "training is blamed:"$'\n'"$output"; fi
}

refuses_what_cannot_be_at_once
says_what_cannot_be_written
says_that_the_disk_is_full
knows_the_room_on_a_share
knows_its_commit
gives_mpirun_what_it_writes_to
opens_enough_files
is_asked_early
is_stopped_at_once
saves_once_it_can
saves_without_a_reader
saves_when_the_script_is_killed
builds_where_the_caller_says
finds_its_repository
ends_all endless INT 130
ends_all endless TERM 143
ends_all compiles TERM 143
ends_all compiles INT 130
shows_the_run_that_it_trained
