// The extension module: one submodule per topic.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "arrays.h"

namespace skb {

const Level *level = &baseline::all;

namespace {

// What this processor can run, the best one last.
std::vector<const Level *> levels() {
    std::vector<const Level *> found{&baseline::all};
#ifdef SKB_HAS_V3
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2"))
        found.push_back(&v3::all);
#endif
    return found;
}

std::vector<std::string> level_names() {
    std::vector<std::string> names;
    for (const Level *one : levels()) names.push_back(one->name);
    return names;
}

void set_level(const std::string &name) {
    std::string known;
    for (const Level *one : levels()) {
        if (one->name == name) {
            level = one;
            return;
        }
        known += (known.empty() ? "'" : ", '") + std::string(one->name) + "'";
    }
    throw std::invalid_argument("SKBOUNDS_CPU_LEVEL must be one of " + known +
                                " on this processor; got '" + name + "'.");
}

}  // namespace
}  // namespace skb

NB_MODULE(_core, m) {
    m.doc() = "Compiled loops.";
    const auto found = skb::levels();
    skb::level = found.back();
    if (const char *wanted = std::getenv("SKBOUNDS_CPU_LEVEL"); wanted && *wanted)
        skb::set_level(wanted);
    m.def("levels", skb::level_names,
          "Instruction sets that this build and this processor have.");
    m.def("level", []() { return std::string(skb::level->name); },
          "The instruction set in use.");
    m.def("set_level", skb::set_level, nb::arg("name"),
          "Take kernels of another instruction set; for tests.");
    m.attr("compiler") = SKB_COMPILER;
    m.attr("sanitized") = bool(SKB_SANITIZED);
    nb::module_ topic = m.def_submodule("hmm");
    skb::bind_hmm(topic);
    topic = m.def_submodule("fenchel_young");
    skb::bind_fenchel_young(topic);
    topic = m.def_submodule("pac_bayes");
    skb::bind_pac_bayes(topic);
    topic = m.def_submodule("smp");
    skb::bind_smp(topic);
    topic = m.def_submodule("kernel_boost");
    skb::bind_kernel_boost(topic);
    topic = m.def_submodule("sequential");
    skb::bind_sequential(topic);
}
