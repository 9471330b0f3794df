# Lists the quoted words in the readers' sources as a C++ array's elements:
# cmake -D OUT=text_words.inc -P text_words.cmake SOURCE...
set(words)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 5 ${last})
  file(READ ${CMAKE_ARGV${i}} text)
  string(REGEX MATCHALL "\"[A-Za-z][A-Za-z0-9_-]*\"" found "${text}")
  list(APPEND words ${found})
endforeach()
list(REMOVE_DUPLICATES words)
list(SORT words)
list(JOIN words ",\n" text)
file(WRITE ${OUT} "${text}\n")
