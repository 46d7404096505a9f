// Soft minima of many problems at a time, for processors that have the instructions for them. Plain data, as in
// problem.hpp.
#pragma once
#include "problem.hpp"

namespace dropdtw {

template <class T>
struct SoftKernels {
  // One per family: fills problem.values and returns how many rows it computed. Null if this processor has none.
  using Solve = int (*)(const LaneProblem<T>& problem, double gamma);
  const Solve* family;
};

}  // namespace dropdtw
