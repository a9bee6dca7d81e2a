# SPDX-License-Identifier: Apache-2.0
# Debian packages with CPack: `cpack` in the build directory makes syntra (the program) and libsyntra-dev (libraries).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Syntra authors <syntra@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# CPACK_STRIP_FILES leaves static libraries as they are; most of their size is for debuggers.
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/strip_archives.cmake)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME syntra)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
# The libraries that the program loads, read from the program itself.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# mpirun, for more than one rank.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS openmpi-bin)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsyntra-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# The libraries' headers, and pkg-config, with which find_package(syntra) finds some of them.
file(STRINGS launch/packages needed REGEX "^(pkg-config|[^#].*-dev) +build")
list(TRANSFORM needed REPLACE " .*" "")
list(JOIN needed ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)

include(CPack)
# Follows the project's own summary.
cpack_add_component(program DESCRIPTION "Training on CPUs and NVIDIA GPUs, in one process or under MPI, with dot-product attention and every
 Synthesizer of Tay et al. 2021. Configurations and a sample corpus are in /usr/share/syntra.")
cpack_add_component(development DESCRIPTION "Libraries and headers for programs that use its engine: find_package(syntra).")
