// The instruction set that kernels are taken from, chosen once at import.
#pragma once
#include "../fenchel_young/stream.h"
#include "../hmm/hmm.h"
#include "../kernel_boost/kernel_boost.h"
#include "../pac_bayes/smo.h"
#include "../sequential/sequential.h"
#include "../smp/smp.h"

namespace skb {

struct Level {
    const char *name;
    const HmmKernels *hmm;
    const RowKernels *rows;
    const StreamKernels<float> *stream_float;
    const StreamKernels<double> *stream_double;
    const SmoKernels *smo;
    const SmpKernels *smp;
    const KernelBoostKernels *kernel_boost;
    const SequentialKernels *sequential;
};

#define SKB_DECLARE_LEVEL(level)                                               \
    namespace level {                                                          \
    extern const HmmKernels hmm_kernels;                                       \
    extern const RowKernels row_kernels;                                       \
    extern const StreamKernels<float> stream_kernels_float;                    \
    extern const StreamKernels<double> stream_kernels_double;                  \
    extern const SmoKernels smo_kernels;                                       \
    extern const SmpKernels smp_kernels;                                       \
    extern const KernelBoostKernels kernel_boost_kernels;                      \
    extern const SequentialKernels sequential_kernels;                         \
    inline constexpr Level all{#level,                 &hmm_kernels,           \
                               &row_kernels,           &stream_kernels_float,  \
                               &stream_kernels_double, &smo_kernels,           \
                               &smp_kernels,           &kernel_boost_kernels,  \
                               &sequential_kernels};                           \
    }

SKB_DECLARE_LEVEL(baseline)
#ifdef SKB_HAS_V3
SKB_DECLARE_LEVEL(v3)
#endif

// The level in use.
extern const Level *level;

}  // namespace skb
