// The Mersenne twister with the seeds, uniform and normal numbers of NumPy's RandomState.
#pragma once
#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

class Mersenne {
  public:
    explicit Mersenne(std::uint32_t seed) {
        for (int i = 0; i < N; ++i) {
            state_[i] = seed;
            seed = 1812433253u * (seed ^ (seed >> 30)) + std::uint32_t(i) + 1u;
        }
    }
    double uniform() {
        const std::uint32_t high = next() >> 5, low = next() >> 6;
        return (double(high) * 67108864.0 + double(low)) / 9007199254740992.0;
    }
    // By the polar method, two at a time.
    double normal() {
        if (has_spare_) {
            has_spare_ = false;
            return spare_;
        }
        double x, y, square;
        do {
            x = 2.0 * uniform() - 1.0;
            y = 2.0 * uniform() - 1.0;
            square = x * x + y * y;
        } while (square >= 1.0 || square == 0.0);
        const double factor = sqrt(-2.0 * log(square) / square);
        spare_ = factor * x;
        has_spare_ = true;
        return factor * y;
    }

  private:
    static constexpr int N = 624, M = 397;
    std::uint32_t state_[N];
    int at_ = N;
    bool has_spare_ = false;
    double spare_ = 0.0;

    static std::uint32_t twist(std::uint32_t upper, std::uint32_t lower) {
        const std::uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
        return (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
    }
    std::uint32_t next() {
        if (at_ == N) {
            for (int i = 0; i < N; ++i)
                state_[i] = state_[(i + M) % N] ^ twist(state_[i], state_[(i + 1) % N]);
            at_ = 0;
        }
        std::uint32_t y = state_[at_++];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        return y ^ (y >> 18);
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
