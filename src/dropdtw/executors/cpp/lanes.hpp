// Many problems at a time: W sequences X against one Z, one X to a vector lane.
//
// Each lane is a problem of its own, so there is nothing to skew or mask: a lane with a shorter sequence simply reads
// its value from an earlier column. Rows are processed R at a time, so that the cells of a column stay in registers and
// the processor works on several of them in parallel.
//
// Match costs come in strips of R rows (feed.hpp). Squared differences of numbers are computed on the fly.
//
// Long sums in single precision have bases (see base.hpp). In each tile of columns, each lane of a row has one: the
// smallest state with which the row enters the tile. Only the bases of the last computed row are stored.
#pragma once
#include "base.hpp"
#include "cell.hpp"
#include "feed.hpp"
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
class LaneSolver {
  static constexpr int S = Tab::states, W = Register<T>::W;
  static constexpr int R = S == 1 ? lane_rows : 2;
  static constexpr int check_every = 8;  // rows between two checks against the limit

 public:
  explicit LaneSolver(const LaneProblem<T>& problem)
      : problem_(problem),
        terms_(*problem.table, problem.charges),
        tiles_(problem.bases == nullptr ? 1 : tile_of(problem.N) + 1),
        plain_(problem.feed.d == 1 && problem.feed.metric == Metric::sqeuclidean && !problem.feed.binary) {}

  // Returns how many rows it computed: fewer than K if all lanes are certain to exceed the limit, or if it was stopped.
  int solve() {
    row_zero();
    int i = 1;
    for (; i + R - 1 <= problem_.K; i += R) {
      compute<R>(i);
      if (i % check_every == 1 && i + R <= problem_.K && exceeds_limit()) return i + R - 1;
      if (!alive(R)) return i + R - 1;
    }
    for (; i <= problem_.K; ++i) compute<1>(i);
    for (int lane = 0; lane < W; ++lane) {
      const int length = problem_.lengths[lane];
      T best = inf<T>;
      for (int s : Tab::final) {
        const T v = state_at(length)[s * W + lane];
        best = v < best ? v : best;
      }
      problem_.values[lane] = based() ? best + base(tile_of(length))[lane] : best;
    }
    return problem_.K;
  }

 private:
  // Counts cells and calls `tick` about every 2²² of them per lane; returns false if the work has to stop.
  bool alive(int rows) {
    steps_ += std::int64_t(rows) * problem_.N;
    if (steps_ < (1 << 22)) return true;
    steps_ = 0;
    return problem_.tick(problem_.self);
  }

  T* state_at(int j) { return problem_.rows + std::size_t(j) * S * W; }

  void row_zero() {
    Around<Tab, T> a;
    for (int s = 0; s < S; ++s) {
      a.here[s] = all<T>(Tab::start[s] ? T(0) : inf<T>);
      a.top[s] = a.diag[s] = all<T>(inf<T>);
      store(state_at(0) + s * W, a.here[s]);
    }
    a.match = a.drop_z = all<T>(inf<T>);
    if (based()) set_base(0, Wide<T>{});
    for (int j = 1; j <= problem_.N; ++j) {
      if (based() && j > 1 && j == begin(tile_of(j))) {
        const Vec<T> by = or_else(least_of(a.here), Vec<T>{});
        set_base(tile_of(j), base(tile_of(j) - 1) + widened(by));
        for (int s = 0; s < S; ++s) a.here[s] -= by;
      }
      for (int s = 0; s < S; ++s) a.left[s] = a.here[s];
      a.drop_x = load(problem_.drop_x + std::size_t(j - 1) * W);
      compute_cells<Tab, T, false>(a, terms_);
      for (int s = 0; s < S; ++s) store(state_at(j) + s * W, a.here[s]);
    }
  }

  // Whether every alignment of every lane exceeds the limit: each passes through this row, and costs are not negative.
  // Cells beyond the end of a shorter lane can only make this check more conservative.
  DROPDTW_FLAT bool exceeds_limit() {
    if (!(problem_.limit < inf<T>)) return false;
    Vec<T> best = all<T>(inf<T>);
    if (problem_.feed.start != nullptr)
      best = least_between(first_ + 1, end_ + 1);
    else
      for (int b = 0; b < tiles_; ++b)
        best = least<T>(least_between(begin(b), begin(b + 1)) + (based() ? narrowed(base(b)) : Vec<T>{}), best);
    // Moving bases rounds, so a total may come out slightly below a partial sum.
    const T limit = based() ? problem_.limit * T(1 + 0x1p-12) : problem_.limit;
    for (int lane = 0; lane < W; ++lane)
      if (problem_.lengths[lane] > 0 && !(best[lane] > limit)) return false;
    for (int lane = 0; lane < W; ++lane) problem_.values[lane] = inf<double>;
    return true;
  }

  // Tile b has the columns [begin(b), begin(b + 1)).
  static int tile_of(int j) { return j == 0 ? 0 : (j - 1) / lane_tile; }
  int begin(int b) const { return b == 0 ? 0 : b == tiles_ ? problem_.N + 1 : b * lane_tile + 1; }

  bool based() const { return sizeof(T) == 4 && problem_.bases != nullptr; }
  Wide<T> base(int b) const {
    Wide<T> v;
    std::memcpy(&v, problem_.bases + std::size_t(b) * W, sizeof v);
    return v;
  }
  void set_base(int b, Wide<T> v) { std::memcpy(problem_.bases + std::size_t(b) * W, &v, sizeof v); }
  static DROPDTW_INLINE Vec<T> narrowed(Wide<T> v) { return __builtin_convertvector(v, Vec<T>); }
  static DROPDTW_INLINE Wide<T> widened(Vec<T> v) { return __builtin_convertvector(v, Wide<T>); }

  static DROPDTW_INLINE Vec<T> least_of(const Vec<T>* states) {
    Vec<T> v = states[0];
    for (int s = 1; s < S; ++s) v = least<T>(states[s], v);
    return v;
  }
  static DROPDTW_INLINE Vec<T> or_else(Vec<T> v, Vec<T> other) { return (v < inf<T>)&(v > -inf<T>) ? v : other; }

  Vec<T> least_between(int from, int to) {  // counted in cells
    Vec<T> best = all<T>(inf<T>);
    for (const T *p = state_at(from), *end = state_at(to); p < end; p += W) best = least<T>(load(p), best);
    return best;
  }

  template <int rows_at_once>
  void compute(int i) {
    if constexpr (sizeof(T) == 4)
      if (based()) return rows<rows_at_once, true>(i);
    rows<rows_at_once, false>(i);
  }

  template <int rows_at_once, bool tiled>
  DROPDTW_FLAT void rows(int i) {
    Vec<T> left[rows_at_once][S], diag[S];
    Around<Tab, T> a;
    for (int s = 0; s < S; ++s) {
      diag[s] = a.top[s] = load(state_at(0) + s * W);
      a.left[s] = a.diag[s] = all<T>(inf<T>);
    }
    a.match = a.drop_x = all<T>(inf<T>);
    for (int r = 0; r < rows_at_once; ++r) {
      a.drop_z = load(problem_.drop_z + std::size_t(i + r - 1) * W);
      compute_cells<Tab, T, false>(a, terms_);
      for (int s = 0; s < S; ++s) left[r][s] = a.top[s] = a.here[s];
    }
    for (int s = 0; s < S; ++s) store(state_at(0) + s * W, a.here[s]);
    const Strip<rows_at_once> strip = strip_of<rows_at_once>(i);
    if constexpr (tiled) {
      if (plain_)
        tiles<rows_at_once, true>(i, strip, left, diag);
      else
        tiles<rows_at_once, false>(i, strip, left, diag);
    } else {
      between<rows_at_once>(i, strip, left, diag);
    }
  }

  // What does not change from cell to cell of a row.
  template <int rows_at_once>
  struct Strip {
    Vec<T> z[rows_at_once], drop_z[rows_at_once], descent[rows_at_once];
  };

  // Computes all columns that some lane may match in these rows. Cells elsewhere count as ∞; what earlier rows stored
  // there is not read.
  template <int rows_at_once>
  DROPDTW_INLINE void between(int i, const Strip<rows_at_once>& strip, Vec<T> (&left)[rows_at_once][S],
                              Vec<T> (&diag)[S]) {
    int at[] = {0, 0, problem_.N, problem_.N};  // between at[1] and at[2], costs are computed on the fly
    if (problem_.feed.start != nullptr) {
      const int last = i + rows_at_once - 2;
      at[0] = problem_.feed.from[i - 1];
      at[3] = larger(at[0], problem_.feed.to[last]);
      at[1] = smaller(larger(at[0], problem_.feed.inner_from[last]), at[3]);
      at[2] = smaller(larger(at[1], problem_.feed.inner_to[i - 1]), at[3]);
      if (at[0] > 0) {
        for (int r = 0; r < rows_at_once; ++r)
          for (int s = 0; s < S; ++s) left[r][s] = all<T>(inf<T>);
        for (int s = 0; s < S; ++s) diag[s] = at[0] > first_ ? load(state_at(at[0]) + s * W) : all<T>(inf<T>);
      }
    }
    if (!plain_) at[1] = at[2] = at[3];
    for (int part = 0; part < 3; part += 2) {
      cells<rows_at_once, false, false>(i, at[part], at[part + 1], strip, left, diag);
      if (part == 0) cells<rows_at_once, true, false>(i, at[1], at[2], strip, left, diag);
    }
    first_ = at[0];
    end_ = at[3];
  }

  template <int rows_at_once>
  DROPDTW_INLINE Strip<rows_at_once> strip_of(int i) {
    Strip<rows_at_once> strip;
    for (int r = 0; r < rows_at_once; ++r) {
      strip.z[r] = all<T>(problem_.feed.z[std::size_t(i + r - 1) * problem_.feed.d]);
      strip.drop_z[r] = load(problem_.drop_z + std::size_t(i + r - 1) * W);
    }
    return strip;
  }

  template <int rows_at_once, bool plain>
  DROPDTW_INLINE void tiles(int i, const Strip<rows_at_once>& strip, Vec<T> (&left)[rows_at_once][S],
                            Vec<T> (&diag)[S]) {
    Wide<T> own[rows_at_once], before = base(0);
    for (int r = 0; r < rows_at_once; ++r) own[r] = before;
    for (int b = 0; b < tiles_; ++b) {
      Strip<rows_at_once> here = strip;
      Wide<T> above = base(b);
      for (int s = 0; s < S; ++s) diag[s] += narrowed(before - above);
      before = above;
      for (int r = 0; r < rows_at_once; ++r) {
        const Vec<T> by = or_else(least_of(left[r]), narrowed(above - own[r]));
        own[r] += widened(by);
        for (int s = 0; s < S; ++s) left[r][s] -= by;
        here.descent[r] = narrowed(above - own[r]);
        here.drop_z[r] += here.descent[r];
        above = own[r];
      }
      if (b == 0)  // column 0 has the base of its tile
        for (int s = 0; s < S; ++s) store(state_at(0) + s * W, left[rows_at_once - 1][s]);
      cells<rows_at_once, plain, true>(i, larger(begin(b), 1) - 1, begin(b + 1) - 1, here, left, diag);
      set_base(b, above);
    }
  }

  // Computes the columns [from, to) of the rows.
  template <int rows_at_once, bool plain, bool based>
  DROPDTW_INLINE void cells(int i, int from, int to, const Strip<rows_at_once>& strip, Vec<T> (&left)[rows_at_once][S],
                            Vec<T> (&diag)[S]) {
    if constexpr (plain) {
      some_cells<rows_at_once, true, based>(from, to, strip, left, diag);
    } else {
      for (int j = from; j < to; j += lane_tile) {  // so few at a time that their costs stay in the L1 cache
        const int end = smaller(j + lane_tile, to);
        feed_costs<T>(problem_.feed, i - 1, rows_at_once, j, end, {lane_tile}, match_);
        some_cells<rows_at_once, false, based>(j, end, strip, left, diag);
      }
    }
  }

  template <int rows_at_once, bool plain, bool based>
  DROPDTW_INLINE void some_cells(int from, int to, const Strip<rows_at_once>& strip, Vec<T> (&left)[rows_at_once][S],
                                 Vec<T> (&diag)[S]) {
    // Local copies: the compiler must assume that any store changes a member, or what it points to.
    const Terms<T> terms = terms_;
    Vec<T> z[rows_at_once], drop_z[rows_at_once], descent[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) {
      z[r] = strip.z[r];
      drop_z[r] = strip.drop_z[r];
      if constexpr (based) descent[r] = strip.descent[r];
    }
    T* here = problem_.rows + std::size_t(from) * S * W;
    const T* x = plain ? problem_.feed.x + std::size_t(from) * W : match_;
    const T* drop_x = problem_.drop_x + std::size_t(from) * W;
    for (int j = from; j < to; ++j, x += W, drop_x += W) {
      here += S * W;
      Around<Tab, T> a;
      each_state<Tab>([&](auto s) {
        a.diag[s] = diag[s];
        diag[s] = a.top[s] = load(here + s * W);
      });
      a.drop_x = load(drop_x);
      each_row<rows_at_once>([&](auto r) {
        each_state<Tab>([&](auto s) { a.left[s] = left[r][s]; });
        a.drop_z = drop_z[r];
        if constexpr (based) a.descent = descent[r];
        if constexpr (plain) {
          const Vec<T> gap = z[r] - load(x);
          a.match = rounded<T>(gap * gap);
        } else {
          a.match = load(x + r * lane_tile * W);
        }
        compute_cells<Tab, T, false, based>(a, terms);
        each_state<Tab>([&](auto s) {
          a.diag[s] = left[r][s];
          left[r][s] = a.top[s] = a.here[s];
        });
      });
      each_state<Tab>([&](auto s) { store(here + s * W, a.here[s]); });
    }
  }

  template <int n, class F>
  static DROPDTW_INLINE void each_row(F&& f) {
    visit_states(std::make_integer_sequence<int, n>{}, f);
  }

  const LaneProblem<T>& problem_;
  const Terms<T> terms_;
  const int tiles_;
  const bool plain_;                        // whether match costs are squared differences of numbers
  int first_ = -1, end_ = 0;                // the columns [first_, end_) of the last computed row
  std::int64_t steps_ = 0;                  // cells since the last tick, per lane
  alignas(64) T match_[R * lane_tile * W];  // the match costs of a strip
};

}  // namespace dropdtw::DROPDTW_ISA
