# SPDX-License-Identifier: Apache-2.0
# Prints the shared libraries that programs and plugins load, transitively, one path per line:
#   cmake -DPROGRAMS=file;... -DPLUGINS=file;... -P launch/libraries.cmake
# Leaves out what belongs to the machine that runs them: glibc (that machine's driver and name services are loaded
# into the process and need its own), the NVIDIA driver and the CUDA toolkit's libraries.
cmake_minimum_required(VERSION 3.22)
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${PROGRAMS}
  MODULES ${PLUGINS}
  PRE_EXCLUDE_REGEXES
    "^ld-linux" "^lib(anl|c|dl|m|mvec|pthread|resolv|rt|util)[.]so"
    "^lib(cuda|nvidia-.*)[.]so" "^lib(cublas|cublasLt|cudart|nccl|nvJitLink|nvrtc)[.]so"
  RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX conflicting)
if(missing)
  message(FATAL_ERROR "these libraries are not found on this machine: ${missing}")
endif()
foreach(name ${conflicting_FILENAMES})
  message(FATAL_ERROR "${name} is found in several places: ${conflicting_${name}}")
endforeach()
list(JOIN libraries "\n" lines)
# message() writes to stderr.
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${lines}")
