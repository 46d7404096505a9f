// Soft minima of many problems at a time, for processors that have the instructions for them. Plain data, as in
// problem.hpp.
#pragma once
#include "dispatch.hpp"

namespace dropdtw {

template <class T>
struct SoftKernels {
  // One per family: fills problem.values and returns how many rows it computed. Null if this processor has none.
  using Solve = int (*)(const LaneProblem<T>& problem, double gamma);
  const Solve* family;
};

#define DROPDTW_DECLARE_SOFT(isa) \
  namespace isa {                 \
  void get(SoftKernels<float>&);  \
  void get(SoftKernels<double>&); \
  }
DROPDTW_DECLARE_SOFT(baseline)
#ifdef DROPDTW_X86
DROPDTW_DECLARE_SOFT(v3)
DROPDTW_DECLARE_SOFT(v4)
#endif

template <class T>
SoftKernels<T> soft_kernels() {
  SoftKernels<T> found;
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
