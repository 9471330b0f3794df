#include <monet/core_cost/layers.hpp>
#include <monet/hardware/read_hardware.hpp>
#include <monet/version.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  const monet::Core core = monet::read_core(argv[1]);
  for (const monet::Layer& layer : monet::read_layers(argv[2])) {
    const monet::CoreCost cost = monet::core_cost(layer.problem, core);
    std::printf("%s: %lld cycles by MONET %s\n", layer.name.c_str(),
                static_cast<long long>(cost.latency.value), MONET_VERSION);
  }
}
