// The part of the Python module for tables.
#include "table_bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "tables.hpp"

namespace dropdtw {

void OwnedTable::Part::read(const Rows<std::int32_t>& rows, const Vector<double>& weights, int states) {
  require(rows.shape(1) == 5 && weights.size() == rows.shape(0), "edges need five numbers and a weight");
  ends.assign(states, 0);
  for (std::size_t k = 0; k < rows.shape(0); ++k) {
    const std::int32_t* const row = rows.data() + 5 * k;
    require(row[0] >= 0 && row[0] < states && row[1] >= 0 && row[1] < states, "no such state");
    require(row[2] >= 0 && row[2] < 4 && row[3] >= 0 && row[3] < 4 && row[4] >= 0 && row[4] <= charge_count,
            "no such move, cost or charge");
    require(edges.empty() || edges.back().dst <= row[1], "edges are not sorted");
    require(Move(row[2]) != Move::same || row[0] < row[1], "an edge within a cell leads to a later state");
    edges.push_back({row[0], row[1], Move(row[2]), Cost(row[3]), false, weights.data()[k], Plus(row[4])});
    ++ends[row[1]];
  }
  require(std::all_of(ends.begin(), ends.end(), [](int n) { return n <= 256; }), "too many edges into a state");
}

OwnedTable::OwnedTable(int family, unsigned mask, bool built_in, const Rows<std::int32_t>& edges,
                       const Vector<double>& weights, const std::optional<Rows<std::int32_t>>& border,
                       const std::optional<Vector<double>>& border_weights, const Vector<bool>& start,
                       const Vector<std::int32_t>& final) {
  const int states = int(start.size());
  require(family >= -1 && family < family_count && states > 0 && final.size() > 0, "no such family, or no states");
  main_.read(edges, weights, states);
  table_.most_edges = *std::max_element(main_.ends.begin(), main_.ends.end());
  if (border) {
    require(bool(border_weights), "edges of the border need weights");
    border_.read(*border, *border_weights, states);
    table_.most_edges = std::max(table_.most_edges, *std::max_element(border_.ends.begin(), border_.ends.end()));
  }
  for (Part* part : {&main_, &border_})
    for (std::size_t s = 1; s < part->ends.size(); ++s) part->ends[s] += part->ends[s - 1];
  start_ = std::make_unique<bool[]>(states);
  std::copy_n(start.data(), states, start_.get());
  for (std::size_t k = 0; k < final.size(); ++k) {
    require(final.data()[k] >= 0 && final.data()[k] < states, "no such state");
    final_.push_back(final.data()[k]);
  }
  table_.family = family;
  table_.mask = mask;
  table_.built_in = built_in;
  table_.states = states;
  table_.edges = main_.edges.data();
  table_.ends = main_.ends.data();
  table_.border = border ? border_.edges.data() : nullptr;
  table_.border_ends = border ? border_.ends.data() : nullptr;
  table_.start = start_.get();
  table_.final = final_.data();
  table_.final_count = int(final_.size());
}

void define_tables(nb::module_& module) {
  using nb::arg;
  nb::class_<OwnedTable>(module, "Table")
      .def(nb::init<int, unsigned, bool, const Rows<std::int32_t>&, const Vector<double>&,
                    const std::optional<Rows<std::int32_t>>&, const std::optional<Vector<double>>&, const Vector<bool>&,
                    const Vector<std::int32_t>&>(),
           arg("family"), arg("mask"), arg("built_in"), arg("edges").noconvert(), arg("weights").noconvert(),
           arg("border").none(), arg("border_weights").none(), arg("start").noconvert(), arg("final").noconvert());
}

}  // namespace dropdtw
