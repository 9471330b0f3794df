// The numbers of an ONNX file's initialisers: not needed for modelling, only for executing.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// Numbers by name of all initialisers whose numbers are in the file, or in files beside it that
/// exist (external data). Strings and initialisers without numbers are left out. InputError for
/// data that contradict the shape, and for external data outside the file's folder.
std::map<std::string, ConstantValues> read_onnx_weights(const std::string& path);
/// The same from bytes; external data lie beside `origin`.
std::map<std::string, ConstantValues> read_onnx_weights_bytes(std::string_view bytes,
                                                              const std::string& origin);

} // namespace monet
