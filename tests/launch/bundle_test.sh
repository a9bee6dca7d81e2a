#!/usr/bin/env bash
# Makes a bundle of a build, moves it, and runs it in an empty environment. The bundle must need only this machine's C
# library, say clearly what a machine lacks, and replace only an older bundle.
#   bundle_test.sh SOURCE BUILD
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly SOURCE=$1 BUILD=$2
# shellcheck source=tests/launch/common.sh
source "$SOURCE/tests/launch/common.sh"
readonly WHOLE="$SCRATCH/moved here"
export LC_ALL=C

bundle() { expect "$1" "$2" "$SOURCE/launch/bundle" --build "$BUILD" "${@:3}"; }

# Runs in $here with an empty environment.
here=$WHOLE
run() { expect "$1" "$2" env -i -C "$here" "${@:3}"; }

# Open MPI starts nothing as root without this option.
as_root=()
if ((EUID == 0)); then as_root=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1); fi

# What mpirun ends with if it does not find a program, and a library that only the way there loads: of Open MPI 4, and of 5.
not_found=132 only_ranks=lib/openmpi/mca_pml_ob1.so
if command -v prterun >/dev/null; then not_found=183 only_ranks=lib/libprrte.so; fi

# pretrain DIRECTORY LAUNCHER...: trains on the sample for a few steps.
pretrain() {
  run 0 '2 of 2 steps' "${@:2}" bin/syntra pretrain --config configs/quickstart.textproto \
    --set train.directory="$SCRATCH/$1" --set train.steps=2 --set optimizer.schedule.warmup_steps=1
}

makes_a_complete_folder() {
  bundle 0 'Made ' --with machine_peak "$SCRATCH/made"
  if [[ -e $SCRATCH/made.tar.gz ]]; then fail "there is an archive that nobody asked for"; fi
  mv "$SCRATCH/made" "$WHOLE"
  run 0 '' sha256sum --check --quiet MANIFEST
  local file
  while read -r file; do
    if ! grep -qF "  ${file#./}" "$WHOLE/MANIFEST"; then fail "$file is not in the MANIFEST"; fi
  done < <(cd "$WHOLE" && find . ! -type d ! -path ./MANIFEST)
  # Copying may lose symbolic links.
  if [[ $(find "$WHOLE" -type l) ]]; then fail "it holds symbolic links"; fi
  if grep -n '@[A-Z]*@' "$WHOLE"/README.md "$WHOLE"/bin/*; then fail "a blank is not filled in"; fi
}

runs_every_command() {
  run 0 'Open MPI' bin/syntra doctor
  run 0 'checkpoint' bin/syntra plan --config configs/t5_v1_1_base.textproto
  run 0 '"threads"' bin/machine_peak
  # Not libexec/syntra, which needs its start script.
  run 0 "bin/syntra' pretrain" bin/syntra slurm configs/quickstart.textproto --time 5
  run 0 "bin/mpirun' --bind-to none" bin/syntra slurm configs/quickstart.textproto --time 5 --mpi mpirun
  run $not_found 'Executable: ./nowhere' "${as_root[@]}" bin/mpirun -n 1 ./nowhere
  ln -s "$WHOLE/bin/syntra" "$SCRATCH/link"
  run 0 'syntra' "$SCRATCH/link" --version
}

# loaded_by LOG: prints what a process's program has loaded. The log begins with the shell that became the program.
loaded_by() {
  awk -v bundle="$WHOLE/" '
    /calling init: / { sub(/.*calling init: /, ""); loaded = loaded $0 "\n" }
    /transferring control: / && !index($0, bundle) { loaded = "" }
    END { printf "%s", loaded }' "$1"
}

# The loader logs what each process loads, including plugins.
loads_nothing_from_outside() {
  local recorded=(LD_DEBUG=files LD_DEBUG_OUTPUT="$SCRATCH/loads/of")
  local mpirun=("${as_root[@]}" bin/mpirun --bind-to none --oversubscribe -n 2 --mca btl_vader_single_copy_mechanism none)
  mkdir "$SCRATCH/loads"
  pretrain one "${recorded[@]}"
  pretrain two "${recorded[@]}" "${mpirun[@]}"
  local name logs log loaded glibc='anl|c|dl|m|mvec|nss_[a-z]*|pthread|resolv|rt|util'
  for name in mpirun:1 syntra:3; do
    mapfile -t logs < <(grep -lF "initialize program: $WHOLE/libexec/${name%:*}" "$SCRATCH"/loads/*)
    if ((${#logs[@]} != ${name#*:})); then fail "${#logs[@]} processes of ${name%:*} in the loader's logs"; fi
  done
  mapfile -t logs < <(grep -lF "initialize program: $WHOLE/" "$SCRATCH"/loads/*)
  loaded=$(for log in "${logs[@]}"; do loaded_by "$log"; done | sort -u)
  for name in lib/libmpi.so lib/libpmix.so "$only_ranks"; do
    if [[ $loaded != *"$WHOLE/$name"* ]]; then fail "$name of the bundle was not loaded"; fi
  done
  loaded=$(grep -vF "$WHOLE/lib/" <<<"$loaded" |
    grep -vE "/(ld-linux-[^/]*|lib($glibc|cuda|cudart|cublas|cublasLt|nccl|nv[^/]*))\.so[^/]*$" || true)
  if [[ $loaded ]]; then fail "loaded from outside the bundle:"$'\n'"$loaded"; fi
}

# Uses a copy whose program needs libraries that no machine has.
says_what_a_machine_lacks() {
  local here=$SCRATCH/lacking
  # asks_for NAME: replaces the name of a library by one of the same length.
  asks_for() { sed "s/libxxhash\.so\.0/$1/" "$WHOLE/libexec/syntra" >"$here/libexec/syntra"; }
  cp -R "$WHOLE" "$here"
  sed -i 's/GLIBC_2/GLIBC_9/g' "$here/libexec/syntra"
  run 4 "$(uname -n): syntra needs glibc 2." bin/syntra --version
  asks_for libabsent.so.0
  run 4 'syntra lacks the libraries libabsent.so.0' bin/syntra --version
  asks_for libcudart.so.9
  run 4 "syntra lacks the libraries libcudart.so.9 (CUDA's are looked for" bin/syntra --version
  mkdir -p "$SCRATCH/toolkit/lib64"
  cp "$here/lib/libxxhash.so.0" "$SCRATCH/toolkit/lib64/libcudart.so.9"
  run 0 syntra CUDA_HOME="$SCRATCH/toolkit" bin/syntra --version
  run 0 syntra LD_LIBRARY_PATH="$SCRATCH/toolkit/lib64" bin/syntra --version
  # A program for another machine.
  printf '\177ELF nothing' >"$here/libexec/syntra"
  run 4 "syntra, for $(uname -m) with glibc 2." bin/syntra --version
  mv "$here" "$SCRATCH/a:b"
  here=$SCRATCH/a:b
  run 4 "path may hold no ':'" bin/syntra --version
}

replaces_bundles_only() {
  bundle 2 'no option' --wrong
  bundle 2 'needs a value' --with
  bundle 2 'one DIRECTORY' "$SCRATCH/a" "$SCRATCH/b"
  mkdir "$SCRATCH/papers" "$SCRATCH/empty"
  touch "$SCRATCH/papers/thesis"
  bundle 2 'is no bundle' "$SCRATCH/papers"
  [[ -e $SCRATCH/papers/thesis ]] || fail "a folder that is no bundle was overwritten"
  touch "$WHOLE/old"
  bundle 0 "$WHOLE.tar.gz" --archive "$WHOLE"
  [[ ! -e $WHOLE/old ]] || fail "an older bundle was not replaced"
  tar -xzf "$WHOLE.tar.gz" -C "$SCRATCH/empty"
  diff -r "$WHOLE" "$SCRATCH/empty/${WHOLE##*/}" || fail "the archive is another"
  bundle 2 'is no program' --with syntra_base "$WHOLE"
  diff -r "$WHOLE" "$SCRATCH/empty/${WHOLE##*/}" || fail "a failure has changed the bundle"
  if compgen -G "$SCRATCH/*.part-*" >/dev/null; then fail "something half made was left behind"; fi
}

if ! command -v mpirun >/dev/null; then
  echo '[  SKIPPED ] mpirun is not installed'
  exit 77
fi
for check in makes_a_complete_folder runs_every_command loads_nothing_from_outside says_what_a_machine_lacks \
  replaces_bundles_only; do
  printf '%s\n' "$check"
  "$check"
done
