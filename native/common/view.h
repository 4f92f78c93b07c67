// Views of contiguous arrays: a pointer and a shape, nothing owned.
//
// Members are forced inline: as ordinary functions they would become weak symbols, of
// which the linker keeps one copy for all instruction sets.
#pragma once
#include <cstdint>
#ifdef SKB_CHECK_BOUNDS
#include <cstdlib>
#define SKB_CHECK(condition)             \
    do {                                 \
        if (!(condition)) std::abort();  \
    } while (false)
#else
#define SKB_CHECK(condition) \
    do {                     \
    } while (false)
#endif
#define SKB_INLINE __attribute__((always_inline)) inline

namespace skb {

using index = std::int64_t;

template <class T> struct Vec {
    T *data;
    index size;
    SKB_INLINE T &operator[](index i) const {
        SKB_CHECK(i >= 0 && i < size);
        return data[i];
    }
};

template <class T> struct Mat {
    T *data;
    index rows, cols;
    SKB_INLINE T *row(index i) const {
        SKB_CHECK(i >= 0 && i < rows);
        return data + i * cols;
    }
    SKB_INLINE T &operator()(index i, index j) const {
        SKB_CHECK(j >= 0 && j < cols);
        return row(i)[j];
    }
};

template <class T> struct Cube {
    T *data;
    index pages, rows, cols;
    SKB_INLINE Mat<T> page(index i) const {
        SKB_CHECK(i >= 0 && i < pages);
        return {data + i * rows * cols, rows, cols};
    }
};

// Memory to take pieces of. Handed down by value, so that what a function takes is free
// again when it returns.
struct Memory {
    char *data;
    index size;
};

// Rounded up to whole cache lines.
SKB_INLINE index lines(index bytes) { return (bytes + 63) / 64 * 64; }

// A piece of memory that starts on a cache line, if the memory does.
template <class T> SKB_INLINE T *take(Memory &memory, index n) {
    const index bytes = lines(n * index(sizeof(T)));
    SKB_CHECK(n >= 0 && bytes <= memory.size);
    char *piece = memory.data;
    memory.data += bytes;
    memory.size -= bytes;
    return reinterpret_cast<T *>(piece);
}

// Asks now and then whether the user wants to stop. `stopped` is called without the GIL.
struct Pulse {
    bool (*stopped)();
    index left;
};

}  // namespace skb
