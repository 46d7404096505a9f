// The list of every family's kernels for one instruction set and one precision. family.cpp compiles the kernels
// themselves. With DROPDTW_ANY_ONLY, there are none, and those in any.cpp serve every table.
#include "families.hpp"
#include "feed.hpp"
#include "select.hpp"
#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

#ifdef DROPDTW_ANY_ONLY
template <class T>
const Kernel<T>* const table = nullptr;
#else
template <class T>
const Kernel<T> table[] = {
#define DROPDTW_KERNEL(number, name) {&solve<dropdtw::name, T>, &solve_lanes<dropdtw::name, T>},
    DROPDTW_FAMILIES(DROPDTW_KERNEL)
#undef DROPDTW_KERNEL
};
#endif

void get(Kernels<DROPDTW_REAL>& found) {
  using T = DROPDTW_REAL;
  found = {table<T>, {&solve_any<T>, &solve_any_lanes<T>}, Register<T>::W, &feed_costs<T>, &select<T>};
}

}  // namespace dropdtw::DROPDTW_ISA
