// A lower bound on what an alignment still has to pay. Problems that are certain to exceed a limit are abandoned early.
//
// This is bound (1) of bounds.py, applied to what lies beyond a cell. Each pair pays a share λ of its match cost for
// its column and the rest for its row; an element without a match pays what the table demands. The row and the column
// of the cell itself may still get matches. If match costs may be negative, all negative costs of that row and column
// count as if they were still to come.
#pragma once
#include "block.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
class LowerBound {
  static constexpr int W = Register<T>::W;

 public:
  explicit LowerBound(const Problem<T>& problem) : problem_(problem), K_(problem.K), N_(problem.N) {}

  // Whether there is a limit, and match costs are known or not negative.
  bool wanted() const {
    return problem_.limit < inf<double> && problem_.table->built_in &&
           (problem_.match != nullptr || problem_.least >= 0);
  }

  DROPDTW_APART bool prepare(int stride) {
    for (const Edge& e : *problem_.table)
      if (e.cost == Cost::match) {
        lightest_ = T(e.weight) < lightest_ ? T(e.weight) : lightest_;
        heaviest_ = T(e.weight) > heaviest_ ? T(e.weight) : heaviest_;
      }
    if (!x_.resize(N_ + 1 + 4 * W) || !z_.resize(stride) || !lost_x_.resize(N_) || !lost_z_.resize(K_) ||
        !column_.resize(N_ + W) || !row_.resize(K_ + W) || !below_x_.resize(N_) || !below_z_.resize(K_))
      return false;
    negative_ = 0;
    const Lost of_x(*problem_.table, Move::left), of_z(*problem_.table, Move::top);
    for (int j = 0; j < N_; ++j) negative_ -= smaller_of(0, lost_x_[j] = of_x(problem_.drop_x[j]));
    for (int i = 0; i < K_; ++i) negative_ -= smaller_of(0, lost_z_[i] = of_z(problem_.drop_z[i]));
    read();
    double best = -inf<double>, share = 0;
    for (const double l : bound_shares) {
      double total = 0;
      for (int j = 0; j < N_; ++j) total += pays_x(j, l);
      for (int i = 0; i < K_; ++i) total += pays_z(i, 1 - l);
      if (total > best) best = total, share = l;
    }
    for (int k = 0; k < stride; ++k) z_[k] = 0;
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) x_[k] = 0;
    double sum = 0;  // laid out as Wave lays out drop costs
    for (int i = K_; i > 0; sum += pays_z(--i, 1 - share)) z_[W + i] = T(sum + below_z_[i - 1]);
    z_[W] = T(sum);
    sum = 0;
    for (int j = N_; j > 0; sum += pays_x(--j, share)) x_[2 * W + N_ - j] = T(sum + below_x_[j - 1]);
    x_[2 * W + N_] = T(sum);
    // Sums are rounded, here and in the kernels. The error is below this margin as long as they do not exceed the
    // limit.
    constexpr double epsilon = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
    const double size = __builtin_fabs(problem_.limit) + 2 * negative_;
    limit_ = T(problem_.limit + 4 * (double(K_) + N_ + 2) * epsilon * size);
    return true;
  }

  T limit() const { return limit_; }
  const T* of_x(int t) { return x_.get() + 2 * W + N_ - t; }  // lane i: after column t − i
  const T* of_z() { return z_.get() + W; }                    // lane i: after row i

 private:
  // The least that an element without a match pays: its price, or nothing; ∞ if the table has no such edge.
  struct Lost {
    bool priced = false, free = false;
    Lost(const Table& table, Move move) {
      for (const Edge& e : table)
        if (e.move == move && e.cost != Cost::match) (e.cost == Cost::free ? free : priced) = true;
    }
    T operator()(T price) const {
      const T least = priced ? price : inf<T>;
      return free && least > 0 ? T(0) : least;
    }
  };

  bool several(Move move) const {  // whether an element may get another match by this move
    for (const Edge& e : *problem_.table)
      if (e.move == move && e.cost == Cost::match) return true;
    return false;
  }

  static double smaller_of(double a, double b) { return a < b ? a : b; }
  static double pays(T lost, double share, T m) {  // an element that cannot match pays in full, whatever the share
    return m == inf<T> ? lost : smaller_of(lost, share * m);
  }
  double pays_x(int j, double share) { return pays(lost_x_[j], share, column_[j]); }
  double pays_z(int i, double share) { return pays(lost_z_[i], share, row_[i]); }

  // Finds the smallest match cost of each column and row, and the sum of the negative costs in each.
  void read() {
    const bool known = problem_.match != nullptr;
    for (int j = 0; j < N_; ++j) column_[j] = known ? inf<T> : T(0), below_x_[j] = 0;
    for (int i = 0; i < K_; ++i) row_[i] = known ? inf<T> : T(0), below_z_[i] = 0;
    if (!known) return;
    if (problem_.column == 1)
      minima(K_, N_, problem_.row, 1, row_.get(), column_.get());
    else
      minima(N_, K_, problem_.column, problem_.row, column_.get(), row_.get());
    for (int i = 0; i < K_; ++i)
      if (row_[i] < 0)
        for (int j = 0; j < N_; ++j)
          if (const double v = heaviest_ * problem_.match[i * problem_.row + j * problem_.column]; v < 0) {
            negative_ -= v;
            below_x_[j] += v;
            below_z_[i] += v;
          }
    const bool again_x = several(Move::top), again_z = several(Move::left);
    if (lightest_ != 1 || heaviest_ != 1) {
      for (int j = 0; j < N_; ++j) column_[j] *= column_[j] < 0 ? heaviest_ : lightest_;
      for (int i = 0; i < K_; ++i) row_[i] *= row_[i] < 0 ? heaviest_ : lightest_;
    }
    for (int j = 0; j < N_; ++j) {
      if (again_x && column_[j] < 0) column_[j] = T(below_x_[j]);
      if (!again_x) below_x_[j] = 0;
    }
    for (int i = 0; i < K_; ++i) {
      if (again_z && row_[i] < 0) row_[i] = T(below_z_[i]);
      if (!again_z) below_z_[i] = 0;
    }
  }

  // The minima of a matrix along both axes, W lines at a time if their numbers are contiguous.
  DROPDTW_FLAT void minima(int lines, int length, std::ptrdiff_t far, std::ptrdiff_t near, T* of_line, T* of_place) {
    int a = 0;
    for (; near == 1 && a + W <= lines; a += W) {
      Vec<T> found[W];
      for (int r = 0; r < W; ++r) {
        const T* const c = problem_.match + (a + r) * far;
        found[r] = all<T>(inf<T>);
        int b = 0;
        for (; b + W <= length; b += W) {
          const Vec<T> v = load(c + b);
          store(of_place + b, least<T>(v, load(of_place + b)));
          found[r] = least<T>(v, found[r]);
        }
        for (; b < length; ++b) {
          if (c[b] < of_place[b]) of_place[b] = c[b];
          if (c[b] < found[r][0]) found[r][0] = c[b];
        }
      }
      transpose<T>(found);
      for (int r = 1; r < W; ++r) found[0] = least<T>(found[r], found[0]);
      store(of_line + a, found[0]);
    }
    for (; a < lines; ++a)
      for (int b = 0; b < length; ++b) {
        const T v = problem_.match[a * far + b * near];
        if (v < of_place[b]) of_place[b] = v;
        if (v < of_line[a]) of_line[a] = v;
      }
  }

  const Problem<T>& problem_;
  const int K_, N_;
  double negative_ = 0;  // the absolute sum of all costs that can be negative
  T limit_ = 0;
  T lightest_ = inf<T>, heaviest_ = 0;  // the smallest and the largest weight of a match
  Buffer<T> x_, z_, lost_x_, lost_z_, column_, row_;
  Buffer<double> below_x_, below_z_;
};

}  // namespace dropdtw::DROPDTW_ISA
