// Kernel files are compiled once per instruction set, each into its own namespace.
//
// What a kernel file takes from headers must not become a weak symbol: the linker would
// keep one copy, perhaps the one that old processors cannot run. So: no <vector>,
// <algorithm> or iostreams; helpers are forced inline or in unnamed namespaces.
#pragma once
#include <math.h>

#include "view.h"

#ifndef SKB_LEVEL
#define SKB_LEVEL baseline
#endif

namespace skb::SKB_LEVEL {
namespace {

constexpr double INFINITE = __builtin_inf();

template <int N> struct Const {
    static constexpr int value = N;
};

// As Python's max and min: the first one where they are equal or not comparable.
inline double larger(double a, double b) { return b > a ? b : a; }
inline double smaller(double a, double b) { return b < a ? b : a; }

// Blocks of 32 bytes that need no alignment; the compiler splits them for instruction sets
// with shorter registers.
template <class T> struct Block {
    typedef T type __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
    static constexpr int size = 32 / sizeof(T);
};

template <class T> SKB_INLINE typename Block<T>::type load(const T *from) {
    return *reinterpret_cast<const typename Block<T>::type *>(from);
}

template <class T> SKB_INLINE void store(typename Block<T>::type block, T *to) {
    *reinterpret_cast<typename Block<T>::type *>(to) = block;
}

// Whether to stop, after so many elementary steps; about twice a second it is looked up.
inline bool stops(Pulse &pulse, index steps) {
    pulse.left -= steps;
    if (pulse.left > 0) return false;
    pulse.left = 200'000'000;
    return pulse.stopped();
}

}  // namespace
}  // namespace skb::SKB_LEVEL
