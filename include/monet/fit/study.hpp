// An experiment of training runs, the input of `monet train`: variants of one recipe, each run with
// several seeds. docs/reference/training-experiment.md describes every key.
// Example:
//   std::size_t count_runs() {
//     const TrainStudy study = read_train_study("examples/numerics/rates.yaml");
//     std::size_t runs = 0;
//     for (const TrainRecipe& variant : study.variants)
//       runs += variant.seeds.size();
//     return runs;
//   }
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/fit/dataset.hpp"
#include "monet/training_graph/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Length of a run in steps.
struct RunLength {
  std::int64_t steps = 0;
  std::int64_t steps_of_epoch = 1;
};

/// Learning-rate schedule: a factor on the optimiser's rate, and on those of its groups.
struct RateSchedule {
  enum class Kind {
    constant,
    cosine, ///< half a period from 1 to `last` (Loshchilov and Hutter 2017, without restarts)
    step,   ///< multiplied by `factor` at every milestone
    linear, ///< linear from 1 to `last`
  };
  Kind kind = Kind::constant;
  std::int64_t warmup = 0; ///< steps of rise from 1 / warmup to 1, before cosine and linear
  Integers milestones;     ///< epochs, counted from 0, at which the rate drops
  double factor = 0.1;
  double last = 0.0; ///< factor at the end of the run

  /// Factor for a step, counted from 0.
  double share(std::int64_t step, const RunLength& run) const;
};

/// Interval and number of checkpoints.
struct SavingOptions {
  std::int64_t every = 0; ///< steps or epochs; 0: only at the end of a run
  bool epochs = false;
  std::int64_t keep = 1; ///< maximum number of checkpoints that are kept
};

/// Initial weights of a run.
struct InitialOptions {
  enum class Scheme {
    he_normal,  ///< normal, variance 2 / fan-in (He et al. 2015); biases 0
    he_uniform, ///< uniform with the same variance; biases 0
    pytorch,    ///< weights and biases of layers uniform within 1 / sqrt(fan-in)
    network,    ///< the values in the network's file
    file,       ///< values of a folder of .npy files or of an ONNX file
  };
  Scheme scheme = Scheme::he_normal;
  std::string path; ///< path for scheme `file`
  SourceLoc where;
};

/// Reaction to a step with a non-finite number.
enum class OnNonFinite {
  stop, ///< the run ends
  skip, ///< the step changes nothing
};

/// Complete description of a run, except for its seed.
struct TrainRecipe {
  std::string name;
  Located<std::string> network; ///< path
  std::optional<std::int64_t> batch;
  Located<TrainingOptions> training;
  std::size_t data = 0;    ///< index into the study's data
  std::int64_t epochs = 0; ///< maximum; 0: limited by `steps` only
  std::int64_t steps = 0;  ///< maximum; 0: limited by `epochs` only
  RateSchedule rate;
  std::vector<std::uint64_t> seeds{1};
  Arithmetic arithmetic = Arithmetic::fp32;
  std::int64_t evaluate_every = 1; ///< epochs; 0: only at the end of a run
  SavingOptions checkpoint;
  InitialOptions initial;
  OnNonFinite on_nonfinite = OnNonFinite::stop;
  /// Canonical text of the recipe, without seeds and checkpoints: equal for equal runs.
  std::string text;
};

/// An experiment of training runs.
struct TrainStudy {
  std::string name;
  std::vector<DataOptions> data;
  std::vector<TrainRecipe> variants; ///< one, called "run", if the file has no variants
  std::vector<std::string> files;    ///< input files besides networks and data
};

/// Reads an experiment. Throws one InputError with every problem of the file and of the training
/// files that it names.
TrainStudy read_train_study(const std::string& path);
/// Builds the study from the parsed contents of `path`; errors as read_train_study().
TrainStudy train_study_of(const YamlNode& root, const std::string& path);

} // namespace monet
