// Match costs in blocks, for kernels that need only a few rows at a time, and filtering of numbers by range. Compiled
// separately: see feed.cpp.
#pragma once
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

// See Kernels::costs.
template <class T>
void feed_costs(const Feed<T>& feed, int row, int rows, int from, int to, std::ptrdiff_t pitch, T* out);

// See Kernels::sift.
template <class T>
Sifted sift(const T* from, int rows, int n, std::ptrdiff_t pitch, T low, T high, T* kept);

}  // namespace dropdtw::DROPDTW_ISA
