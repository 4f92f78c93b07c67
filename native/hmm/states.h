// Vectors over two to four hidden states, held in a register.
//
// As arrays in memory, written one entry at a time and read back as a block, they made
// `backward` two to three times as slow in some processes: the processor cannot forward
// narrow stores to a wide load.
#pragma once
#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

template <int WIDTH> struct Register;
template <> struct Register<2> {
    typedef double type __attribute__((vector_size(16), aligned(8), may_alias));
};
template <> struct Register<4> {
    typedef double type __attribute__((vector_size(32), aligned(8), may_alias));
};

template <int S> struct States {
    static constexpr int width = S <= 2 ? 2 : 4;
    using type = typename Register<width>::type;

    static SKB_INLINE type read(const double *from) {
        if constexpr (S == width) {
            return *reinterpret_cast<const type *>(from);
        } else {
            return type{from[0], from[1], from[2], 0.0};
        }
    }
    static SKB_INLINE void write(type values, double *to) {
        if constexpr (S == width) {
            *reinterpret_cast<type *>(to) = values;
        } else {
            for (int k = 0; k < S; ++k) to[k] = values[k];
        }
    }
    static SKB_INLINE type all(double value) {
        if constexpr (width == 2) return type{value, value};
        else return type{value, value, value, value};
    }
};

// Calls f with the number of states as a compile-time constant where that pays, else 0.
template <class F> auto with_states(index s, F &&f) {
    switch (s) {
    case 2: return f(Const<2>{});
    case 3: return f(Const<3>{});
    case 4: return f(Const<4>{});
    default: return f(Const<0>{});
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
