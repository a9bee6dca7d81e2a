# Functions of the scripts in launch/: messages, packages, machine limits, configure and build.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by its real path, with `set -euo pipefail`. Changes to the repository root; CALLER is the directory before.

readonly CALLER=$PWD
unset CDPATH  # which `cd` would look in first
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit

# Numbers and messages of other programs are read below.
export LC_ALL=C.UTF-8

# Exit codes of these scripts, of the program (README.md) and of what a signal has ended.
readonly BUILD_FAILED=1 USAGE=2 LACKS_RESOURCES=4
# shellcheck disable=SC2034  # for scripts that run the program
readonly REQUEUE=75 INTERRUPTED=130 KILLED_BY_TERM=143

say() { printf '%s\n' "$*"; }

# stop CODE MESSAGE...: prints a message on stderr and exits.
stop() {
  local code=$1
  shift
  printf 'error: %s\n' "$*" >&2
  exit "$code"
}

# print_help: prints the comment at the head of the script.
print_help() { (cd "$CALLER" && sed -n '2,/^# SPDX/{/^# SPDX/!s/^# //p}' "$0"); }

# callers PATH: prints a path of the caller as an absolute one. An empty one often comes from a variable that is not set.
callers() {
  if [[ ! $1 ]]; then stop $USAGE "a path must not be empty; name one, or leave it out"; fi
  (cd "$CALLER" && realpath -m -- "$1")
}

# make_folders DIRECTORY...: there may be some already.
make_folders() {
  local folder
  for folder in "$@"; do
    if ! mkdir -p -- "$folder" 2>/dev/null || [[ ! -w $folder ]]; then
      stop $LACKS_RESOURCES "$(realpath -m -- "$folder") cannot be written"
    fi
  done
}

# source_commit: prints the commit of this checkout, which may be another user's.
source_commit() {
  git -c safe.directory="$PWD" describe --always --abbrev=40 --dirty=', changed' --exclude='*' 2>/dev/null || echo unknown
}

# show_end FILE: the last lines of a log.
show_end() {
  say "--- last lines of $1" >&2
  tail -n 25 "$1" >&2
  say "---" >&2
}

is_terminal() { [[ -t 1 && ${TERM:-dumb} != dumb ]]; }

# status_line TEXT: redraws one line on a terminal, clipped to its width. Without a terminal it prints nothing.
status_line() {
  is_terminal || return 0
  local columns
  columns=$(tput cols 2>/dev/null) || columns=80
  printf '\r\033[K%s' "${1:0:columns-1}"
}

clear_status_line() { if is_terminal; then printf '\r\033[K'; fi; }

# --- the machine -------------------------------------------------------------------------------

# Prints the first number of a control group's file, or nothing.
cgroup_limit() { awk '$1 ~ /^[0-9]+$/ {print; exit}' "/sys/fs/cgroup/$1" 2>/dev/null || true; }

# Prints the number of cores that this process may use, by the affinity mask and the container's limit.
usable_cores() {
  local cores quota period
  cores=$(nproc)
  read -r quota period <<<"$(cgroup_limit cpu.max)" || true
  if [[ -n ${quota:-} && -n ${period:-} ]]; then
    local share=$(((quota + period - 1) / period))
    if ((share < cores)); then cores=$share; fi
  fi
  echo $((cores > 0 ? cores : 1))
}

# Prints the memory that a build may use, in MiB.
free_memory() {
  local free limit used cached
  free=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(cgroup_limit memory.max)
  used=$(cgroup_limit memory.current)
  # Files that were read count as used, and make room when it is needed.
  cached=$(awk '$1 == "inactive_file" {print $2}' /sys/fs/cgroup/memory.stat 2>/dev/null) || true
  if [[ -n $limit && -n $used ]]; then
    local left=$(((limit - used + ${cached:-0}) / 1048576))
    if ((left < free)); then free=$left; fi
  fi
  echo "$free"
}

# One compiler per core, but no more than fit into memory: a large file takes over a gigabyte.
build_jobs() {
  local jobs fitting
  jobs=$(usable_cores)
  fitting=$(($(free_memory) / 1500))
  if ((fitting < jobs)); then jobs=$fitting; fi
  echo $((jobs > 0 ? jobs : 1))
}

# need_disk DIRECTORY MIB WHAT
need_disk() {
  local free
  free=$(($(df -m --output=avail -- "$1" | sed 1d)))  # without the blanks before it
  if ((free < $2)); then
    stop $LACKS_RESOURCES "$3 needs $2 MiB of disk, but $1 has $free MiB free; make room and start again"
  fi
}

# --- packages ----------------------------------------------------------------------------------

# packages KIND...: prints the names of packages from launch/packages.
packages() {
  local kinds=" $* " name kind
  while read -r name kind; do
    case $name in '' | '#'*) continue ;; esac
    if [[ $kinds == *" $kind "* ]]; then echo "$name"; fi
  done <launch/packages
}

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# explain_apt LOG COMMAND: prints the reason of a failure in one message.
explain_apt() {
  if grep -qiE 'no space left|not enough free space|enough free space in' "$1"; then
    stop $LACKS_RESOURCES "the disk is full; make room and start again (log: $1)"
  elif grep -qiE 'could not resolve|temporary failure|could not connect|unable to connect|connection (timed out|refused|failed)|network is unreachable|failed to fetch' "$1"; then
    stop $LACKS_RESOURCES "the package archive cannot be reached: is there a network, or a proxy to set? (log: $1)"
  elif grep -qi 'unable to locate package' "$1"; then
    stop $LACKS_RESOURCES "this distribution lacks a package; Debian 12 and 13 have them all (log: $1)"
  fi
  show_end "$1"
  stop $LACKS_RESOURCES "$2 failed (log: $1)"
}

# install_packages LOG KIND...: installs missing packages with apt. Without root it prints the command and stops.
install_packages() {
  local log=$1
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "This is neither Debian nor Ubuntu: launch/packages lists what must be installed by hand."
    return
  fi
  local missing=() name
  while read -r name; do
    if ! is_installed "$name"; then missing+=("$name"); fi
  done < <(packages "$@")
  if ((${#missing[@]} == 0)); then return; fi
  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    say "These packages are missing. Install them, then start again:"
    say
    say "  sudo apt-get update && sudo $command"
    say
    stop $LACKS_RESOURCES "packages are missing (${#missing[@]}), and only root can install them"
  fi
  need_disk /usr 1200 "installing packages"
  say "Installing missing packages: ${#missing[@]} (log: $log)"
  export DEBIAN_FRONTEND=noninteractive
  if ! apt-get update -o APT::Update::Error-Mode=any -o Acquire::Retries=2 >"$log" 2>&1; then
    # An unrelated package archive that cannot be reached is not an error.
    status_line "apt-get update failed in part, going on"
  fi
  # shellcheck disable=SC2086  # a list of words
  if ! $command -o Acquire::Retries=2 </dev/null >>"$log" 2>&1; then
    explain_apt "$log" "$command"
  fi
}

# --- configure and build -----------------------------------------------------------------------

check_tools() {
  local compiler=${CXX:-c++}
  if ! command -v "${compiler%% *}" >/dev/null; then
    stop $LACKS_RESOURCES "there is no C++ compiler (${compiler}); install g++ 11 or later, or set CXX"
  fi
  local tool
  for tool in cmake ninja; do
    if ! command -v "$tool" >/dev/null; then
      stop $LACKS_RESOURCES "$tool is not installed (launch/packages lists what is needed)"
    fi
  done
}

# explain_build LOG WHAT
explain_build() {
  clear_status_line
  if grep -qiE 'no space left on device' "$1"; then
    stop $LACKS_RESOURCES "the disk is full; make room and start again (log: $1)"
  elif grep -qiE 'killed signal terminated program|virtual memory exhausted|cannot allocate memory' "$1"; then
    stop $LACKS_RESOURCES "the compiler ran out of memory; SYNTRA_JOBS=1 compiles one file at a time (log: $1)"
  fi
  show_end "$1"
  stop $BUILD_FAILED "$2 failed (log: $1)"
}

# end_build NINJA SIGNAL: ends the compilers.
end_build() {
  trap '' INT TERM HUP
  clear_status_line
  kill -TERM "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  stop $((128 + $2)) "stopped while compiling; the same command continues there"
}

# build DIRECTORY TARGETS [CMAKE_OPTION...]: builds with the log in DIRECTORY/build.log and shows the progress. TARGETS
# is one argument of several words. A new DIRECTORY compiles several files at a time, since what they include takes most of
# the time.
build() {
  local directory=$1 targets
  read -ra targets <<<"$2"
  shift 2
  make_folders "$directory"
  local log=$directory/build.log jobs=${SYNTRA_JOBS:-$(build_jobs)}
  if [[ ! $jobs =~ ^[1-9][0-9]*$ ]]; then stop $USAGE "SYNTRA_JOBS is a number of compilers, not $jobs"; fi
  check_tools
  need_disk "$directory" 1500 "a build"
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$directory/CMakeCache.txt" 2>/dev/null) || true
  if [[ $home && ! $home -ef . ]]; then
    stop $BUILD_FAILED "$directory was made for the source in $home, which has been moved or copied; remove $directory and start again"
  fi
  if [[ ! -e $directory/CMakeCache.txt ]]; then set -- -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 "$@"; fi
  if ! cmake -G Ninja -S . -B "$directory" "$@" >"$log" 2>&1; then
    explain_build "$log" "configuring"
  fi
  local start=$SECONDS said=0 progress last=$directory/last_line
  # In this process group: ^C stops it, too. Other signals must be passed on.
  ninja -C "$directory" -j "$jobs" "${targets[@]}" >>"$log" 2>&1 &
  local ninja=$!
  local signal
  for signal in HUP INT TERM; do
    # shellcheck disable=SC2064  # the process as it is now
    trap "end_build $ninja $(kill -l "$signal")" "$signal"
  done
  while kill -0 "$ninja" 2>/dev/null; do
    # Through a file: bash 5.2 cannot run the trap of a signal that comes while it substitutes a command. The disk may be full.
    progress=''
    { tail -n 1 "$log" >"$last" && read -r progress <"$last"; } 2>/dev/null || true
    if [[ $progress =~ ^\[[0-9]+/[0-9]+\] ]]; then progress=${BASH_REMATCH[0]}; else progress=''; fi
    if [[ $progress && $said == 0 ]]; then
      clear_status_line
      say "Compiling with $jobs at a time (log: $log); the first time takes minutes"
      said=$SECONDS
    elif [[ $progress ]] && ! is_terminal && ((SECONDS - said >= 60)); then
      say "  $progress after $((SECONDS - start)) s"
      said=$SECONDS
    fi
    (status_line "  ${progress:-[starting]} $((SECONDS - start)) s")
    sleep 1
  done
  trap - INT TERM HUP
  rm -f "$last"
  if ! wait "$ninja"; then explain_build "$log" "compiling"; fi
  clear_status_line
  say "Built ${targets[*]} in $((SECONDS - start)) s"
}
