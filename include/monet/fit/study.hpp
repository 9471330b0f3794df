// An experiment of training runs: what `monet train` reads. Variants of one recipe, each run from
// several seeds; docs/reference/training-experiment.md describes every key.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/fit/data_options.hpp"
#include "monet/training_graph/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Steps of a run.
struct RunLength {
  std::int64_t steps = 0;
  std::int64_t steps_of_epoch = 1;
};

/// A share of the optimiser's own rate, those of its groups included.
struct RateSchedule {
  enum class Kind {
    constant,
    cosine, ///< half a period from 1 to `last` (Loshchilov and Hutter 2017, without restarts)
    step,   ///< times `factor` at every milestone
    linear, ///< a straight line from 1 to `last`
  };
  Kind kind = Kind::constant;
  std::int64_t warmup = 0; ///< steps in which it grows from 1 / warmup to 1; cosine and linear
                           ///< begin behind them
  Integers milestones;     ///< epochs, counted from 0, that begin with a lower rate
  double factor = 0.1;
  double last = 0.0; ///< share where the run ends

  /// Of a step, counted from 0.
  double share(std::int64_t step, const RunLength& run) const;
};

struct SavingOptions {
  std::int64_t every = 0; ///< steps or epochs; 0: where a run ends alone
  bool epochs = false;
  std::int64_t keep = 1; ///< the newest so many
};

/// What the weights of a run begin with.
struct InitialOptions {
  enum class Scheme {
    he_normal,  ///< normal, variance 2 / fan-in (He et al. 2015); biases 0
    he_uniform, ///< uniform of the same variance; biases 0
    pytorch,    ///< weights and biases of layers uniform within 1 / sqrt(fan-in)
    network,    ///< the numbers of the network's file
    file,       ///< those of a folder of .npy files or of an ONNX file
  };
  Scheme scheme = Scheme::he_normal;
  std::string path; ///< of `file`
  SourceLoc where;
};

enum class OnNonFinite {
  stop, ///< the run ends
  skip, ///< the step changes nothing
};

/// Everything a run is made of but its seed.
struct TrainRecipe {
  std::string name;
  Located<std::string> network; ///< path
  std::optional<std::int64_t> batch;
  Located<TrainingOptions> training;
  std::size_t data = 0;    ///< which of the study's
  std::int64_t epochs = 0; ///< at most; 0: as many as the steps take
  std::int64_t steps = 0;  ///< at most; 0: as many as the epochs have
  RateSchedule rate;
  std::vector<std::uint64_t> seeds{1};
  Arithmetic arithmetic = Arithmetic::fp32;
  std::int64_t evaluate_every = 1; ///< epochs; 0: where a run ends alone
  SavingOptions checkpoint;
  InitialOptions initial;
  OnNonFinite on_nonfinite = OnNonFinite::stop;
  /// What the file says of it, but for seeds and checkpoints: equal for equal runs.
  std::string text;
};

struct TrainStudy {
  std::string name;
  std::vector<DataOptions> data;
  std::vector<TrainRecipe> variants; ///< one called "run" where the file has none
  std::vector<std::string> files;    ///< read for it, besides networks and data
};

/// Throws one InputError with every problem of the file and of training files that it names.
TrainStudy read_train_study(const std::string& path);
/// The same from what `path` holds, parsed already.
TrainStudy train_study_of(const YamlNode& root, const std::string& path);

} // namespace monet
