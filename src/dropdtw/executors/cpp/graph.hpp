// A graph under a table as kernels take it (see orders/graph.py). Plain data: it crosses between code compiled for
// different instruction sets.
//
// Nodes are renumbered to places, in an order in which nothing is needed before it is there. `slice` neighbouring
// places are one or more vectors; what is left over in a slice belongs to no node and stays at ∞. A chunk is a few
// slices that need not wait for each other. What leads into it lies in slices as well: an entry holds the place it
// comes from, and the k-th ways into the nodes of a slice lie beside each other.
#pragma once
#include <cstddef>
#include <cstdint>

#include "edge.hpp"
#include "problem.hpp"

namespace dropdtw {

inline constexpr int slice = 16;
inline constexpr int chunk_places = 256;  // at most

// What an arc is taken for, in the order of the bits in orders/graph.py.
enum Use { use_new, use_other, use_same, use_drop, use_again, use_pass };
inline constexpr int use_count = 6;
constexpr bool consumes(int use) { return use == use_new || use == use_other || use == use_again; }

// The arcs of one use that lead into a chunk.
struct Take {
  std::int32_t count = 0;   // how many entries; 0: there are none
  bool single = false;      // one for each place
  bool neighbours = false;  // the entries are places one after the other, and cost nothing
  bool costs = false;       // some cost is not 0
  std::int32_t ends = 0;    // where the ends of its slices begin, counted in entries from `begin`
  std::int64_t begin = 0;   // where its entries begin
};

struct Chunk {
  std::int32_t begin, end;  // its places
  bool hub;
  Take takes[use_count];
};

// A state that some edges bring along arcs of one use.
struct Source {
  std::int32_t use, state;
};

// An edge into a state: the Source it reads, or −1 and the state of its own node that it comes from.
struct Way {
  std::int32_t source, state;
  bool left;  // from the column before, where it stays in its node
  Cost cost;
  Plus plus;
  double weight;
};

struct Plan {
  std::int32_t states, rows, places, arc_count;
  std::int32_t stride;        // places, and a slice that is nowhere, at ∞
  const std::int32_t* label;  // of each place: a row of Z, or `rows` for none
  const Chunk* chunks;
  std::int32_t chunk_count;
  const std::int32_t* chunk_of;  // of each slice
  const std::int32_t* entries;   // places
  const std::int32_t* arcs;      // of each entry: its number, −1 for none
  const double* costs;           // of each entry
  std::int64_t entry_count;
  const std::int32_t* ends;      // of slices of entries
  std::int32_t most[use_count];  // entries of a chunk
  const Way* ways;               // by the state that they enter
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

// One step of a path, from the end to the start: way −1 passes through a hub.
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
  std::size_t budget;  // bytes for stored columns; beyond it some are computed again
  const T* match;      // (rows, N), with strides in elements
  std::ptrdiff_t row, column;
  const T *drop_x, *drop_z;
  double charges[charge_count] = {};

  bool (*tick)(void* self) = nullptr;                    // called now and then; false stops the work
  void (*step)(void* self, const Step& step) = nullptr;  // takes the path
  void* self = nullptr;
  void* work = nullptr;  // as many bytes as `bytes` says, aligned to 64

  double value = 0;
  // Derivatives, zeroed by the caller; those by arcs only where there is room for them.
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
