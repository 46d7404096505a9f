// A block of columns: which cells it has, by anti-diagonals, and which of them the band leaves out.
//
// Cells far outside the band are left out, and stand for ∞ where a neighbour looks at them. Left of the band only its
// first column on that side is ever looked at. Right of it, a row that drops x runs on: with d_x on each further
// column, and nothing else happens there. So each row ends where the next one can still use it, one column past the
// band at least, and a state that is entered from a cell above that is left out (z dropped after such a run of x) is
// the same state one column to the left plus that column's price: the drops in a gap cost the same in either order.
#pragma once
#include <cstdlib>

#include "cell.hpp"
#include "problem.hpp"

namespace dropdtw::DROPDTW_ISA {

inline constexpr int group = 16;  // anti-diagonals whose match costs are laid out together

template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  bool resize(std::size_t n) {
    std::free(data_);
    data_ = static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64));
    return data_ != nullptr;
  }
  T* get() { return data_; }
  T& operator[](std::size_t k) { return data_[k]; }

 private:
  T* data_ = nullptr;
};

template <class Tab, class T>
struct Block {
  static constexpr int W = Register<T>::W;

  explicit Block(const Problem<T>& the_problem) : problem(the_problem), K(the_problem.K), N(the_problem.N) {}

  bool prepare() { return low.resize(K + N + 2) && high.resize(K + N + 2) && offset.resize(K + N + 3); }

  // Opens the block of columns [from, to]: which lanes each anti-diagonal has, and where its stored values begin.
  void open(int from, int to) {
    first = from;
    last = to;
    diagonals = K + last - first + 1;
    int top = 0, bottom = 0;
    offset[0] = 0;
    for (int t = 0; t < diagonals; ++t) {
      low[t] = larger(0, t - (last - first));
      high[t] = smaller(K, t);
      if (narrow()) {
        while (top < K && first + t - top > rightmost(top)) ++top;
        while (bottom < K && first + t - (bottom + 1) >= leftmost(bottom + 1)) ++bottom;
        low[t] = larger(low[t], top);
        high[t] = smaller(high[t], bottom);
      }
      offset[t + 1] = offset[t] + larger(0, end(t) - begin(t));
    }
  }
  int begin(int t) { return low[t] / W * W; }
  int end(int t) { return high[t] < low[t] ? begin(t) : (high[t] + W) / W * W; }

  // The columns of row i that may match: [from, to), as cells.
  void matchable(int i, int& from, int& to) const {
    from = larger(first, 1);
    to = last + 1;
    if (i == 0) to = from;
    if (problem.band_start != nullptr && i > 0) {
      if (problem.band_start[i - 1] + 1 > from) from = int(problem.band_start[i - 1]) + 1;
      if (problem.band_stop[i - 1] + 1 < to) to = int(problem.band_stop[i - 1]) + 1;
    }
  }

  // Whether row i may match on each of the anti-diagonals [t, t + group).
  bool full(int i, int t) const {
    int from, to;
    matchable(i, from, to);
    return first + t - i >= from && first + t - i + group <= to;
  }

  static constexpr bool passes(Move move) {  // whether some edge leaves an element out by this move
    for (const Edge& e : Tab::edges)
      if (e.move == move && e.cost != Cost::match) return true;
    return false;
  }

  // The cost of running on to the right for state s, if s is entered from above after such a run.
  static constexpr bool runs(int s, Cost& cost) {
    for (const Edge& e : Tab::edges)
      if (e.dst == s && e.src != s && e.move == Move::top && e.cost != Cost::match)
        for (const Edge& f : Tab::edges)
          if (f.src == e.src && f.dst == e.src && f.move == Move::left && f.cost != Cost::match) {
            cost = f.cost;
            return true;
          }
    return false;
  }

  // Algorithm 2 reaches a gap by all its orders; under soft minima those that leave the band count too.
  bool narrow() const {
    return problem.band_start != nullptr && (!Tab::has_border || problem.reducer == Reducer::hard);
  }
  std::int64_t leftmost(int i) const { return i == 0 ? 0 : problem.band_start[i - 1] + !passes(Move::top); }
  std::int64_t rightmost(int i) const {
    std::int64_t right = i == 0 ? 0 : problem.band_stop[i - 1];
    if (passes(Move::left)) {
      right += 1;
      if (i < K && problem.band_stop[i] - 1 > right) right = problem.band_stop[i] - 1;
      if (i < K && leftmost(i + 1) > right) right = leftmost(i + 1);  // rows share a column, to move down in
    }
    return right < N ? right : N;
  }
  // Whether row i begins on anti-diagonal t, in a cell to whose left it has none.
  bool begins(int i, int t) const { return i > 0 && first + t - i == (narrow() ? leftmost(i) : 0); }
  bool below_nothing(int i, int j) const { return i > 0 && j > rightmost(i - 1); }

  // The cells of anti-diagonal t whose upper neighbour is left out on the right: f(lane).
  template <class F>
  void each_run(int t, F&& f) {
    if (!narrow() || Tab::has_border || !passes(Move::top)) return;
    for (int i = larger(low[t], 1); i <= high[t] && below_nothing(i, first + t - i); ++i) f(i);
  }

  const Problem<T>& problem;
  const int K, N;
  int first = 0, last = 0, diagonals = 0;
  Buffer<int> low, high;       // the lanes of each anti-diagonal, both inclusive
  Buffer<std::size_t> offset;  // where what is stored of it begins
};

}  // namespace dropdtw::DROPDTW_ISA
