// Prices that are derived from the match costs of a pair, as in drops.py.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "problem.hpp"

namespace dropdtw {

enum class Source { number, each, percentile, suggest };

// A price: a number, one number per element, or a rule (`number` is then the percentile).
template <class T>
struct Price {
  Source source = Source::number;
  double number = 0;
  const T* each = nullptr;

  bool is_rule() const { return source == Source::percentile || source == Source::suggest; }
  bool operator==(const Price& other) const = default;
};

// Match costs of one pair: rows of N finite numbers, `pitch` apart.
template <class T>
struct Costs {
  const T* data;
  int K, N;
  std::ptrdiff_t pitch;
  const T* row(int i) const { return data + i * pitch; }
};

// Finds percentiles. Reuses its memory from pair to pair.
template <class T>
class Percentile {
 public:
  explicit Percentile(const Kernels<T>& kernels) : select_(kernels.select), width_(kernels.width) {}

  // The percentile p, interpolated and rounded as in NumPy.
  double of(const Costs<T>& costs, double p) {
    const std::size_t n = std::size_t(costs.K) * costs.N;
    const double rank = double(n - 1) * (p / 100), lower = std::floor(rank), share = rank - lower;
    if (work_.size() < 2 * (n + width_)) work_.resize(2 * (n + width_));
    T found[2];
    select_(costs.data, costs.K, costs.N, costs.pitch, std::int64_t(lower), work_.data(), found);
    const T step = found[1] - found[0], part = step * T(share), rest = step * T(1 - share);
    return share < 0.5 ? T(found[0] + part) : T(found[1] - rest);
  }

 private:
  decltype(Kernels<T>::select) select_;
  const int width_;
  std::vector<T> work_;
};

// Percentiles of pairs that do not depend on their order. Several threads may find and keep the same one.
template <class T>
class Kept {
 public:
  explicit Kept(std::size_t sequences) : found_(sequences * (sequences + 1) / 2) {}
  // Where the percentile of a pair is; 0: it is not known.
  std::atomic<T>& of(std::size_t i, std::size_t j) {
    const std::size_t more = std::max(i, j);
    return found_[more * (more + 1) / 2 + std::min(i, j)];
  }

 private:
  std::vector<std::atomic<T>> found_;
};

// Otsu's threshold of sorted numbers.
inline double otsu(const std::vector<double>& v) {
  const auto n = double(v.size());
  double all = 0, sum = 0, most = -1;
  for (const double x : v) all += x;
  std::size_t best = 0;
  for (std::size_t i = 0; i + 1 < v.size(); ++i) {
    sum += v[i];
    const double k = double(i + 1), apart = sum / k - (all - sum) / (n - k), value = k * (n - k) / n * (apart * apart);
    if (value > most) most = value, best = i;
  }
  return (v[best] + v[best + 1]) / 2;
}

// Match costs as the caller has them: if `transposed`, the rows of `costs` are x and the columns z. Only pairs with
// allowed(i, j) count.
template <class T, class Allowed>
class Looked {
 public:
  static constexpr T never = std::numeric_limits<T>::infinity();
  const int K, N;

  Looked(const Costs<T>& costs, bool transposed, const Allowed& allowed)
      : K(transposed ? costs.N : costs.K),
        N(transposed ? costs.K : costs.N),
        costs_(costs),
        transposed_(transposed),
        allowed_(allowed),
        best_(N, never),
        where_(N, 0) {
    for (int i = 0; i < K; ++i)
      for (int j = 0; j < N; ++j)
        if (const T c = at(i, j); c < best_[j]) best_[j] = c, where_[j] = i;
  }

  T at(int i, int j) const { return !allowed_(i, j) ? never : transposed_ ? costs_.row(j)[i] : costs_.row(i)[j]; }
  T best(int j) const { return best_[j]; }
  // Whether z_i is so close to the best match of x_j that the two are probably alike.
  bool near(int i, int j) const { return std::abs(i - where_[j]) <= K / 8; }

 private:
  const Costs<T>& costs_;
  const bool transposed_;
  const Allowed& allowed_;
  std::vector<T> best_;
  std::vector<int> where_;
};

// The suggested drop cost: the threshold between each x's best match and its best match elsewhere.
template <class T, class Allowed>
double suggested(const Looked<T, Allowed>& looked) {
  constexpr T never = Looked<T, Allowed>::never;
  std::vector<T> other(looked.N, never);
  T largest = -never;
  for (int i = 0; i < looked.K; ++i)
    for (int j = 0; j < looked.N; ++j) {
      const T c = looked.at(i, j);
      if (c < never) largest = std::max(largest, c);
      if (!looked.near(i, j)) other[j] = std::min(other[j], c);
    }
  std::vector<double> values;
  for (int j = 0; j < looked.N; ++j)
    if (looked.best(j) < never) values.push_back(looked.best(j));
  for (const T v : other)
    if (v < never) values.push_back(v);
  std::sort(values.begin(), values.end());
  const double size = std::max(std::abs(values.front()), std::abs(values.back()));
  if (T(values.back()) - T(values.front()) <= T(1e-9 * size)) return largest;
  return otsu(values);
}

// The most that a stretch of chance matches can save, along a diagonal or a row; see chance_gain in drops.py.
template <class T, class Allowed>
double chance_gain(const Looked<T, Allowed>& looked, double saved_x, double saved_z) {
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  std::vector<double> gain(looked.N), here(looked.N, 0);
  double best = 0, along = 0;
  for (int i = 0; i < looked.K; ++i) {
    for (int j = 0; j < looked.N; ++j) gain[j] = looked.near(i, j) ? nothing : saved_x + saved_z - looked.at(i, j);
    for (int j = looked.N - 1; j >= 0; --j) {
      here[j] = gain[j] + (j > 0 ? std::max(here[j - 1], 0.0) : 0.0);
      best = std::max(best, here[j]);
    }
    double never = 0, total = 0, least = 0;
    for (int j = 0; j < looked.N; ++j) never += std::max(gain[j] - saved_z, 0.0);
    never *= 2;  // more than a row can save
    for (int j = 0; j < looked.N; ++j) {
      total += std::max(gain[j] - saved_z, -never);
      least = std::min(least, total);
      along = std::max(along, total - least);
    }
  }
  return std::max(best, along > 0 ? along + saved_z : 0.0);
}

// The median of the finite prices, or 0 if nothing may be dropped.
template <class T>
double usual(const T* prices, int n) {
  std::vector<double> finite;
  for (int k = 0; k < n; ++k)
    if (std::isfinite(prices[k])) finite.push_back(prices[k]);
  if (finite.empty()) return 0;
  std::sort(finite.begin(), finite.end());
  const std::size_t half = finite.size() / 2;
  return finite.size() % 2 == 1 ? finite[half] : double((T(finite[half - 1]) + T(finite[half])) / 2);
}

}  // namespace dropdtw
