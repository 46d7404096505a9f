// Numbers by rank. Compiled separately: see select.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dropdtw::DROPDTW_ISA {

// See Kernels::select.
template <class T>
void select(const T* from, int rows, int n, std::ptrdiff_t pitch, std::int64_t rank, T* work, T* found);

}  // namespace dropdtw::DROPDTW_ISA
