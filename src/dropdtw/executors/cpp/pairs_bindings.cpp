// The part of the Python module for all pairs of two lists of sequences.
#include "pairs_bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "pairs.hpp"
#include "table_bindings.hpp"

namespace dropdtw {

// As Python passes them: (source, number, one number per element), (low, high, inclusive, threshold), (size, share)
template <class T>
using PriceOf = std::tuple<int, double, std::optional<Vector<T>>>;
template <class T>
using BinaryOf = std::optional<std::tuple<double, double, bool, PriceOf<T>>>;
template <class T>
using Scale = std::optional<Vector<T>>;
using WindowOf = std::optional<std::tuple<double, bool>>;

template <class T>
Price<T> price_of(const PriceOf<T>& given, const Sequences<T>& elements) {
  const auto& [source, number, each] = given;
  require(source >= 0 && source <= int(Source::suggest), "no such price");
  const Price<T> price{Source(source), number, each ? each->data() : nullptr};
  if (price.source == Source::each)
    for (int i = 0; i < elements.count; ++i)
      require(each && elements.length(i) == int(each->size()), "one price per element does not fit the sequences");
  return price;
}

template <class T>
Sequences<T> sequences_of(const Rows<T>& rows, const Vector<std::int64_t>& ends, const Scale<T>& scale) {
  const int count = int(ends.size());
  require(count > 0 && ends.data()[count - 1] == std::int64_t(rows.shape(0)), "ends do not fit the sequences");
  require(!scale || scale->size() == rows.shape(0), "scale does not fit the sequences");
  return {rows.data(), ends.data(), scale ? scale->data() : nullptr, count, int(rows.shape(1))};
}

template <class T>
nb::tuple pairwise(const OwnedTable& table, bool transposed, int reducer, double gamma, int metric, Rows<T> zs,
                   Vector<std::int64_t> z_ends, Scale<T> z_scale, Rows<T> xs, Vector<std::int64_t> x_ends,
                   Scale<T> x_scale, PriceOf<T> drop_x, PriceOf<T> drop_z, BinaryOf<T> binary, Charges charges,
                   std::tuple<bool, bool> suggests, bool greedy, WindowOf window, double limit, bool once, int threads,
                   nb::object progress, OutMatrix<double> out) {
  require(reducer >= 0 && reducer <= 2, "no such reducer");
  require(metric > 0 && metric <= int(Metric::cosine), "no such metric");
  Pairs<T> pairs{};
  pairs.table = &*table;
  pairs.transposed = transposed;
  pairs.reducer = Reducer(reducer);
  pairs.gamma = gamma;
  pairs.metric = Metric(metric);
  pairs.zs = sequences_of<T>(zs, z_ends, z_scale);
  pairs.xs = sequences_of<T>(xs, x_ends, x_scale);
  require(pairs.metric != Metric::cosine || bool(z_scale) != bool(x_scale), "cosine needs one scale");
  require(pairs.zs.d == pairs.xs.d && int(out.shape(0)) == pairs.zs.count && int(out.shape(1)) == pairs.xs.count &&
              threads > 0 && (!once || pairs.zs.count == pairs.xs.count),
          "sequences and result do not fit");
  pairs.drop_x = price_of<T>(drop_x, pairs.xs);
  pairs.drop_z = price_of<T>(drop_z, pairs.zs);
  if (binary) {
    const auto& [low, high, inclusive, threshold] = *binary;
    pairs.binary = Binary<T>{T(low), T(high), inclusive, price_of<T>(threshold, pairs.xs)};
  }
  std::copy(charges.begin(), charges.end(), pairs.charges);
  std::tie(pairs.suggests_x, pairs.suggests_z) = suggests;
  pairs.greedy = greedy;
  if (window) pairs.window = Window{std::get<0>(*window), std::get<1>(*window)};
  pairs.limit = limit;
  pairs.once = once;
  pairs.out = out.data();
  const GivenUp found = solve_pairs(pairs, threads, progress);
  return nb::make_tuple(found.pairs, found.cells);
}

void define_pairs(nb::module_& module) {
  using nb::arg;
  const auto define = [&](auto function) {
    module.def("pairwise", function, arg("table"), arg("transposed"), arg("reducer"), arg("gamma"), arg("metric"),
               arg("zs").noconvert(), arg("z_ends").noconvert(), arg("z_scale").noconvert().none(),
               arg("xs").noconvert(), arg("x_ends").noconvert(), arg("x_scale").noconvert().none(), arg("drop_x"),
               arg("drop_z"), arg("binary").none(), arg("charges"), arg("suggests"), arg("greedy"),
               arg("window").none(), arg("limit"), arg("once"), arg("threads"), arg("progress").none(),
               arg("out").noconvert());
  };
  define(&pairwise<float>);
  define(&pairwise<double>);
}

}  // namespace dropdtw
