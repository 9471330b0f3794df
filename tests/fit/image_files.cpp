#include "fit/image_files.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet::test {

std::string bytes_of(std::initializer_list<int> numbers) {
  std::string bytes;
  for (const int number : numbers)
    bytes += static_cast<char>(number);
  return bytes;
}

std::string cifar_record(int label, int first) {
  std::string record(1, static_cast<char>(label));
  for (int i = 0; i < 3072; ++i)
    record += static_cast<char>((first + i) % 256);
  return record;
}

std::string idx_file(int type, std::initializer_list<std::uint32_t> dimensions,
                     std::string_view data) {
  std::string bytes = bytes_of({0, 0, type, static_cast<int>(dimensions.size())});
  for (const std::uint32_t size : dimensions) {
    for (const unsigned shift : {24U, 16U, 8U, 0U})
      bytes += static_cast<char>(size >> shift & 0xFF);
  }
  return bytes + std::string(data);
}

std::string npy_file(std::string_view type, std::string_view shape, std::string_view data,
                     bool column_major) {
  const std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}}}\n",
                                         type, column_major ? "True" : "False", shape);
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + std::string(data);
}

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

} // namespace monet::test
