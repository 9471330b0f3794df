# Compiler flags live on one interface target, so that nothing is set globally for consumers.
add_library(monet_options INTERFACE)
target_compile_features(monet_options INTERFACE cxx_std_20)
target_include_directories(monet_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
configure_file(include/monet/version.hpp.in include/monet/version.hpp @ONLY)

add_library(monet_private_options INTERFACE)
target_include_directories(monet_private_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(monet_private_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-missing-field-initializers)
# g++ 12 warns falsely about overlapping copies inside std::string (GCC bug 105329).
target_compile_options(monet_private_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(MONET_SANITIZE MATCHES thread)
  # What its instrumentation hides from g++ 12, an optional's value among it, looks uninitialised.
  target_compile_options(monet_private_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
# Without this option g++ spends a tenth of its time on garbage collection; with it the largest room takes 1.7 GB instead of 1.3 GB.
target_compile_options(monet_private_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
# Contraction into fused multiply-adds would make results depend on the compiler's mood.
target_compile_options(monet_private_options INTERFACE -ffp-contract=off)
if(MONET_DEVELOPER_MODE AND NOT MONET_FUZZ)
  target_compile_options(monet_private_options INTERFACE -Werror)
  target_compile_definitions(monet_private_options INTERFACE MONET_VERIFY_STAGES=1)
endif()
if(MONET_SANITIZE)
  add_compile_options(-fsanitize=${MONET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MONET_SANITIZE})
  # An index past the end of a vector or span is reported even where the memory behind it is ours.
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
if(MONET_FUZZ)
  # Coverage of every stage, or libFuzzer is blind to what its inputs reach.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Only the inner loops of searches and kernels gain from -O3, which makes the tool a tenth larger.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
set(monet_hot_options $<$<CONFIG:Release>:-O3>)
# Measured: see docs/decisions/0056-hardened-releases.md. Developers and sanitizers have checks of their own.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MONET_SANITIZE AND NOT MONET_FUZZ)
  set(monet_hardened_default ON)
else()
  set(monet_hardened_default OFF)
endif()
option(MONET_HARDENED "Checked containers, stack protectors, fortified glibc, PIE and full RELRO" ${monet_hardened_default})
include(MonetHardened)
if(MONET_HARDENED)
  monet_harden(monet_private_options)
endif()
find_program(MONET_CCACHE ccache)
if(MONET_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MONET_CCACHE})
endif()

# For builds from scratch: each room of a stage (the files of one folder) is compiled as one file, and what most files
# include is precompiled. Halves their time. Not for developers: an edit compiles its whole room, missing includes stay
# hidden, and ccache finds nothing. The environment variable sets it for continuous integration.
if(DEFINED ENV{MONET_UNITY})
  set(monet_unity_default $ENV{MONET_UNITY})
elseif(MONET_DEVELOPER_MODE)
  set(monet_unity_default OFF)
else()
  set(monet_unity_default ON)
endif()
option(MONET_UNITY "Compile each room as one file, with precompiled headers" ${monet_unity_default})
set(monet_common_headers <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric> <optional>
  <set> <span> <string> <variant> <vector> <fmt/core.h>)
set(monet_test_headers ${monet_common_headers} <atomic> <chrono> <filesystem> <fstream> <random> <sstream> <thread> <fmt/format.h> <fmt/ranges.h>
  <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <onnx/onnx_pb.h> <rapidcheck/gtest.h>
  "${PROJECT_SOURCE_DIR}/include/monet/training_graph/training.hpp" "${PROJECT_SOURCE_DIR}/include/monet/workload/onnx_reader.hpp")
# monet_precompile(target FROM owner HEADERS ...): the headers are compiled with `owner` and used by all others.
function(monet_precompile target)
  cmake_parse_arguments(ARG "" "FROM" "HEADERS" ${ARGN})
  if(NOT MONET_UNITY)
    return()
  endif()
  if(target STREQUAL ARG_FROM)
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM ${ARG_FROM})
  endif()
  if(ARG_FROM MATCHES "test") # a seventh of the time of a build, and gtest says where a test failed
    target_compile_options(${target} PRIVATE -g0)
  else() # a tenth of the time, and two thirds of what is linked; with sanitizers, stacks have lines
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
  endif()
  # g++ 12 then takes concatenated strings for overflows (GCC bug 105651).
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
  # And it inlines less in files beyond a size, which rooms are and their files are not.
  target_compile_options(${target} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:--param=large-unit-insns=100000>)
endfunction()
# monet_join_rooms(target): the target's sources of one folder become one.
function(monet_join_rooms target)
  if(NOT MONET_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH room)
    string(MAKE_C_IDENTIFIER "room_${room}" room)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${room})
  endforeach()
  # g++ takes a .cpp that is included for a header, whose types should not be of an anonymous namespace.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
# monet_cool_rooms(target room|a.cpp ...): compiles the target's sources in these folders, and these sources, at -O1 in releases.
# They read files, write results or build graphs, and no search spends its time in them.
set(monet_cold_options $<$<CONFIG:Release>:-O1>)
function(monet_cool_rooms target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH room)
    string(MAKE_C_IDENTIFIER "room_${room}" group)
    if(room STREQUAL "")
      set(room .)
    endif()
    if(MONET_UNITY AND room IN_LIST ARGN) # CMake joins no source with options, but the joined file may have some
      set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx
                   PROPERTY COMPILE_OPTIONS ${monet_cold_options})
    elseif(room IN_LIST ARGN OR source IN_LIST ARGN)
      set_property(SOURCE ${source} PROPERTY COMPILE_OPTIONS ${monet_cold_options})
    endif()
  endforeach()
endfunction()
