#!/usr/bin/env bash
# Runs launch/finetune_demo with a tiny model and a handful of examples. It must make its table, keep what is done, start anew
# what is asked for differently, and say in one message what it lacks.
#   finetune_demo_test.sh SOURCE PROGRAM
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1 PROGRAM=$2 GLUE=$1/tests/tasks/sample
# shellcheck source=tests/launch/common.sh
source "$SOURCE/tests/launch/common.sh"
# Paths are those of the caller, whom the script finds in another folder than its own.
cd "$SCRATCH"
ln -s "$PROGRAM" program
export LC_ALL=C.UTF-8 SYNTRA=./program SYNTRA_RUNS=runs

# demo CODE ARGUMENT...
demo() { ends "$1" "$SOURCE/launch/finetune_demo" "${@:2}"; }

readonly TINY=(--set train.steps=2 --set train.seed=3 --set optimizer.schedule.warmup_steps=1 --set evaluation.batches=1 --set model.width=16
  --set model.feed_forward.width=32 --set model.mixer.attention.head_size=8 --set model.cross_attention.head_size=8)

explains_itself() { (cd "$SOURCE/launch" && expect 0 'launch/finetune_demo GLUE_DIRECTORY' ./finetune_demo --help); }

says_what_is_wrong() {
  demo 2
  prints 'error: which GLUE?'
  demo 2 ''
  prints 'error: a path must not be empty'
  demo 2 "$GLUE" --seeds none
  prints 'error: --seeds none: must be a number'
  demo 2 "$GLUE" --mixers ''
  prints 'error: --mixers and --tasks need at least one name each'
  demo 2 "$GLUE" --tasks ''
  prints 'error: --mixers and --tasks need at least one name each'
  demo 2 "$GLUE" --mixers transformer,,random
  prints 'error: no mixer ""'
  demo 2 "$GLUE" --mixers transformer,convolution
  prints 'error: no mixer "convolution"'
  demo 2 "$GLUE" --tasks sst3
  prints 'error: no task "sst3"'
  demo 3 "$SCRATCH/nowhere"
  prints "error: no folder $SCRATCH/nowhere"
  demo 3 "$SCRATCH"
  prints 'error: task files: 2 files that the tasks need are missing' 'SST-2/train.tsv'
  if [[ -e $SYNTRA_RUNS ]]; then fail "it trained before it looked"; fi
  SYNTRA=$SCRATCH/no_program demo 4 "$GLUE"
  prints 'launch/quickstart builds it'
}

makes_a_table() {
  demo 0 "$GLUE" --seeds 2 --mixers random_dot --tasks sst2 "${TINY[@]}"
  prints '[3/3]' '| mixer | sst2 from scratch | sst2 pretrained |' '| majority class | 33.3 |' '| random_dot | 0.0±0.0 | 0.0±0.0 |'
  local run
  for run in scratch scratch/seed-3 pretrained/seed-4; do
    grep -q "\"run\": \"random_dot/sst2/$run\", \"results\": {" "$SYNTRA_RUNS/results.json" || fail "no results of $run"
  done
}

keeps_what_is_done() {
  mkdir "$SYNTRA_RUNS/random_dot/sst2/scratch/seed-5"
  echo '{}' >"$SYNTRA_RUNS/random_dot/sst2/scratch/seed-5/results.json"
  demo 0 "$GLUE" --seeds 2 --mixers random_dot --tasks sst2 "${TINY[@]}"
  prints '| random_dot | 0.0±0.0 | 0.0±0.0 |'
  if [[ $output == *'[3/3]'* ]]; then fail "it trained again:"$'\n'"$output"; fi
  if grep 'seed-5' "$SYNTRA_RUNS/results.json"; then fail "a seed of another start is among the results"; fi
  # The runs of two seeds are no run of one.
  demo 0 "$GLUE" --seeds 1 --mixers random_dot --tasks sst2 "${TINY[@]}"
  prints '[3/3]' '| random_dot | 0.0 | 0.0 |'
}

stops_on_request() {
  local place=$SYNTRA_RUNS/transformer/pretrain demo ended=0
  "$SOURCE/launch/finetune_demo" "$GLUE" --mixers transformer --tasks sst2 >"$SCRATCH/stopped" 2>&1 </dev/null &
  demo=$!
  for ((i = 0; i < 600; ++i)); do
    if grep -q '"loss"' "$place/metrics.jsonl" 2>/dev/null; then break; fi
    sleep 0.1
  done
  kill -TERM "$demo"
  wait "$demo" || ended=$?
  output=$(cat "$SCRATCH/stopped")
  if ((ended != 75)); then fail "stopped with $ended:"$'\n'"$output"; fi
  prints "Stopped; what was trained is saved in $SCRATCH/$SYNTRA_RUNS"
  grep -q 'stopped on request' "$place.out" || fail "the program was not asked to stop"
}

for check in explains_itself says_what_is_wrong makes_a_table keeps_what_is_done stops_on_request; do
  printf '%s\n' "$check"
  "$check"
done
