// A table in the Python module: owns what a Table points to.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "arrays.hpp"

namespace dropdtw {

class OwnedTable {
 public:
  // Edges are rows of (src, dst, Move, Cost, Plus), sorted by dst.
  OwnedTable(int family, unsigned mask, bool built_in, const Rows<std::int32_t>& edges, const Vector<double>& weights,
             const std::optional<Rows<std::int32_t>>& border, const std::optional<Vector<double>>& border_weights,
             const Vector<bool>& start, const Vector<std::int32_t>& final);
  OwnedTable(const OwnedTable&) = delete;
  OwnedTable& operator=(const OwnedTable&) = delete;

  const Table& operator*() const { return table_; }
  const Table* operator->() const { return &table_; }

 private:
  struct Part {
    std::vector<Edge> edges;
    std::vector<int> ends;
    void read(const Rows<std::int32_t>& rows, const Vector<double>& weights, int states);
  };
  Part main_, border_;
  std::unique_ptr<bool[]> start_;
  std::vector<int> final_;
  Table table_;
};

void define_tables(nb::module_& module);

}  // namespace dropdtw
