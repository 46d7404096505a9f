// Every family's kernels for one instruction set; the build compiles this file once for each (see CMakeLists.txt).
#include "lanes.hpp"
#include "solve.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
Status solve(Job<T>& job) {
  return Solver<Tab, T>(job).solve();
}

template <class Tab, class T>
int lanes(const LaneJob<T>& job) {
  return LaneSweep<Tab, T>(job).run();
}

template <class T>
const Kernel<T> table[] = {
#define DROPDTW_KERNEL(number, name) {&solve<dropdtw::name, T>, &lanes<dropdtw::name, T>},
    DROPDTW_FAMILIES(DROPDTW_KERNEL)
#undef DROPDTW_KERNEL
};

const int states[] = {
#define DROPDTW_STATES(number, name) dropdtw::name::states,
    DROPDTW_FAMILIES(DROPDTW_STATES)
#undef DROPDTW_STATES
};

#define DROPDTW_TEXT_(x) #x
#define DROPDTW_TEXT(x) DROPDTW_TEXT_(x)

Kernels<float> single_precision() { return {table<float>, states, Lanes<float>::W, DROPDTW_TEXT(DROPDTW_ISA)}; }
Kernels<double> double_precision() { return {table<double>, states, Lanes<double>::W, DROPDTW_TEXT(DROPDTW_ISA)}; }

}  // namespace dropdtw::DROPDTW_ISA
