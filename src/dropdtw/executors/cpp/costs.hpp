// Match costs of vectors of many features, as their kernel takes them. Plain data, as in problem.hpp.
#pragma once
#include <cstddef>

#include "problem.hpp"

namespace dropdtw {

template <class T>
struct CostsProblem {
  Metric metric;  // for cosine, z are unit vectors
  int K, N, d;
  const T *z, *x;  // (K, d), (N, d)
  const T* scale;  // for cosine, (N,): what makes x unit vectors; null: they are
  T* out;          // (K, N)
};

template <class T>
struct CostsKernel {
  int width;  // columns that are computed together
  // Computes the columns [from, to); `panel` is scratch for (d + 1) · width numbers.
  void (*columns)(const CostsProblem<T>& problem, int from, int to, T* panel);
  // The Euclidean length of each of n rows of d numbers.
  void (*lengths)(const T* rows, std::size_t n, int d, T* out);
};

}  // namespace dropdtw
