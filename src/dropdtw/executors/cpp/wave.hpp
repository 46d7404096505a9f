// One problem at a time: the cells of an anti-diagonal share vectors.
//
// The grid is cut into blocks of columns. A block needs the states of the column to its left and leaves those of its
// last one, so a long problem is a chain of blocks, and what was not stored (choices, states) is computed again, block
// by block, from the stored columns. Inside a block, lane i of anti-diagonal t is the cell (i, first + t − i); its
// left, upper and diagonal neighbours are lane i of t − 1, lane i − 1 of t − 1 and lane i − 1 of t − 2.
//
// Vectors run over whole multiples of W lanes. Lanes outside the block hold rubbish that no cell inside looks at.
#pragma once
#include "match.hpp"
#include "rest.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
struct Wave {
  static constexpr int S = Tab::states, W = Register<T>::W;
  using Code = std::conditional_t<wide_code<Tab>, std::uint16_t, std::uint8_t>;  // the chosen edges of a cell

  explicit Wave(Problem<T>& problem)
      : problem_(problem), K_(problem.K), N_(problem.N), block_(problem), match_(problem, block_), rest_(problem) {
    fold_ = {problem.mask, T(problem.gamma), inverse(problem.gamma)};
    lanes_ = (K_ + 1 + W - 1) / W * W;
    stride_ = W + lanes_ + 2 * W;
  }

  static T inverse(double gamma) {
    constexpr double most = sizeof(T) == 4 ? 1e38 : 1e308;  // ∞ · 0 would be NaN
    return gamma > 1 / most ? T(1 / gamma) : T(most);
  }

  bool prepare() {
    bool ok = true;
    for (auto& buffer : work_) ok = ok && buffer.resize(std::size_t(S) * stride_);
    ok = ok && block_.prepare() && match_.prepare(stride_) && drop_z_.resize(stride_) && drop_x_.resize(N_ + 1 + 4 * W);
    if (rest_.wanted()) ok = ok && rest_.prepare(stride_);
    if (!ok) return false;
    for (int k = 0; k < stride_; ++k) drop_z_[k] = inf<T>;
    for (int i = 1; i <= K_; ++i) drop_z_[W + i] = problem_.drop_z[i - 1];
    // Reversed, so that along an anti-diagonal it is read forwards: the price of column j is at 2W + N − j.
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) drop_x_[k] = inf<T>;
    for (int j = 1; j <= N_; ++j) drop_x_[2 * W + N_ - j] = problem_.drop_x[j - 1];
    return true;
  }

  T* states(int buffer, int s) { return work_[buffer].get() + std::size_t(s) * stride_ + W; }
  int along(int t) const {
    return 2 * W + N_ - (block_.first + t);
  }  // where anti-diagonal t begins in what is reversed
  const T* prices_x(int t) { return drop_x_.get() + along(t); }

  void run_on(int now, int last, int t) {
    block_.each_run(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; block_.runs(s, cost))
          states(now, s)[i] = states(last, s)[i] + (cost == Cost::drop_x ? prices_x(t)[i] : T(0));
    });
  }

  void run_back(int now, int last, int t) {
    block_.each_run(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; block_.runs(s, cost)) {
          const T flow = states(now, s)[i] < inf<T> ? flows(now, s)[i] : T(0);
          flows(last, s)[i] += flow;
          if (cost == Cost::drop_x) grad_x_[along(t) + i] += flow;
          flows(now, s)[i] = 0;
        }
    });
  }

  // --- Forward --------------------------------------------------------------------------------------------------

  // Where the inner loops read; copied into locals, since the compiler must assume that any store changes a member.
  struct Sources {
    const T *last, *before, *drop_x, *drop_z;
    std::ptrdiff_t stride;
  };

  Sources sources(int last, int before, int t) {
    return {states(last, 0), states(before, 0), prices_x(t), drop_z_.get() + W, stride_};
  }

  static DROPDTW_INLINE void gather(Around<Tab, T>& a, const Sources& from, int i) {
    each_state<Tab>([&](auto s) {
      a.left[s] = load(from.last + s * from.stride + i);
      a.top[s] = load(from.last + s * from.stride + i - 1);
      a.diag[s] = load(from.before + s * from.stride + i - 1);
    });
    a.drop_x = load(from.drop_x + i);
    a.drop_z = load(from.drop_z + i);
  }

  void fill(int buffer, T value) {
    for (int s = 0; s < S; ++s)
      for (int k = -W; k < lanes_ + 2 * W; k += W) store(states(buffer, s) + k, all<T>(value));
  }

  // Lanes next to a narrow anti-diagonal are cells outside the band: ∞ where a neighbour may look at them.
  void wall(int buffer, int t) {
    const int from = block_.begin(t) - W, to = block_.end(t) + W;
    for (int s = 0; s < S; ++s) {
      T* p = states(buffer, s);
      for (int i = from; i < block_.low[t]; ++i) p[i] = inf<T>;
      for (int i = larger(block_.high[t], from - 1) + 1; i < to; ++i) p[i] = inf<T>;
    }
  }

  // Whether anti-diagonal t ends in a cell of row 0, and of column 0; the cell (0, 0) is neither.
  bool on_row_0(int t) { return block_.low[t] == 0 && block_.first + t > 0; }
  bool on_column_0(int t) { return block_.first == 0 && t > 0 && block_.high[t] == t; }

  // Row 0 and column 0 of a table that has edges of its own there: each state has one way in at most.
  void border_cells(int now, int last, int t) {
    if constexpr (Tab::has_border) {
      const bool row = on_row_0(t), column = on_column_0(t);
      for (int s = 0; s < S; ++s) {
        T across = inf<T>, down = inf<T>;
        for (const Edge& e : Tab::border) {
          if (e.dst != s) continue;
          if (e.move == Move::left && row) across = states(last, e.src)[0] + prices_x(t)[0];
          if (e.move == Move::top && column) down = states(last, e.src)[t - 1] + drop_z_[W + t];
        }
        if (row) states(now, s)[0] = across;
        if (column) states(now, s)[t] = down;
      }
    }
  }

  // Whether every alignment is sure to exceed the limit. It passes through anti-diagonal t or through t − 1.
  DROPDTW_FLAT bool hopeless(int now, int last, int t) {
    Vec<T> best = all<T>(inf<T>);
    for (int u = t; u >= t - 1; --u) {
      const T *const x = rest_.of_x(u), *const z = rest_.of_z(), *const from = states(u == t ? now : last, 0);
      for (int i = block_.begin(u); i < block_.end(u); i += W) {
        Vec<T> v = load(from + i);
        for (int s = 1; s < S; ++s) v = least<T>(load(from + std::size_t(s) * stride_ + i), v);
        v += load(x + i) + load(z + i);
        if (i < block_.low[u] || i + W - 1 > block_.high[u])  // rubbish at either end
          for (int k = 0; k < W; ++k)
            if (i + k < block_.low[u] || i + k > block_.high[u]) v[k] = inf<T>;
        best = least<T>(v, best);
      }
    }
    return above(best);
  }

  // The same for the states of column j, which every alignment passes through.
  bool hopeless(const T* column, int j) {
    if (!rest_.wanted()) return false;
    for (int s = 0; s < S; ++s)
      for (int i = 0; i <= K_; ++i)
        if (!(column[std::size_t(s) * (K_ + 1) + i] + rest_.of_x(j)[0] + rest_.of_z()[i] > rest_.limit())) return false;
    return true;
  }

  bool above(Vec<T> v) {
    for (int k = 0; k < W; ++k)
      if (!(v[k] > rest_.limit())) return false;
    return true;
  }

  // Fills the block from the states of the column on its left (none: ∞). Keeps what is asked for: the states of the
  // last column, every state, every choice.
  template <Reducer reducer, bool codes, bool keep>
  DROPDTW_FLAT Status forward(const T* left, T* right, T* kept, Code* chosen) {
    if (!match_.fetch()) return Status::stopped;
    for (int b = 0; b < 3; ++b) fill(b, inf<T>);
    int now = 0, last = 1, before = 2;
    const bool looks =
        reducer == Reducer::hard && !codes && !keep && rest_.wanted() && block_.first == 0 && block_.last == N_;
    for (int t = 0; t < block_.diagonals; ++t) {
      if (t % group == 0 && !alive(t)) return Status::stopped;
      if (t <= K_)
        for (int s = 0; s < S; ++s) states(last, s)[t] = left == nullptr ? inf<T> : left[std::size_t(s) * (K_ + 1) + t];
      const T* const match = match_.of(t);
      Code* const choice = codes ? chosen + block_.offset[t] - block_.begin(t) : nullptr;
      const Sources from = sources(last, before, t);
      const Fold<T> fold = fold_;
      T* const here = states(now, 0);
      const int stop = block_.end(t);
      for (int i = block_.begin(t); i < stop; i += W) {
        Around<Tab, T> a;
        gather(a, from, i);
        a.match = load(match + i);
        const Mask<T> code = step<Tab, T, reducer, codes>(a, fold);
        each_state<Tab>([&](auto s) { store(here + s * from.stride + i, a.here[s]); });
        if constexpr (codes) {
          using Narrow = std::conditional_t<wide_code<Tab>, typename Register<T>::Word, typename Register<T>::Byte>;
          const Narrow packed = __builtin_convertvector(code, Narrow);
          std::memcpy(choice + i, &packed, sizeof packed);
        }
      }
      if (block_.first == 0 && t == 0)
        for (int s = 0; s < S; ++s) states(now, s)[0] = Tab::start[s] ? T(0) : inf<T>;
      border_cells(now, last, t);
      run_on(now, last, t);
      if (block_.narrow()) wall(now, t);
      if constexpr (keep)
        for (int s = 0; s < S; ++s)
          std::memcpy(kept + S * block_.offset[t] + s * (block_.offset[t + 1] - block_.offset[t]),
                      states(now, s) + block_.begin(t), (block_.offset[t + 1] - block_.offset[t]) * sizeof(T));
      if (const int i = t - (block_.last - block_.first); right != nullptr && i >= 0)
        for (int s = 0; s < S; ++s)
          right[std::size_t(s) * (K_ + 1) + i] = i >= block_.low[t] && i <= block_.high[t] ? states(now, s)[i] : inf<T>;
      if (looks && t % group == 1 && t + 1 < block_.diagonals && hopeless(now, last, t)) {
        problem_.spared = 1 - double(block_.offset[t + 1]) / double(block_.offset[block_.diagonals]);
        return Status::abandoned;
      }
      const int free = before;
      before = last;
      last = now;
      now = free;
    }
    for (int s = 0; s < S; ++s) corner_[s] = states(last, s)[K_];
    return Status::done;
  }

  bool alive(int t) {
    if (problem_.tick == nullptr) return true;
    cells_ += std::int64_t(group) * (block_.high[t] - block_.low[t] + 1);
    if (cells_ < (1 << 24)) return true;
    cells_ = 0;
    return problem_.tick(problem_.self);
  }

  // --- Backward -------------------------------------------------------------------------------------------------

  bool prepare_backward() {
    bool ok = grad_x_.resize(N_ + 1 + 4 * W) && grad_z_.resize(stride_);
    ok = ok && grad_costs_.resize(std::size_t(group) * stride_);
    for (auto& buffer : grad_) ok = ok && buffer.resize(std::size_t(S) * stride_);
    if (!ok) return false;
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) grad_x_[k] = 0;
    for (int k = 0; k < stride_; ++k) grad_z_[k] = 0;
    return true;
  }

  // What all blocks together gave for the drop costs.
  void write_drops() {
    for (int i = 1; i <= K_; ++i) problem_.grad_z[i - 1] = grad_z_[W + i];
    for (int j = 1; j <= N_; ++j) problem_.grad_x[j - 1] = grad_x_[2 * W + N_ - j];
  }

  T* flows(int buffer, int s) { return grad_[buffer].get() + std::size_t(s) * stride_ + W; }

  // The states of anti-diagonal t as `forward` had them when t + 1 looked back.
  void restore(int buffer, int t, const T* left, const T* kept) {
    if (t < 0) fill(buffer, inf<T>);
    if (t >= 0)
      for (int s = 0; s < S; ++s) {
        const std::size_t n = block_.offset[t + 1] - block_.offset[t];
        std::memcpy(states(buffer, s) + block_.begin(t), kept + S * block_.offset[t] + s * n, n * sizeof(T));
      }
    if (t >= 0 && block_.narrow()) wall(buffer, t);
    if (t + 1 >= 0 && t + 1 <= K_)
      for (int s = 0; s < S; ++s)
        states(buffer, s)[t + 1] = left == nullptr ? inf<T> : left[std::size_t(s) * (K_ + 1) + t + 1];
  }

  // Pushes `flow`, the derivatives by the states of the block's last column, back through the block; those by the
  // column on its left are left in `next`.
  template <Reducer reducer>
  DROPDTW_FLAT void backward(const T* left, const T* kept, const T* flow, T* next) {
    int now = 0, last = 1, before = 2;
    for (int b = 0; b < 3; ++b)
      for (int s = 0; s < S; ++s) std::memset(flows(b, s) - W, 0, stride_ * sizeof(T));
    std::memset(next, 0, std::size_t(S) * (K_ + 1) * sizeof(T));
    restore(now, block_.diagonals - 1, left, kept);
    restore(last, block_.diagonals - 2, left, kept);
    for (int t = block_.diagonals - 1; t >= 0; --t) {
      restore(before, t - 2, left, kept);
      if (const int i = t - (block_.last - block_.first); i >= 0)
        for (int s = 0; s < S; ++s) flows(now, s)[i] += flow[std::size_t(s) * (K_ + 1) + i];
      border_flow(now, last, t);
      run_back(now, last, t);
      T* const into_costs = grad_costs_.get() + W + std::size_t(t % group) * stride_;
      T* const into_x = grad_x_.get() + along(t);
      T* const into_z = grad_z_.get() + W;
      const Sources from = sources(last, before, t);
      const Sinks to{states(now, 0), flows(now, 0), flows(last, 0), flows(before, 0), into_costs, into_x, into_z};
      const Fold<T> fold = fold_;
      for (int i = block_.begin(t), stop = block_.end(t); i < stop; i += W) push<reducer>(from, to, fold, i);
      if (t % group == 0) write_costs(t);
      if (t <= K_)
        for (int s = 0; s < S; ++s) {
          next[std::size_t(s) * (K_ + 1) + t] += flows(last, s)[t];
          flows(last, s)[t] = 0;
        }
      // Nothing else of this anti-diagonal was written to.
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
    T *last, *before, *costs, *x, *z;
  };

  template <Reducer reducer>
  static DROPDTW_INLINE void push(const Sources& from, const Sinks& to, const Fold<T>& fold, int i) {
    Around<Tab, T> a;
    gather(a, from, i);
    Vec<T> flow[S];
    each_state<Tab>([&](auto s) {
      a.here[s] = load(to.here + s * from.stride + i);
      flow[s] = load(to.flow + s * from.stride + i);
    });
    Vec<T> match{}, drop_x{}, drop_z{}, left[S]{}, top[S]{}, diag[S]{};
    each_state_backwards<Tab>([&](auto s) {
      const Vec<T> g = flow[s];
      weights<Tab, s, T, reducer>(a, fold, [&](auto e, Vec<T> w) {
        constexpr Edge edge = Tab::edges[e];
        const Vec<T> share = g == T(0) ? Vec<T>{} : w * g;  // lanes outside the block may hold NaN
        if constexpr (edge.cost == Cost::match) match += share;
        if constexpr (edge.cost == Cost::drop_x) drop_x += share;
        if constexpr (edge.cost == Cost::drop_z) drop_z += share;
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
  }

  static DROPDTW_INLINE void add(T* p, Vec<T> v) { store(p, load(p) + v); }

  template <int s, Move move>
  static constexpr bool leaves() {  // whether an edge leaves state s by this move
    for (const Edge& e : Tab::edges)
      if (e.src == s && e.move == move) return true;
    return false;
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

  // The derivatives by the match costs of the anti-diagonals [t, t + group), back into rows and columns.
  DROPDTW_FLAT void write_costs(int t) {
    const int until = smaller(t + group, block_.diagonals), bottom = block_.high[until - 1];
    const std::ptrdiff_t stride = stride_, row = problem_.grad_row;
    const T* const in = grad_costs_.get() + W;
    for (int i = larger(block_.low[t], 1); i <= bottom;) {
      // Where anti-diagonal t is in row i.
      T* const out = problem_.grad_match + (i - 1) * row + block_.first + t - i - 1;
      if (!block_.narrow() && until - t == group && i + W - 1 <= bottom && block_.full(i, t) &&
          block_.full(i + W - 1, t)) {
        for (int g = 0; g < group; g += W) {
          Vec<T> v[W];
          for (int r = 0; r < W; ++r) v[r] = load(in + (g + r) * stride + i);
          transpose<T>(v);
          for (int r = 0; r < W; ++r) store(out + r * (row - 1) + g, v[r]);
        }
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

  Problem<T>& problem_;
  Fold<T> fold_;
  const int K_, N_;
  int lanes_, stride_;
  Block<Tab, T> block_;
  MatchCosts<Tab, T> match_;
  Rest<Tab, T> rest_;
  std::int64_t cells_ = 0;
  T corner_[S];
  Buffer<T> work_[3], grad_[3], grad_costs_, drop_x_, drop_z_, grad_x_, grad_z_;
};

}  // namespace dropdtw::DROPDTW_ISA
