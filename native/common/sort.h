// Stable sorting by merging, of positions by their keys.
#pragma once
#include "levels.h"

namespace skb::SKB_LEVEL {
namespace {

// Fills order with the positions of the keys, the least first; spare has n entries too.
inline void argsort(const double *key, index n, index *order, index *spare) {
    constexpr index run = 8;
    for (index first = 0; first < n; first += run) {
        const index stop = first + run < n ? first + run : n;
        for (index i = first; i < stop; ++i) {
            index j = i;
            for (; j > first && key[order[j - 1]] > key[i]; --j) order[j] = order[j - 1];
            order[j] = i;
        }
    }
    index *from = order, *to = spare;
    for (index width = run; width < n; width *= 2) {
        for (index first = 0; first < n; first += 2 * width) {
            const index middle = first + width < n ? first + width : n;
            const index stop = first + 2 * width < n ? first + 2 * width : n;
            index a = first, b = middle;
            for (index i = first; i < stop; ++i)
                to[i] = a < middle && (b >= stop || !(key[from[b]] < key[from[a]]))
                            ? from[a++]
                            : from[b++];
        }
        index *const swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        for (index i = 0; i < n; ++i) order[i] = from[i];
}

}  // namespace
}  // namespace skb::SKB_LEVEL
