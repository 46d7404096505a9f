// A request for all pairs of two lists of sequences: the sequences, and what their pairs pay.
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "band.hpp"
#include "prices.hpp"
#include "problem.hpp"

namespace dropdtw {

// Concatenated sequences, (total, d); `ends` holds the end of each one.
template <class T>
struct Sequences {
  const T* data;
  const std::int64_t* ends;
  const T* scale;  // (total,), for cosine: factors that normalize the elements; null if they are unit vectors
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

// Replaces match costs: pairs pay `low` up to the threshold (below it, unless `inclusive`), and otherwise `high`.
template <class T>
struct Binary {
  T low, high;
  bool inclusive;
  Price<T> threshold;
};

// The request, with Z and X in the roles that they have in the table.
template <class T>
struct Pairs {
  const Table* table;
  bool transposed;  // whether the table has the caller's Z and X swapped
  Reducer reducer;
  double gamma;
  Metric metric;
  Sequences<T> zs, xs;
  Price<T> drop_x, drop_z;
  std::optional<Binary<T>> binary;
  double charges[charge_count];
  bool suggests_x, suggests_z;  // whether the opening cost is estimated from the match costs of each pair
  bool greedy;                  // drop each element whose matches all cost more than dropping it; the others must match
  std::optional<Window> window;
  double limit;  // a pair that is certain to cost more may get ∞
  bool once;     // xs and zs are the same list, and each pair is computed once
  double* out;   // (n, m)

  // Whether the pairs of one list need one percentile each, which is then the same in both orders.
  bool shares_percentiles() const {
    const bool x = drop_x.source == Source::percentile, z = drop_z.source == Source::percentile;
    return !once && zs.data == xs.data && zs.scale == xs.scale && !binary && (x || z) &&
           (x && z ? drop_x == drop_z : !(x ? drop_z : drop_x).is_rule());
  }

  bool reads_costs() const {
    return drop_x.is_rule() || drop_z.is_rule() || (binary && binary->threshold.is_rule()) || suggests_x || suggests_z;
  }
};

}  // namespace dropdtw
