# SPDX-License-Identifier: Apache-2.0
# Finds Apache Arrow's C++ libraries, which only the Parquet reader needs. Debian does not have them. A build without
# them refuses Parquet files.
#   SYNTRA_PARQUET (cache)    AUTO: use them if found. ON: missing libraries are an error. OFF: do not search.
# Sets
#   SYNTRA_PARQUET_FOUND      whether there are libraries to build with
#   SYNTRA_PARQUET_LIBRARIES  their targets
set(SYNTRA_PARQUET AUTO CACHE STRING "Read Parquet files with Apache Arrow: AUTO, ON or OFF")
set_property(CACHE SYNTRA_PARQUET PROPERTY STRINGS AUTO ON OFF)
if(NOT SYNTRA_PARQUET MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SYNTRA_PARQUET is \"${SYNTRA_PARQUET}\"; it is AUTO, ON or OFF")
endif()

set(SYNTRA_PARQUET_FOUND FALSE)
set(SYNTRA_PARQUET_LIBRARIES)
if(NOT SYNTRA_PARQUET STREQUAL OFF)
  find_package(Arrow CONFIG QUIET)
  find_package(Parquet CONFIG QUIET)
  foreach(kind shared static)
    if(NOT SYNTRA_PARQUET_FOUND AND TARGET Parquet::parquet_${kind} AND TARGET Arrow::arrow_${kind})
      set(SYNTRA_PARQUET_FOUND TRUE)
      set(SYNTRA_PARQUET_LIBRARIES Parquet::parquet_${kind} Arrow::arrow_${kind})
    endif()
  endforeach()
endif()

if(SYNTRA_PARQUET_FOUND)
  message(STATUS "Parquet: Apache Arrow ${Arrow_VERSION}")
elseif(SYNTRA_PARQUET STREQUAL OFF)
  message(STATUS "Parquet: not looked for (SYNTRA_PARQUET=OFF)")
elseif(SYNTRA_PARQUET STREQUAL ON)
  message(FATAL_ERROR "SYNTRA_PARQUET is ON, but CMake finds no Apache Arrow with Parquet; install libarrow-dev and "
                      "libparquet-dev from https://arrow.apache.org/install or set CMAKE_PREFIX_PATH to where it is")
else()
  message(STATUS "Parquet: no Apache Arrow found; Parquet files will be refused")
endif()
