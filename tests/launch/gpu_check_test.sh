#!/usr/bin/env bash
# Runs launch/gpu_check with programs that only pretend to use a GPU: parts, what is remembered of them, time limits,
# what is missing, the exit code and the table.
#   gpu_check_test.sh SOURCE
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1
# shellcheck source=tests/launch/common.sh
source "$SOURCE/tests/launch/common.sh"
readonly BUNDLE="$SCRATCH/bundle" OUTPUT="$SCRATCH/output" CALLS="$SCRATCH/calls"

# pretend FILE: makes a program of standard input.
pretend() {
  { printf '#!/bin/bash\n'; cat; } >"$1"
  chmod +x "$1"
}

# Every program notes its name in CALLS and has the cases Sweep.n0 to n39. One that SCRATCH/broken names fails, a case that
# SCRATCH/deadly names ends it, and where there is SCRATCH/stubborn it does not end when asked to; one that SCRATCH/unable names
# says that it cannot test here; `timeout` ends those of SCRATCH/hanging.
make_programs() {
  local name
  mkdir -p "$BUNDLE/bin" "$SCRATCH/path"
  echo '# commit 0123456789abcdef' >"$BUNDLE/MANIFEST"
  pretend "$BUNDLE/bin/syntra" <<END
echo "  CUDA       driver's CUDA 13.0, runtime 13.0"
echo "  GPU 0      NVIDIA H100, compute capability 9.0"
echo "  cuBLASLt   \$(<"$SCRATCH/cublas")"
END
  echo 13.1.0 >"$SCRATCH/cublas"
  for name in cuda_tests communicator_cuda_test e2e_gpu_test gpu_kernel_bench; do
    pretend "$BUNDLE/bin/$name" <<END
if [[ "\$*" == *--gtest_list_tests* ]]; then echo Sweep.; printf '  n%s\n' {0..39}; exit; fi
echo $name "\$@" >>"$CALLS"
if [[ -e "$SCRATCH/stubborn" ]]; then trap '' TERM; echo \$\$ >>"$SCRATCH/stubborn"; sleep 60; fi
if grep -qx $name "$SCRATCH/unable"; then exit 77; fi
options="\${*##*--gtest_flagfile=}"
for n in {0..39}; do
  if [[ -f "\$options" ]]; then grep -qE "[=:]Sweep.n\$n(:|\$)" "\$options" || continue
  elif ((n % \${GTEST_TOTAL_SHARDS:-1} != \${GTEST_SHARD_INDEX:-0})); then continue; fi
  echo "[ RUN      ] Sweep.n\$n"
  if grep -qx "Sweep.n\$n" "$SCRATCH/deadly"; then exit 99; fi
  echo "[       OK ] Sweep.n\$n (0 ms)"
done
echo "[==========] 40 tests from 1 test suite ran. (0 ms total)"
if grep -qx $name "$SCRATCH/broken"; then echo "[  FAILED  ] Sweep.broken (0 ms)"; exit 1; fi
END
  done
  pretend "$BUNDLE/bin/mpirun" <<'END'
exec "${@: -2}"
END
  pretend "$SCRATCH/path/compute-sanitizer" <<END
echo compute-sanitizer "\$2" >>"$CALLS"
END
  pretend "$SCRATCH/path/timeout" <<END
for argument; do if grep -qxF "\${argument##*/}" "$SCRATCH/hanging"; then exit 124; fi; done
exec "\${@:3}"
END
  # As python3 with torch. Its benchmark drops a part of the step the first time.
  pretend "$SCRATCH/path/python_with_torch" <<END
if [[ \$1 == -c ]]; then exit; fi
echo "\${1##*/} \${*:2:3}" >>"$CALLS"
while [[ \$1 != --results ]]; do shift; done
echo '{"judged": []}' >"\$2/gpu_step-gpu-2026.json"
echo '| Transformer over the peer | 2.0000x |'
if [[ ! -e "$SCRATCH/begun" ]]; then touch "$SCRATCH/begun"; exit 75; fi
END
  pretend "$SCRATCH/path/python_without" <<<'exit 1'
  : >"$SCRATCH/broken"
  : >"$SCRATCH/hanging"
  : >"$SCRATCH/deadly"
  : >"$SCRATCH/unable"
}

# gpu_check CODE OPTION...: leaves what it prints in `said`, and the programs that it started in CALLS.
gpu_check() {
  local code=$1 ended=0
  shift
  : >"$CALLS"
  said=$(PATH="$SCRATCH/path:$PATH" SYNTRA_PYTHON="${PYTHON:-python_with_torch}" \
    "$SOURCE/launch/gpu_check" --bundle "$BUNDLE" --output "$OUTPUT" "$@" 2>&1) || ended=$?
  if ((ended != code)); then fail "it ended with $ended, not $code: $said"; fi
}

called() { grep -c "^$1" "$CALLS" || true; }

# expect_row NAME STATE [PASSED FAILED]
expect_row() {
  local row="^| $1 | $2 |${3+ [0-9]* | $3 | $4 |}"
  if ! grep -q "$row" "$OUTPUT/table.md"; then fail "no $row in:"$'\n'"$(<"$OUTPUT/table.md")"; fi
}

runs_a_part_alone() {
  echo communicator_cuda_test >"$SCRATCH/unable"
  gpu_check 0 --ranks
  expect_row nccl-one-rank skipped
  expect_row staging-two-ranks skipped
  : >"$SCRATCH/unable"
  gpu_check 0 --ranks
  expect_row nccl-one-rank passed 40 0
  expect_row staging-two-ranks passed
  expect_row nccl-all-gpus skipped
  expect_row training 'not run'
  if (($(called cuda_tests) + $(called gpu_step) > 0)); then fail "another part ran: $(<"$CALLS")"; fi
}

repeats_what_was_stopped_but_not_what_ended() {
  echo e2e_gpu_test >"$SCRATCH/hanging"
  echo cuda_tests >"$SCRATCH/broken"
  gpu_check 1 --tests
  expect_row kernels-and-models failed 40 1
  expect_row training stopped
  : >"$SCRATCH/hanging"
  gpu_check 1 --tests
  expect_row training passed
  if (($(called cuda_tests) > 0)); then fail "a failure was repeated"; fi
}

begins_anew_with_other_programs() {
  : >"$SCRATCH/broken"
  touch "$SCRATCH/begun"
  gpu_check 1 --kernels
  echo '# of another build' >>"$BUNDLE/bin/e2e_gpu_test"
  gpu_check 0 --tests
  expect_row kernels-and-models passed
  expect_row nccl-one-rank 'not run'
  expect_row kernels passed # it runs no program of tests
  if [[ $(called cuda_tests) != "$(called e2e_gpu_test)" ]]; then fail "the shards of both differ: $(<"$CALLS")"; fi
  echo '# of another build' >>"$BUNDLE/bin/gpu_kernel_bench"
  gpu_check 0 --tests
  expect_row kernels 'not run'
  expect_row training passed
  if [[ -s $CALLS ]]; then fail "tests were repeated: $(<"$CALLS")"; fi
  rm "$SCRATCH/begun"
}

begins_anew_with_other_libraries() {
  echo 13.2.0 >"$SCRATCH/cublas"
  gpu_check 0 --tests
  if (($(called cuda_tests) == 0)); then fail "tests were not repeated with another cuBLASLt"; fi
}

stops_where_products_cannot_be_computed() {
  echo 'cannot load libcublasLt.so.13 (no such file); install the CUDA toolkit 13' >"$SCRATCH/cublas"
  gpu_check 4 --tests
  if [[ $said != *'without cuBLASLt: cannot load libcublasLt.so.13'* ]]; then fail "it says: $said"; fi
  echo 13.2.0 >"$SCRATCH/cublas"
}

goes_on_without_the_cases_that_a_process_died_in() {
  rm -r "$OUTPUT"
  printf 'Sweep.n%s\n' 3 20 21 >"$SCRATCH/deadly"
  gpu_check 1 --tests
  expect_row kernels-and-models failed 37 3
  grep -q 'kernels-and-models.*died in Sweep.n20 Sweep.n21 Sweep.n3,' "$OUTPUT/table.md" || fail "$(<"$OUTPUT/table.md")"
  local begun
  begun=$(cat "$OUTPUT"/kernels-and-models.log.* | grep -c '^\[ RUN')
  if ((begun != 40)); then fail "$begun cases were begun"; fi
  : >"$SCRATCH/deadly"
}

# is_alive PROCESS: and not only waiting for its parent to hear that it ended.
is_alive() { [[ $(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null || echo Z) != Z ]]; }

leaves_nothing_behind_that_does_not_want_to_end() {
  local process i code=0
  rm -r "$OUTPUT"
  mv "$SCRATCH/path/timeout" "$SCRATCH/timeout" # the real one has a process group of its own
  : >"$SCRATCH/stubborn"
  "$SOURCE/launch/gpu_check" --bundle "$BUNDLE" --output "$OUTPUT" --tests >/dev/null 2>&1 &
  until [[ -s $SCRATCH/stubborn ]]; do sleep 0.1; done
  kill -TERM $!
  wait $! || code=$?
  if ((code != 143)); then fail "it ended with $code"; fi
  while read -r process; do
    # It is told to end before gpu_check ends, and may need a moment.
    for ((i = 0; i < 100; ++i)); do
      if ! is_alive "$process"; then break; fi
      sleep 0.1
    done
    if is_alive "$process"; then fail "$process lives"; fi
  done <"$SCRATCH/stubborn"
  rm "$SCRATCH/stubborn"
  mv "$SCRATCH/timeout" "$SCRATCH/path/timeout"
}

asks_for_more_until_all_is_done() {
  gpu_check 75 --step
  expect_row step unfinished
  gpu_check 0 --step
  expect_row step passed
  grep -q 'Transformer over the peer' <<<"$said" || fail "no figures in: $said"
  gpu_check 0
  if (($(called gpu_step) != 1)); then fail "the step was measured again"; fi
  expect_row kernels passed
  expect_row memcheck passed
  expect_row racecheck passed
  if grep -q 'not run' "$OUTPUT/table.md"; then fail "a check is missing: $(<"$OUTPUT/table.md")"; fi
}

# It would be taken for none, and a build begun.
refuses_an_empty_path() {
  gpu_check 2 --bundle ''
  [[ $said == 'error: a path must not be empty'* ]] || fail "it said: $said"
}

leaves_no_time_for_nothing() {
  rm -r "$OUTPUT"
  gpu_check 75 --tests --minutes 0
  expect_row training unfinished
}

names_what_is_missing_first() {
  rm -r "$OUTPUT"
  PYTHON=python_without gpu_check 0 --step
  [[ $said == *'MISSING: python_without with torch'*skipped* ]] || fail "it said: $said"
  expect_row step skipped
}

writes_one_file() {
  rm -r "$OUTPUT"
  gpu_check 0 --kernels
  gpu_check 0 --ranks
  local files=("$OUTPUT"/gpu_check-*.json)
  if ((${#files[@]} != 1)); then fail "result files: ${files[*]}"; fi
  python3 - "${files[0]}" <<'END' || fail "$(<"${files[0]}")"
import json, sys
result = json.load(open(sys.argv[1]))
states = {check["name"]: check["state"] for check in result["checks"]}
assert result["commit"] == "0123456789abcdef" and result["gpu"].startswith("NVIDIA H100")
assert result["driver"] == "driver's CUDA 13.0, runtime 13.0"
assert states["kernels"] == states["nccl-one-rank"] == "passed" and states["step"] == "not run"
assert result["benchmark"] == {"judged": []}
END
}

make_programs
for check in runs_a_part_alone repeats_what_was_stopped_but_not_what_ended begins_anew_with_other_programs \
  begins_anew_with_other_libraries stops_where_products_cannot_be_computed asks_for_more_until_all_is_done goes_on_without_the_cases_that_a_process_died_in \
  leaves_nothing_behind_that_does_not_want_to_end refuses_an_empty_path leaves_no_time_for_nothing names_what_is_missing_first writes_one_file; do
  printf '%s\n' "$check"
  "$check"
done
