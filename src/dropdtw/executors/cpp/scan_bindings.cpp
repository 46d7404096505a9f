// The part of the Python module that finds occurrences, one strip of columns at a time.
#include "scan_bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "scan.hpp"
#include "table_bindings.hpp"
#include "tables.hpp"

namespace dropdtw {

DROPDTW_CHOOSE(ScanKernel, scan_kernel)

namespace {

bool answer_signals(void*) {
  nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() == 0;
}

template <class T>
void scan(const OwnedTable& table, std::optional<Matrix<T>> match, std::optional<Rows<T>> z, std::optional<Rows<T>> x,
          int metric, Vector<T> drop_x, Vector<T> drop_z, Charges charges, std::int64_t offset, OutMatrix<T> values,
          OutMatrix<std::int64_t> begins, Out<T> cost, Out<std::int64_t> begin) {
  const int K = int(drop_z.size()), N = int(drop_x.size());
  constexpr std::size_t S = occurrence::states;
  const std::size_t rows = std::size_t(K) + 1;
  require(K > 0 && N > 0 && cost.size() == std::size_t(N) && begin.size() == std::size_t(N), "results do not fit");
  require(values.shape(0) == S && values.shape(1) == rows && begins.shape(0) == S && begins.shape(1) == rows,
          "states do not fit");
  require(table->states == int(S), "no table of occurrences");
  ScanProblem<T> problem{&*table, K, N};
  if (match) {
    require(int(match->shape(0)) == K && int(match->shape(1)) == N, "match costs do not fit K and N");
    problem.match = match->data();
    problem.row = match->stride(0);
    problem.column = match->stride(1);
  } else {
    require(z && x && int(z->shape(0)) == K && int(x->shape(0)) == N && z->shape(1) == x->shape(1), "no match costs");
    require(metric == int(Metric::sqeuclidean) || metric == int(Metric::euclidean), "no such metric");
    problem.metric = Metric(metric);
    problem.z = z->data();
    problem.x = x->data();
    problem.d = int(z->shape(1));
  }
  problem.drop_x = drop_x.data();
  problem.drop_z = drop_z.data();
  std::copy(charges.begin(), charges.end(), problem.charges);
  problem.offset = offset;
  problem.values = values.data();
  problem.begins = begins.data();
  problem.cost = cost.data();
  problem.begin = begin.data();
  problem.tick = answer_signals;
  Status status;
  {
    nb::gil_scoped_release free;
    status = scan_kernel<T>().scan(problem);
  }
  if (status == Status::no_memory) throw std::bad_alloc();
  if (status == Status::stopped) throw nb::python_error();
}

}  // namespace

void define_scan(nb::module_& module) {
  using nb::arg;
  const auto define = [&](auto function) {
    module.def("scan", function, arg("table"), arg("match").noconvert().none(), arg("z").noconvert().none(),
               arg("x").noconvert().none(), arg("metric"), arg("drop_x").noconvert(), arg("drop_z").noconvert(),
               arg("charges"), arg("offset"), arg("values").noconvert(), arg("begins").noconvert(),
               arg("cost").noconvert(), arg("begin").noconvert());
  };
  define(&scan<float>);
  define(&scan<double>);
}

}  // namespace dropdtw
