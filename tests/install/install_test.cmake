# cmake -DBUILD=... -DSOURCE=... -DWORK=... -P install_test.cmake
# Installs the build into WORK, then configures, builds and runs the downstream project against it.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(last_output "${out}" PARENT_SCOPE)
endfunction()
file(REMOVE_RECURSE ${WORK})
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/downstream -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
     "-DCMAKE_CXX_FLAGS=${FLAGS}")
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${WORK}/build/downstream ${SOURCE}/data/workload/resnet18_cifar.onnx)
if(NOT last_output MATCHES "11173962 parameters")
  message(FATAL_ERROR "downstream printed: ${last_output}")
endif()
