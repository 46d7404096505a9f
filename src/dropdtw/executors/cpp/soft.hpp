// Soft minima of many problems at a time, for processors that have the instructions for it. Plain data, as in
// problem.hpp.
#pragma once
#include "problem.hpp"

namespace dropdtw {

template <class T>
struct SoftKernels {
  // Of each family: fills problem.values, and returns how many rows it computed. Null where there are none.
  using Solve = int (*)(const LaneProblem<T>& problem, double gamma);
  const Solve* family;
};

}  // namespace dropdtw
