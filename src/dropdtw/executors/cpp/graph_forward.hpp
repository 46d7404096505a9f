// A table evaluated over a graph, column by column, for any plan that arrives at run time.
//
// Nodes are processed in chunks. First the values that lead into a chunk are gathered into scratch that stays in the L1
// cache; then each edge of the table is one short vector loop.
#pragma once
#include <cmath>

#include "fold.hpp"
#include "graph.hpp"

namespace dropdtw::DROPDTW_ISA {

// Hands out pieces of a block of memory; without a block, it only counts bytes.
class Arena {
 public:
  explicit Arena(void* begin) : begin_(static_cast<char*>(begin)) {}
  template <class T>
  T* piece(std::size_t n) {
    const std::size_t at = used_;
    used_ += (n * sizeof(T) + 63) / 64 * 64;
    return begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
  }
  std::size_t used() const { return used_; }

 private:
  char* begin_;
  std::size_t used_ = 0;
};

template <class T>
DROPDTW_INLINE void fill(T* out, std::size_t n, T x) {
  for (std::size_t k = 0; k < n; ++k) out[k] = x;
}

template <class T, Reducer R>
class GraphForward {
  static constexpr int W = Register<T>::W;
  using V = Vec<T>;

 public:
  explicit GraphForward(GraphProblem<T>& problem) : p(problem), plan(*problem.plan), fold(problem.gamma) {
    Arena arena(problem.work);
    const std::size_t column = std::size_t(plan.states) * plan.stride;
    // Keeps all columns if they fit the budget; otherwise some, from which the others are recomputed.
    length = p.N;
    if (p.want == Want::value)
      length = 1;
    else if ((std::size_t(p.N) + 1) * column * sizeof(T) > p.budget)
      length = larger(1, int(std::sqrt(double(p.N))));
    segments = (p.N + length - 1) / length;
    size = column;
    nowhere = arena.piece<T>(column + most_shuffled * W);
    kept = arena.piece<T>(column * (length + 1) + most_shuffled * W);
    saved = arena.piece<T>(p.want == Want::value ? 0 : column * segments);
    priced_z = arena.piece<T>(plan.stride);
    prices = arena.piece<T>(plan.rows + 1 + most_shuffled * W);
    price = arena.piece<T>(chunk_places);
    ways = arena.piece<T>(std::size_t(chunk_places) * larger(1, plan.way_count));
    at = arena.piece<const T*>(plan.source_count + 1);
    raw = arena.piece<T*>(plan.source_count + 1);
    for (int k = 0; k <= plan.source_count; ++k) {
      T* const there = arena.piece<T>(plan.most[k < plan.source_count ? plan.sources[k].use : use_pass] + chunk_places);
      if (problem.work != nullptr) raw[k] = there;
    }
    bytes = arena.used();
    rest = arena;
  }

  // Sets everything that does not change from column to column.
  void begin() {
    fill(nowhere, size, inf<T>);
    for (int k = 0; k < plan.places; ++k) priced_z[k] = plan.label[k] < plan.rows ? p.drop_z[plan.label[k]] : inf<T>;
    fill(prices, plan.rows + 1 + most_shuffled * W, inf<T>);
    for (int c = 0; c < charge_count; ++c) charges[c + 1] = T(p.charges[c]);
  }

  T* slot(int k) { return kept + k * size; }

  // Fills slots 1, 2, … with the columns of segment a; slot 0 gets the column before them. Returns false to stop.
  bool fill_segment(int a) {
    const int first = a * length, last = smaller(p.N, first + length);
    if (a == 0)
      enter(0, slot(0), nowhere);
    else
      std::memcpy(slot(0), saved + a * size, size * sizeof(T));
    for (int j = first + 1; j <= last; ++j) {
      if (!alive()) return false;
      enter(j, slot(j - first), slot(j - first - 1));
    }
    return true;
  }

  // Fills all segments and saves the column before each; the last segment stays in the slots.
  bool fill_all() {
    for (int a = 0; a < segments; ++a) {
      if (!fill_segment(a)) return false;
      if (a + 1 < segments) std::memcpy(saved + (a + 1) * size, slot(length), size * sizeof(T));
    }
    return true;
  }

  // The same for the value only: returns the last column, or null to stop.
  const T* fill_last() {
    enter(0, slot(0), nowhere);
    for (int j = 1; j <= p.N; ++j) {
      if (!alive()) return nullptr;
      enter(j, slot(j & 1), slot(~j & 1));
    }
    return slot(p.N & 1);
  }

  // Sets the prices of column j; column 0 has none.
  void price_column(int j) {
    paid_x = j == 0 ? inf<T> : p.drop_x[j - 1];
    const T* const from = p.match + (j - 1) * p.column;
    for (int i = 0; i < plan.rows; ++i) prices[i] = j == 0 ? inf<T> : from[i * p.row];
  }

  void enter(int j, T* here, const T* before) {
    price_column(j);
    for (int s = 0; s < plan.states; ++s) fill(here + std::size_t(s) * plan.stride + plan.places, slice, inf<T>);
    for (const Chunk* chunk = plan.chunks; chunk < plan.chunks + plan.chunk_count; ++chunk) {
      if (chunk->hub)
        enter_hubs(*chunk, here);
      else
        enter_nodes(*chunk, here, before);
      if (j == 0 && chunk->begin <= plan.start && plan.start < chunk->end)
        for (int k = 0; k < plan.start_count; ++k)
          here[std::size_t(plan.start_states[k]) * plan.stride + plan.start] = 0;
    }
  }

  DROPDTW_FLAT void enter_hubs(const Chunk& chunk, T* here) {
    const Take& take = chunk.takes[use_pass];
    for (int k = 0; k < plan.passed_count; ++k) {
      T* const states = here + std::size_t(plan.passed[k]) * plan.stride;
      T* const out = states + chunk.begin;
      if (take.count == 0) {
        fill(out, chunk.end - chunk.begin, inf<T>);
        continue;
      }
      const T* const found = fetch(chunk, take, states, raw[plan.source_count], out);
      if (found != out) std::memcpy(out, found, (chunk.end - chunk.begin) * sizeof(T));
    }
  }

  DROPDTW_FLAT void enter_nodes(const Chunk& chunk, T* here, const T* before) {
    const int n = chunk.end - chunk.begin;
    bring(chunk, here, before);
    for (int s = 0, w = 0; s < plan.states; ++s) {
      T* const out = here + std::size_t(s) * plan.stride + chunk.begin;
      int count = 0;
      for (; w < plan.ways_end[s]; ++w) {
        const T* const from = origin(chunk, plan.ways[w], here, before);
        if (from == nullptr) continue;
        if constexpr (R == Reducer::hard) {
          count++ == 0 ? pay<false>(chunk, plan.ways[w], from, n, out) : pay<true>(chunk, plan.ways[w], from, n, out);
        } else {
          pay<false>(chunk, plan.ways[w], from, n, ways + count++ * chunk_places);
        }
      }
      if (count == 0)
        fill(out, n, inf<T>);
      else if constexpr (R != Reducer::hard)
        fold.values(ways, chunk_places, count, n, out);
    }
  }

  // Gathers the inputs of a chunk: the prices of its nodes, and the values of each source (null if there are none).
  DROPDTW_INLINE void bring(const Chunk& chunk, const T* here, const T* before) {
    look_up(prices, plan.rows + 1, plan.label + chunk.begin, chunk.end - chunk.begin, price);
    for (int k = 0; k < plan.source_count; ++k) {
      const Source& source = plan.sources[k];
      const Take& take = chunk.takes[source.use];
      const T* const states = (consumes(source.use) ? before : here) + std::size_t(source.state) * plan.stride;
      at[k] = take.count == 0 ? nullptr : fetch(chunk, take, states, raw[k], raw[k] + plan.most[source.use]);
    }
  }

  // The values that arcs bring, reduced to one per node: in `out`, in `entries`, or in place.
  DROPDTW_INLINE const T* fetch(const Chunk& chunk, const Take& take, const T* states, T* entries, T* out) {
    const T* rows = entries;
    if (take.neighbors)
      rows = states + plan.entries[take.begin];
    else
      gather_entries(take, states, entries);
    if (take.single) return rows;
    const std::int32_t* const ends = plan.ends + take.ends;
    for (int k = 0, from = 0; k < (chunk.end - chunk.begin) / slice; from = ends[k++])
      fold.values(rows + from, slice, (ends[k] - from) / slice, slice, out + k * slice);
    return out;
  }

  DROPDTW_INLINE void gather_entries(const Take& take, const T* states, T* entries) {
    look_up(states, plan.stride, plan.entries + take.begin, take.count, entries);
    if (take.costs)
      for (int e = 0; e < take.count; ++e) entries[e] += T(plan.costs[take.begin + e]);
  }

  // The values that an edge starts from, before it pays; null if there are none.
  DROPDTW_INLINE const T* origin(const Chunk& chunk, const Way& way, const T* here, const T* before) {
    if (way.source >= 0) return at[way.source];
    return (way.left ? before : here) + std::size_t(way.state) * plan.stride + chunk.begin;
  }

  template <bool more>
  DROPDTW_INLINE void pay(const Chunk& chunk, const Way& way, const T* from, int n, T* out) {
    const T plus = way.plus == Plus::none ? T(0) : charges[int(way.plus)], weight = T(way.weight);
    const auto keep = [&](int i, V v) DROPDTW_INLINE_LAMBDA {
      if constexpr (more) v = least<T>(v, load<T>(out + i));
      store<T>(out + i, v);
    };
    if (way.cost == Cost::match || way.cost == Cost::drop_z) {
      const T* const paid = way.cost == Cost::match ? price : priced_z + chunk.begin;
      for (int i = 0; i < n; i += W) keep(i, (load<T>(from + i) + plus) + rounded<T>(load<T>(paid + i) * weight));
    } else {
      const V paid = rounded<T>(all<T>(way.cost == Cost::drop_x ? paid_x * weight : T(0)));
      for (int i = 0; i < n; i += W) keep(i, (load<T>(from + i) + plus) + paid);
    }
  }

  bool alive() {
    worked += plan.places;
    if (worked < 1 << 22 || p.tick == nullptr) return true;
    worked = 0;
    return p.tick(p.self);
  }

  GraphProblem<T>& p;
  const Plan& plan;
  const Fold<T, R> fold;
  int length, segments;
  std::size_t size, bytes;
  T *nowhere, *kept, *saved, *priced_z, *prices, *price, *ways;
  const T** at;
  T** raw;
  T charges[charge_count + 1] = {};
  T paid_x = 0;
  std::int64_t worked = 0;
  Arena rest{nullptr};
};

}  // namespace dropdtw::DROPDTW_ISA
