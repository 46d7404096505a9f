// All pairs of two lists of sequences on several threads, in tasks of a few pairs (pair_task.hpp).
#pragma once
#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "pair_task.hpp"
#include "parallel.hpp"

namespace dropdtw {

// How many pairs were abandoned because of the limit, and how many cells that saved.
struct GivenUp {
  std::int64_t pairs, cells;
};

template <class T>
GivenUp solve_pairs(const Pairs<T>& pairs, int threads, nb::object progress) {
  const Kernels<T> kernels = dropdtw::kernels<T>();
  const bool in_lanes = PairTask<T>::in_lanes(pairs, kernels);
  const int n = pairs.zs.count, m = pairs.xs.count, group = in_lanes ? kernels.width : 1;
  // Sequences of similar length share vectors, so that little is computed beyond their ends, and bands are reused.
  const std::vector<int> order_x = pairs.xs.by_length(), order_z = pairs.once ? order_x : pairs.zs.by_length();
  struct Part {
    int first, from, to;
  };
  constexpr int chunk = 32, most_kept = 1 << 13;  // sequences whose percentiles are kept, in at most 256 MiB
  std::vector<Part> parts;
  for (int first = 0; first < m; first += group) {
    const int rows = pairs.once ? std::min(n, first + group) : n;
    for (int from = 0; from < rows; from += chunk) parts.push_back({first, from, std::min(rows, from + chunk)});
  }
  std::reverse(parts.begin(), parts.end());  // largest first, so that threads finish together
  std::atomic<std::int64_t> abandoned{0}, spared{0};
  std::optional<Kept<T>> kept;
  if (in_lanes && pairs.shares_percentiles() && n <= most_kept) kept.emplace(n);
  const std::int64_t total = pairs.once ? std::int64_t(n) * (n + 1) / 2 : std::int64_t(n) * m;
  parallel(std::int64_t(parts.size()), threads, progress, total, [&](std::int64_t number, const Alive& alive) {
    const Part part = parts[number];
    PairTask<T> task(pairs, kernels, alive, order_x, part.first, std::min(group, m - part.first),
                     kept ? &*kept : nullptr);
    for (int a = part.from; a < part.to && alive(); ++a)
      in_lanes ? task.lanes(a, order_z[a]) : task.one_by_one(a, order_z[a]);
    abandoned += task.abandoned;
    spared += task.spared;
    return task.kept;
  });
  return {abandoned, spared};
}

}  // namespace dropdtw
