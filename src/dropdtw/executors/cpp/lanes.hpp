// Many problems at a time: W sequences of their own share vectors, all against one Z.
//
// Each lane is a problem, so there is nothing to skew or to mask: a lane whose sequence is shorter simply reads its
// value off an earlier column. Rows are taken R at a time: the cells of a column then stay in registers, and the
// processor works on several of them at once.
//
// Long sums in single precision have bases (see base.hpp): in each tile of columns, each lane of a row has one, the
// least state with which the row enters the tile. Those of the last row that was computed are kept.
#pragma once
#include "base.hpp"
#include "cell.hpp"
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
class LaneSolver {
  static constexpr int S = Tab::states, W = Register<T>::W;
  static constexpr int R = S == 1 ? 4 : 2;
  static constexpr int look = 8;  // rows after which costs are held against the limit

 public:
  explicit LaneSolver(const LaneProblem<T>& problem)
      : problem_(problem),
        fold_{problem.mask, 0, 0, {}},
        tiles_(problem.bases == nullptr ? 1 : tile_of(problem.N) + 1) {
    for (int c = 0; c < charge_count; ++c) fold_.charges[c] = problem.charges[c];
  }

  // Returns how many rows it computed: fewer than K where all lanes are sure to exceed the limit, or when told to stop.
  int solve() {
    row_zero();
    int i = 1;
    for (; i + R - 1 <= problem_.K; i += R) {
      compute<R>(i);
      if (i % look == 1 && i + R <= problem_.K && hopeless()) return i + R - 1;
      if (!alive(R)) return i + R - 1;
    }
    for (; i <= problem_.K; ++i) compute<1>(i);
    for (int lane = 0; lane < W; ++lane) {
      const int length = problem_.lengths[lane];
      T best = inf<T>;
      for (int s : Tab::final) {
        const T v = at(length)[s * W + lane];
        best = v < best ? v : best;
      }
      problem_.values[lane] = based() ? T(best + base(tile_of(length))[lane]) : best;
    }
    return problem_.K;
  }

 private:
  // Whether to go on after so many more rows.
  bool alive(int rows) {
    steps_ += std::int64_t(rows) * problem_.N;
    if (steps_ < (1 << 22)) return true;
    steps_ = 0;
    return problem_.tick(problem_.self);
  }

  T* at(int j) { return problem_.rows + std::size_t(j) * S * W; }

  void row_zero() {
    Around<Tab, T> a;
    for (int s = 0; s < S; ++s) {
      a.here[s] = all<T>(Tab::start[s] ? T(0) : inf<T>);
      a.top[s] = a.diag[s] = all<T>(inf<T>);
      store(at(0) + s * W, a.here[s]);
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
      a.drop_x = all<T>(problem_.drop_x[j - 1]);
      border_or_step<Move::left>(a);
      for (int s = 0; s < S; ++s) store(at(j) + s * W, a.here[s]);
    }
  }

  // Whether no alignment of any lane can stay within the limit: each passes through the row, and costs are not
  // negative. The cells beyond the end of a shorter lane can only make this more careful.
  DROPDTW_FLAT bool hopeless() {
    if (!(problem_.limit < inf<T>)) return false;
    Vec<T> best = all<T>(inf<T>);
    for (int b = 0; b < tiles_; ++b) best = least<T>(least_in(b) + (based() ? narrowed(base(b)) : Vec<T>{}), best);
    // Moving bases rounds, and may make the whole a little less than a part.
    const T limit = based() ? problem_.limit * T(1 + 0x1p-12) : problem_.limit;
    for (int lane = 0; lane < W; ++lane)
      if (problem_.lengths[lane] > 0 && !(best[lane] > limit)) return false;
    for (int lane = 0; lane < W; ++lane) problem_.values[lane] = inf<T>;
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

  Vec<T> least_in(int b) {
    Vec<T> best = all<T>(inf<T>);
    for (const T *p = at(begin(b)), *end = at(begin(b + 1)); p < end; p += W) best = least<T>(load(p), best);
    return best;
  }

  // A cell of row 0 (entered by left) or of column 0 (by top).
  template <Move move>
  DROPDTW_INLINE void border_or_step(Around<Tab, T>& a) {
    if constexpr (Tab::has_border) {
      Vec<T> out[S];
      for (int s = 0; s < S; ++s) {
        out[s] = all<T>(inf<T>);
        for (const Edge& e : Tab::border)
          if (e.dst == s && e.move == move)
            out[s] = move == Move::left ? a.left[e.src] + a.drop_x : a.top[e.src] + a.drop_z;
      }
      for (int s = 0; s < S; ++s) a.here[s] = out[s];
    } else {
      step<Tab, T, Reducer::hard, false>(a, fold_);
    }
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
      diag[s] = a.top[s] = load(at(0) + s * W);
      a.left[s] = a.diag[s] = all<T>(inf<T>);
    }
    a.match = a.drop_x = all<T>(inf<T>);
    for (int r = 0; r < rows_at_once; ++r) {
      a.drop_z = all<T>(problem_.drop_z[i + r - 1]);
      border_or_step<Move::top>(a);
      for (int s = 0; s < S; ++s) left[r][s] = a.top[s] = a.here[s];
    }
    for (int s = 0; s < S; ++s) store(at(0) + s * W, a.here[s]);
    if (problem_.d == 1 && problem_.metric == Metric::sqeuclidean)
      columns<rows_at_once, true, tiled>(i, left, diag);
    else
      columns<rows_at_once, false, tiled>(i, left, diag);
  }

  template <int rows_at_once, bool plain, bool tiled>
  DROPDTW_INLINE void columns(int i, Vec<T> (&left)[rows_at_once][S], Vec<T> (&diag)[S]) {
    Strip<rows_at_once> strip;
    for (int r = 0; r < rows_at_once; ++r) {
      strip.z[r] = all<T>(problem_.z[std::size_t(i + r - 1) * problem_.d]);
      strip.drop_z[r] = all<T>(problem_.drop_z[i + r - 1]);
    }
    if constexpr (tiled)
      tiles<rows_at_once, plain>(i, strip, left, diag);
    else
      cells<rows_at_once, plain, false>(i, 0, problem_.N, strip, left, diag);
  }

  // What rows share from cell to cell.
  template <int rows_at_once>
  struct Strip {
    Vec<T> z[rows_at_once], drop_z[rows_at_once], descent[rows_at_once];
  };

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
      if (b == 0)  // column 0 is on the base of its tile
        for (int s = 0; s < S; ++s) store(at(0) + s * W, left[rows_at_once - 1][s]);
      cells<rows_at_once, plain, true>(i, larger(begin(b), 1) - 1, begin(b + 1) - 1, here, left, diag);
      set_base(b, above);
    }
  }

  // The columns [from, to) of the rows.
  template <int rows_at_once, bool plain, bool based>
  DROPDTW_INLINE void cells(int i, int from, int to, const Strip<rows_at_once>& strip, Vec<T> (&left)[rows_at_once][S],
                            Vec<T> (&diag)[S]) {
    // Copies, since the compiler must assume that any store changes what problem_ points to.
    const LaneProblem<T> problem = problem_;
    const Fold<T> fold = fold_;
    Vec<T> z[rows_at_once], drop_z[rows_at_once], descent[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) {
      z[r] = strip.z[r];
      drop_z[r] = strip.drop_z[r];
      if constexpr (based) descent[r] = strip.descent[r];
    }
    T* here = problem.rows + std::size_t(from) * S * W;
    const T* x = problem.x + std::size_t(from) * problem.d * W;
    for (int j = from; j < to; ++j, x += problem.d * W) {
      here += S * W;
      Around<Tab, T> a;
      each_state<Tab>([&](auto s) {
        a.diag[s] = diag[s];
        diag[s] = a.top[s] = load(here + s * W);
      });
      a.drop_x = all<T>(problem.drop_x[j]);
      each_row<rows_at_once>([&](auto r) {
        each_state<Tab>([&](auto s) { a.left[s] = left[r][s]; });
        a.drop_z = drop_z[r];
        if constexpr (based) a.descent = descent[r];
        if constexpr (plain) {
          const Vec<T> gap = z[r] - load(x);
          a.match = rounded<T>(gap * gap);
        } else {
          a.match = cost(problem, i + r, x);
        }
        step<Tab, T, Reducer::hard, false, based>(a, fold);
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

  static DROPDTW_INLINE Vec<T> cost(const LaneProblem<T>& problem, int i, const T* x) {
    const T* const z = problem.z + std::size_t(i - 1) * problem.d;
    Vec<T> sum{};
    for (int f = 0; f < problem.d; ++f) {
      const Vec<T> gap = all<T>(z[f]) - load(x + f * W);
      sum += gap * gap;
    }
    if (problem.metric == Metric::euclidean) sum = root_of<T>(sum);
    return sum;
  }

  const LaneProblem<T>& problem_;
  Fold<T> fold_;
  const int tiles_;
  std::int64_t steps_ = 0;  // columns of rows since the last tick
};

}  // namespace dropdtw::DROPDTW_ISA
