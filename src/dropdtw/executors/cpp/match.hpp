// The match costs of a block, by anti-diagonal: read from a matrix or its strips, or computed from sequences.
#pragma once
#include "block.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
class MatchCosts {
  static constexpr int W = Register<T>::W;
  static constexpr int line = 64 / sizeof(T);  // numbers per cache line

 public:
  MatchCosts(Problem<T>& problem, Block<T>& block) : problem_(problem), block_(block), K_(problem.K), N_(problem.N) {}

  bool prepare(int stride) {
    stride_ = stride;
    const std::size_t n_costs = std::size_t(problem_.metric == Metric::none ? group : 2) * stride_;
    if (!costs_.resize(n_costs)) return false;
    for (std::size_t k = 0; k < n_costs; ++k) costs_[k] = inf<T>;
    if (problem_.metric == Metric::none) return true;
    const std::size_t n = N_ + 1 + 4 * W;
    if (!z_.resize(std::size_t(problem_.d) * stride_) || !x_.resize(problem_.d * n)) return false;
    for (int f = 0; f < problem_.d; ++f) {
      for (int k = 0; k < stride_; ++k) {
        const int i = k - W;
        z_[std::size_t(f) * stride_ + k] = i >= 1 && i <= K_ ? problem_.z[std::size_t(i - 1) * problem_.d + f] : T(0);
      }
      // Reversed, so that anti-diagonals read it forward.
      for (std::size_t k = 0; k < n; ++k) x_[f * n + k] = 0;
      for (int j = 1; j <= N_; ++j) x_[f * n + 2 * W + N_ - j] = problem_.x[std::size_t(j - 1) * problem_.d + f];
    }
    if (of_symbols()) return true;
    z_[W] = x_[2 * W + N_] = inf<T>;  // row 0 and column 0 match nothing
    return true;
  }

  // Fetches the block's strip if the matrix comes in strips. Returns false on failure.
  bool fetch() {
    laid_out_ = -1;
    if (problem_.strip == nullptr || block_.last == 0) return true;
    strip_from_ = larger(block_.first, 1) - 1;
    const int rows = larger(block_.bottom, 1);
    strip_ = problem_.strip(problem_.self, strip_from_, block_.last, rows, &strip_row_, &strip_column_);
    return strip_ != nullptr;
  }

  // Whether elements are numbers. Their costs need no layout: in lane i of anti-diagonal t, between(z()[i] − x(t)[i]).
  bool of_numbers() const { return of_sequences() && problem_.d == 1 && !of_symbols(); }
  // The first feature of z and x by lane; null where the costs come as a matrix.
  const T* z() { return of_sequences() ? z_.get() + W : nullptr; }
  const T* x(int t) { return of_sequences() ? x_.get() + 2 * W + N_ - (block_.first + t) : nullptr; }
  static DROPDTW_INLINE Vec<T> between(Vec<T> gap, bool euclidean) {
    if (euclidean) return gap < T(0) ? -gap : gap;
    return gap * gap;
  }
  bool euclidean() const { return problem_.metric == Metric::euclidean; }

  // The match costs of anti-diagonal t, by lane; those of t − 1 remain valid.
  const T* of(int t) {
    if (problem_.metric != Metric::none) return compute(t);
    if (t / group != laid_out_) lay_out(t / group * group);
    laid_out_ = t / group;
    return costs_.get() + W + std::size_t(t % group) * stride_;
  }

 private:
  bool of_sequences() const { return problem_.metric != Metric::none; }
  bool of_symbols() const { return problem_.metric >= Metric::equal; }

  const T* match_row(int i, std::ptrdiff_t& column) const {  // column j of cells is at [(j − 1) · column]
    if (problem_.strip != nullptr) {
      column = strip_column_;
      return strip_ + std::ptrdiff_t(i - 1) * strip_row_ - std::ptrdiff_t(strip_from_) * column;
    }
    column = problem_.column;
    return problem_.match + std::ptrdiff_t(i - 1) * problem_.row;
  }

  std::ptrdiff_t match_row_stride() const { return problem_.strip != nullptr ? strip_row_ : problem_.row; }

  // Lays out the match costs of anti-diagonals [t, t + group): row g of costs_ holds those of t + g, by lane. For W
  // rows at a time this is a transpose in which each row starts one column further left than the one above.
  DROPDTW_APART DROPDTW_FLAT void lay_out(int t) {
    const int bottom = block_.high[smaller(t + group, block_.diagonals) - 1];
    const std::ptrdiff_t stride = stride_;
    const T sign = problem_.sign;
    T* const out = costs_.get() + W;
    for (int i = block_.low[t]; i <= bottom;) {
      if (i + W - 1 <= bottom && block_.full(i, t) && block_.full(i + W - 1, t)) {
        std::ptrdiff_t column, row = match_row_stride();
        const T* c = match_row(i, column) + (block_.first + t - i - 1) * column;
        if (column == 1) {
          // Rows are too far apart for the processor to predict what the next group reads from them.
          for (int r = 0; r < W; ++r)
            for (int g = line; g <= group; g += line) __builtin_prefetch(c + r * (row - 1) + group + g - 1);
          for (int g = 0; g < group; g += W) transpose(c + g, row - 1, out + g * stride + i, stride, sign);
          i += W;
          continue;
        }
      }
      lay_out_row(i++, t, out);
    }
  }

  void lay_out_row(int i, int t, T* out) {
    int from, to;
    block_.matchable(i, from, to);
    const int start = block_.first + t - i;  // the column of this row on anti-diagonal t
    const int a = smaller(larger(from - start, 0), group), b = larger(smaller(to - start, group), a);
    T* lane = out + i;
    for (int g = 0; g < a; ++g) lane[std::size_t(g) * stride_] = inf<T>;
    if (a < b) {
      std::ptrdiff_t column;
      const T* c = match_row(i, column) + std::ptrdiff_t(start + a - 1) * column;
      for (int g = a; g < b; ++g, c += column) lane[std::size_t(g) * stride_] = *c * problem_.sign;
    }
    for (int g = b; g < group; ++g) lane[std::size_t(g) * stride_] = inf<T>;
  }

  // Computes the match costs of anti-diagonal t from the sequences, into one of two rows of costs_.
  DROPDTW_APART DROPDTW_FLAT const T* compute(int t) {
    const std::size_t n = N_ + 1 + 4 * W;
    const T *const from_x = x(t), *const from_z = z();
    T* const out = costs_.get() + W + std::size_t(t % 2) * stride_;
    const bool numbers = of_numbers();
    if (of_symbols()) {
      compare(from_z, from_x, block_.begin(t), block_.end(t), out);
      out[0] = inf<T>;  // row 0 and column 0 match nothing
      if (block_.first + t <= K_) out[block_.first + t] = inf<T>;
    }
    for (int i = of_symbols() ? block_.end(t) : block_.begin(t); i < block_.end(t); i += W) {
      if (numbers) {
        store(out + i, between(load(from_z + i) - load(from_x + i), euclidean()));
        continue;
      }
      Vec<T> sum{};
      for (int f = 0; f < problem_.d; ++f) {
        const Vec<T> gap = load(from_z + std::size_t(f) * stride_ + i) - load(from_x + f * n + i);
        sum += gap * gap;
      }
      if (euclidean()) sum = root_of<T>(sum);
      store(out + i, sum);
    }
    if (block_.first + t == 0) out[0] = inf<T>;  // instead of ∞ − ∞, which is NaN
    if (problem_.band_start == nullptr) return out;
    // Lanes outside the band are at either end.
    const auto outside = [&](int i) {
      int from, to;
      block_.matchable(i, from, to);
      return block_.first + t - i < from || block_.first + t - i >= to;
    };
    for (int i = block_.low[t]; i <= block_.high[t] && outside(i); ++i) out[i] = inf<T>;
    for (int i = block_.high[t]; i >= block_.low[t] && outside(i); --i) out[i] = inf<T>;
    return out;
  }

  // The costs of the codes of symbols in lanes [begin, end).
  DROPDTW_FLAT void compare(const T* z, const T* x, int begin, int end, T* out) const {
    const T* const table = problem_.table_of_costs;
    const T codes_x = T(problem_.codes_x);
    for (int i = begin; i < end; i += W) {
      if (problem_.metric == Metric::equal) {
        store(out + i, load(z + i) == load(x + i) ? Vec<T>{} : Vec<T>{} + T(1));
        continue;
      }
      const Vec<T> at = load(z + i) * codes_x + load(x + i);
      for (int lane = 0; lane < W; ++lane) out[i + lane] = table[std::int32_t(at[lane])];
    }
  }

  Problem<T>& problem_;
  Block<T>& block_;
  const int K_, N_;
  int stride_ = 0, laid_out_ = -1;  // the group of anti-diagonals in costs_
  Buffer<T> costs_, z_, x_;
  const T* strip_ = nullptr;
  std::ptrdiff_t strip_row_ = 0, strip_column_ = 0;
  int strip_from_ = 0;
};

}  // namespace dropdtw::DROPDTW_ISA
