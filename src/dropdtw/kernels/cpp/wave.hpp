// One problem at a time: the cells of an anti-diagonal share vectors.
//
// The grid is cut into blocks of columns. A block needs the states of the column to its left and leaves those of its last
// one, so a long problem is a chain of blocks, and what was not stored (choices, states) is computed again, block by
// block, from the stored columns. Inside a block, lane i of anti-diagonal t is the cell (i, first + t − i); its left,
// upper and diagonal neighbours are lane i of t − 1, lane i − 1 of t − 1 and lane i − 1 of t − 2.
//
// Vectors run over whole multiples of W lanes. Lanes outside the block hold rubbish that no cell inside looks at.
#pragma once
#include <cstdlib>

#include "cell.hpp"
#include "job.hpp"

namespace dropdtw::DROPDTW_ISA {

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
class Wave {
  static constexpr int S = Tab::states, W = Lanes<T>::W;
  static constexpr int G = 16;  // anti-diagonals whose match costs are laid out together
  using Code = std::conditional_t<wide_code<Tab>, std::uint16_t, std::uint8_t>;

 public:
  explicit Wave(Job<T>& job) : job_(job), K_(job.K), N_(job.N) {
    rule_ = {job.mask, T(job.gamma), inverse(job.gamma)};
    lanes_ = (K_ + 1 + W - 1) / W * W;
    stride_ = W + lanes_ + 2 * W;
  }

  Status solve() {
    if (!prepare()) return Status::no_memory;
    switch (job_.min) {
      case 0: return job_.want == Want::trace ? trace() : value<Min::hard>();
      case 1: return job_.want == Want::gradient ? gradient<Min::soft>() : value<Min::soft>();
      default: return job_.want == Want::gradient ? gradient<Min::smooth>() : value<Min::smooth>();
    }
  }

 private:
  static T inverse(double gamma) {
    constexpr double most = sizeof(T) == 4 ? 1e38 : 1e308;  // ∞ · 0 would be NaN
    return gamma > 1 / most ? T(1 / gamma) : T(most);
  }

  // --- Laying out -----------------------------------------------------------------------------------------------

  bool prepare() {
    bool ok = true;
    for (auto& buffer : work_) ok = ok && buffer.resize(std::size_t(S) * stride_);
    ok = ok && costs_.resize(std::size_t(G) * stride_) && drop_z_.resize(stride_) && drop_x_.resize(N_ + 1 + 4 * W);
    ok = ok && low_.resize(K_ + N_ + 2) && high_.resize(K_ + N_ + 2) && offset_.resize(K_ + N_ + 3);
    if (job_.metric != Metric::none) ok = ok && z_.resize(std::size_t(job_.d) * stride_) && lay_out_x();
    if (!ok) return false;
    for (int k = 0; k < stride_; ++k) drop_z_[k] = inf<T>;
    for (int i = 1; i <= K_; ++i) drop_z_[W + i] = job_.drop_z[i - 1];
    // Reversed, so that along an anti-diagonal it is read forwards: the price of column j is at 2W + N − j.
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) drop_x_[k] = inf<T>;
    for (int j = 1; j <= N_; ++j) drop_x_[2 * W + N_ - j] = job_.drop_x[j - 1];
    if (job_.metric != Metric::none)
      for (int f = 0; f < job_.d; ++f)
        for (int k = 0; k < stride_; ++k) {
          const int i = k - W;
          z_[std::size_t(f) * stride_ + k] = i >= 1 && i <= K_ ? job_.z[std::size_t(i - 1) * job_.d + f] : T(0);
        }
    return true;
  }

  bool lay_out_x() {
    const std::size_t n = N_ + 1 + 4 * W;
    if (!x_.resize(job_.d * n)) return false;
    for (int f = 0; f < job_.d; ++f) {
      for (std::size_t k = 0; k < n; ++k) x_[f * n + k] = 0;
      for (int j = 1; j <= N_; ++j) x_[f * n + 2 * W + N_ - j] = job_.x[std::size_t(j - 1) * job_.d + f];
    }
    return true;
  }

  T* states(int buffer, int s) { return work_[buffer].get() + std::size_t(s) * stride_ + W; }
  const T* prices_x(int t) { return drop_x_.get() + 2 * W + N_ - (first_ + t); }

  // --- The band -------------------------------------------------------------------------------------------------
  //
  // Cells far outside the band are left out, and stand for ∞ where a neighbour looks at them. Left of the band only its
  // first column on that side is ever looked at. Right of it, a row that drops x runs on: with d_x on each further column,
  // and nothing else happens there. So each row ends where the next one can still use it, one column past the band at
  // least, and a state that is entered from a cell above that is left out (z dropped after such a run of x) is the same
  // state one column to the left plus that column's price: the drops in a gap cost the same in either order.

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
  bool narrow() const { return job_.band_start != nullptr && (!Tab::has_border || job_.min == 0); }
  std::int64_t leftmost(int i) const { return i == 0 ? 0 : job_.band_start[i - 1] + !passes(Move::top); }
  std::int64_t rightmost(int i) const {
    std::int64_t right = i == 0 ? 0 : job_.band_stop[i - 1];
    if (passes(Move::left)) {
      right += 1;
      if (i < K_ && job_.band_stop[i] - 1 > right) right = job_.band_stop[i] - 1;
      if (i < K_ && leftmost(i + 1) > right) right = leftmost(i + 1);  // rows share a column, to move down in
    }
    return right < N_ ? right : N_;
  }
  bool below_nothing(int i, int j) const { return i > 0 && j > rightmost(i - 1); }

  // The cells of anti-diagonal t whose upper neighbour is left out on the right: f(lane).
  template <class F>
  void each_run(int t, F&& f) {
    if (!narrow() || Tab::has_border || !passes(Move::top)) return;
    for (int i = larger(low_[t], 1); i <= high_[t] && below_nothing(i, first_ + t - i); ++i) f(i);
  }

  void run_on(int now, int last, int t) {
    each_run(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; runs(s, cost))
          states(now, s)[i] = states(last, s)[i] + (cost == Cost::drop_x ? prices_x(t)[i] : T(0));
    });
  }

  void run_back(int now, int last, int t) {
    each_run(t, [&](int i) {
      for (int s = 0; s < S; ++s)
        if (Cost cost{}; runs(s, cost)) {
          const T flow = states(now, s)[i] < inf<T> ? flows(now, s)[i] : T(0);
          flows(last, s)[i] += flow;
          if (cost == Cost::drop_x) grad_x_[2 * W + N_ - (first_ + t) + i] += flow;
          flows(now, s)[i] = 0;
        }
    });
  }

  // Opens the block of columns [first, last]: which lanes each anti-diagonal has, and where its stored values begin.
  void open(int first, int last) {
    first_ = first;
    last_ = last;
    diagonals_ = K_ + last - first + 1;
    int low = 0, high = 0;
    offset_[0] = 0;
    for (int t = 0; t < diagonals_; ++t) {
      low_[t] = larger(0, t - (last - first));
      high_[t] = smaller(K_, t);
      if (narrow()) {
        while (low < K_ && first + t - low > rightmost(low)) ++low;
        while (high < K_ && first + t - (high + 1) >= leftmost(high + 1)) ++high;
        low_[t] = larger(low_[t], low);
        high_[t] = smaller(high_[t], high);
      }
      offset_[t + 1] = offset_[t] + larger(0, end(t) - begin(t));
    }
    if (job_.strip != nullptr) {
      const int from = larger(first, 1) - 1;
      strip_ = last > from ? job_.strip(job_.self, from, last, &strip_row_, &strip_column_) : nullptr;
      strip_from_ = from;
    }
  }
  int begin(int t) { return low_[t] / W * W; }
  int end(int t) { return high_[t] < low_[t] ? begin(t) : (high_[t] + W) / W * W; }

  const T* match_row(int i, std::ptrdiff_t& column) const {  // so that column j of cells is at [(j − 1) · column]
    if (job_.strip != nullptr) {
      column = strip_column_;
      return strip_ + std::ptrdiff_t(i - 1) * strip_row_ - std::ptrdiff_t(strip_from_) * column;
    }
    column = job_.column;
    return job_.match + std::ptrdiff_t(i - 1) * job_.row;
  }

  std::ptrdiff_t match_row_stride() const { return job_.strip != nullptr ? strip_row_ : job_.row; }

  // The columns of row i that may match: [from, to), as cells.
  void matchable(int i, int& from, int& to) const {
    from = larger(first_, 1);
    to = last_ + 1;
    if (i == 0) to = from;
    if (job_.band_start != nullptr && i > 0) {
      if (job_.band_start[i - 1] + 1 > from) from = int(job_.band_start[i - 1]) + 1;
      if (job_.band_stop[i - 1] + 1 < to) to = int(job_.band_stop[i - 1]) + 1;
    }
  }

  // Match costs of the anti-diagonals [t, t + G): row g of costs_ holds those of t + g by lane. W rows at a time this is a
  // transposition: each row starts one column further left than the one above.
  DROPDTW_FLAT void lay_out_costs(int t) {
    if (job_.metric != Metric::none) return;
    const int bottom = high_[smaller(t + G, diagonals_) - 1];
    const std::ptrdiff_t stride = stride_;
    T* const out = costs_.get() + W;
    for (int i = low_[t]; i <= bottom;) {
      if (i + W - 1 <= bottom && full(i, t) && full(i + W - 1, t)) {
        std::ptrdiff_t column, row = match_row_stride();
        const T* c = match_row(i, column) + (first_ + t - i - 1) * column;
        if (column == 1) {
          for (int g = 0; g < G; g += W) {
            Vec<T> v[W];
            for (int r = 0; r < W; ++r) v[r] = load(c + r * (row - 1) + g);
            transpose<T>(v);
            for (int r = 0; r < W; ++r) store(out + (g + r) * stride + i, v[r]);
          }
          i += W;
          continue;
        }
      }
      lay_out_row(i++, t, out);
    }
  }

  // Whether row i may match on each of the anti-diagonals [t, t + G).
  bool full(int i, int t) const {
    int from, to;
    matchable(i, from, to);
    return first_ + t - i >= from && first_ + t - i + G <= to;
  }

  void lay_out_row(int i, int t, T* out) {
    int from, to;
    matchable(i, from, to);
    const int start = first_ + t - i;  // the column of this row on anti-diagonal t
    const int a = smaller(larger(from - start, 0), G), b = larger(smaller(to - start, G), a);
    T* lane = out + i;
    for (int g = 0; g < a; ++g) lane[std::size_t(g) * stride_] = inf<T>;
    if (a < b) {
      std::ptrdiff_t column;
      const T* c = match_row(i, column) + std::ptrdiff_t(start + a - 1) * column;
      for (int g = a; g < b; ++g, c += column) lane[std::size_t(g) * stride_] = *c;
    }
    for (int g = b; g < G; ++g) lane[std::size_t(g) * stride_] = inf<T>;
  }

  // Match costs of anti-diagonal t computed from the sequences, into row 0 of costs_.
  void compute_costs(int t) {
    const std::size_t n = N_ + 1 + 4 * W;
    const T* const x = x_.get() + 2 * W + N_ - (first_ + t);
    const T* const z = z_.get() + W;
    T* const out = costs_.get() + W;
    for (int i = begin(t); i < end(t); i += W) {
      Vec<T> sum{};
      for (int f = 0; f < job_.d; ++f) {
        const Vec<T> gap = load(z + std::size_t(f) * stride_ + i) - load(x + f * n + i);
        sum += gap * gap;
      }
      if (job_.metric == Metric::euclidean)
        for (int k = 0; k < W; ++k) sum[k] = sizeof(T) == 4 ? __builtin_sqrtf(sum[k]) : __builtin_sqrt(sum[k]);
      store(out + i, sum);
    }
    // Lanes outside the band, or on a border, lie at either end.
    const auto outside = [&](int i) {
      int from, to;
      matchable(i, from, to);
      return first_ + t - i < from || first_ + t - i >= to;
    };
    for (int i = low_[t]; i <= high_[t] && outside(i); ++i) out[i] = inf<T>;
    for (int i = high_[t]; i >= low_[t] && outside(i); --i) out[i] = inf<T>;
  }

  // --- Forward --------------------------------------------------------------------------------------------------

  // Where the inner loops read; copied into locals, since the compiler must assume that any store changes a member.
  struct Sources {
    const T *last, *before, *drop_x, *drop_z;
    std::ptrdiff_t stride;
  };

  Sources sources(int last, int before, int t) {
    return {states(last, 0), states(before, 0), prices_x(t), drop_z_.get() + W, stride_};
  }

  static DROPDTW_INLINE void gather(Around<Tab, T>& a, const Sources& from, int i) {
    each_state<Tab>([&](auto s) {
      a.left[s] = load(from.last + s * from.stride + i);
      a.top[s] = load(from.last + s * from.stride + i - 1);
      a.diag[s] = load(from.before + s * from.stride + i - 1);
    });
    a.drop_x = load(from.drop_x + i);
    a.drop_z = load(from.drop_z + i);
  }

  void fill(int buffer, T value) {
    for (int s = 0; s < S; ++s)
      for (int k = -W; k < lanes_ + 2 * W; k += W) store(states(buffer, s) + k, all<T>(value));
  }

  // Lanes next to a narrow anti-diagonal are cells outside the band: ∞ where a neighbour may look at them.
  void wall(int buffer, int t) {
    const int from = begin(t) - W, to = end(t) + W;
    for (int s = 0; s < S; ++s) {
      T* p = states(buffer, s);
      for (int i = from; i < low_[t]; ++i) p[i] = inf<T>;
      for (int i = larger(high_[t], from - 1) + 1; i < to; ++i) p[i] = inf<T>;
    }
  }

  // Row 0 and column 0 of a table that has edges of its own there: each state has one way in at most.
  void border_cells(int now, int last, int t) {
    if constexpr (Tab::has_border) {
      const bool row = low_[t] == 0 && first_ + t > 0, column = first_ == 0 && t > 0 && high_[t] == t;
      for (int s = 0; s < S; ++s) {
        T across = inf<T>, down = inf<T>;
        for (const Edge& e : Tab::border) {
          if (e.dst != s) continue;
          if (e.move == Move::left && row) across = states(last, e.src)[0] + prices_x(t)[0];
          if (e.move == Move::top && column) down = states(last, e.src)[t - 1] + drop_z_[W + t];
        }
        if (row) states(now, s)[0] = across;
        if (column) states(now, s)[t] = down;
      }
    }
  }

  // Fills the block from the states of the column on its left (none: ∞). Keeps what is asked for: the states of the last
  // column, every state, every choice.
  template <Min min, bool codes, bool keep>
  DROPDTW_FLAT Status forward(const T* left, T* right, T* kept, Code* chosen) {
    if (job_.strip != nullptr && strip_ == nullptr && last_ > 0) return Status::stopped;
    for (int b = 0; b < 3; ++b) fill(b, inf<T>);
    int now = 0, last = 1, before = 2;
    for (int t = 0; t < diagonals_; ++t) {
      if (t % G == 0) {
        lay_out_costs(t);
        if (!alive(t)) return Status::stopped;
      }
      if (t <= K_)
        for (int s = 0; s < S; ++s) states(last, s)[t] = left == nullptr ? inf<T> : left[std::size_t(s) * (K_ + 1) + t];
      const T* match = costs_.get() + W;
      if (job_.metric != Metric::none)
        compute_costs(t);
      else
        match += std::size_t(t % G) * stride_;
      Code* const choice = codes ? chosen + offset_[t] - begin(t) : nullptr;
      const Sources from = sources(last, before, t);
      const Rule<T> rule = rule_;
      T* const here = states(now, 0);
      const int stop = end(t);
      for (int i = begin(t); i < stop; i += W) {
        Around<Tab, T> a;
        gather(a, from, i);
        a.match = load(match + i);
        const Mask<T> code = step<Tab, T, min, codes>(a, rule);
        each_state<Tab>([&](auto s) { store(here + s * from.stride + i, a.here[s]); });
        if constexpr (codes) {
          using Narrow = std::conditional_t<wide_code<Tab>, typename Lanes<T>::Word, typename Lanes<T>::Byte>;
          const Narrow packed = __builtin_convertvector(code, Narrow);
          std::memcpy(choice + i, &packed, sizeof packed);
        }
      }
      if (first_ == 0 && t == 0)
        for (int s = 0; s < S; ++s) states(now, s)[0] = Tab::start[s] ? T(0) : inf<T>;
      border_cells(now, last, t);
      run_on(now, last, t);
      if (narrow()) wall(now, t);
      if constexpr (keep)
        for (int s = 0; s < S; ++s)
          std::memcpy(kept + S * offset_[t] + s * (offset_[t + 1] - offset_[t]), states(now, s) + begin(t),
                      (offset_[t + 1] - offset_[t]) * sizeof(T));
      if (const int i = t - (last_ - first_); right != nullptr && i >= 0)
        for (int s = 0; s < S; ++s)
          right[std::size_t(s) * (K_ + 1) + i] = i >= low_[t] && i <= high_[t] ? states(now, s)[i] : inf<T>;
      const int free = before;
      before = last;
      last = now;
      now = free;
    }
    for (int s = 0; s < S; ++s) corner_[s] = states(last, s)[K_];
    return Status::done;
  }

  bool alive(int t) {
    if (job_.tick == nullptr) return true;
    cells_ += std::int64_t(G) * (high_[t] - low_[t] + 1);
    if (cells_ < (1 << 24)) return true;
    cells_ = 0;
    return job_.tick(job_.self);
  }

  // The value of the final states, and their weights.
  template <Min min>
  void finish(double* weights) {
    double m = inf<double>, total = 0, mean = 0;
    int first = -1;
    for (int k = 0; k < final_count<Tab>; ++k)
      if (double(corner_[Tab::final[k]]) < m) m = corner_[Tab::final[k]], first = k;
    job_.value = m;
    end_ = first < 0 ? -1 : Tab::final[first];
    for (int s = 0; s < S; ++s) weights[s] = 0;
    if (first < 0) return;
    if (min == Min::hard) {
      weights[end_] = 1;
      return;
    }
    double w[final_count<Tab>], above[final_count<Tab>];
    for (int k = 0; k < final_count<Tab>; ++k) {
      above[k] = double(corner_[Tab::final[k]]) - m;
      w[k] = final_count<Tab> == 1 ? 1 : __builtin_exp(-above[k] / job_.gamma);
      if (w[k] == 0) above[k] = 0;
      total += w[k];
      mean += w[k] * above[k];
    }
    mean /= total;
    job_.value = min == Min::soft ? m - job_.gamma * __builtin_log(total) : m + mean;
    for (int k = 0; k < final_count<Tab>; ++k) {
      const double p = w[k] / total;
      weights[Tab::final[k]] = min == Min::soft ? p : p * (1 - (above[k] - mean) / job_.gamma);
    }
  }

  // --- What is wanted -------------------------------------------------------------------------------------------

  // Runs over blocks of `width` columns and leaves the column to the left of block b in columns_.
  template <Min min>
  Status sweep(int width) {
    const int blocks = (N_ + width) / width;
    const std::size_t column = std::size_t(S) * (K_ + 1);
    if (!columns_.resize(column * blocks)) return Status::no_memory;
    for (int b = 0; b < blocks; ++b) {
      open(b * width, smaller((b + 1) * width - 1, N_));
      const Status s = forward<min, false, false>(b == 0 ? nullptr : &columns_[column * b],
                                                  b + 1 < blocks ? &columns_[column * (b + 1)] : nullptr, nullptr, nullptr);
      if (s != Status::done) return s;
    }
    return Status::done;
  }

  template <Min min>
  Status value() {
    double weights[S];
    Status status;
    if (job_.strip == nullptr) {
      open(0, N_);
      status = forward<min, false, false>(nullptr, nullptr, nullptr, nullptr);
    } else {
      status = pass<min>();
    }
    if (status == Status::done) finish<min>(weights);
    return status;
  }

  // As sweep, with two columns instead of all.
  template <Min min>
  Status pass() {
    const std::size_t column = std::size_t(S) * (K_ + 1);
    if (!columns_.resize(2 * column)) return Status::no_memory;
    for (int first = 0, b = 0; first <= N_; first += job_.strip_width, ++b) {
      open(first, smaller(first + job_.strip_width - 1, N_));
      const Status s = forward<min, false, false>(first == 0 ? nullptr : &columns_[column * (b % 2)],
                                                  &columns_[column * ((b + 1) % 2)], nullptr, nullptr);
      if (s != Status::done) return s;
    }
    return Status::done;
  }

  Status trace() {
    const double cells = double(K_ + 1 + 2 * W) * (N_ + 1);
    int width = N_ + 1;
    if (job_.strip != nullptr || cells * sizeof(Code) > double(job_.budget)) {
      // Choices of one block and columns between blocks together are least for this width.
      width = int(__builtin_sqrt(double(N_) * S * sizeof(T) / sizeof(Code))) + 1;
      if (job_.strip != nullptr) width = larger(width, job_.strip_width);
      width = smaller(width, N_ + 1);
    }
    double weights[S];
    const bool whole = width > N_;
    if (!whole) {
      if (const Status s = sweep<Min::hard>(width); s != Status::done) return s;
      finish<Min::hard>(weights);
      if (end_ < 0) return Status::done;
    }
    Buffer<Code> chosen;
    const std::size_t column = std::size_t(S) * (K_ + 1);
    int i = K_, j = N_;
    for (int b = (N_ + width) / width - 1; b >= 0; --b) {
      open(b * width, smaller((b + 1) * width - 1, N_));
      if (!chosen.resize(offset_[diagonals_] + W)) return Status::no_memory;
      const Status s = forward<Min::hard, true, false>(b == 0 ? nullptr : &columns_[column * b], nullptr, nullptr, chosen.get());
      if (s != Status::done) return s;
      if (whole) {
        finish<Min::hard>(weights);
        if (end_ < 0) return Status::done;
      }
      follow(chosen.get(), i, j);
    }
    return Status::done;
  }

  // Follows the stored choices from cell (i, j) in state end_ until it leaves the block.
  void follow(const Code* chosen, int& i, int& j) {
    while (j >= first_ && (i > 0 || j > 0)) {
      const Edge e = way_in(chosen, i, j);
      if (e.move != Move::same) {
        job_.path_i[job_.path_length] = i - 1;
        job_.path_j[job_.path_length] = j - 1;
        job_.path_cost[job_.path_length++] = std::uint8_t(e.cost);
      }
      end_ = e.src;
      i -= e.move == Move::diag || e.move == Move::top;
      j -= e.move == Move::diag || e.move == Move::left;
    }
  }

  Edge way_in(const Code* chosen, int i, int j) {
    if (Tab::has_border && (i == 0 || j == 0))
      for (const Edge& e : Tab::border)
        if (e.dst == end_ && e.move == (i == 0 ? Move::left : Move::top)) return e;
    if (Cost cost{}; narrow() && !Tab::has_border && below_nothing(i, j) && runs(end_, cost))
      return {end_, end_, Move::left, cost, false};
    const int t = i + j - first_;
    int shift = 0;
    for (int s = 0; s < end_; ++s) shift += bits_for(in_degree<Tab>(s));
    const int rank = chosen[offset_[t] + i - begin(t)] >> shift & ((1 << bits_for(in_degree<Tab>(end_))) - 1);
    int k = 0;
    for (const Edge& e : Tab::edges)
      if (e.dst == end_ && k++ == rank) return e;
    __builtin_unreachable();
  }

  // --- Backward -------------------------------------------------------------------------------------------------

  template <Min min>
  Status gradient() {
    // All states of a problem that fits the cache; of a larger one those of a block, at most about 1.5 × C.
    int width = N_ + 1;
    if (double(S) * (K_ + 1) * (N_ + 1) * sizeof(T) > double(1 << 20))
      width = smaller(width, larger(16, smaller(128, int(1.5 * N_ / S))));
    const int blocks = (N_ + width) / width;
    const std::size_t column = std::size_t(S) * (K_ + 1);
    double weights[S];
    if (blocks > 1) {
      if (const Status s = sweep<min>(width); s != Status::done) return s;
      finish<min>(weights);
    }
    Buffer<T> kept, flow, next;
    if (!flow.resize(column) || !next.resize(column) || !grad_x_.resize(N_ + 1 + 4 * W) || !grad_z_.resize(stride_) ||
        !grad_costs_.resize(std::size_t(G) * stride_))
      return Status::no_memory;
    for (auto& buffer : grad_)
      if (!buffer.resize(std::size_t(S) * stride_)) return Status::no_memory;
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) grad_x_[k] = 0;
    for (int k = 0; k < stride_; ++k) grad_z_[k] = 0;
    for (std::size_t k = 0; k < column; ++k) flow[k] = 0;
    for (int b = blocks - 1; b >= 0; --b) {
      const T* left = b == 0 ? nullptr : &columns_[column * b];
      open(b * width, smaller((b + 1) * width - 1, N_));
      if (!kept.resize(S * offset_[diagonals_] + W)) return Status::no_memory;
      if (const Status s = forward<min, false, true>(left, nullptr, kept.get(), nullptr); s != Status::done) return s;
      if (b == blocks - 1) {
        if (blocks == 1) finish<min>(weights);
        if (job_.value == inf<double>) return Status::done;
        for (int s = 0; s < S; ++s) flow[std::size_t(s) * (K_ + 1) + K_] = T(weights[s]);
      }
      backward<min>(left, kept.get(), flow.get(), next.get());
      std::memcpy(flow.get(), next.get(), column * sizeof(T));
    }
    for (int i = 1; i <= K_; ++i) job_.grad_z[i - 1] = grad_z_[W + i];
    for (int j = 1; j <= N_; ++j) job_.grad_x[j - 1] = grad_x_[2 * W + N_ - j];
    return Status::done;
  }

  T* flows(int buffer, int s) { return grad_[buffer].get() + std::size_t(s) * stride_ + W; }

  // The states of anti-diagonal t as `forward` had them when t + 1 looked back.
  void restore(int buffer, int t, const T* left, const T* kept) {
    if (t < 0) fill(buffer, inf<T>);
    if (t >= 0)
      for (int s = 0; s < S; ++s) {
        const std::size_t n = offset_[t + 1] - offset_[t];
        std::memcpy(states(buffer, s) + begin(t), kept + S * offset_[t] + s * n, n * sizeof(T));
      }
    if (t >= 0 && narrow()) wall(buffer, t);
    if (t + 1 >= 0 && t + 1 <= K_)
      for (int s = 0; s < S; ++s)
        states(buffer, s)[t + 1] = left == nullptr ? inf<T> : left[std::size_t(s) * (K_ + 1) + t + 1];
  }

  // Pushes `flow`, the derivatives by the states of the block's last column, back through the block; those by the column
  // on its left are left in `next`.
  template <Min min>
  DROPDTW_FLAT void backward(const T* left, const T* kept, const T* flow, T* next) {
    int now = 0, last = 1, before = 2;
    for (int b = 0; b < 3; ++b)
      for (int s = 0; s < S; ++s) std::memset(flows(b, s) - W, 0, stride_ * sizeof(T));
    std::memset(next, 0, std::size_t(S) * (K_ + 1) * sizeof(T));
    restore(now, diagonals_ - 1, left, kept);
    restore(last, diagonals_ - 2, left, kept);
    for (int t = diagonals_ - 1; t >= 0; --t) {
      restore(before, t - 2, left, kept);
      if (const int i = t - (last_ - first_); i >= 0)
        for (int s = 0; s < S; ++s) flows(now, s)[i] += flow[std::size_t(s) * (K_ + 1) + i];
      border_flow(now, last, t);
      run_back(now, last, t);
      T* const into_costs = grad_costs_.get() + W + std::size_t(t % G) * stride_;
      T* const into_x = grad_x_.get() + 2 * W + N_ - (first_ + t);
      const Sources from = sources(last, before, t);
      const Sinks to{states(now, 0), flows(now, 0), flows(last, 0), flows(before, 0), into_costs, into_x, grad_z_.get() + W};
      const Rule<T> rule = rule_;
      for (int i = begin(t), stop = end(t); i < stop; i += W) push<min>(from, to, rule, i);
      if (t % G == 0) write_costs(t);
      if (t <= K_)
        for (int s = 0; s < S; ++s) {
          next[std::size_t(s) * (K_ + 1) + t] += flows(last, s)[t];
          flows(last, s)[t] = 0;
        }
      // Nothing else of this anti-diagonal was written to.
      for (int s = 0; s < S; ++s) std::memset(flows(now, s) + begin(t) - W, 0, (end(t) - begin(t) + 2 * W) * sizeof(T));
      const int free = now;
      now = last;
      last = before;
      before = free;
    }
  }

  struct Sinks {
    const T *here, *flow;
    T *last, *before, *costs, *x, *z;
  };

  template <Min min>
  static DROPDTW_INLINE void push(const Sources& from, const Sinks& to, const Rule<T>& rule, int i) {
    Around<Tab, T> a;
    gather(a, from, i);
    Vec<T> flow[S];
    each_state<Tab>([&](auto s) {
      a.here[s] = load(to.here + s * from.stride + i);
      flow[s] = load(to.flow + s * from.stride + i);
    });
    Vec<T> match{}, drop_x{}, drop_z{}, left[S]{}, top[S]{}, diag[S]{};
    each_state_backwards<Tab>([&](auto s) {
      const Vec<T> g = flow[s];
      weights<Tab, s, T, min>(a, rule, [&](auto e, Vec<T> w) {
        constexpr Edge edge = Tab::edges[e];
        const Vec<T> share = g == T(0) ? Vec<T>{} : w * g;  // lanes outside the block may hold NaN
        if constexpr (edge.cost == Cost::match) match += share;
        if constexpr (edge.cost == Cost::drop_x) drop_x += share;
        if constexpr (edge.cost == Cost::drop_z) drop_z += share;
        if constexpr (edge.move == Move::same) flow[edge.src] += share;
        if constexpr (edge.move == Move::left) left[edge.src] += share;
        if constexpr (edge.move == Move::top) top[edge.src] += share;
        if constexpr (edge.move == Move::diag) diag[edge.src] += share;
      });
    });
    each_state<Tab>([&](auto s) {
      if constexpr (leaves<s, Move::left>()) add(to.last + s * from.stride + i, left[s]);
      if constexpr (leaves<s, Move::top>()) add(to.last + s * from.stride + i - 1, top[s]);
      if constexpr (leaves<s, Move::diag>()) add(to.before + s * from.stride + i - 1, diag[s]);
    });
    store(to.costs + i, match);
    add(to.x + i, drop_x);
    add(to.z + i, drop_z);
  }

  static DROPDTW_INLINE void add(T* p, Vec<T> v) { store(p, load(p) + v); }

  template <int s, Move move>
  static constexpr bool leaves() {  // whether an edge leaves state s by this move
    for (const Edge& e : Tab::edges)
      if (e.src == s && e.move == move) return true;
    return false;
  }

  void border_flow(int now, int last, int t) {
    if constexpr (Tab::has_border) {
      const bool row = low_[t] == 0 && first_ + t > 0, column = first_ == 0 && t > 0 && high_[t] == t;
      for (const Edge& e : Tab::border) {
        if (row && e.move == Move::left && states(now, e.dst)[0] < inf<T>) {
          flows(last, e.src)[0] += flows(now, e.dst)[0];
          grad_x_[2 * W + N_ - (first_ + t)] += flows(now, e.dst)[0];
        }
        if (column && e.move == Move::top && states(now, e.dst)[t] < inf<T>) {
          flows(last, e.src)[t - 1] += flows(now, e.dst)[t];
          grad_z_[W + t] += flows(now, e.dst)[t];
        }
      }
      for (int s = 0; s < S; ++s) {
        if (row) flows(now, s)[0] = 0;
        if (column) flows(now, s)[t] = 0;
      }
    }
  }

  // The derivatives by the match costs of the anti-diagonals [t, t + G), back into rows and columns.
  DROPDTW_FLAT void write_costs(int t) {
    const int until = smaller(t + G, diagonals_), bottom = high_[until - 1];
    const std::ptrdiff_t stride = stride_, row = N_;
    const T* const in = grad_costs_.get() + W;
    for (int i = larger(low_[t], 1); i <= bottom;) {
      T* const out = job_.grad_match + (i - 1) * row + first_ + t - i - 1;  // where anti-diagonal t is in row i
      if (!narrow() && until - t == G && i + W - 1 <= bottom && full(i, t) && full(i + W - 1, t)) {
        for (int g = 0; g < G; g += W) {
          Vec<T> v[W];
          for (int r = 0; r < W; ++r) v[r] = load(in + (g + r) * stride + i);
          transpose<T>(v);
          for (int r = 0; r < W; ++r) store(out + r * (row - 1) + g, v[r]);
        }
        i += W;
        continue;
      }
      int from, to;
      matchable(i, from, to);
      const int start = first_ + t - i;
      for (int g = larger(from - start, 0); g < smaller(to - start, until - t); ++g)
        if (i >= low_[t + g] && i <= high_[t + g]) out[g] = in[g * stride + i];
      ++i;
    }
  }

  Job<T>& job_;
  Rule<T> rule_;
  const int K_, N_;
  int lanes_, stride_;
  int first_ = 0, last_ = 0, diagonals_ = 0, end_ = -1;
  std::int64_t cells_ = 0;
  T corner_[S];
  Buffer<T> work_[3], grad_[3], costs_, grad_costs_, drop_x_, drop_z_, grad_x_, grad_z_, z_, x_, columns_;
  Buffer<int> low_, high_;
  Buffer<std::size_t> offset_;
  const T* strip_ = nullptr;
  std::ptrdiff_t strip_row_ = 0, strip_column_ = 0;
  int strip_from_ = 0;
};

}  // namespace dropdtw::DROPDTW_ISA
