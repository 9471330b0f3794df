# cmake -DCPACK=... -DBUILD=... -DWORK=... -P package_test.cmake
# Packs the build and unpacks it into WORK/root.
cmake_path(NORMAL_PATH WORK)
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CPACK} -G DEB -B ${WORK} --config ${BUILD}/CPackConfig.cmake
  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(GLOB package ${WORK}/*.deb)
execute_process(COMMAND dpkg-deb --extract ${package} ${WORK}/root COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND dpkg-deb --field ${package} Depends COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE depends)
set(libraries libonnx libyaml-cpp libsqlite3)
if(MPI)
  list(APPEND libraries libopenmpi)
endif()
foreach(library ${libraries})
  if(NOT depends MATCHES "${library}")
    message(FATAL_ERROR "the package does not depend on ${library}: ${depends}")
  endif()
endforeach()
