# `cmake --install` puts the tool, the library and a package file for find_package(monet).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(monet_stages GLOBAL PROPERTY MONET_STAGES)
install(TARGETS monet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${monet_stages} monet_options EXPORT monet ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/monet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT monet NAMESPACE monet:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/monet FILE monet-targets.cmake)
configure_package_config_file(cmake/monet-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/monet-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/monet)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/monet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/monet-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/monet-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/monet)
