# SPDX-License-Identifier: Apache-2.0
# What the kernels are compiled for, unless CMAKE_CUDA_ARCHITECTURES says it: A100, H100 with its own instructions (90a), and
# what comes after (as PTX). Included before the language is enabled.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()

# syntra_own_instructions(): with an H100 by its plain name, or found in this machine ("native"), its own instructions are
# meant, too. Called when the language is enabled, for only then is it known what is in the machine.
macro(syntra_own_instructions)
  if(CMAKE_CUDA_ARCHITECTURES STREQUAL "native" AND CMAKE_CUDA_ARCHITECTURES_NATIVE)
    set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  endif()
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90$" "90a-real;90-virtual")
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90-real$" "90a-real")
endmacro()
