# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs. There are two components: `program` (the program, configurations, sample corpus,
# manual pages, completions) and `development` (libraries and headers, for find_package(syntra)). Include this after all
# targets of the product and before those of the tests.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/syntra)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/syntra)
set(share ${CMAKE_INSTALL_DATADIR}/syntra)

# The program and its files. It prints its own manual pages and completion scripts.
set(documents ${CMAKE_BINARY_DIR}/documents)
add_custom_command(OUTPUT ${documents}/made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${documents}
  COMMAND syntra manual --write ${documents}
  COMMAND syntra completion bash > ${documents}/syntra
  COMMAND syntra completion zsh > ${documents}/_syntra
  COMMAND syntra completion fish > ${documents}/syntra.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${documents}/made
  DEPENDS syntra VERBATIM COMMENT "Printing manual pages and completion scripts")
add_custom_target(syntra_documents ALL DEPENDS ${documents}/made)

install(TARGETS syntra COMPONENT program)
install(DIRECTORY ${documents}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program FILES_MATCHING PATTERN *.1)
install(FILES ${documents}/syntra DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${documents}/_syntra DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
install(FILES ${documents}/syntra.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(DIRECTORY configs DESTINATION ${share} COMPONENT program PATTERN CMakeLists.txt EXCLUDE)
install(DIRECTORY data/sample DESTINATION ${share}/data COMPONENT program)
install(FILES README.md CHANGELOG.md LICENSE packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES packaging/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libsyntra-dev COMPONENT development)

# The libraries. Other projects see syntra_core as syntra::core.
get_property(libraries GLOBAL PROPERTY SYNTRA_LIBRARIES)
foreach(library ${libraries})
  string(REPLACE syntra_ "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
list(REMOVE_ITEM libraries syntra_cli)
install(TARGETS ${libraries} EXPORT syntra COMPONENT development INCLUDES DESTINATION ${headers})
foreach(folder src/ data dist kernels)
  install(DIRECTORY ${folder} DESTINATION ${headers} COMPONENT development
          FILES_MATCHING PATTERN *.h PATTERN *.def PATTERN cli EXCLUDE PATTERN sample EXCLUDE)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/ DESTINATION ${headers} COMPONENT development
        FILES_MATCHING PATTERN *.pb.h)
install(EXPORT syntra NAMESPACE syntra:: DESTINATION ${package} COMPONENT development FILE syntra-targets.cmake)
configure_package_config_file(packaging/syntra-config.cmake.in ${CMAKE_BINARY_DIR}/syntra-config.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/syntra-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/syntra-config.cmake ${CMAKE_BINARY_DIR}/syntra-config-version.cmake
              packaging/dependencies.cmake packaging/hide_protobuf.map
        DESTINATION ${package} COMPONENT development)
