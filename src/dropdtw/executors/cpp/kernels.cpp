// The list of every family's kernels for one instruction set and one precision. family.cpp compiles the kernels
// themselves. With DROPDTW_ANY_ONLY, there are none, and the kernel for graphs serves every table.
#include "families.hpp"
#include "feed.hpp"
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

const int states[] = {
#define DROPDTW_STATES(number, name) dropdtw::name::states,
    DROPDTW_FAMILIES(DROPDTW_STATES)
#undef DROPDTW_STATES
};

template <class Tab>
constexpr bool all_match() {
  for (const Edge& e : Tab::edges)
    if (e.cost != Cost::match) return false;
  return !Tab::has_border;
}

const bool all_matches[] = {
#define DROPDTW_ALL_MATCH(number, name) all_match<dropdtw::name>(),
    DROPDTW_FAMILIES(DROPDTW_ALL_MATCH)
#undef DROPDTW_ALL_MATCH
};

void get(Kernels<DROPDTW_REAL>& found) {
  using T = DROPDTW_REAL;
  found = {table<T>, states, all_matches, Register<T>::W, &feed_costs<T>, &sift<T>};
}

}  // namespace dropdtw::DROPDTW_ISA
