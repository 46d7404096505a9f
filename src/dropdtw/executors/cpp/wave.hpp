// One problem at a time: the cells of an anti-diagonal share vectors.
//
// The grid is cut into blocks of columns. A block needs the states of the column to its left and produces those of its
// last column, so a long problem is a chain of blocks. Choices and states that were not stored are recomputed, block by
// block, from the stored columns. Inside a block, lane i of anti-diagonal t is the cell (i, first + t − i); its left,
// upper and diagonal neighbors are lane i of t − 1, lane i − 1 of t − 1 and lane i − 1 of t − 2.
//
// Most anti-diagonals are computed two at a time (`two`), the others one by one (see `together`).
//
// Vectors cover whole multiples of W lanes. Lanes outside the block hold garbage that no cell inside reads.
#pragma once
#include "base.hpp"
#include "match.hpp"
#include "rest.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
struct Wave {
  static constexpr int S = Tab::states, W = Register<T>::W;
  using Code = std::conditional_t<wide_code<Tab>, std::uint16_t, std::uint8_t>;  // the chosen edges of a cell

  explicit Wave(Problem<T>& problem)
      : problem_(problem), K_(problem.K), N_(problem.N), block_(problem), match_(problem, block_), rest_(problem) {
    fold_ = {problem.mask, T(problem.gamma), inverse(problem.gamma), {}};
    for (int c = 0; c < charge_count; ++c) fold_.charges[c] = T(problem.charges[c]);
    lanes_ = (K_ + 1 + W - 1) / W * W;
    stride_ = W + lanes_ + 2 * W;
  }

  static T inverse(double gamma) {
    constexpr double most = sizeof(T) == 4 ? 1e38 : 1e308;  // finite, because ∞ · 0 is NaN
    return gamma > 1 / most ? T(1 / gamma) : T(most);
  }

  bool prepare() {
    bool ok = true;
    for (auto& buffer : work_) ok = ok && buffer.resize(std::size_t(S) * stride_);
    ok = ok && bases_.prepare(K_, N_, stride_) && block_.prepare() && match_.prepare(stride_);
    ok = ok && drop_z_.resize(stride_) && drop_x_.resize(N_ + 1 + 4 * W);
    if (rest_.wanted()) ok = ok && rest_.prepare(stride_);
    if (!ok) return false;
    for (int k = 0; k < stride_; ++k) drop_z_[k] = inf<T>;
    for (int i = 1; i <= K_; ++i) drop_z_[W + i] = problem_.drop_z[i - 1];
    // Reversed, so that anti-diagonals read it forward: the price of column j is at 2W + N − j.
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) drop_x_[k] = inf<T>;
    for (int j = 1; j <= N_; ++j) drop_x_[2 * W + N_ - j] = problem_.drop_x[j - 1];
    return true;
  }

  T* states(int buffer, int s) { return work_[buffer].get() + std::size_t(s) * stride_ + W; }
  // Where anti-diagonal t begins in reversed arrays.
  int along(int t) const { return 2 * W + N_ - (block_.first + t); }
  const T* prices_x(int t) { return drop_x_.get() + along(t); }

  // Extends runs of drops to cells whose upper neighbor is past the right end of its row (see block.hpp).
  void extend_runs(int now, int last, int t) {
    block_.each_below_nothing(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; block_.follows_run(s, cost))
          states(now, s)[i] = states(last, s)[i] + (cost == Cost::drop_x ? prices_x(t)[i] : T(0));
    });
  }

  // What the inner loops read, copied into locals: the compiler must assume that any store changes a member.
  struct Sources {
    const T *last, *before, *drop_x, *drop_z, *descents;
    std::ptrdiff_t stride;
  };

  Sources sources(int last, int before, int t) {
    return {states(last, 0), states(before, 0), prices_x(t), drop_z_.get() + W, bases_.descents(), stride_};
  }

  // `based`: states are relative to the base of their row (base.hpp). Hard minima then pay the descent with their
  // prices. For soft minima, the states of the row above are shifted to this row's base.
  template <Reducer reducer, bool based>
  static DROPDTW_INLINE void gather(Around<Tab, T>& a, const Sources& from, int i) {
    a.drop_x = load(from.drop_x + i);
    a.drop_z = load(from.drop_z + i);
    if constexpr (based) a.descent = load(from.descents + i);
    if constexpr (based && reducer == Reducer::hard) a.drop_z += a.descent;
    each_state<Tab>([&](auto s) {
      a.left[s] = load(from.last + s * from.stride + i);
      a.top[s] = load(from.last + s * from.stride + i - 1);
      a.diag[s] = load(from.before + s * from.stride + i - 1);
      if constexpr (based && reducer != Reducer::hard) {
        a.top[s] += a.descent;
        a.diag[s] += a.descent;
      }
    });
  }

  void fill(int buffer, T value) {
    for (int s = 0; s < S; ++s)
      for (int k = -W; k < lanes_ + 2 * W; k += W) store(states(buffer, s) + k, all<T>(value));
  }

  // Sets the lanes next to a narrow anti-diagonal to ∞: they are cells outside the band that neighbors may read.
  void wall(int buffer, int t) {
    const int from = block_.begin(t) - W, to = block_.end(t) + W;
    for (int s = 0; s < S; ++s) {
      T* p = states(buffer, s);
      for (int i = from; i < block_.low[t]; ++i) p[i] = inf<T>;
      for (int i = larger(block_.high[t], from - 1) + 1; i < to; ++i) p[i] = inf<T>;
    }
  }

  // Whether anti-diagonal t has a cell in row 0 (its first) or in column 0 (its last), other than (0, 0).
  bool on_row_0(int t) { return block_.low[t] == 0 && block_.first + t > 0; }
  bool on_column_0(int t) { return block_.first == 0 && t > 0 && block_.high[t] == t; }

  // Computes row 0 and column 0 of a table with edges of its own there; each state has at most one such edge into it.
  template <bool based>
  void border_cells(int now, int last, int t) {
    if constexpr (Tab::has_border) {
      const bool row = on_row_0(t), column = on_column_0(t);
      const T descent = based && column ? bases_.descents()[t] : T(0);
      for (int s = 0; s < S; ++s) {
        T across = inf<T>, down = inf<T>;
        for (const Edge& e : Tab::border) {
          if (e.dst != s) continue;
          if (e.move == Move::left && row) across = states(last, e.src)[0] + prices_x(t)[0];
          if (e.move == Move::top && column) down = states(last, e.src)[t - 1] + descent + drop_z_[W + t];
        }
        if (row) states(now, s)[0] = across;
        if (column) states(now, s)[t] = down;
      }
    }
  }

  // Whether every alignment is certain to exceed the limit. Each passes through anti-diagonal t or t − 1.
  DROPDTW_FLAT bool exceeds_limit(int now, int last, int t) {
    Vec<T> best = all<T>(inf<T>);
    for (int u = t; u >= t - 1; --u) {
      const T *const x = rest_.of_x(u), *const z = rest_.of_z(), *const from = states(u == t ? now : last, 0);
      for (int i = block_.begin(u); i < block_.end(u); i += W) {
        Vec<T> v = load(from + i);
        for (int s = 1; s < S; ++s) v = least<T>(load(from + std::size_t(s) * stride_ + i), v);
        if (bases_.wanted()) v += bases_.level(i);
        v += load(x + i) + load(z + i);
        if (i < block_.low[u] || i + W - 1 > block_.high[u])  // garbage at either end
          for (int k = 0; k < W; ++k)
            if (i + k < block_.low[u] || i + k > block_.high[u]) v[k] = inf<T>;
        best = least<T>(v, best);
      }
    }
    return above(best);
  }

  // The same for the states of column j, which every alignment passes through.
  bool exceeds_limit(const Column<T>& column, int j) {
    if (!rest_.wanted()) return false;
    for (int s = 0; s < S; ++s)
      for (int i = 0; i <= K_; ++i) {
        const T v =
            column.states[std::size_t(s) * (K_ + 1) + i] + (column.bases == nullptr ? T(0) : T(column.bases[i]));
        if (!(v + rest_.of_x(j)[0] + rest_.of_z()[i] > rest_.limit())) return false;
      }
    return true;
  }

  // Abandons the problem after anti-diagonal t, since every alignment exceeds the limit.
  Status give_up(int t) {
    problem_.spared = 1 - double(block_.offset[t + 1]) / double(block_.offset[block_.diagonals]);
    return Status::abandoned;
  }

  bool above(Vec<T> v) {
    for (int k = 0; k < W; ++k)
      if (!(v[k] > rest_.limit())) return false;
    return true;
  }

  // Before anti-diagonal t: moves the base of each row to the smallest state of its most recently computed cell.
  DROPDTW_FLAT void rebase(int last, int before, int t) {
    const int low = t > 0 ? block_.low[t - 1] : 0, high = t > 0 ? block_.high[t - 1] : -1;
    const int bottom = t <= block_.bottom && high == t - 1 ? t : high;  // row t has just entered on the left
    const int from = rebased_from(t), to = rebased_to(t);
    const std::ptrdiff_t stride = stride_;
    T *const near = states(last, 0), *const far = states(before, 0), *const by = bases_.by();
    for (int i = from; i < to; i += W) {
      Vec<T> v = load(near + i);
      for (int s = 1; s < S; ++s) v = least<T>(load(near + s * stride + i), v);
      const Mask<T> row = i + lane_numbers<T>(), inside = (row >= low) & (row <= bottom);
      const Mask<T> found = (v < inf<T>)&(v > -inf<T>);
      v = inside ? v : Vec<T>{};
      if (!everywhere<T>(found | ~inside))
        for (int k = 0; k < W; ++k)
          if (inside[k] && !found[k]) v[k] = elsewhere(before, i + k, t, k > 0 ? v[k - 1] : T(0));
      store(by + i, v);
      bases_.move(i, v);
      for (int s = 0; s < S; ++s) {
        store(near + s * stride + i, load(near + s * stride + i) - v);
        store(far + s * stride + i, load(far + s * stride + i) - v);
      }
    }
    bases_.measure(from, to);
  }

  // The range of rebasing before anti-diagonal t: whole vectors that cover the lanes of t − 1 and t − 2 and, one lane
  // further, the states that enter from the column on the left.
  int reach(int t) { return (t < 0 ? 0 : smaller(K_, block_.high[t] + 1)) / W * W + W; }
  int rebased_from(int t) { return t > 1 ? block_.begin(t - 2) : 0; }
  int rebased_to(int t) { return larger(reach(t - 1), reach(t - 2)); }

  // How far to move the base of row i if its most recently computed cell is unreachable. The new base is the smallest
  // state of the cell before, or else the new base of the row above; `row_above` is how far that one is still to move.
  T elsewhere(int before, int i, int t, T row_above) {
    T found = inf<T>;
    if (i == t - 1 || (t > 1 && i >= block_.low[t - 2] && i <= block_.high[t - 2]))
      for (int s = 0; s < S; ++s) found = states(before, s)[i] < found ? states(before, s)[i] : found;
    if (found < inf<T> && found > -inf<T>) return found;
    return i == 0 ? T(0) : T(bases_.of(i - 1) + row_above - bases_.of(i));
  }

  // Fills the block from the states of the column on its left (∞ if there is none). Stores what is requested: the
  // states of the last column, all states, all choices.
  template <Reducer reducer, bool codes>
  Status forward(Column<T> left, Column<T> right, T* kept, Code* chosen) {
    if constexpr (has_bases<reducer>)
      if (bases_.wanted()) return forward_pass<reducer, codes, true>(left, right, kept, chosen);
    return forward_pass<reducer, codes, false>(left, right, kept, chosen);
  }

  // Whether a reducer can use bases. Soft minima of tables with weights or charges cannot: their long sums are computed
  // in double precision (widen.hpp).
  template <Reducer reducer>
  static constexpr bool has_bases = Bases<T>::possible && (reducer == Reducer::hard || !extended(Tab::edges));

  static DROPDTW_INLINE void keep_code(Code* at, Mask<T> code) {
    using Narrow = std::conditional_t<wide_code<Tab>, typename Register<T>::Word, typename Register<T>::Byte>;
    const Narrow packed = __builtin_convertvector(code, Narrow);
    std::memcpy(at, &packed, sizeof packed);
  }

  // Whether anti-diagonals t and t + 1 can be computed together. Nothing may change the cells of t before t + 1 reads
  // them, such as a column that enters on the left or a band that ends.
  template <bool based>
  bool together(int t, const Column<T>& left) {
    return !block_.narrow() && t > 1 && t % 2 == 0 && t + 1 < block_.diagonals &&
           (left.states == nullptr || t > block_.bottom) && !(based && bases_.due(t + 1));
  }

  // Computes anti-diagonals t and t + 1 in place: t overwrites t − 2, and t + 1 overwrites t − 1. Each vector is loaded
  // and stored once for both. The neighbors in lane i − 1, the row above, are shifted by one lane in registers.
  template <bool codes, bool based, bool numbers>
  DROPDTW_FLAT void two(int last, int before, int t, Code* chosen) {
    const T *const z = match_.z(), *const x[] = {match_.x(t), match_.x(t + 1)};
    const bool euclidean = match_.euclidean();
    const T* match[2] = {};
    if (!numbers)
      for (int k = 0; k < 2; ++k) match[k] = match_.of(t + k);
    Code* choice[2] = {};
    int begins[2], ends[2];
    for (int k = 0; codes && k < 2; ++k) {
      begins[k] = block_.begin(t + k);
      ends[k] = block_.end(t + k);
      choice[k] = chosen + block_.offset[t + k] - begins[k];
    }
    const T *const prices[] = {prices_x(t), prices_x(t + 1)}, *const drop_z = drop_z_.get() + W;
    const T* const descents = bases_.descents();
    const Fold<T> fold = fold_;
    const std::ptrdiff_t stride = stride_;
    T *const near = states(last, 0), *const far = states(before, 0);
    const int start = block_.begin(t), stop = block_.end(t + 1);
    Vec<T> near_above[S], far_above[S], here_above[S];
    each_state<Tab>([&](auto s) {
      near_above[s] = load(near + s * stride + start - W);
      far_above[s] = load(far + s * stride + start - W);
      here_above[s] = all<T>(inf<T>);  // lane −1 is above row 0; other lanes are not read
    });
    for (int i = start; i < stop; i += W) {
      Around<Tab, T> a;
      if constexpr (based) a.descent = load(descents + i);
      a.drop_z = load(drop_z + i);
      if constexpr (based) a.drop_z += a.descent;
      each_state<Tab>([&](auto s) {
        const Vec<T> old = load(far + s * stride + i);
        a.left[s] = load(near + s * stride + i);
        a.top[s] = from_previous_lane<T>(near_above[s], a.left[s]);
        a.diag[s] = from_previous_lane<T>(far_above[s], old);
        near_above[s] = a.left[s];
        far_above[s] = old;
      });
      a.drop_x = load(prices[0] + i);
      a.match = numbers ? match_.between(load(z + i) - load(x[0] + i), euclidean) : load(match[0] + i);
      const Mask<T> first = compute_cells<Tab, T, Reducer::hard, codes, based>(a, fold);
      each_state<Tab>([&](auto s) {
        store(far + s * stride + i, a.here[s]);
        a.diag[s] = a.top[s];
        a.left[s] = a.here[s];
        a.top[s] = from_previous_lane<T>(here_above[s], a.here[s]);
        here_above[s] = a.here[s];
      });
      a.drop_x = load(prices[1] + i);
      a.match = numbers ? match_.between(load(z + i) - load(x[1] + i), euclidean) : load(match[1] + i);
      const Mask<T> second = compute_cells<Tab, T, Reducer::hard, codes, based>(a, fold);
      each_state<Tab>([&](auto s) { store(near + s * stride + i, a.here[s]); });
      if constexpr (codes) {
        if (i < ends[0]) keep_code(choice[0] + i, first);
        if (i >= begins[1]) keep_code(choice[1] + i, second);
      }
    }
  }

  template <Reducer reducer, bool codes, bool based>
  DROPDTW_FLAT Status forward_pass(Column<T> left, Column<T> right, T* kept, Code* chosen) {
    if (!match_.fetch()) return Status::stopped;
    if (based) bases_.open(block_.first, left);
    for (int b = 0; b < 3; ++b) fill(b, inf<T>);
    int now = 0, last = 1, before = 2;
    // No row begins after this anti-diagonal.
    const int rows_begin_until = block_.narrow() ? block_.diagonals : block_.first == 0 ? K_ : -1;
    const bool checks_limit =
        reducer == Reducer::hard && !codes && rest_.wanted() && block_.first == 0 && block_.last == N_;
    for (int t = 0; t < block_.diagonals; ++t) {
      if (t % group == 0 && !alive(t)) return Status::stopped;
      if constexpr (reducer == Reducer::hard && !Tab::has_border)
        if (kept == nullptr && together<based>(t, left)) {
          if (based && bases_.due(t)) rebase(last, before, t);
          for (int u = t; based && u < t + 2; ++u)
            if (u <= rows_begin_until && block_.begins(block_.high[u], u)) bases_.begin_row(block_.high[u]);
          const bool numbers = !codes && match_.of_numbers();
          if constexpr (!codes)
            if (numbers) two<false, based, true>(last, before, t, nullptr);
          if (!numbers) two<codes, based, false>(last, before, t, chosen);
          for (int u = t; right.states != nullptr && u < t + 2; ++u)
            if (const int i = u - (block_.last - block_.first); i >= 0) leave(u == t ? before : last, i, right, u);
          ++t;
          if (checks_limit && t % group == 1 && t + 1 < block_.diagonals && exceeds_limit(last, before, t))
            return give_up(t);
          continue;
        }
      if (t <= block_.bottom) enter(last, t, left);
      if (based && bases_.due(t)) {
        rebase(last, before, t);
        if (kept != nullptr) std::memcpy(bases_.kept(t), bases_.by(), rebased_to(t) * sizeof(T));
      }
      if (based && t <= rows_begin_until && block_.begins(block_.high[t], t)) bases_.begin_row(block_.high[t]);
      const T* const match = match_.of(t);
      Code* const choice = codes ? chosen + block_.offset[t] - block_.begin(t) : nullptr;
      const Sources from = sources(last, before, t);
      const Fold<T> fold = fold_;
      T* const here = states(now, 0);
      const int stop = block_.end(t);
      for (int i = block_.begin(t); i < stop; i += W) {
        Around<Tab, T> a;
        gather<reducer, based>(a, from, i);
        a.match = load(match + i);
        const Mask<T> code = compute_cells<Tab, T, reducer, codes, based>(a, fold);
        each_state<Tab>([&](auto s) { store(here + s * from.stride + i, a.here[s]); });
        if constexpr (codes) keep_code(choice + i, code);
      }
      if (block_.first == 0 && t == 0)
        for (int s = 0; s < S; ++s) states(now, s)[0] = Tab::start[s] ? T(0) : inf<T>;
      border_cells<based>(now, last, t);
      extend_runs(now, last, t);
      if (block_.narrow()) wall(now, t);
      if (kept != nullptr)
        for (int s = 0; s < S; ++s)
          std::memcpy(kept + S * block_.offset[t] + s * (block_.offset[t + 1] - block_.offset[t]),
                      states(now, s) + block_.begin(t), (block_.offset[t + 1] - block_.offset[t]) * sizeof(T));
      if (const int i = t - (block_.last - block_.first); right.states != nullptr && i >= 0) leave(now, i, right, t);
      if (checks_limit && t % group == 1 && t + 1 < block_.diagonals && exceeds_limit(now, last, t)) return give_up(t);
      const int free = before;
      before = last;
      last = now;
      now = free;
    }
    for (int s = 0; s < S; ++s) corner_[s] = states(last, s)[K_];
    return Status::done;
  }

  // Puts row i of the column on the left where anti-diagonal i reads it.
  void enter(int buffer, int i, const Column<T>& left) {
    for (int s = 0; s < S; ++s)
      states(buffer, s)[i] = left.states == nullptr ? inf<T> : left.states[std::size_t(s) * (K_ + 1) + i];
  }

  // Stores row i of the last column, in which anti-diagonal t ends.
  void leave(int now, int i, const Column<T>& right, int t) {
    const bool inside = i >= block_.low[t] && i <= block_.high[t];
    for (int s = 0; s < S; ++s) right.states[std::size_t(s) * (K_ + 1) + i] = inside ? states(now, s)[i] : inf<T>;
    if (bases_.wanted()) right.bases[i] = bases_.of(i);
  }

  // Counts cells and calls `tick` about every 2²⁴ of them; returns false if the work has to stop.
  bool alive(int t) {
    if (problem_.tick == nullptr) return true;
    cells_ += std::int64_t(group) * (block_.high[t] - block_.low[t] + 1);
    if (cells_ < (1 << 24)) return true;
    cells_ = 0;
    return problem_.tick(problem_.self);
  }

  Problem<T>& problem_;
  Fold<T> fold_;
  const int K_, N_;
  int lanes_, stride_;
  Block<Tab, T> block_;
  Bases<T> bases_;
  MatchCosts<Tab, T> match_;
  Rest<Tab, T> rest_;
  std::int64_t cells_ = 0;
  T corner_[S];
  Buffer<T> work_[3], drop_x_, drop_z_;
};

}  // namespace dropdtw::DROPDTW_ISA
