// Sums in eight lanes whatever the instruction set, so that all levels give the same bits.
#pragma once
#include "levels.h"

namespace skb::SKB_LEVEL {
namespace {

template <class T> double squared_norm(const T *val, index start, index stop) {
    double lanes[8] = {};
    index j = start;
    for (; j + 8 <= stop; j += 8)
        for (int k = 0; k < 8; ++k) lanes[k] += double(val[j + k]) * double(val[j + k]);
    for (int k = 0; j < stop; ++j, ++k) lanes[k] += double(val[j]) * double(val[j]);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace
}  // namespace skb::SKB_LEVEL
