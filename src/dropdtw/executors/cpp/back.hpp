// The backward pass through a block of columns: derivatives with respect to the states and to the costs they pay.
#pragma once
#include "wave.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
struct Back : Wave<Tab, T> {
  using Forward = Wave<Tab, T>;
  using Forward::along, Forward::bases_, Forward::block_, Forward::drop_z_, Forward::enter, Forward::fill,
      Forward::fold_, Forward::K_, Forward::match_, Forward::N_, Forward::on_column_0, Forward::on_row_0,
      Forward::problem_, Forward::reach, Forward::rebased_from, Forward::rebased_to, Forward::S, Forward::sources,
      Forward::states, Forward::stride_, Forward::W, Forward::wall;
  using typename Forward::Sources;

  using Forward::Forward;

  bool prepare_back() {
    bool ok = grad_x_.resize(N_ + 1 + 4 * W) && grad_z_.resize(stride_) && grad_charges_.resize(charge_count * W);
    ok = ok && grad_costs_.resize(std::size_t(group) * stride_);
    for (auto& buffer : grad_) ok = ok && buffer.resize(std::size_t(S) * stride_);
    if (!ok) return false;
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) grad_x_[k] = 0;
    for (int k = 0; k < stride_; ++k) grad_z_[k] = 0;
    for (int k = 0; k < charge_count * W; ++k) grad_charges_[k] = 0;
    return true;
  }

  // Writes the derivatives with respect to the drop costs, summed over all blocks.
  void write_drops() {
    for (int i = 1; i <= K_; ++i) problem_.grad_z[i - 1] = grad_z_[W + i];
    for (int j = 1; j <= N_; ++j) problem_.grad_x[j - 1] = grad_x_[2 * W + N_ - j];
  }

  T* flows(int buffer, int s) { return grad_[buffer].get() + std::size_t(s) * stride_ + W; }

  // Restores the states of anti-diagonal t as `forward` held them when it computed t + 1.
  void restore(int buffer, int t, const Column<T>& left, const T* kept) {
    if (t < 0) fill(buffer, inf<T>);
    if (t >= 0)
      for (int s = 0; s < S; ++s) {
        const std::size_t n = block_.offset[t + 1] - block_.offset[t];
        std::memcpy(states(buffer, s) + block_.begin(t), kept + S * block_.offset[t] + s * n, n * sizeof(T));
      }
    if (t >= 0 && block_.narrow()) wall(buffer, t);
    if (t + 1 >= 0 && t + 1 <= K_) enter(buffer, t + 1, left);
  }

  // Shifts the states of anti-diagonal t, and the one that entered from the column on the left, to bases that moved by
  // `by`.
  void lower(int buffer, int t, const T* by) {
    for (int s = 0; s < S; ++s)
      for (int i = t < 0 ? 0 : block_.begin(t); i < reach(t); i += W)
        store(states(buffer, s) + i, load(states(buffer, s) + i) - load(by + i));
  }

  // Moves the bases back to where they were before anti-diagonal t.
  void move_back(int t) {
    for (int i = rebased_from(t); i < rebased_to(t); i += W) bases_.move(i, -load(bases_.kept(t) + i));
    bases_.measure(rebased_from(t), rebased_to(t));
  }

  // Propagates `flow`, the derivatives with respect to the states of the block's last column, back through the block.
  // Writes the derivatives with respect to the column on its left to `next`.
  template <Reducer reducer>
  void backward(Column<T> left, const T* kept, const T* flow, T* next) {
    if constexpr (Forward::template has_bases<reducer>)
      if (bases_.wanted()) return backward_pass<reducer, true>(left, kept, flow, next);
    backward_pass<reducer, false>(left, kept, flow, next);
  }

  template <Reducer reducer, bool based>
  DROPDTW_FLAT void backward_pass(Column<T> left, const T* kept, const T* flow, T* next) {
    int now = 0, last = 1, before = 2;
    for (int b = 0; b < 3; ++b)
      for (int s = 0; s < S; ++s) std::memset(flows(b, s) - W, 0, stride_ * sizeof(T));
    std::memset(next, 0, std::size_t(S) * (K_ + 1) * sizeof(T));
    restore(now, block_.diagonals - 1, left, kept);
    restore(last, block_.diagonals - 2, left, kept);
    for (int t = block_.diagonals - 1; t >= 0; --t) {
      restore(before, t - 2, left, kept);
      // States are stored as computed, so shift them if bases moved just before t or just before t − 1.
      const bool moves = based && bases_.due(t), moved = based && bases_.due(t - 1);
      if (moves) lower(last, t - 1, bases_.kept(t));
      if (moves || moved) lower(before, t - 2, bases_.kept(moves ? t : t - 1));
      if (const int i = t - (block_.last - block_.first); i >= 0)
        for (int s = 0; s < S; ++s) flows(now, s)[i] += flow[std::size_t(s) * (K_ + 1) + i];
      border_flow(now, last, t);
      extend_runs_back(now, last, t);
      T* const into_costs = grad_costs_.get() + W + std::size_t(t % group) * stride_;
      T* const into_x = grad_x_.get() + along(t);
      T* const into_z = grad_z_.get() + W;
      const Sources from = sources(last, before, t);
      const Sinks to{states(now, 0), flows(now, 0), flows(last, 0), flows(before, 0),
                     into_costs,     into_x,        into_z,         grad_charges_.get()};
      const Fold<T> fold = fold_;
      const T* const match = weighted<Tab>() ? match_.of(t) : nullptr;
      for (int i = block_.begin(t), stop = block_.end(t); i < stop; i += W)
        push<reducer, based>(from, to, fold, match, i);
      if (moves) restore(last, t - 1, left, kept);
      if (moves || moved) restore(before, t - 2, left, kept);
      if (moves) move_back(t);
      if (t % group == 0) {
        write_costs(t);
        write_charges();
      }
      if (t <= K_)
        for (int s = 0; s < S; ++s) {
          next[std::size_t(s) * (K_ + 1) + t] += flows(last, s)[t];
          flows(last, s)[t] = 0;
        }
      // Only these lanes of the anti-diagonal were written, so only they need clearing.
      for (int s = 0; s < S; ++s)
        std::memset(flows(now, s) + block_.begin(t) - W, 0, (block_.end(t) - block_.begin(t) + 2 * W) * sizeof(T));
      const int free = now;
      now = last;
      last = before;
      before = free;
    }
  }

  struct Sinks {
    const T *here, *flow;
    T *last, *before, *costs, *x, *z, *charges;
  };

  template <Reducer reducer, bool based>
  static DROPDTW_INLINE void push(const Sources& from, const Sinks& to, const Fold<T>& fold, const T* match_costs,
                                  int i) {
    Around<Tab, T> a;
    Forward::template gather<reducer, based>(a, from, i);
    if constexpr (weighted<Tab>()) a.match = load(match_costs + i);  // otherwise no choice depends on the match costs
    Vec<T> flow[S];
    each_state<Tab>([&](auto s) {
      a.here[s] = load(to.here + s * from.stride + i);
      flow[s] = load(to.flow + s * from.stride + i);
    });
    Vec<T> match{}, drop_x{}, drop_z{}, charges[charge_count]{}, left[S]{}, top[S]{}, diag[S]{};
    each_state_backwards<Tab>([&](auto s) {
      const Vec<T> g = flow[s];
      weights<Tab, s, T, reducer>(a, fold, [&](auto e, Vec<T> w) {
        constexpr Edge edge = Tab::edges[e];
        const Vec<T> share = g == T(0) ? Vec<T>{} : w * g;  // lanes outside the block may hold NaN
        if constexpr (edge.cost == Cost::match) match += edge.weight == 1 ? share : T(edge.weight) * share;
        if constexpr (edge.cost == Cost::drop_x) drop_x += share;
        if constexpr (edge.cost == Cost::drop_z) drop_z += share;
        if constexpr (edge.plus != Plus::none) charges[int(edge.plus) - 1] += share;
        if constexpr (edge.move == Move::same) flow[edge.src] += share;
        if constexpr (edge.move == Move::left) left[edge.src] += share;
        if constexpr (edge.move == Move::top) top[edge.src] += share;
        if constexpr (edge.move == Move::diag) diag[edge.src] += share;
      });
    });
    each_state<Tab>([&](auto s) {
      if constexpr (leaves<s, Move::left>()) add(to.last + s * from.stride + i, left[s]);
      if constexpr (leaves<s, Move::top>()) add(to.last + s * from.stride + i - 1, top[s]);
      if constexpr (leaves<s, Move::diag>()) add(to.before + s * from.stride + i - 1, diag[s]);
    });
    store(to.costs + i, match);
    add(to.x + i, drop_x);
    add(to.z + i, drop_z);
    for (int c = 0; c < charge_count; ++c)
      if (charging(c)) add(to.charges + c * W, charges[c]);
  }

  static constexpr bool charging(int c) {  // whether some edge pays this charge
    for (const Edge& e : Tab::edges)
      if (int(e.plus) == c + 1) return true;
    return false;
  }

  // Adds the sums accumulated per lane to the derivatives with respect to the charges, in double precision.
  void write_charges() {
    for (int c = 0; c < charge_count; ++c)
      if (charging(c))
        for (int k = c * W; k < (c + 1) * W; ++k) {
          problem_.grad_charges[c] += grad_charges_[k];
          grad_charges_[k] = 0;
        }
  }

  static DROPDTW_INLINE void add(T* p, Vec<T> v) { store(p, load(p) + v); }

  template <int s, Move move>
  static constexpr bool leaves() {  // whether an edge leaves state s by this move
    for (const Edge& e : Tab::edges)
      if (e.src == s && e.move == move) return true;
    return false;
  }

  // The backward pass of `extend_runs`.
  void extend_runs_back(int now, int last, int t) {
    block_.each_below_nothing(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; block_.follows_run(s, cost)) {
          const T flow = states(now, s)[i] < inf<T> ? flows(now, s)[i] : T(0);
          flows(last, s)[i] += flow;
          if (cost == Cost::drop_x) grad_x_[along(t) + i] += flow;
          flows(now, s)[i] = 0;
        }
    });
  }

  void border_flow(int now, int last, int t) {
    if constexpr (Tab::has_border) {
      const bool row = on_row_0(t), column = on_column_0(t);
      for (const Edge& e : Tab::border) {
        if (row && e.move == Move::left && states(now, e.dst)[0] < inf<T>) {
          flows(last, e.src)[0] += flows(now, e.dst)[0];
          grad_x_[along(t)] += flows(now, e.dst)[0];
        }
        if (column && e.move == Move::top && states(now, e.dst)[t] < inf<T>) {
          flows(last, e.src)[t - 1] += flows(now, e.dst)[t];
          grad_z_[W + t] += flows(now, e.dst)[t];
        }
      }
      for (int s = 0; s < S; ++s) {
        if (row) flows(now, s)[0] = 0;
        if (column) flows(now, s)[t] = 0;
      }
    }
  }

  // Writes the derivatives with respect to the match costs of anti-diagonals [t, t + group) back to rows and columns.
  DROPDTW_FLAT void write_costs(int t) {
    const int until = smaller(t + group, block_.diagonals), bottom = block_.high[until - 1];
    const std::ptrdiff_t stride = stride_, row = problem_.grad_row;
    const T* const in = grad_costs_.get() + W;
    for (int i = larger(block_.low[t], 1); i <= bottom;) {
      // The cell of row i on anti-diagonal t.
      T* const out = problem_.grad_match + (i - 1) * row + block_.first + t - i - 1;
      if (!block_.narrow() && until - t == group && i + W - 1 <= bottom && block_.full(i, t) &&
          block_.full(i + W - 1, t)) {
        for (int g = 0; g < group; g += W) transpose(in + g * stride + i, stride, out + g, row - 1);
        i += W;
        continue;
      }
      int from, to;
      block_.matchable(i, from, to);
      const int start = block_.first + t - i;
      for (int g = larger(from - start, 0); g < smaller(to - start, until - t); ++g)
        if (i >= block_.low[t + g] && i <= block_.high[t + g]) out[g] = in[g * stride + i];
      ++i;
    }
  }

  Buffer<T> grad_[3], grad_costs_, grad_x_, grad_z_, grad_charges_;
};

}  // namespace dropdtw::DROPDTW_ISA
