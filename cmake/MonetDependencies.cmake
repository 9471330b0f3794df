# Protobuf must be found before ONNX: ONNX's package file does not look for it.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ONNX REQUIRED)           # target: onnx
find_package(yaml-cpp REQUIRED)       # target: yaml-cpp
find_package(fmt REQUIRED)            # fmt::fmt
find_package(nlohmann_json REQUIRED)  # nlohmann_json::nlohmann_json
find_package(CLI11 REQUIRED)          # CLI11::CLI11
find_package(PkgConfig REQUIRED)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc osi-cbc)  # PkgConfig::CBC
find_package(SQLite3 REQUIRED)        # SQLite::SQLite3
# PkgConfig::MPI; FindMPI would need the language C.
set(MONET_MPI AUTO CACHE STRING "Explorations on the processes of an MPI job: ON, OFF, or AUTO, where Open MPI is found")
set(monet_with_mpi FALSE)
if(MONET_MPI STREQUAL "AUTO")
  pkg_check_modules(MPI QUIET IMPORTED_TARGET ompi-c)
  set(monet_with_mpi ${MPI_FOUND})
elseif(MONET_MPI)
  pkg_check_modules(MPI REQUIRED IMPORTED_TARGET ompi-c)
  set(monet_with_mpi TRUE)
endif()
if(MONET_DEVELOPER_MODE)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)   # targets: rapidcheck, rapidcheck_gtest
  find_package(benchmark QUIET)
  # To check our NSGA-II.
  find_package(pagmo QUIET)           # Pagmo::pagmo
endif()
