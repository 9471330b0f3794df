// The four error types of the library. It never prints, exits or aborts: it throws one of these.
// Example:
//   template <class Read>
//   std::string problems_of(Read read) try {
//     read(); // such as read_chip()
//     return {};
//   } catch (const InputError& error) {
//     return error.what(); // one line per problem, with file, line and column
//   }
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A position in the user's files: "chip.yaml:12:5" or "net.onnx [node 'conv1' (Conv)]".
struct SourceLoc {
  std::string origin;  ///< file as the user named it
  int line = 0;        ///< 1-based; 0 = no line (binary file, or synthesised)
  int column = 0;      ///< 1-based
  std::string element; ///< for example "node '/conv1/Conv' (Conv), attribute 'strides'"

  std::string to_string() const;
};

/// One error in the user's input.
struct InputProblem {
  SourceLoc where;
  std::string what;
  std::string hint; ///< for example "did you mean 'size'?"; may be empty

  std::string to_string() const;
};

/// An error in the user's file (exit code 3). Carries every problem found in one run; what() lists
/// them, one per line.
class InputError : public std::runtime_error {
public:
  InputError(SourceLoc where, std::string_view what, std::string_view hint = {});
  explicit InputError(std::vector<InputProblem> problems);
  const std::vector<InputProblem>& problems() const { return problems_; }

private:
  std::vector<InputProblem> problems_;
};

/// A valid question without a solution (exit code 4); what() names the violated constraint and the
/// amount by which it is violated.
class InfeasibleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A result that cannot be written (exit code 5), for example to an unwritable or deleted folder or
/// a full disk. what() begins with the path.
class OutputError : public std::runtime_error {
public:
  OutputError(const std::string& place, std::string_view what);
};

/// A bug in MONET (exit code 70).
class InternalError : public std::logic_error {
public:
  explicit InternalError(std::string_view what,
                         std::source_location at = std::source_location::current());
};

/// Throws InternalError unless `condition` holds. Not for conditions that user input can violate.
void internal_check(bool condition, std::string_view what,
                    std::source_location at = std::source_location::current());

/// A list of problems, collected so that one run reports them all.
class ProblemList {
public:
  void add(SourceLoc where, std::string_view what, std::string_view hint = {});
  void add(const std::vector<InputProblem>& problems);
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  /// Throws InputError with all collected problems; does nothing if the list is empty.
  void throw_if_any() const;
  const std::vector<InputProblem>& problems() const { return problems_; }

private:
  std::vector<InputProblem> problems_;
};

} // namespace monet
