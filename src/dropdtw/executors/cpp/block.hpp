// A block of columns: its cells by anti-diagonal, and the cells that the band leaves out.
//
// Cells far outside the band are not computed; they count as ∞ when a neighbor reads them. On the left, only the first
// column outside the band is ever read. On the right, a row that drops x continues: each further column adds d_x, and
// nothing else happens there. So each row ends where the next one can still use it, at least one column past the band.
// Now take a state that is entered from above where the cell above is left out (z is dropped after such a run of x).
// Its value is that of the same state one column to the left plus that column's price, because drops between two
// matches cost the same in either order.
#pragma once
#include <new>

#include "problem.hpp"
#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

inline constexpr int group = 16;  // anti-diagonals whose match costs are laid out together

template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete(data_, alignment); }
  bool resize(std::size_t n) {
    ::operator delete(data_, alignment);
    data_ = static_cast<T*>(::operator new(n * sizeof(T) + 64, alignment, std::nothrow));
    return data_ != nullptr;
  }
  T* get() const { return data_; }
  T& operator[](std::size_t k) const { return data_[k]; }

 private:
  static constexpr std::align_val_t alignment{64};
  T* data_ = nullptr;
};

template <class T>
struct Block {
  static constexpr int W = Register<T>::W;

  explicit Block(const Problem<T>& the_problem)
      : problem(the_problem),
        K(the_problem.K),
        N(the_problem.N),
        passes_left(passes(Move::left)),
        passes_top(passes(Move::top)) {}

  bool prepare() { return low.resize(K + N + 2) && high.resize(K + N + 2) && offset.resize(K + N + 3); }

  // Opens the block of columns [from, to], with the rows down to `rows`: sets the lanes of each anti-diagonal and where
  // its stored values begin.
  void open(int from, int to, int rows) {
    first = from;
    last = to;
    bottom = rows;
    diagonals = bottom + last - first + 1;
    int top = 0, lowest = 0;
    offset[0] = 0;
    for (int t = 0; t < diagonals; ++t) {
      low[t] = larger(0, t - (last - first));
      high[t] = smaller(bottom, t);
      if (narrow()) {
        while (top < K && first + t - top > rightmost(top)) ++top;
        while (lowest < K && first + t - (lowest + 1) >= leftmost(lowest + 1)) ++lowest;
        low[t] = larger(low[t], top);
        high[t] = smaller(high[t], lowest);
      }
      offset[t + 1] = offset[t] + larger(0, end(t) - begin(t));
    }
  }
  int begin(int t) { return low[t] / W * W; }
  int end(int t) { return high[t] < low[t] ? begin(t) : (high[t] + W) / W * W; }

  // The columns [from, to) of row i that may match, counted as cells.
  void matchable(int i, int& from, int& to) const {
    from = larger(first, 1);
    to = last + 1;
    if (i == 0) to = from;
    if (problem.band_start != nullptr && i > 0) {
      if (problem.band_start[i - 1] + 1 > from) from = int(problem.band_start[i - 1]) + 1;
      if (problem.band_stop[i - 1] + 1 < to) to = int(problem.band_stop[i - 1]) + 1;
    }
  }

  // Whether row i may match on all of the anti-diagonals [t, t + group).
  bool full(int i, int t) const {
    int from, to;
    matchable(i, from, to);
    return first + t - i >= from && first + t - i + group <= to;
  }

  bool passes(Move move) const {  // whether some edge skips an element with this move
    for (const Edge& e : *problem.table)
      if (e.move == move && e.cost != Cost::match) return true;
    return false;
  }

  // Whether state s is entered from above after a run of drops along a row; sets `cost` to what the run pays in each
  // column.
  bool follows_run(int s, Cost& cost) const {
    for (const Edge& e : *problem.table)
      if (e.dst == s && e.src != s && e.move == Move::top && e.cost != Cost::match)
        for (const Edge& f : *problem.table)
          if (f.src == e.src && f.dst == e.src && f.move == Move::left && f.cost != Cost::match) {
            cost = f.cost;
            return true;
          }
    return false;
  }

  // Algorithm 2 takes the drops between two matches in every order. Under soft minima, orders that leave the band count
  // too, so all cells are needed.
  bool narrow() const {
    return problem.band_start != nullptr && problem.table->built_in &&
           (problem.table->border_ends == nullptr || problem.reducer == Reducer::hard);
  }
  std::int64_t leftmost(int i) const { return i == 0 ? 0 : problem.band_start[i - 1] + !passes_top; }
  std::int64_t rightmost(int i) const {
    std::int64_t right = i == 0 ? 0 : problem.band_stop[i - 1];
    if (passes_left) {
      right += 1;
      if (i < K && problem.band_stop[i] - 1 > right) right = problem.band_stop[i] - 1;
      if (i < K && leftmost(i + 1) > right) right = leftmost(i + 1);  // rows share a column to move down in
    }
    return right < N ? right : N;
  }
  // Whether the first cell of row i lies on anti-diagonal t.
  bool begins(int i, int t) const { return i > 0 && first + t - i == (narrow() ? leftmost(i) : 0); }
  // Whether the upper neighbor of cell (i, j) is past the right end of its row.
  bool below_nothing(int i, int j) const { return i > 0 && j > rightmost(i - 1); }

  // Calls f(lane) for each such cell of anti-diagonal t.
  template <class F>
  void each_below_nothing(int t, F&& f) {
    if (!passes_top || !narrow() || problem.table->border_ends != nullptr) return;
    for (int i = larger(low[t], 1); i <= high[t] && below_nothing(i, first + t - i); ++i) f(i);
  }

  const Problem<T>& problem;
  const int K, N;
  const bool passes_left, passes_top;
  int first = 0, last = 0, bottom = 0, diagonals = 0;
  Buffer<int> low, high;       // the first and the last lane of each anti-diagonal
  Buffer<std::size_t> offset;  // where its stored values begin
};

}  // namespace dropdtw::DROPDTW_ISA
