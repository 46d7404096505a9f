// What a table is made of; see recurrence.py for what moves and costs mean.
#pragma once

namespace dropdtw {

enum class Move { diag, left, top, same };
enum class Cost { match, drop_x, drop_z, free };

struct Edge {
  int src, dst;
  Move move;
  Cost cost;
  bool optional;  // some members of the family lack this edge: its bit in the mask decides
};

}  // namespace dropdtw
