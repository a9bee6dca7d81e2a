# SPDX-License-Identifier: Apache-2.0
# Prints what kernels/cuda/architectures.cmake compiles for, where GIVEN is asked for and FOUND is in the machine.
if(GIVEN)
  set(CMAKE_CUDA_ARCHITECTURES ${GIVEN})
endif()
include(${CMAKE_CURRENT_LIST_DIR}/../../kernels/cuda/architectures.cmake)
set(CMAKE_CUDA_ARCHITECTURES_NATIVE ${FOUND})
syntra_own_instructions()
list(JOIN CMAKE_CUDA_ARCHITECTURES " " words)
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${words}")
