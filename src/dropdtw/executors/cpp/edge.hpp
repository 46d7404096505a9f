// The parts of a table; table.py explains moves, costs, weights and charges.
#pragma once

namespace dropdtw {

enum class Move { diag, left, top, same };
enum class Cost { match, drop_x, drop_z, free };
enum class Plus { none, open_x, open_z, warp };

inline constexpr int charge_count = 3;  // the entries of Plus after `none`

struct Edge {
  int src, dst;
  Move move;
  Cost cost;
  bool optional;  // only some members of the family have this edge: its bit in the mask decides
  double weight = 1;
  Plus plus = Plus::none;
};

// Whether some edge has a weight or a charge.
template <int n>
constexpr bool extended(const Edge (&edges)[n]) {
  for (const Edge& e : edges)
    if (e.weight != 1 || e.plus != Plus::none) return true;
  return false;
}

}  // namespace dropdtw
