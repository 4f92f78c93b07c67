// exp of non-positive numbers, in a form that vectorises: Cody and Waite's reduction and a
// Taylor polynomial, accurate to a few units in the last place. The compiler must not
// reorder sums here: adding and subtracting a huge number is what rounds.
#pragma once
#include <cstring>

#include "levels.h"

namespace skb::SKB_LEVEL {
namespace {

inline double exp_nonpositive(double x) {
    constexpr double log2e = 1.4426950408889634;
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2**52: adding it rounds
    x = x < -700.0 ? -700.0 : x;
    const double shifted = x * log2e + magic;
    const double n = shifted - magic;
    const double r = (x - n * ln2_high) - n * ln2_low;
    double p = 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    std::int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = static_cast<std::int64_t>((static_cast<std::uint64_t>(bits) + 1023) << 52);
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

}  // namespace
}  // namespace skb::SKB_LEVEL
