# SPDX-License-Identifier: Apache-2.0
# Finds the libraries that Syntra needs: in the build, and in programs that use an installed Syntra
# (packaging/syntra-config.cmake.in). launch/packages lists the Debian packages.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS C)
# Static, because Debian's libsentencepiece exports an older protobuf of its own (see below).
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET GLOBAL sentencepiece)
pkg_check_modules(isal REQUIRED IMPORTED_TARGET GLOBAL libisal)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET GLOBAL hwloc)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET GLOBAL libhwy)
pkg_check_modules(zip REQUIRED IMPORTED_TARGET GLOBAL libzip)

find_path(UNISTRING_INCLUDE_DIR unicase.h REQUIRED)
find_library(UNISTRING_LIBRARY unistring REQUIRED)
if(NOT TARGET syntra_unistring)
  add_library(syntra_unistring INTERFACE IMPORTED GLOBAL)
  target_include_directories(syntra_unistring INTERFACE ${UNISTRING_INCLUDE_DIR})
  target_link_libraries(syntra_unistring INTERFACE ${UNISTRING_LIBRARY})
endif()

# Debian's dnnl-config.cmake requires OpenCL headers that a CPU build does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
if(NOT TARGET syntra_dnnl)
  add_library(syntra_dnnl INTERFACE IMPORTED GLOBAL)
  target_include_directories(syntra_dnnl INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(syntra_dnnl INTERFACE ${DNNL_LIBRARY})
endif()

find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT TARGET syntra_hdf5)
  add_library(syntra_hdf5 INTERFACE IMPORTED GLOBAL)
  target_include_directories(syntra_hdf5 INTERFACE ${HDF5_C_INCLUDE_DIRS})
  target_compile_definitions(syntra_hdf5 INTERFACE ${HDF5_C_DEFINITIONS})
  target_link_libraries(syntra_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
endif()

# Debian's libsentencepiece.so exports the old protobuf that it bundles. Two versions of protobuf in one process must
# not bind to each other's functions. So ours is linked statically and comes before libsentencepiece on every link line
# (otherwise the linker would take symbols from there), and programs export none of its symbols.
set_property(TARGET protobuf::libprotobuf APPEND PROPERTY INTERFACE_LINK_LIBRARIES PkgConfig::sentencepiece)
set(hidden ${CMAKE_CURRENT_LIST_DIR}/hide_protobuf.map)
set_property(TARGET protobuf::libprotobuf APPEND PROPERTY INTERFACE_LINK_OPTIONS "LINKER:--version-script=${hidden}")
set_property(TARGET protobuf::libprotobuf APPEND PROPERTY INTERFACE_LINK_DEPENDS ${hidden})
