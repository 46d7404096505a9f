// Rows of scores over a vocabulary, around the alignments of CTC. Compiled separately: see emissions.cpp.
#pragma once

namespace dropdtw {

template <class T>
struct EmissionKernel {
  // log Σ exp of n scores; NaN if one of them is NaN or +∞, or if all are −∞.
  T (*total)(const T* scores, int n);
  // out = share · exp(score − total), where no score exceeds the total.
  void (*softmax)(const T* scores, int n, T total, T share, T* out);
  // out = −score. Returns whether none of them is NaN or +∞.
  bool (*negate)(const T* scores, int n, T* out);
};

}  // namespace dropdtw
