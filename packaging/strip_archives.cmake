# SPDX-License-Identifier: Apache-2.0
# Run by CPack over the files of a package: strips static libraries of what only debuggers read.
file(GLOB_RECURSE archives "${CPACK_TEMPORARY_DIRECTORY}/*.a")
foreach(archive IN LISTS archives)
  execute_process(COMMAND strip --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
