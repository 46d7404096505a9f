// Chooses the kernels of the best instruction set that this processor has.
#pragma once
#include <cstdlib>
#include <string>

#include "problem.hpp"

namespace dropdtw {

#define DROPDTW_DECLARE(isa)          \
  namespace isa {                     \
  Kernels<float> single_precision();  \
  Kernels<double> double_precision(); \
  }
DROPDTW_DECLARE(baseline)
#ifdef DROPDTW_X86
DROPDTW_DECLARE(v3)
DROPDTW_DECLARE(v4)
#endif

// The best instruction set of this processor, or the one that DROPDTW_ISA in the environment names.
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
  const auto pick = [](auto single, auto twice) {
    if constexpr (sizeof(T) == 4)
      return single();
    else
      return twice();
  };
#ifdef DROPDTW_X86
  if (instruction_set() == "v4") return pick(v4::single_precision, v4::double_precision);
  if (instruction_set() == "v3") return pick(v3::single_precision, v3::double_precision);
#endif
  return pick(baseline::single_precision, baseline::double_precision);
}

}  // namespace dropdtw
