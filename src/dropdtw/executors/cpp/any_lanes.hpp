// Many problems at a time, as in lanes.hpp, for a table that is read at run time.
//
// Rows are processed in strips. Within a strip, anti-diagonals are computed as in wave.hpp, but each cell is a vector:
// vector r of anti-diagonal t is the cell (first + r, t − r) of all lanes. So an edge that was read serves a whole
// anti-diagonal. A vector before them holds the cell above the strip that the next anti-diagonals read.
//
// There are no bases: long sums in single precision are not computed here.
#pragma once
#include "feed.hpp"
#include "lines.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
class AnyLanes {
  static constexpr int W = Register<T>::W;
  static constexpr int R = 16;      // rows of a strip
  static constexpr int G = 4;       // rows whose match costs are computed together
  static constexpr int ahead = 13;  // anti-diagonals whose match costs are computed together, in 16 columns of G rows
  static constexpr int stride = (R + 1) * W;

 public:
  explicit AnyLanes(const LaneProblem<T>& problem)
      : problem_(problem),
        S_(problem.table->states),
        squares_(problem.feed.d == 1 && problem.feed.metric == Metric::sqeuclidean && !problem.feed.binary &&
                 shares_match(*problem.table)) {}

  // Returns how many rows it computed, as in lanes.hpp; −1 if there is no memory.
  int solve() {
    if (!prepare()) return -1;
    for (int first = 0; first <= problem_.K; first += R) {
      const int rows = smaller(R, problem_.K + 1 - first), done = first + rows - 1;
      strip(first, rows);
      if (done < problem_.K && (exceeds_limit() || !alive())) return done;
    }
    for (int lane = 0; lane < W; ++lane) {
      T best = inf<T>;
      for (int k = 0; k < problem_.table->final_count; ++k) {
        const T v = above(problem_.lengths[lane])[problem_.table->final[k] * W + lane];
        best = v < best ? v : best;
      }
      problem_.values[lane] = best;
    }
    return problem_.K;
  }

 private:
  bool prepare() {
    const std::size_t columns = problem_.N + 2 * R;
    bool ok = drop_x_.resize(columns * W) && x_.resize(squares_ ? columns * W : 0) && aside_.resize(S_ * W);
    for (auto& lines : lines_) ok = ok && lines.prepare(*problem_.table, problem_.charges, 1, stride);
    for (auto& cells : cells_) ok = ok && cells.resize(std::size_t(S_) * stride);
    if (!ok) return false;
    for (int k = 0; k < 3; ++k) {
      const T *const before = cells_[(k + 1) % 3].get(), *const last = cells_[(k + 2) % 3].get();
      T* const now = cells_[k].get() + W;
      line_[k] = {{before, last + W, last, now}, {match_, nullptr, drop_z_, nullptr}, nullptr, now};
      if (squares_) line_[k].z = z_;
      lines_[k].connect(line_[k]);
    }
    fill(problem_.rows, std::size_t(problem_.N + 1) * S_);
    fill(aside_.get(), S_);
    reverse(problem_.drop_x, drop_x_, inf<T>);
    if (squares_) reverse(problem_.feed.x, x_, -inf<T>);  // in row 0, z is ∞: nothing matches there, or in column 0
    return true;
  }

  // Whether match costs are only paid by all edges into a state, with the same weight.
  static bool shares_match(const Table& table) {
    for (const Edge& e : table)
      for (const Edge& other : table)
        if (e.cost == Cost::match && e.dst == other.dst && (other.cost != e.cost || other.weight != e.weight))
          return false;
    return true;
  }

  static void fill(T* p, std::size_t vectors) {
    for (std::size_t k = 0; k < vectors; ++k) store(p + k * W, all<T>(inf<T>));
  }

  T* above(int j) { return problem_.rows + std::size_t(j) * S_ * W; }  // the states of the row above, in column j

  // What belongs to x is reversed, so that anti-diagonals read it forward.
  T* at(Buffer<T>& reversed, int j) { return reversed.get() + std::size_t(problem_.N + R - 1 - j) * W; }
  void reverse(const T* from, Buffer<T>& to, T elsewhere) {
    for (int k = 0; k < problem_.N + 2 * R; ++k) store(&to[std::size_t(k) * W], all<T>(elsewhere));
    for (int j = 1; j <= problem_.N; ++j) store(at(to, j), load(from + std::size_t(j - 1) * W));
  }

  T* matches(int t) { return match_ + (t - known_ + G - 1) * R * W; }

  // Computes the rows [first, first + rows), and stores the states of the last one.
  void strip(int first, int rows) {
    const Table& table = *problem_.table;
    for (auto& cells : cells_) fill(cells.get(), std::size_t(S_) * (R + 1));
    fill(drop_z_, R);
    for (int r = first == 0; r < rows; ++r)
      store(drop_z_ + r * W, load(problem_.drop_z + std::size_t(first + r - 1) * W));
    for (int r = 0; squares_ && r < R; ++r)
      store(z_ + r * W, all<T>(first + r > 0 && r < rows ? problem_.feed.z[first + r - 1] : inf<T>));
    const int N = problem_.N, S = S_;
    for (int s = 0; s < S; ++s) store(cells_[2].get() + s * stride, load(above(0) + s * W));
    for (int t = 0, k = 0; t < N + rows; ++t, k = k == 2 ? 0 : k + 1) {
      Line<T>& line = line_[k];
      const Lines<T>& lines = lines_[k];
      line.prices[1] = at(drop_x_, t);
      if (squares_) {
        line.x = at(x_, t);
      } else {
        if (t % ahead == 0) bring_costs(first, rows, t);
        line.prices[0] = matches(t);
      }
      // At first, only the upper half is inside the grid, and in the end only the lower half.
      if (t < R / 2 || rows <= R / 2)
        cells<R / 2>(lines, line, 0);
      else if (t >= N + R / 2)
        cells<R / 2>(lines, line, R / 2);
      else
        cells<R>(lines, line, 0);
      const bool origin = first == 0 && t == 0;
      if (table.border_ends != nullptr && !origin) {
        if (first == 0) lines.enter_border(line, 0);
        if (t < rows) lines.enter_border(line, t * W);
      }
      for (int s = 0; origin && s < S; ++s) store(line.here + s * stride, all<T>(table.start[s] ? T(0) : inf<T>));
      // Brings the cell that the next anti-diagonal reads from above the strip, and keeps the last row.
      T *here = line.here - W, *const aside = aside_.get(), *kept = t >= rows - 1 ? above(t - (rows - 1)) : aside;
      const T* next = t < N ? above(t + 1) : aside;
      for (int s = 0; s < S; ++s, here += stride, next += W, kept += W) {
        store(here, load(next));
        store(kept, load(here + rows * W));
      }
    }
  }

  template <int vectors>
  DROPDTW_FLAT static void cells(const Lines<T>& lines, const Line<T>& line, int from) {
    lines.template least_of<vectors, false, true>(line, from * W, nullptr, 0);
  }

  // Computes the match costs of the anti-diagonals [t, t + ahead): those of G rows at a time, in all columns that any
  // of these rows has there. The costs that this adds are those of G − 1 anti-diagonals more, on either side.
  void bring_costs(int first, int rows, int t) {
    known_ = t;
    if (t == 0) fill(match_, lines_of_match * R);  // row 0 and column 0 match nothing
    for (int r = first == 0; r < rows; r += G) {
      const int many = smaller(G, rows - r);
      const int from = larger(t - r - (many - 1), 1), to = smaller(t + ahead - r, problem_.N + 1);
      if (from < to)
        feed_costs<T>(problem_.feed, first + r - 1, many, from - 1, to - 1, {R + 1, R}, matches(from + r) + r * W);
    }
  }

  // As in lanes.hpp, for the row that was computed last.
  bool exceeds_limit() {
    if (!(problem_.limit < inf<T>)) return false;
    Vec<T> best = all<T>(inf<T>);
    for (const T *p = above(0), *end = above(problem_.N + 1); p < end; p += W) best = least<T>(load(p), best);
    for (int lane = 0; lane < W; ++lane)
      if (problem_.lengths[lane] > 0 && !(best[lane] > problem_.limit)) return false;
    for (int lane = 0; lane < W; ++lane) problem_.values[lane] = inf<double>;
    return true;
  }

  bool alive() {
    steps_ += std::int64_t(R) * problem_.N;
    if (steps_ < (1 << 22)) return true;
    steps_ = 0;
    return problem_.tick(problem_.self);
  }

  const LaneProblem<T>& problem_;
  const int S_;
  const bool squares_;  // whether match costs are squared differences of numbers, computed with the cells
  // Three buffers take turns: anti-diagonal t is in number t % 3, and computed from the other two.
  Buffer<T> cells_[3], drop_x_, x_, aside_;
  Line<T> line_[3];
  Lines<T> lines_[3];
  std::int64_t steps_ = 0;  // cells since the last tick, per lane
  static constexpr int lines_of_match = ahead + 2 * (G - 1);
  int known_ = 0;  // the anti-diagonal at match_ + (G − 1) R W
  alignas(64) T z_[R * W], drop_z_[R * W], match_[lines_of_match * R * W];
};

}  // namespace dropdtw::DROPDTW_ISA
