// Isotonic regression, which chains and permutahedra are projected with.
#pragma once
#include "../../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

// Fills out with the non-increasing isotonic regression of the values.
inline void pool_adjacent(const double *values, index n, double *out, Memory memory) {
    double *mean = take<double>(memory, n);
    index *size = take<index>(memory, n);
    index blocks = 0;
    for (index i = 0; i < n; ++i) {
        mean[blocks] = values[i];
        size[blocks] = 1;
        ++blocks;
        while (blocks > 1 && mean[blocks - 2] <= mean[blocks - 1]) {
            const index both = size[blocks - 2] + size[blocks - 1];
            mean[blocks - 2] += (mean[blocks - 1] - mean[blocks - 2]) *
                                double(size[blocks - 1]) / double(both);
            size[blocks - 2] = both;
            --blocks;
        }
    }
    index position = 0;
    for (index block = 0; block < blocks; ++block)
        for (index k = 0; k < size[block]; ++k) out[position++] = mean[block];
}

}  // namespace
}  // namespace skb::SKB_LEVEL
