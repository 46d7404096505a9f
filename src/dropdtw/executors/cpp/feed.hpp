// Match costs in blocks, for kernels that need only a few rows at a time. Compiled separately: see feed.cpp.
#pragma once
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

// See Kernels::costs.
template <class T>
void feed_costs(const Feed<T>& feed, int row, int rows, int from, int to, Pitch pitch, T* out);

}  // namespace dropdtw::DROPDTW_ISA
