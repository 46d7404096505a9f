// The part of the Python module that computes match costs.
#include "costs_bindings.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "arrays.hpp"
#include "costs.hpp"
#include "dispatch.hpp"
#include "parallel.hpp"
#include "workspace.hpp"

namespace dropdtw {

DROPDTW_CHOOSE(CostsKernel, costs_kernel)

namespace {

// Computes all of C in tasks of a few milliseconds, so that threads share the work and Ctrl-C is handled promptly.
template <class T>
void match_costs(int metric, Rows<T> z, Rows<T> x, std::optional<Vector<T>> scale, int threads, OutMatrix<T> out) {
  const std::size_t K = z.shape(0), N = x.shape(0), d = z.shape(1);
  require(metric > 0 && metric <= int(Metric::cosine) && threads > 0, "no such metric, or no threads");
  require(x.shape(1) == d && out.shape(0) == K && out.shape(1) == N && (!scale || scale->size() == N),
          "sequences and result do not fit");
  const CostsKernel<T> kernel = costs_kernel<T>();
  const CostsProblem<T> problem{
      Metric(metric), int(K), int(N), int(d), z.data(), x.data(), scale ? scale->data() : nullptr, out.data()};
  constexpr std::size_t enough = std::size_t(1) << 26;  // products per task
  const std::size_t panels = std::max<std::size_t>(1, enough / (std::max<std::size_t>(1, K * d) * kernel.width));
  const int width = int(std::min<std::size_t>(panels * kernel.width, N + kernel.width));
  const auto task = [&](std::int64_t number, const Alive&) {
    const Workspace panel((d + 1) * kernel.width * sizeof(T));
    const int from = int(number) * width;
    kernel.columns(problem, from, std::min(int(N), from + width), static_cast<T*>(panel.get()));
    return std::int64_t(1);
  };
  const std::int64_t count = (std::int64_t(N) + width - 1) / width;
  if (count == 1) {
    nb::gil_scoped_release free;
    task(0, {});
  } else {
    parallel(count, threads, nb::none(), count, task);
  }
}

template <class T>
void row_lengths(Rows<T> rows, Out<T> out) {
  require(out.size() == rows.shape(0), "one length for each row");
  nb::gil_scoped_release free;
  costs_kernel<T>().lengths(rows.data(), rows.shape(0), int(rows.shape(1)), out.data());
}

}  // namespace

void define_costs(nb::module_& module) {
  using nb::arg;
  const auto define = [&](auto function) {
    module.def("match_costs", function, arg("metric"), arg("z").noconvert(), arg("x").noconvert(),
               arg("scale").noconvert().none(), arg("threads"), arg("out").noconvert());
  };
  define(&match_costs<float>);
  define(&match_costs<double>);
  module.def("row_lengths", &row_lengths<float>, arg("rows").noconvert(), arg("out").noconvert());
  module.def("row_lengths", &row_lengths<double>, arg("rows").noconvert(), arg("out").noconvert());
}

}  // namespace dropdtw
