// Adds the functions for graphs to the Python module, and solves items of batches along graphs.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "graph.hpp"
#include "parallel.hpp"
#include "problem.hpp"

namespace dropdtw {

void define_graphs(nanobind::module_& module);

// The plans of a list of `Plan`s, which keeps them alive.
std::vector<const Plan*> plans_of(const nanobind::list& listed);

// Computes the value and, if wanted, the derivatives of a problem whose steps form a graph.
template <class T>
Status solve_on_graph(const Plan& plan, Problem<T>& problem, const Alive& alive);

}  // namespace dropdtw
