// The kernel that reads any table at run time, for one instruction set and one precision.
#include "families.hpp"
#include "solve.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
Status solve_any(Problem<T>& problem) {
  return Solver<Any, T>(problem).solve();
}

template Status solve_any(Problem<DROPDTW_REAL>&);

}  // namespace dropdtw::DROPDTW_ISA
