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
#include "cell.hpp"
#include "lines.hpp"
#include "lower_bound.hpp"
#include "match.hpp"

namespace dropdtw::DROPDTW_ISA {

// Stands for a table that is read at run time; the others are generated (emit.py).
struct Any {
  static constexpr bool unrolled = false;
};

// The type of stored choices: a code per cell, or for `Any` a rank per state of a cell.
template <class Tab>
constexpr bool wide_choices() {
  if constexpr (Tab::unrolled) return wide_code<Tab>;
  return false;
}

template <class Tab, class T>
struct Wave {
  static constexpr int W = Register<T>::W;
  using Code = std::conditional_t<wide_choices<Tab>(), std::uint16_t, std::uint8_t>;

  explicit Wave(Problem<T>& problem)
      : problem_(problem),
        terms_(*problem.table, problem.charges),
        K_(problem.K),
        N_(problem.N),
        block_(problem),
        match_(problem, block_),
        bound_(problem) {
    lanes_ = (K_ + 1 + W - 1) / W * W;
    stride_ = W + lanes_ + 2 * W;
  }

  DROPDTW_INLINE int states() const {
    if constexpr (Tab::unrolled)
      return Tab::states;
    else
      return problem_.table->states;
  }
  int codes_per_cell() const { return Tab::unrolled ? 1 : states(); }

  DROPDTW_APART bool prepare() {
    bool ok = true;
    for (auto& buffer : work_) ok = ok && buffer.resize(std::size_t(states()) * stride_);
    ok = ok && bases_.prepare(K_, N_, stride_) && block_.prepare() && match_.prepare(stride_);
    ok = ok && drop_z_.resize(stride_) && drop_x_.resize(N_ + 1 + 4 * W);
    if (bound_.wanted()) ok = ok && bound_.prepare(stride_);
    if constexpr (!Tab::unrolled) ok = ok && lines_.prepare(*problem_.table, problem_.charges, problem_.gamma, stride_);
    if (!ok) return false;
    for (int k = 0; k < stride_; ++k) drop_z_[k] = inf<T>;
    for (int i = 1; i <= K_; ++i) drop_z_[W + i] = problem_.drop_z[i - 1];
    // Reversed, so that anti-diagonals read it forward: the price of column j is at 2W + N − j.
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) drop_x_[k] = inf<T>;
    for (int j = 1; j <= N_; ++j) drop_x_[2 * W + N_ - j] = problem_.drop_x[j - 1];
    return true;
  }

  T* state(int buffer, int s) { return work_[buffer].get() + std::size_t(s) * stride_ + W; }
  T corner(int s) { return state(ended_, s)[K_]; }  // a state of the block's last cell
  // Where anti-diagonal t begins in reversed arrays.
  int along(int t) const { return 2 * W + N_ - (block_.first + t); }
  const T* prices_x(int t) { return drop_x_.get() + along(t); }

  // Extends runs of drops to cells whose upper neighbor is past the right end of its row (see block.hpp).
  void extend_runs(int now, int last, int t) {
    block_.each_below_nothing(t, [&](int i) {
      for (int s = 0; s < states(); ++s)
        if (Cost cost{}; block_.follows_run(s, cost))
          state(now, s)[i] = state(last, s)[i] + (cost == Cost::drop_x ? prices_x(t)[i] : T(0));
    });
  }

  // What the inner loops read, copied into locals: the compiler must assume that any store changes a member.
  struct Sources {
    const T *last, *before, *drop_x, *drop_z, *descents;
    std::ptrdiff_t stride;
  };

  Sources sources(int last, int before, int t) {
    return {state(last, 0), state(before, 0), prices_x(t), drop_z_.get() + W, bases_.descents(), stride_};
  }

  // `based`: states are relative to the base of their row (base.hpp). The descent is then part of the prices.
  template <bool based>
  static DROPDTW_INLINE void gather(Around<Tab, T>& a, const Sources& from, int i) {
    a.drop_x = load(from.drop_x + i);
    a.drop_z = load(from.drop_z + i);
    if constexpr (based) a.descent = load(from.descents + i);
    if constexpr (based) a.drop_z += a.descent;
    each_state<Tab>([&](auto s) {
      a.left[s] = load(from.last + s * from.stride + i);
      a.top[s] = load(from.last + s * from.stride + i - 1);
      a.diag[s] = load(from.before + s * from.stride + i - 1);
    });
  }

  // The cells of anti-diagonal t, and what they are computed from.
  Line<T> line(int now, int last, int before, int t, const T* match) {
    T *const near = state(last, 0), *const here = state(now, 0);
    return {{state(before, 0) - 1, near, near - 1, here},
            {match, prices_x(t), drop_z_.get() + W, nullptr},
            bases_.descents(),
            here};
  }

  void fill(int buffer, T value) {
    for (int s = 0; s < states(); ++s)
      for (int k = -W; k < lanes_ + 2 * W; k += W) store(state(buffer, s) + k, all<T>(value));
  }

  // Sets the lanes next to a narrow anti-diagonal to ∞: they are cells outside the band that neighbors may read.
  void wall(int buffer, int t) {
    const int from = block_.begin(t) - W, to = block_.end(t) + W;
    for (int s = 0; s < states(); ++s) {
      T* p = state(buffer, s);
      for (int i = from; i < block_.low[t]; ++i) p[i] = inf<T>;
      for (int i = larger(block_.high[t], from - 1) + 1; i < to; ++i) p[i] = inf<T>;
    }
  }

  // Whether anti-diagonal t has a cell in row 0 (its first) or in column 0 (its last), other than (0, 0).
  bool on_row_0(int t) { return block_.low[t] == 0 && block_.first + t > 0; }
  bool on_column_0(int t) { return block_.first == 0 && t > 0 && block_.high[t] == t; }

  // Whether every alignment is certain to exceed the limit. Each passes through anti-diagonal t or t − 1.
  DROPDTW_APART DROPDTW_FLAT bool exceeds_limit(int now, int last, int t) {
    Vec<T> best = all<T>(inf<T>);
    for (int u = t; u >= t - 1; --u) {
      const T *const x = bound_.of_x(u), *const z = bound_.of_z(), *const from = state(u == t ? now : last, 0);
      for (int i = block_.begin(u); i < block_.end(u); i += W) {
        Vec<T> v = load(from + i);
        for (int s = 1; s < states(); ++s) v = least<T>(load(from + std::size_t(s) * stride_ + i), v);
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
    if (!bound_.wanted()) return false;
    for (int s = 0; s < states(); ++s)
      for (int i = 0; i <= K_; ++i) {
        const T v =
            column.states[std::size_t(s) * (K_ + 1) + i] + (column.bases == nullptr ? T(0) : T(column.bases[i]));
        if (!(v + bound_.of_x(j)[0] + bound_.of_z()[i] > bound_.limit())) return false;
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
      if (!(v[k] > bound_.limit())) return false;
    return true;
  }

  // Before anti-diagonal t: moves the base of each row to the smallest state of its most recently computed cell.
  DROPDTW_APART DROPDTW_FLAT void rebase(int last, int before, int t) {
    const int low = t > 0 ? block_.low[t - 1] : 0, high = t > 0 ? block_.high[t - 1] : -1;
    const int bottom = t <= block_.bottom && high == t - 1 ? t : high;  // row t has just entered on the left
    const int from = rebased_from(t), to = rebased_to(t);
    const std::ptrdiff_t stride = stride_;
    T *const near = state(last, 0), *const far = state(before, 0), *const by = bases_.by();
    for (int i = from; i < to; i += W) {
      Vec<T> v = load(near + i);
      for (int s = 1; s < states(); ++s) v = least<T>(load(near + s * stride + i), v);
      const Mask<T> row = i + lane_numbers<T>(), inside = (row >= low) & (row <= bottom);
      const Mask<T> found = (v < inf<T>)&(v > -inf<T>);
      v = inside ? v : Vec<T>{};
      if (!everywhere<T>(found | ~inside))
        for (int k = 0; k < W; ++k)
          if (inside[k] && !found[k]) v[k] = elsewhere(before, i + k, t, k > 0 ? v[k - 1] : T(0));
      store(by + i, v);
      bases_.move(i, v);
      for (int s = 0; s < states(); ++s) {
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
      for (int s = 0; s < states(); ++s) found = state(before, s)[i] < found ? state(before, s)[i] : found;
    if (found < inf<T> && found > -inf<T>) return found;
    return i == 0 ? T(0) : T(bases_.of(i - 1) + row_above - bases_.of(i));
  }

  // Fills the block from the states of the column on its left (∞ if there is none). Stores what is requested: the
  // states of the last column, all states, all choices.
  template <Reducer reducer, bool codes>
  Status forward(Column<T> left, Column<T> right, T* kept, Code* chosen) {
    if constexpr (Tab::unrolled && Bases<T>::possible)  // at run time, lines look for bases themselves
      if (bases_.wanted()) return forward_pass<reducer, codes, true>(left, right, kept, chosen);
    return forward_pass<reducer, codes, false>(left, right, kept, chosen);
  }

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
    const Terms<T> terms = terms_;
    const std::ptrdiff_t stride = stride_;
    T *const near = state(last, 0), *const far = state(before, 0);
    const int start = block_.begin(t), stop = block_.end(t + 1);
    Vec<T> near_above[Tab::states], far_above[Tab::states], here_above[Tab::states];
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
      const Mask<T> first = compute_cells<Tab, T, codes, based>(a, terms);
      each_state<Tab>([&](auto s) {
        store(far + s * stride + i, a.here[s]);
        a.diag[s] = a.top[s];
        a.left[s] = a.here[s];
        a.top[s] = from_previous_lane<T>(here_above[s], a.here[s]);
        here_above[s] = a.here[s];
      });
      a.drop_x = load(prices[1] + i);
      a.match = numbers ? match_.between(load(z + i) - load(x[1] + i), euclidean) : load(match[1] + i);
      const Mask<T> second = compute_cells<Tab, T, codes, based>(a, terms);
      each_state<Tab>([&](auto s) { store(near + s * stride + i, a.here[s]); });
      if constexpr (codes) {
        if (i < ends[0]) keep_code(choice[0] + i, first);
        if (i >= begins[1]) keep_code(choice[1] + i, second);
      }
    }
  }

  template <Reducer reducer, bool codes, bool unrolled_bases>
  DROPDTW_FLAT Status forward_pass(Column<T> left, Column<T> right, T* kept, Code* chosen) {
    if (!match_.fetch()) return Status::stopped;
    const bool based = Tab::unrolled ? unrolled_bases : bases_.wanted();
    if (based) bases_.open(block_.first, left);
    for (int b = 0; b < 3; ++b) fill(b, inf<T>);
    int now = 0, last = 1, before = 2;
    // No row begins after this anti-diagonal.
    const int rows_begin_until = block_.narrow() ? block_.diagonals : block_.first == 0 ? K_ : -1;
    const bool checks_limit =
        reducer == Reducer::hard && !codes && bound_.wanted() && block_.first == 0 && block_.last == N_;
    for (int t = 0; t < block_.diagonals; ++t) {
      if (t % group == 0 && !alive(t)) return Status::stopped;
      if constexpr (Tab::unrolled)
        if (together<unrolled_bases>(t, left)) {
          if (based && bases_.due(t)) rebase(last, before, t);
          for (int u = t; based && u < t + 2; ++u)
            if (u <= rows_begin_until && block_.begins(block_.high[u], u)) bases_.begin_row(block_.high[u]);
          const bool numbers = !codes && match_.of_numbers();
          if constexpr (!codes)
            if (numbers) two<false, unrolled_bases, true>(last, before, t, nullptr);
          if (!numbers) two<codes, unrolled_bases, false>(last, before, t, chosen);
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
      cells<reducer, codes, unrolled_bases>(now, last, before, t, chosen);
      if (block_.first == 0 && t == 0)
        for (int s = 0; s < states(); ++s) state(now, s)[0] = problem_.table->start[s] ? T(0) : inf<T>;
      extend_runs(now, last, t);
      if (block_.narrow()) wall(now, t);
      if (kept != nullptr)
        for (int s = 0; s < states(); ++s)
          std::memcpy(kept + states() * block_.offset[t] + s * (block_.offset[t + 1] - block_.offset[t]),
                      state(now, s) + block_.begin(t), (block_.offset[t + 1] - block_.offset[t]) * sizeof(T));
      if (const int i = t - (block_.last - block_.first); right.states != nullptr && i >= 0) leave(now, i, right, t);
      if (checks_limit && t % group == 1 && t + 1 < block_.diagonals && exceeds_limit(now, last, t)) return give_up(t);
      const int free = before;
      before = last;
      last = now;
      now = free;
    }
    ended_ = last;
    return Status::done;
  }

  // Computes the cells of anti-diagonal t.
  template <Reducer reducer, bool codes, bool based>
  DROPDTW_INLINE void cells(int now, int last, int before, int t, Code* chosen) {
    const T* const match = match_.of(t);
    const int begin = block_.begin(t), end = block_.end(t);
    if constexpr (Tab::unrolled) {
      Code* const choice = codes ? chosen + block_.offset[t] - begin : nullptr;
      const Sources from = sources(last, before, t);
      const Terms<T> terms = terms_;
      T* const here = state(now, 0);
      for (int i = begin; i < end; i += W) {
        Around<Tab, T> a;
        gather<based>(a, from, i);
        a.match = load(match + i);
        const Mask<T> code = compute_cells<Tab, T, codes, based>(a, terms);
        each_state<Tab>([&](auto s) { store(here + s * from.stride + i, a.here[s]); });
        if constexpr (codes) keep_code(choice + i, code);
      }
    } else {
      const std::size_t n = block_.offset[t + 1] - block_.offset[t];
      Code* const choice = codes ? chosen + states() * block_.offset[t] : nullptr;
      const Line<T> these = line(now, last, before, t, match);
      lines_.template enter<reducer, codes>(these, begin, end, choice, n);
      if (problem_.table->border_ends != nullptr)
        for (const int i : {on_row_0(t) ? 0 : -1, on_column_0(t) ? t : -1})
          if (i >= 0) lines_.template enter_border<reducer>(these, i, codes ? choice + (i - begin) : nullptr, n);
    }
  }

  // Puts row i of the column on the left where anti-diagonal i reads it.
  void enter(int buffer, int i, const Column<T>& left) {
    for (int s = 0; s < states(); ++s)
      state(buffer, s)[i] = left.states == nullptr ? inf<T> : left.states[std::size_t(s) * (K_ + 1) + i];
  }

  // Stores row i of the last column, in which anti-diagonal t ends.
  void leave(int now, int i, const Column<T>& right, int t) {
    const bool inside = i >= block_.low[t] && i <= block_.high[t];
    for (int s = 0; s < states(); ++s) right.states[std::size_t(s) * (K_ + 1) + i] = inside ? state(now, s)[i] : inf<T>;
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
  const Terms<T> terms_;
  const int K_, N_;
  int lanes_, stride_;
  Block<T> block_;
  Bases<T> bases_;
  MatchCosts<T> match_;
  LowerBound<T> bound_;
  Lines<T> lines_;  // for `Any` alone
  std::int64_t cells_ = 0;
  int ended_ = 0;  // the buffer that holds the last anti-diagonal
  Buffer<T> work_[3], drop_x_, drop_z_;
};

}  // namespace dropdtw::DROPDTW_ISA
