// Rows of scores over a vocabulary, around the alignments of CTC. Compiled separately: see emissions.cpp.
#pragma once
#include <cstddef>

namespace dropdtw {

template <class T>
struct EmissionKernel {
  // log Σ exp of n scores; NaN if one of them is NaN or +∞, or if all are −∞. `ahead`: how far away the scores are that
  // are read next. They are fetched into the cache: rows are too far apart for the processor to predict them.
  T (*total)(const T* scores, int n, std::ptrdiff_t ahead);
  // out = share · exp(score − total), where no score exceeds the total.
  void (*softmax)(const T* scores, int n, std::ptrdiff_t ahead, T total, T share, T* out);
  // out = −score. Returns whether none of them is NaN or +∞.
  bool (*negate)(const T* scores, int n, T* out);
};

}  // namespace dropdtw
