# Every public header compiles alone.
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
endforeach()
