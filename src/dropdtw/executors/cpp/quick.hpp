// The fast path for small problems, straight from two arrays. It creates no arrays for a value, and returns a path in
// the form in which alignments are stored. Unusual inputs, such as values that are not finite, go to the general code
// path, which reports errors.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "arrays.hpp"
#include "problem.hpp"
#include "widen.hpp"

namespace dropdtw {

inline constexpr std::size_t quick_cells = std::size_t(1) << 16;  // about 50 µs of work, so that Ctrl-C can wait
inline constexpr std::size_t quick_features = 8;                  // the maximum that kernels take

// The request without its sequences. Metric::none for `numbers` or `vectors`: use the general code path.
struct QuickRequest {
  const Table* table;
  bool transposed;  // whether the table has Z and X swapped
  Metric numbers, vectors;
  double drop_x, drop_z;
  double charges[charge_count];
};

template <class T>
using Plain = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

// Two sequences as passed by the caller. The metric stays `none` if they need the general code path.
template <class T>
struct Arrived {
  const T *z, *x;
  std::size_t K, N, d;
  Metric metric = Metric::none;

  Arrived(const QuickRequest& request, const Plain<T>& Z, const Plain<T>& X) {
    const std::size_t dims = Z.ndim();
    if (dims < 1 || dims > 2 || X.ndim() != dims) return;
    z = Z.data();
    x = X.data();
    K = Z.shape(0);
    N = X.shape(0);
    d = dims == 1 ? 1 : Z.shape(1);
    const bool fits = d > 0 && d <= quick_features && (dims == 1 || X.shape(1) == d);
    if (!fits || K == 0 || N == 0 || K * N > quick_cells) return;
    if (moderate()) metric = d == 1 ? request.numbers : request.vectors;
  }

  // Whether all values are finite, and their squares neither overflow nor underflow.
  bool moderate() const {
    T largest = 0;
    const auto look = [&](const T* a, std::size_t n) {
      bool finite = true;
      for (std::size_t k = 0; k < n; ++k) {
        const T size = std::abs(a[k]);
        finite &= size <= std::numeric_limits<T>::max();
        largest = size > largest ? size : largest;
      }
      return finite;
    };
    if (!look(z, K * d) || !look(x, N * d)) return false;
    static const T low = T(std::pow(double(std::numeric_limits<T>::min()), 0.25));
    static const T high = T(std::pow(double(std::numeric_limits<T>::max()), 0.25));
    return largest == 0 || (low < largest && largest < high);
  }

  // The match cost of a pair, rounded as in NumPy, which sums eight squares pairwise.
  T match(std::size_t i, std::size_t j) const {
    T s[quick_features] = {};
    for (std::size_t f = 0; f < d; ++f) s[f] = (z[i * d + f] - x[j * d + f]) * (z[i * d + f] - x[j * d + f]);
    T sum = s[0];
    if (d == 8)
      sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    else
      for (std::size_t f = 1; f < d; ++f) sum += s[f];
    return metric == Metric::sqeuclidean ? sum : std::sqrt(sum);
  }
};

// A problem and the drop costs that it points to.
template <class T>
struct Prepared {
  std::vector<T> prices;
  Problem<T> problem;

  Prepared(const QuickRequest& request, const Arrived<T>& a, Want want)
      : prices(a.K + a.N), problem{request.table, int(a.K), int(a.N), Reducer::hard, 0, want, std::size_t(1) << 30} {
    double drop_x = request.drop_x, drop_z = request.drop_z;
    problem.z = a.z;
    problem.x = a.x;
    std::copy(request.charges, request.charges + charge_count, problem.charges);
    if (request.transposed) {
      std::swap(problem.K, problem.N);
      std::swap(problem.z, problem.x);
      std::swap(drop_x, drop_z);
      std::swap(problem.charges[0], problem.charges[1]);
    }
    problem.metric = a.metric;
    problem.d = int(a.d);
    std::fill_n(prices.begin(), problem.N, T(drop_x));
    std::fill_n(prices.begin() + problem.N, problem.K, T(drop_z));
    problem.drop_x = prices.data();
    problem.drop_z = prices.data() + problem.N;
    problem.least = 0;
    problem.tick = [](void*) { return true; };
  }

  void solve() {
    if (solve_exactly(problem) == Status::no_memory) throw std::bad_alloc();
  }
};

// The hard value. Any number above `limit` if the value exceeds it; NaN if the general code path has to be taken.
template <class T>
double quick_value(const QuickRequest& request, Plain<T> Z, Plain<T> X, double limit) {
  const Arrived<T> arrived(request, Z, X);
  if (arrived.metric == Metric::none) return std::numeric_limits<double>::quiet_NaN();
  Prepared<T> prepared(request, arrived, Want::value);
  prepared.problem.limit = limit;
  prepared.solve();
  return prepared.problem.value;
}

// The hard value and a best alignment. Writes to `out`, in this order: the label of each x (its cheapest z, the first
// one on ties), how often each x and each z pays for being dropped, and the pairs (L, 2). Also returns how often each
// charge is paid. The value is NaN if the general code path has to be taken.
template <class T>
nb::tuple quick_path(const QuickRequest& request, Plain<T> Z, Plain<T> X, Out<std::int64_t> out) {
  const Arrived<T> a(request, Z, X);
  const auto give = [](double value, int length, const double* charged) {
    return nb::make_tuple(value, length, charged[0], charged[1], charged[2]);
  };
  double charged[charge_count] = {};
  if (a.metric == Metric::none) return give(std::numeric_limits<double>::quiet_NaN(), 0, charged);
  const std::size_t steps = a.K + a.N;
  require(out.size() >= 3 * steps + a.N, "nowhere to put the path");
  Prepared<T> prepared(request, a, Want::trace);
  std::vector<std::int32_t> path(2 * steps);
  std::vector<std::uint8_t> paid(steps);
  Problem<T>& problem = prepared.problem;
  problem.path_i = path.data();
  problem.path_j = path.data() + steps;
  problem.path_cost = paid.data();
  prepared.solve();
  std::int64_t* const labels = out.data();
  std::int64_t* const paid_x = labels + a.N;
  std::int64_t* const paid_z = paid_x + a.N;
  std::int64_t* const pairs = paid_z + a.K;
  std::fill_n(labels, a.N, -1);
  std::fill_n(paid_x, steps, 0);
  int length = 0;
  for (int step = problem.path_length - 1; step >= 0; --step) {  // kernels return a path from end to start
    std::int64_t i = problem.path_i[step], j = problem.path_j[step];
    Cost cost = Cost(paid[step] & 3);
    int plus = paid[step] >> 2;
    if (request.transposed) {
      std::swap(i, j);
      cost = cost == Cost::drop_x ? Cost::drop_z : cost == Cost::drop_z ? Cost::drop_x : cost;
      plus = plus == 1 || plus == 2 ? 3 - plus : plus;
    }
    if (plus > 0) charged[plus - 1] += 1;
    if (cost == Cost::drop_x) paid_x[j] += 1;
    if (cost == Cost::drop_z) paid_z[i] += 1;
    if (cost == Cost::match) {
      pairs[2 * length] = i;
      pairs[2 * length + 1] = j;
      ++length;
      if (labels[j] < 0 || a.match(i, j) < a.match(labels[j], j)) labels[j] = i;
    }
  }
  return give(problem.value, length, charged);
}

}  // namespace dropdtw
