// `monet formats`: what its questions share.
#pragma once

#include "console.hpp"
#include "options/formats_options.hpp"

#include "monet/base/npy.hpp"
#include "monet/report/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace monet::cli {

/// An array that is to be written once everything is known.
struct ArrayFile {
  std::string path; ///< empty: nobody asked for it
  std::string bytes;
};

/// Whether numbers are written in 4 bytes: single precision holds the format, and no finite number
/// is too large for it.
NpyType float_type(const NumberFormat& format, std::span<const double> numbers);

/// The files, with the answer behind them.
void write_answer(std::span<const ArrayFile> files, const std::string& json_path, const Json& json,
                  const std::string& table);

/// Of the array files that were read, hashed where the answer is asked for as JSON.
Provenance formats_provenance(const FormatsArguments& arguments,
                              const std::vector<std::string>& files);

/// `monet formats --gemm`.
int multiply_matrices(const FormatsArguments& arguments, const Command& command, Session& session);

} // namespace monet::cli
