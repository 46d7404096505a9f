// Selects the kernels for the best instruction set that this processor supports.
#pragma once
#include <cstdlib>
#include <string>

#include "problem.hpp"

namespace dropdtw {

// The best instruction set that this processor supports; the environment variable DROPDTW_ISA can select an older one.
inline const std::string& instruction_set() {
  static const std::string chosen = [] {
    [[maybe_unused]] const char* wanted = std::getenv("DROPDTW_ISA");
#ifdef DROPDTW_X86
    __builtin_cpu_init();
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (v4 && (wanted == nullptr || std::string(wanted) == "v4")) return std::string("v4");
    if (v3 && (wanted == nullptr || std::string(wanted) != "baseline")) return std::string("v3");
#endif
    return std::string("baseline");
  }();
  return chosen;
}

#define DROPDTW_IN(isa, Kind) \
  namespace isa {             \
  void get(Kind<float>&);     \
  void get(Kind<double>&);    \
  }

// Declares the kernels of one kind for every instruction set, and defines name<T>(), which returns the best of them.
#ifdef DROPDTW_X86
#define DROPDTW_CHOOSE(Kind, name)      \
  DROPDTW_IN(baseline, Kind)            \
  DROPDTW_IN(v3, Kind)                  \
  DROPDTW_IN(v4, Kind)                  \
  template <class T>                    \
  Kind<T> name() {                      \
    Kind<T> found;                      \
    if (instruction_set() == "v4")      \
      v4::get(found);                   \
    else if (instruction_set() == "v3") \
      v3::get(found);                   \
    else                                \
      baseline::get(found);             \
    return found;                       \
  }
#else
#define DROPDTW_CHOOSE(Kind, name) \
  DROPDTW_IN(baseline, Kind)       \
  template <class T>               \
  Kind<T> name() {                 \
    Kind<T> found;                 \
    baseline::get(found);          \
    return found;                  \
  }
#endif

DROPDTW_CHOOSE(Kernels, kernels)

}  // namespace dropdtw
