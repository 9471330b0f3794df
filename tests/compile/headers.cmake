# Every public header compiles alone, and none lets a third-party type through (nlohmann/json_fwd.hpp excepted).
file(GLOB_RECURSE headers RELATIVE ${SOURCE}/include ${SOURCE}/include/*.hpp)
foreach(header ${headers})
  file(WRITE ${WORK}/header_alone.cpp "#include \"${header}\"\n#include \"${header}\"\n")
  execute_process(
    COMMAND ${CXX} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
      -Wno-missing-field-initializers -I${SOURCE}/include ${WORK}/header_alone.cpp
    RESULT_VARIABLE status ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${header}:\n${text}")
  endif()
  file(STRINGS ${SOURCE}/include/${header} lines REGEX "^#include <[a-z_]+/")
  foreach(line ${lines})
    if(NOT line STREQUAL "#include <nlohmann/json_fwd.hpp>")
      message(SEND_ERROR "${header} includes a third-party header: ${line}")
    endif()
  endforeach()
endforeach()
