# monet_harden(options): what links the interface target is built as releases are. An index past the end of a vector, span
# or string ends the program in place of reading on, and so do smashed stacks and overflows that glibc can see; code,
# libraries and heap are where nobody can foresee them, and the tables of functions cannot be written.
include(CheckPIESupported)
check_pie_supported()
function(monet_harden options)
  target_compile_definitions(${options} INTERFACE _GLIBCXX_ASSERTIONS)
  target_compile_options(${options} INTERFACE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_link_options(${options} INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
  set_target_properties(${options} PROPERTIES INTERFACE_POSITION_INDEPENDENT_CODE ON)
endfunction()
# monet_uncheck_rooms(target INNER room ...): the target's sources in these folders index unchecked in releases. Inner loops of
# all searches, over arrays of sizes that we chose, for numbers that were checked on their way there: see docs/decisions.md.
# Compiled file by file: g++ lays such loops out slower where a room is one file.
function(monet_uncheck_rooms target)
  cmake_parse_arguments(ARG "" "" "INNER" ${ARGN})
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH room)
    if(room IN_LIST ARG_INNER)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -U_GLIBCXX_ASSERTIONS
        SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()
