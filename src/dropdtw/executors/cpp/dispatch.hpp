// Selects the kernels for the best instruction set that was compiled and that this processor supports.
#pragma once
#include <cstdlib>
#include <string>

#include "level.hpp"
#include "problem.hpp"

namespace dropdtw {

// Expands its argument if the level was compiled.
#ifdef DROPDTW_HAS_v3
#define DROPDTW_V3(...) __VA_ARGS__
#else
#define DROPDTW_V3(...)
#endif
#ifdef DROPDTW_HAS_v4
#define DROPDTW_V4(...) __VA_ARGS__
#else
#define DROPDTW_V4(...)
#endif

// The environment variable DROPDTW_ISA can select an older instruction set.
inline const std::string& instruction_set() {
  static const std::string chosen = [] {
    [[maybe_unused]] const char* const value = std::getenv("DROPDTW_ISA");
    [[maybe_unused]] const std::string wanted = value == nullptr ? "" : value;
    DROPDTW_V4(if (runs_v4() && (wanted.empty() || wanted == "v4")) return std::string("v4");)
    DROPDTW_V3(if (runs_v3() && wanted != "baseline") return std::string("v3");)
    return std::string("baseline");
  }();
  return chosen;
}

#define DROPDTW_IN(isa, Kind) \
  namespace isa {             \
  void get(Kind<float>&);     \
  void get(Kind<double>&);    \
  }

// Declares the kernels of one kind for every level, and defines name<T>(), which returns the best of them.
#define DROPDTW_CHOOSE(Kind, name)                                           \
  DROPDTW_IN(baseline, Kind)                                                 \
  DROPDTW_V3(DROPDTW_IN(v3, Kind))                                           \
  DROPDTW_V4(DROPDTW_IN(v4, Kind))                                           \
  template <class T>                                                         \
  Kind<T> name() {                                                           \
    Kind<T> found;                                                           \
    DROPDTW_V4(if (instruction_set() == "v4") return v4::get(found), found;) \
    DROPDTW_V3(if (instruction_set() == "v3") return v3::get(found), found;) \
    baseline::get(found);                                                    \
    return found;                                                            \
  }

DROPDTW_CHOOSE(Kernels, kernels)

}  // namespace dropdtw
