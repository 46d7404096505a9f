// The Python module: passes arrays to the kernels and lets Python interrupt them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "costs_bindings.hpp"
#include "dispatch.hpp"
#include "graph_bindings.hpp"
#include "pairs_bindings.hpp"
#include "parallel.hpp"
#include "path.hpp"
#include "problem.hpp"
#include "quick.hpp"
#include "scan_bindings.hpp"
#include "speech_bindings.hpp"
#include "table_bindings.hpp"
#include "tables.hpp"
#include "widen.hpp"

namespace dropdtw {

using Columns = std::optional<Vector<std::int64_t>>;

// Callbacks from a kernel into Python while the GIL is released: they fetch strips of costs and check for signals.
template <class T>
struct Host {
  nb::object strips;
  std::optional<Matrix<T>> strip;  // kept alive while a kernel reads it

  static const T* fetch(void* self, int from, int to, int rows, std::ptrdiff_t* row, std::ptrdiff_t* column) {
    auto& host = *static_cast<Host*>(self);
    nb::gil_scoped_acquire gil;
    try {
      host.strip.reset();
      host.strip = nb::cast<Matrix<T>>(host.strips(from, to, rows));
    } catch (nb::python_error& error) {
      error.restore();
      return nullptr;
    } catch (nb::cast_error&) {
      PyErr_SetString(PyExc_TypeError, "strips(from, to, rows) must return a matrix of the drop costs' dtype");
      return nullptr;
    }
    if (int(host.strip->shape(0)) != rows || int(host.strip->shape(1)) != to - from) {
      PyErr_SetString(PyExc_ValueError, "strips(from, to, rows) must return `rows` rows and to - from columns");
      return nullptr;
    }
    *row = host.strip->stride(0);
    *column = host.strip->stride(1);
    return host.strip->data();
  }

  static bool tick(void*) {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() == 0;
  }
};

// Solves a problem piece by piece: each reaches from one cell of `cells` (i, j, in order) to the next, both included.
// The caller's drop costs are +∞ there, so these cells match, and a cell between two pieces is paid twice. The results
// of the pieces are joined: the sum of their values, the path without the second match of a cell, the sum of
// derivatives.
template <class T>
Status solve_pieces(Problem<T>& whole, const std::int64_t* cells, int pieces) {
  std::vector<std::int64_t> band;
  for (int k = pieces - 1; k >= 0; --k) {  // paths are listed from the end
    const std::int64_t top = cells[2 * k], left = cells[2 * k + 1];
    Problem<T> part = whole;
    part.K = int(cells[2 * k + 2] - top + 1);
    part.N = int(cells[2 * k + 3] - left + 1);
    if (whole.match != nullptr) part.match += top * whole.row + left * whole.column;
    if (whole.z != nullptr) part.z += top * whole.d, part.x += left * whole.d;
    part.drop_x += left;
    part.drop_z += top;
    if (whole.band_start != nullptr) {
      band.resize(2 * std::size_t(part.K));
      const auto inside = [&](std::int64_t limit) { return std::clamp<std::int64_t>(limit - left, 0, part.N); };
      std::transform(whole.band_start + top, whole.band_start + top + part.K, band.begin(), inside);
      std::transform(whole.band_stop + top, whole.band_stop + top + part.K, band.begin() + part.K, inside);
      part.band_start = band.data();
      part.band_stop = band.data() + part.K;
    }
    part.value = 0;
    part.path_length = 0;
    std::fill_n(part.grad_charges, charge_count, 0.0);
    if (whole.path_i != nullptr) {
      part.path_i += whole.path_length;
      part.path_j += whole.path_length;
      part.path_cost += whole.path_length;
      if (whole.path_weight != nullptr) part.path_weight += whole.path_length;
    }
    if (whole.grad_match != nullptr) {
      part.grad_match += top * whole.grad_row + left;
      part.grad_x += left;
      part.grad_z += top;
    }
    const Status status = solve_exactly(part);
    if (status != Status::done) return status;
    whole.value += part.value;
    if (part.value == __builtin_inf()) {  // no piece can lower it
      whole.value = part.value;
      whole.path_length = 0;
      return Status::done;
    }
    for (int step = 0; step < part.path_length; ++step) {
      part.path_i[step] += std::int32_t(top);
      part.path_j[step] += std::int32_t(left);
    }
    whole.path_length += part.path_length - (k > 0 && part.path_length > 0);
    for (int c = 0; c < charge_count; ++c) whole.grad_charges[c] += part.grad_charges[c];
    if (whole.grad_match != nullptr && k > 0) whole.grad_match[top * whole.grad_row + left] = T(0);  // the next adds it
  }
  return Status::done;
}

template <class T>
nb::tuple solve_one(const OwnedTable& table, int reducer, double gamma, int want, std::size_t budget, int K, int N,
                    std::optional<Matrix<T>> match, std::optional<nb::object> strips, int strip_width,
                    std::optional<Rows<T>> z, std::optional<Rows<T>> x, int metric,
                    std::optional<Rows<T>> table_of_costs, Vector<T> drop_x, Vector<T> drop_z, Charges charges,
                    double limit, double least, Columns band_start, Columns band_stop,
                    std::optional<OutMatrix<T>> grad_match, std::optional<Out<T>> grad_x, std::optional<Out<T>> grad_z,
                    std::optional<Out<std::int32_t>> path_i, std::optional<Out<std::int32_t>> path_j,
                    std::optional<Out<std::uint8_t>> path_cost, std::optional<Out<double>> path_weight, Columns cells) {
  require(K > 0 && N > 0 && int(drop_x.size()) == N && int(drop_z.size()) == K, "drop costs do not fit K and N");
  require(reducer >= 0 && reducer <= 2 && want >= 0 && want <= 2, "no such reducer or result");
  Host<T> host;
  Problem<T> problem{&*table, K, N, Reducer(reducer), gamma, Want(want), budget};
  if (match) {
    require(int(match->shape(0)) == K && int(match->shape(1)) == N, "match costs do not fit K and N");
    problem.match = match->data();
    problem.row = match->stride(0);
    problem.column = match->stride(1);
  } else if (strips) {
    require(strip_width > 0, "strips need a width");
    host.strips = *strips;
    problem.strip = Host<T>::fetch;
    problem.strip_width = strip_width;
  } else {
    require(z && x && int(z->shape(0)) == K && int(x->shape(0)) == N && z->shape(1) == x->shape(1), "no match costs");
    problem.metric = Metric(metric);
    problem.z = z->data();
    problem.x = x->data();
    problem.d = int(z->shape(1));
    if (problem.metric >= Metric::equal) require(problem.d == 1, "a symbol has one code");
    if (problem.metric == Metric::lookup) {
      const auto all_below = [](const Rows<T>& codes, std::size_t n) {
        return std::all_of(codes.data(), codes.data() + codes.size(), [n](T code) { return code >= 0 && code < T(n); });
      };
      require(table_of_costs && all_below(*z, table_of_costs->shape(0)) && all_below(*x, table_of_costs->shape(1)) &&
                  table_of_costs->size() < (std::size_t(1) << 30),
              "the table does not fit the codes");
      problem.table_of_costs = table_of_costs->data();
      problem.codes_x = int(table_of_costs->shape(1));
    }
  }
  problem.drop_x = drop_x.data();
  problem.drop_z = drop_z.data();
  std::copy(charges.begin(), charges.end(), problem.charges);
  problem.limit = problem.reducer == Reducer::hard && problem.want == Want::value ? limit : __builtin_inf();
  problem.least = least;
  if (band_start && band_stop) {
    require(int(band_start->size()) == K && int(band_stop->size()) == K, "the band does not fit K");
    problem.band_start = band_start->data();
    problem.band_stop = band_stop->data();
  }
  if (problem.want == Want::gradient) {
    require(problem.reducer != Reducer::hard && grad_match && int(grad_match->shape(0)) == K &&
                int(grad_match->shape(1)) == N && grad_x && int(grad_x->size()) == N && grad_z &&
                int(grad_z->size()) == K,
            "nowhere to put the gradient");
    problem.grad_match = grad_match->data();
    problem.grad_row = N;
    problem.grad_x = grad_x->data();
    problem.grad_z = grad_z->data();
  }
  if (problem.want == Want::trace) {
    const std::size_t steps = std::size_t(K) + N;
    require(problem.reducer == Reducer::hard && path_i && path_j && path_cost && path_i->size() >= steps &&
                path_j->size() >= steps && path_cost->size() >= steps && (!path_weight || path_weight->size() >= steps),
            "nowhere to put the path");
    problem.path_i = path_i->data();
    problem.path_j = path_j->data();
    problem.path_cost = path_cost->data();
    if (path_weight) problem.path_weight = path_weight->data();
  }
  problem.tick = Host<T>::tick;
  problem.self = &host;
  const int pieces = cells ? int(cells->size()) / 2 - 1 : 1;
  if (cells) {
    const std::int64_t* const at = cells->data();
    require(!strips && pieces > 0 && cells->size() % 2 == 0, "pieces need two cells, and no strips");
    for (int k = 0; k <= pieces; ++k)
      require(at[2 * k] >= (k > 0 ? at[2 * k - 2] : 0) && at[2 * k] < K &&
                  at[2 * k + 1] >= (k > 0 ? at[2 * k - 1] : 0) && at[2 * k + 1] < N,
              "cells lie outside of the problem, or cross");
  }
  Status status;
  {
    nb::gil_scoped_release free;
    status = cells ? solve_pieces(problem, cells->data(), pieces) : solve_exactly(problem);
  }
  if (status == Status::no_memory) throw std::bad_alloc();
  if (status == Status::stopped) throw nb::python_error();
  const double* const by = problem.grad_charges;
  return nb::make_tuple(problem.value, problem.path_length, problem.spared, nb::make_tuple(by[0], by[1], by[2]));
}

// Computes the values of a padded batch, and the derivatives if the caller passes arrays for them. Item b uses the
// first z_lengths[b] rows and x_lengths[b] columns of its match costs. `solver` is a table, or a list of one plan for
// each item.
template <class T>
void batch(nb::object solver, int reducer, double gamma, std::size_t budget, Batch<T> match, Rows<T> drop_x,
           Rows<T> drop_z, Vector<std::int64_t> z_lengths, Vector<std::int64_t> x_lengths, int threads,
           Out<double> value, std::optional<OutBatch<T>> grad_match, std::optional<OutMatrix<T>> grad_x,
           std::optional<OutMatrix<T>> grad_z, std::optional<Rows<T>> charges,
           std::optional<OutMatrix<T>> grad_charges) {
  const std::size_t B = match.shape(0), K = match.shape(1), N = match.shape(2);
  const auto fits = [&](const auto& a, std::size_t n) { return a.shape(0) == B && a.shape(1) == n; };
  require(reducer >= 0 && reducer <= 2 && threads > 0, "no such reducer, or no threads");
  const bool graphs = nb::isinstance<nb::list>(solver);
  const Table* const table = graphs ? nullptr : &*nb::cast<const OwnedTable&>(solver);
  const std::vector<const Plan*> plans = graphs ? plans_of(nb::cast<nb::list>(solver)) : std::vector<const Plan*>();
  require(fits(drop_x, N) && fits(drop_z, K) && z_lengths.size() == B && x_lengths.size() == B && value.size() == B &&
              (!graphs || plans.size() == B),
          "the parts of the batch do not fit");
  require(!grad_match || (grad_x && grad_z && fits(*grad_match, K) && grad_match->shape(2) == N && fits(*grad_x, N) &&
                          fits(*grad_z, K)),
          "nowhere to put the derivatives");
  require((!charges || fits(*charges, charge_count)) && (!grad_charges || fits(*grad_charges, charge_count)),
          "charges do not fit the batch");
  for (std::size_t b = 0; b < B; ++b)
    require(z_lengths(b) >= (graphs ? plans[b]->rows : 1) && std::size_t(z_lengths(b)) <= K && x_lengths(b) > 0 &&
                std::size_t(x_lengths(b)) <= N,
            "lengths do not fit the batch");
  const Threads crew = Threads::of_torch(threads);
  parallel(std::int64_t(B), crew, nb::none(), std::int64_t(B), [&](std::int64_t b, const Alive& alive) {
    Problem<T> problem{table, int(z_lengths(b)), int(x_lengths(b)), Reducer(reducer), gamma, Want::value, budget};
    problem.match = match.data() + b * match.stride(0);
    problem.row = match.stride(1);
    problem.column = match.stride(2);
    problem.drop_x = drop_x.data() + b * N;
    problem.drop_z = drop_z.data() + b * K;
    if (charges) std::copy_n(charges->data() + b * charge_count, charge_count, problem.charges);
    problem.tick = alive.tick;
    problem.self = alive.self;
    std::optional<Path> path;
    if (grad_match) {
      problem.grad_match = grad_match->data() + b * K * N;
      problem.grad_row = N;
      problem.grad_x = grad_x->data() + b * N;
      problem.grad_z = grad_z->data() + b * K;
      problem.want = problem.reducer == Reducer::hard && !graphs ? Want::trace : Want::gradient;
      if (problem.want == Want::trace) path.emplace(problem);
    }
    const Status status = graphs ? solve_on_graph(*plans[b], problem, alive) : solve_exactly(problem);
    if (status == Status::no_memory) throw std::bad_alloc();
    if (status == Status::stopped) return std::int64_t(0);
    value.data()[b] = problem.value;
    for (int step = 0; step < problem.path_length; ++step) {  // the derivative of the hard minimum is its alignment
      const int i = problem.path_i[step], j = problem.path_j[step], plus = problem.path_cost[step] >> 2;
      const Cost cost = problem.pays(step);
      if (cost == Cost::match) problem.grad_match[i * problem.grad_row + j] = T(problem.path_weight[step]);
      if (cost == Cost::drop_x) problem.grad_x[j] += 1;
      if (cost == Cost::drop_z) problem.grad_z[i] += 1;
      if (plus > 0) problem.grad_charges[plus - 1] += 1;
    }
    if (grad_charges)
      for (int c = 0; c < charge_count; ++c) grad_charges->data()[b * charge_count + c] = T(problem.grad_charges[c]);
    return std::int64_t(1);
  });
}

}  // namespace dropdtw

NB_MODULE(_cpp, module) {
  using namespace dropdtw;
  using nb::arg;
  nb::set_leak_warnings(false);  // caches in Python keep doors, tables and plans until the process ends
  module.attr("instruction_set") = instruction_set().c_str();
  module.attr("levels") = DROPDTW_LEVELS;  // those with unrolled kernels
  module.attr("tables") = tables_key;
  module.attr("unrolled") = kernels<float>().family != nullptr;
  const auto define_solve = [&](auto function) {
    module.def(
        "solve", function, arg("table"), arg("reducer"), arg("gamma"), arg("want"), arg("budget"), arg("K"), arg("N"),
        arg("match").noconvert().none(), arg("strips").none(), arg("strip_width"), arg("z").noconvert().none(),
        arg("x").noconvert().none(), arg("metric"), arg("table_of_costs").noconvert().none(), arg("drop_x").noconvert(),
        arg("drop_z").noconvert(), arg("charges"), arg("limit"), arg("least"), arg("band_start").noconvert().none(),
        arg("band_stop").noconvert().none(), arg("grad_match").noconvert().none(), arg("grad_x").noconvert().none(),
        arg("grad_z").noconvert().none(), arg("path_i").noconvert().none(), arg("path_j").noconvert().none(),
        arg("path_cost").noconvert().none(), arg("path_weight").noconvert().none(), arg("cells").noconvert().none());
  };
  define_solve(&solve_one<float>);
  define_solve(&solve_one<double>);
  const auto define_batch = [&](auto function) {
    module.def("batch", function, arg("solver"), arg("reducer"), arg("gamma"), arg("budget"), arg("match").noconvert(),
               arg("drop_x").noconvert(), arg("drop_z").noconvert(), arg("z_lengths").noconvert(),
               arg("x_lengths").noconvert(), arg("threads"), arg("value").noconvert(),
               arg("grad_match").noconvert().none(), arg("grad_x").noconvert().none(), arg("grad_z").noconvert().none(),
               arg("charges").noconvert().none(), arg("grad_charges").noconvert().none());
  };
  define_batch(&batch<float>);
  define_batch(&batch<double>);
  define_tables(module);
  define_graphs(module);
  define_scan(module);
  define_costs(module);
  define_pairs(module);
  define_speech(module);
  nb::class_<QuickRequest>(module, "QuickRequest")
      .def(
          "__init__",
          [](QuickRequest* request, const OwnedTable& table, bool transposed, int numbers, int vectors, double drop_x,
             double drop_z, Charges charges) {
            new (request) QuickRequest{&*table, transposed, Metric(numbers), Metric(vectors), drop_x, drop_z, {}};
            std::copy(charges.begin(), charges.end(), request->charges);
          },
          nb::keep_alive<1, 2>())
      .def("value", &quick_value<double>, arg("Z").noconvert(), arg("X").noconvert(), arg("limit"))
      .def("value", &quick_value<float>, arg("Z").noconvert(), arg("X").noconvert(), arg("limit"))
      .def("path", &quick_path<double>, arg("Z").noconvert(), arg("X").noconvert(), arg("out").noconvert())
      .def("path", &quick_path<float>, arg("Z").noconvert(), arg("X").noconvert(), arg("out").noconvert());
}
