# `cmake --build build --target format` rewrites; `format-check` only complains.
find_program(MONET_CLANG_FORMAT NAMES clang-format-14 clang-format)
if(MONET_CLANG_FORMAT)
  file(GLOB_RECURSE monet_format_files CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/src/*.[ch]pp ${PROJECT_SOURCE_DIR}/apps/*.[ch]pp
    ${PROJECT_SOURCE_DIR}/tests/*.[ch]pp ${PROJECT_SOURCE_DIR}/bench/*.cpp ${PROJECT_SOURCE_DIR}/fuzz/*.[ch]pp ${PROJECT_SOURCE_DIR}/python/src/*.[ch]pp)
  add_custom_target(format COMMAND ${MONET_CLANG_FORMAT} -i ${monet_format_files})
  add_custom_target(format-check COMMAND ${MONET_CLANG_FORMAT} --dry-run -Werror ${monet_format_files})
endif()
