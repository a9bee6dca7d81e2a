# Functions of the tests of this folder. Sourced with `set -euo pipefail`.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
export LC_ALL=C
# shellcheck source=tests/launch/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/common.sh"

# expect_program ROOT: checks that the program and its files are below ROOT and work.
expect_program() {
  local root=$1 file
  expect 0 'syntra 0' "$root/bin/syntra" --version
  for file in man/man1/syntra.1 man/man1/syntra-pretrain.1 bash-completion/completions/syntra \
    zsh/site-functions/_syntra fish/vendor_completions.d/syntra.fish doc/syntra/LICENSE doc/syntra/copyright; do
    if [[ ! -s $root/share/$file ]]; then fail "share/$file was not installed"; fi
  done
  expect 0 'parameters' env -C "$root/share/syntra" "$root/bin/syntra" plan --config configs/quickstart.textproto
  expect 0 '32000 pieces and 100 sentinels' env -C "$root/share/syntra" "$root/bin/syntra" check \
    --config configs/quickstart.textproto --set train.directory="$SCRATCH/run"
}
