// Which matches a Sakoe–Chiba window allows; see band.py.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace dropdtw {

struct Band {
  std::vector<std::int64_t> start, stop;

  bool allows(int i, int j) const { return start.empty() || (start[i] <= j && j < stop[i]); }
};

// A window: its half-width in columns, or as a fraction of all columns.
struct Window {
  double size;
  bool share;

  // The columns, out of N, that each of K rows may match.
  Band of(int K, int N) const {
    if (K == 1) return {{0}, {N}};
    Band band{std::vector<std::int64_t>(K), std::vector<std::int64_t>(K)};
    const std::int64_t rows = K - 1, last = N - 1;
    const double wanted = std::floor((share ? size * N : size) * double(rows) + 1e-9);
    const auto reach = std::int64_t(std::min(wanted, double(rows) * double(last)));
    for (std::int64_t i = 0; i < K; ++i) {
      const std::int64_t center = i * last;
      band.start[i] = center <= reach ? 0 : (center - reach + rows - 1) / rows;
      band.stop[i] = std::min<std::int64_t>((center + reach) / rows + 1, N);
    }
    return band;
  }
};

// The rows that each of N columns may match. The limits of `band` are non-decreasing from row to row, so upper_bound
// applies.
inline Band transposed(const Band& band, int N) {
  Band found{std::vector<std::int64_t>(N), std::vector<std::int64_t>(N)};
  for (int j = 0; j < N; ++j) {
    found.start[j] = std::upper_bound(band.stop.begin(), band.stop.end(), j) - band.stop.begin();
    found.stop[j] = std::upper_bound(band.start.begin(), band.start.end(), j) - band.start.begin();
  }
  return found;
}

}  // namespace dropdtw
