// The four families of failure. The library never prints, exits or aborts: it throws one of these.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Where in the user's files something is: "chip.yaml:12:5" or "net.onnx [node 'conv1' (Conv)]".
struct SourceLoc {
  std::string origin;  ///< file as the user named it
  int line = 0;        ///< 1-based; 0 = no line (binary file, or synthesised)
  int column = 0;      ///< 1-based
  std::string element; ///< for example "node '/conv1/Conv' (Conv), attribute 'strides'"

  std::string to_string() const;
};

/// One thing that is wrong with the user's input.
struct InputProblem {
  SourceLoc where;
  std::string what;
  std::string hint; ///< for example "did you mean 'size'?"; may be empty

  std::string to_string() const;
};

/// The user's file is wrong (exit code 3). Carries every problem found in one run; what() lists
/// them, one a line.
class InputError : public std::runtime_error {
public:
  InputError(SourceLoc where, std::string_view what, std::string_view hint = {});
  explicit InputError(std::vector<InputProblem> problems);
  const std::vector<InputProblem>& problems() const { return problems_; }

private:
  std::vector<InputProblem> problems_;
};

/// A valid question without an answer (exit code 4); what() names the constraint and by how much it
/// fails.
class InfeasibleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A result cannot be written (exit code 5): an unwritable or vanished place, a full disk. what()
/// begins with the place.
class OutputError : public std::runtime_error {
public:
  OutputError(const std::string& place, std::string_view what);
};

/// Our bug (exit code 70).
class InternalError : public std::logic_error {
public:
  explicit InternalError(std::string_view what,
                         std::source_location at = std::source_location::current());
};

/// Throws InternalError unless `condition` holds. Never for conditions that input can break.
void internal_check(bool condition, std::string_view what,
                    std::source_location at = std::source_location::current());

/// Collects problems so that one run reports them all.
class ProblemList {
public:
  void add(SourceLoc where, std::string_view what, std::string_view hint = {});
  void add(const std::vector<InputProblem>& problems);
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  /// Throws InputError with everything collected; does nothing when there is nothing.
  void throw_if_any() const;
  const std::vector<InputProblem>& problems() const { return problems_; }

private:
  std::vector<InputProblem> problems_;
};

} // namespace monet
