// The unrolled kernels of some families, for one instruction set and one precision. The build compiles this file once
// for each part (see CMakeLists.txt).
#include "families.hpp"
#include "lanes.hpp"
#include "solve.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
Status solve(Problem<T>& problem) {
  return Solver<Tab, T>(problem).solve();
}

template <class Tab, class T>
int solve_lanes(const LaneProblem<T>& problem) {
  return LaneSolver<Tab, T>(problem).solve();
}

#define DROPDTW_INSTANTIATE(number, name)                       \
  template Status solve<dropdtw::name>(Problem<DROPDTW_REAL>&); \
  template int solve_lanes<dropdtw::name>(const LaneProblem<DROPDTW_REAL>&);
DROPDTW_PART(DROPDTW_INSTANTIATE)

}  // namespace dropdtw::DROPDTW_ISA
