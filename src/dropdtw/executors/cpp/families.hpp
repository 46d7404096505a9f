// The entry points of the kernels: a family's unrolled ones, and those that read any table at run time.
#pragma once
#include "problem.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
Status solve(Problem<T>& problem);
template <class T>
Status solve_any(Problem<T>& problem);
template <class T>
int solve_any_lanes(const LaneProblem<T>& problem);
template <class Tab, class T>
int solve_lanes(const LaneProblem<T>& problem);

}  // namespace dropdtw::DROPDTW_ISA
