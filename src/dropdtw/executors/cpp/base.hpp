// Bases keep long sums in single precision accurate.
//
// In single precision, a sum of millions of costs has no digits left for the next one. The errors accumulate: a price
// that is paid repeatedly is rounded the same way each time. So each row has a base in double precision, and its states
// hold the excess over that base. Every `period` anti-diagonals, the base of a row moves to the row's smallest state. A
// value that passes from one row to the next adds the difference of their bases, the descent. A row's base depends only
// on its own cells and those above, never on where blocks begin, so rounding does not depend on the block width. Short
// sums and double precision need no bases.
#pragma once
#include "block.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
using Wide = typename Register<T>::Wide;  // W doubles

// The states of a column between two blocks, and the bases of its rows.
template <class T>
struct Column {
  T* states = nullptr;
  double* bases = nullptr;
};

template <class T>
class Bases {
  static constexpr int W = Register<T>::W;
  static constexpr int period = 64;  // keeps the drift of a price that is paid repeatedly below 10⁻⁶

 public:
  static constexpr bool possible = sizeof(T) == 4;

  bool prepare(int K, int N, int stride) {
    wanted_ = long_sums<T>(K, N);
    K_ = K;
    stride_ = stride;
    return !wanted_ || (base_.resize(stride) && descent_.resize(stride) && by_.resize(stride));
  }

  bool wanted() const { return wanted_; }

  // Opens the block whose first column is `first`, with the bases of the column on its left (0 if there is none).
  void open(int first, const Column<T>& left) {
    first_ = first;
    for (int k = 0; k < stride_; ++k) base_[k] = by_[k] = descent_[k] = 0;
    if (left.bases == nullptr) return;
    for (int i = 0; i <= K_; ++i) base_[W + i] = left.bases[i];
    for (int i = 1; i <= K_; ++i) descent_[W + i] = T(base_[W + i - 1] - base_[W + i]);
  }

  // Starts row i on the base of the row above.
  void begin_row(int i) {
    base_[W + i] = base_[W + i - 1];
    descent_[W + i] = 0;
  }

  // Whether bases move before anti-diagonal t, if there are any.
  bool due(int t) const { return t >= 0 && first_ + t > 0 && (first_ + t) % period == 0; }

  double of(int i) { return wanted_ ? base_[W + i] : 0; }
  const T* descents() { return wanted_ ? descent_.get() + W : nullptr; }  // lane i: from row i − 1 to row i
  T* by() { return by_.get() + W; }                                       // lane i: how far the base of row i moves

  // The bases of W rows, in the precision of the states.
  DROPDTW_INLINE Vec<T> level(int i) { return narrowed(wide(i)); }

  // Moves the bases of W rows.
  DROPDTW_INLINE void move(int i, Vec<T> by) {
    const Wide<T> moved = wide(i) + __builtin_convertvector(by, Wide<T>);
    std::memcpy(base_.get() + W + i, &moved, sizeof moved);
  }

  // Recomputes the descents to rows [from, to] after bases have moved.
  DROPDTW_FLAT void measure(int from, int to) {
    T* const descent = descent_.get() + W;
    for (int i = from; i < to; i += W) store(descent + i, narrowed(wide(i - 1) - wide(i)));
    descent[to] = T(of(to - 1) - of(to));
  }

  // For the backward pass: how far bases moved before each anti-diagonal t of a block.
  bool keep(int diagonals) { return !wanted_ || kept_.resize(std::size_t(diagonals / period + 2) * stride_); }
  T* kept(int t) { return kept_.get() + std::size_t((first_ + t) / period - first_ / period) * stride_ + W; }

 private:
  DROPDTW_INLINE Wide<T> wide(int i) {
    Wide<T> v;
    std::memcpy(&v, base_.get() + W + i, sizeof v);
    return v;
  }
  static DROPDTW_INLINE Vec<T> narrowed(Wide<T> v) { return __builtin_convertvector(v, Vec<T>); }

  bool wanted_ = false;
  int K_ = 0, stride_ = 0, first_ = 0;
  Buffer<double> base_;
  Buffer<T> descent_, by_, kept_;
};

}  // namespace dropdtw::DROPDTW_ISA
