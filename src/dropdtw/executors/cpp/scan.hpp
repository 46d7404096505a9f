// One pass over a strip of columns, for a table whose paths may begin in any column. Finds for each column the smallest
// cost of a path that ends there, and where that path begins. Plain data: it is passed between code compiled for
// different instruction sets.
#pragma once
#include "problem.hpp"

namespace dropdtw {

template <class T>
struct ScanProblem {
  const Table* table;  // of the family `occurrence`
  int K, N;            // N: columns of the strip

  // Match costs: a matrix (K, N) with strides in elements, or sequences of d numbers.
  const T* match = nullptr;
  std::ptrdiff_t row = 0, column = 0;
  Metric metric = Metric::none;
  const T *z = nullptr, *x = nullptr;
  int d = 0;

  const T *drop_x = nullptr, *drop_z = nullptr;
  double charges[charge_count] = {};
  std::int64_t offset = 0;  // the strip's first column; `begins` and `begin` count from the start of X

  // In: the states of the column before the strip, (states, K + 1), and the x that their paths begin with. Out: the
  // same for the last column of the strip.
  T* values = nullptr;
  std::int64_t* begins = nullptr;

  // (N,): the smallest cost of a path that ends in each column, and the x that it begins with (the last one on ties).
  T* cost = nullptr;
  std::int64_t* begin = nullptr;

  bool (*tick)(void* self) = nullptr;  // called periodically with `self`; false stops the work
  void* self = nullptr;
};

template <class T>
struct ScanKernel {
  Status (*scan)(ScanProblem<T>&);
};

}  // namespace dropdtw
