// The inner loops of lanes.inl compiled for AVX-512; mac_engine.cpp selects them at run time.
#if defined(__x86_64__)
#define MONET_LANE_BYTES 64
#define MONET_LANES_NAME "avx512"
#define MONET_LANES_FUNCTION avx512_kernels
#include "numerics/lanes/lanes.inl"
#endif
