// What a table is made of; see table.py for what moves, costs, weights and charges mean.
#pragma once

namespace dropdtw {

enum class Move { diag, left, top, same };
enum class Cost { match, drop_x, drop_z, free };
enum class Plus { none, open_x, open_z, warp };

inline constexpr int charge_count = 3;  // what Plus names, after `none`

struct Edge {
  int src, dst;
  Move move;
  Cost cost;
  bool optional;  // some members of the family lack this edge: its bit in the mask decides
  double weight = 1;
  Plus plus = Plus::none;
};

// Whether some edge weighs its cost, or charges.
template <int n>
constexpr bool extended(const Edge (&edges)[n]) {
  for (const Edge& e : edges)
    if (e.weight != 1 || e.plus != Plus::none) return true;
  return false;
}

}  // namespace dropdtw
