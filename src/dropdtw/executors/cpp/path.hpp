// Memory for the path of a problem.
#pragma once
#include <cstdint>
#include <vector>

#include "problem.hpp"

namespace dropdtw {

class Path {
 public:
  // Makes the problem write its path here.
  template <class T>
  explicit Path(Problem<T>& problem) {
    const std::size_t steps = std::size_t(problem.K) + problem.N;
    cells_.resize(2 * steps);
    paid_.resize(steps);
    weights_.resize(steps);
    problem.want = Want::trace;
    problem.path_i = cells_.data();
    problem.path_j = cells_.data() + steps;
    problem.path_cost = paid_.data();
    problem.path_weight = weights_.data();
  }

 private:
  std::vector<std::int32_t> cells_;
  std::vector<std::uint8_t> paid_;
  std::vector<double> weights_;
};

}  // namespace dropdtw
