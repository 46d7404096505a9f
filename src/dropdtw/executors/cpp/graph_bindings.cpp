// The part of the Python module for graphs: plans and problems.
#include "graph_bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "parallel.hpp"
#include "plan.hpp"
#include "workspace.hpp"

namespace dropdtw {

DROPDTW_CHOOSE(GraphKernel, graph_kernel)

namespace {

// Callbacks of a kernel: check for signals, and store the path or turn it into derivatives.
template <class T>
struct Beside {
  Alive alive;
  std::vector<Step>* path;  // null: add the path to the derivatives
  GraphProblem<T>* problem;

  static bool tick(void* self) { return static_cast<Beside*>(self)->alive(); }

  static void step(void* self, const Step& step) {
    auto& [alive, path, problem] = *static_cast<Beside*>(self);
    if (path != nullptr) {
      if (step.way >= 0) path->push_back(step);
      return;
    }
    if (problem->grad_arcs != nullptr && step.arc >= 0) problem->grad_arcs[step.arc] += 1;
    if (step.way < 0) return;
    const Way& way = problem->plan->ways[step.way];
    const T weight = T(way.weight);
    if (way.cost == Cost::match) problem->grad_match[step.label * problem->grad_row + step.j] += weight;
    if (way.cost == Cost::drop_x) problem->grad_x[step.j] += weight;
    if (way.cost == Cost::drop_z) problem->grad_z[step.label] += weight;
    if (way.plus != Plus::none) problem->grad_charges[int(way.plus) - 1] += 1;
  }
};

template <class T>
Status solve_plainly(GraphProblem<T>& problem, const Alive& alive, std::vector<Step>* path) {
  Beside<T> beside{alive, path, &problem};
  problem.tick = Beside<T>::tick;
  problem.step = Beside<T>::step;
  problem.self = &beside;
  if (problem.want == Want::gradient && problem.reducer == Reducer::hard) problem.want = Want::trace;
  const GraphKernel<T> kernel = graph_kernel<T>();
  const Workspace work(kernel.bytes(problem));
  problem.work = work.get();
  return kernel.solve(problem);
}

// In single precision, long sums have no digits left for the next cost, so they are computed in double precision.
Status solve_widened(GraphProblem<float>& p, const Alive& alive, std::vector<Step>* path) {
  const std::size_t K = p.plan->rows, N = p.N, cells = p.grad_match == nullptr ? 0 : K * N;
  std::vector<double> match(K * N), drop_x(p.drop_x, p.drop_x + N), drop_z(p.drop_z, p.drop_z + K);
  for (std::size_t i = 0; i < K; ++i)
    for (std::size_t j = 0; j < N; ++j)
      match[i * N + j] = p.match[std::ptrdiff_t(i) * p.row + std::ptrdiff_t(j) * p.column];
  std::vector<double> by_match(cells), by_x(N), by_z(K), by_arcs(p.grad_arcs == nullptr ? 0 : p.plan->arc_count);
  GraphProblem<double> twin{p.plan, p.N,           p.reducer,    p.gamma,
                            p.want, p.budget,      match.data(), std::ptrdiff_t(N),
                            1,      drop_x.data(), drop_z.data()};
  std::copy_n(p.charges, charge_count, twin.charges);
  twin.grad_match = by_match.data();
  twin.grad_row = std::ptrdiff_t(N);
  twin.grad_x = by_x.data();
  twin.grad_z = by_z.data();
  twin.grad_arcs = p.grad_arcs == nullptr ? nullptr : by_arcs.data();
  const Status status = solve_plainly(twin, alive, path);
  p.value = twin.value;
  std::copy_n(twin.grad_charges, charge_count, p.grad_charges);
  if (cells > 0) {
    for (std::size_t i = 0; i < K; ++i) std::copy_n(&by_match[i * N], N, p.grad_match + std::ptrdiff_t(i) * p.grad_row);
    std::copy(by_x.begin(), by_x.end(), p.grad_x);
    std::copy(by_z.begin(), by_z.end(), p.grad_z);
    std::copy(by_arcs.begin(), by_arcs.end(), p.grad_arcs);
  }
  return status;
}

template <class T>
Status solve_graph(GraphProblem<T>& problem, const Alive& alive, std::vector<Step>* path) {
  if constexpr (sizeof(T) == 4)
    if (long_sums<T>(problem.plan->rows, problem.N)) return solve_widened(problem, alive, path);
  return solve_plainly(problem, alive, path);
}

void make_plan(GraphPlan* self, Vector<std::int64_t> label, Vector<std::int64_t> level, Vector<std::int64_t> source,
               Vector<std::int64_t> target, Vector<std::int64_t> use, Vector<double> cost, Vector<bool> hub,
               Vector<bool> again, int start, Vector<std::int64_t> finals, int states, Rows<std::int32_t> edges,
               Vector<double> weights, Vector<std::int32_t> starts, Vector<std::int32_t> final_states) {
  const auto all = [](const auto& a) { return std::span(a.data(), a.size()); };
  require(edges.shape(1) == 6, "edges have six numbers");
  new (self) GraphPlan(
      {all(label), all(level), all(source), all(target), all(use), all(finals), all(hub), all(again), all(cost), start},
      {states, all(edges), all(weights), all(starts), all(final_states)});
}

template <class T>
GraphProblem<T> problem_of(const GraphPlan& plan, int reducer, double gamma, Want want, std::size_t budget,
                           const Matrix<T>& match, const Vector<T>& drop_x, const Vector<T>& drop_z,
                           const Charges& charges) {
  const std::size_t K = drop_z.size(), N = drop_x.size();
  require(reducer >= 0 && reducer <= 2, "no such reducer");
  require(N > 0 && int(K) >= plan.plan().rows && match.shape(0) == K && match.shape(1) == N,
          "the costs do not fit the graph");
  GraphProblem<T> problem{&plan.plan(), int(N),          Reducer(reducer), gamma,         want,         budget,
                          match.data(), match.stride(0), match.stride(1),  drop_x.data(), drop_z.data()};
  std::copy(charges.begin(), charges.end(), problem.charges);
  return problem;
}

template <class T>
void solve_for_python(GraphProblem<T>& problem, std::vector<Step>* path) {
  const auto tick = [](void*) {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() == 0;
  };
  Status status;
  {
    nb::gil_scoped_release free;
    status = solve_graph(problem, {tick, nullptr}, path);
  }
  if (status == Status::stopped) throw nb::python_error();
}

// Computes the value, and the derivatives if the caller passes arrays for them. Also returns those with respect to the
// charges.
template <class T>
nb::tuple solve(const GraphPlan& plan, int reducer, double gamma, std::size_t budget, Matrix<T> match, Vector<T> drop_x,
                Vector<T> drop_z, Charges charges, std::optional<OutMatrix<T>> grad_match, std::optional<Out<T>> grad_x,
                std::optional<Out<T>> grad_z, std::optional<Out<T>> grad_arcs) {
  auto problem = problem_of(plan, reducer, gamma, grad_match ? Want::gradient : Want::value, budget, match, drop_x,
                            drop_z, charges);
  if (grad_match) {
    const std::size_t K = drop_z.size(), N = drop_x.size();
    require(grad_match->shape(0) == K && grad_match->shape(1) == N && grad_x && grad_x->size() == N && grad_z &&
                grad_z->size() == K && grad_arcs && int(grad_arcs->size()) == plan.plan().arc_count,
            "nowhere to put the derivatives");
    problem.grad_match = grad_match->data();
    problem.grad_row = std::ptrdiff_t(N);
    problem.grad_x = grad_x->data();
    problem.grad_z = grad_z->data();
    problem.grad_arcs = grad_arcs->data();
  }
  solve_for_python(problem, nullptr);
  const double* const by = problem.grad_charges;
  return nb::make_tuple(problem.value, nb::make_tuple(by[0], by[1], by[2]));
}

// Finds a best path. Returns its value, the number of pairs it matches, how often it pays each charge, and one array
// with, in this order: the pairs; the visit that each pair belongs to; the edge that matched each pair; and the rows of
// Z in the order of the walk. Counts the drops in dropped_x and dropped_z.
template <class T>
nb::tuple trace(const GraphPlan& plan, std::size_t budget, Matrix<T> match, Vector<T> drop_x, Vector<T> drop_z,
                Charges charges, Out<std::int64_t> dropped_x, Out<std::int64_t> dropped_z) {
  auto problem = problem_of(plan, int(Reducer::hard), 0, Want::trace, budget, match, drop_x, drop_z, charges);
  require(dropped_x.size() == drop_x.size() && dropped_z.size() == drop_z.size(), "nowhere to count what is dropped");
  std::vector<Step> path;
  path.reserve(2 * drop_x.size() + drop_z.size());
  solve_for_python(problem, &path);
  const auto way_of = [&](const Step& step) -> const Way& { return plan.plan().ways[step.way]; };
  std::size_t pairs = 0, rows = 0;
  const auto enters = [&](const Way& way) {
    return way.source >= 0 && plan.plan().sources[way.source].use != use_again;
  };
  for (const Step& step : path) {
    pairs += way_of(step).cost == Cost::match;
    rows += enters(way_of(step));
  }
  auto told = std::make_unique<std::vector<std::int64_t>>(4 * pairs + rows);
  std::int64_t *pair = told->data(), *visit = pair + 2 * pairs, *by = visit + pairs, *row = by + pairs;
  std::int64_t entered = 0, charged[charge_count + 1] = {};
  for (auto step = path.rbegin(); step != path.rend(); ++step) {  // kernels return a path from end to start
    const Way& way = way_of(*step);
    if (enters(way)) row[entered++] = step->label;
    ++charged[int(way.plus)];
    if (way.cost == Cost::drop_x) ++dropped_x.data()[step->j];
    if (way.cost == Cost::drop_z) ++dropped_z.data()[step->label];
    if (way.cost != Cost::match) continue;
    *pair++ = step->label;
    *pair++ = step->j;
    *visit++ = entered - 1;
    *by++ = step->way;
  }
  std::int64_t* const begin = told->data();
  const std::size_t size = told->size();
  nb::capsule owner(told.release(), [](void* kept) noexcept { delete static_cast<std::vector<std::int64_t>*>(kept); });
  return nb::make_tuple(problem.value, pairs, nb::make_tuple(charged[1], charged[2], charged[3]),
                        nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(begin, {size}, owner));
}

}  // namespace

std::vector<const Plan*> plans_of(const nb::list& listed) {
  std::vector<const Plan*> plans;
  for (const nb::handle each : listed) plans.push_back(&nb::cast<const GraphPlan&>(each).plan());
  return plans;
}

template <class T>
Status solve_on_graph(const Plan& plan, Problem<T>& problem, const Alive& alive) {
  GraphProblem<T> twin{&plan,         problem.N,   problem.reducer, problem.gamma,  problem.want,  problem.budget,
                       problem.match, problem.row, problem.column,  problem.drop_x, problem.drop_z};
  std::copy_n(problem.charges, charge_count, twin.charges);
  twin.grad_match = problem.grad_match;
  twin.grad_row = problem.grad_row;
  twin.grad_x = problem.grad_x;
  twin.grad_z = problem.grad_z;
  const Status status = solve_graph(twin, alive, nullptr);
  problem.value = twin.value;
  std::copy_n(twin.grad_charges, charge_count, problem.grad_charges);
  return status;
}

template Status solve_on_graph(const Plan&, Problem<float>&, const Alive&);
template Status solve_on_graph(const Plan&, Problem<double>&, const Alive&);

void define_graphs(nb::module_& module) {
  using nb::arg;
  nb::class_<GraphPlan>(module, "Plan")
      .def("__init__", &make_plan, arg("label").noconvert(), arg("level").noconvert(), arg("source").noconvert(),
           arg("target").noconvert(), arg("use").noconvert(), arg("cost").noconvert(), arg("hub").noconvert(),
           arg("again").noconvert(), arg("start"), arg("finals").noconvert(), arg("states"), arg("edges").noconvert(),
           arg("weights").noconvert(), arg("starts").noconvert(), arg("final_states").noconvert());
  const auto define_solve = [&](auto function) {
    module.def("graph", function, arg("plan"), arg("reducer"), arg("gamma"), arg("budget"), arg("match").noconvert(),
               arg("drop_x").noconvert(), arg("drop_z").noconvert(), arg("charges"),
               arg("grad_match").noconvert().none(), arg("grad_x").noconvert().none(), arg("grad_z").noconvert().none(),
               arg("grad_arcs").noconvert().none());
  };
  define_solve(&solve<float>);
  define_solve(&solve<double>);
  const auto define_trace = [&](auto function) {
    module.def("graph_trace", function, arg("plan"), arg("budget"), arg("match").noconvert(), arg("drop_x").noconvert(),
               arg("drop_z").noconvert(), arg("charges"), arg("dropped_x").noconvert(), arg("dropped_z").noconvert());
  };
  define_trace(&trace<float>);
  define_trace(&trace<double>);
}

}  // namespace dropdtw
