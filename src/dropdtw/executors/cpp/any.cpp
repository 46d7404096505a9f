// The kernels that read any table at run time, for one instruction set and one precision.
#include "any_lanes.hpp"
#include "families.hpp"
#include "solve.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
Status solve_any(Problem<T>& problem) {
  return Solver<Any, T>(problem).solve();
}

template <class T>
int solve_any_lanes(const LaneProblem<T>& problem) {
  return AnyLanes<T>(problem).solve();
}

template Status solve_any(Problem<DROPDTW_REAL>&);
template int solve_any_lanes(const LaneProblem<DROPDTW_REAL>&);

}  // namespace dropdtw::DROPDTW_ISA
