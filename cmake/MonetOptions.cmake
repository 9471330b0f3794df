# Compiler flags live on one interface target, so that nothing is set globally for consumers.
add_library(monet_options INTERFACE)
target_compile_features(monet_options INTERFACE cxx_std_20)
target_include_directories(monet_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

add_library(monet_private_options INTERFACE)
target_include_directories(monet_private_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(monet_private_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-missing-field-initializers)
# g++ 12 warns falsely about overlapping copies inside std::string (GCC bug 105329).
target_compile_options(monet_private_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(MONET_SANITIZE MATCHES thread)
  # What its instrumentation hides from g++ 12, an optional's value among it, looks uninitialised.
  target_compile_options(monet_private_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
# Contraction into fused multiply-adds would make results depend on the compiler's mood.
target_compile_options(monet_private_options INTERFACE -ffp-contract=off)
if(MONET_DEVELOPER_MODE)
  target_compile_options(monet_private_options INTERFACE -Werror)
  target_compile_definitions(monet_private_options INTERFACE MONET_VERIFY_STAGES=1)
endif()
if(MONET_SANITIZE)
  add_compile_options(-fsanitize=${MONET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MONET_SANITIZE})
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
find_program(MONET_CCACHE ccache)
if(MONET_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MONET_CCACHE})
endif()

# For one-off builds (continuous integration): saves a fifth of their time. Off by default, as it hides missing
# includes and keeps ccache from finding anything.
option(MONET_PRECOMPILE_HEADERS "Precompile what most files include" $ENV{MONET_PRECOMPILE_HEADERS})
set(monet_common_headers <algorithm> <array> <functional> <map> <memory> <optional> <set> <string> <variant> <vector>
  <fmt/format.h>)
# monet_precompile(target FROM owner HEADERS ...): the headers are compiled with `owner` and used by all others.
function(monet_precompile target)
  cmake_parse_arguments(ARG "" "FROM" "HEADERS" ${ARGN})
  if(NOT MONET_PRECOMPILE_HEADERS)
    return()
  endif()
  if(target STREQUAL ARG_FROM)
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM ${ARG_FROM})
  endif()
endfunction()
