#!/usr/bin/env bash
# The shell scripts pass shellcheck.
#   shell_test.sh SOURCE
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$1"
if ! command -v shellcheck >/dev/null; then
  echo '[  SKIPPED ] shellcheck is not installed'
  exit 77
fi
scripts=(launch/common.sh)
while IFS= read -r file; do
  IFS= read -r first <"$file" || true
  if [[ $first =~ ^#!.*[/\ ](ba)?sh$ ]]; then scripts+=("$file"); fi
done < <(grep -rlI '^#!' .ci launch packaging tests)
echo "${#scripts[@]} scripts"
if ((${#scripts[@]} < 10)); then
  echo "FAILED: only ${#scripts[@]} scripts were found" >&2
  exit 1
fi
shellcheck -x "${scripts[@]}"
