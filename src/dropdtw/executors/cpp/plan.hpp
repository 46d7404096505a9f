// Builds the plan of a graph with a table: places, chunks and entries (graph.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace dropdtw {

// A graph as Python passes it. Arcs are in tie-breaking order; a node depends only on nodes of lower `level`.
struct GraphArrays {
  std::span<const std::int64_t> label, level, source, target, use, finals;
  std::span<const bool> hub, again;
  std::span<const double> cost;
  int start;
};

// A table: edges (E, 6), each with source state, target state, use (−1 if none), left, cost and charge; and their
// weights.
struct TableArrays {
  int states;
  std::span<const std::int32_t> edges;
  std::span<const double> weights;
  std::span<const std::int32_t> starts, finals;
};

// A plan and the memory that it points to.
class GraphPlan {
 public:
  GraphPlan(const GraphArrays& graph, const TableArrays& table) : graph_(graph), table_(table) {
    check();
    set_ways();
    collect();
    set_places();
    set_chunks();
    finish();
  }

  GraphPlan(const GraphPlan&) = delete;
  GraphPlan& operator=(const GraphPlan&) = delete;

  const Plan& plan() const { return plan_; }

 private:
  static constexpr int most_entries = 4096;  // per chunk, unless a single slice has more

  static void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
  }

  void check() const {
    const std::size_t V = graph_.label.size(), A = graph_.source.size();
    const auto inside = [](auto values, std::int64_t low, std::int64_t high) {
      return std::all_of(values.begin(), values.end(), [&](auto v) { return v >= low && v < high; });
    };
    require(V > 0 && V < 1 << 24 && A < 1 << 28, "the graph is empty, or too large");
    require(graph_.level.size() == V && graph_.hub.size() == V && graph_.again.size() == V, "nodes do not fit");
    require(graph_.target.size() == A && graph_.use.size() == A && graph_.cost.size() == A, "arcs do not fit");
    require(inside(graph_.label, -1, 1 << 24) && inside(graph_.level, 0, std::int64_t(V)), "no such label or level");
    require(inside(graph_.source, 0, V) && inside(graph_.target, 0, V) && inside(graph_.finals, 0, V) &&
                graph_.start >= 0 && std::size_t(graph_.start) < V,
            "no such node");
    const int S = table_.states;
    require(S > 0 && table_.edges.size() == 6 * table_.weights.size(), "edges do not fit");
    require(inside(table_.starts, 0, S) && inside(table_.finals, 0, S), "no such state");
    for (std::size_t e = 0; e < table_.weights.size(); ++e) {
      const std::int32_t* const edge = &table_.edges[6 * e];
      require(edge[0] >= 0 && edge[0] < S && edge[1] >= 0 && edge[1] < S && edge[2] >= -1 && edge[2] < use_pass &&
                  edge[4] >= 0 && edge[4] < 4 && edge[5] >= 0 && edge[5] <= charge_count,
              "no such edge");
    }
  }

  void set_ways() {
    const auto source_of = [&](int use, int state) {
      for (std::size_t k = 0; k < sources_.size(); ++k)
        if (sources_[k].use == use && sources_[k].state == state) return int(k);
      sources_.push_back({use, state});
      return int(sources_.size()) - 1;
    };
    for (int s = 0; s < table_.states; ++s) {
      for (std::size_t e = 0; e < table_.weights.size(); ++e) {
        const std::int32_t* const edge = &table_.edges[6 * e];
        if (edge[1] != s) continue;
        const int source = edge[2] < 0 ? -1 : source_of(edge[2], edge[0]);
        ways_.push_back({source, edge[0], edge[3] != 0, Cost(edge[4]), Plus(edge[5]), table_.weights[e]});
      }
      ways_end_.push_back(int(ways_.size()));
    }
    for (const Source& source : sources_) used_[source.use] = true;
    used_[use_pass] = true;
    const bool final_hub =
        std::any_of(graph_.finals.begin(), graph_.finals.end(), [&](auto v) { return graph_.hub[v]; });
    for (int s = 0; s < table_.states; ++s) {
      const bool brought = std::any_of(sources_.begin(), sources_.end(), [&](auto k) { return k.state == s; });
      const bool final = std::find(table_.finals.begin(), table_.finals.end(), s) != table_.finals.end();
      if (brought || (final && final_hub)) passed_.push_back(s);
    }
  }

  // Collects the arcs into each node, by use, in order; A + v stands for a node's arc from itself.
  void collect() {
    const int V = int(graph_.label.size()), A = int(graph_.source.size());
    const auto taken = [&](int arc, int use) { return graph_.use[arc] >> use & 1; };
    for (int use = 0; use < use_count; ++use) {
      if (!used_[use]) continue;
      auto& into = into_[use];
      auto& end = into_end_[use];
      end.assign(V + 1, 0);
      const auto fits = [&](int v) { return bool(graph_.hub[v]) == (use == use_pass); };
      const auto self = [&](int v) { return use == use_again && graph_.again[v] && !graph_.hub[v]; };
      for (int v = 0; v < V; ++v) end[v + 1] += self(v);
      for (int a = 0; a < A; ++a)
        if (taken(a, use) && fits(graph_.target[a])) ++end[graph_.target[a] + 1];
      std::partial_sum(end.begin(), end.end(), end.begin());
      into.resize(end[V]);
      std::vector<std::int32_t> at(end.begin(), end.end() - 1);
      for (int v = 0; v < V; ++v)
        if (self(v)) into[at[v]++] = A + v;
      for (int a = 0; a < A; ++a)
        if (taken(a, use) && fits(graph_.target[a])) into[at[graph_.target[a]]++] = a;
    }
  }

  int degree(int use, int v) const { return used_[use] ? into_end_[use][v + 1] - into_end_[use][v] : 0; }
  int origin(int arc) const {
    const int A = int(graph_.source.size());
    return arc < A ? int(graph_.source[arc]) : arc - A;
  }

  // Sorts nodes by level, hubs after the others; then by in-degree, so that slices need little padding.
  void set_places() {
    const int V = int(graph_.label.size());
    std::vector<std::int32_t> order(V);
    std::iota(order.begin(), order.end(), 0);
    std::array<int, use_count> uses{use_pass, use_same, use_drop, use_new, use_other, use_again};
    std::vector<std::array<std::int32_t, use_count + 3>> key(V);
    for (int v = 0; v < V; ++v) {
      key[v][0] = int(graph_.level[v]);
      key[v][1] = graph_.hub[v];
      for (int k = 0; k < use_count; ++k) key[v][2 + k] = -degree(uses[k], v);
      key[v][use_count + 2] = int(graph_.label[v]);
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] < key[b]; });
    place_.resize(V);
    for (int k = 0; k < V; ++k) {
      const int v = order[k];
      const bool next = k == 0 || key[v][0] != key[order[k - 1]][0] || key[v][1] != key[order[k - 1]][1];
      if (next) {
        node_.resize((node_.size() + slice - 1) / slice * slice, -1);
        blocks_.push_back(int(node_.size()));
      }
      place_[v] = int(node_.size());
      node_.push_back(v);
    }
    node_.resize((node_.size() + slice - 1) / slice * slice, -1);
    blocks_.push_back(int(node_.size()));
  }

  // The largest number of arcs of a use into one node of a slice.
  int width(int use, int first) const {
    int most = 0;
    for (int p = first; p < first + slice; ++p)
      if (node_[p] >= 0) most = std::max(most, degree(use, node_[p]));
    return most;
  }

  void set_chunks() {
    for (std::size_t b = 0; b + 1 < blocks_.size(); ++b)
      for (int begin = blocks_[b]; begin < blocks_[b + 1];) {
        int end = begin;
        std::array<int, use_count> total{};
        while (end < blocks_[b + 1] && end - begin < chunk_places) {
          bool fits = true;
          std::array<int, use_count> more = total;
          for (int use = 0; use < use_count; ++use) {
            more[use] += slice * std::max(1, width(use, end));
            fits &= more[use] <= most_entries;
          }
          if (!fits && end > begin) break;
          total = more;
          end += slice;
        }
        add_chunk(begin, end);
        begin = end;
      }
  }

  void add_chunk(int begin, int end) {
    Chunk chunk{begin, end, bool(graph_.hub[node_[begin]]), {}};
    for (int use = 0; use < use_count; ++use)
      if (used_[use] && (use == use_pass) == chunk.hub) chunk.takes[use] = take(use, begin, end);
    for (int p = begin; p < end; p += slice) chunk_of_.push_back(int(chunks_.size()));
    chunks_.push_back(chunk);
  }

  Take take(int use, int begin, int end) {
    Take found;
    int most = 0;
    for (int p = begin; p < end; p += slice) most = std::max(most, width(use, p));
    if (most == 0) return found;
    const int nowhere = int(node_.size()), A = int(graph_.source.size());
    found.begin = std::int64_t(entries_.size());
    found.ends = int(ends_.size());
    for (int p = begin; p < end; p += slice) {
      const int wide = std::max(1, width(use, p));
      for (int k = 0; k < wide; ++k)
        for (int lane = 0; lane < slice; ++lane) {
          const int v = node_[p + lane];
          const bool there = v >= 0 && k < degree(use, v);
          const int arc = there ? into_[use][into_end_[use][v] + k] : -1;
          // A place without a node may read itself: it is at ∞ anyway.
          entries_.push_back(there ? place_[origin(arc)] : v < 0 && k == 0 && wide == 1 ? p + lane : nowhere);
          arcs_.push_back(arc < A ? arc : -1);
          costs_.push_back(there && arc < A ? graph_.cost[arc] : 0.0);
          found.costs |= costs_.back() != 0;
        }
      ends_.push_back(int(std::int64_t(entries_.size()) - found.begin));
    }
    found.count = int(std::int64_t(entries_.size()) - found.begin);
    found.single = most == 1;
    found.neighbors = !found.costs;
    for (int e = 0; e < found.count; ++e) found.neighbors &= entries_[found.begin + e] == entries_[found.begin] + e;
    most_[use] = std::max(most_[use], found.count);
    return found;
  }

  void finish() {
    const int rows = 1 + int(*std::max_element(graph_.label.begin(), graph_.label.end()));
    for (const int v : node_) label_.push_back(v < 0 || graph_.label[v] < 0 ? rows : int(graph_.label[v]));
    for (const auto v : graph_.finals) finals_.push_back(place_[v]);
    starts_.assign(table_.starts.begin(), table_.starts.end());
    final_states_.assign(table_.finals.begin(), table_.finals.end());
    const int places = int(node_.size());
    plan_ = {table_.states,
             rows,
             places,
             int(graph_.source.size()),
             places + slice,
             label_.data(),
             chunks_.data(),
             int(chunks_.size()),
             chunk_of_.data(),
             entries_.data(),
             arcs_.data(),
             costs_.data(),
             std::int64_t(entries_.size()),
             ends_.data(),
             {},
             ways_.data(),
             ways_end_.data(),
             int(ways_.size()),
             sources_.data(),
             int(sources_.size()),
             passed_.data(),
             int(passed_.size()),
             place_[graph_.start],
             starts_.data(),
             int(starts_.size()),
             finals_.data(),
             int(finals_.size()),
             final_states_.data(),
             int(final_states_.size())};
    std::copy(most_.begin(), most_.end(), plan_.most);
    graph_ = {};
    table_ = {};
    for (auto& into : into_) into = {};
    for (auto& end : into_end_) end = {};
  }

  GraphArrays graph_;
  TableArrays table_;
  Plan plan_{};
  std::array<bool, use_count> used_{};
  std::array<int, use_count> most_{};
  std::array<std::vector<std::int32_t>, use_count> into_, into_end_;
  std::vector<Way> ways_;
  std::vector<Source> sources_;
  std::vector<Chunk> chunks_;
  std::vector<double> costs_;
  std::vector<std::int32_t> ways_end_, passed_, place_, node_, blocks_, label_, chunk_of_, entries_, arcs_, ends_,
      starts_, finals_, final_states_;
};

}  // namespace dropdtw
