#define MONET_LANE_BYTES 16
#define MONET_LANES_NAME "portable"
#define MONET_LANES_FUNCTION portable_kernels
#include "numerics/lanes/lanes.inl"
