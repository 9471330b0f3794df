# `cmake --install` puts the tool, the library, a package file for find_package(monet) with a component for each stage, and
# the data and examples that the README's commands name; `--target package` makes a Debian package of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(monet_stages GLOBAL PROPERTY MONET_STAGES)
get_property(monet_stage_needs GLOBAL PROPERTY MONET_STAGE_NEEDS)
set(monet_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/monet)
install(TARGETS monet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS monet_options EXPORT monet-options)
install(EXPORT monet-options NAMESPACE monet:: DESTINATION ${monet_package_dir} FILE monet-options-targets.cmake)
foreach(stage ${monet_stages})
  install(TARGETS monet_${stage} EXPORT monet-${stage} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT monet-${stage} NAMESPACE monet:: DESTINATION ${monet_package_dir} FILE monet-${stage}-targets.cmake)
endforeach()
set(monet_left_out "")
if(NOT MONET_REFERENCE)
  set(monet_left_out PATTERN reference EXCLUDE)
endif()
install(DIRECTORY include/monet ${CMAKE_CURRENT_BINARY_DIR}/include/monet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.hpp ${monet_left_out})
install(DIRECTORY data examples DESTINATION ${CMAKE_INSTALL_DATADIR}/monet)
install(FILES ${CMAKE_BINARY_DIR}/help/monet.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/help/monet.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME monet)
install(FILES ${CMAKE_BINARY_DIR}/help/_monet DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${CMAKE_BINARY_DIR}/help/monet.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
configure_package_config_file(cmake/monet-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/monet-config.cmake
  INSTALL_DESTINATION ${monet_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/monet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/monet-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/monet-config-version.cmake
  DESTINATION ${monet_package_dir})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "The authors of MONET")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Models the training steps of neural networks on accelerators")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # reads what the tool is linked with; needs dpkg-dev
# What programs that use the library are built with.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, pkg-config, libonnx-dev, libprotobuf-dev, protobuf-compiler, libyaml-cpp-dev,\
 libfmt-dev, nlohmann-json3-dev, coinor-libcbc-dev, libsqlite3-dev")
if(monet_with_mpi)
  string(APPEND CPACK_DEBIAN_PACKAGE_SUGGESTS ", libopenmpi-dev, openmpi-bin")
endif()
set(CPACK_STRIP_FILES ON)

# The Python package is a Debian package of its own (target python3-monet), no part of the other.
if(MONET_PYTHON)
  install(TARGETS monet_python LIBRARY DESTINATION lib/python3/dist-packages/monet COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY python/monet DESTINATION lib/python3/dist-packages COMPONENT python EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed PATTERN __pycache__ EXCLUDE)
  get_property(monet_python_minor GLOBAL PROPERTY MONET_PYTHON_MINOR)
  math(EXPR monet_next_python "${monet_python_minor} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-monet)
  set(CPACK_DEBIAN_PYTHON_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.${monet_python_minor}), python3 (<< 3.${monet_next_python}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-matplotlib, python3-pandas, python3-tqdm, python3-torch")
endif()
include(CPack)
if(MONET_PYTHON)
  add_custom_target(python3-monet DEPENDS monet_python VERBATIM
    COMMAND ${CMAKE_CPACK_COMMAND} -G DEB -D CPACK_DEB_COMPONENT_INSTALL=ON -D CPACK_COMPONENTS_ALL=python
      --config ${CMAKE_BINARY_DIR}/CPackConfig.cmake -B ${CMAKE_BINARY_DIR}/packages)
endif()
