// The inner loops of lanes.inl compiled for any machine; mac_engine.cpp uses them as the fallback.
#define MONET_LANE_BYTES 16
#define MONET_LANES_NAME "portable"
#define MONET_LANES_FUNCTION portable_kernels
#include "numerics/lanes/lanes.inl"
