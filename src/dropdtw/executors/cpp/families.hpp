// The entry points of a family's unrolled kernels.
#pragma once
#include "problem.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
Status solve(Problem<T>& problem);
template <class Tab, class T>
int solve_lanes(const LaneProblem<T>& problem);

}  // namespace dropdtw::DROPDTW_ISA
