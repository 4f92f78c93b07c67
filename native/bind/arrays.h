// Arrays on their way from Python: checked here and nowhere below.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "dispatch.h"

namespace nb = nanobind;

namespace skb {

// Without conversion: another type, order, stride or number of dimensions is a TypeError,
// and so is a read-only array where one is to be written.
template <class T> using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline constexpr auto array(const char *name) { return nb::arg(name).noconvert(); }

inline void require(bool good, const char *what) {
    if (!good) throw std::invalid_argument(what);
}

template <class A> auto *aligned(const A &array) {
    auto *data = array.data();
    require(reinterpret_cast<std::uintptr_t>(data) % alignof(decltype(*data)) == 0,
            "an array is not aligned in memory");
    return data;
}

template <class T> Vec<T> view(const Array1<T> &a) { return {aligned(a), index(a.shape(0))}; }
template <class T> Mat<T> view(const Array2<T> &a) {
    return {aligned(a), index(a.shape(0)), index(a.shape(1))};
}
template <class T> Cube<T> view(const Array3<T> &a) {
    return {aligned(a), index(a.shape(0)), index(a.shape(1)), index(a.shape(2))};
}

template <class A, class B> void same_shape(const A &a, const B &b, const char *what) {
    bool same = a.ndim() == b.ndim();
    for (std::size_t k = 0; same && k < a.ndim(); ++k) same = a.shape(k) == b.shape(k);
    require(same, what);
}

template <class A> void has_shape(const A &a, index rows, index cols, const char *what) {
    require(index(a.shape(0)) == rows && index(a.shape(1)) == cols, what);
}

template <class A> void has_length(const A &a, index length, const char *what) {
    require(index(a.shape(0)) == length, what);
}

// Memory for one call, from a cache line on.
class Scratch {
  public:
    explicit Scratch(index bytes) : bytes_(lines(bytes) + 64) {
        memory_.reset(static_cast<char *>(::operator new(std::size_t(bytes_), LINE)));
    }
    Memory memory() const { return {memory_.get(), bytes_}; }

  private:
    struct Free {
        void operator()(char *memory) const { ::operator delete(memory, LINE); }
    };
    static constexpr std::align_val_t LINE{64};
    index bytes_;
    std::unique_ptr<char, Free> memory_;
};

// Bytes for so many pieces of so many entries of 8 bytes.
inline index pieces(index count, index entries) {
    return count * lines(8 * entries);
}

// Calls f without the GIL; raises KeyboardInterrupt if the user wanted to stop.
template <class F> auto run(F &&f) {
    Pulse pulse{[]() {
                    nb::gil_scoped_acquire gil;
                    return PyErr_CheckSignals() != 0;
                },
                200'000'000};
    if constexpr (std::is_void_v<decltype(f(pulse))>) {
        {
            nb::gil_scoped_release nogil;
            f(pulse);
        }
        if (PyErr_Occurred()) throw nb::python_error();
    } else {
        decltype(f(pulse)) result;
        {
            nb::gil_scoped_release nogil;
            result = f(pulse);
        }
        if (PyErr_Occurred()) throw nb::python_error();
        return result;
    }
}

void bind_hmm(nb::module_ &);
void bind_fenchel_young(nb::module_ &);
void bind_pac_bayes(nb::module_ &);
void bind_smp(nb::module_ &);
void bind_kernel_boost(nb::module_ &);
void bind_sequential(nb::module_ &);

}  // namespace skb
