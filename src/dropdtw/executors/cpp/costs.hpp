// The input of the kernel for match costs of vectors with many features. Plain data, as in problem.hpp.
#pragma once
#include <cstddef>

#include "problem.hpp"

namespace dropdtw {

template <class T>
struct CostsProblem {
  Metric metric;  // for cosine, z are unit vectors
  int K, N, d;
  const T *z, *x;  // (K, d), (N, d)
  const T* scale;  // for cosine, (N,): factors that normalize x; null if x are unit vectors
  T* out;          // (K, N)
};

template <class T>
struct CostsKernel {
  int width;  // the number of columns computed together
  // Computes the columns [from, to); `panel` is scratch for (d + 1) · width numbers.
  void (*columns)(const CostsProblem<T>& problem, int from, int to, T* panel);
  // The Euclidean length of each of n rows of d numbers.
  void (*lengths)(const T* rows, std::size_t n, int d, T* out);
};

}  // namespace dropdtw
