// The inner loops of lanes.inl compiled for AVX2; mac_engine.cpp selects them at run time.
#if defined(__x86_64__)
#define MONET_LANE_BYTES 32
#define MONET_LANES_NAME "avx2"
#define MONET_LANES_FUNCTION avx2_kernels
#include "numerics/lanes/lanes.inl"
#endif
