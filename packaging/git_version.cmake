# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source that defines syntra::Version(), from TEMPLATE. Does not touch it if it would not change.
#   cmake -DSOURCE=directory -DPROJECT_VERSION=1.2.3 -DTEMPLATE=file -DOUTPUT=file -P git_version.cmake
# A commit with the tag v1.2.3 has the version "1.2.3", any other "1.2.3+g<commit>", with ".changed" if files differ from
# the commit. Without git, or in an unpacked archive, it is the project's version.
cmake_minimum_required(VERSION 3.22)
set(SYNTRA_VERSION ${PROJECT_VERSION})
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  function(ask_git result)
    execute_process(COMMAND ${GIT} -c safe.directory=${SOURCE} ${ARGN} WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(${result} "${answer}" PARENT_SCOPE)
  endfunction()
  ask_git(commit describe --always --dirty=.changed --abbrev=12 --exclude=*)
  ask_git(release tag --points-at HEAD v${PROJECT_VERSION})
  if(NOT commit)
    message(WARNING "git does not tell the commit of ${SOURCE}")
    set(commit unknown)
  endif()
  if(NOT release OR commit MATCHES changed)
    set(SYNTRA_VERSION "${PROJECT_VERSION}+g${commit}")
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
