// A graph combined with a table, as kernels take it (see orders/graph.py). Plain data: it is passed between code
// compiled for different instruction sets.
//
// Nodes are renumbered to places, in an order that respects their dependencies. `slice` neighboring places form one or
// more vectors; unused places of a slice belong to no node and stay at ∞. A chunk is a few slices that do not depend on
// each other. The arcs into a chunk are stored in slices as well: an entry holds the place that an arc comes from, and
// the k-th arcs into the nodes of a slice are contiguous.
#pragma once
#include <cstddef>
#include <cstdint>

#include "edge.hpp"
#include "problem.hpp"

namespace dropdtw {

inline constexpr int slice = 16;
inline constexpr int chunk_places = 256;  // at most

// The uses of an arc, in the order of the bits in orders/graph.py.
enum Use { use_new, use_other, use_same, use_drop, use_again, use_pass };
inline constexpr int use_count = 6;
constexpr bool consumes(int use) { return use == use_new || use == use_other || use == use_again; }

// The arcs of one use that lead into a chunk.
struct Take {
  std::int32_t count = 0;  // the number of entries; 0 if there are none
  bool single = false;     // one entry per place
  bool neighbors = false;  // the entries are consecutive places, without costs
  bool costs = false;      // some cost is not 0
  std::int32_t ends = 0;   // where its slices begin in Plan::ends, which count entries from `begin`
  std::int64_t begin = 0;  // the index of its first entry
};

struct Chunk {
  std::int32_t begin, end;  // its places, [begin, end)
  bool hub;
  Take takes[use_count];
};

// A state that some edges read along arcs of one use.
struct Source {
  std::int32_t use, state;
};

// An edge into a state. It reads a Source, or, if `source` is −1, a state of its own node.
struct Way {
  std::int32_t source, state;
  bool left;  // whether an edge within a node reads the previous column
  Cost cost;
  Plus plus;
  double weight;
};

struct Plan {
  std::int32_t states, rows, places, arc_count;
  std::int32_t stride;        // places, plus one slice that stays at ∞
  const std::int32_t* label;  // of each place: a row of Z, or `rows` if none
  const Chunk* chunks;
  std::int32_t chunk_count;
  const std::int32_t* chunk_of;  // of each slice
  const std::int32_t* entries;   // places
  const std::int32_t* arcs;      // of each entry: its number, −1 if none
  const double* costs;           // of each entry
  std::int64_t entry_count;
  const std::int32_t* ends;      // of the slices of entries
  std::int32_t most[use_count];  // the maximum number of entries of a chunk
  const Way* ways;               // sorted by the state that they enter
  const std::int32_t* ways_end;  // of each state
  std::int32_t way_count;
  const Source* sources;
  std::int32_t source_count;
  const std::int32_t* passed;  // states that hubs need
  std::int32_t passed_count;
  std::int32_t start;  // a place
  const std::int32_t* start_states;
  std::int32_t start_count;
  const std::int32_t* finals;  // places
  std::int32_t finals_count;
  const std::int32_t* final_states;
  std::int32_t final_count;
};

// One step of a path, listed from end to start; way −1 passes through a hub.
struct Step {
  std::int32_t way, label, j, arc;
};

template <class T>
struct GraphProblem {
  const Plan* plan;
  int N;
  Reducer reducer;
  double gamma;
  Want want;
  std::size_t budget;  // bytes for stored columns; beyond that, some are recomputed
  const T* match;      // (rows, N), with strides in elements
  std::ptrdiff_t row, column;
  const T *drop_x, *drop_z;
  double charges[charge_count] = {};

  bool (*tick)(void* self) = nullptr;                    // called periodically; false stops the work
  void (*step)(void* self, const Step& step) = nullptr;  // receives each step of the path
  void* self = nullptr;
  void* work = nullptr;  // scratch of `bytes` bytes (see GraphKernel), aligned to 64

  double value = 0;
  // Derivatives, zeroed by the caller; grad_arcs may be null.
  T *grad_match = nullptr, *grad_x = nullptr, *grad_z = nullptr, *grad_arcs = nullptr;
  std::ptrdiff_t grad_row = 0;
  double grad_charges[charge_count] = {};
};

template <class T>
struct GraphKernel {
  std::size_t (*bytes)(const GraphProblem<T>&);
  Status (*solve)(GraphProblem<T>&);
};

}  // namespace dropdtw
