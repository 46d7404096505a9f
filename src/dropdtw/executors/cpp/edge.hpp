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

// A table as kernels take it. Plain data: it is passed between code compiled for different instruction sets. Edges are
// listed by the state that they lead into, in tie order: those into state s end before edges[ends[s]].
struct Table {
  int family = -1;        // the number of its unrolled kernels (emit.py); −1 if it has none
  unsigned mask = 0;      // its edges among those of the family
  bool built_in = false;  // bounds on the rest (lower_bound.hpp) and narrow bands (block.hpp) are only valid for these
  int states = 0, most_edges = 0, final_count = 0;
  const Edge *edges = nullptr, *border = nullptr;     // with a border, row 0 and column 0 have edges of their own
  const int *ends = nullptr, *border_ends = nullptr;  // null if there is no border
  const bool* start = nullptr;                        // the states of cell (0, 0)
  const int* final = nullptr;

  const Edge* begin() const { return edges; }
  const Edge* end() const { return edges + ends[states - 1]; }
};

}  // namespace dropdtw
