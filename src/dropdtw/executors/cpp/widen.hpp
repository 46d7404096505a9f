// Solves problems in single precision in double precision if necessary.
//
// Bases (base.hpp) work as long as the sums of a row change little from one column to the next. With far more rows than
// columns they change a lot: one more column lets many rows be aligned differently.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "dispatch.hpp"
#include "problem.hpp"
#include "workspace.hpp"

namespace dropdtw {

template <class T>
constexpr bool needs_double(int K, int N) {
  return long_sums<T>(K, N) && K > 2 * std::int64_t(N);
}

// Solves a copy of the problem in double precision. Match costs are converted strip by strip.
class Widened {
  static constexpr int cells = 1 << 22, least_width = 64;  // size of a strip of match costs

 public:
  explicit Widened(Problem<float>& problem) : problem_(problem) {}

  template <class Solve>
  Status solve(const Solve& kernel) {
    Problem<float>& p = problem_;
    Problem<double> twin{p.table, p.K, p.N, p.reducer, p.gamma, p.want, p.budget};
    const auto doubles = [](const float* from, std::size_t n) { return std::vector<double>(from, from + n); };
    const std::size_t K = p.K, N = p.N, d = p.d, matrix = p.want == Want::gradient ? K * N : 0;
    const auto drop_x = doubles(p.drop_x, N), drop_z = doubles(p.drop_z, K);
    const auto z = doubles(p.z, p.z == nullptr ? 0 : K * d), x = doubles(p.x, p.x == nullptr ? 0 : N * d);
    std::vector<double> grad_match(matrix), grad_x(matrix > 0 ? N : 0), grad_z(matrix > 0 ? K : 0);
    twin.metric = p.metric;
    twin.sign = p.sign;
    twin.z = z.data();
    twin.x = x.data();
    twin.d = p.d;
    const std::size_t entries =
        p.table_of_costs == nullptr ? 0 : (*std::max_element(z.begin(), z.end()) + 1) * p.codes_x;
    const auto table_of_costs = doubles(p.table_of_costs, entries);
    twin.table_of_costs = table_of_costs.data();
    twin.codes_x = p.codes_x;
    if (p.metric == Metric::none) {
      twin.strip = fetch;
      twin.strip_width = p.strip != nullptr ? p.strip_width : std::min(p.N, std::max(least_width, cells / p.K));
    }
    twin.drop_x = drop_x.data();
    twin.drop_z = drop_z.data();
    std::copy_n(p.charges, charge_count, twin.charges);
    twin.limit = p.limit;
    twin.least = p.least;
    twin.band_start = p.band_start;
    twin.band_stop = p.band_stop;
    twin.tick = p.tick == nullptr ? nullptr : tick;
    twin.self = this;
    twin.scratch = p.scratch;
    twin.owner = p.owner;
    twin.path_i = p.path_i;
    twin.path_j = p.path_j;
    twin.path_cost = p.path_cost;
    twin.path_weight = p.path_weight;
    twin.grad_match = grad_match.data();
    twin.grad_x = grad_x.data();
    twin.grad_z = grad_z.data();
    twin.grad_row = p.N;
    const Status status = kernel(twin);
    p.value = twin.value;
    p.spared = twin.spared;
    p.path_length = twin.path_length;
    std::copy_n(twin.grad_charges, charge_count, p.grad_charges);
    if (matrix > 0) {
      for (std::size_t i = 0; i < K; ++i)
        std::copy_n(&grad_match[i * N], N, p.grad_match + std::ptrdiff_t(i) * p.grad_row);
      std::copy(grad_x.begin(), grad_x.end(), p.grad_x);
      std::copy(grad_z.begin(), grad_z.end(), p.grad_z);
    }
    return status;
  }

 private:
  static bool tick(void* self) {
    const Problem<float>& p = static_cast<Widened*>(self)->problem_;
    return p.tick(p.self);
  }

  static const double* fetch(void* self, int from, int to, int rows, std::ptrdiff_t* row, std::ptrdiff_t* column) {
    auto& widened = *static_cast<Widened*>(self);
    const Problem<float>& p = widened.problem_;
    const float* match = p.match == nullptr ? nullptr : p.match + from * p.column;
    std::ptrdiff_t far = p.row, near = p.column;
    if (p.strip != nullptr && (match = p.strip(p.self, from, to, rows, &far, &near)) == nullptr) return nullptr;
    *row = to - from;
    *column = 1;
    widened.strip_.resize(std::size_t(rows) * (to - from));
    auto out = widened.strip_.begin();
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < to - from; ++j) *out++ = match[i * far + j * near];
    return widened.strip_.data();
  }

  Problem<float>& problem_;
  std::vector<double> strip_;
};

// Solves a problem on the unrolled kernel of its table, which computes hard minima, or on the one for any table.
template <class T>
Status solve(Problem<T>& problem) {
  const Kernels<T> found = kernels<T>();
  if (problem.reducer == Reducer::hard) return found.of(*problem.table).solve(problem);
  return found.any.solve(problem);
}

// Solves a problem in its own precision, or in double precision if that is not enough.
template <class T>
Status solve_exactly(Problem<T>& problem) {
  std::optional<Workspace> held;
  problem.owner = &held;
  problem.scratch = [](void* owner, std::size_t bytes) -> void* {
    try {
      return static_cast<std::optional<Workspace>*>(owner)->emplace(bytes).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  };
  if constexpr (sizeof(T) == 4)
    if (needs_double<T>(problem.K, problem.N)) return Widened(problem).solve(&solve<double>);
  return solve<T>(problem);
}

}  // namespace dropdtw
