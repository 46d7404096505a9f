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
  explicit AnyLanes(const LaneProblem<T>& problem) : problem_(problem), S_(problem.table->states) {}

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
    bool ok = lines_.prepare(*problem_.table, problem_.charges, 1, stride) && drop_x_.resize(columns * W);
    for (auto& cells : cells_) ok = ok && cells.resize(std::size_t(S_) * stride);
    if (!ok) return false;
    fill(problem_.rows, std::size_t(problem_.N + 1) * S_);
    fill(drop_x_.get(), columns);
    for (int j = 1; j <= problem_.N; ++j) store(prices_x(j), load(problem_.drop_x + std::size_t(j - 1) * W));
    return true;
  }

  static void fill(T* p, std::size_t vectors) {
    for (std::size_t k = 0; k < vectors; ++k) store(p + k * W, all<T>(inf<T>));
  }

  T* above(int j) { return problem_.rows + std::size_t(j) * S_ * W; }  // the states of the row above, in column j
  // The drop costs of x are reversed, so that anti-diagonals read them forward.
  T* prices_x(int j) { return drop_x_.get() + std::size_t(problem_.N + R - 1 - j) * W; }
  T* matches(int t) { return match_ + (t - known_ + G - 1) * R * W; }

  // Computes the rows [first, first + rows), and stores the states of the last one.
  void strip(int first, int rows) {
    const Table& table = *problem_.table;
    for (auto& cells : cells_) fill(cells.get(), std::size_t(S_) * (R + 1));
    fill(drop_z_, R);
    for (int r = first == 0; r < rows; ++r)
      store(drop_z_ + r * W, load(problem_.drop_z + std::size_t(first + r - 1) * W));
    T *now = cells_[0].get(), *last = cells_[1].get(), *before = cells_[2].get();
    copy(above(0), W, last, stride);
    for (int t = 0; t < problem_.N + rows; ++t) {
      if (t % ahead == 0) bring_costs(first, rows, t);
      const Line<T> line{
          {before, last + W, last, now + W}, {matches(t), prices_x(t), drop_z_, nullptr}, nullptr, now + W};
      const int begin = larger(t - problem_.N, 0) / 8 * 8, end = (smaller(rows, t + 1) + 7) / 8 * 8;
      lines_.template enter<Reducer::hard, false>(line, begin * W, end * W, nullptr, 0);
      const bool origin = first == 0 && t == 0;
      if (table.border_ends != nullptr && !origin) {
        if (first == 0) lines_.enter_border(line, 0);
        if (t < rows) lines_.enter_border(line, t * W);
      }
      for (int s = 0; origin && s < S_; ++s) store(line.here + s * stride, all<T>(table.start[s] ? T(0) : inf<T>));
      if (t < problem_.N) copy(above(t + 1), W, now, stride);
      if (t >= rows - 1) copy(now + rows * W, stride, above(t - (rows - 1)), W);
      T* const free = before;
      before = last;
      last = now;
      now = free;
    }
  }

  // Copies the states of one cell.
  void copy(const T* from, std::ptrdiff_t from_state, T* to, std::ptrdiff_t to_state) const {
    for (int s = 0; s < S_; ++s) store(to + s * to_state, load(from + s * from_state));
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
  Lines<T> lines_;
  Buffer<T> cells_[3], drop_x_;
  std::int64_t steps_ = 0;  // cells since the last tick, per lane
  static constexpr int lines_of_match = ahead + 2 * (G - 1);
  int known_ = 0;  // the anti-diagonal at match_ + (G − 1) R W
  alignas(64) T drop_z_[R * W], match_[lines_of_match * R * W];
};

}  // namespace dropdtw::DROPDTW_ISA
