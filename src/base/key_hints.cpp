// Hints for unknown keys of YAML files (shared/hints.hpp): the field's synonyms, longer keys that
// begin so, and near names. YamlMap uses them.
#include "base/shared/hints.hpp"
#include "base/shared/text.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// Key of other tools, and the name that MONET's files have for it.
struct Synonym {
  std::string_view other;
  std::string_view ours;
};

constexpr std::array kSynonyms{Synonym{"lr", "learning_rate"},
                               Synonym{"wd", "weight_decay"},
                               Synonym{"eps", "epsilon"},
                               Synonym{"criterion", "loss"},
                               Synonym{"objective", "loss"},
                               Synonym{"bs", "batch"},
                               Synonym{"batch_size", "batch"},
                               Synonym{"batchsize", "batch"},
                               Synonym{"mbs", "micro_batch"},
                               Synonym{"micro_batch_size", "micro_batch"},
                               Synonym{"gbs", "global_batch"},
                               Synonym{"global_batch_size", "global_batch"},
                               Synonym{"dtype", "precision"},
                               Synonym{"data_type", "precision"},
                               Synonym{"grad_clip", "clip_global_norm"},
                               Synonym{"clip_grad_norm", "clip_global_norm"},
                               Synonym{"max_norm", "clip_global_norm"},
                               Synonym{"model", "network"},
                               Synonym{"model", "workload"},
                               Synonym{"onnx", "network"},
                               Synonym{"net", "network"},
                               Synonym{"accelerator", "hardware"},
                               Synonym{"arch", "hardware"},
                               Synonym{"architecture", "hardware"},
                               Synonym{"chip", "hardware"},
                               Synonym{"hw", "hardware"},
                               Synonym{"soc", "hardware"},
                               Synonym{"clock", "frequency_hz"},
                               Synonym{"clock_hz", "frequency_hz"},
                               Synonym{"clock_frequency", "frequency_hz"},
                               Synonym{"node", "technology_nm"},
                               Synonym{"capacity", "size"},
                               Synonym{"bits", "size"},
                               Synonym{"bw", "bandwidth"},
                               Synonym{"read_energy", "r_cost"},
                               Synonym{"write_energy", "w_cost"},
                               Synonym{"read_cost", "r_cost"},
                               Synonym{"write_cost", "w_cost"},
                               Synonym{"links", "core_connectivity"},
                               Synonym{"gpus", "devices"},
                               Synonym{"num_gpus", "devices"},
                               Synonym{"world_size", "devices"},
                               Synonym{"ranks", "devices"},
                               Synonym{"dp", "data"},
                               Synonym{"tp", "tensor"},
                               Synonym{"pp", "pipeline"},
                               Synonym{"sp", "sequence"},
                               Synonym{"cp", "context"},
                               Synonym{"ep", "expert"},
                               Synonym{"zero_stage", "zero"},
                               Synonym{"vpp", "virtual"},
                               Synonym{"num_layers", "layers"},
                               Synonym{"n_layer", "layers"},
                               Synonym{"n_layers", "layers"},
                               Synonym{"d_model", "hidden"},
                               Synonym{"n_embd", "hidden"},
                               Synonym{"hidden_size", "hidden"},
                               Synonym{"n_head", "heads"},
                               Synonym{"n_heads", "heads"},
                               Synonym{"num_heads", "heads"},
                               Synonym{"num_attention_heads", "heads"},
                               Synonym{"seq_len", "sequence"},
                               Synonym{"seq_length", "sequence"},
                               Synonym{"sequence_length", "sequence"},
                               Synonym{"vocab", "vocabulary"},
                               Synonym{"vocab_size", "vocabulary"}};

std::string meant(std::string_view key) {
  return "did you mean '" + std::string(key) + "'?";
}

/// The only known key that begins with `key` and '_'; null unless there is exactly one.
const std::string* continued(std::string_view key, std::span<const std::string> known) {
  const std::string beginning = std::string(key) + '_';
  const auto begins = [&](const std::string& name) { return name.starts_with(beginning); };
  const auto found = std::ranges::find_if(known, begins);
  return std::ranges::count_if(known, begins) == 1 ? &*found : nullptr;
}

} // namespace

std::string key_hint(std::string_view key, std::span<const std::string> known) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.other == key && std::ranges::find(known, synonym.ours) != known.end())
      return meant(synonym.ours);
  }
  if (std::string near = nearest_name_hint(key, known); !near.empty())
    return near;
  const std::string* longer = continued(key, known);
  return longer == nullptr ? "" : meant(*longer);
}

} // namespace monet
