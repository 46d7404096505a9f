// Selects the kernels for the best instruction set that this processor supports.
#pragma once
#include <cstdlib>
#include <string>

#include "problem.hpp"

namespace dropdtw {

#define DROPDTW_DECLARE(isa)  \
  namespace isa {             \
  void get(Kernels<float>&);  \
  void get(Kernels<double>&); \
  }
DROPDTW_DECLARE(baseline)
#ifdef DROPDTW_X86
DROPDTW_DECLARE(v3)
DROPDTW_DECLARE(v4)
#endif

// The best instruction set that this processor supports; the environment variable DROPDTW_ISA can select an older one.
inline const std::string& instruction_set() {
  static const std::string chosen = [] {
    const char* wanted = std::getenv("DROPDTW_ISA");
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

template <class T>
Kernels<T> kernels() {
  Kernels<T> found;
#ifdef DROPDTW_X86
  if (instruction_set() == "v4")
    v4::get(found);
  else if (instruction_set() == "v3")
    v3::get(found);
  else
#endif
    baseline::get(found);
  return found;
}

}  // namespace dropdtw
