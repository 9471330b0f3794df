// Steps of whole networks against what PyTorch recorded in tests/fixtures/networks/.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace monet::test {

/// Names of all networks that were recorded, sorted.
std::vector<std::string> recorded_networks();

struct Training {
  std::string network;
  std::string optimizer;
};
std::string name_of(const Training& training);
std::ostream& operator<<(std::ostream& stream, const Training& training);

/// All recorded trainings that take seconds (resnet18_cifar, mobilenet_v2, vit_tiny), or all
/// others.
std::vector<Training> recorded_trainings(bool slow);

/// Ways to make the step of which none may change a number.
enum class Variant { plain, pytorch_eager, fused_attention, folded };
std::string_view name_of(Variant variant);

/// The loss, every gradient and the running statistics of one step.
void check_gradients(const std::string& network, Variant variant = Variant::plain);

/// Losses of three steps, and after them every weight, optimiser state and running statistic.
/// `fused`: one operator updates a parameter; otherwise a chain of element-wise ones does.
void check_training(const Training& training, bool fused = true);

} // namespace monet::test
