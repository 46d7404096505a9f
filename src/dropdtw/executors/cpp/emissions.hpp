// From the scores of CTC to the costs of tokens and blanks, and from their derivatives back to the gradient.
// Compiled separately: see emissions.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dropdtw {

inline constexpr int frames_at_once = 16;  // the costs of a token in so many frames fill one or two cache lines

// Some frames of an item, each with the scores of a vocabulary, `step` numbers apart, and the K tokens of its text.
template <class T>
struct Frames {
  const T* scores;
  std::ptrdiff_t step;
  int count, vocabulary, K, blank;
  const std::int64_t* text;
};

// Costs of these frames, or derivatives: those of token i are `row` numbers after those of token i − 1. And log Σ exp
// of each frame, if its scores are logits; null if they are log-probabilities.
template <class T>
struct Emissions {
  T *tokens, *blanks, *total;
  std::ptrdiff_t row;
};

template <class T>
struct EmissionKernel {
  // Returns whether all costs are valid; NaN and −∞ are not.
  bool (*costs)(const Frames<T>& frames, const Emissions<T>& out);
  // Writes the gradient, whose frames are `step` numbers apart: `times` the derivatives. `some`: room for K ·
  // frames_at_once numbers.
  void (*gradient)(const Frames<T>& frames, const Emissions<const T>& derivatives, T times, T* some, T* out,
                   std::ptrdiff_t step);
  // Whether none of n scores is NaN or +∞.
  bool (*sane)(const T* scores, int n);
};

}  // namespace dropdtw
