// What is asked of all pairs of two lists of sequences: the sequences, and what their pairs pay.
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "band.hpp"
#include "prices.hpp"
#include "problem.hpp"

namespace dropdtw {

// Sequences one after the other, (total, d); `ends` says where each ends.
template <class T>
struct Sequences {
  const T* data;
  const std::int64_t* ends;
  const T* scale;  // (total,): what makes elements of length 1, for cosine; null: they are
  int count, d;

  std::int64_t begin(int i) const { return i == 0 ? 0 : ends[i - 1]; }
  int length(int i) const { return int(ends[i] - begin(i)); }
  const T* of(int i) const { return data + begin(i) * d; }
  const T* scale_of(int i) const { return scale == nullptr ? nullptr : scale + begin(i); }

  std::vector<int> by_length() const {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) < length(b); });
    return order;
  }
};

// What pairs pay instead of their match cost: `low` up to the threshold (or below it, where it is not `inclusive`).
template <class T>
struct Step {
  T low, high;
  bool inclusive;
  Price<T> threshold;
};

// The request: the sequences, and what their pairs pay.
template <class T>
struct Pairs {
  int family;
  unsigned mask;
  bool transposed;  // the family has the caller's Z and X exchanged; here, everything is as the family has it
  Reducer reducer;
  double gamma;
  Metric metric;
  Sequences<T> zs, xs;
  Price<T> drop_x, drop_z;
  std::optional<Step<T>> step;
  double charges[charge_count];
  bool suggests_x, suggests_z;  // whether the opening cost is read off the match costs, of each pair
  bool greedy;                  // what has no match as cheap as its drop is dropped, and the rest must be matched
  std::optional<Window> window;
  double limit;  // what is sure to cost more may be ∞
  bool once;     // xs are the zs, and each pair is computed once
  double* out;   // (n, m)

  bool reads_costs() const {
    return drop_x.is_rule() || drop_z.is_rule() || (step && step->threshold.is_rule()) || suggests_x || suggests_z;
  }
};

}  // namespace dropdtw
