# SPDX-License-Identifier: Apache-2.0
# Finds what a GPU build needs: the CUDA toolkit with cuBLAS and, for several GPUs, NCCL. Nothing needs a GPU
# build: without the toolkit there is one for CPUs.
#   SYNTRA_CUDA (cache)  AUTO: take what is there. ON: a missing toolkit is an error. OFF: look for nothing.
# Sets
#   SYNTRA_CUDA_FOUND    whether there is a toolkit to build with: CUDA::cudart, CUDA::cublas, CUDA::cublasLt
#   SYNTRA_NCCL_FOUND    and NCCL: NCCL_INCLUDE_DIR, NCCL_LIBRARY
#   SYNTRA_CUDA_SUMMARY  both in words, for people
set(SYNTRA_CUDA AUTO CACHE STRING "Build for NVIDIA GPUs: AUTO, ON or OFF")
set_property(CACHE SYNTRA_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT SYNTRA_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SYNTRA_CUDA is \"${SYNTRA_CUDA}\"; it is AUTO, ON or OFF")
endif()

set(SYNTRA_CUDA_FOUND FALSE)
set(SYNTRA_NCCL_FOUND FALSE)
if(NOT SYNTRA_CUDA STREQUAL OFF)
  find_package(CUDAToolkit QUIET)
  # 12.5: cudaGetDriverEntryPointByVersion.
  if(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.5 AND TARGET CUDA::cublas AND TARGET CUDA::cublasLt)
    set(SYNTRA_CUDA_FOUND TRUE)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
    mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
    if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
      set(SYNTRA_NCCL_FOUND TRUE)
    endif()
  endif()
endif()

if(SYNTRA_NCCL_FOUND)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_version REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM nccl_version REPLACE "[^0-9]+" "")
  list(JOIN nccl_version "." nccl_version)
  set(nccl_summary "NCCL ${nccl_version}")
else()
  set(nccl_summary "no NCCL")
endif()
if(SYNTRA_CUDA_FOUND)
  set(SYNTRA_CUDA_SUMMARY "CUDA ${CUDAToolkit_VERSION} with cuBLAS, ${nccl_summary}")
elseif(SYNTRA_CUDA STREQUAL OFF)
  set(SYNTRA_CUDA_SUMMARY "not looked for (SYNTRA_CUDA=OFF)")
else()
  set(SYNTRA_CUDA_SUMMARY "no CUDA toolkit 12.5 or newer with cuBLAS")
endif()
message(STATUS "GPU: ${SYNTRA_CUDA_SUMMARY}")
if(SYNTRA_CUDA STREQUAL ON AND NOT SYNTRA_CUDA_FOUND)
  message(FATAL_ERROR "SYNTRA_CUDA is ON, but there is no CUDA toolkit 12.5 or newer with cuBLAS; install it, say where it is "
                      "with -DCUDAToolkit_ROOT=DIRECTORY, or build for CPUs with -DSYNTRA_CUDA=OFF")
endif()
