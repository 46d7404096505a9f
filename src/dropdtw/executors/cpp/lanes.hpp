// Many problems at a time: W sequences of their own share vectors, all against one Z.
//
// Each lane is a problem, so there is nothing to skew or to mask: a lane whose sequence is shorter simply reads its
// value off an earlier column. Rows are taken R at a time: the cells of a column then stay in registers, and the
// processor works on several of them at once.
#pragma once
#include "cell.hpp"
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
class LaneSolver {
  static constexpr int S = Tab::states, W = Register<T>::W;
  static constexpr int R = S == 1 ? 4 : 2;
  static constexpr int look = 8;  // rows after which costs are held against the limit

 public:
  explicit LaneSolver(const LaneProblem<T>& problem) : problem_(problem), fold_{problem.mask, 0, 0} {}

  // Returns how many rows it computed: fewer than K where all lanes are sure to exceed the limit, or when told to stop.
  int solve() {
    row_zero();
    int i = 1;
    for (; i + R - 1 <= problem_.K; i += R) {
      rows<R>(i);
      if (i % look == 1 && i + R <= problem_.K && hopeless()) return i + R - 1;
      if (!alive(R)) return i + R - 1;
    }
    for (; i <= problem_.K; ++i) rows<1>(i);
    for (int lane = 0; lane < W; ++lane) {
      T best = inf<T>;
      for (int s : Tab::final) {
        const T v = at(problem_.lengths[lane])[s * W + lane];
        best = v < best ? v : best;
      }
      problem_.values[lane] = best;
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
    for (int j = 1; j <= problem_.N; ++j) {
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
    for (std::size_t k = 0; k < std::size_t(problem_.N + 1) * S; ++k)
      best = least<T>(load(problem_.rows + k * W), best);
    for (int lane = 0; lane < W; ++lane)
      if (problem_.lengths[lane] > 0 && !(best[lane] > problem_.limit)) return false;
    for (int lane = 0; lane < W; ++lane) problem_.values[lane] = inf<T>;
    return true;
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
      columns<rows_at_once, true>(i, left, diag);
    else
      columns<rows_at_once, false>(i, left, diag);
  }

  template <int rows_at_once, bool plain>
  DROPDTW_INLINE void columns(int i, Vec<T> (&left)[rows_at_once][S], Vec<T> (&diag)[S]) {
    // Copies, since the compiler must assume that any store changes what problem_ points to.
    const LaneProblem<T> problem = problem_;
    const Fold<T> fold = fold_;
    Vec<T> z[rows_at_once], drop_z[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) {
      z[r] = all<T>(problem.z[std::size_t(i + r - 1) * problem.d]);
      drop_z[r] = all<T>(problem.drop_z[i + r - 1]);
    }
    T* here = problem.rows;
    const T* x = problem.x;
    for (int j = 0; j < problem.N; ++j, x += problem.d * W) {
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
        if constexpr (plain) {
          const Vec<T> gap = z[r] - load(x);
          a.match = gap * gap;
        } else {
          a.match = cost(problem, i + r, x);
        }
        step<Tab, T, Reducer::hard, false>(a, fold);
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
  std::int64_t steps_ = 0;  // columns of rows since the last tick
};

}  // namespace dropdtw::DROPDTW_ISA
