// The backward pass over a graph: derivatives of soft minima, and the traceback of a best path.
#pragma once
#include "graph_forward.hpp"

namespace dropdtw::DROPDTW_ISA {

// Collects the values of all final states and nodes, states in the outer loop, as rows of one vector each.
template <class T, Reducer R>
void set_ends(const GraphForward<T, R>& forward, const T* last, T* ends) {
  const Plan& plan = forward.plan;
  for (int s = 0, k = 0; s < plan.final_count; ++s)
    for (int f = 0; f < plan.finals_count; ++f, ++k)
      store<T>(ends + k * Register<T>::W,
               all<T>(last[std::size_t(plan.final_states[s]) * plan.stride + plan.finals[f]]));
}

template <class T, Reducer R>
double value_of(const GraphForward<T, R>& forward, const T* ends) {
  T found[Register<T>::W];
  forward.fold.values(ends, Register<T>::W, forward.plan.final_count * forward.plan.finals_count, Register<T>::W,
                      found);
  return double(found[0]);
}

// Propagates weights back along edges and arcs, column by column. The total weight that reaches a price is the
// derivative with respect to it.
template <class T, Reducer R>
class GraphBackward {
  static constexpr int W = Register<T>::W;
  using V = Vec<T>;

 public:
  explicit GraphBackward(GraphProblem<T>& problem) : forward(problem), p(problem), plan(*problem.plan) {
    Arena& arena = forward.rest;
    ends = arena.piece<T>(std::size_t(plan.final_count) * plan.finals_count * W);
    weights = arena.piece<T>(forward.size);
    weights_before = arena.piece<T>(forward.size);
    by_z = arena.piece<T>(plan.stride);
    by_price = arena.piece<T>(chunk_places);
    by_row = arena.piece<T>(4 * (std::size_t(plan.rows) + 1));
    arriving = arena.piece<T>(std::size_t(chunk_places) * (plan.source_count + 1));
    slots = arena.piece<T>(p.grad_arcs == nullptr ? 0 : plan.entry_count);
    forward.bytes = arena.used();
  }

  Status solve() {
    forward.begin();
    if (!forward.fill_all()) return Status::stopped;
    set_ends(forward, forward.slot(p.N - (forward.segments - 1) * forward.length), ends);
    p.value = value_of(forward, ends);
    for (T* part : {weights, weights_before}) fill(part, forward.size, T(0));
    fill(by_z, plan.stride, T(0));
    if (p.grad_arcs != nullptr) fill(slots, plan.entry_count, T(0));
    T one[W];
    store<T>(one, all<T>(1));
    forward.fold.weigh(ends, W, plan.final_count * plan.finals_count, W, one);
    for (int s = 0, k = 0; s < plan.final_count; ++s)
      for (int f = 0; f < plan.finals_count; ++f, ++k)
        weights[std::size_t(plan.final_states[s]) * plan.stride + plan.finals[f]] += ends[k * W];
    for (int a = forward.segments - 1; a >= 0; --a) {
      if (a < forward.segments - 1 && !forward.fill_segment(a)) return Status::stopped;
      const int first = a * forward.length;
      for (int j = smaller(p.N, first + forward.length); j > first; --j) {
        if (!forward.alive()) return Status::stopped;
        leave(j, forward.slot(j - first), forward.slot(j - first - 1));
      }
    }
    leave(0, forward.slot(0), forward.nowhere);
    for (int k = 0; k < plan.places; ++k)
      if (plan.label[k] < plan.rows) p.grad_z[plan.label[k]] += by_z[k];
    if (p.grad_arcs != nullptr)
      for (std::int64_t e = 0; e < plan.entry_count; ++e)
        if (plan.arcs[e] >= 0) p.grad_arcs[plan.arcs[e]] += slots[e];
    for (int c = 0; c < charge_count; ++c) p.grad_charges[c] = by_charge[c + 1];
    return Status::done;
  }

  std::size_t bytes() const { return forward.bytes; }

 private:
  static DROPDTW_INLINE void add(T* to, const T* from, int n, T weight = 1) {
    for (int i = 0; i < n; i += W) store<T>(to + i, load<T>(to + i) + load<T>(from + i) * weight);
  }

  static DROPDTW_INLINE double sum(const T* from, int n) {
    V total{};
    for (int i = 0; i < n; i += W) total += load<T>(from + i);
    double found = 0;
    for (int lane = 0; lane < W; ++lane) found += double(total[lane]);
    return found;
  }

  static DROPDTW_INLINE bool nothing(const T* g, int n) {
    Mask<T> zero = load<T>(g) == T(0);
    for (int i = W; i < n; i += W) zero &= load<T>(g + i) == T(0);
    return everywhere<T>(zero);
  }

  void leave(int j, const T* here, const T* before) {
    forward.price_column(j);
    fill(by_row, 4 * (std::size_t(plan.rows) + 1), T(0));
    by_x = 0;
    for (int c = plan.chunk_count - 1; c >= 0; --c) {
      const Chunk& chunk = plan.chunks[c];
      bool none = true;
      for (int s = 0; s < plan.states && none; ++s)
        none = nothing(weights + std::size_t(s) * plan.stride + chunk.begin, chunk.end - chunk.begin);
      if (none) continue;
      if (chunk.hub)
        leave_hubs(chunk, here);
      else
        leave_nodes(chunk, j, here, before);
    }
    if (j > 0) {
      for (int i = 0; i < plan.rows; ++i) {
        const T* const sum = by_row + 4 * i;
        p.grad_match[i * p.grad_row + j - 1] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
      }
      p.grad_x[j - 1] += T(by_x);
    }
    T* const done = weights;
    weights = weights_before;
    weights_before = done;
    fill(done, forward.size, T(0));
  }

  DROPDTW_FLAT void leave_hubs(const Chunk& chunk, const T* here) {
    const Take& take = chunk.takes[use_pass];
    if (take.count == 0) return;
    for (int k = 0; k < plan.passed_count; ++k) {
      const std::size_t state = std::size_t(plan.passed[k]) * plan.stride;
      const T* const g = weights + state + chunk.begin;
      if (!nothing(g, chunk.end - chunk.begin))
        spread(chunk, take, here + state, g, forward.raw[plan.source_count], weights + state);
    }
  }

  DROPDTW_FLAT void leave_nodes(const Chunk& chunk, int j, const T* here, const T* before) {
    const int n = chunk.end - chunk.begin;
    forward.bring(chunk, here, before);
    fill(by_price, n, T(0));
    for (int k = 0; k < plan.source_count; ++k) fill(arriving + k * chunk_places, n, T(0));
    for (int s = plan.states - 1; s >= 0; --s) {
      T* const g = weights + std::size_t(s) * plan.stride + chunk.begin;
      if (j == 0 && chunk.begin <= plan.start && plan.start < chunk.end)
        for (int k = 0; k < plan.start_count; ++k)
          if (plan.start_states[k] == s) g[plan.start - chunk.begin] = 0;
      if (nothing(g, n)) continue;
      const int first = s == 0 ? 0 : plan.ways_end[s - 1];
      int count = 0;
      for (int w = first; w < plan.ways_end[s]; ++w)
        if (const T* const from = forward.origin(chunk, plan.ways[w], here, before); from != nullptr)
          forward.template pay<false>(chunk, plan.ways[w], from, n, forward.ways + count++ * chunk_places);
      if (count == 0) continue;
      forward.fold.weigh(forward.ways, chunk_places, count, n, g);
      const T* passing = forward.ways;
      for (int w = first; w < plan.ways_end[s]; ++w)
        if (forward.origin(chunk, plan.ways[w], here, before) != nullptr) {
          credit(chunk, plan.ways[w], passing, n);
          passing += chunk_places;
        }
    }
    for (int k = 0; k < plan.source_count; ++k) {
      const Source& source = plan.sources[k];
      const T* const g = arriving + k * chunk_places;
      if (forward.at[k] == nullptr || nothing(g, n)) continue;
      const std::size_t state = std::size_t(source.state) * plan.stride;
      const bool back = consumes(source.use);
      spread(chunk, chunk.takes[source.use], (back ? before : here) + state, g, forward.raw[k],
             (back ? weights_before : weights) + state);
    }
    add_by_label(chunk, n);
  }

  // Adds the weight that passes along an edge to where the edge comes from, and to what it pays.
  DROPDTW_INLINE void credit(const Chunk& chunk, const Way& way, const T* passing, int n) {
    if (way.source >= 0)
      add(arriving + way.source * chunk_places, passing, n);
    else
      add((way.left ? weights_before : weights) + std::size_t(way.state) * plan.stride + chunk.begin, passing, n);
    const T weight = T(way.weight);
    if (way.plus != Plus::none) by_charge[int(way.plus)] += sum(passing, n);
    if (way.cost == Cost::match) add(by_price, passing, n, weight);
    if (way.cost == Cost::drop_x) by_x += sum(passing, n) * way.weight;
    if (way.cost == Cost::drop_z) add(by_z + chunk.begin, passing, n, weight);
  }

  // Distributes arriving weights over the arcs that bring them. `entries` is scratch.
  DROPDTW_INLINE void spread(const Chunk& chunk, const Take& take, const T* states, const T* g, T* entries, T* to) {
    const T* shares = g;
    if (!take.single) {
      if (take.neighbors)
        std::memcpy(entries, states + plan.entries[take.begin], take.count * sizeof(T));
      else
        forward.gather_entries(take, states, entries);
      const std::int32_t* const ends_at = plan.ends + take.ends;
      for (int k = 0, from = 0; k < (chunk.end - chunk.begin) / slice; from = ends_at[k++])
        forward.fold.weigh(entries + from, slice, (ends_at[k] - from) / slice, slice, g + k * slice);
      shares = entries;
    }
    if (p.grad_arcs != nullptr) add(slots + take.begin, shares, take.count);
    const std::int32_t* const places = plan.entries + take.begin;
    if (take.neighbors)
      add(to + places[0], shares, take.count);
    else
      for (int e = 0; e < take.count; ++e) to[places[e]] += shares[e];
  }

  // Neighbors often have the same label. Each label has four partial sums, so that additions do not wait for each
  // other.
  void add_by_label(const Chunk& chunk, int n) {
    const std::int32_t* const label = plan.label + chunk.begin;
    for (int i = 0; i < n; i += 4)
      for (int k = 0; k < 4; ++k) by_row[4 * label[i + k] + k] += by_price[i + k];
  }

  GraphForward<T, R> forward;
  GraphProblem<T>& p;
  const Plan& plan;
  T *ends, *weights, *weights_before, *by_z, *by_price, *by_row, *arriving, *slots;
  double by_x = 0, by_charge[charge_count + 1] = {};
};

// The traceback of a best path, from end to start. Choices are recomputed from the stored values.
template <class T>
class GraphPath {
 public:
  explicit GraphPath(GraphProblem<T>& problem) : forward(problem), p(problem), plan(*problem.plan) {
    ends = forward.rest.template piece<T>(std::size_t(plan.final_count) * plan.finals_count * Register<T>::W);
    forward.bytes = forward.rest.used();
  }

  std::size_t bytes() const { return forward.bytes; }

  Status solve() {
    forward.begin();
    if (!forward.fill_all()) return Status::stopped;
    const T* const last = forward.slot(p.N - (forward.segments - 1) * forward.length);
    set_ends(forward, last, ends);
    p.value = value_of(forward, ends);
    if (!(p.value < double(inf<T>))) return Status::done;
    int end = 0;
    while (double(ends[end * Register<T>::W]) != p.value) ++end;
    state = plan.final_states[end / plan.finals_count];
    place = plan.finals[end % plan.finals_count];
    j = p.N;
    for (int a = forward.segments - 1; a >= 0; --a) {
      if (a < forward.segments - 1 && !forward.fill_segment(a)) return Status::stopped;
      const int first = a * forward.length;
      for (int seen = j + 1; !begun() && (j > first || a == 0);) {
        if (j < seen && j - first > ahead) look_ahead(forward.slot(j - first - ahead));
        seen = j;
        take_step(forward.slot(j - first), j > first ? forward.slot(j - first - 1) : forward.nowhere);
      }
    }
    return Status::done;
  }

 private:
  static constexpr int ahead = 8;  // columns

  // Paths usually stay at the same place, so prefetch what this one will read there.
  void look_ahead(const T* states) const {
    for (int s = 0; s < plan.states; ++s) __builtin_prefetch(states + std::size_t(s) * plan.stride + place);
    const Chunk& chunk = plan.chunks[plan.chunk_of[place / slice]];
    for (int k = 0; k < plan.source_count; ++k) {
      const Take& take = chunk.takes[plan.sources[k].use];
      if (take.count == 0 || take.neighbors) continue;
      const int n = (place - chunk.begin) / slice, from = n == 0 ? 0 : plan.ends[take.ends + n - 1];
      const int there = plan.entries[take.begin + from + (place - chunk.begin) % slice];
      __builtin_prefetch(states + std::size_t(plan.sources[k].state) * plan.stride + there);
    }
  }

  struct Choice {
    T value = inf<T>;
    std::int64_t entry = -1;
  };

  bool begun() const {
    if (j != 0 || place != plan.start) return false;
    for (int k = 0; k < plan.start_count; ++k)
      if (plan.start_states[k] == state) return true;
    return false;
  }

  // The best arc of a use that brings a state here; the first one on ties.
  Choice choose(const Chunk& chunk, int use, const T* states) const {
    const Take& take = chunk.takes[use];
    Choice best;
    if (take.count == 0) return best;
    const int k = (place - chunk.begin) / slice;
    const std::int32_t* const ends_at = plan.ends + take.ends;
    for (int e = (k == 0 ? 0 : ends_at[k - 1]) + (place - chunk.begin) % slice; e < ends_at[k]; e += slice) {
      const std::int64_t entry = take.begin + e;
      const T value = states[plan.entries[entry]] + T(plan.costs[entry]);
      if (value < best.value) best = {value, entry};
    }
    return best;
  }

  T price(Cost cost) const {
    if (cost == Cost::drop_z) return forward.priced_z[place];
    const int label = plan.label[place];
    if (j == 0 || (cost == Cost::match && label == plan.rows)) return inf<T>;
    return cost == Cost::drop_x ? p.drop_x[j - 1] : p.match[label * p.row + (j - 1) * p.column];
  }

  void take_step(const T* here, const T* before) {
    const Chunk& chunk = plan.chunks[plan.chunk_of[place / slice]];
    if (chunk.hub) {
      const Choice found = choose(chunk, use_pass, here + std::size_t(state) * plan.stride);
      p.step(p.self, {-1, -1, j - 1, plan.arcs[found.entry]});
      place = plan.entries[found.entry];
      return;
    }
    Choice best;
    int chosen = -1;
    for (int w = state == 0 ? 0 : plan.ways_end[state - 1]; w < plan.ways_end[state]; ++w) {
      const Way& way = plan.ways[w];
      const bool back = way.source < 0 ? way.left : consumes(plan.sources[way.source].use);
      const T* const states = (back ? before : here) + std::size_t(way.state) * plan.stride;
      Choice found{states[place]};
      if (way.source >= 0) found = choose(chunk, plan.sources[way.source].use, states);
      if (way.plus != Plus::none) found.value += forward.charges[int(way.plus)];
      if (way.cost != Cost::free) {
        const T paid = price(way.cost);
        found.value += way.weight == 1 ? paid : rounded<T>(all<T>(paid) * T(way.weight))[0];
      }
      if (found.value < best.value) {
        best = found;
        chosen = w;
      }
    }
    const Way& way = plan.ways[chosen];
    const bool back = way.source < 0 ? way.left : consumes(plan.sources[way.source].use);
    p.step(p.self, {chosen, plan.label[place], j - 1, best.entry < 0 ? -1 : plan.arcs[best.entry]});
    if (best.entry >= 0) place = plan.entries[best.entry];
    state = way.state;
    j -= back;
  }

  GraphForward<T, Reducer::hard> forward;
  GraphProblem<T>& p;
  const Plan& plan;
  T* ends;
  int state = 0, place = 0, j = 0;
};

}  // namespace dropdtw::DROPDTW_ISA
