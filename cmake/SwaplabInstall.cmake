# What `cmake --install` puts down beside the libraries of swaplab_module(): the command, the licence
# and the package files, so that find_package(swaplab) works from the installed tree.
include(CMakePackageConfigHelpers)
set(swaplab_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/swaplab)

install(EXPORT swaplab_targets NAMESPACE swaplab:: FILE swaplabTargets.cmake
  DESTINATION ${swaplab_package_dir})
configure_package_config_file(cmake/swaplabConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/swaplabConfig.cmake INSTALL_DESTINATION ${swaplab_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/swaplabConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/swaplabConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/swaplabConfigVersion.cmake DESTINATION ${swaplab_package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET swaplab_cli)
  install(TARGETS swaplab_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
