#!/usr/bin/env bash
# Makes the Debian package of the program, reads its control fields, unpacks it and runs the program.
#   package_test.sh BUILD VERSION
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
readonly BUILD=$1 VERSION=$2
# shellcheck source=tests/packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
readonly SKIPPED=77

for tool in dpkg-deb dpkg-shlibdeps file cpack; do
  if ! command -v "$tool" >/dev/null; then
    echo "[  SKIPPED ] $tool is not installed"
    exit $SKIPPED
  fi
done
expect 0 'package:' cpack --config "$BUILD/CPackConfig.cmake" -B "$SCRATCH" -D CPACK_COMPONENTS_ALL=program
package=$(echo "$SCRATCH"/syntra_"$VERSION"_*.deb)
expect 0 "$VERSION" dpkg-deb --field "$package" Version
for library in libopenmpi libhdf5 libsentencepiece; do expect 0 "$library" dpkg-deb --field "$package" Depends; done
dpkg-deb --extract "$package" "$SCRATCH/root"
expect_program "$SCRATCH/root/usr"
