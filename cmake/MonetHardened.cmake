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
# monet_add_inner_rooms(target ROOMS room ... SOURCES a.cpp ... DEPENDS stage ... LIBRARIES ...): a target for the sources in these rooms,
# which index unchecked in releases. They are inner loops of all searches, over arrays of sizes that we chose, for numbers that were
# checked on their way there: see docs/decisions/0056-hardened-releases.md. Compiled file by file: g++ lays such loops out slower where a room is one file.
function(monet_add_inner_rooms target)
  cmake_parse_arguments(ARG "" "" "ROOMS;SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  list(JOIN ARG_ROOMS "|" rooms)
  list(FILTER ARG_SOURCES INCLUDE REGEX "^(${rooms})/")
  list(TRANSFORM ARG_DEPENDS PREPEND monet_)
  add_library(${target} OBJECT ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE monet_options monet_private_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
  target_compile_options(${target} PRIVATE ${monet_hot_options} -U_GLIBCXX_ASSERTIONS)
  monet_precompile(${target} FROM monet_core_cost_inner HEADERS ${monet_common_headers})
endfunction()
